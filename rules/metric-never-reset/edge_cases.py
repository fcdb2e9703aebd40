"""Metrics that keep what they are given, and those that do not, or whose owner forgets it."""

import torch
import torchmetrics
from torch import nn
from torchmetrics.classification import BinaryAUROC
from torchmetrics.retrieval import RetrievalMAP
from torchmetrics.text import ROUGEScore


class Summarizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rouge = ROUGEScore()
        self.auroc = BinaryAUROC()
        self.binned = BinaryAUROC(thresholds=100)  # counts in bins of a fixed number
        self.accuracy = torchmetrics.Accuracy(task="binary")  # sums
        self.curve = torchmetrics.PrecisionRecallCurve(task="binary", thresholds=None)

    def validation_step(self, texts, targets):
        self.auroc.update(texts, targets)  # leak: metric-never-reset
        self.binned.update(texts, targets)
        self.accuracy.update(texts, targets)
        self.curve(texts, targets)  # leak: metric-never-reset
        return self.rouge(texts, targets)  # leak: metric-never-reset

    def epoch_end(self):
        return self.auroc.compute(), self.binned.compute()


class Logged(nn.Module):
    def __init__(self):
        super().__init__()
        self.ranking = RetrievalMAP()

    def validation_step(self, scores, targets, indexes):
        self.ranking(scores, targets, indexes)
        self.log("map", self.ranking)  # Lightning resets what it is handed


class Renewed:
    def __init__(self):
        self.correlation = torchmetrics.SpearmanCorrCoef()

    def epoch(self, loader, model):
        self.correlation = torchmetrics.SpearmanCorrCoef()
        for x, y in loader:
            self.correlation.update(model(x), y)
        return self.correlation.compute()


class ResetByName:
    def __init__(self):
        self.coefficient = torchmetrics.KendallRankCorrCoef()

    def epoch(self, loader, model):
        for x, y in loader:
            self.coefficient.update(model(x), y)
        value = self.coefficient.compute()
        self.coefficient.reset()
        return value


class Collected(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = RetrievalMAP()
        self.everything = torchmetrics.MetricCollection([self.map])

    def step(self, x, y, indexes):
        return self.map(x, y, indexes)

    def forget(self):
        self.everything.reset()


class Functional(nn.Module):
    def step(self, x, y):
        return torchmetrics.functional.spearman_corrcoef(x, y)


class OfOneCall(nn.Module):
    def step(self, x, y):
        correlation = torchmetrics.SpearmanCorrCoef()
        return correlation(x, y)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.likeness = nn.CosineSimilarity()  # no metric

    def forward(self, x):
        return self.likeness(x, torch.ones_like(x))


def train(model, loader, optimizer, epochs):
    seen = 0
    ranks = torchmetrics.KendallRankCorrCoef()
    for epoch in range(epochs):
        for x, y in loader:
            output = model(x)
            optimizer.zero_grad()
            (output - y).square().mean().backward()
            optimizer.step()
            ranks.update(output.detach(), y)  # leak: metric-never-reset
            seen += len(x)
        print(epoch, ranks.compute())


def train_and_reset(model, loader, optimizer, epochs):
    ranks_of_epoch = torchmetrics.KendallRankCorrCoef()
    for epoch in range(epochs):
        for x, y in loader:
            output = model(x)
            optimizer.zero_grad()
            (output - y).square().mean().backward()
            optimizer.step()
            ranks_of_epoch.update(output.detach(), y)
        print(epoch, ranks_of_epoch.compute())
        ranks_of_epoch.reset()


def train_and_hand_on(model, loader, epochs, finish):
    handed_on = torchmetrics.KendallRankCorrCoef()
    for epoch in range(epochs):
        for x, y in loader:
            output = model(x)
            (output - y).square().mean().backward()
            handed_on.update(output.detach(), y)
        finish(handed_on)


def train_once(model, loader):
    of_one_loop = torchmetrics.KendallRankCorrCoef()
    for x, y in loader:
        output = model(x)
        (output - y).square().mean().backward()
        of_one_loop.update(output.detach(), y)
    return of_one_loop.compute()


def evaluate(model, loaders):
    of_all = torchmetrics.KendallRankCorrCoef()
    for loader in loaders:
        for x, y in loader:
            of_all.update(model(x), y)
    return of_all.compute()
