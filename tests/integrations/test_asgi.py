from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from leakcheck.integrations.asgi import LeakcheckMiddleware
from leakcheck.runtime import requests
from leakcheck.runtime.requests import Requests
from leakcheck.runtime.sentinel import Sentinel

SERVERS = Path(__file__).parent / "programs" / "servers"
REQUESTS, AT_ONCE = 8000, 16


async def load(port: int, requests: int) -> None:
    """Ask `port` for as many answers; of one request in five the client goes away within it."""
    import httpx

    chances = random.Random(0)
    aborted = iter([chances.random() < 0.2 for _ in range(requests)])

    async def ask() -> None:
        for goes_away in aborted:
            async with client.stream("GET", "/long" if goes_away else "/") as response:
                async for _ in response.aiter_raw():
                    if goes_away:
                        break

    limits = httpx.Limits(max_connections=AT_ONCE)
    url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as client:
        await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
        await client.get("/stop")


def served(
    server: str, folder: Path, requests: int = REQUESTS
) -> tuple[int, dict[str, object], str]:
    """Run a server under leakcheck and a client's load; its status, report and standard error."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("httpx")
    path = folder / "report.json"
    with subprocess.Popen(
        [sys.executable, "-m", "leakcheck", "run", "--json", path, SERVERS / f"{server}.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stdout is not None
        asyncio.run(load(int(process.stdout.readline()), requests))
        _, told = process.communicate(timeout=60)
    return process.returncode, json.loads(path.read_text()), told


@pytest.mark.slow
def test_the_state_of_aborted_requests_that_a_server_keeps_is_named(tmp_path):
    status, report, told = served("leaking", tmp_path)

    assert (status, report["verdict"]) == (1, "growing"), told
    first = report["suspects"][0]
    assert first["holder"] == "attribute `Engine.states`, from global `engine`", told
    assert "self.states" in first["locations"][0]["code"]
    entries = report["load"]["entries"][0]
    assert (entries["added_in"], entries["removed_in"]) == (["register"], ["finish"])
    assert entries["kept_of_finished"] == pytest.approx(0, abs=0.1)
    assert entries["kept_of_aborted"] == pytest.approx(1, abs=0.3)
    assert "added in register(), removed only in finish(): 1 in 5" in " ".join(told.split())
    assert report["load"]["finished"] + report["load"]["aborted"] == REQUESTS + 1


@pytest.mark.slow
def test_the_server_that_forgets_them_is_steady(tmp_path):
    status, report, told = served("clean", tmp_path, REQUESTS // 2)

    assert (status, report["verdict"], report["suspects"]) == (0, "steady", [])
    assert report["load"]["entries"] == []
    assert "the server goes on" not in told


class Steps:
    """Counts what a clock makes of requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Requests(Sentinel(), lambda: None)
        monkeypatch.setattr(requests, "_LISTENING", [self.clock])

    @property
    def ended(self) -> tuple[int, int]:
        return self.clock.finished, self.clock.aborted


@pytest.fixture
def steps(monkeypatch):
    steps = Steps(monkeypatch)
    yield steps
    steps.clock.sentinel.stop()


def called(app, messages=(), kind="http"):
    """Hand one request to an app behind the middleware; returns what it sent."""
    waiting, sent = list(messages), []

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(LeakcheckMiddleware(app)({"type": kind}, receive, send))
    return sent


async def answers(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"done"})


def test_a_request_that_is_answered_has_finished(steps):
    sent = called(answers)

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert steps.ended == (1, 0)


def test_a_client_that_goes_away_before_the_answer_has_aborted(steps):
    async def app(scope, receive, send):
        await receive()

    called(app, [{"type": "http.disconnect"}])

    assert steps.ended == (0, 1)


def test_a_client_that_goes_away_after_the_answer_has_not(steps):
    async def app(scope, receive, send):
        await answers(scope, receive, send)
        await receive()

    called(app, [{"type": "http.disconnect"}])

    assert steps.ended == (1, 0)


def test_an_error_of_the_application_is_its_own_and_an_aborted_request(steps):
    async def app(scope, receive, send):
        raise ValueError("of the application")

    with pytest.raises(ValueError, match="of the application"):
        called(app)
    assert steps.ended == (0, 1)


def test_what_is_no_request_is_not_counted(steps):
    called(answers, kind="lifespan")

    assert steps.ended == (0, 0)
