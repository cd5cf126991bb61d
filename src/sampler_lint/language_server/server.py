"""What the server does when the editor tells of a change, asks for actions, or hovers."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from sampler_lint import __version__, engine
from sampler_lint.config import FILES, ConfigError, Lookup
from sampler_lint.findings import Finding
from sampler_lint.language_server import convert, notebooks
from sampler_lint.language_server.edited import Readable, moved, typed_since
from sampler_lint.language_server.notebooks import OpenNotebook
from sampler_lint.reporters import rule_url
from sampler_lint.rules import every_rule, page
from sampler_lint.source import NOTEBOOK, SourceError, SourceFile, as_declared

#: Seconds without a keystroke before an open file is checked.
QUIET = 0.25

_FIX_ALL = "source.fixAll.samplerLint"
#: An editor's command, with the document and the line, counted from 0.
_EXPLAIN = "sampler-lint.explain"
#: What is checked, and what says how. (Where a project writes its logs, a ``*.txt`` is no news.)
_WATCHED = tuple(f"**/{name}" for name in ("*.py", f"*{NOTEBOOK}", *FILES, ".gitignore"))
#: An editor asks for the other once for each cell, and would make the edits as often.
_FIX_NOTEBOOK = f"notebook.{_FIX_ALL}"
_CODE = re.compile(r"\b[A-Z]{2,}[0-9]{3}\b")


class Server(LanguageServer):
    """One editor's session: its open files, and what was last found in them."""

    def __init__(self, lookup: Callable[[], Lookup]) -> None:
        super().__init__("sampler-lint", __version__, notebook_document_sync=notebooks.SYNC)
        self._lookup = lookup
        self._session = engine.Session()
        self._shown: dict[str, list[tuple[Finding, types.Diagnostic]]] = {}
        """By document URI."""
        self._checked: Mapping[str, bytes] = {}
        """The open files' contents at the last check."""
        self._readable = Readable(engine.parses)
        self._unreadable: frozenset[str] = frozenset()
        """Those of them that were shown what was found before somebody began to type."""
        self._written = False
        """Whether files were written by others since the last check."""
        self._due: asyncio.Task[None] | None = None
        self._checking = asyncio.Lock()
        self.shut_down = False
        """Whether the editor has asked for it."""

    # -- the editor's files

    def open_files(self) -> dict[str, str]:
        """The URIs of the open Python files by absolute path."""
        opened = {}
        for uri in self.workspace.text_documents:
            path = to_fs_path(uri)
            if path is not None and uri.startswith("file:") and path.endswith(".py"):
                opened[str(Path(path).absolute())] = uri
        return opened

    def contents(self) -> dict[str, bytes]:
        """What the editor holds, saved or not, by absolute path."""
        documents = self.workspace.text_documents
        held = {path: as_declared(documents[uri].source) for path, uri in self.open_files().items()}
        return held | {path: each.data for path, each in notebooks.opened(self.workspace).items()}

    def file(self, path: str) -> SourceFile | None:
        """The file at ``path`` as the editor has it, or as it is on disk."""
        if path.endswith(NOTEBOOK) and (notebook := notebooks.opened(self.workspace).get(path)):
            return notebook
        data = self.contents().get(path)
        try:
            return SourceFile.read(path) if data is None else SourceFile(path, data)
        except SourceError:
            return None

    def units(self, text: str) -> int:
        """How long the client thinks ``text`` is."""
        return int(self.workspace.position_codec.client_num_units(text))

    # -- checking

    def _configured(self) -> engine.OptionsOf:
        """What the configurations say now; asking raises ConfigError where one cannot be used."""
        lookup = self._lookup()
        return lambda folder: lookup.at(folder).options

    def check_soon(self, delay: float = QUIET) -> None:
        """Check the open files unless something changes before ``delay`` seconds are over."""
        if self._due is not None:
            self._due.cancel()
        self._due = asyncio.get_running_loop().create_task(self._check_after(delay))

    async def _check_after(self, delay: float) -> None:
        await asyncio.sleep(delay)
        self._due = None
        # A check that has begun is not given up: its thread would go on anyway.
        async with self._checking:
            # The model before this one is a large cycle, and a collection that is made only after
            # so many new objects would let dozens of them pile up. One is made when the editor has
            # been told; what Python starts before that looks at a model that is still needed.
            gc.disable()
            try:
                await self._check_what_is_open()
            finally:
                gc.collect()
                gc.enable()

    async def _check_what_is_open(self) -> None:
        opened, contents = self.open_files(), self.contents()
        sheets = notebooks.opened(self.workspace)
        documents = self.workspace.text_documents
        versions = {uri: documents[uri].version for uri in opened.values()}
        try:
            if self._written:
                self._written = False
                self._session.outdate()
            read = await asyncio.to_thread(self._readable, contents)
            found = await asyncio.to_thread(self._check, [*opened, *sheets], read)
        except ConfigError as error:
            self.window_show_message(
                types.ShowMessageParams(types.MessageType.Error, f"sampler-lint: {error}")
            )
            return
        typed = typed_since(read, contents)
        findings = [each for each in (moved(one, typed) for one in found) if each is not None]
        self._checked, self._unreadable = contents, frozenset(typed)
        self._publish(opened, versions, contents, findings)
        self._publish_cells(sheets, findings)

    def _check(self, paths: Sequence[str], contents: Mapping[str, bytes]) -> list[Finding]:
        """All findings in ``paths``, each under its own configuration; other paths are read.

        An excluded file has none though it is open: an editor opens files that nobody asks about.
        """
        configured = self._configured()
        asked = self._session.not_excluded(paths, configured)
        if not asked:
            return []
        report = engine.check(asked, configured, overlay=contents, session=self._session)
        return report.findings

    def _publish(
        self,
        opened: Mapping[str, str],
        versions: Mapping[str, int | None],
        contents: Mapping[str, bytes],
        findings: Sequence[Finding],
    ) -> None:
        sorted_out = convert.by_path(findings)
        documents = self.workspace.text_documents
        for path, uri in opened.items():
            document = documents.get(uri)
            if document is None or document.version != versions[uri]:
                continue  # closed, or typed in meanwhile: another check is due
            try:
                source = SourceFile(path, contents[path])
            except SourceError:
                continue
            self._shown[uri] = [
                (finding, convert.diagnostic(finding, source, self.file, self.units))
                for finding in sorted_out.get(path, ())
            ]
            self._tell(uri, document.version)

    def _publish_cells(
        self, checked: Mapping[str, OpenNotebook], findings: Sequence[Finding]
    ) -> None:
        sorted_out = convert.by_path(findings)
        now = notebooks.opened(self.workspace)
        for path, notebook in checked.items():
            if path not in now or notebook.state != now[path].state:
                continue  # closed, or typed in meanwhile: another check is due
            shown: dict[str, list[tuple[Finding, types.Diagnostic]]]
            shown = {uri: [] for uri in notebook.cells}
            for finding in sorted_out.get(path, ()):
                if finding.cell is not None:
                    shown[notebook.cells[finding.cell.number - 1]].append(
                        (finding, convert.diagnostic(finding, notebook, self.file, self.units))
                    )
            self._shown.update(shown)
            for uri in shown:
                self._tell(uri, self.workspace.get_text_document(uri).version)

    def _tell(self, uri: str, version: int | None = None) -> None:
        shown = [diagnostic for _, diagnostic in self._shown.get(uri, ())]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown, version))

    # -- files that others write

    async def watch(self) -> None:
        """Ask the editor to tell of files that are written, if it can be asked."""
        workspace = self.client_capabilities.workspace
        watching = workspace and workspace.did_change_watched_files
        if watching and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            await self.client_register_capability_async(
                types.RegistrationParams([types.Registration(method, method, options)])
            )

    def written(self, changes: Sequence[types.FileEvent]) -> None:
        """Look at the disk again, unless it is only open files that were saved."""
        held = self.contents()
        for change in changes:
            path = to_fs_path(change.uri)
            saved = change.type == types.FileChangeType.Changed
            if path is None or not saved or str(Path(path).absolute()) not in held:
                self._written = True
        self.check_soon()

    def forget(self, uri: str) -> None:
        """A closed file has no diagnostics."""
        self._shown.pop(uri, None)
        self._tell(uri)

    # -- answers

    def actions(
        self, uri: str, range_: types.Range, only: Sequence[str] | None
    ) -> list[types.CodeAction]:
        """What can be done about the findings in a range, or in the whole file."""
        actions: list[types.CodeAction] = []
        notebook = self.workspace.get_notebook_document(cell_uri=uri)
        place = to_fs_path(uri if notebook is None else notebook.uri)
        path = str(Path(place).absolute()) if place else ""
        source = self.file(path) if path else None
        # Fixes are offsets: after a keystroke, even in another cell, they wait for the next check.
        current = self.contents() == self._checked and path not in self._unreadable
        if source is not None and current and _asked(types.CodeActionKind.QuickFix, only):
            for finding, shown in self._shown.get(uri, ()):
                if convert.touches(shown.range, range_):
                    offered = (
                        convert.quick_fix(finding, shown, self.file, self.units),
                        convert.ignore(finding, shown, source, uri, self.units),
                    )
                    actions += [action for action in offered if action is not None]
        fix_all = _FIX_ALL if notebook is None else _FIX_NOTEBOOK
        if only and _asked(fix_all, only):
            actions += self._fix_all(path, fix_all)
        return actions

    def _fix_all(self, path: str, kind: str) -> list[types.CodeAction]:
        """All safe fixes of an open file or notebook, as ``--fix`` applies them."""
        contents = self.contents()
        if path not in contents:
            return []
        try:
            fixed = engine.fix([path], self._configured(), write=False, overlay=contents)
        except ConfigError:
            return []
        changes: dict[str, list[types.TextEdit]] = {}
        for name, (old, new) in fixed.changed.items():
            file = self.file(str(Path(name).absolute()))
            if isinstance(file, OpenNotebook):
                changes |= convert.cell_edits(file, new, self.units)
                continue
            texts = [SourceFile(name, data).text for data in (old, new)]
            edit = convert.replacement(texts[0], texts[1], self.units)
            changes[self._uri(name)] = [edit]
        if not changes:
            return []
        return [
            types.CodeAction(
                title="sampler-lint: fix all that is safe to fix",
                kind=kind,
                edit=types.WorkspaceEdit(changes=changes),
            )
        ]

    def _uri(self, name: str) -> str:
        path = str(Path(name).absolute())
        return self.open_files().get(path) or from_fs_path(path) or Path(path).as_uri()

    def explain(self, uri: str, line: int) -> list[str]:
        """What is known about a line, counted from 0, and why each rule spoke or kept silent."""
        from sampler_lint.explain import explain

        path, cell = to_fs_path(uri) or uri, None
        for name, notebook in notebooks.opened(self.workspace).items():
            if uri in notebook.cells:
                path, cell = name, notebook.cells.index(uri) + 1
        try:
            return explain(path, line + 1, self.contents(), self._configured(), cell)
        except (SourceError, ConfigError) as error:
            return [error.error.reason if isinstance(error, SourceError) else str(error)]

    def hover(self, uri: str, position: types.Position) -> types.Hover | None:
        """The page of the rule whose finding, or whose code, is at a position."""
        for finding, shown in self._shown.get(uri, ()):
            if convert.within(shown.range, position):
                return types.Hover(_page(finding.code), shown.range)
        document = self.workspace.get_text_document(uri)
        if position.line < len(document.lines):
            line = document.lines[position.line]
            for word in _CODE.finditer(line):
                start, end = (self.units(line[:offset]) for offset in word.span())
                if start <= position.character <= end and _page(word[0]).value:
                    where = types.Range(
                        types.Position(position.line, start), types.Position(position.line, end)
                    )
                    return types.Hover(_page(word[0]), where)
        return None


def _asked(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client that wants ``only`` some kinds of actions wants this one."""
    return not only or any(kind == each or kind.startswith(f"{each}.") for each in only)


def _page(code: str) -> types.MarkupContent:
    """The rule's docstring as Markdown; empty if there is no such rule."""
    rule = next((rule for rule in every_rule() if rule.code == code), None)
    url = rule_url(code)
    title = f"[{code}]({url})" if url else code
    text = "" if rule is None else f"## {title} `{rule.name}`\n\n{page(rule)}"
    return types.MarkupContent(types.MarkupKind.Markdown, text)


def make_server(lookup: Callable[[], Lookup] = Lookup) -> Server:
    """A server that answers what editors ask; start it with ``start_io``.

    ``lookup`` is asked for the configurations as they are now, before each check.
    """
    server = Server(lookup)

    @server.command(_EXPLAIN)
    def explained(server: Server, uri: str, line: int) -> list[str]:
        return server.explain(uri, line)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def opened_or_saved(server: Server, params: object) -> None:
        server.check_soon(0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(server: Server, params: types.DidChangeTextDocumentParams) -> None:
        server.check_soon()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(server: Server, params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)
        server.check_soon()

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def notebook_changed(
        server: Server, params: types.DidChangeNotebookDocumentParams
    ) -> None:
        cells = params.change.cells
        if cells is not None and cells.structure is not None:
            for cell in cells.structure.did_close or ():
                server.forget(cell.uri)
        server.check_soon()

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def notebook_closed(server: Server, params: types.DidCloseNotebookDocumentParams) -> None:
        for cell in params.cell_text_documents:
            server.forget(cell.uri)
        server.check_soon()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def written(server: Server, params: types.DidChangeWatchedFilesParams) -> None:
        server.written(params.changes)

    @server.feature(types.INITIALIZED)
    async def initialized(server: Server, params: types.InitializedParams) -> None:
        await server.watch()

    @server.feature(types.SHUTDOWN)
    def shutdown(server: Server, params: None) -> None:
        server.shut_down = True

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.QuickFix, _FIX_ALL, _FIX_NOTEBOOK]
        ),
    )
    def actions(server: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        return server.actions(params.text_document.uri, params.range, params.context.only)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(server: Server, params: types.HoverParams) -> types.Hover | None:
        return server.hover(params.text_document.uri, params.position)

    return server
