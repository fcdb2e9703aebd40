"""An Engine with a MeanAbsoluteError of its own predictions."""

# repository = "pytorch/ignite"
# commit = "b46d4e114d27f896d96fc1688d529091738b1996"
# paths = ["ignite"]
# fixed = "`.item()` of the sum (2cbaafdb)"

import sys
import types

sys.modules["torch._six"] = types.ModuleType("torch._six")
sys.modules["torch._six"].string_classes = (str, bytes)  # torch 1.9 removed it

import torch
from ignite.engines import Engine
from ignite.metrics import MeanAbsoluteError

torch.manual_seed(0)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def update(engine, batch):
    optimizer.zero_grad()
    predicted = model(batch)
    loss = predicted.pow(2).mean()
    loss.backward()
    optimizer.step()
    return predicted, torch.zeros_like(predicted)


trainer = Engine(update)
MeanAbsoluteError().attach(trainer, "error")
state = trainer.run([torch.randn(8, 16) for _ in range(300)], max_epochs=1)
print(float(state.metrics["error"]))
