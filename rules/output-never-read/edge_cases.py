"""Near misses are unmarked."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, layer, debug):
        super().__init__()
        self.layer = layer
        self.debug = debug
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, query, mask):
        scores = self.layer(query)
        self.scores = scores  # leak: output-never-read
        self.seen = scores  # `report` reads it
        self.sizes = scores.shape
        self.detached = scores.detach()
        self.mask = mask  # the caller has it, too
        self.rows, self.columns = mask  # and the whole of these
        self.left, self.right = scores.chunk(2)  # leak: output-never-read
        self.mean = scores.mean(0)  # a buffer: its name is a string
        self.released = scores
        if self.debug:
            self.asked_for = scores
        self.released = None
        return scores.softmax(-1)

    def report(self):
        return self.seen.max().item()


class Kept(nn.Module):
    def forward(self, x):
        self.features = torch.relu(self.net(x))  # Head reads it
        return self.features.mean()


class Head(Kept):
    def loss(self):
        return self.features.pow(2).mean()


class NoModule:
    def forward(self, x):
        self.last = self.net(x)
        return 0


class Asked(nn.Module):
    def forward(self, x):
        self.logits = self.net(x)  # others may ask for it by its name
        return self.logits_of("logits")
