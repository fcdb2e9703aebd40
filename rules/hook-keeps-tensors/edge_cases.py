"""Near misses are unmarked."""

import torch

KEPT = []


def keep(module, inputs, output):
    KEPT.append(output.detach())  # leak: hook-keeps-tensors


def shapes(module, inputs, output):
    SHAPES.append(output.shape)  # no tensor


SHAPES = []


class Recorder:
    def __init__(self, model):
        self.features, self.norms, self.cleared = [], [], []
        self.handles = [
            model.register_forward_hook(keep),
            model.register_forward_hook(shapes),
            model.register_forward_hook(self.hook),
            model.register_forward_hook(lambda m, i, o: setattr(m, "size", o.size(0))),
        ]
        self.features = []
        self.norms = []
        self.cleared = []

    def hook(self, module, inputs, output):
        first = inputs[0]
        self.features.append(first)  # leak: hook-keeps-tensors
        self.norms.append(output.norm().item())
        self.cleared.append(output)

    def reset(self):
        self.cleared.clear()


def save_input(module, inputs):
    module.saved = inputs[0].clone()  # leak: hook-keeps-tensors
    module.tidy = inputs[0].clone()


def attach(module):
    module.handle = module.register_forward_pre_hook(save_input)


def detach(module):
    module.handle.remove()
    del module.tidy


class Renewed:
    def __init__(self, layer):
        self._seen = []
        self._kept = []
        layer.register_forward_hook(self.record)

    @property
    def seen(self):
        return self._seen

    @property
    def kept(self):
        return self._kept

    def record(self, layer, inputs, outputs):
        self.seen.append(outputs)
        self.kept.append(outputs)  # leak: hook-keeps-tensors

    def __enter__(self):
        self._seen = []


class Shapes:
    def __init__(self, layer):
        self.shapes = []
        self.inputs = []
        layer.register_forward_hook(self.record)

    def record(self, layer, inputs, outputs):
        self.shapes.append(tuple(outputs[0].shape))
        self.inputs.append(tuple(inputs))  # leak: hook-keeps-tensors
