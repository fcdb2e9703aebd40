"""Two threads train beside each other on weights that they exchange; each keeps its losses."""

import threading

import torch
from torch import nn

STEPS = 200
failed = []
meeting = threading.Barrier(2)


def train(number, models, kept):
    torch_rng = torch.Generator().manual_seed(number)
    model = models[number]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    try:
        for step in range(STEPS):
            loss = model(torch.randn(8, 10, generator=torch_rng)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(loss)
            if step % 20 == 19:
                meeting.wait()
                other = [each.detach().clone() for each in models[1 - number].parameters()]
                meeting.wait()
                with torch.no_grad():
                    for mine, theirs in zip(model.parameters(), other, strict=True):
                        mine.lerp_(theirs, 0.5)
    except BaseException as error:
        failed.append(repr(error))
        meeting.abort()


torch.manual_seed(0)
models = [nn.Linear(10, 2), nn.Linear(10, 2)]
losses = [[], []]
threads = [threading.Thread(target=train, args=(n, models, losses[n])) for n in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("steps", [len(each) for each in losses], "failed", failed)
print([f"{each[-1].item():.6g}" for each in losses])
