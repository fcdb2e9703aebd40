"""Hooks are removed after the work; when the work raises they stay on the model."""

import torch
from torch import nn

STEPS = 400


def hidden_norm(model, batch):
    seen = []
    room = torch.ones(2048)

    def save(module, inputs, output):
        seen.append(float(output.sum()) * float(room[0]))

    handle = model[0].register_forward_hook(save)  # leak: unguarded-hook-removal
    model(batch)
    handle.remove()
    return seen[-1]


def main():
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
    skipped = 0
    with torch.no_grad():
        for step in range(STEPS):
            width = 16 if step % 2 else 15  # every other batch is broken and skipped
            try:
                hidden_norm(model, torch.ones(4, width))
            except RuntimeError:
                skipped += 1
    print(f"skipped {skipped}, hooks on the model: {len(model[0]._forward_hooks)}")


if __name__ == "__main__":
    main()
