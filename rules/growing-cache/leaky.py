"""Every text ever seen stays in a module-level dict, with its features."""

import torch

STEPS = 400
_FEATURES = {}


def featurize(text):
    if text not in _FEATURES:
        _FEATURES[text] = torch.full((2048,), float(len(text)))  # leak: growing-cache
    return _FEATURES[text]


def main():
    total = 0.0
    for step in range(STEPS):
        total += float(featurize(f"sample {step}")[0])
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
