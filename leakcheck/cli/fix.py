"""`leakcheck fix`: try edits that end a program's leaks, in memory, and prove the best one."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leakcheck.cli.program_options import (
    file_option,
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
from leakcheck.errors import LeakcheckError, UsageError

if TYPE_CHECKING:
    from leakcheck.cure.search import RunTexts
    from leakcheck.experiments import Cure, Revision, Trial
    from leakcheck.static.files import Source


@program_command("fix")
@module_option()
@trial_options("there is nothing to fix", "a run")
@click.option(
    "--tries",
    default=12,
    show_default=True,
    type=click.IntRange(min=1),
    help="The most edits to try for one leak; each is a run of the program.",
)
@click.option(
    "--size",
    type=click.IntRange(min=1),
    help="How many to keep, where an edit limits a container: yours to choose.",
)
@click.option(
    "--grace",
    "grace_s",
    default=20.0,
    show_default=True,
    type=click.FloatRange(min=0.0),
    help="Seconds for the program to end once its verdict is certain: its last output is compared.",
)
@click.option("--write", is_flag=True, help="Write the proved edit to the program's files.")
@file_option("--patch", "Write the proved edit as a patch that `git apply` takes in this folder.")
@file_option("--html", "Write a page with before and after side by side.")
@click.option("--name", hidden=True, help="What to call the program.")
@program_argument()
def command(
    as_module: bool,
    program: tuple[str, ...],
    steps: int,
    tries: int,
    size: int | None,
    grace_s: float,
    timeout: float,
    tolerance: int,
    write: bool,
    patch_path: Path | None,
    json_path: Path | None,
    html_path: Path | None,
    name: str | None,
) -> None:
    """Run SCRIPT (or -m MODULE), try edits that end its leaks, and prove the best one.

    Each edit is tried in memory: the program runs in a process of its own with the edited text,
    and its files stay as they are unless --write is given. An edit is proved when the edited
    program is steady over as many steps and its output, the losses that backward was called on
    and the weights that optimizers step are the same; a printed tensor may be a number then.
    Random seeds that the program does not set are 0. What it writes it writes in every run. Exit
    status: 0 proved, or nothing leaks; 1 the leak stays; 2 could not tell.
    """
    from leakcheck.cli.forkserver import Opening
    from leakcheck.cli.processes import processes
    from leakcheck.cli.session import writable
    from leakcheck.cli.trials import Trials
    from leakcheck.report.cure_page import render_page
    from leakcheck.writing import replace_file

    one_process("fix")
    module, arguments = module_and_arguments(program, as_module=as_module)
    patch_path = writable("--patch", patch_path)
    json_path, html_path = writable("--json", json_path), writable("--html", html_path)
    end_trial_at_sigterm()
    name = name or " ".join((f"-m {module}", *arguments) if module else arguments)
    with (
        tempfile.TemporaryDirectory(prefix="leakcheck-", ignore_cleanup_errors=True) as folder,
        processes(Opening(arguments, module), timeout) as each,
    ):
        trials = Trials(
            arguments, module, steps, tolerance, timeout, grace_s, Path(folder), _begin, each
        )
        try:
            script = "" if module else os.path.relpath(arguments[0])
            cure = _cured(trials.run, name, tries, size, script)
        finally:
            clear_progress()
    if html_path is not None:
        replace_file(html_path, render_page(cure))
    _tell(cure, patch_path, json_path, write=write)
    raise SystemExit(cure.exit_code)


def _cured(run: RunTexts, name: str, tries: int, size: int | None, script: str) -> Cure:
    from leakcheck.cure.search import CureSearch

    return CureSearch(run, _text_of, tries, size, script, _stops_at).follow(name)


def _stops_at(before: Trial) -> int:
    """Return the step to stop an edited program at: where we stopped it, or past its own end."""
    run = before.report.run if before.report else None
    return before.counted + (run is not None and run.ended != "stopped")


def _text_of(path: str) -> str | None:
    """Return the text of a file under this folder that is the user's, None for any other."""
    from leakcheck.runtime.clock.ticks import is_own
    from leakcheck.static.files import decode

    full = Path(os.path.abspath(path))
    if full.suffix != ".py" or not is_own(str(full), Path.cwd()):
        return None
    try:
        return decode(full.read_bytes()).text
    except (OSError, LeakcheckError):
        return None


def _tell(cure: Cure, patch_path: Path | None, json_path: Path | None, *, write: bool) -> None:
    from leakcheck.cli.output import emit
    from leakcheck.report import cure as report
    from leakcheck.writing import replace_file

    emit(report.render(cure))
    if json_path is not None:
        replace_file(json_path, report.render_json(cure) + "\n")
    proved = cure.chosen is not None and cure.chosen.outcome == "proved"
    revisions = cure.chosen.revisions if cure.chosen is not None and proved else ()
    if patch_path is not None and proved:
        replace_file(patch_path, b"".join(map(_patch, revisions)))
    if write:
        for path, raw in [(each.path, _edited(each)) for each in revisions]:
            replace_file(path, raw)  # none before each was found to be as it was
    if (write or patch_path is not None) and not proved:
        click.echo("leakcheck: no edit is proved: nothing was written", err=True)


def _edited(revision: Revision) -> bytes:
    """Return an edited file as it is encoded; UsageError when it has changed meanwhile."""
    source = _source(revision)
    if source.text != revision.before:
        raise UsageError(f"{revision.path}: changed while it was tried; nothing was written")
    return source.encode(revision.after)


def _patch(revision: Revision) -> bytes:
    """Return a patch of one file in its encoding, of the file that a link leads to."""
    from leakcheck.report.cure import patch

    encoding = _source(revision).encoding
    is_marked = encoding == "utf-8-sig"
    mark = "\ufeff" if is_marked else ""
    path = os.path.relpath(os.path.realpath(revision.path), os.path.realpath(os.curdir))
    told = replace(revision, path=path, before=mark + revision.before, after=mark + revision.after)
    old, new, *lines = patch((told,)).split("\n")
    names = (os.fsencode(each) for each in (old, new))
    text = "\n".join(lines).encode("utf-8" if is_marked else encoding)
    return b"\n".join((*names, text))


def _source(revision: Revision) -> Source:
    from leakcheck.static.files import decode

    return decode(Path(revision.path).read_bytes())


def _begin(count: int) -> None:
    show_progress(f"run {count}: {'as it is' if count == 1 else 'with an edit'}")
