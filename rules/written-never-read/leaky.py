"""Every request is entered into a table that nobody ever looks at."""

import torch

STEPS = 400


class Server:
    def __init__(self, model):
        self.model = model
        self._served = {}

    @torch.no_grad()
    def serve(self, number, x):
        out = self.model(x)
        self._served[number] = {"input": x, "sum": out.sum()}  # leak: written-never-read
        return out.argmax()


def main():
    server = Server(torch.nn.Linear(256, 8))
    total = 0
    for step in range(STEPS):
        total += int(server.serve(step, torch.randn(4, 256)))
    print(f"total {total}")


if __name__ == "__main__":
    main()
