import torch

val = torch.rand(1)
for step in range(2000):
    val += torch.rand(1)
print(val.shape)
