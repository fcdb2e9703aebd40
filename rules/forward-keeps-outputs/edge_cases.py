"""Near misses are unmarked."""

from torch import nn


class Base(nn.Module):
    pass


class Keeps(Base):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = blocks
        self.kept = []
        self.asked_for = []
        self.emptied = []
        self.sizes = []
        self.debug = False

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            self.kept.append(x)  # leak: forward-keeps-outputs
            self.emptied.append(x)
            self.sizes.append(len(x))
            if self.debug:
                self.asked_for.append(x)
        return x

    def pop_outputs(self):
        outputs, self.emptied = self.emptied, []
        return outputs


class NoModule:
    def __init__(self):
        self.seen = []

    def forward(self, x):
        self.seen.append(x)


class Losses(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.losses = []
        self.values = []
        self.set_by_others = []

    def forward(self, x):
        out = self.net(x)
        self.add_loss(out.pow(2).mean())
        self.log(out.mean().item())
        return out

    def add_loss(self, loss):
        self.losses.append(loss)  # leak: forward-keeps-outputs

    def log(self, value):
        self.values.append(value)

    def watch(self, layer):
        self.set_by_others.append(layer)


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.reset()

    def reset(self):
        self.activations = []

    def forward(self, x):
        self.activations.append(x)

    def get_value(self):
        value = sum(self.activations)
        self.reset()
        return value
