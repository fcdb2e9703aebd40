"""The language server, asked by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import pytest

pygls_client = pytest.importorskip("pygls.lsp.client")

from lsprotocol import types as lsp  # noqa: E402

from leakcheck.experiments import Revision  # noqa: E402

pytestmark = pytest.mark.usefixtures("forked_python")

TOY_RULES = Path(__file__).parent / "toy_rules"
PATIENCE_S = 60  # how long a slow machine may take; nothing here depends on time
CAPABLE = lsp.ClientCapabilities(
    text_document=lsp.TextDocumentClientCapabilities(
        publish_diagnostics=lsp.PublishDiagnosticsClientCapabilities(related_information=True)
    )
)
LEAKY = "x = '😀'; keep(loss)\ntotal += loss\n"


class Editor:
    """A client that opens, changes and saves one document, and waits for its diagnostics."""

    def __init__(self, client: pygls_client.LanguageClient, path: Path) -> None:
        self.client, self.path, self.uri, self.version = client, path, path.as_uri(), 0
        self._published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self._published.put_nowait(params)

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        published = await asyncio.wait_for(self._published.get(), PATIENCE_S)
        assert published.uri == self.uri
        return list(published.diagnostics)

    async def open(self, text: str) -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(self.uri, "python", self.version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    async def change(self, text: str) -> list[lsp.Diagnostic]:
        self.version += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.version, self.uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return await self.diagnostics()

    async def save(self) -> list[lsp.Diagnostic]:
        identifier = lsp.TextDocumentIdentifier(self.uri)
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(identifier))
        return await self.diagnostics()

    async def actions(self, line: int) -> dict[str, list[lsp.TextEdit]]:
        place = lsp.Range(lsp.Position(line, 12), lsp.Position(line, 12))
        answer = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(self.uri), place, lsp.CodeActionContext([])
            )
        )
        return {action.title: action.edit.changes[self.uri] for action in answer or ()}


@pytest.fixture
def edit(tmp_path):
    """Run a conversation with a server that was started for it."""
    settings = f'rule-sets = ["{TOY_RULES}"]\nselect = ["TOY1", "LK001"]\n'
    (tmp_path / "leakcheck.toml").write_text(settings)

    async def talk(conversation: Callable[[Editor], Awaitable[None]]) -> None:
        client = pygls_client.LanguageClient("editor", "1")
        await client.start_io(sys.executable, "-m", "leakcheck", "lsp")
        parameters = lsp.InitializeParams(CAPABLE, root_uri=tmp_path.as_uri())
        await asyncio.wait_for(client.initialize_async(parameters), PATIENCE_S)
        client.initialized(lsp.InitializedParams())
        await conversation(Editor(client, tmp_path / "train.py"))
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    return lambda conversation: asyncio.run(talk(conversation))


def test_findings_are_diagnostics_in_the_clients_units(edit):
    async def conversation(editor):
        first, second = await editor.open(LEAKY)

        assert first.range == lsp.Range(lsp.Position(0, 10), lsp.Position(0, 20))
        assert (first.code, first.source) == ("keeps-loss", "leakcheck")
        assert first.message == "`loss` is kept with its graph\ngive it loss.detach()"
        assert first.severity == lsp.DiagnosticSeverity.Warning
        assert (second.code, second.severity) == ("sums-loss", lsp.DiagnosticSeverity.Error)

    edit(conversation)


def test_diagnostics_follow_the_text_and_a_text_that_does_not_parse_has_none(edit):
    async def conversation(editor):
        await editor.open("x = 1\n")

        assert [d.code for d in await editor.change(LEAKY)] == ["keeps-loss", "sums-loss"]
        assert await editor.change("def f(:\n") == []
        assert [d.code for d in await editor.change("keep(loss)\n")] == ["keeps-loss"]

    edit(conversation)


def test_fixes_and_comments_are_offered_as_quick_fixes(edit):
    async def conversation(editor):
        await editor.open(LEAKY)

        actions = await editor.actions(0)

        assert list(actions) == ["leakcheck: detach it", "leakcheck: ignore keeps-loss here"]
        (fix,) = actions["leakcheck: detach it"]
        assert (fix.range.start, fix.range.end) == (lsp.Position(0, 19), lsp.Position(0, 19))
        assert fix.new_text == ".detach()"
        (comment,) = actions["leakcheck: ignore keeps-loss here"]
        assert (comment.range.start, comment.new_text) == (
            lsp.Position(0, 20), "  # leakcheck: ignore[keeps-loss]"
        )  # fmt: skip
        assert list(await editor.actions(1)) == [
            "leakcheck: add a number", "leakcheck: ignore sums-loss here"
        ]  # fmt: skip

    edit(conversation)


def test_of_a_file_that_is_gone_nothing_is_offered(edit, tmp_path):
    async def conversation(editor: Editor) -> None:
        editor.uri = (tmp_path / "gone.py").as_uri()
        assert await editor.actions(0) == {}

    edit(conversation)


def test_an_edit_that_a_run_has_proved_is_offered_while_the_text_is_the_proved_one(edit, tmp_path):
    after = LEAKY.replace("loss", "loss.item()", 1)
    revision = Revision("train.py", LEAKY, after)
    proof = {
        "sha256": revision.sha256,
        "title": "keep the number",
        "lines": [1],
        "edits": [asdict(each) for each in revision.edits],
    }
    (tmp_path / "fix.json").write_text(json.dumps({"proved": [proof]}))
    with (tmp_path / "leakcheck.toml").open("a") as settings:
        settings.write('proofs = ["fix.json"]\n')

    async def conversation(editor):
        await editor.open(LEAKY)
        title = "leakcheck: keep the number (proved by a run)"
        (line,) = (await editor.actions(0))[title]
        assert line.new_text == after.splitlines(keepends=True)[0]
        await editor.change(f"{LEAKY}\n")
        assert title not in await editor.actions(0)

    edit(conversation)


def test_saving_reads_imported_files_and_settings_anew(edit):
    async def conversation(editor):
        assert await editor.open("from meters import add\nadd(1)\n") == []

        (editor.path.parent / "meters.py").write_text("def add(x):\n    keep(x)\n")
        assert [d.code for d in await editor.save()] == ["calls-keeper"]

        (editor.path.parent / "leakcheck.toml").write_text("select = ['LK001']\n")
        assert await editor.save() == []

    edit(conversation)


def test_the_places_a_finding_follows_from_are_related_information(edit, tmp_path):
    meters = tmp_path / "meters.py"
    meters.write_text(
        "class Sum:\n"
        "    def __init__(self):\n"
        "        self.total = 0\n"
        "    def update(self, value):\n"
        "        self.total += value\n"
    )
    (tmp_path / "leakcheck.toml").write_text('select = ["undetached-meter"]\n')
    training = (
        "import torch\n"
        "from meters import Sum\n"
        "def train(model, loader):\n"
        "    seen = Sum()\n"
        "    for x in loader:\n"
        "        loss = model(x)\n"
        "        loss.backward()\n"
        "        seen.update(loss)\n"
    )

    async def conversation(editor):
        (diagnostic,) = await editor.open(training)

        told = diagnostic.related_information
        assert [(each.location.uri, each.location.range.start.line) for each in told] == [
            (editor.uri, 5), (editor.uri, 7), (meters.as_uri(), 4)
        ]  # fmt: skip
        assert [each.message for each in told] == [
            "`model` gives it its graph", "handed on to `seen.update`", "kept in `self.total`"
        ]  # fmt: skip

    edit(conversation)
