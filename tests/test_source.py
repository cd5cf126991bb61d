"""Bytes to text and back, and places in both."""

import ast
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler_lint.findings import Position
from sampler_lint.source import SourceError, SourceFile, as_declared, is_candidate, read_bytes
from sampler_lint.syntax.parse import FactsError, check_syntax, parse


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", "utf-8"),
        (b"x = 1", "utf-8"),
        (b"\xef\xbb\xbfx = '\xc3\xa9'\r\n", "utf-8"),
        (b"# coding: latin-1\nx = '\xe9'\n", "iso-8859-1"),
        (b"#!/bin/sh\r# coding: latin-1\rx = '\xe9'\r", "iso-8859-1"),
        ("# coding: shift-jis\nx = '\u65e5\u672c'\n".encode("shift-jis"), "shift-jis"),
        (b"# no cookie\rx = '# coding: nonsense'\r", "utf-8"),
        (b"a\r\nb\rc\nd\x0c\ne\t", "utf-8"),
    ],
)
def test_text_is_what_python_reads_and_goes_back_to_the_same_bytes(
    data: bytes, encoding: str
) -> None:
    source = SourceFile("a.py", data)
    assert source.encoding == encoding
    assert source.encode(source.text) == data
    assert "\ufeff" not in source.text


@pytest.mark.parametrize(
    ("data", "reason", "row"),
    [
        (b"# coding: nonsense\n", "unknown encoding", None),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem", None),
        (b"a\nb\nx = '\xe9'\n", "cannot be decoded as utf-8", 3),
        (b"# coding: rot13\n", "not a text encoding", None),
        (b"# coding: undefined\n", "cannot be decoded", None),
    ],
)
def test_says_why_a_file_cannot_be_decoded(data: bytes, reason: str, row: int | None) -> None:
    with pytest.raises(SourceError, match=reason) as caught:
        SourceFile("a.py", data)
    assert caught.value.error.path == "a.py"
    assert caught.value.error.row == row


def test_reads_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x\r\n")
    assert SourceFile.read(str(tmp_path / "a.py")).text == "x\r\n"
    for missing in (tmp_path, tmp_path / "none.py"):
        with pytest.raises(SourceError, match="cannot be read"):
            read_bytes(str(missing))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_does_not_wait_for_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    with pytest.raises(SourceError, match="not a regular file"):
        read_bytes(str(tmp_path / "fifo.py"))


@given(st.text(alphabet="a\u00e9\u65e5\U0001f600 \t\x0c\n\r", max_size=40))
def test_lines_make_up_the_text_and_positions_lead_back(text: str) -> None:
    source = SourceFile("a.py", text.encode())
    rows = range(1, len(source.line_starts) + 1)
    assert "".join(map(source.line, rows)) == text
    assert source.line(0) == source.line(len(rows) + 1) == ""
    for offset in range(len(text)):
        position = source.position(offset)
        before = source.line(position.row)[: position.column - 1]
        assert source.line_starts[position.row - 1] + len(before) == offset
        assert source.offset(position.row, len(before.encode())) == offset


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_ast_positions_are_found(newline: str) -> None:
    text = newline.join(["x = '\u00e9'; y = call('\u65e5', z)", "", "w = '\x0c'; v = z"])
    source = SourceFile("a.py", text.encode())
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    assert {node.id for node in names} == set("xyzwv") | {"call"}
    for node in names:
        start = source.offset(node.lineno, node.col_offset)
        assert text[start : start + len(node.id)] == node.id
    assert source.position(text.rindex("z")) == Position(3, len("w = '\x0c'; v = z"))


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb", "\r"), ("a\nb\r\nc\n", "\n")],
)
def test_newline_is_that_of_most_lines(text: str, newline: str) -> None:
    assert SourceFile("a.py", text.encode()).newline == newline


@pytest.mark.parametrize(
    ("text", "indent"),
    [
        ("x = 1\n", "    "),
        ("def f():\r\n  x\r\n", "  "),
        ("class A:\r\tdef f(self):\r\t\tx\r", "\t"),
        ('def f():\n    """Text.\n\n\ta tab in text:\n    """\n    x\n', "    "),
        ("if x:  # why\n\n   call(a,\n     b)\n", "   "),
        ("x = [\n  1,\n]\nfor x in y:\n    z\n", "    "),
    ],
)
def test_indent_is_what_blocks_add(text: str, indent: str) -> None:
    assert SourceFile("a.py", text.encode()).indent == indent


def test_candidates_say_a_word_of_ours() -> None:
    assert is_candidate(b"import DataLoader")
    assert is_candidate(b"sampler.set_epoch(1)")
    assert is_candidate(b"class Lines(IterableDataset):")
    assert not is_candidate(b"print('hello')")


@pytest.mark.parametrize(
    ("text", "candidate"),
    [
        (b"loader = DataLoader(data)", True),
        (b"for batch in train_loader:", True),
        (b"class Balanced(RandomSampler): ...", True),
        (b"resampler.set_epoch(3)", True),
        (b"x = self.upsampler(x)", False),
        (b"class DownSampler(nn.Module): ...", False),
        (b"self.downsampler = Downsampler(3)", False),
        (b"y = F.grid_sampler_2d(x)", False),
        (b"wave, samplerate = load(path)", False),
        (b"spec.loader.exec_module(module)", False),
        (b"downloader.fetch()", False),
        (b"import downloader; loader = make()", True),
    ],
)
def test_what_makes_a_candidate(text: bytes, candidate: bool) -> None:
    assert is_candidate(text) is candidate


@pytest.mark.parametrize(
    "text",
    [
        "type Pair[T] = tuple[T, T]\nsampler = make(1)\n",
        "type  Plain = int ; sampler = make(1)\n",
        "def first[T](x: T) -> T: return x\nsampler = make(1)\n",
        "class Box[T: int](Base): pass\nsampler = make(1)\n",
        "x = f'{a['b']}'; sampler = make(1)\n",
        'x = f"""{\n  a\n} {b["""c"""]}"""; sampler = make(1)\n',
    ],
)
def test_syntax_of_a_newer_python_leaves_places_as_they_are(text: str) -> None:
    check_syntax(text)
    (call,) = (
        node
        for node in ast.walk(parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "make"
    )
    row = text[: text.index("make")].count("\n") + 1
    assert (call.lineno, text.splitlines()[row - 1][call.col_offset :]) == (row, "make(1)")


@pytest.mark.parametrize(
    ("text", "row"),
    [("type X = int\nb'\u00e9'\n", None), ("x\0 = 1\n", None), ("x = 1\nf() = 2\n", 2)],
)
def test_what_no_python_reads_is_said(text: str, row: int | None) -> None:
    with pytest.raises(FactsError, match="is not valid Python") as caught:
        parse(text)
    assert row is None or caught.value.row == row
    with pytest.raises(FactsError, match="is not valid Python"):
        check_syntax(text)


def test_text_that_its_own_cookie_cannot_encode_stays_utf_8() -> None:
    for text in ("# coding: nowhere\nx = 1\n", "# coding: ascii\nx = '\u00e9'\n"):
        assert as_declared(text) == text.encode()
    assert as_declared("# coding: latin-1\n# \u00e9\n") == b"# coding: latin-1\n# \xe9\n"
