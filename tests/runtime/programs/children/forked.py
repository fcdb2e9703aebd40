"""Two processes that the program forks itself, each with a training of its own."""

import os
import sys

import torch
from torch import nn

losses = []


def train(number, leaks):
    torch.set_num_threads(1)
    torch.manual_seed(number)
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(150):
        loss = model(torch.randn(8, 20)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss if leaks else loss.item())


def main(leaves, leaks):
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            train(number, leaks)
            if leaves:
                sys.exit(number)
            os._exit(number)
        children.append(child)
    print("trained", [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children])


if __name__ == "__main__":
    main("exit" in sys.argv, "leaks" in sys.argv)
