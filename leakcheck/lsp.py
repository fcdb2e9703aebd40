"""A language server: findings as diagnostics while one types, fixes as quick fixes.

Diagnostics are computed from the editor's text, imports from the files on disk; a text that does
not parse at the moment shows none. Positions are 0-based and count the units agreed on with the
client (UTF-16 unless it asks otherwise).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from leakcheck import __version__
from leakcheck.config import find_config, forget_files, settings_of
from leakcheck.errors import LeakcheckError, SourceError
from leakcheck.model import Edit, Finding, Location
from leakcheck.proved_edits import ProvedEdit, offered, read_proofs
from leakcheck.report.evidence import said
from leakcheck.static.checker import Checker
from leakcheck.static.files import absolute
from leakcheck.static.fix import split_lines
from leakcheck.static.suppress import UnusedSuppression, ignore_edits

PAUSE_S = 0.2  # a check begins when typing rests this long
SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
# code units a character takes in each encoding that LSP knows
_UNITS = {
    lsp.PositionEncodingKind.Utf8: lambda text: len(text.encode("utf-8", "surrogatepass")),
    lsp.PositionEncodingKind.Utf16: lambda text: (
        len(text.encode("utf-16-le", "surrogatepass")) // 2
    ),
    lsp.PositionEncodingKind.Utf32: len,
}


class LeakcheckServer(LanguageServer):
    """The server and what it knows: a checker for each configuration, findings for each text."""

    def __init__(self) -> None:
        """Start with no document."""
        super().__init__("leakcheck", __version__)
        self.findings: dict[str, tuple[int | None, tuple[Finding, ...]]] = {}
        self._checkers: dict[Path | None, tuple[Checker, tuple[ProvedEdit, ...]]] = {}

    def check(self, uri: str) -> tuple[Finding, ...]:
        """Check a document's present text, or give what is known of this version."""
        document = self.workspace.get_text_document(uri)
        if uri not in self.workspace.text_documents and not Path(to_fs_path(uri) or "").is_file():
            return ()  # a client may ask for what it has closed and removed
        version, known = self.findings.get(uri, (None, ()))
        if uri in self.findings and version == document.version:
            return known
        findings = self._check(absolute(Path(to_fs_path(uri) or "untitled.py")), document.source)
        self.findings[uri] = (document.version, findings)
        return findings

    def forget_files(self) -> None:
        """Read settings, rules and imported files anew: something on disk has changed."""
        self._checkers.clear()
        forget_files()

    def range(self, uri: str, edit: Edit) -> lsp.Range:
        """Turn a span of ours into one of the protocol's."""
        lines = split_lines(self.workspace.get_text_document(uri).source)
        units = _UNITS[lsp.PositionEncodingKind(self.workspace.position_encoding)]

        def position(line: int, column: int) -> lsp.Position:
            text = lines[line - 1] if line <= len(lines) else ""
            return lsp.Position(line - 1, units(text[: column - 1]))

        return lsp.Range(position(edit.line, edit.column), position(edit.end_line, edit.end_column))

    def _check(self, path: Path, text: str) -> tuple[Finding, ...]:
        try:
            located = find_config(path)
            if located.file not in self._checkers:
                proofs = read_proofs(located.root / name for name in located.config.proofs)
                self._checkers[located.file] = Checker(settings_of(located)), proofs
            checker, proofs = self._checkers[located.file]
            return offered(checker.check_text(text, path), text, proofs)
        except SourceError:
            return ()
        except LeakcheckError as error:
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, str(error)))
            return ()


server = LeakcheckServer()


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(server: LeakcheckServer, params: lsp.DidOpenTextDocumentParams) -> None:
    """Show a document's findings."""
    _publish(server, params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
async def did_change(server: LeakcheckServer, params: lsp.DidChangeTextDocumentParams) -> None:
    """Show the findings of the new text once typing rests."""
    uri, version = params.text_document.uri, params.text_document.version
    await asyncio.sleep(PAUSE_S)
    document = server.workspace.text_documents.get(uri)
    if document is not None and document.version == version:
        _publish(server, uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
def did_save(server: LeakcheckServer, params: lsp.DidSaveTextDocumentParams) -> None:
    """Check every open document again, since what it imports or its settings may have changed."""
    server.forget_files()
    server.findings.clear()
    for uri in list(server.workspace.text_documents):
        _publish(server, uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(server: LeakcheckServer, params: lsp.DidCloseTextDocumentParams) -> None:
    """Take a closed document's findings away."""
    server.findings.pop(params.text_document.uri, None)
    server.text_document_publish_diagnostics(
        lsp.PublishDiagnosticsParams(params.text_document.uri, [])
    )


@server.feature(
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
)
def code_action(server: LeakcheckServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """Offer the fixes of the findings in the range, and to accept each by a comment."""
    uri, wanted = params.text_document.uri, params.range
    actions = []
    for finding in server.check(uri):
        span = _span(server, uri, finding)
        if span.end < wanted.start or wanted.end < span.start:
            continue
        diagnostic = _diagnostic(server, uri, finding)
        fix = finding.fix
        if fix is not None and fix.edits and fix.safety != "display":
            preferred = fix.safety == "safe"
            title = f"leakcheck: {fix.title}"
            actions.append(_action(server, uri, title, fix.edits, diagnostic, preferred))
        if finding.rule != UnusedSuppression.slug:
            source = server.workspace.get_text_document(uri).source
            title = f"leakcheck: ignore {finding.rule} here"
            edits = ignore_edits(source, [finding], "")
            actions.append(_action(server, uri, title, edits, diagnostic, False))
    return actions


def _publish(server: LeakcheckServer, uri: str) -> None:
    diagnostics = [_diagnostic(server, uri, finding) for finding in server.check(uri)]
    version = server.workspace.get_text_document(uri).version
    server.text_document_publish_diagnostics(
        lsp.PublishDiagnosticsParams(uri, diagnostics, version)
    )


def _diagnostic(server: LeakcheckServer, uri: str, finding: Finding) -> lsp.Diagnostic:
    return lsp.Diagnostic(
        range=_span(server, uri, finding),
        message=f"{finding.message}\n{finding.help}".rstrip(),
        severity=SEVERITIES[finding.severity],
        code=finding.rule,
        source="leakcheck",
        related_information=_related(server, finding) or None,
    )


def _related(server: LeakcheckServer, finding: Finding) -> list[lsp.DiagnosticRelatedInformation]:
    """Return the places a finding follows from, each in its file, for a client that shows them."""
    document = server.client_capabilities.text_document
    shows = document.publish_diagnostics if document is not None else None
    if shows is None or not shows.related_information:
        return []
    found = []
    for each in finding.evidence:
        uri = from_fs_path(str(absolute(Path(each.location.path)))) or ""
        place = lsp.Location(uri, _range(server, uri, each.location))
        found.append(lsp.DiagnosticRelatedInformation(place, said(each)))
    return found


def _span(server: LeakcheckServer, uri: str, finding: Finding) -> lsp.Range:
    return _range(server, uri, finding.location)


def _range(server: LeakcheckServer, uri: str, at: Location) -> lsp.Range:
    return server.range(uri, Edit(at.line, at.column, at.end_line, at.end_column, ""))


def _action(
    server: LeakcheckServer,
    uri: str,
    title: str,
    edits: tuple[Edit, ...],
    diagnostic: lsp.Diagnostic,
    preferred: bool,
) -> lsp.CodeAction:
    changes = [lsp.TextEdit(server.range(uri, edit), edit.text) for edit in edits]
    return lsp.CodeAction(
        title=title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=preferred,
        edit=lsp.WorkspaceEdit(changes={uri: changes}),
    )
