"""Which comments silence which findings."""

import tokenize

import pytest

from sampler_lint.findings import Finding, Position
from sampler_lint.rules import names
from sampler_lint.source import SourceFile
from sampler_lint.suppressions import UNUSED, Suppressions


def silenced(text: str, code: str = "SMP101") -> list[int]:
    """The rows on which a finding would be silenced."""
    suppressions = Suppressions(SourceFile("a.py", text.encode()), names())
    rows = range(1, len(suppressions.source.line_starts) + 1)
    places = ((row, Position(row, 1)) for row in rows)
    return [
        row
        for row, place in places
        if suppressions.covers(Finding(code, "text", "a.py", place, place))
    ]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# NOQA",
        "#noqa",
        "# noqa: SMP101",
        "# noqa:SMP101",
        "# noqa : smp101",
        "# noqa: E501,SMP101",
        "# noqa: E501 SMP101 because",
        "# noqa: E501, SMP1",
        "# noqa: because of SMP202",
        "# type: ignore # noqa: SMP101",
        "# noqa: E501  # noqa: SMP101",
        "# sampler-lint: ignore",
        "# sampler-lint:ignore  # why",
        "# sampler-lint: ignore because",
        "# Sampler-Lint: ignore[SMP101]",
        "# sampler-lint: ignore [ SMP202, smp1 ]",
        "# sampler-lint: ignore[epoch-only-on-sampler]",
        "# sampler-lint: ignore[seed-not-passed, Epoch_Only_On_Sampler]",
        "# sampler-lint: disable=SMP101",
        "# sampler-lint: disable = SMP202, epoch-only-on-sampler  # why",
        "# sampler-lint: disable",
        "# sampler_lint: ignore[SMP101]",
        "# sampler-lint: ignore[all]",
        "# sampler-lint: disable=all",
        "# sampler-lint: ignore SMP101 because",
    ],
)
def test_silences_its_line(comment: str) -> None:
    assert silenced(f"x\ny  {comment}\nz\n") == [2]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: E501",
        "# noqa: SMP102",
        "# noqa: SMP1011",
        "# noqable",
        "# flake8: noqa",
        "# ruff: noqa: SMP101",
        "# sampler-lint: ignore[]",
        "# sampler-lint: ignore[SMP2]",
        "# sampler-lint: ignore[SMP101",
        "# sampler-lint: ignore: SMP101",
        "# sampler-lint: ignored",
        "# sampler-lint: ignore-all",
        "# sampler-lint",
        "# sampler-lint: disable=seed-not-passed",
        "# sampler-lint: disable-next=SMP101",
        "# sampler-lint: noqa",
        "# sampler-lint: ignore SMP2",
        "# sampler-lint ignore[SMP101]",
        "# samplerlint: ignore",
    ],
)
def test_silences_nothing(comment: str) -> None:
    assert silenced(f"x\ny  {comment}\nz\n") == []


@pytest.mark.parametrize(
    "comment",
    [
        "# flake8: noqa",
        "# flake8: noqa: SMP101",
        "# FLAKE8=NOQA",
        "# ruff: noqa",
        "# ruff: noqa: E501, SMP1",
        "# sampler-lint: ignore-file",
        "# sampler-lint: ignore-file[SMP1]",
        "# sampler-lint: disable-file=epoch-only-on-sampler",
    ],
)
def test_silences_the_file(comment: str) -> None:
    assert silenced(f"x\n  {comment}\nz") == [1, 2, 3]
    assert silenced(f"x\n'''\n{comment}\n'''\n") == []


def test_a_file_comment_with_codes_leaves_the_other_codes() -> None:
    assert silenced("# flake8: noqa: SMP2\nx\n") == []
    assert silenced("# sampler-lint: ignore-file[SMP2]\nx\n") == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        (["a", "call(", "  b,", "  c,  # noqa", ")", "d"], [2, 3, 4, 5]),
        (["call(", "  # noqa", "  c)", "d"], [1, 2, 3]),
        (["a = \\", "  b  # noqa", "c"], [1, 2]),
        (["for a in (", "  b,", "):  # noqa", "  c", "d"], [1, 2, 3]),
        (["for a in b:", "  c  # noqa", "d"], [2]),
        (["@a  # noqa", "def f():", "  pass"], [1]),
        (["a = '''", "b", "'''  # noqa", "c"], [1, 2, 3]),
        (["a", "# noqa", "b"], [2]),
        (["a = '# noqa'", "b = '''", "# noqa", "'''", "c"], []),
        (["a", "\x0cb  # noqa", "c"], [2]),
        (["if a:", "    # noqa", "    b", "c  # noqa"], [2, 4]),
        (["a  # noqa", "b  # noqa"], [1, 2]),
    ],
)
def test_speaks_for_the_whole_statement_or_header(
    lines: list[str], rows: list[int], newline: str
) -> None:
    assert silenced(newline.join(lines)) == rows


@pytest.mark.parametrize("broken", ["call(", "  x\n y", "'''", "x = $ ?"])
def test_lines_speak_for_themselves_where_the_file_has_no_tokens(broken: str) -> None:
    rows = silenced(f"a  # noqa\nb\n{broken}\nc  # noqa\n")
    assert rows[0] == 1
    assert 2 not in rows
    assert broken.count("\n") + 4 in rows or broken == "'''"


def test_a_string_before_the_broken_part_is_still_a_string() -> None:
    assert silenced("x = '# noqa'\ny = 1\n  z\n w  # noqa\n") == [4]


def test_a_file_without_a_word_of_it_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(tokenize, "generate_tokens", lambda line: calls.append(line) or iter(()))
    assert silenced("x  # a comment\n") == []
    assert silenced("import sampler_lint  # by its name\nnote = 'write noqa there'\n") == []
    assert calls == []
    assert silenced("x  # noqa\n") == []
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("comment", "rows"),
    [
        ("# noqa", [2]),
        ("# noqa: SMP001", [2]),
        ("# noqa: SMP0", [2]),
        ("# sampler-lint: ignore", []),
        ("# sampler-lint: ignore[SMP001]", [2]),
        ("# sampler-lint: ignore[SMP]", []),
    ],
)
def test_what_is_said_of_comments_must_be_named_to_be_silenced(
    comment: str, rows: list[int]
) -> None:
    assert silenced(f"x\ny  {comment}\nz\n", UNUSED) == rows


def test_every_linter_can_be_asked_to_say_nothing_of_a_file() -> None:
    assert silenced("# flake8: noqa\nx", UNUSED) == [1, 2]
    assert silenced("# sampler-lint: ignore-file\nx\n", UNUSED) == []
    assert silenced("call(\n  # flake8: noqa\n)\nx") == [1, 2, 3, 4]
    assert silenced("call(  # flake8: noqa\n)\nx\n") == []


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["x  # noqa X", "# noqa  ", "f(  # noqa", "  # noqa", ")"],
            [
                (1, 1, "# noqa X", False),
                (2, 2, "# noqa  ", True),
                (3, 5, "# noqa", False),
                (3, 5, "# noqa", True),
            ],
        ),
        # From where there are no tokens, each line speaks for itself.
        (
            ["f(  # noqa # why", "# noqa X", "  # noqa  ", "y"],
            [(1, 1, "# noqa # why", False), (2, 2, "# noqa X", True), (3, 3, "# noqa  ", True)],
        ),
        (["# noqa", "f(", "  # noqa"], [(1, 1, "# noqa", True), (3, 3, "# noqa", True)]),
        (
            ["# noqa", "x  # noqa", "f(", "  # noqa"],
            [(1, 1, "# noqa", True), (2, 2, "# noqa", False), (4, 4, "# noqa", True)],
        ),
    ],
)
def test_each_comment_is_read_once_and_where_it_stands(
    lines: list[str], expected: list[tuple[int, int, str, bool]], newline: str
) -> None:
    text = newline.join(lines) + newline
    comments = [each.comment for each in Suppressions(SourceFile("a.py", text.encode())).directives]
    assert [(c.first, c.last, c.text, c.alone) for c in comments] == expected
    assert [text[c.start : c.end] for c in comments] == [c.text for c in comments]
