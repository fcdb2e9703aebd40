"""Each piece of work has a context of its own in whichever thread it runs; losses are kept."""

import contextvars
import decimal
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

request = contextvars.ContextVar("request", default="none")
trail = contextvars.ContextVar("trail")
stop, failed, seen = threading.Event(), [], set()


def handle(number):
    token = request.set(f"r{number}")
    trail.set((*trail.get(()), number))
    with decimal.localcontext() as context:
        context.prec = 5 + number
        third = decimal.Decimal(1) / 3
    answer = request.get(), trail.get(), str(third)
    request.reset(token)
    return (*answer, request.get())


def serve():
    try:
        with ThreadPoolExecutor(2) as pool:
            while not stop.is_set():
                contexts = [contextvars.copy_context() for _ in range(20)]
                work = [pool.submit(each.run, handle, n % 4) for n, each in enumerate(contexts)]
                seen.update(each.result() for each in work)
                seen.add(("left", request.get(), trail.get(())))
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
request.set("main")
thread = threading.Thread(target=contextvars.copy_context().run, args=(serve,))
thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(300):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
stop.set()
thread.join()
print("seen", sorted(map(str, seen)), request.get(), "failed", failed, f"{losses[-1].item():.6g}")
