"""A sum of sparse tensors, each of which brings its own entries."""

# kind = "tensor"
# holder = "Counts.seen"
# per_step = 3072
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)
WORDS = 500


class Counts:
    def __init__(self):
        self.seen = torch.sparse_coo_tensor(
            torch.zeros(1, 0, dtype=torch.long), torch.zeros(0), (WORDS,), check_invariants=False
        )

    def add(self, words):
        at = words.reshape(1, -1)
        new = torch.sparse_coo_tensor(at, torch.ones(at.size(1)), (WORDS,), check_invariants=False)
        self.seen = self.seen + new  # leak


def main():
    embedding, head = nn.Embedding(WORDS, 16), nn.Linear(16, WORDS)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.01)
    counts = Counts()
    for _ in range(600):
        words = torch.randint(0, WORDS, (256,))
        counts.add(words)
        loss = nn.functional.cross_entropy(head(embedding(words)), words.roll(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(counts.seen._nnz())


main()
