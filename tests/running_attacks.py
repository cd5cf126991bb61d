"""Sampler classes made to take all time or memory of whoever tries them.

Run as a program, it tries each under an address-space limit, or calls each function of the
interpreter's library with what is hostile, and prints, a line each, its name before and what came
of it after.
"""

from __future__ import annotations

import itertools
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: What an attack may need, beside the standard library.
HELPERS = """
def doubled(turns=40, start=0):
    x = [start]
    for _ in range(turns):
        x = [x, x]
    return x

def paired(turns=40, start=0):
    x = (start,)
    for _ in range(turns):
        x = (x, x)
    return x

def grown(turns=40, start="a"):
    x = start
    for _ in range(turns):
        x = x + x
    return x

def squared(turns=40):
    x = 3
    for _ in range(turns):
        x = x * x
    return x

def deep(turns=30000, kind=list):
    x = 0
    for _ in range(turns):
        x = [x] if kind is list else (x,)
    return x

def lazy(turns=8000):
    x = iter([1, 2])
    for _ in range(turns):
        x = (y for y in x)
    return x

def mapped(wrap, turns=8000):
    x = iter([1, 2])
    for _ in range(turns):
        x = wrap(x)
    return x

def endless():
    n = 0
    while True:
        n += 1
        yield n

def forever(n=0):
    return forever(n + 1)

def fork(n):
    return fork(n - 1) + fork(n - 1) if n else 1

def chained(dataset):
    x = dataset.thing
    for _ in range(60):
        x = x(x, x)
    return x

def dotted(x, turns=30000):
    for _ in range(turns):
        x = x.name
    return x

def itself():
    x = [1]
    x.append(x)
    return x

def appended(turns=10**9):
    x = [0]
    for y in x:
        x.append(y)
    return x

def while_grows():
    x = [[0] * 50] * 50
    n = 0
    while n < 10**9:
        n += 1
        x = [x, x]
    return n

class Loop:
    @property
    def me(self):
        return self.me

class Node:
    def __init__(self, a, b):
        self.a, self.b = a, b
"""

OPERATIONS = """
np.random.choice(2**31)
np.random.choice(2**31, 3)
np.random.choice(3, 2**31)
np.random.choice(10**30)
np.random.permutation(10**10)
np.random.randint(0, 5, size=10**10)
torch.randperm(10**12)
torch.multinomial(torch.ones(4), 10**10, True)
random.sample(range(10**12), 10**11)
random.choices([1], k=10**10)
random.choices(range(10**12), k=2)
random.choice(range(10**12))
random.shuffle(list(range(10**10)))
torch.manual_seed(paired())
np.random.default_rng(doubled())
b"a" * 3 * 10**9
b"%1000000000d" % 3
"a" * 3 * 10**9
"%1000000000d" % 3
f"{3:1000000000d}"
"{:1000000000d}".format(3)
"a".ljust(10**10)
"".join("a" for _ in endless())
"a".join(["b" * 10**6] * 10**6)
bytes(10**10)
bytearray(10**10)
[0] * 10**10
(0,) * 10**10
10**10 * [0]
[[0] * 1000] * 10**9
[0] * 250000 + [0] * 250000
[[0] * 1000 for _ in range(10**6)]
[x for x in range(10**12)]
[x for a in range(10**6) for x in range(a)]
{x for x in range(10**12)}
{x: x for x in range(10**12)}
{(x * (2**61 - 1)): x for x in range(10**5)}
set(range(10**10))
dict.fromkeys(range(10**10))
dict(enumerate(range(10**10)))
list(range(10**10))
tuple(range(10**10))
sorted(range(10**10))
sorted(endless())
reversed(range(10**12))
sum(range(1, 10**12))
sum([[0] * 1000] * 10**6, [])
sum([(0,) * 1000] * 1000, ())
min(range(10**12))
max(endless())
all(range(1, 10**12))
any(x < 0 for x in range(10**12))
any(itertools.cycle([0]))
all(itertools.repeat(1))
list(itertools.repeat(0, 10**12))
list(itertools.cycle([0]))
list(itertools.chain.from_iterable(itertools.repeat([1])))
list(itertools.accumulate([[0] * 100] * 10**4))
list(itertools.accumulate(itertools.repeat(1)))
list(itertools.islice(itertools.cycle([0]), 10**12))
next(itertools.islice(itertools.cycle([0]), 10**12, None))
next(x for x in itertools.cycle([0]) if x)
list(zip(itertools.cycle([0]), itertools.cycle([1])))
list(map(lambda x: x, itertools.cycle([0])))
list(filter(None, itertools.cycle([0])))
list(enumerate(itertools.cycle([0])))
list(itertools.product(range(10**6), range(10**6)))
list(itertools.permutations(range(100)))
list(itertools.combinations(range(100), 50))
collections.Counter(range(10**10))
collections.Counter("a" * 10**9)
collections.deque(range(10**10))
{**{x: x for x in range(10**6)}}
[*range(10**10)]
(lambda *a: a)(*range(10**10))
max(*range(10**10))
5 in itertools.cycle([0])
[0] in itertools.repeat(0)
doubled() == doubled()
doubled() != doubled(40, 1)
doubled() < doubled()
[doubled()].index(doubled(40, 1))
[doubled()].count(doubled())
doubled() in [doubled()]
max(doubled(), doubled())
sorted([doubled(), doubled()])
paired() == paired()
{paired(): 1}
{paired()}
{1: 2}.get(paired())
hash(paired())
repr(doubled())
str(doubled())
f"{doubled()}"
copy.deepcopy(doubled())
copy.deepcopy(itself())
itself() == itself()
deep() == deep()
copy.deepcopy(deep())
repr(deep())
{deep(30000, tuple)}
[deep(30000, tuple)].index(deep(30000, tuple))
grown()
grown(40, [0])
grown(40, (0,))
grown(25) == grown(25)
squared()
squared() % 7
2**2**100
10**10**10
(2**500)**60 * (2**500)**60
1 << 10**10
-1 << 10**12
pow(3, 10**10)
pow(2, 10**10, 10**9)
5.5**10**10
int("9" * 10**6)
float("9" * 10**8)
str(10**4000)
round(5, -10**9)
round(5, -10**10)
divmod(10**4000, 3)
math.factorial(10**8)
math.comb(10**8, 10**7)
math.perm(10**8, 10**7)
math.gcd(*range(10**10))
math.lcm(*range(1, 10**5))
math.prod(range(1, 10**7))
math.fsum(range(10**12))
math.isqrt(10**4000)
list(lazy())
next(lazy())
lazy()
list(mapped(enumerate))
list(mapped(zip))
list(mapped(lambda x: itertools.chain(x, x), 60))
list(mapped(itertools.chain))
list(mapped(lambda x: map(abs, x)))
list(mapped(lambda x: filter(None, x)))
list(mapped(itertools.cycle))
list(mapped(lambda x: itertools.islice(x, 3)))
list(mapped(itertools.accumulate))
list(endless())
forever()
fork(60)
chained(self.dataset)
int(chained(self.dataset) + 1)
dotted(os.thing)
dotted(self.dataset.thing)
appended()
while_grows()
Loop().me
[Node(Node(1, 2), i) for i in range(10**9)]
np.tile([1, 2, 3], 10**10)
np.tile(range(10**10), 2)
np.repeat([1, 2, 3], 10**10)
np.repeat(range(10**10), 2)
np.zeros(10**12)
torch.ones((10**12,))
np.arange(10**12)
np.arange(250000) * np.arange(250000)
-np.arange(10**12)
np.array(range(10**10))
np.array_split(range(10), 10**12)
np.array_split(range(10**12), 2)
np.linspace(0, 1, 10**12)
np.cumsum(range(10**12))
np.cumsum([[0] * 100] * 10**4)
np.concatenate([range(10**6)] * 10**6)
torch.cat([torch.arange(10**5)] * 10**5)
np.sort(range(10**12))
np.argsort(range(10**12))
np.unique(range(10**12))
np.argmax(range(10**12))
np.searchsorted(range(10**12), 5)
np.where(np.ones(10**12))
np.ceil(np.arange(10**10))
np.sum(range(10**12))
np.array(["a" * 1000]) * 10**9
np.arange(10**6)[::2].tolist()
np.arange(1000)[[0] * 10**9]
bisect.bisect_left(range(10**12), 5)
bisect.bisect([doubled()], doubled(40, 1))
operator.itemgetter(*range(10**10))
operator.mul([0], 10**10)
re.match("(a+)+$", "a" * 40 + "b")
re.sub("(a|a)*b", "", "a" * 50)
functools.reduce(lambda a, b: a * b, range(1, 10**6))
collections.defaultdict(lambda: [0] * 10**10)[1]
[0] * len(range(10**12))
len(range(10**30))
len([0] * 10**10)
range(10**12)[::-1][10**10:] == range(5)
list(range(10**12))[::2]
list(range(10**12)[5:])
[1].__imul__(10**10)
[1, 2].extend(itertools.cycle([0]))
{1}.update(itertools.cycle([0]))
{}.update(itertools.cycle([(0, 1)]))
{1} | set(range(10**10))
{1}.union(itertools.count())
list(itertools.count())
tuple(open("x") for _ in endless())
isinstance(3, tuple(int for _ in range(10**10)))
getattr(self, "a" * 10**10)
os.getenv(paired())
slice(0, 10**30).indices(10**30)
[0, 1][10**30:]
(yield_from for yield_from in endless())
[print(x) for x in endless()]
[i for i in range(200000) if [0] * i]
[[0] * 20000 for i in range(50)]
[list(range(3000)) for i in range(300)]
[j for i in range(300) for j in range(300)]
""".strip().splitlines()

#: Where an operation stands; ``{}`` is its place.
PLACES = {
    "iter": """
    def __iter__(self):
        x = {}
        return iter([0, 1])
""",
    "generator": """
    def __iter__(self):
        yield 0
        x = {}
        yield 1
""",
    "len": """
    def __iter__(self):
        return iter([0, 1])
    def __len__(self):
        x = {}
        return 2
""",
    "init": """
    def __init__(self, dataset):
        self.dataset = dataset
        self.x = {}
    def __iter__(self):
        return iter([0, 1])
""",
    "helper": """
    def __iter__(self):
        return iter([0, self.help()])
    def help(self):
        x = {}
        return 1
""",
    "property": """
    def __iter__(self):
        return iter([0, self.one])
    @property
    def one(self):
        x = {}
        return 1
""",
    "default": """
    def __iter__(self, x=lambda self: {}):
        y = x(self)
        return iter([0, 1])
""",
    "comprehension": """
    def __iter__(self):
        return iter([i for i in range(2) if [{}] or True])
""",
    "nested": """
    def __iter__(self):
        return iter(Inner(self.dataset).ones())
""",
    "handed": """
    def __iter__(self):
        return iter({})
""",
    "length": """
    def __iter__(self):
        return iter([0, 1])
    def __len__(self):
        return {}
""",
}

HEAD = """
import bisect, collections, copy, functools, itertools, math, operator, os, random, re
import numpy as np
import torch
from torch.utils.data import Sampler
"""

INNER = """
class Inner:
    def __init__(self, dataset):
        self.dataset = dataset
    def ones(self):
        x = {}
        return [0, 1]
"""

BASE = """
class S(Sampler):
    def __init__(self, dataset):
        self.dataset = dataset
"""


def attacks() -> dict[str, str]:
    """The programs, each with a sampler class ``S``, by their names.

    Each operation stands in two of the places; over all of them, in each.
    """
    out = {}
    places = list(PLACES)
    for number, operation in enumerate(OPERATIONS):
        for turn in (0, 5):
            place = places[(number + turn) % len(places)]
            inner = INNER.replace("{}", f"({operation})") if place == "nested" else ""
            body = PLACES[place].replace("{}", f"({operation})")
            out[f"{place}: {operation}"] = f"{HEAD}{HELPERS}{inner}{BASE}{body}"
    return out


STEPS_A_RUN = 6_000
STEPS_A_CLASS = 100_000


def try_attacks(folder: Path) -> None:
    """Say a line for each: its name before, and what came of it after."""
    from sampler_lint.domain.model import Model
    from sampler_lint.execution import budget
    from sampler_lint.execution.budget import BUDGET
    from sampler_lint.workspace.project import Project

    # A tenth: what ends within it by being charged ends within any.
    budget.STEPS_A_RUN, budget.STEPS_A_CLASS = STEPS_A_RUN, STEPS_A_CLASS
    path = folder / "samplers.py"
    for name, text in attacks().items():
        print(json.dumps(name), flush=True)
        path.write_text(text, encoding="utf-8")
        model = Model(Project(str(folder), {str(path): "samplers.py"}))
        cls = next(cls for _, cls in model.classes() if cls.name == "S")
        trials = model.trials(cls)
        print(json.dumps([len(trials.usual), trials.unknown, BUDGET.steps]), flush=True)


#: What each function of the library is given to spend.
FEW_STEPS = 500
FEW_BYTES = 1 << 18


def library_tables() -> dict[str, Any]:
    """Every function of the library, by table and name."""
    from sampler_lint.execution import arrays, builtin, methods, standard

    tables: dict[str, dict[str, Any]] = {
        "builtins": builtin.BUILTINS,
        "math": builtin.MATH,
        "dotted": standard.DOTTED,
        "anywhere": standard.ANYWHERE,
        "random": arrays.RANDOM,
        "arrays": arrays.ARRAYS,
        **{kind.__name__: table for kind, table in methods.METHODS.items()},
    }
    return {f"{table}: {name}": op for table, ops in tables.items() for name, op in ops.items()}


def hostile() -> list[Callable[[], Any]]:
    """What is large, endless, deep or shared."""
    from sampler_lint.execution.values import Array, Data

    names: dict[str, Any] = {}
    exec(HELPERS, names)
    many = 4_000
    return [
        lambda: 10**12,
        lambda: -(10**12),
        lambda: 10**600,
        lambda: 1e308,
        lambda: "9" * 10**6,
        lambda: range(10**12),
        lambda: range(10**30),
        lambda: itertools.repeat(0),
        lambda: itertools.repeat([0]),
        lambda: [0] * many,
        lambda: [[0] * 100] * many,
        lambda: (0,) * many,
        lambda: dict.fromkeys(range(many)),
        lambda: set(range(many)),
        lambda: Array.__new__(Array),
        lambda: Data("x" * 10**6, 10),
        names["itself"],
        names["doubled"],
        names["paired"],
        lambda: names["deep"](900),
        lambda: names["deep"](900, tuple),
    ]


def call_library(folder: Path) -> None:
    """Call every function of the library with what is hostile, and say what it took."""
    from sampler_lint.execution.budget import BUDGET
    from sampler_lint.execution.errors import CannotTellError, RaisedError
    from sampler_lint.execution.interpreter import Interpreter
    from sampler_lint.execution.values import Array, Native, perform
    from sampler_lint.workspace.project import Project

    run = Interpreter(Project(str(folder), {}))
    owners = {"list": list, "dict": dict, "set": set, "Array": list}

    def large(value: Any) -> Any:
        if isinstance(value, Array):
            value.items = [0] * 4_000
        return value

    def tried(op: Any, args: list[Any]) -> None:
        BUDGET.open()
        BUDGET.left, BUDGET.room = FEW_STEPS, FEW_BYTES
        tracemalloc.start()  # only here: what the hostile values take to make is much, and known
        try:
            result = perform(op, run, args, {})
            for _ in range(3):  # what is made lazily, or only when called
                if isinstance(result, Native):
                    result = result.call([0] * 4_000)
                if isinstance(result, Iterator):
                    result = run.listed(result)
        except (CannotTellError, RaisedError, TypeError, ValueError, ArithmeticError) as error:
            refused.add(type(error).__name__)
        except (LookupError, AttributeError, RuntimeError) as error:
            refused.add(type(error).__name__)
        peak.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    for name, op in library_tables().items():
        print(json.dumps(name), flush=True)
        peak: list[int] = []
        refused: set[str] = set()
        kind = owners.get(name.split(":")[0])
        for make in hostile():
            BUDGET.open()
            if kind is not None:
                value = large(make())
                if (kind is list and name.startswith("Array")) and isinstance(value, list):
                    array = Array([])
                    array.items = value
                    value = array
                if type(value).__name__ == name.split(":")[0]:
                    for args in ([], [1], [0, 1], [value]):
                        tried(op, [value, *args])
                BUDGET.open()
                small = Array([1, 2]) if name.startswith("Array") else kind()
                tried(op, [small, large(make())])
                tried(op, [small, 0, large(make())])
            else:
                for order in ("h", "sh", "hh3"):
                    tried(op, [{"h": large(make()), "s": [1, 2, 3], "3": 3}[c] for c in order])
        print(json.dumps([max(peak), sorted(refused), len(peak)]), flush=True)


def main(mode: str, folder: Path) -> None:
    """Do it, under a limit that only a fault of the budget reaches."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    {"classes": try_attacks, "library": call_library}[mode](folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
