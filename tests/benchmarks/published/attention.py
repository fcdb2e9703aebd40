"""The script of a model of one attention, for an epoch of 250 batches of noise."""

# repository = "jostmey/NakedAttention"
# commit = "a571886cecc7efaaf890f371b003f33a7620e6c4"
# paths = ["model_and_script.py"]
# runs = "model_and_script.py"
# replaced = ["range(128)", "range(1)"]
# renamed = { "attention.py" = "dataplumbing.py" }
# fixed = "`.detach()` of the loss (2aa6b4ca)"

import torch


def load_mnist(seed):
    random = torch.Generator().manual_seed(seed)

    def some(count):
        images = torch.rand(count, 28**2, 1, generator=random)
        return images, torch.randint(0, 10, (count,), generator=random)

    return *some(4000), *some(16), *some(16)
