"""The table is gone: nobody looked at it."""

import torch

STEPS = 400


class Server:
    def __init__(self, model):
        self.model = model

    @torch.no_grad()
    def serve(self, number, x):
        out = self.model(x)
        return out.argmax()


def main():
    server = Server(torch.nn.Linear(256, 8))
    total = 0
    for step in range(STEPS):
        total += int(server.serve(step, torch.randn(4, 256)))
    print(f"total {total}")


if __name__ == "__main__":
    main()
