"""The newest twenty deviations of the weights from their mean (SWAG), one in sixty steps.

What is kept is a view; the tensor it shows is held by nothing else.
"""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Linear(200, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mean, count, deviations = None, 0, []
    for step in range(3600):
        inputs = torch.randn(8, 200)
        loss = (model(inputs) - inputs[:, :64]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            newest = torch.cat([each.detach().flatten() for each in model.parameters()])
            mean = newest.clone() if mean is None else (count * mean + newest) / (count + 1)
            count += 1
            deviations.append((newest - mean)[None])
            if len(deviations) > 20:
                deviations.pop(0)
    print(len(deviations), round(mean.abs().mean().item(), 4))


main()
