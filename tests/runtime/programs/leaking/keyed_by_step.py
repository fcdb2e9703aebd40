"""A dictionary with a tensor for every step, in an attribute."""

# kind = "tensor"
# holder = "Recorder.by_step"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Recorder:
    def __init__(self):
        self.by_step = {}

    def record(self, step, value):
        self.by_step[step] = value  # leak


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    recorder = Recorder()
    for step in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        recorder.record(step, inputs.mean(0))
    print(len(recorder.by_step))


main()
