"""A restored model is asked for 2,000 steps, with gradients on, before there is an optimizer."""

# kind = "graph"
# holder = "global `history`"
# per_step = 4

import torch

torch.manual_seed(0)
net = torch.nn.Linear(8, 4)

history = []


def evaluate(episodes):
    total = 0.0
    for _ in range(episodes):
        step, state = 0, torch.randn(1, 8)
        while step < 200:
            action = net(state).data.numpy().flatten()
            total += float(action[0])
            state = torch.randn(1, 8)
            step += 1
    return total / episodes


def main():
    print(evaluate(10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(300):
        loss = net(torch.randn(32, 8)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss)  # leak
    print("done")


main()
