"""Notebooks become Python source and come back with every other byte in its place."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler_lint.notebook import Notebook, NotebookError


def code(*lines, **more):
    return {"cell_type": "code", "execution_count": 3, "source": list(lines), **more}


def notebook(*cells, language="python", **layout):
    content = {
        "cells": list(cells),
        "metadata": {"kernelspec": {"language": language}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, **(layout or {"indent": 1, "ensure_ascii": False})).encode()


MARKDOWN = {"cell_type": "markdown", "metadata": {}, "source": ["# about `set_epoch`"]}
OUTPUT = {"data": {"text/plain": ["x = 1"]}, "output_type": "execute_result", "source": ["x = 1"]}


def test_cells_become_one_file_with_a_mark_before_each():
    book = Notebook(notebook(MARKDOWN, code("import torch\n", "x = 1"), code(), code("y = x")))
    assert book.source.decode() == (
        "# %% [sampler-lint: cell 2]\nimport torch\nx = 1\n# %% [sampler-lint: cell 4]\ny = x\n"
    )
    assert [book.place(row) for row in (2, 3, 5)] == [(2, 1), (2, 2), (4, 1)]
    for row in (1, 4, 6):
        with pytest.raises(LookupError):
            book.place(row)


@pytest.mark.parametrize(
    "line",
    [
        "%matplotlib inline",
        "!pip install torch",
        "    %time f()",
        "files = !ls",
        "a, b = %sx ls",
        "torch?",
        "torch.nn??",
        "?torch",
        "%%time",
    ],
)
def test_ipython_is_kept_behind_a_comment(line):
    cell = [f"{line}\n", "x = 1"] if not line.startswith(" ") else ["if x:\n", f"{line}\n", "x = 1"]
    data = notebook(code(*cell))
    book = Notebook(data)
    ast.parse(book.source)
    assert b"x = 1" in book.source
    assert book.with_source(book.source) == data
    changed = book.with_source(book.source.replace(b"x = 1", b"x = 2"))
    assert changed == data.replace(b"x = 1", b"x = 2")


def test_a_command_goes_on_after_a_backslash():
    book = Notebook(notebook(code("!pip install \\\n", "    torch\n", "x = 1")))
    tree = ast.parse(book.source)
    assert isinstance(tree.body[-1], ast.Assign)
    assert len(tree.body) == 3


def test_text_that_looks_like_a_magic_is_text():
    text = 's = """\n%matplotlib\n"""'
    assert text.encode() in Notebook(notebook(code(text))).source


def test_cells_in_another_language_are_left_out():
    book = Notebook(notebook(code("%%bash\n", "for f in *; do"), code("x = 1")))
    assert [cell.number for cell in book.cells] == [2]
    assert Notebook(notebook(code("x <- 1"), language="R")).source == b""


def test_a_cell_that_does_not_parse_keeps_its_lines():
    book = Notebook(notebook(code("x = (\n", "y = 1")))
    assert b"x = (\ny = 1\n" in book.source


@pytest.mark.parametrize(
    "layout",
    [{}, {"indent": 1}, {"indent": 4}, {"indent": "\t"}, {"separators": (",", ":")}],
    ids=str,
)
def test_only_the_strings_of_changed_cells_are_written(layout):
    cells = (MARKDOWN, code("x = 1\n", "z = 'é'", outputs=[OUTPUT]), code("y = 1\n", "w = 1"))
    data = notebook(*cells, **layout, ensure_ascii=False)
    book = Notebook(data)
    changed = book.with_source(book.source.replace(b"x = 1", b"x = 1\nv = 'e'"))
    cells = (
        MARKDOWN,
        code("x = 1\n", "v = 'e'\n", "z = 'é'", outputs=[OUTPUT]),
        code("y = 1\n", "w = 1"),
    )
    assert changed == notebook(*cells, **layout, ensure_ascii=False)


def test_a_source_that_is_one_string_stays_one():
    data = notebook({"cell_type": "code", "source": "x = 1\ny = 2"})
    changed = Notebook(data).with_source(b"# %% [sampler-lint: cell 1]\nx = 1\ny = 3\n")
    assert changed == data.replace(b"y = 2", b"y = 3")


def test_escapes_of_untouched_lines_stay_as_typed():
    data = notebook(code("s = '@@'\n", "x = 1")).replace(b"@@", rb"\u00e9\/")
    book = Notebook(data)
    assert "s = 'é/'" in book.source.decode()
    changed = book.with_source(book.source.replace(b"x = 1", b"x = 2"))
    assert changed == data.replace(b"x = 1", b"x = 2")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"# %% [sampler-lint: cell 2]\n", b""),
        lambda text: b"import torch\n" + text,
        lambda text: b"",
    ],
)
def test_what_joins_cells_is_refused(change):
    book = Notebook(notebook(code("x = 1"), code("y = 2")))
    with pytest.raises(NotebookError, match="cell"):
        book.with_source(change(book.source))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is no notebook: Expecting value"),
        (b"\xff", "not in UTF-8"),
        (b"[]", "no list of cells"),
        (b'{"worksheets": []}', "no list of cells"),
        (b'{"cells": [1]}', "cell 1 is no object"),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "source of cell 1 is no text"),
        (b"[" * 100_000, "is no notebook"),
    ],
)
def test_what_is_no_notebook_says_so(data, reason):
    with pytest.raises(NotebookError, match=reason):
        Notebook(data)


any_lines = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=4)


@given(st.lists(any_lines, max_size=4), st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_any_notebook_comes_back_as_it_was(cells, ascii_only, indent):
    data = notebook(
        *(code(*(f"{line}\n" for line in lines)) for lines in cells),
        ensure_ascii=ascii_only,
        indent=indent,
    )
    book = Notebook(data)
    assert book.with_source(book.source) == data
    count = book.source.count(b"\n")
    for row in range(1, count + 1):
        line = book.source.decode().split("\n")[row - 1]
        if line.startswith("# %% [sampler-lint"):
            continue
        number, inner = book.place(row)
        cell = next(cell for cell in book.cells if cell.number == number)
        assert cell.python.split("\n")[inner - 1] == line
