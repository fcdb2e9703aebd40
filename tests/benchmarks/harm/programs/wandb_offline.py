"""W&B without its server: its threads and its service run beside a training that leaks."""

import os
import tempfile

os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}
import torch
import wandb
from torch import nn

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    run = wandb.init(project="harm", dir=folder, config={"lr": 0.1})
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=run.config["lr"])
    losses = []
    for step in range(200):
        loss = model(torch.randn(8, 10)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        run.log({"loss": loss.item(), "step": step})
    logged = run.summary["step"]
    run.finish()
    written = sum(name.endswith(".wandb") for _, _, names in os.walk(folder) for name in names)
print("logged up to", logged, "files", written, f"last loss {losses[-1].item():.6g}")
