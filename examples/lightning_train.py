"""A Lightning module that keeps the loss of every batch, and the callback that finds it.

python examples/lightning_train.py
leakcheck run examples/lightning_train.py
"""

import lightning.pytorch as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from leakcheck.integrations.lightning import LeakcheckCallback


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
        self.history = []

    def training_step(self, batch, batch_index):
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.layers(inputs), labels)
        self.history.append(loss)  # keeps the autograd graph of every step
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(640, 20), torch.randint(0, 3, (640,)))
    trainer = L.Trainer(
        max_epochs=10,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        callbacks=[LeakcheckCallback()],
    )
    trainer.fit(Classifier(), DataLoader(data, batch_size=32))


if __name__ == "__main__":
    main()
