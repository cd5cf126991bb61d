"""``sampler-lint explain``: what is known of every kind of value, and which rule spoke."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampler_lint.engine import check
from sampler_lint.explain import explain
from sampler_lint.source import SourceError

PROGRAM = """\
import os
import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

class Mine(DistributedSampler):
    def again(self):
        return self.length()

def make(data):
    return DataLoader(data, batch_sampler=BatchSampler(DistributedSampler(data), 4, False))

def numbers():
    yield 1

def never(given):
    return given

def train(flag, path):
    loader = make(path)
    other = make(path)
    kind = Mine if flag else make
    size = 4
    pair = (loader, size)
    table = {"a": loader}
    found = table.get
    model = torch.nn.Linear(1, 1)
    turns = numbers()
    home = os.environ
    print(loader, kind, size, pair, table, found, model, turns, home)
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            model(batch).backward()

train(True, "x")
"""


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)

    def at(text: str) -> dict[str, str]:
        row = PROGRAM[: PROGRAM.index(text)].count("\n") + 1
        lines = explain("main.py", row)
        assert lines[0] == f"main.py:{row}: {PROGRAM.splitlines()[row - 1].strip()}"
        return {head: rest.strip() for head, _, rest in (x.strip().partition("  ") for x in lines)}

    return at


def test_every_kind_of_value_is_told_in_words(said):
    told = said("print(loader")
    built = "DataLoader built at main.py:10 with batch_sampler=BatchSampler built at main.py:10"
    assert {name: told[name] for name in ("loader", "kind", "size", "pair", "table")} == {
        "loader": f"{built}, returned to main.py:19",
        "kind": "class Mine at main.py:5; or function make at main.py:9",
        "size": "4",
        "pair": "a tuple or list",
        "table": "a dict",
    }
    assert {name: told[name] for name in ("found", "model", "turns", "home")} == {
        "found": "the dict method get",
        "model": "made by torch.nn.Linear, outside the tree",
        "turns": "a generator",
        "home": "os.environ, outside the tree",
    }
    assert "no rule has anything to say here" in told


def test_an_object_in_its_own_method_and_what_it_lacks(said):
    told = said("return self.length")
    assert told["self"] == "Mine (or a subclass), the object itself"
    assert told["self.length"] == "not known (defined nowhere): `.length` is set nowhere in Mine"
    assert any(
        line.startswith("SMP401 (likely) reported: `Mine` reads `self.length`") for line in told
    )


def test_the_loop_around_a_line_and_why_each_rule_spoke_or_not(said):
    told = said("loader.sampler.set_epoch")
    each = "each epoch iterates the DataLoader of main.py:10 at main.py:32"
    loop = f"epoch loop at main.py:30: {each}"
    assert loop in told
    assert any(line.startswith("SMP101 reported: `loader.sampler.set_epoch()` do") for line in told)
    assert "because of main.py:10: loader built here with `batch_sampler=`" in told
    silent = "SMP102 not reported: main.py:31 tries to set the epoch, and does not reach the Distri"
    assert f"{silent}butedSampler of main.py:10 (see there)" in told
    assert loop in said("for batch")
    assert loop not in said("size = 4")
    given = said("return given")["given"]
    assert given == "not known (chosen by who calls it): nothing in this tree calls `never`"


def test_a_line_of_no_program(said, tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    for name, reason in (
        ("broken.py", "is not valid Python"),
        ("gone.py", "cannot be read"),
    ):
        with pytest.raises(SourceError, match=reason):
            explain(name, 1)


def test_the_model_is_that_of_a_check_of_the_working_folder(tmp_path, monkeypatch):
    # Nothing marks a project, and no folder is a package: a file's own root is its folder.
    loops = (
        "def run(loader):\n    for epoch in range(3):\n        loader.sampler.set_epoch(epoch)\n"
    )
    main = (
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "from lib.loops import run\n"
        "run(DataLoader(DATA, batch_sampler=DistributedSampler(DATA)))\n"
    )
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "loops.py").write_text(loops)
    (tmp_path / "main.py").write_text(main)
    monkeypatch.chdir(tmp_path)
    (finding,) = (f for f in check(["."]).findings if f.path.endswith("loops.py"))
    told = explain("lib/loops.py", finding.start.row)
    assert f"  {finding.code} reported: {finding.message}" in told
    assert not any("nothing in this tree calls" in line for line in told)
    monkeypatch.chdir(tmp_path / "lib")
    assert any("nothing in this tree calls" in line for line in explain("loops.py", 3))


def test_what_one_rule_says_is_not_denied_by_the_silence_of_another(said):
    told = said("for epoch in")
    assert any(
        "tries to set the epoch, and does not reach" in head + rest for head, rest in told.items()
    )
    assert not any("sets (or may set)" in head + rest for head, rest in told.items())


SILENT = """\
import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, Sampler

class Halves(Sampler):
    def __init__(self, data, batch_size):
        self.data, self._size = data, batch_size

    def __iter__(self):
        yield list(range(len(self.data)))[: self._size]

    def __len__(self):
        return 1

def main(data, other):
    loader = DataLoader(data, batch_sampler=Halves(data, 4))
    rest = DataLoader(data, sampler=DistributedSampler(data), shuffle=False)
    torch.manual_seed(3)
    for batch in zip(loader, rest):
        print(batch)

main(list(range(8)), list(range(9)))
"""


@pytest.mark.parametrize(
    ("at", "code", "says"),
    [
        ("loader = ", "SMP506", "or else the dataset (`_told_apart_by`): batch_sampler"),
        (
            "rest = ",
            "SMP507",
            "(`shuffled_by_processes`): nothing",
        ),
        ("class Halves", "SMP302", "what building ``cls`` takes"),
        (
            "self.data, self._size",
            "SMP203",
            "a seed for the class's own constructor that changes nothing",
        ),
        ("in zip(", "SMP505", "walk"),
    ],
)
def test_a_rule_that_looked_and_said_nothing_names_its_last_question(tmp_path, at, code, says):
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "main.py"
    path.write_text(SILENT)
    row = SILENT[: SILENT.index(at)].count("\n") + 1
    told = explain(str(path), row)
    (line,) = (line for line in told if line.startswith(f"  {code} not reported"))
    start = told.index(line)
    assert says in "".join(told[start : start + 4])


def test_asking_leaves_the_rules_as_they_were(said):
    from sampler_lint.domain.model import Model
    from sampler_lint.rules import smp507_never_shuffled as rule

    before = (rule._is_chosen, rule.reads_in_turn, vars(Model)["is_a"])
    said("return self.length")
    assert (rule._is_chosen, rule.reads_in_turn, vars(Model)["is_a"]) == before


def test_a_sampler_class_says_what_came_of_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("main.py").write_text(
        "from torch.utils.data import Sampler\n"
        "class Pairs(Sampler):\n"
        "    def __init__(self, data):\n        self.data = data\n"
        "    def __iter__(self):\n        return iter(range(0, len(self.data), 2))\n"
        "    def __len__(self):\n        return len(self.data) // 2\n"
    )
    assert explain("main.py", 2)[1] == (
        "  tried in 8 small worlds: `len()` is wrong in 5, ranks differ in number in none "
        "(class Pairs)"
    )


SILENCED = """\
from torch.utils.data import DataLoader, DistributedSampler

def train(model, optimizer, data, epochs):
    loader = DataLoader(data, sampler=DistributedSampler(data))
    for epoch in range(epochs):  # noqa: SMP102
        for batch in loader:
            model(batch).backward()
            optimizer.step()
"""


def test_a_finding_that_a_comment_silences_and_a_file_that_is_left_out(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(SILENCED)
    lines = explain(str(tmp_path / "train.py"), 5)
    assert any(line.startswith("  SMP102 silenced by a comment: nothing calls") for line in lines)
    assert not any("leaves this file out" in line for line in lines)
    (tmp_path / ".gitignore").write_text("train.py\n")
    lines = explain(str(tmp_path / "train.py"), 5)
    assert lines[1] == (
        "  a check of the project leaves this file out: a `.gitignore` or configuration does"
    )
