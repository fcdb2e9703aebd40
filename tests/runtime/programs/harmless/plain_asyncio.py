"""Coroutines, async generators, tasks that are cancelled, and an executor."""

import asyncio

kept = []


async def numbers(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield number


async def forever():
    try:
        while True:
            await asyncio.sleep(3600)
    finally:
        print("cancelled")


async def main():
    task = asyncio.create_task(forever())
    total = 0
    async for number in numbers(600):
        kept.append(bytearray(2000))
        total += number
    total += await asyncio.get_running_loop().run_in_executor(None, sum, [1, 2])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    print(total, [name for name in ("a", "b") if name in globals()])


asyncio.run(main())
