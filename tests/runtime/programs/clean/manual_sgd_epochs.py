import torch

torch.manual_seed(0)
weight = torch.zeros(20, requires_grad=True)
data, labels = torch.randn(960, 20), torch.randn(960)
for epoch in range(40):
    for start in range(0, 960, 32):
        loss = (data[start : start + 32] @ weight - labels[start : start + 32]).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            weight -= 0.01 * weight.grad
            weight.grad.zero_()
