"""Runs without Lightning: the module stands in for the parts of it that matter here."""

import torch
from torch import nn

try:
    from pytorch_lightning import LightningModule
except ImportError:
    LightningModule = nn.Module


class Classifier(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 4)
        self.losses = []

    def training_step(self, batch, batch_idx):
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.layer(inputs), labels)
        self.losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        self.losses.clear()


torch.manual_seed(0)
classifier = Classifier()
optimizer = torch.optim.SGD(classifier.parameters(), lr=0.01)
for step in range(400):
    optimizer.zero_grad()
    loss = classifier.training_step((torch.randn(8, 16), torch.randint(0, 4, (8,))), step)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
