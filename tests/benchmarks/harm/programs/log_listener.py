"""Records go through a queue to a listener's thread; the training keeps its losses."""

import io
import logging
import logging.handlers
import queue

import torch
from torch import nn

torch.manual_seed(0)
records: queue.SimpleQueue = queue.SimpleQueue()
text = io.StringIO()
writer = logging.StreamHandler(text)
writer.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
listener = logging.handlers.QueueListener(records, writer, respect_handler_level=True)
listener.start()
logger = logging.getLogger("train")
logger.setLevel(logging.INFO)
logger.addHandler(logging.handlers.QueueHandler(records))
logger.propagate = False

model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(300):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    logger.info("step %d loss %.6f", step, loss.detach())
listener.stop()
lines = text.getvalue().splitlines()
print("records", len(lines), "first", lines[0], "last", lines[-1])
print("in order", [line.split()[3] for line in lines] == [str(n) for n in range(300)])
