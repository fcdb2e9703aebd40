from functools import reduce

import torch
from lightning.pytorch import LightningModule
from torch import nn

model = nn.Linear(4, 1)
criterion = nn.MSELoss()


def stacked_then_backward(tasks):
    for batch in tasks:
        losses = []
        for x, y in batch:
            losses.append(criterion(model(x), y))
        torch.stack(losses).mean().backward()


def emptied(loader):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        losses.append(loss)
        sum(losses).backward()
        losses.clear()


def as_numbers(loader):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        losses.append(float(loss))
    return losses


def cloned(loader):
    history = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        history.append(loss.clone())  # leak: undetached-collection
    return history


def as_list(loader):
    history = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        history += [loss]  # leak: undetached-collection
    return history


def by_step(loader):
    history = {}
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        history[step] = loss  # leak: undetached-collection
    return history


def in_a_record(loader):
    records = []
    for x, y in loader:
        output = model(x)
        loss = criterion(output, y)
        loss.backward()
        records.append({"size": len(x), "loss": loss})  # leak: undetached-collection
    return records


def overwritten(loader):
    latest = {}
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        latest["loss"] = loss
    return latest


def differentiated_in_the_list(loader):
    losses = []
    for x, y in loader:
        losses.append(criterion(model(x), y))  # leak: undetached-collection
        losses[-1].backward()
    return losses


def reduced_then_differentiated(loader):
    losses = []
    for x, y in loader:
        losses.append(criterion(model(x), y))
    reduce(lambda left, right: left + right, losses).backward()
    return losses


def last_of_them_differentiated(loader):
    losses = []
    for x, y in loader:
        losses.append(criterion(model(x), y))
    losses[-1].backward()


def under_a_counter(batch, steps):
    losses, step = [None] * steps, 0
    while step < steps:
        losses[step] = criterion(model(batch), batch)  # leak: undetached-collection
        losses[step].backward()
        step += 1
    return losses


def under_a_constant(batch, steps):
    losses, step = [None] * steps, 0
    while step < steps:
        losses[0] = criterion(model(batch), batch)
        losses[0].backward()
        step += 1
    return losses


class Saliency:
    def __init__(self, model):
        self.model = model
        self.maps = []

    def attribute(self, images):
        images = images.clone().detach().requires_grad_()
        self.model(images).sum().backward()
        self.maps.append({"image": images, "saliency": images.grad.abs()})


class Validates(LightningModule):
    def process(self, batch):
        return {"loss": torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])}

    def training_step(self, batch, index):
        return self.process(batch)["loss"]

    def validation_step(self, batch, index, loader=0):
        out = self.process(batch)  # Lightning has gradients off here
        self.outputs_of[loader].append(out)
        return out

    def test_step(self, batch, index):
        return self.look_at(batch)

    def look_at(self, batch):
        out = {"score": self.net(batch[0]).sigmoid()}
        self.outputs.append(out)
        return out


class Bag:
    def __init__(self):
        self.data = []


def in_a_bag(loader):
    bag = Bag()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        bag.data.append(loss)  # leak: undetached-collection
    print(len(bag.data))


def into_the_bare_data(loader, best):
    for x, y in loader:
        out = model(x)
        criterion(out, y).backward()
        best.data[0][1] += out[0] - best.data[0][1]
    print(best)


class Agent:
    def __init__(self, env, learner):
        self.env = env
        self.learner = learner
        self.policy = torch.nn.Linear(8, 2)
        self.seen = []
        self.parts = []

    def act(self, steps, optimizer):
        rewards = []
        for _ in range(steps):
            action = self.policy(self.env.observe())
            observation, reward, done, info = self.env.step(action)  # a world, and no layer
            self.seen.append((observation, info["price"]))
            rewards.append(reward)
            loss = self.learner.make_loss(action, reward)
            self.parts.append(loss)  # leak: undetached-collection
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return rewards
