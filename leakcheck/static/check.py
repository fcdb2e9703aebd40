"""Paths in, findings out: files -> cache -> (worker processes) -> checker -> one report."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from leakcheck.errors import LeakcheckError, SourceError
from leakcheck.model import Finding, Report, Unreadable
from leakcheck.static.cache import Cache, CheckOutcome
from leakcheck.static.checker import Checker, Settings
from leakcheck.static.files import display_path, find_files, read_bytes
from leakcheck.static.workspace import digest_of

FEWEST_FILES_FOR_WORKERS = 20  # below, starting processes costs more than it saves
FILES_A_CHUNK = 8


def check_paths(paths: Sequence[Path | str], settings: Settings | None = None) -> Report:
    """Check files and folders by the given settings; configuration files are not looked for.

    Raises UsageError for a path or a rule that does not exist; a file that cannot be checked is in
    the report.
    """
    found = find_files([Path(path) for path in paths])
    report = check_files(found.files, settings or Settings())
    return merged([Report(unreadable=found.unreadable), report])


def check_files(files: Sequence[Path], settings: Settings) -> Report:
    """Check files, taking what did not change from the cache."""
    checker = Checker(settings)
    outcomes = dict(_known(files, checker, settings))
    todo = [path for path in files if path not in outcomes]
    cache = Cache(settings.cache_dir) if settings.cache_dir else None
    for path, outcome in _checked(todo, checker, settings):
        outcomes[path] = outcome.told()
        digest = checker.workspace.digest(display_path(path))
        if cache and digest:
            cache.put(display_path(path), checker.key(path, digest), outcome)
    checker.workspace.release()
    findings = [finding for outcome in outcomes.values() for finding in outcome.findings]
    return Report(
        findings=tuple(sorted(findings, key=_place)),
        unreadable=tuple(
            Unreadable(display_path(path), outcomes[path].reason or "")
            for path in files
            if outcomes[path].reason is not None
        ),
        checked_files=sum(outcome.reason is None for outcome in outcomes.values()),
    )


def merged(reports: Sequence[Report]) -> Report:
    """Put the reports on separate files together."""
    return Report(
        findings=tuple(sorted((f for each in reports for f in each.findings), key=_place)),
        unreadable=tuple(unreadable for each in reports for unreadable in each.unreadable),
        checked_files=sum(each.checked_files for each in reports),
    )


def _known(
    files: Sequence[Path], checker: Checker, settings: Settings
) -> Iterator[tuple[Path, CheckOutcome]]:
    """Yield the files that cannot be read, and those whose findings the cache knows."""
    readable = []
    for path in files:
        digest = _digest(path)
        if isinstance(digest, CheckOutcome):
            yield path, digest
        else:
            checker.workspace.remember(display_path(path), digest)
            readable.append((path, digest))
    if settings.cache_dir is None:
        return
    cache = Cache(settings.cache_dir)
    for path, digest in readable:  # once all digests are known, since files depend on each other
        key = checker.key(path, digest)
        outcome = cache.get(display_path(path), key, checker.workspace)
        if outcome is not None:
            yield path, outcome.told()


def _digest(path: Path) -> str | CheckOutcome:
    try:
        return digest_of(read_bytes(path))
    except SourceError as error:
        return CheckOutcome(reason=str(error))


def _checked(
    files: Sequence[Path], checker: Checker, settings: Settings
) -> Iterator[tuple[Path, CheckOutcome]]:
    if settings.jobs < 2 or len(files) < FEWEST_FILES_FOR_WORKERS:
        with _without_collector():
            yield from ((path, checker.check(path)) for path in files)
        return
    # Forking is quick, and safe only where nothing has started threads: on Linux, from our command
    method = "fork" if sys.platform == "linux" and "torch" not in sys.modules else "spawn"
    chunks = [files[at : at + FILES_A_CHUNK] for at in range(0, len(files), FILES_A_CHUNK)]
    try:
        with ProcessPoolExecutor(
            min(settings.jobs, len(chunks)),
            multiprocessing.get_context(method),
            _start_worker,
            (settings, str(Path.cwd())),
        ) as pool:
            try:
                for outcomes in pool.map(_check_chunk, chunks):
                    yield from outcomes
            except BaseException:  # Ctrl-C is not to wait for the chunks that have not begun
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool:
        raise LeakcheckError("a worker process died; `--jobs 1` names the file") from None


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switch Python's cyclic collector off: trees are no cycles, and modules break their own.

    It takes a quarter of the time of a check, in search of garbage among millions of nodes.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_checker: Checker  # of this worker process


def _start_worker(settings: Settings, folder: str) -> None:
    global _checker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers Ctrl-C
    gc.disable()  # as in _without_collector
    _checker = Checker(settings)


def _check_chunk(files: Sequence[Path]) -> list[tuple[Path, CheckOutcome]]:
    return [(path, _checker.check(path)) for path in files]


def _place(finding: Finding) -> tuple[object, ...]:
    at = finding.location
    return (at.path, at.cell or 0, at.line, at.column, finding.code)
