"""Lists of an epoch, in locals of a function, after a flat loop with the same optimizer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def main():
    encoder, decoder = nn.Linear(20, 6), nn.Linear(6, 20)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    rows = torch.rand(6400, 20)

    def step(batch):
        code = encoder(batch)
        loss = nn.functional.mse_loss(decoder(code), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return code.detach(), loss.detach()

    for at in range(100):
        step(rows[at * 16 : at * 16 + 16])
    last = None
    for epoch in range(5):
        codes, losses = [], []
        for (batch,) in DataLoader(TensorDataset(rows), batch_size=16, shuffle=True):
            code, loss = step(batch)
            codes.append(code)
            losses.append(loss)
        drift = 0.0 if last is None else (torch.cat(codes).std() - torch.cat(last).std()).item()
        print(epoch, torch.stack(losses).mean().item(), drift)
        last = codes  # until the next epoch has gathered as many


main()
