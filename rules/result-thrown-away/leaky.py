"""The detached copy is dropped, and the graph is kept."""

import torch

STEPS = 100


def main():
    weight, kept = torch.randn(64, 64, requires_grad=True), []
    for step in range(STEPS):
        hidden = torch.randn(8, 64) @ weight
        hidden.detach()  # leak: result-thrown-away
        kept.append(hidden)
    print(f"{len(kept)} kept")


if __name__ == "__main__":
    main()
