"""The outputs of each validation are kept, after an epoch of three hundred steps."""

# kind = "tensor"
# holder = "attribute `Trainer.val_outputs`"
# per_step = 0.0333

import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self):
        self.model = nn.Linear(64, 64)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.val_outputs = []

    def validate(self):
        with torch.no_grad():
            for _ in range(10):
                outputs = self.model(torch.randn(400, 64)).softmax(-1)
                self.val_outputs.append(outputs)  # leak
        return outputs.max().item()

    def fit(self, epochs):
        for epoch in range(epochs):
            for _ in range(300):
                data = torch.randn(8, 64)
                loss = (self.model(data) - data).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(epoch, round(self.validate(), 4))


Trainer().fit(15)
