"""The last part keeps the buffer over its deletion."""

import gc

import torch


def receive(weights):
    buffer = torch.zeros(1024, 1024)
    for row in range(0, 1024, 256):
        part = buffer[row : row + 256].view(-1)  # leak: view-outlives-del
        weights.append(part.sum())
    del buffer
    gc.collect()
    return sum(weight.numel() for weight in weights)


def main():
    print(receive([]))


if __name__ == "__main__":
    main()
