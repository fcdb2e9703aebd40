"""A compression model of two layers, trained for an epoch of 300 batches; it prints the time."""

# repository = "lyq133/LIC-HPCM"
# commit = "3ea1a475fba7f7614017fd21b0a8a92f340a3dea"
# paths = ["train.py"]
# renamed = { "train.py" = "hpcm.py" }
# fixed = "`.detach().item()` in the meter (6d88b8a9)"

import sys
import types

for name in ("torchvision", "torchvision.transforms"):  # for images that are read from files
    sys.modules[name] = types.ModuleType(name)
sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]

import torch
from hpcm import RateDistortionLoss, train_one_epoch
from torch import nn

torch.manual_seed(0)


class Compressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Conv2d(3, 8, 4, 4), nn.ConvTranspose2d(8, 3, 4, 4)

    def forward(self, images):
        code = self.encode(images)
        likely = torch.sigmoid(code)
        likelihoods = {"y": likely, "z": likely.mean((2, 3))}
        return {"x_hat": self.decode(code), "likelihoods": likelihoods}


model = Compressor()
loader = torch.utils.data.DataLoader(torch.rand(1200, 3, 16, 16), batch_size=4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
train_one_epoch(model, RateDistortionLoss(), loader, optimizer, 0, 0, 1.0)
print(model.encode.bias.sum().item())
