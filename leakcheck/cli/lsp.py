"""`leakcheck lsp`: the language server, on standard input and output."""

from __future__ import annotations

import click

from leakcheck.errors import UsageError


@click.command()
def command() -> None:
    """Serve an editor: findings as one types, fixes as quick fixes.

    Needs the extra `lsp`: pip install "torch-leakcheck[lsp]".
    """
    try:
        from leakcheck.lsp import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise UsageError('the language server needs pip install "torch-leakcheck[lsp]"') from None
    server.start_io()
