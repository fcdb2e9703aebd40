"""Near misses are unmarked."""

from functools import partial

import torch


class Explainer:
    def run(self, batch):
        self.hidden = self.encode(batch)
        self.hidden.register_hook(lambda gradient: self.save(gradient))  # leak: tensor-hook-cycle
        self.hidden.register_hook(partial(self.save, scale=2))  # leak: tensor-hook-cycle
        self.hidden.register_hook(lambda gradient: gradient * 2)  # holds nothing
        output = self.decode(self.hidden)
        output.register_hook(self.save)  # a local tensor
        kept = self.decode(self.hidden)
        kept.register_hook(self.save)  # leak: tensor-hook-cycle
        self.kept = kept
        for parameter in self.parameters():
            parameter.register_hook(self.save)  # a leaf, whose hooks the collector sees
            parameter.register_post_accumulate_grad_hook(self.save)  # leak: tensor-hook-cycle

    def look(self, batch):
        weights = self.attend(batch)
        self.keep(weights)
        weights.register_hook(self.save)  # leak: tensor-hook-cycle
        seen = self.attend(batch)
        self.show(seen)
        seen.register_hook(self.save)  # `show` keeps nothing

    def keep(self, weights):
        self.weights = weights

    def show(self, weights):
        self.largest = weights.max().item()

    def static(self, batch):
        self.hidden.register_hook(self.double)

    @staticmethod
    def double(gradient):
        return gradient * 2

    def save(self, gradient, scale=1):
        self.gradient = gradient.detach()


def cached(function):
    return property(function)


class Strategy:
    @cached
    def mean(self):
        mean = self.solve()
        clear = partial(forget, self)
        mean.grad_fn.register_hook(clear)  # leak: tensor-hook-cycle
        return mean

    def computed(self):
        mean = self.solve()
        clear = partial(forget, self)
        mean.grad_fn.register_hook(clear)  # the caller's
        return mean

    @cached
    def scaled(self):
        mean = self.solve()
        scale = partial(forget, 2)
        mean.grad_fn.register_hook(scale)  # holds nothing
        return mean


def forget(owner, *gradients):
    owner.clear()


class Watcher:
    def __init__(self, layer, other, unwatched):
        self.outputs = []
        self.handles = [
            layer.register_forward_hook(self.keep_output),
            layer.register_forward_hook(self.keep_gradient),
            other.register_forward_hook(self.keep_detached),
            other.register_forward_hook(self.scale_gradient),
        ]

    def keep_output(self, module, inputs, output):
        kept = output
        self.outputs.append(kept)

    def keep_gradient(self, module, inputs, output):
        output.register_hook(lambda gradient: self.save(gradient))  # leak: tensor-hook-cycle

    def keep_detached(self, module, inputs, output):
        self.outputs.append(output.detach())

    def scale_gradient(self, module, inputs, output):
        output.register_hook(lambda gradient: self.save(gradient))  # nobody keeps this output

    def save(self, gradient):
        self.gradient = gradient


class Emptied:
    def __init__(self, layer):
        self.seen = []
        layer.register_forward_hook(self.keep_output)
        layer.register_forward_hook(self.keep_gradient)

    def keep_output(self, module, inputs, output):
        self.seen.append(output)

    def keep_gradient(self, module, inputs, output):
        output.register_hook(lambda gradient: self.save(gradient))

    def save(self, gradient):
        self.gradient = gradient

    def close(self):
        self.seen.clear()


class Attention:
    def __init__(self, save):
        self.save_maps = False
        self.show_maps = False
        self.keep_maps = save

    def forward(self, x, mask):
        maps = self.attend(x)
        if mask is not None and self.save_maps:  # nothing turns it on
            self.maps = maps
            maps.register_hook(self.save)
        if self.keep_maps:
            self.maps = maps
            maps.register_hook(self.save)  # leak: tensor-hook-cycle
        if self.show_maps:
            self.maps = maps
            maps.register_hook(self.save)  # leak: tensor-hook-cycle

    def save(self, gradient):
        self.gradient = gradient


def show(attention):
    attention.show_maps = True


class Optimizer:
    def __init__(self, parameters):
        self.nodes = []
        for parameter in parameters:  # once, for as long as there is an optimizer
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            node.register_hook(lambda *_: self.reduce(parameter))
            self.nodes.append(node)

    def rebuild(self, parameters):
        for parameter in parameters:
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            node.register_hook(lambda *_: self.reduce(parameter))  # leak: tensor-hook-cycle
            self.nodes.append(node)


class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(size))
        self.scale = torch.zeros(size, requires_grad=True) * 2
        self.reset_parameters()

    def reset_parameters(self):
        self.bias.register_hook(self.synchronize)  # a leaf, whose hooks the collector sees
        self.scale.register_hook(self.synchronize)  # leak: tensor-hook-cycle

    def synchronize(self, gradient):
        return gradient / self.world


class ToldToRequireGrad:
    def __init__(self, weight):
        self.weight = weight.detach().clone()
        self.weight.requires_grad_(True)
        self.weight.register_hook(self.save)  # a leaf, whose hooks the collector sees
        self.twice = weight * 2
        self.twice.register_hook(self.save)  # leak: tensor-hook-cycle

    def save(self, grad):
        self.grad = grad
