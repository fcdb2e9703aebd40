"""What threads keep in thread-local data is finalized when they end; losses are kept."""

import threading
import weakref

import torch
from torch import nn

opened, closed, finalized, failed, wrong = [], [], [], [], []
lock = threading.Lock()
store = threading.local()


class Connection:
    """Counts the threads in which it was opened and closed."""

    def __init__(self, number):
        self.number, self.rows = number, [(number, n) for n in range(20)]
        weakref.finalize(self, finalized.append, number)
        with lock:
            opened.append(number)

    def __del__(self):
        with lock:
            closed.append(self.number)
        if len(self.rows) != 20:
            wrong.append(self.number)


def work(number):
    try:
        store.connection = Connection(number)
        store.names = {n: str(n) for n in range(30)}
        if sum(n for _, n in store.connection.rows) != 190 or store.names[7] != "7":
            wrong.append(number)
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(300):
    threads = [threading.Thread(target=work, args=(2 * step + n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    for thread in threads:
        thread.join()
everyone = list(range(600))
print("opened", sorted(opened) == everyone, "closed", sorted(closed) == everyone)
print("finalized", sorted(finalized) == everyone, "wrong", wrong, "failed", failed)
print(f"last loss {losses[-1].item():.6g}")
