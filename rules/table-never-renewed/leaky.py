"""The table keeps each row of each step."""

import wandb


class Monitor:
    def __init__(self):
        self.table = wandb.Table(columns=["step", "text"])

    def log(self, step, texts):
        for text in texts:
            self.table.add_data(step, text)  # leak: table-never-renewed
        wandb.log({"samples": self.table})


def main():
    wandb.init(mode="offline")
    monitor = Monitor()
    for step in range(100):
        monitor.log(step, ["a sample" * 100])
    wandb.finish()


if __name__ == "__main__":
    main()
