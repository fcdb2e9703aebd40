"""`leakcheck isolate`: run a program in stages and say which part of it leaks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leakcheck.cli.program_options import (
    module_and_arguments,
    module_option,
    program_argument,
    program_command,
)
from leakcheck.cli.trial_options import (
    clear_progress,
    end_trial_at_sigterm,
    one_process,
    show_progress,
    trial_options,
)
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNCLEAR
from leakcheck.writing import replace_file

if TYPE_CHECKING:
    from leakcheck.cli.isolate_stages import Plan
    from leakcheck.experiments import StageRun

CHOSEN = ("data-only", "fixed-batch", "no-backward", "no-logging")


@program_command("isolate")
@module_option()
@trial_options("a stage is called steady", "a stage")
@click.option(
    "--stage",
    "stages",
    multiple=True,
    type=click.Choice(CHOSEN),
    help="Run this stage only, after the unchanged run; may be repeated.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the verdict.")
@program_argument()
def command(
    as_module: bool,
    program: tuple[str, ...],
    steps: int,
    stages: tuple[str, ...],
    timeout: float,
    tolerance: int,
    json_path: Path | None,
    exit_zero: bool,
) -> None:
    """Run SCRIPT (or -m MODULE) in stages and say which part of it leaks.

    \b
    as-it-is     the unmodified program; if it holds steady, that is all
    data-only    the DataLoader is drained; no work on its batches
    fixed-batch  every DataLoader gives its first batch for ever
    no-backward  backward() and optimizer.step() do nothing
    no-logging   trackers, loggers and callbacks do nothing, where recognised

    Each stage is a run of the whole program in a process of its own, stopped when its verdict is
    certain. Files that the program writes (checkpoints, logs) it writes in every stage: nothing
    is redirected. A stage that does not apply, or that the program fails in, says so. Exit status:
    0 steady, 1 growing, 2 could not tell.
    """
    from leakcheck.cli.isolate_stages import Plan
    from leakcheck.cli.session import writable

    one_process("isolate")
    module, arguments = module_and_arguments(program, as_module=as_module)
    path = writable("--json", json_path)
    chosen = tuple(stage for stage in CHOSEN if not stages or stage in stages)
    with tempfile.TemporaryDirectory(prefix="leakcheck-", ignore_cleanup_errors=True) as folder:
        plan = Plan(arguments, module, chosen, steps, tolerance, timeout, Path(folder))
        status = _isolate(plan, path)
    raise SystemExit(EXIT_CLEAN if exit_zero else status)


def _isolate(plan: Plan, json_path: Path | None) -> int:
    from leakcheck.cli.isolate_stages import run_stages
    from leakcheck.experiments import Isolation
    from leakcheck.model import Reason
    from leakcheck.runtime.isolation.experiment import conclude

    end_trial_at_sigterm()
    runs: list[StageRun] = []
    interrupted = False
    try:
        runs.extend(run_stages(plan, _progress(len(plan.stages) + 1)))  # keeps those before Ctrl-C
    except KeyboardInterrupt:
        interrupted = True
    finally:
        clear_progress()
    if not runs:
        raise KeyboardInterrupt
    name = plan.module or " ".join(plan.args)
    command = f"-m {' '.join((name, *plan.args))}" if plan.module else name
    conclusion = conclude(runs)
    if interrupted:
        conclusion = Reason.of("so-far", conclusion=conclusion)
    isolation = Isolation(command, tuple(runs), conclusion)
    _tell(isolation, plan, json_path)
    if interrupted:
        raise KeyboardInterrupt
    by_verdict = {"growing": EXIT_FOUND, "steady": EXIT_CLEAN}
    return by_verdict.get(runs[0].verdict, EXIT_UNCLEAR)


def _tell(isolation: object, plan: Plan, json_path: Path | None) -> None:
    from leakcheck.cli.output import emit
    from leakcheck.experiments import Isolation
    from leakcheck.report import isolation as report

    assert isinstance(isolation, Isolation)
    emit(report.render(isolation))
    if json_path is not None:
        replace_file(json_path, report.render_json(isolation) + "\n")
    for run in isolation.stages:
        if run.failed:
            tail = "\n".join(f"  {line}" for line in plan.log_tail(run.stage))
            click.echo(f"\nlast output of {run.stage}:\n{tail}", err=True)


def _progress(count: int) -> Callable[[str], None]:
    done = iter(range(1, count + 1))

    def begin(stage: str) -> None:
        show_progress(f"run {next(done)} of {count}: {stage}")

    return begin
