"""Run a program under one of the tools people look for leaks with; prints what that tool says.

    python peer_driver.py TOOL PROGRAM

The last line is `SAYS {"found": ..., "lines": [...]}`: whether the tool, read as its manual reads
it, says that something leaks, and the lines of the program it names, the worst first. Steps are
the iterations of the program's first `range`.
"""

from __future__ import annotations

import builtins
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

FIRST_LOOK, SECOND_LOOK = 100, 200
LEAST_BYTES = 10_000  # of growth that a person would look into
Says = tuple[bool, list[int]]


class Steps:
    """Calls back at the steps of a program's first loop, and at its last step."""

    def __init__(self, at: dict[int, Callable[[], None]], last: Callable[[], None]) -> None:
        self._at, self._last, self._used = at, last, False

    def range(self, *arguments: int) -> Iterator[int] | range:
        """Stand in for the built-in range."""
        if self._used:
            return builtins.range(*arguments)
        self._used = True
        return self._stepped(builtins.range(*arguments))

    def _stepped(self, steps: range) -> Iterator[int]:
        for count, step in enumerate(steps):
            if count in self._at:
                self._at[count]()
            yield step
            if count == len(steps) - 1:
                self._last()


def run(program: Path, steps: Steps) -> None:
    """Run the program with its first range replaced."""
    code = compile(program.read_text(), str(program), "exec")
    exec(code, {"__name__": "__main__", "__file__": str(program), "range": steps.range})


def with_tracemalloc(program: Path) -> Says:
    """Compare snapshots by line: what grew most between step 100 and the last."""
    import tracemalloc

    looks: list[tracemalloc.Snapshot] = []
    look = lambda: looks.append(tracemalloc.take_snapshot())  # noqa: E731
    tracemalloc.start(1)
    run(program, Steps({FIRST_LOOK: look}, look))
    grown = looks[1].compare_to(looks[0], "lineno")
    grown = [each for each in grown if each.size_diff >= LEAST_BYTES][:3]
    return bool(grown), [
        each.traceback[0].lineno if each.traceback[0].filename == str(program) else 0
        for each in grown
    ]


def with_objgraph(program: Path) -> Says:
    """Ask objgraph.growth() twice: a type that grows both times, every other step or more."""
    import objgraph

    looks: list[dict[str, int]] = []

    def look() -> None:
        looks.append({name: grown for name, _, grown in objgraph.growth(limit=50)})

    run(program, Steps({FIRST_LOOK: look, SECOND_LOOK: look}, look))
    _, first, second = looks
    both = [name for name in first if first[name] >= 50 and second.get(name, 0) >= 50]
    return bool(both), []


def with_psleak(program: Path) -> Says:
    """Let psleak call one step at a time, its memory checker alone."""
    import psleak

    go, stepped, over = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def pause() -> None:
        stepped.release()
        go.acquire()

    class Endless(Steps):
        def _stepped(self, steps: range) -> Iterator[int]:
            while not over.is_set():
                yield 1
                pause()

    thread = threading.Thread(target=run, args=(program, Endless({}, pause)), daemon=True)
    thread.start()
    stepped.acquire()

    def step() -> None:
        go.release()
        stepped.acquire()

    case = psleak.MemoryLeakTestCase()
    try:
        case.execute(step, checkers=psleak.Checkers.only("memory"), warmup_times=FIRST_LOOK)
    except psleak.MemoryLeakError:
        return True, []
    return False, []


def with_memalot(program: Path) -> Says:
    """Let memalot look at tensors at steps 100 and 200 (of all objects it takes minutes)."""
    import memalot

    told: list[str] = []
    watch = memalot.create_leak_monitor(
        included_type_names={"torch.Tensor"},
        output_func=told.append,
        save_reports=False,
        warmup_calls=1,
        check_referrers=False,
    )
    entered: list[object] = []

    def look() -> None:
        if entered:
            watch.__exit__(None, None, None)
        entered.append(watch.__enter__())

    run(program, Steps({FIRST_LOOK: look, SECOND_LOOK: look, SECOND_LOOK + 80: look}, look))
    text = "\n".join(told)
    return "torch.Tensor" in text or "Tensor" in text, []


TOOLS = {
    "tracemalloc": with_tracemalloc,
    "objgraph": with_objgraph,
    "psleak": with_psleak,
    "memalot": with_memalot,
}

if __name__ == "__main__":
    found, lines = TOOLS[sys.argv[1]](Path(sys.argv[2]))
    print("\nSAYS", json.dumps({"found": found, "lines": lines}), flush=True)
    sys.stdout.flush()
    import os

    os._exit(0)
