"""Near misses are unmarked: epochs and steps that another function, or the model itself, has."""

import torch


class StepsOfTheModel:
    def val(self, loader):
        self.model.eval()
        self.outputs = self.model.val_step(next(loader))  # leak: evaluation-without-no-grad

    def val_off(self, loader):
        self.model.eval()
        with torch.no_grad():
            self.outputs = self.model.val_step(next(loader))

    def train(self, loader):
        self.model.train()
        self.outputs = self.model.train_step(next(loader))


class EpochsOfBothKinds:
    def test(self, loader, model):
        model.eval()
        return self.epoch_of(False, loader, model)  # leak: evaluation-without-no-grad

    def fit(self, loader, model, learn):
        model.train()
        return self.epoch_of(True, loader, model, learn)

    def epoch_of(self, learns, loader, model, learn=None):
        losses = []
        for x, y in loader:
            loss = criterion(model(x), y)
            if learns:
                learn(loss)
            losses.append(loss.item())
        return losses


class EpochsThatChoose:
    def test(self, loader, model):
        model.eval()
        return self.chosen_epoch(False, loader, model)

    def chosen_epoch(self, learns, loader, model, learn=None):
        losses = []
        with torch.set_grad_enabled(learns):
            for x, y in loader:
                loss = criterion(model(x), y)
                if learns:
                    learn(loss)
                losses.append(loss.item())
        return losses


class Serializable:
    def attributes(self, kind):
        return getattr(self, f"_{kind}", [])  # an attribute: by its default it is no method


class Restored(Serializable):
    def test_epoch(self, xs, ys):
        self.model.eval()
        scores = []
        for x, y in zip(xs, ys):
            scores.append(self.loss(self.model(x), y).item())  # leak: evaluation-without-no-grad
        return scores
