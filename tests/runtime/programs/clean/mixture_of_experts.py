"""Experts that get another number of rows each: oneDNN keeps something for each number it met."""

import torch
from torch import nn

torch.manual_seed(0)


class Mixture(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(experts)
        )

    def forward(self, rows):
        weights, chosen = torch.softmax(self.gate(rows), -1).topk(2, -1)
        out = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            at, place = torch.where(chosen == number)
            if len(at):
                out = out.index_add(0, at, expert(rows[at]) * weights[at, place, None])
        return out


def main():
    embedding, head = nn.Embedding(40, 32), nn.Linear(32, 40)
    layers = nn.ModuleList(Mixture(32, 4) for _ in range(2))
    model = nn.ModuleList([embedding, head, layers])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(2000):
        tokens = torch.randint(0, 40, (64,))
        rows = embedding(tokens)
        for layer in layers:
            rows = rows + layer(rows)
        loss = nn.functional.cross_entropy(head(rows), tokens.roll(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(step, loss.item())


main()
