"""Near misses are unmarked."""

from torch import nn
from torch.nn.modules.module import register_module_forward_hook


class Wrapper(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        backbone.register_forward_hook(self.count)  # a module owns what it wraps

    def count(self, module, inputs, output):
        self.seen = output.shape[0]

    def forward(self, x):
        self.backbone.register_forward_hook(self.count)  # leak: dropped-hook-handle
        if not hasattr(self, "ready"):
            self.backbone.register_forward_hook(self.count)  # once
            self.ready = True
        return self.backbone(x)


class Probe:
    def __init__(self, model):
        self.model = model
        self.own = nn.Linear(2, 2)
        self.own.register_forward_hook(self.count)  # its own layer
        self.handles = [model.register_forward_hook(self.count)]
        for layer in model.modules():
            layer.register_forward_hook(self.count)  # leak: dropped-hook-handle

    def attach(self):
        for _, layer in self.model.named_modules():
            layer.register_forward_pre_hook(lambda m, i: None)  # leak: dropped-hook-handle

    def keep(self):
        self.unused = self.model.register_forward_hook(self.count)  # leak: dropped-hook-handle

    def count(self, module, inputs, output):
        pass

    def close(self):
        for handle in self.handles:
            handle.remove()


def freeze_statistics(model):
    model.register_forward_pre_hook(lambda m, i: m.eval())  # set-up, meant to stay


def features(model, batch):
    seen = []
    model[0].register_forward_hook(lambda m, i, o: seen.append(o))  # leak: dropped-hook-handle
    model(batch)
    return seen


def saved_tensors():
    def unpack(tensor):
        seen = []

        def note(module, inputs, outputs):
            seen.append(tensor)

        register_module_forward_hook(note)  # leak: dropped-hook-handle
        return seen

    def unpack_and_remove(tensor):
        seen = []

        def note(module, inputs, outputs):
            seen.append(tensor)

        handle = register_module_forward_hook(note)
        handle.remove()
        return seen

    return unpack, unpack_and_remove


def set_up(ledger):
    def note(module, inputs, outputs):
        ledger.append(module)

    register_module_forward_hook(note)  # may run once


def count(module, inputs, outputs):
    pass


def watch_everything():
    register_module_forward_hook(count)  # one function, and it holds nothing


class Adapted:
    def __init__(self, model):
        self.model = model

    def enable_input_require_grads(self):
        def require(module, inputs, output):
            output.requires_grad_(True)

        embeddings = self.model.get_input_embeddings()
        self._require_grads_hook = embeddings.register_forward_hook(require)  # its base removes it

    def train_step(self, batch):
        def require(module, inputs, output):
            output.requires_grad_(True)

        embeddings = self.model.get_input_embeddings()
        self._other_hook = embeddings.register_forward_hook(require)  # leak: dropped-hook-handle
