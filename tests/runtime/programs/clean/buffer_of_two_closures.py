"""Two functions share a list: one adds to it, the other writes it out and empties it."""

import torch

torch.manual_seed(0)


def make_log(every, out):
    rows = []
    count = 0

    def log(loss):
        nonlocal count
        count += 1
        rows.append({"step": count, "loss": loss})
        if count % every == 0:
            flush()

    def flush():
        out.append(sum(float(row["loss"]) for row in rows) / len(rows))
        rows.clear()

    return log


def main():
    model = torch.nn.Linear(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    means: list[float] = []
    log = make_log(150, means)
    for _ in range(1200):
        loss = model(torch.randn(32, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.detach())
    print(len(means))


main()
