"""Near misses are unmarked."""

import torch


class Trainer:
    def __init__(self, model):
        self.model = model

    def validate(self, batches):
        self.model.eval()
        for batch in batches:
            print(self.model(batch))  # leak: evaluation-without-no-grad
        self.model.train()

    def validated_by_its_caller(self, batches):
        self.model.eval()
        for batch in batches:
            print(self.model(batch))

    def run(self, batches):
        with torch.no_grad():
            self.validated_by_its_caller(batches)


def predict(model, batches):
    return [model(batch) for batch in batches]  # leak: evaluation-without-no-grad


def generate(self, hidden):
    for _ in range(9):
        hidden = self.forward(hidden)  # leak: evaluation-without-no-grad
    return hidden


def evaluate_detached(model, batches):
    hidden = None
    for batch in batches:
        hidden = model(batch, hidden).detach()


def train_epoch(model, batches):
    return [model(batch) for batch in batches]


@torch.inference_mode()
def transcribe(model, batches):
    return [model(batch) for batch in batches]


def inside(model, batches):
    model.eval()
    for batch in batches:
        with torch.inference_mode():
            print(model(batch))


@torch.no_grad()
def decorated(model, batches):
    model.eval()
    for batch in batches:
        print(model(batch))


def explains(model, batches):
    model.eval()
    for batch in batches:
        batch.requires_grad_()
        model(batch).sum().backward()


def frozen(model, batches):
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
    for batch in batches:
        print(model(batch))


def once(model, batch):
    model.eval()
    return model(batch)


def generate_and_guide(model, x, steps):
    for step in steps:
        x = model(x, step)  # leak: evaluation-without-no-grad
    for _ in steps:
        x.requires_grad_()
        torch.autograd.grad(model(x).sum(), x)
    return x


class Recommender(torch.nn.Module):
    def predict(self, batch):
        return self.layer(batch)

    @torch.no_grad()
    def predict_fast(self, batch):
        return self.layer(batch)


def evaluate_recommender(model, batches):
    return [model.predict(batch) for batch in batches]  # leak: evaluation-without-no-grad


def evaluate_fast(model, batches):
    return [model.predict_fast(batch) for batch in batches]


def evaluate_somebody_elses(model, batches):
    return [model.predict_proba(batch) for batch in batches]
