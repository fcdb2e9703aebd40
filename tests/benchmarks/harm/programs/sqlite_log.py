"""A thread writes metrics into a database in memory; the training keeps its losses."""

import queue
import sqlite3
import threading

import torch
from torch import nn

rows: queue.Queue = queue.Queue()
failed, answers = [], []


class Mean:
    def __init__(self):
        self.values = []

    def step(self, value):
        self.values.append(value)

    def finalize(self):
        return sum(self.values) / len(self.values)


def write():
    try:
        database = sqlite3.connect(":memory:")
        database.row_factory = sqlite3.Row
        database.create_function("halved", 1, lambda value: value / 2)
        database.create_aggregate("mean", 1, Mean)
        database.execute("create table metrics (step integer, name text, value real)")
        while (row := rows.get()) is not None:
            values = ((row[0], f"m{n}", n / 8) for n in range(16))
            database.executemany("insert into metrics values (?, ?, ?)", values)
            database.commit()
        query = "select count(*) n, mean(value) m, halved(max(step)) h from metrics"
        answers.extend(tuple(row) for row in database.execute(query))
        answers.append(tuple(database.execute("select * from metrics where step = 7").fetchone()))
        database.close()
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=write)
thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(300):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    rows.put((step,))
rows.put(None)
thread.join()
print("answers", answers, "failed", failed, f"{losses[-1].item():.6g}")
