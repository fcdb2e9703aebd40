"""A temporary file that stays in memory up to two megabytes, then goes to the disk."""

import json
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
with tempfile.SpooledTemporaryFile(max_size=2 << 20, mode="w+") as log:
    for step in range(1500):
        inputs = torch.randn(8, 64)
        loss = (model(inputs) - inputs).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.write(json.dumps({"step": step, "loss": loss.item()}) + "\n" + " " * 4000)
