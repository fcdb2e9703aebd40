import torch
from torch import nn

features = []


def keep_for_a_loss(module, inputs, output):
    features.append(output)


def keep_detached(module, inputs, output):
    features.append(output.detach().clone())


def keep_copy(module, inputs, output):
    features.append(output.clone())  # leak: hook-keeps-graph


def not_a_hook(module, inputs, output):
    features.append(output.clone())


layer = nn.Linear(2, 2)
layer.register_forward_hook(keep_for_a_loss)
layer.register_forward_hook(keep_detached)
layer.register_forward_hook(keep_copy)
