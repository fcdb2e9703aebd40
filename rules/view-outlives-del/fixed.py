"""The last part goes with the buffer."""

import gc

import torch


def receive(weights):
    buffer = torch.zeros(1024, 1024)
    for row in range(0, 1024, 256):
        part = buffer[row : row + 256].view(-1)
        weights.append(part.sum())
    del buffer, part
    gc.collect()
    return sum(weight.numel() for weight in weights)


def main():
    print(receive([]))


if __name__ == "__main__":
    main()
