"""Models copied, pickled, saved and loaded in the loop; classes of the program's own in them."""

import copy
import hashlib
import io
import pickle
import random
from dataclasses import dataclass, field

import numpy
import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
numpy.random.seed(0)


@dataclass
class Record:
    step: int
    loss: float
    notes: dict = field(default_factory=dict)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(16, 4)
        self.history = []

    def forward(self, x):
        return self.body(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
kept, copies = [], []
for step in range(150):
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss)
    model.history.append(Record(step, loss.item(), {"draw": random.random()}))
    if step % 10 == 0:
        copies.append(copy.deepcopy(model))
        buffer = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
        buffer.seek(0)
        model.load_state_dict(torch.load(buffer)["model"])
        model = pickle.loads(pickle.dumps(model))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
print(hashlib.sha256(weights).hexdigest(), sum(each.item() for each in kept), torch.rand(1).item())
print(random.random(), numpy.random.rand(), hashlib.sha256(pickle.dumps(model.history)).hexdigest())
