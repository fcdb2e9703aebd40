"""Copies of the rows are kept, in a tensor that is as large as they are together."""

import torch

STEPS = 400


def main():
    examples = torch.empty(STEPS, 64)
    with torch.no_grad():
        for step in range(STEPS):
            batch = torch.ones(64, 64)
            examples[step] = batch[0]
    print(f"kept {len(examples)} rows")


if __name__ == "__main__":
    main()
