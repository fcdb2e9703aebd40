"""Epochs of a metric whose states a report keeps."""

# package = "torchmetrics==1.3.2"
# options = ["--size", "8"]
# fixed = "`reset()` clears the lists (#2493)"

import torch
from torchmetrics import CatMetric

torch.manual_seed(0)
metric, epochs = CatMetric(), []
for _ in range(200):
    for _ in range(4):
        metric.update(torch.randn(256))
    epochs.append(metric.metric_state)
    metric.reset()
print(len(epochs))
