"""Models that stand in a dict, and evaluations that ask the step of training for one batch."""

import torch


class OfSeveralModels:
    def __init__(self, models, loader):
        self.models = models
        self.loader = loader
        self.sums = {}

    def _eval_step(self, batch):
        made = self.models["generator"](batch)
        self.sums["error"] = self.sums.get("error", 0.0) + torch.abs(made - batch).mean().item()

    def evaluate(self):
        for name in self.models:
            self.models[name].eval()
        for batch in self.loader:
            self._eval_step(batch)  # leak: evaluation-without-no-grad


class OfSeveralTables:
    def __init__(self, tables, loader):
        self.tables = tables
        self.loader = loader

    def evaluate(self):
        for batch in self.loader:
            print(self.tables["scores"](batch).item())


def stepped(model, batch, criterion):
    output = model(batch)
    return output, criterion(output, batch)


def validation_of_one(model, batch, criterion, log):
    output, loss = stepped(model, batch, criterion)  # leak: evaluation-without-no-grad
    log.write("{:.3f} {:.3f}".format(output.argmax(), loss))


def validation_for_more(model, batch, criterion):
    output, loss = stepped(model, batch, criterion)
    return loss


def fit(model, batches, criterion, log, optimizer):
    for batch in batches:
        optimizer.zero_grad()
        stepped(model, batch, criterion)[1].backward()
        optimizer.step()
        validation_of_one(model, batch, criterion, log)
        validation_for_more(model, batch, criterion).backward()
