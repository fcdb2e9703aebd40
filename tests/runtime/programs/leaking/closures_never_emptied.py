"""Two functions share a list: one adds to it, the other only reads it, and empties another."""

# kind = "tensor"
# holder = "closure cell `rows` of log()"
# per_step = 1

import torch

torch.manual_seed(0)


def make_log(every, out):
    rows = []
    names = []

    def log(loss):
        rows.append({"step": len(rows), "loss": loss})  # leak
        names.append(f"loss {len(rows)}")
        if len(names) == every:
            flush()

    def flush():
        out.append(sum(float(row["loss"]) for row in rows[-every:]) / every)
        names.clear()

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
