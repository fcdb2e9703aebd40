"""One metric is never reset; another, filled twice as fast, is at the end of each epoch."""

# kind = "tensor"
# holder = "attribute `Confidence.shares`"
# per_step = 1

import torch

torch.manual_seed(0)


class Scores:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)

    def compute(self):
        return torch.stack(self.values).mean()

    def reset(self):
        self.values.clear()


class Confidence:
    def __init__(self):
        self.shares = []

    def update(self, share):
        self.shares.append(share)  # leak

    def compute(self):
        return torch.stack(self.shares).mean()

    def reset(self):
        self.shares.clear()


def main():
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scores, confidence = Scores(), Confidence()
    for _ in range(40):
        for _ in range(75):
            output = model(torch.randn(16, 16))
            loss = output.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scores.update(output.detach().amax())
            scores.update(output.detach().amin())
            confidence.update(output.detach().softmax(1).amax())
        print(scores.compute() < 100, confidence.compute() < 2)
        scores.reset()


main()
