"""What SMP401 puts in the place of an attribute that nothing defines."""

from __future__ import annotations

import textwrap

import pytest

from test_codemods import fixed_by

CLASS = """
class Samples(Sampler):
    def __init__(self, data, shard_rows, verbose=False):
{init}
    def __iter__(self):
{iterate}
"""


def program(init: str, iterate: str) -> str:
    def body(text: str) -> str:
        return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8) + "\n"

    return CLASS.format(init=body(init), iterate=body(iterate))


UNREAD = "self.data = data\nself.rows_per_shard = shard_rows"


@pytest.mark.parametrize(
    ("init", "iterate", "meant"),
    [
        pytest.param(
            UNREAD,
            "return iter(i for i in self.data if i < self.rows_per_machine)",
            "return iter(i for i in self.data if i < self.rows_per_shard)",
            id="differs in one word, and nothing reads it",
        ),
        pytest.param(
            UNREAD,
            "return iter(i for i in self.data if self.rows_per_shard > self.rows_per_machine)",
            None,
            id="is read",
        ),
        pytest.param(
            UNREAD + "\nself.rows_per_video = shard_rows",
            "return iter(i for i in self.data if i < self.rows_per_machine)",
            None,
            id="one of two",
        ),
        pytest.param(
            UNREAD,
            "return iter(i for i in self.data if i < self.min_sample_length)",
            None,
            id="differs in two words",
        ),
    ],
)
def test_the_attribute_that_nothing_reads(tmp_path, init, iterate, meant):
    wanted = program(init, iterate if meant is None else meant)
    assert fixed_by(tmp_path / "p", "SMP401", program(init, iterate)) == wanted


def test_an_argument_that_was_not_kept(tmp_path):
    iterate = "return iter(self.data[: self.shard_rows])"
    before = program("assert shard_rows\nself.data = data", iterate)
    after = program(
        "assert shard_rows\nself.shard_rows = shard_rows\nself.data = data",
        iterate,
    )
    assert fixed_by(tmp_path / "p", "SMP401", before) == after


def test_an_argument_that_is_read_in_the_constructor(tmp_path):
    iterate = "return iter(self.data)"
    before = program("self.data = data[: self.shard_rows]", iterate)
    after = program("self.data = data[: shard_rows]", iterate)
    assert fixed_by(tmp_path / "p", "SMP401", before) == after


def test_an_argument_that_was_changed_is_not_kept(tmp_path):
    source = program(
        "shard_rows = shard_rows or 8\nself.data = data",
        "return iter(self.data[: self.shard_rows])",
    )
    assert fixed_by(tmp_path / "p", "SMP401", source) == source


BOTH = "(self.low_edge, self.high_edge)"


@pytest.mark.parametrize(
    ("shown", "becomes"),
    [
        ('print("edge={}".format(self.edge))', f'print("edge={{}}".format({BOTH}))'),
        ('print(f"edge={self.edge}")', f'print(f"edge={{{BOTH}}}")'),
        ('print(f"edge={self.edge:.2f}")', None),
        ('print("edge={:.2f}".format(self.edge))', None),
        ("edge = self.edge * 2", None),
    ],
)
def test_an_attribute_that_became_two(tmp_path, shown, becomes):
    init = "self.data = data\nself.low_edge = 1\nself.high_edge = 2"
    end = "\nreturn iter(self.data)"
    wanted = program(init, (shown if becomes is None else becomes) + end)
    assert fixed_by(tmp_path / "p", "SMP401", program(init, shown + end)) == wanted


@pytest.mark.parametrize(
    ("told", "becomes"),
    [
        ("print(self.elsewhere)\n", ""),
        ("log.info('%s of %s', self.elsewhere, len(self.data))\n", ""),
        ("print(next(self.data), self.elsewhere)\n", None),  # it reads, too
        ("if self.data: print(self.elsewhere)\n", None),
        ("note = self.elsewhere\n", None),
    ],
)
def test_a_message_that_can_only_raise(tmp_path, told, becomes):
    wanted = (told if becomes is None else becomes) + "return iter(self.data)"
    source = program("self.data = data", told + "return iter(self.data)")
    assert fixed_by(tmp_path / "p", "SMP401", source) == program("self.data = data", wanted)
