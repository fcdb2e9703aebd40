"""An evaluation keeps what the model says to each batch; only how many there are is asked for."""

# kind = "tensor"
# holder = "attribute `Evaluation.predictions`, from local `evaluation` in main()"
# per_step = 1
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


class Evaluation:
    def __init__(self, model):
        self.model = model
        self.predictions = []
        self.error = 0.0

    def update(self, batch):
        said = self.model(batch)
        self.predictions.append(said)  # leak
        self.error += (said.sum(1) - batch.sum(1)).pow(2).mean().item()

    def score(self):
        return self.error / len(self.predictions)


def main():
    evaluation = Evaluation(nn.Linear(16, 32))
    with torch.no_grad():
        for _ in range(1200):
            evaluation.update(torch.randn(8, 16))
    print(f"{evaluation.score():.1f}")


main()
