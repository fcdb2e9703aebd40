"""A replay memory in columns, the length of one of them asked; and a rollout that is made anew."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


class Columns:
    def __init__(self, capacity):
        self.capacity, self.at = capacity, 0
        self.states, self.rewards = [], []

    def add(self, state, reward):
        if len(self.states) < self.capacity:
            self.states.append(state)
            self.rewards.append(reward)
        else:
            self.states[self.at], self.rewards[self.at] = state, reward
        self.at = (self.at + 1) % self.capacity


class Rollout:
    def __init__(self):
        self.values, self.done = [], []


def main():
    value = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(value.parameters(), lr=1e-3)
    memory, rollout = Columns(700), Rollout()
    for step in range(2400):
        state = torch.randn(5)
        memory.add(state, state.sum())
        rollout.values.append(value(state).detach())
        rollout.done.append(step % 50 == 49)
        if len(rollout.done) == 256:
            print(step, torch.cat(rollout.values).mean().item())
            rollout = Rollout()
        at = random.choices(range(len(memory.states)), k=16)
        states = torch.stack([memory.states[i] for i in at])
        rewards = torch.stack([memory.rewards[i] for i in at])
        loss = (value(states)[:, 0] - rewards).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
