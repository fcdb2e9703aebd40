"""Environments are stepped in threads between barriers; what each episode did is kept."""

import random
import threading

import torch
from torch import nn

STEPS, COUNT = 300, 3


class Cart:
    """Moves to the left or right; an episode ends at the edge."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.place, self.speed, self.age = 0.0, self.rng.uniform(-0.1, 0.1), 0
        return self.state()

    def state(self):
        return tuple(f(self.place) for f in (float, abs)) + (self.speed, float(self.age % 3))

    def step(self, action):
        self.speed += (action - 0.5) * 0.2 + self.rng.uniform(-0.05, 0.05)
        self.place += self.speed
        self.age += 1
        done = abs(self.place) > 1.0
        return (self.reset() if done else self.state()), 1.0 - abs(self.place), done


class Vector:
    """Steps some environments, each in a thread of its own."""

    def __init__(self):
        self.envs = [Cart(seed) for seed in range(COUNT)]
        self.states = [env.reset() for env in self.envs]
        self.actions, self.results = [0] * COUNT, [None] * COUNT
        self.failed, self.open = [], True
        self.begin, self.end = threading.Barrier(COUNT + 1), threading.Barrier(COUNT + 1)
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(COUNT)]
        for thread in self.threads:
            thread.start()

    def work(self, number):
        while True:
            self.begin.wait()
            if not self.open:
                return
            try:
                self.results[number] = self.envs[number].step(self.actions[number])
            except BaseException as error:
                self.failed.append(repr(error))
            self.end.wait()

    def step(self, actions):
        self.actions = actions
        self.begin.wait()
        self.end.wait()
        return tuple(zip(*self.results, strict=True))

    def close(self):
        self.open = False
        self.begin.wait()
        for thread in self.threads:
            thread.join()


torch.manual_seed(0)
policy = nn.Linear(4, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
vector = Vector()
states, kept, episodes = tuple(vector.states), [], 0
for _ in range(STEPS):
    chances = policy(torch.tensor(states)).log_softmax(-1)
    actions = chances.argmax(-1).tolist()
    states, rewards, done = vector.step(actions)
    loss = -(chances.max(-1).values * torch.tensor(rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append({"states": states, "rewards": rewards, "loss": loss.detach()})
    episodes += sum(done)
vector.close()
total = sum(sum(each["rewards"]) for each in kept)
print("episodes", episodes, f"rewards {total:.4f}", "failed", vector.failed)
