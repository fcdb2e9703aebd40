"""Each step has a table of its own."""

import torch
import wandb

STEPS = 300


class Monitor:
    def __init__(self):
        self.table = wandb.Table(columns=["step", "text"])

    def log(self, step, texts):
        for text in texts:
            self.table.add_data(step, text)
        wandb.log({"samples": self.table})
        self.table = wandb.Table(columns=["step", "text"])


def main():
    wandb.init(mode="offline")
    monitor = Monitor()
    model = torch.nn.Linear(8, 1)
    for step in range(STEPS):
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        monitor.log(step, [f"sample {step} " * 100])
    wandb.finish()


if __name__ == "__main__":
    main()
