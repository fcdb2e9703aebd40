"""Near misses are unmarked."""

import torch


class Attention:
    def __init__(self):
        self.past = {}
        self.keys = None
        self.window = None
        self.reset_each = None

    def step(self, layer, key, value):
        if layer in self.past:
            old_key, old_value = self.past[layer]
            key = torch.cat((old_key, key), dim=1)
            value = torch.cat((old_value, value), dim=1)
        self.past[layer] = (key, value)  # leak: untrimmed-cat-cache

    def add(self, key):
        if self.keys is None:
            self.keys = key
        else:
            self.keys = torch.cat([self.keys, key])  # leak: untrimmed-cat-cache

    def slide(self, key):
        joined = torch.cat([self.window, key])
        self.window = joined[-16:]

    def until_reset(self, key):
        self.reset_each = torch.cat([self.reset_each, key])

    def reset(self):
        self.reset_each = torch.zeros(0)

    def join(self, left, right):
        self.both = torch.cat([left, right])


class KeyCache:
    def __init__(self):
        self.keys_of_one_sequence = torch.zeros(0)

    def update(self, key):
        self.keys_of_one_sequence = torch.cat([self.keys_of_one_sequence, key])


class JoinedBehindTheStore:
    def __init__(self, background):
        self.by_name = {}
        self.background = background

    def encode(self, name, encoder):
        if name not in self.by_name:
            rows = encoder(name)
            self.by_name[name] = rows
        else:
            rows = self.by_name[name]
        rows = torch.cat([rows, self.background])
        return rows


class Doubled:
    def __init__(self):
        self.rows_with_room = torch.zeros(8)

    def make_room(self):
        self.rows_with_room = torch.cat(
            [self.rows_with_room, torch.zeros_like(self.rows_with_room)]
        )


class Sparse:
    def add(self, other):
        self.values = torch.cat([self.values, other.values])  # the sum of two

    def extend(self, other):
        self.values = torch.cat([self.values, other.rest])  # leak: untrimmed-cat-cache


class Search:
    """Made for each batch."""

    def advance(self, tokens):
        self.tokens = torch.cat([self.tokens, tokens], dim=1)


class BeamSearch(Search):
    pass


class Decoder:
    def __init__(self):
        self.memory = Memory()

    def decode(self, batch):
        searches = [BeamSearch(row) for row in batch]
        return [search.advance(self.memory.read()) for search in searches]


class Memory:
    def write(self, tokens):
        self.tokens = torch.cat([self.tokens, tokens], dim=1)  # leak: untrimmed-cat-cache
