"""What is kept from one check of a tree to the next says what a check from scratch says."""

from __future__ import annotations

import gc
import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import write_tree
from sampler_lint import engine
from sampler_lint.domain import tried
from sampler_lint.execution import trials
from sampler_lint.findings import Finding
from sampler_lint.language_server.edited import Readable
from sampler_lint.trees import Tree

FILES = {
    "data.py": """\
import torch

from counts import count


class Shares(torch.utils.data.Sampler):
    def __init__(self, data, rank, world_size):
        self.data = data
        self.rank = rank
        self.world_size = world_size

    def __iter__(self):
        return iter(range(self.rank, len(self.data), self.world_size))

    def __len__(self):
        return count(self.data, self.world_size)
""",
    "counts.py": """\
def count(data, world_size):
    return len(data) // world_size
""",
    "train.py": """\
import os

from torch.utils.data import DataLoader, DistributedSampler

from data import Shares


def main(args, data):
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    shares = DataLoader(data, sampler=Shares(data, rank, world_size))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(args.epochs):
        for batch in loader:
            print(batch)
        for batch in shares:
            print(batch)
""",
}

#: What somebody may type, at the beginning of any line: most of it comes and goes.
LINES = [
    "# a word",
    "",
    "    loader.sampler.set_epoch(epoch)",
    "        sampler.set_epoch(epoch)",
    "    world_size = 2",
    "import torch",
    "    return -(-len(data) // world_size)",
    "    sampler = None",
    "from train import main",
    "loader = main",
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_tree(tmp_path, {name: text.encode() for name, text in FILES.items()})
    return tmp_path


def edits(files: dict[str, str], seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Each time the name of a file and its new text."""
    chance = random.Random(seed)
    texts = dict(files)
    for _ in range(count):
        name = chance.choice(sorted(texts))
        lines = texts[name].splitlines()
        place = chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                lines = files[name].splitlines()
            case 1:
                del lines[place]
            case _:
                lines.insert(place, chance.choice(LINES))
        texts[name] = "\n".join(lines) + "\n"
        yield name, texts[name]


def told(found: list[Finding]) -> list[str]:
    return [repr(finding) for finding in found]


@pytest.mark.parametrize("large", [1 << 24, 1])
def test_a_session_finds_what_a_check_from_scratch_finds(
    tree: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr("sampler_lint.workspace.project.LARGE_TREE", large)
    session = engine.Session()
    overlay = {str(tree / name): text.encode() for name, text in FILES.items()}
    said = set()
    for name, text in itertools.chain(*(edits(FILES, seed, 10) for seed in range(4))):
        overlay = {**overlay, str(tree / name): text.encode()}
        kept = engine.check([str(tree)], overlay=overlay, session=session)
        anew = engine.check([str(tree)], overlay=overlay, session=engine.Session())
        assert told(kept.findings) == told(anew.findings)
        assert kept.errors == anew.errors
        said.add(len(kept.findings))
    assert len(said) > 1, "the edits are to make findings come and go"


#: What says nothing to Python, though some of it speaks to this linter.
SILENT = [
    "# a word",
    "",
    "    # sampler.set_epoch(epoch)",
    "# sampler-lint: disable",
    "# noqa",
    "# don't seed every rank",
    "# " + "long " * 30,
]


def silent_edits(text: str, seed: int, count: int) -> Iterator[str]:
    """The text after each of some edits, most of which Python does not notice."""
    chance = random.Random(seed)
    lines = text.splitlines()
    for _ in range(count):
        place = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                lines[place] += "  # more"
            case 1:
                lines[place] += " "
            case 2 if not lines[place].strip():
                del lines[place]
            case 3 if chance.random() < 0.3:
                lines.insert(0, "import torch")
            case _:
                lines.insert(place, chance.choice(SILENT))
        yield "\n".join(lines) + "\n"


@pytest.mark.parametrize("large", [1 << 24, 1])
def test_what_is_no_code_moves_what_was_found(
    tree: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr("sampler_lint.workspace.project.LARGE_TREE", large)
    linked: list[object] = []
    before = Tree._linked
    monkeypatch.setattr(Tree, "_linked", lambda *given: linked.append(None) or before(*given))
    session = engine.Session()
    states = 0
    for seed, name in enumerate(sorted(FILES)):
        overlay = {str(tree / each): text.encode() for each, text in FILES.items()}
        for text in silent_edits(FILES[name], seed, 20):
            overlay = {**overlay, str(tree / name): text.encode()}
            kept = engine.check([str(tree)], overlay=overlay, session=session)
            made = len(linked)
            anew = engine.check([str(tree)], overlay=overlay, session=engine.Session())
            del linked[made:]
            assert told(kept.findings) == told(anew.findings)
            assert told(kept.suppressed) == told(anew.suppressed)
            states += 1
    assert len(linked) < states / 2, "most edits are to change no answer"


@pytest.mark.parametrize("name", ["data.py", "train.py"])
def test_a_name_begun_between_the_statements_of_a_file_moves_what_was_found(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    linked: list[object] = []
    before = Tree._linked
    monkeypatch.setattr(Tree, "_linked", lambda *given: linked.append(None) or before(*given))
    session = engine.Session()
    overlay = {str(tree / each): text.encode() for each, text in FILES.items()}
    first = engine.check([str(tree)], overlay=overlay, session=session)
    for typed in ("r", "ra", "rank", "rank  # and a word", "'a text'"):
        overlay[str(tree / name)] = f"{typed}\n{FILES[name]}".encode()
        kept = engine.check([str(tree)], overlay=overlay, session=session)
        assert len(linked) == 1
        anew = engine.check([str(tree)], overlay=overlay, session=engine.Session())
        linked.pop()
        assert told(kept.findings) == told(anew.findings)
        assert len(kept.findings) == len(first.findings)


UNTOLD = """\
from torch.utils.data import DataLoader, DistributedSampler


def main(args, model, optimizer, data):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(args.epochs):
        for batch in loader:
            TYPED
            optimizer.zero_grad()
            model(batch).backward()
            optimizer.step()
"""


def test_fixes_are_judged_again_where_what_is_typed_is_spelled_elsewhere(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[object] = []
    before = Tree._judged
    monkeypatch.setattr(Tree, "_judged", lambda *given: judged.append(None) or before(*given))
    session = engine.Session()

    def judges(typed: str) -> int:
        judged.clear()
        overlay = {str(tree / "train.py"): UNTOLD.replace("TYPED", typed).encode()}
        kept = engine.check([str(tree)], overlay=overlay, session=session)
        count = len(judged)
        anew = engine.check([str(tree)], overlay=overlay, session=engine.Session())
        assert any(finding.fix for finding in kept.findings)
        assert told(kept.findings) == told(anew.findings)
        return count

    found = [judges(typed) for typed in ("pass", "pass; z", "pass; zz", "pass; zz  # z")]
    assert found[0] > 0 == sum(found[1:])
    assert [judges(f"pass; {typed}") for typed in ("q", "batch", "zz")] != [0, 0, 0], "a variable"


#: What somebody types, letter by letter: some of it is what others look for.
TYPED = [
    "counted = len(batch)",
    "sampler",
    "world_size = rank",
    "count(data, rank)",
    "loader.sampler.set_epoch(epoch)",
    "print(epoch, sampler)",
    "Shares",
    "epoch",
    "x = [main, count, iter(loader)]",
    "if args: rank",
    "for batch in loader: pass",
    "return rank if args else data",
    "with open(data) as data: data",
]


def letters(text: str, seed: int, count: int) -> Iterator[str]:
    """The text after each of some keystrokes: a line is typed, or a name of a line is changed."""
    chance = random.Random(seed)
    lines = text.splitlines()
    while count > 0:
        place = chance.randrange(len(lines))
        line = lines[place]
        indent = line[: len(line) - len(line.lstrip())]
        match chance.randrange(5):
            case 0:
                lines = text.splitlines()
                states = []
            case 1 if line.strip():
                del lines[place]
                states = [list(lines)]
            case 2:
                words = [*re.finditer(r"\w+", line)] or [re.compile("").match(line)]
                word = chance.choice(words)
                new = chance.choice(["rank", "other", "count", "e", "sampler", "Main"])
                lengths = range(1, len(new) + 1)
                states = [
                    [*lines[:place], line[: word.start()] + new[:n] + line[word.end() :],
                     *lines[place + 1 :]]
                    for n in lengths
                ]  # fmt: skip
            case _:
                typed = chance.choice(TYPED)
                lengths = range(1, len(typed) + 1)
                states = [[*lines[:place], indent + typed[:n], *lines[place:]] for n in lengths]
        for lines in states:
            count -= 1
            yield "\n".join(lines) + "\n"
        lines = states[-1] if states and chance.random() < 0.5 else text.splitlines()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.whole) for seed in (1, 2))]
)
def test_what_is_typed_letter_by_letter_is_found_as_from_scratch(tree: Path, seed: int) -> None:
    check_letters(tree, seed, 60)


def check_letters(tree: Path, seed: int, count: int) -> int:
    """How many states of a file that was typed in were checked with what was kept."""
    session, readable = engine.Session(), Readable(engine.parses)
    name = sorted(FILES)[seed % len(FILES)]
    overlay = {str(tree / each): text.encode() for each, text in FILES.items()}
    for text in letters(FILES[name], seed, count):
        read = readable({**overlay, str(tree / name): text.encode()})
        kept = engine.check([str(tree)], overlay=read, session=session)
        anew = engine.check([str(tree)], overlay=read, session=engine.Session())
        assert told(kept.findings) == told(anew.findings), text
        assert told(kept.suppressed) == told(anew.suppressed), text
    return count


def test_a_name_that_nobody_reads_is_typed_on(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[object] = []
    before = Tree._linked
    monkeypatch.setattr(Tree, "_linked", lambda *given: linked.append(None) or before(*given))
    session = engine.Session()

    def links(typed: str) -> int:
        made = len(linked)
        text = FILES["train.py"].replace("            print(batch)\n", f"            {typed}\n", 1)
        engine.check([str(tree)], overlay={str(tree / "train.py"): text.encode()}, session=session)
        return len(linked) - made

    assert [links(typed) for typed in ("pass", "pass; o", "ot", "oth")] == [1, 0, 1, 0]
    assert [links(f"x = {typed}") for typed in ("o", "ot", "othe")] == [1, 0, 0]
    assert [links(f"x = {typed}") for typed in ("main", "mai", "ma")] == [1, 1, 0], "a function"


MINE = """\
from torch.utils.data import Sampler


class Mine(Sampler):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(range(0, len(self.data), 2))

    def __len__(self):
        # COMMENT
        return len(self.data)
"""


def test_what_a_comment_tells_is_found_out(tree: Path) -> None:
    """A rule that reads the text of a file hears of its comments."""
    session = engine.Session()
    found = []
    for comment in ("all", "many", "roughly", "many"):
        overlay = {str(tree / "data.py"): MINE.replace("COMMENT", comment).encode()}
        kept = engine.check([str(tree)], overlay=overlay, session=session)
        anew = engine.check([str(tree)], overlay=overlay, session=engine.Session())
        assert told(kept.findings) == told(anew.findings)
        found.append([each.code for each in kept.findings])
    assert found == [["SMP304"], ["SMP304"], [], ["SMP304"]]


def test_files_on_disk_that_changed_are_read_again(tree: Path) -> None:
    kept: dict[str, engine.Kept] = {}
    for name, text in edits(FILES, 7, 6):
        (tree / name).write_text(text)
        found = engine.check([str(tree)], kept=kept)
        assert told(found.findings) == told(engine.check([str(tree)]).findings)


class Tries:
    """Counts the classes that are tried."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        before = trials.try_out

        def counted(interpreter: object, cls: object, **options: object) -> object:
            self.names.append(getattr(cls, "name", ""))
            return before(interpreter, cls, **options)  # type: ignore[arg-type]

        patch.setattr(trials, "try_out", counted)
        patch.setattr(tried, "_BY_TEXT", {})  # other tests have tried the same text


@pytest.mark.parametrize(
    ("name", "added", "is_tried"),
    [
        ("train.py", "\n\ndef more():\n    return 1\n", False),
        ("data.py", "\nMORE = 1\n", False),
        ("data.py", "\nShares.more = 1\n", False),
        ("data.py", "\nfrom counts import more as count\n", True),
        ("data.py", "\n# more\n", False),
        ("counts.py", "\n\ndef more():\n    return 1\n", False),
        ("counts.py", "\n\ndef count(data, world_size):\n    return 1\n", True),
        ("train.py", "\n\nshares = Shares([1, 2], rank=3, world_size=4)\n", True),
    ],
)
def test_a_class_is_tried_again_when_what_its_trial_read_has_changed(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str, added: str, is_tried: bool
) -> None:
    tries = Tries(monkeypatch)
    session = engine.Session()
    overlay = {str(tree / name): FILES[name].encode()}
    engine.check([str(tree)], overlay=overlay, session=session)
    assert "Shares" in tries.names
    tries.names.clear()
    overlay = {str(tree / name): (FILES[name] + added).encode()}
    engine.check([str(tree)], overlay=overlay, session=session)
    assert ("Shares" in tries.names) == is_tried


def test_a_session_keeps_no_model_of_an_earlier_text(tree: Path) -> None:
    from sampler_lint.workspace.project import Project

    session = engine.Session()
    for number in range(8):
        overlay = {str(tree / "data.py"): (FILES["data.py"] + f"\nX = {number}\n").encode()}
        engine.check([str(tree)], overlay=overlay, session=session)
    gc.collect()
    projects = [each for each in gc.get_objects() if type(each) is Project]
    assert 1 <= sum(each.root == str(tree) for each in projects) <= 2
