"""An event loop in a thread serves batches and a heartbeat; the training keeps its losses."""

import asyncio
import threading

import torch
from torch import nn

failed = []


async def shards(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield tuple((number * 13 + k) % 11 / 11 for k in range(80))


async def serve(batches):
    async for shard in shards(300):
        await batches.put(torch.tensor(shard).view(8, 10))
    await batches.put(None)


async def beat(beats):
    while True:
        beats.append(len(asyncio.all_tasks()) > 0)
        await asyncio.sleep(0.002)


def run(loop):
    asyncio.set_event_loop(loop)
    loop.set_exception_handler(lambda _, context: failed.append(repr(context)))
    loop.run_forever()


async def opened(beats):
    batches = asyncio.Queue(4)
    return batches, asyncio.create_task(serve(batches)), asyncio.create_task(beat(beats))


async def closed(*tasks):
    tasks[-1].cancel()
    return [type(each).__name__ for each in await asyncio.gather(*tasks, return_exceptions=True)]


def main():
    torch.manual_seed(0)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=run, args=(loop,))
    thread.start()
    beats = []
    batches, *tasks = asyncio.run_coroutine_threadsafe(opened(beats), loop).result()
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    while (rows := asyncio.run_coroutine_threadsafe(batches.get(), loop).result()) is not None:
        loss = model(rows).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    ended = asyncio.run_coroutine_threadsafe(closed(*tasks), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    print("batches", len(losses), "ended", ended, "beating", all(beats), "failed", failed)
    print(f"last loss {losses[-1].item():.6g}")


main()
