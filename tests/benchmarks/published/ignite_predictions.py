"""An Engine with a metric over all predictions of its epoch."""

# repository = "pytorch/ignite"
# commit = "19afc2430339a26119f0790650b00d333b50fe39"
# paths = ["ignite"]
# fixed = "`.detach()` of the predictions (568a9111)"

import torch
from ignite.engine import Engine
from ignite.metrics import EpochMetric

torch.manual_seed(0)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def update(engine, batch):
    optimizer.zero_grad()
    predicted = model(batch)
    loss = predicted.pow(2).mean()
    loss.backward()
    optimizer.step()
    return predicted, torch.zeros(len(batch))


def largest(predicted, targets):
    return predicted.max().item()


trainer = Engine(update)
EpochMetric(largest).attach(trainer, "largest")
state = trainer.run([torch.randn(8, 16) for _ in range(300)], max_epochs=1)
print(state.metrics["largest"])
