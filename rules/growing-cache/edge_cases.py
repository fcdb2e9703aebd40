"""Near misses are unmarked."""

import re

import torch

_TABLES = {}
_FEATURES = {}
_MASKS = {}
_WORDS = {}
_CLEARED = {}
_LIMITED = {}


def table(device):
    if device not in _TABLES:
        _TABLES[device] = torch.ones(4, device=device)  # one for each device
    return _TABLES[device]


def features(batch, compute):
    for text in batch:
        if text not in _FEATURES:
            _FEATURES[text] = compute(text)  # leak: growing-cache
    return [_FEATURES[text] for text in batch]


def mask(x: torch.Tensor):
    found = _MASKS.get(id(x))
    if found is None:
        found = x > 0
        _MASKS[id(x)] = found  # leak: growing-cache
    return found


def number(words):
    for word in words:
        if word not in _WORDS:
            _WORDS[word] = len(_WORDS) + 1  # a vocabulary


def cleared(text, compute):
    if text not in _CLEARED:
        _CLEARED[text] = compute(text)
    return _CLEARED[text]


def limited(text, compute):
    if text not in _LIMITED and len(_LIMITED) < 1000:
        _LIMITED[text] = compute(text)
    return _LIMITED.get(text)


USE_CACHE = True
_ALWAYS = {}


def always(text, compute):
    if not USE_CACHE:
        return compute(text)
    if text not in _ALWAYS:
        _ALWAYS[text] = compute(text)  # leak: growing-cache
    return _ALWAYS[text]


def end_of_epoch():
    _CLEARED.clear()


class Encoder:
    def __init__(self):
        self.cache = {}
        self.by_layer = {}
        self.remarks = {}
        self.kept = {}
        self.asked_for = {}
        self.use_cache = False

    def encode(self, sentence, compute):
        if sentence in self.cache:
            return self.cache[sentence]
        self.cache[sentence] = compute(sentence)  # leak: growing-cache
        return self.cache[sentence]

    def layer(self, layer_idx, make):
        if layer_idx not in self.by_layer:
            self.by_layer[layer_idx] = make()
        return self.by_layer[layer_idx]

    def count(self, remark):
        self.remarks[remark] = self.remarks.get(remark, 0) + 1  # a tally, not a cache

    def embed(self, sentence, compute):
        self.kept[sentence] = self.kept.get(sentence) or compute(sentence)  # leak: growing-cache
        return self.kept[sentence]

    def switched(self, sentence, compute):
        if not self.use_cache:
            return compute(sentence)
        if sentence not in self.asked_for:
            self.asked_for[sentence] = compute(sentence)  # whoever switched it on wants it
        return self.asked_for[sentence]


class Tree:
    def __init__(self):
        self.priors = {}

    def search(self, board, judge):
        if board not in self.priors:
            self.priors[board] = judge(board)  # each game has a tree of its own
        return self.priors[board]


def play(games, judge):
    for game in games:
        tree = Tree()
        tree.search(game.board(), judge)


class Opening:
    def __init__(self):
        self.priors = {}

    def search(self, board, judge):
        if board not in self.priors:
            self.priors[board] = judge(board)  # leak: growing-cache
        return self.priors[board]


def play_all(games, judge):
    opening = Opening()
    for game in games:
        opening.search(game.board(), judge)


class Vocabulary:
    def __init__(self):
        self.special = {}
        self.known = {}

    def add_special(self, tokens, encode):
        for token in tokens:
            if token not in self.special:
                self.special[token] = encode(token)  # asked for by its name

    def look_up(self, tokens, encode):
        for token in tokens:
            if token not in self.known:
                self.known[token] = encode(token)  # leak: growing-cache


_SPEAKERS = {}


def speaker(language, make):
    if language not in _SPEAKERS:
        _SPEAKERS[language] = make(language)
    return _SPEAKERS[language]


_COMPILED = {}
_COMPILED_FOR_ALL = {}


def narrow(x):
    return x


def wide(x):
    return x


def compiled(layout):
    if layout not in _COMPILED:
        _COMPILED[layout] = torch.compile(layout)
    return _COMPILED[layout]


def compiled_for_all(layout):
    if layout not in _COMPILED_FOR_ALL:
        _COMPILED_FOR_ALL[layout] = torch.compile(layout)  # leak: growing-cache
    return _COMPILED_FOR_ALL[layout]


def run(x, given):
    return compiled(narrow)(x) + compiled(wide)(x) + compiled_for_all(given)(x)


class Rehearsal:
    def __init__(self):
        self.memory = {}
        self.rehearsed = {}

    def keep(self, picture, x):
        if picture not in self.memory:
            self.memory[picture] = x
        else:
            self.memory[picture] = torch.cat((self.memory[picture], x))
        return self.memory[picture]

    def look(self, picture, x):
        if picture not in self.rehearsed:
            self.rehearsed[picture] = torch.cat((picture.x, x))  # leak: growing-cache
        return self.rehearsed[picture]


_compiled = {}


def converted(key):
    def match(found, text):
        regex = _compiled.get(text)
        if regex is None:
            regex = re.compile(text)
            _compiled[text] = regex
        found.extend(int(x) if re.match("[0-9]+", x) else x for x in re.match(regex, key).groups())

    parts = []
    match(parts, r"conv_in(.*)")  # the few of the source; `re.match` is another
    match(parts, r"conv_out(.*)")
    return parts
