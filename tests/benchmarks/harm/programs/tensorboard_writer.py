"""TensorBoard's writer has a thread of its own; the training keeps its losses."""

import tempfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import nn
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with SummaryWriter(folder, max_queue=4, flush_secs=1) as writer:
        for step in range(250):
            loss = model(torch.randn(8, 10)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
            writer.add_scalar("loss", loss.detach(), step)
            writer.add_scalars("parts", {"a": step, "b": -step}, step)
            if step % 50 == 0:
                writer.add_histogram("weight", model.weight, step)
    files = sorted(Path(folder).rglob("events.*"))
    events = [event for file in files for event in EventFileLoader(str(file)).Load()]
print("files", len(files), "events", len(events), f"last loss {losses[-1].item():.6g}")
