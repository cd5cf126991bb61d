"""Awkward programs: each invites a fix, and most of them make the obvious one wrong.

A program is made of a way to build its sampler, a way to count its epochs, a way to get its seed
and so on; :func:`programs` gives them all with what must hold of them once they are fixed.
"""

from __future__ import annotations

import functools
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "awkward_programs"
OPTIONS = (
    "p = argparse.ArgumentParser(); p.add_argument('--seed', type=int, default=3)\n"
    "args = p.parse_args([])"
)

HEADER = """\
import argparse, contextlib, datetime, functools, itertools, os, random, secrets, sys, time, uuid
from typing import TYPE_CHECKING
import torch
import torch.distributed as dist
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler
from torch.utils.data import Sampler, SequentialSampler

data = list(range(16))
FLAG = len(data) > 100

class Loss:
    def backward(self):
        pass

class Optimizer:
    def step(self):
        pass

def loss(batch):
    return Loss()

optimizer = Optimizer()
"""


class Program(NamedTuple):
    """A program and what must hold of it when its fixes were made."""

    name: str
    files: dict[str, str]
    epochs: bool = False
    """Whether each pass over a distributed sampler must have an int of its own for an epoch."""
    as_first: bool = False
    """Whether every rank must have the seed that the first one had."""


def _text(code: str) -> str:
    return textwrap.dedent(code).strip("\n") + "\n"


def _indent(code: str, depth: int = 1) -> str:
    return textwrap.indent(code, "    " * depth)


#: How epochs are counted: the header of the loop, and what stands last in its body.
LOOPS = {
    "range": "for epoch in range(3):",
    "unused": "for _ in range(3):",
    "used underscore": "for _ in range(3):\n    print(_)",
    "texts": "for epoch in map(str, range(3)):",
    "formatted": "for epoch in [f'{i}' for i in range(3)]:",
    "floats": "for epoch in [0.5, 1.5]:",
    "pairs": "for epoch in zip(range(3), 'abc'):",
    "numbered": "for epoch in enumerate('abc'):",
    "numbers and names": "for epoch, name in enumerate('abc'):",
    "names": "for epoch in ('a', 'b'):",
    "pairwise": "for epoch in itertools.pairwise(range(4)):",
    "keys": "for epoch in {'a': 0, 'b': 1}:",
    "reversed": "for epoch in reversed(range(3)):",
    "zipped": "for epoch, name in zip(range(3), 'abc'):",
    "rebound": "for epoch in range(3):\n    epoch = str(epoch)",
    "deleted": "for epoch in range(3):\n    del epoch",
    "while": "epoch = 0\nwhile epoch < 3:\n    epoch += 1",
    "fractions": "epoch = 0.0\nwhile epoch < 1.5:\n    epoch += 0.5",
}

_PLAIN = "sampler = DistributedSampler(data)\nloader = DataLoader(data, sampler=sampler)"
#: How the loader comes about before the loop.
BUILT = {
    "plain": "sampler = DistributedSampler(data)\nloader = DataLoader(data, sampler=sampler)",
    "inner": "loader = DataLoader(data, sampler=DistributedSampler(data))",
    "gone": f"{_PLAIN}\ndel sampler",
    "none": f"{_PLAIN}\nsampler = None",
    "other": (
        "sampler = DistributedSampler(data)\nloader = DataLoader(data, sampler=sampler)\n"
        "sampler = SequentialSampler(data)"
    ),
    "second": (
        "sampler = DistributedSampler(data)\nloader = DataLoader(data, sampler=sampler)\n"
        "sampler = DistributedSampler(data)"
    ),
    "branch": (
        "if FLAG:\n    sampler = DistributedSampler(data)\n"
        "    loader = DataLoader(data, sampler=sampler)\n"
        "else:\n    loader = DataLoader(data, sampler=DistributedSampler(data))"
    ),
    "both": (
        "if FLAG:\n    sampler = DistributedSampler(data)\nelse:\n    sampler = None\n"
        "loader = DataLoader(data, sampler=sampler)"
    ),
    "walrus": (
        "loader = DataLoader(data, sampler=DistributedSampler(data))\n"
        "kept = (sampler := loader.sampler) if FLAG else None"
    ),
    "suppressed": (
        "with contextlib.suppress(ValueError):\n    int('x')\n    sampler = 1\n"
        "loader = DataLoader(data, sampler=DistributedSampler(data))"
    ),
    "tried": (
        "try:\n    sampler = DistributedSampler(data)\n"
        "    loader = DataLoader(data, sampler=sampler)\n"
        "finally:\n    sampler = None"
    ),
    "matched": (
        "match len(data):\n    case 16:\n        made = DistributedSampler(data)\n"
        "    case other:\n        made = SequentialSampler(data)\n"
        "loader = DataLoader(data, sampler=made)"
    ),
}

TRAINING = "for batch in loader:\n    loss(batch).backward()\n    optimizer.step()"

#: What else the loop does, before and after its pass.
AROUND = {
    "": ("", ""),
    "rebuilt": ("", "loader = DataLoader(data, sampler=DistributedSampler(data))"),
    "made": ("loader = DataLoader(data, sampler=DistributedSampler(data))", ""),
    "below": ("s = loader.sampler", "print(type(s).__name__)"),
}


def _loop(head: str, body: str) -> str:
    first, *rest = head.split("\n")
    if head.startswith("epoch"):  # the counter is stepped last
        start, first, step = head.split("\n")
        return f"{start}\n{first}\n{_indent(body)}\n{step}"
    if head.endswith("del epoch"):
        return f"{first}\n{rest[0]}\n{_indent(body)}"
    return "\n".join([first, *rest, _indent(body)])


def _never_set() -> Iterator[Program]:
    for (how, head), (built, code), (around, (before, after)) in itertools.product(
        LOOPS.items(), BUILT.items(), AROUND.items()
    ):
        if around and (how not in {"range", "unused", "names"} or built not in {"plain", "inner"}):
            continue
        if built not in {"plain", "inner"} and how not in {"range", "unused", "while"}:
            continue
        body = "\n".join(filter(None, [before, TRAINING, after]))
        whole = f"{code}\n{_loop(head, body)}\n"
        name = f"never set {how} {built} {around}".strip()
        yield Program(name, {"main.py": HEADER + whole}, epochs=how != "reversed" or not around)
        if built in {"plain", "inner", "gone", "branch"} and how in {"range", "unused"}:
            inside = f"def train():\n{_indent(whole)}\ntrain()\n"
            yield Program(f"{name} in a function", {"main.py": HEADER + inside}, epochs=True)


MISPLACED = {
    "after": "{loop}\n{pass_}\n    sampler.set_epoch(epoch)",
    "after and guarded": (
        "{loop}\n{pass_}\n    if epoch % 2 == 0:\n        sampler.set_epoch(epoch)"
    ),
    "after another value": "{loop}\n{pass_}\n    epoch = epoch + 5\n    sampler.set_epoch(epoch)",
    "after a flag": (
        "first = True\n{loop}\n{pass_}\n    if first:\n        sampler.set_epoch(epoch)\n"
        "        first = False\n    first = False"
    ),
    "after it was made": "{loop}\n{pass_}\n    s = loader.sampler\n    s.set_epoch(epoch)",
    "in the pass": (
        "{loop}\n    for i, batch in enumerate(loader):\n        loss(batch).backward()\n"
        "        optimizer.step()\n        sampler.set_epoch(i)"
    ),
    "in the pass, now and then": (
        "{loop}\n    for i, batch in enumerate(loader):\n        loss(batch).backward()\n"
        "        optimizer.step()\n        if i % 4 == 0:\n            sampler.set_epoch(i)"
    ),
    "before the loop": "sampler.set_epoch(0)\n{loop}\n{pass_}",
    "before the loop, guarded": (
        "if sampler is not None:\n    sampler.set_epoch(0)\n{loop}\n{pass_}"
    ),
    "before the loop, then replaced": ("sampler.set_epoch(0)\nsampler = None\n{loop}\n{pass_}"),
    "a number": "{loop}\n    sampler.set_epoch(0)\n{pass_}",
    "a number with a note": (
        "{loop}\n    # see \x0c the paper\n    sampler.set_epoch(0)  # \x1c why\n{pass_}"
    ),
    "after with a note": (
        "{loop}\n{pass_}\n    # see \x0cthe paper\n    sampler.set_epoch(epoch)  # \u2028why"
    ),
    "after a way out": "{loop}\n{pass_}\n    if FLAG:\n        break\n    sampler.set_epoch(epoch)",
}


def _misplaced() -> Iterator[Program]:
    for (name, code), how in itertools.product(
        MISPLACED.items(), ("range", "unused", "names", "numbers and names", "floats", "texts")
    ):
        if how == "unused" and "epoch)" in code.replace("set_epoch(0)", ""):
            continue
        whole = BUILT["plain"] + "\n" + code.format(loop=LOOPS[how], pass_=_indent(TRAINING)) + "\n"
        # A set_epoch that comes too late leaves the first two passes alike, which may be meant.
        yield Program(f"misplaced {name} {how}", {"main.py": HEADER + whole})


#: Where the program's seed comes from; SEEDED is the way it is seeded with it.
SEEDS = {
    "option": ("p.add_argument('--seed', type=int, default=3)", "args.seed"),
    "pid": ("p.add_argument('--seed', type=int, default=os.getpid())", "args.seed"),
    "time": ("p.add_argument('--seed', type=int, default=time.time_ns() % 1000)", "args.seed"),
    "text": ("p.add_argument('--seed', default='3')", "args.seed"),
    "none": ("p.add_argument('--seed', type=int, default=None)", "args.seed"),
    "list": ("p.add_argument('--seed', type=int, nargs='*', default=[3])", "args.seed[0]"),
}
#: What is made of it afterwards.
REWORKED = {
    "as it is": "",
    "or pid": "args.seed = None or os.getpid()",
    "or counter": "args.seed = None or time.perf_counter_ns()",
    "uuid": "args.seed = uuid.uuid4().int % 1000",
    "secrets": "args.seed = secrets.randbelow(1000000)",
    "now": "args.seed = datetime.datetime.now().microsecond",
    "hash": "args.seed = hash('run') % 1000",
    "drawn": "args.seed = random.SystemRandom().randint(0, 10**6)",
    "rank": "args.seed = 3 + dist.get_rank()",
    "in two steps": "own = os.getpid()\nargs.seed = own + 1",
    "by a function": "def draw():\n    return os.getpid()\nargs.seed = draw()",
    "if none": "if args.seed is None:\n    args.seed = os.getpid()",
    "a number": "args.seed = 5",
    "a sum": "args.seed = 5 + 2 * 3",
    "int of a text": "args.seed = int(os.environ.get('SEED', '7'))",
    "a text": "args.seed = os.environ.get('SEED', '7')",
}
SEEDED = "torch.manual_seed({seed} if isinstance({seed}, int) else 0)"
SEED_BUILDS = {
    "plain": "sampler = DistributedSampler(data)",
    "replaced": "sampler = DistributedSampler(data, seed=0)",
    "noted": (
        "sampler = DistributedSampler(\n    data,\n    shuffle=True  # train, not test\n    ,\n)"
    ),
    "noted last": "sampler = DistributedSampler(\n    data,\n    shuffle=True  # for, training\n)",
}


def _seeds() -> Iterator[Program]:
    start = "p = argparse.ArgumentParser()\n{option}\nargs = p.parse_args([])\n{rework}\n"
    for (kind, (option, seed)), (how, rework), (built, code) in itertools.product(
        SEEDS.items(), REWORKED.items(), SEED_BUILDS.items()
    ):
        if (kind != "option") + (how != "as it is") + 2 * (built != "plain") > 2:
            continue
        for spelled in ("torch.manual_seed({seed})", SEEDED):
            if spelled == SEEDED and kind not in {"text", "none"} and "text" not in how:
                continue
            whole = start.format(option=option, rework=rework) + spelled.format(seed=seed)
            name = f"seed {kind} {how} {built} {spelled is SEEDED}"
            yield Program(name, {"main.py": HEADER + f"{whole}\n{code}\nprint(len(sampler))\n"})


FACTORIES = {
    "called": "build(data)",
    "kept": "make = build\nmake(data)",
    "partial": "functools.partial(build, data)()",
    "mapped": "list(map(build, [data]))",
    "starred": "build(*[data])",
}
SIGNATURES = {
    "plain": "def build(data):\n    return DistributedSampler(data)",
    "positional only": "def build(data, /):\n    return DistributedSampler(data)",
    "shadowing": (
        "seed = 11\ndef build(data):\n    print(seed)\n    return DistributedSampler(data)"
    ),
    "keywords": "def build(data, **more):\n    return DistributedSampler(data, **more)",
    "kept in a class": (
        "class Build:\n    def __init__(self, data):\n"
        "        self.sampler = DistributedSampler(data)\n"
        "    @classmethod\n    def make(cls, data):\n        return cls(data)\n"
        "Build.make(data)\nbuild = Build"
    ),
    "derived": (
        "class Build:\n    def __init__(self, data):\n"
        "        self.sampler = DistributedSampler(data)\n"
        "class Derived(Build):\n    def __init__(self, data):\n        super().__init__(data)\n"
        "Derived(data)\nbuild = Build"
    ),
}


def _factories() -> Iterator[Program]:
    start = (
        "p = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=3)\n"
        "args = p.parse_args([])\ntorch.manual_seed(args.seed)\n"
    )
    for (called, call), (signed, code) in itertools.product(FACTORIES.items(), SIGNATURES.items()):
        main = f"{code}\n{start}{call}\n"
        yield Program(f"factory {called} {signed}", {"main.py": HEADER + main})
        if signed in {"plain", "positional only", "keywords"}:
            files = {
                "main.py": HEADER + f"from parts import build\nimport use\n{start}{call}\n",
                "parts.py": "from torch.utils.data import DistributedSampler\n" + code + "\n",
                "use.py": "from parts import build\nbuild(list(range(4)))\n",
            }
            yield Program(f"factory in a file {called} {signed}", files)


CLASSES = {
    "rank in the seed": """
        p = argparse.ArgumentParser(); p.add_argument('--seed', type=int, default=3)
        args = p.parse_args([]); rank = dist.get_rank()
        sampler = DistributedSampler(data, seed=rank + args.seed{more})
        print(len(sampler))
        """,
    "forwarding": """
        class Wrapper(Sampler):
            def __init__(self, data):
                {store}
            def set_epoch(self, number):
                {body}
            def __iter__(self):
                return iter(self.inner)
            def __len__(self):
                return len(self.inner)
        wrapper = Wrapper(data)
        for epoch in range(3):
            wrapper.set_epoch(epoch)
            list(wrapper)
        """,
    "epoch kept": """
        class Mine(DistributedSampler):
            {before}
            def set_epoch(self, {name}):
                epoch = {name}
                {after}
        sampler = Mine(data)
        for epoch in range(3):
            sampler.set_epoch(epoch)
            list(sampler)
        """,
    "argument not kept": """
        class Mine(Sampler):
            def __init__(self, data, size):
                {first}
                self.data = data
                self.size = size
            def __iter__(self):
                return iter(range(self.size))
            def __len__(self):
                return self.size
        class Derived(Mine):
            def __init__(self, data):
                self.size = 3
        print(list(Mine(data, 4)), list(Derived(data)))
        """,
    "argument for the base": """
        class Mine(Sampler):
            def __init__(self, data, size=2):
                {call}
                self.data = data
            def __iter__(self):
                return iter(self.data)
            def __len__(self):
                return len(self.data)
        print(list(Mine(data)))
        """,
    "epoch only set by its setter": """
        class Mine(Sampler):
            def __init__(self, data):
                {first}
                self.data = data
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                g = torch.Generator()
                g.manual_seed(self.epoch)
                return iter(torch.randperm(len(self.data), generator=g).tolist())
            def __len__(self):
                return len(self.data)
        {derived}
        """,
    "slice to minus zero": """
        class Mine(Sampler):
            def __init__(self, data, size):
                self.data, self.size = data, size
            def __iter__(self):
                order = list(self.data)
                rest = len(order) % self.size
                {between}
                return iter(order[:-rest]{more})
            def __len__(self):
                return len(self.data) // self.size * self.size
        print(list(Mine(data, 5)))
        """,
    "slip of the pen": """
        def build(num_worker):
            return DataLoader(data, num_worker=num_worker{more})
        print(len(build(0)))
        """,
    "size of a batch sampler": """
        class Batches(Sampler):
            def __init__(self, data, bs, drop_last):
                {first}
                self.data, self.bs = data, bs
                self.keep = drop_last
                {last}
            def __iter__(self):
                for start in range(0, len(self.data), self.bs):
                    yield list(range(start, start + self.bs))
            def __len__(self):
                return len(self.data) // self.bs
        from lightning import Trainer
        Trainer(devices=2).fit(None, DataLoader(data, batch_sampler=Batches(data, 2, True)))
        """,
    "shuffle beside a sampler": """
        {before}
        sampler = DistributedSampler(data) {when}
        loader = DataLoader(data, 2, shuffle={shuffle}, sampler=sampler  # split, not copied
        )
        print(len(loader))
        """,
}
FILLED: dict[str, dict[str, tuple[str, ...]]] = {
    "rank in the seed": {"more": ("", " + 7", " * 2", " - 1", " % 100", ", shuffle=True")},
    "forwarding": {
        "store": (
            "self.inner = DistributedSampler(data)",
            "self.inner = inner = DistributedSampler(data)",
            "if FLAG:\n    self.other = 1\nself.inner = DistributedSampler(data)",
        ),
        "body": (
            "pass",
            "return",
            "return self",
            "print(number)",
            "raise SystemExit",
            "if number:\n    return\nprint(number)",
            "number = str(number)",
        ),
    },
    "epoch kept": {
        "before": ("", "mark = 1"),
        "name": ("value", "number"),
        "after": ("", "return self", "print(epoch)", "def show():\n    print(epoch)"),
    },
    "argument not kept": {
        "first": (
            "if size < 1:\n    raise ValueError(f'{self.size}')",
            "print(self.size if size < 1 else 0)",
            "assert self.size if size < 1 else 1",
        ),
    },
    "argument for the base": {
        "call": (
            "super().__init__(data)",
            "super().__init__(data)  # the base",
            "super().__init__(print('x'))",
            "Sampler.__init__(self, data)",
            "super(Mine, self).__init__(\n    data  # kept\n)",
            "super().__init__(data_source=data)",
        ),
    },
    "epoch only set by its setter": {
        "first": ("", "super().__init__()", "return", "list(self) if FLAG else None"),
        "derived": (
            "print(len(Mine(data)))",
            "class Derived(Mine):\n    def __init__(self, data):\n        self.data = data\n"
            "print(len(Derived(data)))",
        ),
    },
    "slice to minus zero": {
        "between": ("", "order.append(1)", "order = order * 2", "del order[0]", "rest = 3"),
        "more": ("", "[::1]"),
    },
    "slip of the pen": {"more": ("", ", drop_last=True", ", **{}", ", num_workers=0")},
    "size of a batch sampler": {
        "first": ("", "if FLAG:\n    return", "del data[:0]", "bs = bs * 1"),
        "last": ("", "del bs", "self.more = 1", "return"),
    },
    "shuffle beside a sampler": {
        "before": ("", "sampler = None"),
        "when": ("", "if FLAG else None"),
        "shuffle": ("True", "not FLAG", "FLAG or True"),
    },
}


def _classes() -> Iterator[Program]:
    for name, template in CLASSES.items():
        holes = FILLED[name]
        for filled in itertools.product(*holes.values()):
            code = _text(template)
            for hole, value in zip(holes, filled, strict=True):
                code = code.replace("{" + hole + "}", _aligned(code, hole, value))
            title = f"{name} {' '.join(map(repr, filled))}"
            yield Program(title, {"main.py": HEADER + code})


def _aligned(code: str, hole: str, value: str) -> str:
    """The value with its further lines as deep as the first."""
    line = next(line for line in code.splitlines() if "{" + hole + "}" in line)
    depth = len(line) - len(line.lstrip())
    if not value and line.strip() == "{" + hole + "}":
        return "pass"
    return value.replace("\n", "\n" + " " * depth)


#: Small programs, each with one thing that a fix is easily wrong about.
SINGLE = {
    "a text holds the counter": """
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        for _ in range(3):
            print(f'turn {_}')
            for batch in loader:
                loss(batch).backward()
                optimizer.step()
        """,
    "a text tells the size too early": """
        class Mine(Sampler):
            def __init__(self, data, number):
                if FLAG:
                    size = number
                if number < 1:
                    raise ValueError(f'{self.size} of {number}')
                self.data = data
                self.size = number
            def __iter__(self):
                return iter(range(self.size))
        print(list(Mine(data, 3)))
        """,
    "a function of the file is run too early": """
        def build():
            return DistributedSampler(data)
        first = build()
        p = argparse.ArgumentParser()
        p.add_argument('--seed', type=int, default=3)
        args = p.parse_args([])
        torch.manual_seed(args.seed)
        print(len(build()))
        """,
    "two loaders in turn": """
        sampler = DistributedSampler(data)
        loaders = [DataLoader(data, sampler=sampler), DataLoader(data, sampler=sampler)]
        for epoch in range(2):
            for loader in loaders:
                for batch in loader:
                    loss(batch).backward()
                    optimizer.step()
        """,
    "an inner counter of the same name": """
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        for epoch in range(3):
            for epoch in range(1):
                for batch in loader:
                    loss(batch).backward()
                    optimizer.step()
        """,
    "a closure reads the counter": """
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        told = []
        for _ in range(3):
            told.append(lambda: _)
            for batch in loader:
                loss(batch).backward()
                optimizer.step()
        print([one() for one in told])
        """,
    "the counter is read after the loop": """
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        for _ in range(3):
            for batch in loader:
                loss(batch).backward()
                optimizer.step()
        print(_)
        """,
    "the counter in an else": """
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        for _ in range(3):
            for batch in loader:
                loss(batch).backward()
                optimizer.step()
        else:
            print(_)
        """,
    "an epoch of its own": """
        epoch = 'kept'
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        for _ in range(3):
            for batch in loader:
                loss(batch).backward()
                optimizer.step()
        print(epoch)
        """,
    "a property makes the loader": """
        class Trainer:
            @property
            def loader(self):
                return DataLoader(data, sampler=DistributedSampler(data))
            def train(self):
                for epoch in range(3):
                    for batch in self.loader:
                        loss(batch).backward()
                        optimizer.step()
        Trainer().train()
        """,
    "a method makes the loader": """
        class Trainer:
            def __init__(self):
                self.reset()
            def reset(self):
                self.loader = DataLoader(data, sampler=DistributedSampler(data))
            def train(self):
                for epoch in range(3):
                    self.reset()
                    for batch in self.loader:
                        loss(batch).backward()
                        optimizer.step()
        Trainer().train()
        """,
    "a method replaces the loader after the pass": """
        class Trainer:
            def __init__(self):
                self.reset()
            def reset(self):
                self.loader = DataLoader(data, sampler=DistributedSampler(data))
            def train(self):
                for epoch in range(3):
                    for batch in self.loader:
                        loss(batch).backward()
                        optimizer.step()
                    self.reset()
        Trainer().train()
        """,
    "names of a class body": """
        class Trainer:
            sampler = DistributedSampler(data)
            loader = DataLoader(data, sampler=sampler)
            def train(self):
                for epoch in range(3):
                    for batch in self.loader:
                        loss(batch).backward()
                        optimizer.step()
        Trainer().train()
        """,
    "a loop in a class body": """
        class Trainer:
            sampler = DistributedSampler(data)
            loader = DataLoader(data, sampler=sampler)
            for epoch in range(3):
                for batch in loader:
                    loss(batch).backward()
                    optimizer.step()
        """,
    "the sampler is kept under another name": """
        class Trainer:
            def __init__(self):
                self.sampler = DistributedSampler(data)
                self.loader = DataLoader(data, sampler=self.sampler)
                self.sampler = None
            def train(self):
                for epoch in range(3):
                    for batch in self.loader:
                        loss(batch).backward()
                        optimizer.step()
        Trainer().train()
        """,
    "the options come in a branch": """
        if not FLAG:
            p = argparse.ArgumentParser()
            p.add_argument('--seed', type=int, default=3)
            args = p.parse_args([])
            torch.manual_seed(args.seed)
        sampler = DistributedSampler(data)
        print(len(sampler))
        """,
    "the options come in a branch that is not taken": """
        if FLAG:
            p = argparse.ArgumentParser()
            p.add_argument('--seed', type=int, default=3)
            args = p.parse_args([])
            torch.manual_seed(args.seed)
        sampler = DistributedSampler(data)
        print(len(sampler))
        """,
    "the options are gone": """
        p = argparse.ArgumentParser()
        p.add_argument('--seed', type=int, default=3)
        args = p.parse_args([])
        torch.manual_seed(args.seed)
        del args
        sampler = DistributedSampler(data)
        print(len(sampler))
        """,
    "the options are replaced": """
        p = argparse.ArgumentParser()
        p.add_argument('--seed', type=int, default=3)
        args = p.parse_args([])
        torch.manual_seed(args.seed)
        args = [1, 2]
        sampler = DistributedSampler(data)
        print(len(sampler))
        """,
    "the options are hidden": """
        p = argparse.ArgumentParser()
        p.add_argument('--seed', type=int, default=3)
        args = p.parse_args([])
        torch.manual_seed(args.seed)
        def build(*args):
            return DistributedSampler(args[0])
        print(len(build(data)))
        """,
    "the options are a loop's own": """
        p = argparse.ArgumentParser()
        p.add_argument('--seed', type=int, default=3)
        args = p.parse_args([])
        torch.manual_seed(args.seed)
        for args in [data]:
            sampler = DistributedSampler(args)
        print(len(sampler))
        """,
    "a generator's seed": """
        args = argparse.Namespace(seed=int(torch.randint(5, 9, (1,))) + os.getpid())
        torch.manual_seed(args.seed)
        sampler = DistributedSampler(data)
        print(len(sampler))
        """,
    "a parameter that nobody shares": """
        def build(seed):
            torch.manual_seed(seed)
            return DistributedSampler(data)
        print(len(build(os.getpid())))
        """,
    "a parameter by default": """
        def build(seed=os.getpid()):
            torch.manual_seed(seed)
            return DistributedSampler(data)
        print(len(build()))
        """,
    "a parameter that may be None": """
        def build(seed=None):
            torch.manual_seed(seed or 3)
            return DistributedSampler(data)
        print(len(build()), len(build(4)))
        """,
    "a parameter that is a text": """
        def build(seed: str):
            torch.manual_seed(int(seed))
            return DistributedSampler(data)
        print(len(build('3')))
        """,
    "a field": """
        class Config:
            seed = os.getpid()
        cfg = Config()
        torch.manual_seed(cfg.seed)
        sampler = DistributedSampler(data)
        print(len(sampler))
        """,
    "an option of the batch sampler's loader is read elsewhere": """
        class Batches(DistributedSampler):
            def __iter__(self):
                return iter([[i] for i in super().__iter__()])
        loader = DataLoader(data, batch_sampler=Batches(data))
        for epoch in range(3):
            sampler = loader.sampler
            sampler.set_epoch(epoch) if hasattr(sampler, 'set_epoch') else None
            print(type(sampler).__name__)
            list(loader)
        """,
    "the sampler of the loader is read elsewhere": """
        class Batches(DistributedSampler):
            def __iter__(self):
                return iter([[i] for i in super().__iter__()])
        SequentialSampler.set_epoch = lambda self, epoch: None
        loader = DataLoader(data, batch_sampler=Batches(data))
        for epoch in range(3):
            sampler = loader.sampler
            sampler.set_epoch(epoch)
            print(type(sampler).__name__)
            list(loader)
        """,
    "only a checker imports the base": """
        if TYPE_CHECKING:
            from torch.utils.data import BatchSampler as Base
        else:
            Base = Sampler
        class Batches(Sampler):
            def __init__(self, data):
                self.data = data
            def __iter__(self):
                yield [1]
            def __len__(self):
                return 1
        def build(batches):
            assert isinstance(batches, BatchSampler), 'no'
            return DataLoader(data, batch_sampler=batches)
        try:
            build(Batches(data))
        except AssertionError:
            pass
        """,
    "an outside reader of the setter's name": """
        class Mine(DistributedSampler):
            def set_epoch(self, epoch):
                self._epoch = epoch
        sampler = Mine(data)
        for epoch in range(3):
            sampler.set_epoch(epoch)
            list(sampler)
            print(sampler._epoch)
        """,
}

#: How a seed is spelled that holds the rank.
WITH_RANK = (
    "rank + (args.seed or 1) + 7",
    "args.seed + rank",
    "(args.seed or 1) + rank",
    "7 + rank + args.seed * 2",
    "args.seed + rank if args.seed else rank",
    "args.seed * 2 + rank",
    "(args.seed + rank) * 3",
    "int(args.seed) + int(rank)",
    "args.seed ^ rank",
    "args.seed - -rank",
    "(lambda: args.seed)() + rank",
    "args.seed + 100 * rank",
    "rank + args.seed if rank else args.seed",
)

SEEDLESS = """
class Mine({base}):
    def __init__(self, data):
        {first}
        self.data = data
        self.epoch = 0
        {last}
    def order(self):
        g = torch.Generator()
        g.manual_seed(self.epoch{more})
        return torch.randperm(len(self.data), generator=g).tolist()[dist.get_rank()::2]
    def __iter__(self):
        return iter(self.order())
    def __len__(self):
        return len(self.data) // 2
{derived}
"""
SEEDLESS_PARTS = {
    "base": ("Sampler",),
    "first": ("pass", "print('made')"),
    "last": ("pass", "self.first = self.order()", "self.seed_of = 3"),
    "more": ("", " % 100", " + 3"),
    "derived": (
        "sampler = Mine(data)",
        "class Derived(Mine):\n    def __init__(self, data):\n        self.data = data\n"
        "        self.epoch = 1\nsampler = Derived(data)\nother = Mine(data)\nlist(sampler)",
    ),
}


def _single() -> Iterator[Program]:
    for name, code in SINGLE.items():
        text = HEADER + _text(code)
        yield Program(
            name, {"main.py": text}, epochs="._epoch" not in code and "loaders" not in code
        )
    start = (
        "p = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=3)\n"
        "args = p.parse_args([])\nrank = dist.get_rank()\n"
    )
    for spelled in WITH_RANK:
        code = f"{start}sampler = DistributedSampler(data, seed={spelled})\nprint(len(sampler))\n"
        yield Program(f"seed with rank {spelled}", {"main.py": HEADER + code}, as_first=True)
    for parts in itertools.product(*SEEDLESS_PARTS.values()):
        code = start + "torch.manual_seed(args.seed)\n" + SEEDLESS.strip("\n") + "\n"
        for hole, value in zip(SEEDLESS_PARTS, parts, strict=True):
            code = code.replace("{" + hole + "}", _aligned(code, hole, value))
        yield Program(f"seedless {parts}", {"main.py": HEADER + code})


#: What a program makes, and what it does with that.
MADE = {
    "201": (
        "OPTIONS\ntorch.manual_seed(args.seed)",
        "def make(data):\n    return DistributedSampler(data)",
        "list(DataLoader(data, sampler=made))",
    ),
    "201 text": (
        "OPTIONS\nargs.seed = str(args.seed)\ntorch.manual_seed(int(args.seed))",
        "def make(data):\n    return DistributedSampler(data)",
        "list(DataLoader(data, sampler=made))",
    ),
    "201 configured": (
        "class Config:\n    seed = 3\n    def spread(self):\n"
        "        return self.seed + os.getpid()\ncfg = Config()\ntorch.manual_seed(cfg.seed)",
        "def make(data):\n    return DistributedSampler(data)",
        "list(DataLoader(data, sampler=made))",
    ),
    "203": (
        "OPTIONS\ntorch.manual_seed(args.seed)",
        """
class make(Sampler):
    def __init__(self, data):
        self.data = data
        self.epoch = 0
    def set_epoch(self, epoch):
        self.epoch = epoch
    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.epoch)
        return iter(torch.randperm(len(self.data), generator=g).tolist()[dist.get_rank()::2])
    def __len__(self):
        return len(self.data) // 2
""",
        "list(DataLoader(data, sampler=made))",
    ),
    "104": (
        "",
        """
class make:
    def __init__(self, data):
        self.inner = DistributedSampler(data)
    def set_epoch(self, epoch):
        self.epoch = epoch
    def __iter__(self):
        return iter(self.inner)
    def __len__(self):
        return len(self.inner)
""",
        "loader = DataLoader(data, sampler=made)\nfor epoch in range(3):\n"
        "    made.set_epoch(epoch)\n    for batch in loader:\n"
        "        loss(batch).backward()\n        optimizer.step()",
    ),
    "102": (
        "",
        "def make(data):\n    return DataLoader(data, sampler=DistributedSampler(data))",
        "for epoch in range(3):\n    for batch in made:\n"
        "        loss(batch).backward()\n        optimizer.step()",
    ),
    "101": (
        "",
        "def make(data):\n    return DataLoader(\n"
        "        data, batch_sampler=BatchSampler(DistributedSampler(data), 2, False))",
        "for epoch in range(3):\n    made.sampler.set_epoch(epoch) if FLAG else None\n"
        "    if isinstance(made.sampler, DistributedSampler):\n"
        "        made.sampler.set_epoch(epoch)\n    for batch in made:\n"
        "        loss(batch).backward()\n        optimizer.step()",
    ),
    "405": (
        "",
        """
class make(Sampler):
    def __init__(self, data):
        self.data = data
    def __iter__(self):
        order = list(range(len(self.data)))
        rest = len(order) % 2
        return iter(order[:-rest])
    def __len__(self):
        return len(self.data) // 2 * 2
""",
        "list(DataLoader(data, sampler=made))",
    ),
}
#: How it is called.
CALLED = {
    "partial": "made = functools.partial(make, data)()",
    "kept partial": "build = functools.partial(make)\nmade = build(data)",
    "keywords": "made = make(**{'data': data})",
    "kept keywords": "options = dict(data=data)\nmade = make(**options)",
    "star": "made = make(*[data])",
    "walrus": "print(bool(made := make(data)))",
    "finally": "try:\n    made = make(data)\nfinally:\n    print('built')",
    "match": (
        "match len(data):\n    case 16:\n        made = make(data)\n    case _:\n        made = 1"
    ),
    "nested": (
        "def outer():\n    def inner():\n        return make(data)\n    return inner()\n"
        "made = outer()"
    ),
    "async": (
        "import asyncio\nasync def build():\n    return make(data)\nmade = asyncio.run(build())"
    ),
    "class body": "class Parts:\n    made = make(data)\nmade = Parts.made",
    "dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass Parts:\n"
        "    made: object = dataclasses.field(default_factory=lambda: make(data))\n"
        "made = Parts().made"
    ),
    "map": "made, = map(make, [data])",
    "comprehension": "made = [make(each) for each in [data]][0]",
    "lambda": "build = lambda data: make(data)\nmade = build(data)",
    "decorated": (
        "def noisy(function):\n    @functools.wraps(function)\n    def run(*args):\n"
        "        print(len(args))\n        return function(*args)\n    return run\n"
        "made = noisy(make)(data)"
    ),
    "registry": "KINDS = {'a': make}\nmade = KINDS['a'](data)",
    "by name": "made = globals()['make'](data)",
    "alias": "other = make\nmade = other(data)",
    "twice": "made = make(data)\nmade = make(data[::-1])",
    "kept in self": (
        "class Trainer:\n    def __init__(self, made=None):\n"
        "        self.made = make(data) if made is None else made\nmade = Trainer().made"
    ),
    "property": (
        "class Trainer:\n    @property\n    def made(self):\n        return make(data)\n"
        "trainer = Trainer()\nmade = trainer.made"
    ),
    "class method": (
        "class Trainer:\n    @classmethod\n    def build(cls):\n        return make(data)\n"
        "made = Trainer.build()"
    ),
    "configured": (
        "from types import SimpleNamespace\ndef main(function):\n    def run():\n"
        "        return function(SimpleNamespace(data=data, seed='s'))\n    return run\n"
        "@main\ndef build(cfg):\n    return make(cfg.data)\nmade = build()"
    ),
    "deleted": "made = make(data)\nkept = made\ndel make",
    "generator": "def each():\n    yield make(data)\nmade = next(each())",
    "global": "def build():\n    global made\n    made = make(data)\nbuild()",
}
SHORT = (
    "import torch\n"
    "from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, Sampler"
)


def _called() -> Iterator[Program]:
    """Each thing made in each way; in one file, and by another file that a second program uses."""
    for (rule, (first, definition, use)), (way, call) in itertools.product(
        MADE.items(), CALLED.items()
    ):
        start = HEADER + first.replace("OPTIONS", OPTIONS) + "\n"
        name = f"{rule} by {way}"
        code = "\n".join([definition.strip("\n"), call, use, ""])
        yield Program(name, {"main.py": start + code}, epochs=True)
        parts = f"{SHORT}\nimport torch.distributed as dist\n{definition}\n"
        second = "from parts import make\nlist(make(list('abcdef')))\n"
        code = "\n".join(["from parts import make", call, use, ""])
        yield Program(
            f"{name} of another file",
            {"main.py": start + code, "parts.py": parts, "second.py": second},
            epochs=True,
        )


def _written() -> Iterator[Program]:
    """Those written down one by one: `==== title`, the program, `#### file` and other files.

    A title's end says `(epochs repeat)` where passes may have the same epoch, and `(as the first)`
    where every rank must get the seed that the first one had.
    """
    for path in sorted(PROGRAMS.glob("*.txt")):
        for part in re.split(r"^==== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, _, body = part.partition("\n")
            main, *others = re.split(r"^#### (?=.)", body, flags=re.MULTILINE)
            files = {"main.py": HEADER + re.sub(r"^OPTIONS$", OPTIONS, main, flags=re.MULTILINE)}
            files.update((name, text) for name, _, text in (one.partition("\n") for one in others))
            repeats, first = title.endswith("(epochs repeat)"), title.endswith("(as the first)")
            yield Program(f"{path.stem}: {title}", files, not repeats, first)


@functools.cache
def programs() -> list[Program]:
    """All of them."""
    made = (_never_set(), _misplaced(), _seeds(), _factories(), _classes(), _single(), _called())
    made = (*made, _written())
    return [program for group in made for program in group if _compiles(program)]


def _compiles(program: Program) -> bool:
    for name, text in program.files.items():
        if name.endswith(".py"):
            compile(text, "<awkward>", "exec")
    return True
