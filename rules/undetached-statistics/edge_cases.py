import einops
import torch
from torch import nn


class Careful(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(4)
        self.seen = 0

    def forward(self, x):
        self.seen += x.shape[0]
        with torch.no_grad():
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return x - self.mean


class ByData(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(4)

    def forward(self, x):
        self.mean = self.mean + x.mean(0).data
        return x


class BySlice(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("spread", torch.zeros(4))

    def forward(self, x):
        self.mean[:] = self.mean * 0.9 + 0.1 * x.mean(0)  # leak: undetached-statistics
        self.spread.mul_(0.9).add_(0.1 * x.std(0))  # leak: undetached-statistics
        return x


class OfOneCall(nn.Module):
    def forward(self, x):
        self.penalty = 0.0
        for row in x:
            self.penalty = self.penalty + row.norm()
        return x


class ByHelper(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(4)

    def forward(self, x):
        self.update(x.mean(0))
        return x

    def update(self, mean):
        self.mean = 0.9 * self.mean + 0.1 * mean  # leak: undetached-statistics


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.shadow = {}

    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p  # leak: undetached-statistics


class AverageOfData(nn.Module):
    def __init__(self):
        super().__init__()
        self.shadow = {}

    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p.data


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = nn.Parameter(torch.randn(8, 4))
        self.used = torch.zeros(8)

    def forward(self, x):
        index = torch.cdist(x, self.book).argmin(1)
        self.used = 0.9 * self.used + 0.1 * torch.bincount(index, minlength=8)
        return self.book[index]


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(4)

    def forward(self, x):
        with torch.no_grad():
            self.update(x)
        return x - self.mean

    def update(self, x):
        self.mean += 0.1 * (x.mean(0) - self.mean)


class ScaledWithGraph(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(4)

    def forward(self, x):
        self.update(x)
        return x

    def update(self, x):
        self.mean += 0.1 * (x.mean(0) - self.mean)  # leak: undetached-statistics


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = 0.0

    def forward(self, x):
        self.last = 0.9 * self.last + x.mean(0)
        return x + self.last


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, batch):
        self.cell.last = 0.0  # anew for each sequence
        return [self.cell(x) for x in batch]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.last_mean = 0.0

    def forward(self, x):
        self.last_mean = 0.9 * self.last_mean + x.mean(0)  # leak: undetached-statistics
        return x + 1


class OtherLayer(nn.Module):
    def forward(self, x):
        self.last_mean = x.mean()
        return x


class SequenceNode(nn.Module):
    def forward(self, sequence):
        self.begin(sequence[0])
        for x in sequence:
            self.charge(self.weight @ x)

    def begin(self, x):
        raise TypeError("each kind of node begins in its own way")

    def charge(self, x):
        raise TypeError("each kind of node charges in its own way")


class CurrentNode(SequenceNode):
    def charge(self, x):
        self.current = 0.5 * self.current + x

    def begin(self, x):
        self.current = torch.zeros_like(x)


def lerp(old, new, weight):
    old.lerp_(new, weight)
    return old


def lerp_off(old, new, weight):
    with torch.no_grad():
        old.lerp_(new, weight)


def lerp_detached(old, new, weight):
    old.lerp_(new.detach(), weight)


class ByHelper(nn.Module):
    def __init__(self, dim):
        super().__init__()
        for name in ("mean", "again", "off", "detached", "around"):
            self.register_buffer(name, torch.zeros(dim))
        self.project = nn.Linear(dim, dim)

    def forward(self, x):
        x = self.project(x)
        lerp(self.mean, x.mean(0), 0.1)  # leak: undetached-statistics
        self.again = lerp(self.again, x.mean(0), 0.1)  # leak: undetached-statistics
        lerp_off(self.off, x.mean(0), 0.1)
        lerp_detached(self.detached, x.mean(0), 0.1)
        with torch.no_grad():
            lerp(self.around, x.mean(0), 0.1)
        return x


class Streamed(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.project = nn.Linear(dim, dim)
        self.last, self.kept = torch.zeros(dim), torch.zeros(dim)
        self.register_forward_hook(self._cut)

    def forward(self, x):
        x = self.project(x)
        self.last = self.last + x.mean(0)  # `_cut` ends its graph after each pass
        self.kept = self.kept + x.mean(0)  # leak: undetached-statistics
        return x + self.last + self.kept

    @staticmethod
    def _cut(module, inputs, output):
        module.last.detach_()


class Metric(nn.Module):
    def forward(self, *args, **options):
        self.update(*args, **options)
        return self.compute()

    def update(self, *args):
        """Take in what a step has made."""


class MeanError(Metric):
    def __init__(self):
        super().__init__()
        self.total, self.options = 0.0, 0.0

    def update(self, output, target, weight=1.0):
        self.total += (output - target).abs().sum()  # leak: undetached-statistics
        self.options += weight

    def compute(self):
        return self.total / 2


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("sizes", torch.zeros(4))

    def forward(self, x):
        flat, sizes = einops.pack([x], "* d")
        self.mean = 0.9 * self.mean + 0.1 * flat.mean(0)  # leak: undetached-statistics
        self.sizes = 0.9 * self.sizes + len(sizes)
        return flat
