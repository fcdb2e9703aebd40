"""One row of each batch is kept, and with it the whole batch."""

import torch

STEPS = 400


def main():
    examples = []
    with torch.no_grad():
        for step in range(STEPS):
            batch = torch.ones(64, 64)
            examples.append(batch[0])  # leak: view-keeps-base
    print(f"kept {len(examples)} rows")


if __name__ == "__main__":
    main()
