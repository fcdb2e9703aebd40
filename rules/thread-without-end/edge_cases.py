"""Near misses are unmarked."""

import asyncio
import multiprocessing
import queue
import threading
from threading import Thread


class Loops(Thread):
    def run(self):
        while True:
            for step in range(3):
                if step:
                    break


class Ends(Thread):
    def run(self):
        while True:
            if self.stopped:
                return


class Server:
    def start(self):
        self.worker = Loops()
        self.worker.start()


class Owner:
    def close(self):
        self.closed = True

    def start(self):
        self.worker = Loops()  # leak: thread-without-end
        self.worker.start()
        self.other = Ends()
        self.other.start()

        def nested():
            while True:
                self.poll()

        Thread(target=nested).start()  # leak: thread-without-end
        Thread(target=self.breaks).start()
        Thread(target=self.asks).start()

    def breaks(self):
        while True:
            if self.poll():
                break

    def asks(self):
        while not self.stopped:
            self.poll()

    def poll(self):
        return 1


class Filler(Thread):
    def __init__(self, items, room):
        super().__init__()
        self.items, self.room = items, room

    def run(self):
        for item in self.items:
            self.room.put(item)


class Patient(Filler):
    def run(self):
        for item in self.items:
            self.room.put(item, timeout=1)


class Asking(Filler):
    def run(self):
        for item in self.items:
            if self.stopped.is_set():
                break
            self.room.put(item)


def fill(room, items):
    for item in items:
        room.put(item)


class Buffered:
    def __init__(self, items):
        self.room = queue.Queue(8)
        Filler(items, self.room).start()  # leak: thread-without-end
        Patient(items, self.room).start()
        Asking(items, self.room).start()


def forever():
    while True:
        pass


threading.Thread(target=forever, daemon=True).start()


def ahead(items, room=8):
    ready = queue.Queue(maxsize=room)

    def produce():
        for item in items:
            ready.put(item)
        ready.put(None)

    Thread(target=produce, daemon=True).start()  # leak: thread-without-end
    yield from iter(ready.get, None)


def ahead_unless_stopped(items, room=8):
    ready, stopped = queue.Queue(maxsize=room), threading.Event()

    def produce():
        for item in items:
            if stopped.is_set():
                return
            ready.put(item)
        ready.put(None)

    Thread(target=produce, daemon=True).start()
    try:
        yield from iter(ready.get, None)
    finally:
        stopped.set()


class Generator:
    def __init__(self):
        self.running = asyncio.create_task(self.run())  # leak: thread-without-end
        self.cancelled = asyncio.create_task(self.run())
        self.short = asyncio.create_task(self.once())

    async def run(self):
        while True:
            await self.once()

    async def once(self):
        self.turns = 1

    async def halt(self):
        self.cancelled.cancel()


class Service:
    def start(self):
        self.task = asyncio.ensure_future(self.run())

    async def run(self):
        while True:
            await asyncio.sleep(1)


class Closed(Service):
    def start(self):
        asyncio.ensure_future(self.poll())  # leak: thread-without-end

    async def poll(self):
        while True:
            await asyncio.sleep(1)

    def close(self):
        self.closed = True


class DrainedWorker(threading.Thread):
    def __init__(self, rows, found):
        super().__init__()
        self.rows, self.found = rows, found

    def run(self):
        for row in self.rows:
            self.found.put(row)


class DrainingLoader:
    def __init__(self, rows):
        self.found = queue.Queue(8)
        self.worker = DrainedWorker(rows, self.found)

    def stop(self):
        while not self.found.empty():
            self.found.get()
        self.worker.join()


class FullLoader:
    def __init__(self, rows):
        self.found = queue.Queue(8)
        self.worker = DrainedWorker(rows, self.found)  # leak: thread-without-end

    def stop(self):
        self.worker.join()


class FlaggedFetcher:
    def __init__(self, source):
        self.source = iter(source)
        self.found = queue.Queue(8)
        self.worker = threading.Thread(target=self.fetch)

    def fetch(self):
        while not self.left:
            self.found.put(next(self.source))

    def close(self):
        self.left = True


class UnflaggedFetcher:
    def __init__(self, source):
        self.left = False
        self.source = iter(source)
        self.found = queue.Queue(8)
        self.worker = threading.Thread(target=self.fetch)  # leak: thread-without-end

    def fetch(self):
        while not self.left:
            self.found.put(next(self.source))

    def close(self):
        self.source = None


class Served:
    def serve(self):
        async def begin():
            asyncio.create_task(self.declare())
            await self.answer()

        asyncio.run(begin())

    async def declare(self):
        while True:
            await asyncio.sleep(1)

    def shutdown(self):
        self.closed = True


class Serving:
    def serve(self):
        async def begin():
            asyncio.create_task(self.declare())  # leak: thread-without-end
            await self.answer()

        return begin

    async def declare(self):
        while True:
            await asyncio.sleep(1)

    def shutdown(self):
        self.closed = True


class FillsWithoutLimit:
    def __init__(self, loader):
        self.queue = queue.Queue(-1)
        self.thread = threading.Thread(target=self.fill, args=(loader,))

    def fill(self, loader):
        for batch in loader:
            self.queue.put(batch)


class Killed:
    def start(self):
        self.process = multiprocessing.Process(target=self.spin)
        self.process.start()

    def spin(self):
        while True:
            self.poll()

    def close(self):
        self.process.terminate()


class Waited:
    def start(self):
        self.waited = multiprocessing.Process(target=self.spin)  # leak: thread-without-end
        self.waited.start()

    def spin(self):
        while True:
            self.poll()

    def close(self):
        self.waited.join()
