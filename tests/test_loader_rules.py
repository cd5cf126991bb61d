"""What SMP501, SMP502 and SMP503 say about small programs: a line that ends in ``# !`` is wrong."""

from __future__ import annotations

import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

from sampler_lint import engine
from sampler_lint.engine import Options

IMPORTS = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler
from torch.utils.data import IterableDataset, RandomSampler, SequentialSampler

class Map(Dataset):
    def __getitem__(self, index): return index
    def __len__(self): return 9

class Endless(IterableDataset):
    def __iter__(self): yield 1

"""


def check(folder: Path, code: str, source: str) -> tuple[list[int], list[int]]:
    """The rows that are reported, and those that should be."""
    text = IMPORTS + textwrap.dedent(source)
    (folder / "pyproject.toml").touch()
    (folder / "main.py").write_text(text, encoding="utf-8")
    found = engine.check([str(folder)], Options(select=(code,))).findings
    wanted = [row for row, line in enumerate(text.splitlines(), 1) if line.endswith("# !")]
    return sorted({finding.start.row for finding in found}), wanted


def indented(lines: str) -> str:
    return textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ")


# SMP501


#: Spellings of a loader whose sampler there is only if the user says so, by what ``on`` says so.
OPTIONAL_SAMPLERS = [
    "s = DistributedSampler(d, 2, 0) if {on} else None",
    "s = None if not {on} else DistributedSampler(d, 2, 0)",
    "s = DistributedSampler(d, 2, 0)\nif not {on}:\n    s = None",
    "s = None\nif {on}:\n    s = DistributedSampler(d, 2, 0)",
    "if {on}:\n    s, other = DistributedSampler(d, 2, 0), 1\nelse:\n    s = other = None",
    "if (on := {on}):\n    s = DistributedSampler(d, 2, 0)\nelse:\n    s = None",
    "if (s := DistributedSampler(d, 2, 0) if {on} else None) is not None:\n    print('on')",
    "s = {on} and DistributedSampler(d, 2, 0)",
    "s = {on} and DistributedSampler(d, 2, 0) or None",
    "def made():\n    if not {on}:\n        return None\n    return DistributedSampler(d, 2, 0)\n"
    "s = made()",
    "def made():\n    return DistributedSampler(d, 2, 0) if {on} else None\ns = made()",
    "match bool({on}):\n    case True:\n        s = DistributedSampler(d, 2, 0)\n"
    "    case _:\n        s = None",
    "class Made:\n    def __init__(self):\n        self.s = None\n        if {on}:\n"
    "            self.s = DistributedSampler(d, 2, 0)\ns = Made().s",
    "if not {on}:\n    return DataLoader(d, 4, True)\ns = DistributedSampler(d, 2, 0)",
    "kept = [DistributedSampler(d, 2, 0) if {on} else None]\ns = kept[0]",
]
ARGUMENTS = "import argparse\nargs = argparse.ArgumentParser().parse_args([])\n"
#: Where options are kept, with the name that holds this one.
OPTIONS = {
    "args.on": ARGUMENTS,
    "parse().on": ARGUMENTS + "def parse():\n    return args\n",
    "FLAGS.on": "from absl import flags\nFLAGS = flags.FLAGS\n",
    "cfg.TRAIN.ON": "from settings import cfg\n",
    "settings.ON": "import settings\n",
    "ON": "from settings import ON\n",
    "options['on']": "from settings import options\n",
    "os.environ.get('ON')": "",
    "getattr(args, 'on', False)": ARGUMENTS,
    "default.on": "class Default:\n    on = True\ndefault = Default()\n"
    "from settings import change\nchange(default)\n",
    "CONSTANT": "CONSTANT = True\n",
    "table['on']": "from settings import options\ntable = {'on': True}\ntable.update(options)\n",
    "on": "",
}


class _Settings(types.ModuleType):
    """A module of somebody else with every option that a program of these asks for."""

    def __init__(self, name: str, is_on: bool) -> None:
        super().__init__(name)
        self.on = self.ON = is_on
        self.cfg = self.flags = self.FLAGS = self.TRAIN = self
        self.options = {"on": is_on}

    def change(self, options: object) -> None:
        options.on = self.on  # type: ignore[attr-defined]


def _loader_of(program: str, is_on: bool, monkeypatch: pytest.MonkeyPatch) -> DataLoader[int]:
    """What the program builds where the user chose so."""
    monkeypatch.setattr("argparse.ArgumentParser.parse_args", lambda *_: _Settings("args", is_on))
    for name in ("absl", "settings"):
        monkeypatch.setitem(sys.modules, name, _Settings(name, is_on))
    monkeypatch.setenv("ON", "1" if is_on else "")
    scope: dict[str, Any] = {}
    exec(program.replace("CONSTANT = True", f"CONSTANT = {is_on}"), scope)
    loader = scope["build"](scope["Map"](), is_on)
    assert isinstance(loader, DataLoader)
    return loader


@pytest.mark.parametrize("option", OPTIONS)
def test_whoever_starts_the_program_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """A fix keeps what a program did that ran, however its option is spelled."""
    monkeypatch.chdir(tmp_path)
    for lines in OPTIONAL_SAMPLERS:
        body = indented(lines.format(on=option))
        program = (
            f"{IMPORTS}{OPTIONS[option]}\ndef build(d, on):\n{body}\n"
            "    return DataLoader(d, 4, sampler=s, shuffle=True)\n"
        )
        told = engine.fix(["main.py"], overlay={"main.py": program.encode()}, write=False)
        assert told.errors == told.report.errors == []
        new = told.changed.get("main.py", (b"", program.encode()))[1].decode()
        found = [f for f in (*told.fixed, *told.report.findings) if f.code == "SMP501"]
        assert found or lines.startswith(("kept", "match")), program
        with pytest.raises(ValueError, match="mutually exclusive"):
            _loader_of(program, True, monkeypatch)
        if lines.startswith("s = {on} and") and not lines.endswith("None"):
            assert new == program  # torch takes what is not None for a sampler
            continue
        assert isinstance(_loader_of(program, False, monkeypatch).sampler, RandomSampler)
        assert isinstance(_loader_of(new, False, monkeypatch).sampler, RandomSampler), new
        if new != program:
            assert isinstance(_loader_of(new, True, monkeypatch).sampler, DistributedSampler)


@pytest.mark.parametrize(
    "body",
    [
        "return DataLoader(d, sampler=DistributedSampler(d), shuffle=True)  # !",
        "return DataLoader(d, sampler=DistributedSampler(d), shuffle=False)",
        "return DataLoader(d, 4, True, DistributedSampler(d))  # !",
        "return DataLoader(d, 4, False, DistributedSampler(d))",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=True)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=s is None)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=s is not None)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=a.shuffle and not s)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=not a.on)",
        # Two conditions that may well be one.
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=a.world_size == 1)",
        "s, shuffle = None, True\nreturn DataLoader(d, sampler=s, shuffle=shuffle)",
        "shuffle = True\nif a.on:\n    s, shuffle = DistributedSampler(d), False\n"
        "else:\n    s = None\nreturn DataLoader(d, sampler=s, shuffle=shuffle)",
        "if a.shuffle:\n    s = RandomSampler(d)\nelse:\n    s = SequentialSampler(d)\n"
        "return DataLoader(d, sampler=s, shuffle=a.shuffle)  # !",
        # What a loop or a handler assigns is not known after it.
        "shuffle = True\nfor x in a:\n    if x:\n        shuffle = False\n        break\n"
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "try:\n    s = DistributedSampler(d)\nexcept ValueError:\n    s = None\n"
        "return DataLoader(d, sampler=s, shuffle=not s)",
        # Ways that end before the loader do not count.
        "s = DistributedSampler(d)\nif a.shuffle:\n    raise ValueError\n"
        "return DataLoader(d, sampler=s, shuffle=a.shuffle)",
        "assert not a.shuffle\n"
        "return DataLoader(d, sampler=DistributedSampler(d), shuffle=a.shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, shuffle=True) if s is None else DataLoader(d, sampler=s)",
        "b = BatchSampler(RandomSampler(d), 4, False)\n"
        "return DataLoader(d, batch_sampler=b, batch_size=a.size)  # !",
        "b = BatchSampler(RandomSampler(d), 4, False)\n"
        "return DataLoader(d, batch_sampler=b, batch_size=1, drop_last=False, shuffle=None)",
        "b = BatchSampler(RandomSampler(d), 4, False)\n"
        "return DataLoader(d, batch_sampler=b, drop_last=a.drop_last)  # !",
        "b = BatchSampler(RandomSampler(d), 4, False) if a.buckets else None\n"
        "return DataLoader(d, batch_sampler=b, batch_size=1 if a.buckets else a.size)",
        "return DataLoader(d, batch_size=None, drop_last=True)  # !",
        "return DataLoader(d, batch_size=a.size, drop_last=True)",
        "return DataLoader(Endless(), shuffle=True)  # !",
        "return DataLoader(Endless(), shuffle=False)",
        "more = dict(\n    shuffle=True,  # !\n)\n"
        "return DataLoader(d, sampler=DistributedSampler(d), **more)",
        'more = dict(shuffle=True)\nmore["shuffle"] = False\n'
        "return DataLoader(d, sampler=DistributedSampler(d), **more)",
        "return DataLoader(d, sampler=DistributedSampler(d), **a.options)",
        "return DataLoader(d, sampler=a.sampler, shuffle=True)",
    ],
)
def test_arguments_that_exclude_each_other(tmp_path: Path, body: str) -> None:
    found, wanted = check(tmp_path, "SMP501", f"def build(d, a):\n{indented(body)}\n")
    assert found == wanted


@pytest.mark.parametrize(
    "body",
    [
        # The loader stands in a choice: only the ways that come to it count.
        "s = DistributedSampler(d) if a.on else None\n"
        "return None if s is None else DataLoader(d, sampler=s, shuffle=s is None)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=True) if s is not None else None  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "return s is None and DataLoader(d, sampler=s, shuffle=True)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return a.ready and s is not None and DataLoader(d, sampler=s, shuffle=True)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "return s or DataLoader(d, sampler=s, shuffle=True)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=True) or d  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "if DataLoader(d, sampler=s, shuffle=True):  # !\n    return d",
        # What is tested, however it is spelled, is known inside.
        "s = DistributedSampler(d) if a.on else None\n"
        "if a.loud and s is not None:\n    return DataLoader(d, sampler=s)\n"
        "return DataLoader(d, sampler=s, shuffle=not s)",
        "s = DistributedSampler(d) if a.on else None\n"
        "if s is None or a.loud:\n    return d\n"
        "return DataLoader(d, sampler=s, shuffle=True)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "if not (s and a.loud):\n    return d\n"
        "return DataLoader(d, sampler=s, shuffle=True)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "if bool(s):\n    return d\n"
        "return DataLoader(d, sampler=s, shuffle=True)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=bool(s))  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "if isinstance(s, DistributedSampler):\n    return d\n"
        "return DataLoader(d, sampler=s, shuffle=s is None)",
        "s = DistributedSampler(d) if a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=isinstance(s, DistributedSampler))",
        "s = DistributedSampler(d) if a.on else None\n"
        "if not isinstance(s, DistributedSampler):\n    return d\n"
        "return DataLoader(d, sampler=s, shuffle=True)  # !",
        "s = a.sampler\nassert s is not None\nreturn DataLoader(d, sampler=s, shuffle=True)  # !",
        # Two values are compared.
        'kind = "train"\ns = DistributedSampler(d) if kind == "train" else None\n'
        "return DataLoader(d, sampler=s, shuffle=kind == 'train')  # !",
        'kind = "train"\ns = DistributedSampler(d) if kind != "train" else None\n'
        "return DataLoader(d, sampler=s, shuffle=True)",
        's = DistributedSampler(d) if a.kind == "train" else None\n'
        'return DataLoader(d, sampler=s, shuffle=a.kind != "train")',
        's = DistributedSampler(d) if a.kind == "train" else None\n'
        'return DataLoader(d, sampler=s, shuffle=a.kind == "train")  # !',
        "s = DistributedSampler(d) if a.ranks > 1 else None\n"
        "return DataLoader(d, sampler=s, shuffle=not a.ranks > 1)",
        "s = DistributedSampler(d) if a.ranks > 1 else None\n"
        "return DataLoader(d, sampler=s, shuffle=a.ranks > 1)  # !",
        "on = a.on\ns = DistributedSampler(d) if on is a.on else None\n"
        "return DataLoader(d, sampler=s, shuffle=on is not a.on)",
        "s = DistributedSampler(d) if a[0].on else None\n"
        "return DataLoader(d, sampler=s, shuffle=not a[0].on)",
        "s = DistributedSampler(d) if a.of('x', key=1).on else None\n"
        "return DataLoader(d, sampler=s, shuffle=a.of('x', key=1).on)  # !",
        "s = DistributedSampler(d) if -a.n + 1 else None\n"
        "return DataLoader(d, sampler=s, shuffle=not (-a.n + 1))",
        # What statements of other kinds bind is not known after them.
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\nwith a.choice() as shuffle:\n    pass\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\ndel shuffle\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\nimport shuffle\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\ndef shuffle(): pass\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\nshuffle &= a.shuffle\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\n(shuffle, b) = c = a.both\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\na.values[0] = shuffle\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\nwhile a.more():\n    if a.last():\n        break\n"
        "    shuffle = False\nelse:\n    shuffle = False\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\nfor x in a:\n    print(x)\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\nfor x in a:\n    if x:\n        continue\n    raise ValueError\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)  # !",
        "s = DistributedSampler(d) if a.on else None\n"
        "shuffle = True\ntry:\n    import fast\nexcept ImportError:\n    shuffle = False\n"
        "else:\n    shuffle = True\nfinally:\n    print(shuffle)\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s, shuffle = DistributedSampler(d), True\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)  # !",
        "s, shuffle = (DistributedSampler(d) if a.on else None), True\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)  # !",
        "s, shuffle = (DistributedSampler(d), False) if a.on else (None, True)\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s, shuffle = DistributedSampler(d) if a.on else None, True\nshuffle, *b = a.values\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s, shuffle = DistributedSampler(d) if a.on else None, True\nshuffle, b = a, *a\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s, shuffle = DistributedSampler(d) if a.on else None, True\na[0], shuffle = a, b\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)",
        "s, shuffle = DistributedSampler(d) if a.on else None, True\ns, shuffle = shuffle, s\n"
        "return DataLoader(d, sampler=s, shuffle=shuffle)  # !",
        # Values from elsewhere.
        "s = DistributedSampler(d)\nreturn DataLoader(d, sampler=s, shuffle=...)",
        "s = DistributedSampler(d)\nreturn DataLoader(d, sampler=s, shuffle=ALWAYS)  # !",
        "s = DistributedSampler(d)\nreturn DataLoader(d, sampler=s, shuffle=SOMETIMES)  # !",
        "s = chosen(True)\nreturn DataLoader(d, sampler=s, shuffle=True)",
        "s = chosen(a)\nreturn DataLoader(d, sampler=s, shuffle=s is None)",
        "return [DataLoader(x, sampler=chosen(a), shuffle=False) for x in d]",
        "return lambda: DataLoader(d, sampler=DistributedSampler(d), shuffle=True)  # !",
        # Too many ways to look at all.
        "\n".join(f"x{n} = a.x{n} or None" for n in range(12))
        + "\ns = DistributedSampler(d) if x0 and x1 and x2 and x3 and x4 and x5 and x6 and x7 "
        "and x8 and x9 and x10 and x11 else None\n"
        "return DataLoader(d, sampler=s, shuffle=True)",
    ],
)
def test_ways_to_a_loader(tmp_path: Path, body: str) -> None:
    around = """
ALWAYS = True
SOMETIMES = False
if os.environ.get("SHUFFLE"):
    SOMETIMES = True
def chosen(told):
    if told:
        return DistributedSampler(Map())
    return None
"""
    found, wanted = check(tmp_path, "SMP501", f"{around}def build(d, a):\n{indented(body)}\n")
    assert found == wanted


@pytest.mark.parametrize(
    ("calls", "wrong"),
    [
        ("build(1, DistributedSampler([1]), True)", True),
        ("build(1, shuffle=True)", False),
        ("build(1, DistributedSampler([1]))", False),
        ("build(1, DistributedSampler([1]))\nbuild(1, shuffle=True)", False),
        ("build(1, *given)", False),
        ("\n".join(["build(1, DistributedSampler([1]), True)"] * 41), False),  # too many
    ],
)
def test_each_caller_of_a_helper_by_itself(tmp_path: Path, calls: str, wrong: bool) -> None:
    source = (
        "def build(d, sampler=None, shuffle=False):\n"
        "    return DataLoader(d, sampler=sampler, shuffle=shuffle)\n"
    )
    found, _ = check(tmp_path, "SMP501", source + calls + "\n")
    assert bool(found) == wrong


# SMP502


RANKS = """
local = int(os.environ["LOCAL_RANK"])
DistributedSampler(Map(), rank=local)  # !
DistributedSampler(Map(), rank=local, num_replicas=dist.get_world_size())  # !
DistributedSampler(Map(), rank=int(os.environ.get("LOCAL_RANK", 0)))  # !
DistributedSampler(Map(), num_replicas=torch.cuda.device_count())  # !
DistributedSampler(Map(), num_replicas=torch.cuda.device_count(), rank=local)
DistributedSampler(Map(), num_replicas=int(os.environ["WORLD_SIZE"]), rank=int(os.environ["RANK"]))
DistributedSampler(Map(), rank=mesh.get_local_rank(), num_replicas=mesh.size())
local_rank = dist.get_rank()
DistributedSampler(Map(), rank=local_rank)
"""


def test_numbers_of_one_node(tmp_path: Path) -> None:
    found, wanted = check(tmp_path, "SMP502", RANKS)
    assert found == wanted


@pytest.mark.parametrize(
    "start",
    [
        'dist.init_process_group("nccl", rank=local, world_size=8)',
        "torch.multiprocessing.spawn(main, nprocs=8)",
    ],
)
def test_programs_that_number_their_processes(tmp_path: Path, start: str) -> None:
    found, _ = check(tmp_path, "SMP502", RANKS + start + "\n")
    assert found == []


PROGRAM = """
def main(args):
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    files = list_files()
    model = DDP(torch.nn.Linear(1, 1))
    loader = DataLoader(Map(), shuffle=True)  # !
    for batch in loader:
        model(batch).backward()
"""


def test_loader_that_no_one_shards(tmp_path: Path) -> None:
    found, wanted = check(tmp_path, "SMP502", PROGRAM)
    assert wanted
    assert found == wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DDP(torch.nn.Linear(1, 1))", "torch.nn.Linear(1, 1)"),
        ("args.seed", "args.seed + dist.get_rank()"),
        ("DataLoader(Map(), shuffle=True)", "DataLoader(Map())"),
        ("DataLoader(Map(), shuffle=True)", "DataLoader(Endless(), shuffle=False)"),
        ("DataLoader(Map(), shuffle=True)", "DataLoader(unknown(), shuffle=True)"),
        ("DataLoader(Map(), shuffle=True)", "wrap(DataLoader(Map(), **options))"),
        ("list_files()", "list_files()[dist.get_rank()::dist.get_world_size()]"),
        ("    loader =", "    if not args.distributed:\n        loader ="),
        ("    for batch", "    loader = Accelerator().prepare(loader)\n    for batch"),
        (".backward()", ".sum()"),
    ],
)
def test_reasons_to_be_silent(tmp_path: Path, old: str, new: str) -> None:
    assert old in PROGRAM
    found, _ = check(tmp_path, "SMP502", PROGRAM.replace(old, new))
    assert found == []


@pytest.mark.parametrize("package", ["lightning", "accelerate", "ray", "horovod.torch", "mmengine"])
def test_frameworks_that_shard_by_themselves(tmp_path: Path, package: str) -> None:
    found, _ = check(tmp_path, "SMP502", f"import {package}\n{PROGRAM}")
    assert found == []


# SMP503


@pytest.mark.parametrize(
    "body",
    [
        "s = DistributedSampler(d)  # !\nreturn DataLoader(d)",
        "s = DistributedSampler(d)  # !\ns.set_epoch(0)\nreturn DataLoader(d, shuffle=s is None)",
        "s = DistributedSampler(d)  # !\nif s is not None:\n    s.epoch = 3\nreturn DataLoader(d)",
        "s = DistributedSampler(d)  # !\ns = None\nreturn DataLoader(d, sampler=s)",
        "s = DistributedSampler(d)\nreturn DataLoader(d, sampler=s)",
        "s = DistributedSampler(d)\nreturn lambda: DataLoader(d, sampler=s)",
        's = DistributedSampler(d)\nmore = {"sampler": s}\nreturn DataLoader(d, **more)',
        "s = DistributedSampler(d)\nreturn s",
        "s = DistributedSampler(d)\nfor index in s: print(index)",
        "s = DistributedSampler(d)\nreturn DataLoader(d, **locals())",
        "global s\ns = DistributedSampler(d)",
        "with pytest.raises(ValueError):\n    s = DistributedSampler(d, rank=9)",
    ],
)
def test_samplers_that_no_loader_gets(tmp_path: Path, body: str) -> None:
    found, wanted = check(tmp_path, "SMP503", f"def build(d):\n{indented(body)}\n")
    assert found == wanted


@pytest.mark.parametrize(
    ("base", "more", "wrong"),
    [
        ("object", "", True),
        ("torch.nn.Module", "", True),
        ("unknown.Trainer", "", False),
        ("object", "getattr(trainer, 'train_sampler')", False),
        ("object", "use(trainer.train_sampler)", False),
    ],
)
def test_attribute_that_nothing_reads(tmp_path: Path, base: str, more: str, wrong: bool) -> None:
    source = f"""
        import unknown

        class Trainer({base}):
            def __init__(self, d):
                self.train_sampler = DistributedSampler(d)
                self.loader = DataLoader(d)

        {more}
    """
    found, _ = check(tmp_path, "SMP503", source)
    assert bool(found) == wrong


# SMP504


def test_a_pass_is_named_in_its_own_file(tmp_path: Path) -> None:
    """Also where a function of another, longer file wrapped the loader."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "data.py").write_text(
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "from tqdm import tqdm\n\n\n\n\n\n\n\n\n"
        "def loaders(data):\n"
        "    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))\n"
        "    return tqdm(loader)\n"
    )
    (tmp_path / "run.py").write_text(
        "from data import loaders\n\n"
        "def evaluate(model, data, metric):\n"
        "    model.eval()\n"
        "    for batch in loaders(data):\n"
        "        metric.update(model(batch))\n"
    )
    report = engine.check([str(tmp_path)], Options(select=("SMP504",)))
    assert not report.errors
    assert [(Path(f.path).name, f.start.row) for f in report.findings] == [("run.py", 5)]
