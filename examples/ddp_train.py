"""Train on two ranks, one of which leaks; each rank writes a recording that is read afterwards.

torchrun --nproc-per-node 2 -m leakcheck run --record records examples/ddp_train.py
leakcheck report records
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(steps: int = 200) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        inputs, labels = torch.randn(32, 20), torch.randint(0, 3, (32,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 1:
            losses.append(loss)  # keeps the autograd graph of every step
    del model  # first: torch 2.13 may hang where the model is the last to hold the group
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
