"""Notebooks as editors have them: each cell is a document with a URI of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import Workspace

from sampler_lint.source import NOTEBOOK, SourceError, SourceFile

#: Which notebooks an editor is to tell of. All cells count, so that a cell has the number that it
#: has on the command line.
SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="jupyter-notebook")],
    save=True,
)


class OpenNotebook(SourceFile):
    """A notebook as the editor has it: the text of its code cells, and the cells' own URIs."""

    def __init__(self, path: str, cells: tuple[str, ...], data: bytes) -> None:
        """Read what :func:`opened` wrote of the cells.

        Raises:
            SourceError: there is too much code in it.
        """
        super().__init__(path, data)
        self.cells = cells
        """The URIs of all cells, in order."""

    @property
    def state(self) -> tuple[tuple[str, ...], bytes]:
        """What differs when anything in it does."""
        return self.cells, self.data

    def changed(self, data: bytes) -> Iterator[tuple[str, str, str]]:
        """URI, old text and new text of each cell that ``data`` changes."""
        for uri, old, new in zip(self.cells, _texts(self.data), _texts(data), strict=True):
            if old != new:
                yield uri, old, new


#: Reading parses every cell, and what did not change is asked for again and again.
_read = lru_cache(maxsize=32)(OpenNotebook)


def opened(workspace: Workspace) -> dict[str, OpenNotebook]:
    """The open notebooks by absolute path."""
    found = {}
    for notebook in workspace.notebook_documents.values():
        path = to_fs_path(notebook.uri)
        if path is None or not notebook.uri.startswith("file:") or not path.endswith(NOTEBOOK):
            continue
        path = str(Path(path).absolute())
        cells = tuple(cell.document for cell in notebook.cells)
        data = json.dumps({"cells": [_cell(cell, workspace) for cell in notebook.cells]})
        try:
            found[path] = _read(path, cells, data.encode())
        except SourceError:
            continue
    return found


def _cell(cell: types.NotebookCell, workspace: Workspace) -> dict[str, str]:
    """A cell in the notebook format; one in another language than Python is no code to us."""
    document = workspace.text_documents.get(unquote(cell.document))
    is_code = (
        cell.kind == types.NotebookCellKind.Code
        and document is not None
        and document.language_id == "python"
    )
    text = "" if document is None else document.source
    # The format has line feeds only, whatever the editor's documents have.
    source = text.replace("\r\n", "\n")
    return {"cell_type": "code" if is_code else "markdown", "source": source}


def _texts(data: bytes) -> list[str]:
    """What the cells hold."""
    return [cell["source"] for cell in json.loads(data)["cells"]]
