"""The command `leakcheck`: parse, call one function, print, exit.

Each sub-command lives in the module of its name and is imported only when it is asked for, so that
`leakcheck --help` loads neither torch nor libcst.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

import click

from leakcheck import __version__
from leakcheck.errors import EXIT_BISECT_ABORT, EXIT_CLEAN, EXIT_UNCLEAR, LeakcheckError

# command -> its line in `leakcheck --help`; the function is `command` in leakcheck.cli.<name>
COMMANDS = {
    "check": "Find leaks in source files.",
    "rules": "List the rules.",
    "explain": "Explain a rule (what it finds, why that leaks, what to do) or a topic.",
    "baseline": "Accept the present findings, so that only new ones are reported.",
    "run": "Run a program under the sentinel and say whether it leaks.",
    "isolate": "Run a program in stages and say which part of it leaks.",
    "fix": "Try edits that end a program's leaks, and prove the best one.",
    "compare": "Compare two programs, commits or recordings: is a leak gone, or new?",
    "report": "Report on recordings of one or many ranks.",
    "replay": "Replay a device memory snapshot under other allocator policies.",
    "estimate": "Predict the device memory of a training step without the device.",
    "lsp": "Serve an editor: findings as one types.",
}


class Interrupted(BaseException):
    """Ctrl-C, on its way through click."""


class LazyGroup(click.Group):
    """A group that imports a sub-command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command, in the order people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"leakcheck.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown name, say which one is near."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = get_close_matches(name, COMMANDS, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(COMMANDS)}"
            ctx.fail(f'no command is called "{name}"; {hint}')
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the sub-command; at Ctrl-C click would write an empty line, where it can be."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Completion: eval "$(_LEAKCHECK_COMPLETE=bash_source leakcheck)"; also zsh and fish.',
)
@click.version_option(__version__, prog_name="leakcheck")
def leakcheck() -> None:
    """Find memory leaks in PyTorch training code."""


def _leave_collector_off() -> None:
    """Switch Python's cyclic collector off until the process ends, the search at its end included.

    It takes a fifth of the time of a check. What a check leaves behind it breaks up by itself.
    """
    gc.disable()
    atexit.register(gc.freeze)


def main() -> None:
    """Run the command line; what goes wrong becomes one line on stderr and its exit status."""
    if sys.argv[1:2] == ["check"]:
        _leave_collector_off()
    try:
        status = leakcheck.main(prog_name="leakcheck", standalone_mode=False)
    except LeakcheckError as error:
        _fail(str(error), error.exit_code)
    except click.UsageError as error:
        if "--help" not in sys.argv and len(sys.argv) < 2:
            error.show()  # no command was given: the help is the answer
            raise SystemExit(error.exit_code) from None
        _fail(error.format_message(), error.exit_code)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except (Interrupted, KeyboardInterrupt, click.Abort):
        die_of_ctrl_c()
    except BrokenPipeError:
        # whoever read our output has gone; nothing may be said at interpreter exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_UNCLEAR) from None
    except Exception:  # a bug, and no finding: 1 would be taken for one
        traceback.print_exc()
        raise SystemExit(EXIT_BISECT_ABORT if _bisects() else EXIT_UNCLEAR) from None
    raise SystemExit(status if isinstance(status, int) else EXIT_CLEAN)


def die_of_ctrl_c() -> NoReturn:
    """End as a Python program that Ctrl-C interrupts: what is to run at exit runs, then SIGINT.

    A shell goes on with its loop after any exit status, and stops for the signal.
    """
    sys.excepthook = lambda *_: None  # what there is to tell was told
    raise KeyboardInterrupt


def _fail(message: str, status: int) -> NoReturn:
    if status == EXIT_UNCLEAR and _bisects():
        status = EXIT_BISECT_ABORT
    print(f"leakcheck: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(status) from None


def _bisects() -> bool:
    return "--bisect" in sys.argv
