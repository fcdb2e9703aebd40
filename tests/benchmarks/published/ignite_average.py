"""An Engine with a RunningAverage of its loss."""

# package = "pytorch-ignite==0.3.0"
# fixed = "`.detach()` of the loss (#943)"

import torch
from ignite.engine import Engine
from ignite.metrics import RunningAverage

torch.manual_seed(0)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def update(engine, batch):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


trainer = Engine(update)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
state = trainer.run([torch.randn(8, 16) for _ in range(300)], max_epochs=1)
print(float(state.metrics["loss"]))
