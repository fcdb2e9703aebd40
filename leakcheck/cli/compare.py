"""`leakcheck compare`: what a change did to a program's leaks, from runs before and after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leakcheck.cli.program_options import module_option, program_command, program_named
from leakcheck.cli.trial_options import (
    clear_progress,
    end_trial_at_sigterm,
    one_process,
    show_progress,
    trial_options,
)
from leakcheck.errors import UsageError
from leakcheck.writing import replace_file

if TYPE_CHECKING:
    from leakcheck.cli.compare_sides import Side
    from leakcheck.experiments import Comparison


@program_command("compare")
@module_option("Programs are modules, as of `python -m`.")
@click.option(
    "--commits",
    metavar="A..B",
    help="Compare one program at two commits, each in a worktree of its own.",
)
@click.option(
    "--against-baseline",
    "baseline",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Compare one program with a report that `leakcheck run --json` wrote.",
)
@click.option(
    "--pairs",
    default=2,
    show_default=True,
    type=click.IntRange(min=1),
    help="How often each program runs, by turns; a rate must have changed in every pair.",
)
@trial_options("a program counts as steady", "a run")
@click.argument("sides", nargs=-1, type=click.UNPROCESSED, metavar="A B | SCRIPT [ARGS]...")
def command(
    as_module: bool,
    commits: str | None,
    baseline: Path | None,
    pairs: int,
    steps: int,
    timeout: float,
    tolerance: int,
    json_path: Path | None,
    sides: tuple[str, ...],
) -> None:
    """Compare A with B: does the change cure the leak, start one, or change nothing?

    A and B are programs ("train.py --lr 1e-3" in one argument), recordings of `run --record`
    (a file or its folder), or reports of `run --json`. With --commits or --against-baseline it is
    one SCRIPT (or -m MODULE) with its ARGS. Programs run in pairs and by turns, each in a process
    of its own, until the verdict is certain; what they write they write in every run. A rate has
    changed only where its interval has in every pair.

    Exit status: 0 no leak is new or worse, 1 one is, 2 could not tell.
    """
    from leakcheck.cli.session import writable

    one_process("compare")
    if commits is not None and baseline is not None:
        raise UsageError("--commits and --against-baseline do not go together")
    path = writable("--json", json_path)
    end_trial_at_sigterm()
    with tempfile.TemporaryDirectory(prefix="leakcheck-", ignore_cleanup_errors=True) as folder:
        from leakcheck.cli.compare_sides import Runs

        runs = Runs(Path(folder), steps, tolerance, timeout, _begin)
        with _sides_of(sides, commits, baseline, Path(folder), module=as_module) as both:
            try:
                found = runs.compare(both, pairs)
            finally:
                clear_progress()
    _tell(found, path)
    raise SystemExit(found.exit_code)


@contextmanager
def _sides_of(
    sides: tuple[str, ...],
    commits: str | None,
    baseline: Path | None,
    folder: Path,
    *,
    module: bool,
) -> Iterator[tuple[Side, Side]]:
    """Yield what is compared; worktrees of commits are gone afterwards."""
    from leakcheck.cli.compare_sides import at_commits, program, read, side_of

    if commits is None and baseline is None:
        if len(sides) != 2:
            late = next((f"; {each} comes before A" for each in sides if each[:2] == "--"), "")
            told = f"compare takes A and B, each with its arguments in one word; got {len(sides)}"
            raise UsageError(f"{told}{late}")
        yield side_of(sides[0], module=module), side_of(sides[1], module=module)
        return
    named = program_named(sides)
    if baseline is not None:
        yield read(baseline), program(named, module=module)
        return
    assert commits is not None
    with at_commits(commits, named, folder, module=module) as both:
        yield both


def _tell(found: Comparison, json_path: Path | None) -> None:
    from leakcheck.cli.output import emit
    from leakcheck.report import comparison as report

    emit(report.render(found))
    if json_path is not None:
        replace_file(json_path, report.render_json(found) + "\n")


def _begin(number: int, count: int, name: str) -> None:
    show_progress(f"run {number} of {count}: {name}")
