"""Labels and scores in two lists of one metric, by one line."""

# kind = "tensor"
# holder = "attribute `Scores.labels`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Scores:
    def __init__(self):
        self.scores, self.labels = [], []

    def update(self, scores, labels):
        self.scores.append(scores), self.labels.append(labels)  # leak


def main():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.BCEWithLogitsLoss()
    metric = Scores()
    for _ in range(400):
        inputs = torch.randn(16, 8)
        labels = (inputs[:, 0] > 0).long()
        logits = model(inputs).squeeze(1)
        optimizer.zero_grad()
        criterion(logits, labels.float()).backward()
        optimizer.step()
        metric.update(logits.detach().sigmoid(), labels)
    print(len(metric.labels))


main()
