"""pyplot keeps every figure it makes until that figure is closed."""

import os
import tempfile

import torch

try:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
except ImportError:
    plt = None

STEPS = 300


def save_curve(values, path):
    fig = plt.figure(figsize=(1, 1))  # leak: unclosed-figure
    fig.text(0.1, 0.5, f"{values[-1]:.2f}")
    fig.savefig(path, dpi=10)


def main():
    values = torch.linspace(0, 1, 16).tolist()
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            save_curve(values, os.path.join(folder, "curve.png"))
    print(f"open figures {len(plt.get_fignums())}")


if __name__ == "__main__":
    if plt is None:
        print("this program needs matplotlib")
        raise SystemExit
    main()
