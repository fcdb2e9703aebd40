from __future__ import annotations

import asyncio
import warnings
from contextlib import suppress

import pytest

import leakcheck
from leakcheck.model import Holder, Report, Suspect
from leakcheck.report.reasons import said
from leakcheck.runtime import requests
from leakcheck.runtime.requests import Requests
from leakcheck.runtime.sentinel import Sentinel
from leakcheck.runtime.watched import LeakWarning


@pytest.fixture
def clock(monkeypatch):
    clock = Requests(Sentinel(), lambda: None)
    monkeypatch.setattr(requests, "_LISTENING", [clock])
    yield clock
    clock.sentinel.stop()


def counts(clock):
    return clock.finished, clock.aborted, clock.in_flight


def test_a_block_is_one_request(clock):
    with leakcheck.request():
        assert counts(clock) == (0, 0, 1)

    assert counts(clock) == (1, 0, 0)


def test_an_exception_aborts_it_and_goes_on(clock):
    with pytest.raises(KeyError), leakcheck.request():
        raise KeyError("of the program")

    assert counts(clock) == (0, 1, 0)


def test_it_can_be_aborted_by_hand(clock):
    with leakcheck.request() as request:
        request.abort()

    assert counts(clock) == (0, 1, 0)


def test_a_request_within_a_request_is_the_same_one(clock):
    with leakcheck.request(), leakcheck.request():
        assert counts(clock) == (0, 0, 1)

    assert counts(clock) == (1, 0, 0)


def test_tasks_overlap_and_each_counts_once(clock):
    async def handle():
        async with leakcheck.request():
            await asyncio.sleep(0)
            with leakcheck.request():
                await asyncio.sleep(0)

    async def serve():
        await asyncio.gather(*(handle() for _ in range(10)))

    asyncio.run(serve())

    assert counts(clock) == (10, 0, 0)
    assert clock.most_in_flight == 10


def test_a_cancelled_task_is_aborted(clock):
    async def handle():
        with leakcheck.request():
            await asyncio.Event().wait()

    async def serve():
        task = asyncio.ensure_future(handle())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(serve())

    assert counts(clock) == (0, 1, 0)


def test_a_task_that_outlives_its_request_may_begin_another(clock):
    async def background():
        await asyncio.sleep(0)
        with leakcheck.request():
            pass

    async def serve():
        with leakcheck.request():
            task = asyncio.ensure_future(background())
        await task

    asyncio.run(serve())

    assert counts(clock) == (2, 0, 0)


class Engine:
    def __init__(self):
        self.states = {}

    def register(self, number):
        self.states[number] = bytearray(100)

    def finish(self, number):
        del self.states[number]


def serve(engine, requests, loses):
    for number in range(requests):
        with leakcheck.request() as request:
            engine.register(number)
            if loses and number % 5 == 0:
                request.abort()
                continue
            engine.finish(number)


@pytest.fixture
def of_process(monkeypatch):
    monkeypatch.setattr(requests, "_LISTENING", [])
    yield
    for clock in requests._LISTENING:
        clock.sentinel.stop()


@pytest.mark.usefixtures("of_process")
def test_without_a_run_a_leak_is_warned_of_once():
    engine = Engine()

    with pytest.warns(LeakWarning, match="held by attribute `Engine.states`") as told:
        serve(engine, 3000, loses=True)

    assert len(told) == 1


@pytest.mark.usefixtures("of_process")
def test_without_a_run_a_server_that_loses_nothing_is_silent():
    engine = Engine()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        serve(engine, 3000, loses=False)

    assert requests._LISTENING[0].finished == 3000


def test_the_report_says_who_adds_and_who_removes(clock):
    serve(Engine(), 3000, loses=True)

    load = clock.sentinel.report().load
    assert load is not None
    (entries,) = load.entries
    assert (load.finished, load.aborted, load.most_in_flight, load.looked_at) == (2400, 600, 1, 0)
    assert (entries.added_in, entries.removed_in) == (("register",), ("finish",))
    assert entries.kept == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(
    ("lengths", "reason"),
    [
        (range(600, 660), ""),
        ([600, 603] * 30, "attribute `Engine.states` had grown, and did not go on"),
        (
            range(600, 620),
            "attribute `Engine.states` had grown, and too few requests came later to see it go on",
        ),
    ],
    ids=["goes on", "went no further", "too few"],
)
def test_what_was_not_seen_to_go_on_is_not_accused(clock, lengths, reason):
    states = Holder("attribute", "states", "Engine")
    for step, length in enumerate(lengths, 1):
        clock._entries.append(step, 0.0, {"finished": step, "aborted": 0, str(states): length})

    report = clock.completed(
        Report(verdict="growing", suspects=(Suspect("object", "dict", 1.0, holder=states),))
    )

    assert said(report.reason) == reason
    assert report.verdict == ("unclear" if reason else "growing")
    assert bool(report.suspects) == (not reason)


class FoundGrowing:
    """A sentinel that has found to grow what may be of the requests in flight."""

    def __init__(self, grows_at):
        self.state, self.grows_at, self.looks = (1, "growing"), grows_at, 1

    def step(self):
        self.state = self.state[0] + 1, "growing"

    def look_again(self):
        self.looks += 1


class Length:
    def __init__(self, lengths):
        self.lengths = iter(lengths)

    def length(self):
        return next(self.lengths)


@pytest.mark.parametrize(
    ("grows_at", "looks"),
    [({}, 3), ({Holder("attribute", "states", "Engine"): Length(range(100))}, 1)],
    ids=["no length can be read", "its length goes on"],
)
def test_what_cannot_be_followed_is_looked_at_again_and_not_for_ever(grows_at, looks):
    sentinel = FoundGrowing(grows_at)
    clock = Requests(sentinel)

    for _ in range(60):
        with leakcheck.request(clock):
            pass

    assert sentinel.looks == looks


REQUESTS = 7200


class Server:
    """Registers each request, and forgets those that are answered; `repaired`: the others, too."""

    def __init__(self, requests: Requests, *, repaired: bool) -> None:
        self.requests = requests
        self.repaired = repaired
        self.pending: dict[int, bytearray] = {}
        self.count = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError), leakcheck.request(self.requests):
            self.count += 1
            await self.answer(self.count, reader, writer)
        writer.close()

    async def answer(self, number, reader, writer) -> None:
        self.pending[number] = bytearray(4000)
        try:
            if await reader.readline() == b"":
                raise ConnectionResetError("the client left")
            writer.write(b"done\n")
            await writer.drain()
            del self.pending[number]
        finally:
            if self.repaired:
                self.pending.pop(number, None)


async def client(port: int, *, leaves: bool) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if not leaves:
        writer.write(b"go\n")
        await reader.readline()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def load(server: Server, at_once: int) -> None:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    for first in range(0, REQUESTS, at_once):
        numbers = range(first, first + at_once)
        await asyncio.gather(*(client(port, leaves=number % 3 == 0) for number in numbers))
    while server.requests.in_flight:
        await asyncio.sleep(0)
    listening.close()
    await listening.wait_closed()


def served(*, repaired: bool, at_once: int = 2) -> tuple[Requests, Report]:
    requests = Requests(Sentinel(steps=300))
    server = Server(requests, repaired=repaired)
    asyncio.run(load(server, at_once))
    requests.sentinel.stop()
    return requests, requests.sentinel.report()


@pytest.mark.slow
def test_the_state_of_aborted_requests_is_growing_with_its_dictionary_named():
    requests, report = served(repaired=False)

    assert (requests.finished, requests.aborted) == (4800, 2400)
    assert report.verdict == "growing", report.reason
    assert "`Server.pending`" in str(report.suspects[0].holder)


@pytest.mark.slow
def test_the_repaired_server_is_steady():
    _, report = served(repaired=True)

    assert (report.verdict, report.suspects) == ("steady", ()), report
