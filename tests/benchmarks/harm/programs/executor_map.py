"""A pool maps a function over a generator of work while a correct training runs."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
trained = threading.Event()
rounds, failed = [], []


def words(count):
    for number in range(count):
        yield f"word{number % 97}"


def tokens_of(text):
    return tuple(ord(letter) for letter in text if letter.isdigit() or letter > "d")


def tokenize():
    try:
        with ThreadPoolExecutor(2) as pool:
            while not trained.is_set() or len(rounds) < 5:
                rounds.append(sum(map(sum, pool.map(tokens_of, words(200)))))
    except BaseException as error:
        failed.append(repr(error))


tokenizer = threading.Thread(target=tokenize)
tokenizer.start()
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters())
total = 0.0
for _ in range(400):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
trained.set()
tokenizer.join()
print("sums", sorted(set(rounds)), "failed", failed, f"total {total:.5f}")
