"""The language server, spoken to by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the extra `server` is not installed")

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.workspace import Workspace

from cases import FIXTURES
from sampler_lint import engine, trees
from sampler_lint.findings import (
    Applicability,
    Edit,
    Finding,
    Fix,
    Place,
    Position,
    Related,
)
from sampler_lint.language_server import convert, edited, notebooks
from sampler_lint.language_server import server as server_module
from sampler_lint.source import SourceFile

FIXTURE = FIXTURES / "SMP101/torch-batch-sampler"


class Editor:
    """A client with what the server told it."""

    def __init__(self, root: Path, *command: str) -> None:
        self.root = root
        self.command = command or ("-m", "sampler_lint", "server")
        self.client = LanguageClient("test-editor", "1")
        self.workspace: types.WorkspaceClientCapabilities | None = None
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self._told = asyncio.Event()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def told(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = list(params.diagnostics)
            self._told.set()

    async def __aenter__(self) -> Editor:
        await self.client.start_io(sys.executable, *self.command)
        answer = await self.client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    workspace=self.workspace,
                    notebook_document=types.NotebookDocumentClientCapabilities(
                        types.NotebookDocumentSyncClientCapabilities()
                    ),
                ),
                root_uri=self.root.as_uri(),
            )
        )
        self.capabilities = answer.capabilities
        self.client.initialized(types.InitializedParams())
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    async def told_of(self, uri: str) -> list[types.Diagnostic]:
        """The next diagnostics of a file."""
        self.diagnostics.pop(uri, None)
        while uri not in self.diagnostics:
            self._told.clear()
            await asyncio.wait_for(self._told.wait(), 60)
        return self.diagnostics[uri]

    async def open(self, path: Path, text: str | None = None) -> list[types.Diagnostic]:
        text = path.read_bytes().decode() if text is None else text
        item = types.TextDocumentItem(path.as_uri(), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.told_of(path.as_uri())

    async def type(self, path: Path, text: str, version: int = 2) -> list[types.Diagnostic]:
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, path.as_uri()),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return await self.told_of(path.as_uri())

    async def actions(
        self, document: Path | str, range_: types.Range, only: list[str] | None = None
    ) -> list[types.CodeAction]:
        uri = document if isinstance(document, str) else document.as_uri()
        answer = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri),
                range_,
                types.CodeActionContext(diagnostics=[], only=only),
            )
        )
        return [each for each in answer or () if isinstance(each, types.CodeAction)]


def in_editor(root: Path, play: Callable[[Editor], Awaitable[None]], *command: str) -> None:
    async def session() -> None:
        async with Editor(root, *command) as editor:
            await play(editor)

    asyncio.run(asyncio.wait_for(session(), 120))


@pytest.fixture
def project(tmp_path, monkeypatch):
    shutil.copytree(FIXTURE / "bad", tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """A text after an editor made the edits (its columns are UTF-16 units)."""
    lines = text.splitlines(keepends=True)

    def offset(place: types.Position) -> int:
        before = sum(map(len, lines[: place.line]))
        line = lines[place.line].rstrip("\r\n") if place.line < len(lines) else ""
        units = line.encode("utf-16-le")[: 2 * place.character]
        return before + len(units.decode("utf-16-le"))

    for edit in sorted(edits, key=lambda each: each.range.start, reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def test_a_finding_its_fix_and_its_page(project):
    path = project / "train.py"

    async def play(editor: Editor) -> None:
        (shown,) = await editor.open(path)
        assert (shown.code, shown.source) == ("SMP101", "sampler-lint")
        assert shown.message.startswith("`train_loader.sampler.set_epoch()` does not reach")
        lines = path.read_text().splitlines()
        line = lines[shown.range.start.line]
        assert line[shown.range.start.character : shown.range.end.character] == (
            "train_loader.sampler.set_epoch(epoch)"
        )
        (related,) = shown.related_information or ()
        assert "DataLoader(" in lines[related.location.range.start.line]
        assert related.location.uri == path.as_uri()

        fix, silence = await editor.actions(path, shown.range)
        assert fix.title.startswith("SMP101: Call `set_epoch` on")
        assert fix.is_preferred
        assert fix.edit is not None
        assert fix.edit.changes is not None
        fixed = applied(path.read_text(), list(fix.edit.changes[path.as_uri()]))
        assert fixed == (FIXTURE / "fixed/train.py").read_text()

        hover = await editor.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), shown.range.start)
        )
        assert hover is not None
        assert isinstance(hover.contents, types.MarkupContent)
        assert "## Why is this bad?" in hover.contents.value

        assert silence.edit is not None
        assert silence.edit.changes is not None
        silenced = applied(path.read_text(), list(silence.edit.changes[path.as_uri()]))
        assert await editor.type(path, silenced) == []
        word = silenced.splitlines()[shown.range.end.line].index("SMP101")
        hover = await editor.client.text_document_hover_async(
            types.HoverParams(
                types.TextDocumentIdentifier(path.as_uri()),
                types.Position(shown.range.end.line, word + 2),
            )
        )
        assert hover is not None

        assert await editor.type(path, fixed, 3) == []

    in_editor(project, play)


def test_fix_all_is_offered_when_asked_for(project):
    path = project / "train.py"

    async def play(editor: Editor) -> None:
        await editor.open(path)
        whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
        (fix,) = await editor.actions(path, whole, ["source.fixAll"])
        assert fix.kind == "source.fixAll.samplerLint"
        assert fix.edit is not None
        assert fix.edit.changes is not None
        edits = list(fix.edit.changes[path.as_uri()])
        assert applied(path.read_text(), edits) == (FIXTURE / "fixed/train.py").read_text()
        assert await editor.actions(path, whole, ["source.organizeImports"]) == []
        assert path.read_bytes() == (FIXTURE / "bad/train.py").read_bytes()

    in_editor(project, play)


def test_columns_are_the_clients(project):
    path = project / "train.py"
    text = path.read_text().replace(
        "            train_loader.sampler.set_epoch(epoch)",
        "            print('𝄞é'); train_loader.sampler.set_epoch(epoch)",
    )

    async def play(editor: Editor) -> None:
        (shown,) = await editor.open(path, text)
        # The clef is one character, and two UTF-16 units.
        assert shown.range.start.character == len("            print('𝄞é'); ") + 1
        fix, _ = await editor.actions(path, shown.range)
        assert fix.edit is not None
        assert fix.edit.changes is not None
        fixed = applied(text, list(fix.edit.changes[path.as_uri()]))
        assert "print('𝄞é'); train_loader.batch_sampler.sampler.set_epoch(epoch)" in fixed

    in_editor(project, play)


def test_what_is_typed_in_one_file_is_seen_in_another(tmp_path, monkeypatch):
    bad = FIXTURES / "SMP101"
    case = next(case for case in sorted(bad.iterdir()) if len(list((case / "bad").glob("*"))) > 1)
    shutil.copytree(case / "bad", tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    files = sorted(tmp_path.rglob("*.py"))

    async def play(editor: Editor) -> None:
        shown = {path: await editor.open(path) for path in files}
        (found,) = [path for path, each in shown.items() if each]
        other = next(path for path in files if path != found)
        # Nothing of the other file is left, so nothing is known of the loader any more.
        editor.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(2, other.as_uri()),
                [types.TextDocumentContentChangeWholeDocument("")],
            )
        )
        assert await editor.told_of(found.as_uri()) == []

    in_editor(tmp_path, play)


def test_a_file_that_is_being_typed_is_no_error(project):
    path = project / "train.py"

    async def play(editor: Editor) -> None:
        text = path.read_text()
        (shown,) = await editor.open(path)
        (related,) = shown.related_information or ()
        typed = text.replace("train_loader = DataLoader", "x = 1\n    train_loader = DataLoader")
        (now,) = await editor.type(path, f"def (\n{typed}\nprint(")
        assert (now.code, now.message) == (shown.code, shown.message)
        start, end = shown.range.start, shown.range.end
        assert now.range == types.Range(
            types.Position(start.line + 2, start.character),
            types.Position(end.line + 2, end.character),
        )
        (moved,) = now.related_information or ()
        assert moved.location.range.start.line == related.location.range.start.line + 2
        assert await editor.actions(path, now.range) == []  # its places are of another text
        spelled = "train_loader.sampler.set_epoch(epoch)"
        assert await editor.type(path, f"print(\n{text.replace(spelled, 'pass')}", 3) == []
        assert await editor.type(path, "x = 1\n", 4) == []
        assert await editor.type(path, "print(", 5) == []
        assert len(await editor.type(path, text, 6)) == 1
        params = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        editor.client.text_document_did_close(params)
        assert await editor.told_of(path.as_uri()) == []

    in_editor(project, play)


#: The server, and besides a request for what it holds in memory.
PROBED = """
import ast, gc, sys
from sampler_lint.cli import run
from sampler_lint.language_server import server as module
from sampler_lint.domain.model import Model

def probed(*given, make=module.make_server):
    server = make(*given)

    @server.feature("test/memory")
    def memory(server, *asked):
        held = gc.get_objects()
        count = lambda kind: sum(isinstance(each, kind) for each in held)
        return [gc.isenabled(), count(Model), count(ast.FunctionDef)]

    return server

module.make_server = probed
sys.exit(run())
"""


def test_an_edit_leaves_nothing_in_memory(project):
    path = project / "train.py"
    # A sampler that is run on paper, and whose tree is read for that.
    sampler = FIXTURES / "SMP304/at-most-one/bad/train.py"
    shutil.copy(sampler, project / "sampler.py")

    async def play(editor: Editor) -> None:
        held = []
        await editor.open(path)
        for version in range(2, 6):
            await editor.type(path, f"{path.read_text()}\n# {version}\n", version)
            held.append(await editor.client.protocol.send_request_async("test/memory", None))
        collects, models, functions = held[0]
        assert (collects, models) == (True, 1)
        assert functions
        assert held == [held[0]] * len(held)

    in_editor(project, play, "-c", PROBED, "server")


@pytest.mark.parametrize(("methods", "code"), [(("shutdown", "exit"), 0), (("exit",), 1)])
def test_it_ends_as_the_protocol_wants_it(project, methods, code):
    uri, text = (project / "train.py").as_uri(), (project / "train.py").read_text()
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    hello = {"processId": None, "rootUri": project.as_uri(), "capabilities": {}}
    said = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "initialized", "params": {}},
        {"method": types.TEXT_DOCUMENT_DID_OPEN, "params": {"textDocument": item}},
        *({"method": each, **({"id": 2} if each == "shutdown" else {})} for each in methods),
    ]
    bodies = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in said]
    stream = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(each), each) for each in bodies)
    command = [sys.executable, "-m", "sampler_lint", "server"]
    done = subprocess.run(command, input=stream, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr.decode()) == (code, "")


def cell_uri(number: int) -> str:
    """As VS Code writes them: some characters of the fragment are escaped."""
    return f"vscode-notebook-cell:/work/train.ipynb#W{number}sZmlsZQ%3D%3D"


def notebook_of(path: Path, *texts: str) -> types.DidOpenNotebookDocumentParams:
    """A notebook: Markdown where the text begins with a heading, else code."""
    kinds = types.NotebookCellKind
    cells, documents = [], []
    for number, text in enumerate(texts, 1):
        is_code = not text.startswith("# ")
        kind = kinds.Code if is_code else kinds.Markup
        cells.append(types.NotebookCell(kind, cell_uri(number)))
        language = "python" if is_code else "markdown"
        documents.append(types.TextDocumentItem(cell_uri(number), language, 1, text))
    notebook = types.NotebookDocument(path.as_uri(), "jupyter-notebook", 1, cells)
    return types.DidOpenNotebookDocumentParams(notebook, documents)


def cells_of(path: Path) -> list[str]:
    """A script in cells, with lines that only IPython knows; the third is what is wrong."""
    head, train, rest = re.split(r"\n+(?=def train\(|def main\()", path.read_text())
    return ["# Training", f"%matplotlib inline\r\n{head}", f"!pip list\n\n{train}", rest]


def test_a_notebook_is_checked_and_fixed_cell_by_cell(project):
    path = project / "train.ipynb"
    texts = cells_of(project / "train.py")
    (project / "train.py").unlink()
    content = [
        {"cell_type": "code" if number else "markdown", "source": text.replace("\r", "")}
        for number, text in enumerate(texts)
    ]
    path.write_text(json.dumps({"cells": content}))
    (finding,) = engine.check([str(path)]).findings
    assert finding.cell is not None
    assert finding.cell.number == 3
    start, end = finding.shown
    path.write_text("{}")  # what the editor holds is what counts

    async def play(editor: Editor) -> None:
        sync = editor.capabilities.notebook_document_sync
        assert sync is not None
        assert sync.save
        uri = cell_uri(3)
        editor.client.notebook_document_did_open(notebook_of(path, *texts))
        (shown,) = await editor.told_of(uri)
        assert shown.code == finding.code
        assert shown.range == types.Range(
            types.Position(start.row - 1, start.column - 1),
            types.Position(end.row - 1, end.column - 1),
        )
        (related,) = shown.related_information or ()
        assert related.location.uri == uri
        built = related.location.range.start
        assert texts[2].splitlines()[built.line][built.character :].startswith("DataLoader(")

        hover = await editor.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), shown.range.start)
        )
        assert hover is not None
        assert hover.range == shown.range

        explained = await editor.client.workspace_execute_command_async(
            types.ExecuteCommandParams("sampler-lint.explain", [uri, shown.range.start.line])
        )
        assert explained[0].startswith(f"{path}:cell 3:{start.row}: ")
        assert any(line.startswith(f"  {finding.code} reported: ") for line in explained)

        fix, silence = await editor.actions(uri, shown.range)
        (all_fixed,) = await editor.actions(uri, shown.range, ["notebook.source.fixAll"])
        assert await editor.actions(uri, shown.range, ["source.fixAll"]) == []
        after = []
        for action in (fix, silence, all_fixed):
            assert action.edit is not None
            assert action.edit.changes is not None
            assert list(action.edit.changes) == [uri]
            after.append(applied(texts[2], list(action.edit.changes[uri])))
        fixed, silenced, _ = after
        assert after[2] == fixed
        assert fixed.startswith("!pip list\n")
        assert fixed == cells_of(FIXTURE / "fixed/train.py")[2]
        assert silenced == texts[2].replace("set_epoch(epoch)", "set_epoch(epoch)  # noqa: SMP101")

        def type_(text: str, version: int) -> None:
            edit = types.NotebookDocumentCellContentChanges(
                types.VersionedTextDocumentIdentifier(version, uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
            cells = types.NotebookDocumentCellChanges(text_content=[edit])
            editor.client.notebook_document_did_change(
                types.DidChangeNotebookDocumentParams(
                    types.VersionedNotebookDocumentIdentifier(version, path.as_uri()),
                    types.NotebookDocumentChangeEvent(cells=cells),
                )
            )

        type_(fixed, 2)
        assert await editor.told_of(uri) == []
        type_(silenced, 3)
        assert await editor.told_of(uri) == []
        type_(texts[2], 4)
        assert len(await editor.told_of(uri)) == 1
        type_(f"print(\n{texts[2]}", 5)
        (moved,) = await editor.told_of(uri)
        assert moved.range.start.line == shown.range.start.line + 1
        (related,) = moved.related_information or ()
        assert related.location.range.start.line == built.line + 1
        assert [editor.diagnostics[cell_uri(n)] for n in (1, 2, 4)] == [[], [], []]
        editor.client.notebook_document_did_close(
            types.DidCloseNotebookDocumentParams(
                types.NotebookDocumentIdentifier(path.as_uri()),
                [types.TextDocumentIdentifier(cell_uri(n)) for n in (1, 2, 3, 4)],
            )
        )
        assert await editor.told_of(uri) == []

    in_editor(project, play)


class Desk:
    """A server in this process, without a client: what it would send is kept."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server_module.make_server()
        self.server.protocol._workspace = Workspace(root.as_uri())
        self.shown: list[types.PublishDiagnosticsParams] = []
        self.said: list[str] = []
        monkeypatch.setattr(self.server, "text_document_publish_diagnostics", self.shown.append)
        monkeypatch.setattr(
            self.server, "window_show_message", lambda params: self.said.append(params.message)
        )

    def open(self, path: Path, text: str | None = None, version: int = 1) -> str:
        text = path.read_text() if text is None else text
        item = types.TextDocumentItem(path.as_uri(), "python", version, text)
        self.server.workspace.put_text_document(item)
        return path.as_uri()

    async def hear(self, *features: str | tuple[str, object]) -> None:
        """Handle notifications one right after the other, and do what they ask for."""
        for each in features:
            feature, params = each if isinstance(each, tuple) else (each, None)
            await self.server.protocol.fm.features[feature](params)
        due = self.server._due
        assert due is not None
        await due

    def check(self, *features: str | tuple[str, object]) -> dict[str, list[str]]:
        """The codes that are then shown, by file name."""
        asyncio.run(self.hear(*features or (types.TEXT_DOCUMENT_DID_SAVE,)))
        return {
            Path(each.uri).name: [str(shown.code) for shown in each.diagnostics]
            for each in self.shown
        }


@pytest.fixture
def desk(project, monkeypatch):
    return Desk(project, monkeypatch)


def on_disk(path: Path, kind: types.FileChangeType) -> tuple[str, object]:
    """What an editor tells of a file that something else wrote."""
    params = types.DidChangeWatchedFilesParams([types.FileEvent(path.as_uri(), kind)])
    return types.WORKSPACE_DID_CHANGE_WATCHED_FILES, params


def test_what_others_write_is_seen(desk, project):
    """The loader is built in another file, which is not open."""
    text = (project / "train.py").read_text()
    built = "DataLoader(dataset, batch_sampler=batch_sampler)"
    assert built in text
    helper = project / "helper.py"
    helper.write_text(
        "from torch.utils.data import DataLoader\n\n\n"
        f"def build(dataset, batch_sampler):\n    return {built}\n"
    )
    call = text.replace(built, "build(dataset, batch_sampler)")
    path = project / "train.py"
    desk.open(path, f"from helper import build\n{call}")
    assert desk.check() == {"train.py": ["SMP101"]}
    helper.write_text(helper.read_text().replace("batch_sampler=batch_sampler", "batch_size=4"))
    assert desk.check(on_disk(path, types.FileChangeType.Changed)) == {"train.py": ["SMP101"]}
    # A loader that is given no sampler has none with a `set_epoch`.
    assert desk.check(on_disk(helper, types.FileChangeType.Changed)) == {"train.py": ["SMP103"]}
    pyproject = project / "pyproject.toml"
    helper.unlink()
    desk.open(path, text, version=2)
    assert desk.check(on_disk(helper, types.FileChangeType.Deleted)) == {"train.py": ["SMP101"]}
    pyproject.write_text('[tool.sampler-lint]\nignore = ["SMP101"]\n')
    assert desk.check(on_disk(pyproject, types.FileChangeType.Changed)) == {"train.py": []}


def test_the_editor_is_asked_to_tell_of_files_that_others_write(project):
    path, asked = project / "train.py", []

    async def play(editor: Editor) -> None:
        while not asked:
            await asyncio.sleep(0.01)
        (registration,) = asked
        assert registration.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        options = registration.register_options
        patterns = {each["globPattern"] for each in options["watchers"]}
        assert {"**/*.py", "**/*.ipynb", "**/pyproject.toml", "**/sampler-lint.toml"} <= patterns
        assert len(await editor.open(path)) == 1
        (project / "pyproject.toml").write_text('[tool.sampler-lint]\nignore = ["SMP101"]\n')
        _, params = on_disk(project / "pyproject.toml", types.FileChangeType.Changed)
        editor.client.workspace_did_change_watched_files(params)
        assert await editor.told_of(path.as_uri()) == []

    async def session() -> None:
        watches = types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
        editor = Editor(project)
        editor.workspace = types.WorkspaceClientCapabilities(did_change_watched_files=watches)

        @editor.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            asked.extend(params.registrations)

        async with editor:
            await play(editor)

    asyncio.run(asyncio.wait_for(session(), 120))


#: A text, what it became, and where each stretch of it in brackets stands then (None: nowhere).
TYPED = [
    ("a\n[b]\nc\n", "x\na\nb\nc\n", "x\na\n[b]\nc\n"),
    ("f([b])\n", "f(x, b)\n", "f(x, [b])\n"),
    ("f([b])\n", "f(b, x\n", "f([b], x\n"),
    ("f([a.b.c])\n", "f(a.x.b.c\n", "f([a.x.b.c]\n"),
    ("a\n[b]\nc\n", "a\nc\n", None),
    ("[ab]\n", "aab\n", "[aab]\n"),
    ("a\n[b\nc]\nd\n", "a\nb\nx(\nc\nd\n", "a\n[b\nx(\nc]\nd\n"),
    ("one\n[é = 1]\n", "one(\n\né = 1\nx", "one(\n\n[é = 1]\nx"),
]


@pytest.mark.parametrize(("old", "new", "expected"), TYPED)
def test_a_finding_moves_with_its_text(old, new, expected):
    def places(marked: str) -> tuple[Position, Position]:
        start, end = marked.index("["), marked.index("]") - 1
        source = SourceFile("a.py", marked.replace("[", "").replace("]", "").encode())
        return source.position(start), source.position(end)

    start, end = places(old)
    finding = Finding("SMP101", "wrong", "a.py", start, end)
    before = old.replace("[", "").replace("]", "").encode()
    path = str(Path("a.py").absolute())
    typed = edited.typed_since({path: before}, {path: new.encode()})
    moved = edited.moved(finding, typed)
    assert (moved and (moved.start, moved.end)) == (expected and places(expected))


def test_what_cannot_be_decoded_is_not_moved():
    path = str(Path("a.py").absolute())
    assert edited.typed_since({path: b"x = 1\n"}, {path: b"# coding: no-such\n"}) == {}
    finding = found(Fix("change", Applicability.SAFE, (Edit("b.py", 0, 1, "y"),)))
    typed = edited.typed_since({path: b"# x\nx\n"}, {path: b"#\n# x\nx\n"})
    moved = edited.moved(finding, typed)
    assert moved is not None
    assert moved.fix == finding.fix  # of a file that nobody types in
    other = edited.moved(found(Fix("change", Applicability.SAFE, (Edit("a.py", 0, 1, ""),))), typed)
    assert other is not None
    assert other.fix is None


def test_typing_on_puts_the_check_off(desk, project, monkeypatch):
    checked = []
    monkeypatch.setattr(desk.server, "_check", lambda paths, contents: checked.append(paths) or [])
    desk.open(project / "train.py")
    desk.check(*[types.TEXT_DOCUMENT_DID_CHANGE] * 3)
    assert len(checked) == 1


def test_only_python_files_are_checked(desk, project):
    desk.open(project / "notes.txt", "import torch")
    desk.open(project / "train.py")
    assert desk.check() == {"train.py": ["SMP101"]}


def test_an_open_file_that_is_excluded_has_no_findings(desk, project):
    desk.open(project / "train.py")
    (project / "sampler-lint.toml").write_text('extend-exclude = ["train.py"]\n')
    assert desk.check() == {"train.py": []}


def test_a_keystroke_does_not_ask_again_what_is_excluded(desk, project, monkeypatch):
    asked, really = [], trees.not_excluded
    monkeypatch.setattr(trees, "not_excluded", lambda *told: asked.append(told[0]) or really(*told))
    path = project / "train.py"
    desk.open(path)
    assert desk.check() == {"train.py": ["SMP101"]}
    desk.open(path, f"# typed\n{path.read_text()}", version=2)
    assert desk.check() == {"train.py": ["SMP101"]}
    assert asked == [[str(path)]]
    ignored = project / ".gitignore"
    ignored.write_text("train.py\n")
    assert desk.check(on_disk(ignored, types.FileChangeType.Created)) == {"train.py": []}
    ignored.unlink()
    assert desk.check(on_disk(ignored, types.FileChangeType.Deleted)) == {"train.py": ["SMP101"]}
    # What a configuration says is asked at each check, told of a change or not.
    (project / "sampler-lint.toml").write_text('extend-exclude = ["train.py"]\n')
    assert desk.check() == {"train.py": []}


def test_what_is_typed_meanwhile_waits_for_its_own_check(desk, project, monkeypatch):
    path = project / "train.py"
    desk.open(path)
    really = desk.server._check

    def check(paths, contents):
        desk.open(path, version=2)
        return really(paths, contents)

    monkeypatch.setattr(desk.server, "_check", check)
    assert desk.check() == {}
    assert desk.check() == {"train.py": ["SMP101"]}


def test_a_configuration_that_cannot_be_used_is_said(desk, project):
    uri = desk.open(project / "train.py")
    (project / "pyproject.toml").write_text("[tool.sampler-lint]\nnonsense = 1\n")
    assert desk.check() == {}
    (said,) = desk.said
    assert said.startswith("sampler-lint: ")
    assert "has no key 'nonsense'" in said
    whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
    assert desk.server.actions(uri, whole, ["source.fixAll"]) == []


def test_a_file_in_no_known_encoding_is_passed_over(desk, project, monkeypatch):
    uri = desk.open(project / "odd.py", "# coding: no-such-encoding\n")
    desk.open(project / "train.py")
    assert desk.check() == {"train.py": ["SMP101"]}
    whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
    assert desk.server.actions(uri, whole, None) == []


def test_a_cell_that_goes_takes_its_findings_along(desk, project):
    texts = cells_of(project / "train.py")
    (project / "train.py").unlink()
    path = project / "train.ipynb"
    workspace = desk.server.workspace
    workspace.put_notebook_document(notebook_of(path, *texts))
    desk.check(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    assert {each.uri: len(each.diagnostics) for each in desk.shown} == {
        cell_uri(1): 0,
        cell_uri(2): 0,
        cell_uri(3): 1,
        cell_uri(4): 0,
    }
    desk.shown.clear()
    gone = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(2, 1),
        did_close=[types.TextDocumentIdentifier(cell_uri(3))],
    )
    change = types.DidChangeNotebookDocumentParams(
        types.VersionedNotebookDocumentIdentifier(2, path.as_uri()),
        types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure=gone)),
    )
    workspace.update_notebook_document(change)
    desk.check((types.NOTEBOOK_DOCUMENT_DID_CHANGE, change))
    assert [(each.uri, len(each.diagnostics)) for each in desk.shown] == [
        (cell_uri(number), 0) for number in (3, 1, 2, 4)
    ]


def test_a_fix_of_several_cells_and_a_module_is_one_action(project):
    workspace = Workspace(project.as_uri())
    path = project / "eda.ipynb"
    workspace.put_notebook_document(notebook_of(path, "x = 1", "# Title", "%time\r\ny = x\r\n"))
    (notebook,) = notebooks.opened(workspace).values()
    opened = {str(path): notebook, str(project / "a.py"): SourceFile("a.py", b"z = 1\n")}
    edits = (
        Edit(str(path), notebook.text.index("1\n#"), notebook.text.index("\n#"), "2"),
        Edit(str(path), notebook.text.index("y ="), notebook.text.index(" = x"), "long"),
        Edit(str(project / "a.py"), 0, 1, "w"),
    )
    finding = found(Fix("change", Applicability.SAFE, edits))
    shown = convert.diagnostic(found(), notebook, opened.get, len)
    action = convert.quick_fix(finding, shown, opened.get, len)
    assert action is not None
    changes = action.edit.changes
    module = (project / "a.py").as_uri()
    assert changes.keys() == {cell_uri(1), cell_uri(3), module}
    assert applied("x = 1", changes[cell_uri(1)]) == "x = 2"
    assert applied("%time\r\ny = x\r\n", changes[cell_uri(3)]) == "%time\r\nlong = x\r\n"
    assert applied("z = 1\n", changes[module]) == "w = 1\n"

    above = found(Fix("change", Applicability.SAFE, (Edit(str(path), 0, 0, "import x\n"),)))
    assert convert.quick_fix(above, shown, opened.get, len) is None
    opened[str(path)] = SourceFile(str(path), notebook.data)  # on disk, and not open
    assert convert.quick_fix(finding, shown, opened.get, len) is None


def test_nothing_is_offered_where_nothing_is_found(desk, project):
    uri = desk.open(project / "train.py")
    desk.check()
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    assert desk.server.actions(uri, start, None) == []
    other = (project / "other.py").as_uri()
    assert desk.server.actions(other, start, ["source.fixAll"]) == []  # it is not open
    fine = desk.open(project / "fine.py", "x = 1\n")
    assert desk.server.actions(fine, start, ["source.fixAll"]) == []


def test_a_fix_is_not_offered_for_what_was_typed_since(desk, project):
    path = project / "train.py"
    uri = desk.open(path)
    desk.check()
    whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
    assert len(desk.server.actions(uri, whole, None)) == 2
    desk.open(path, f"import os\n{path.read_text()}", version=2)
    assert desk.server.actions(uri, whole, None) == []
    desk.check()
    assert len(desk.server.actions(uri, whole, None)) == 2


def test_only_a_rules_code_has_a_page(desk, project):
    uri = desk.open(project / "notes.py", "# SMP101, SMP999 and more\n")
    assert "epoch-only-on-sampler" in desk.server.hover(uri, types.Position(0, 4)).contents.value
    for column in (0, 12, 20):
        assert desk.server.hover(uri, types.Position(0, column)) is None
    assert desk.server.hover(uri, types.Position(7, 0)) is None
    train = desk.open(project / "train.py")
    desk.check()
    assert desk.server.hover(train, types.Position(0, 0)) is None


def found(fix=None, why=()):
    return Finding("SMP101", "wrong", "a.py", Position(1, 1), Position(1, 2), fix, why)


def files(path):
    """One file that can be read."""
    return SourceFile(path, b"x = 1\n") if Path(path).name == "a.py" else None


def test_places_that_cannot_be_read_are_not_related():
    why = (
        Related(Place("a.py", Position(1, 3)), "made here"),
        Related(Place("gone.py", Position(1, 1)), "kept here"),
        Related("", "no place at all"),
    )
    shown = convert.diagnostic(found(why=why), files("a.py"), files, len)
    (related,) = shown.related_information
    assert related.message == "made here"
    assert related.location.range.start == types.Position(0, 2)


@pytest.mark.parametrize(
    ("applicability", "path", "title"),
    [
        (Applicability.SAFE, "a.py", "SMP101: change"),
        (Applicability.UNSAFE, "a.py", "SMP101: change (unsafe: read it first)"),
        (Applicability.DISPLAY, "a.py", None),
        (Applicability.SAFE, "gone.py", None),
    ],
)
def test_a_fix_is_offered_if_it_may_be_applied(applicability, path, title):
    finding = found(Fix("change", applicability, (Edit(path, 0, 1, "y"),)))
    shown = convert.diagnostic(finding, files("a.py"), files, len)
    action = convert.quick_fix(finding, shown, files, len)
    assert (action and action.title) == title
    assert convert.quick_fix(found(), shown, files, len) is None


def test_a_comment_is_offered_only_where_one_can_stand():
    source = files("a.py")
    shown = convert.diagnostic(found(), source, files, len)
    action = convert.ignore(found(), shown, source, "file:///a.py", len)
    assert action is not None
    assert "SMP101" in action.edit.changes["file:///a.py"][0].new_text
    below = Finding("SMP101", "wrong", "a.py", Position(9, 1), Position(9, 2))
    assert convert.ignore(below, shown, source, "file:///a.py", len) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("a", "a"), ("ab", "ab\n"), ("aaa", "aa"), ("a\nb\nc", "a\nx\nc"), ("x", "")],
)
def test_a_replacement_touches_only_what_differs(old, new):
    edit = convert.replacement(old, new, len)
    assert applied(old, [edit]) == new
    assert len(edit.new_text) <= len(new)
    if old and new:
        assert edit.new_text != new or old[0] != new[0]


def test_without_its_library_the_server_says_what_to_install(monkeypatch, capsys):
    from sampler_lint.cli import main

    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    monkeypatch.delitem(sys.modules, "sampler_lint.language_server.server", raising=False)
    assert main(["server"]) == 2
    assert "pip install 'sampler-lint[server]'" in capsys.readouterr().err
