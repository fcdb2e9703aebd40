import torch
from lightning.pytorch import Callback
from torch import nn
from torch.nn import functional as F

model = nn.Linear(4, 2)


@torch.no_grad()
def evaluate_decorated(loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += F.cross_entropy(model(x), y)
    return total


def validate_numbers(loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += F.cross_entropy(model(x), y).item()
    return total


def inner(loader):
    model.eval()
    outputs = []
    for x, _ in loader:
        outputs.append(model(x))
    return outputs


def outer(loader):
    with torch.inference_mode():
        return inner(loader)


def collect(test_loader):
    model.eval()
    outputs = []
    for x, _ in test_loader:
        outputs.append(model(x).cpu())  # leak: evaluation-with-graph
    return torch.cat(outputs)


def count_right(test_loader):
    model.eval()
    right = 0
    for x, y in test_loader:
        right += (model(x).argmax(1) == y).sum()
    return right


def predict_all(test_loader):
    model.eval()
    return [model(x) for x, _ in test_loader]  # leak: evaluation-with-graph


def predict_by_index(test_loader):
    model.eval()
    outputs = {}
    for i, (x, _) in enumerate(test_loader):
        outputs[i] = model(x)  # leak: evaluation-with-graph
    return outputs


def features_of_a_frozen_network(backbone, loader):
    backbone.eval()
    for parameter in backbone.parameters():
        parameter.requires_grad = False
    features = []
    for inputs, _ in loader:
        features.append(backbone(inputs))
    return torch.cat(features)


class Listening(Callback):
    def on_validation_epoch_end(self, trainer, model):
        outputs = []
        for batch in self.data_loader:
            outputs.append(model(batch))  # a trainer calls this with gradients off
        return torch.cat(outputs)


def spoken(sentence, words):
    said = {}
    for word in words:
        said[word] = sentence.split().count(word)
    return said["yes"], said["no"]


def scored(output, target):
    return output.sum(), (output - target).abs().sum()


def evaluate_words(model, loader):
    model.eval()
    counts = {"yes": 0.0, "no": 0.0}
    sums = {"all": 0.0, "off": 0.0}
    for x, y in loader:
        output = model(x)
        yes, no = spoken(output[0], y)
        counts["yes"] += yes
        counts["no"] += no
        everything, off = scored(output, y)
        sums["all"] += everything  # leak: evaluation-with-graph
        sums["off"] += off  # leak: evaluation-with-graph
    return counts, sums
