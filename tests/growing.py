"""Programs of any size, each of one shape, for tests of how work grows with what there is to read.

A shape is a function from a size to the files of a tree: path to text.
"""

from __future__ import annotations

import cProfile
import json
from collections.abc import Callable, Iterator
from types import CodeType

Tree = dict[str, str]
Shape = Callable[[int], Tree]

SHAPES: dict[str, Shape] = {}

#: How many times as much work four times as much to read may be.
MOST = 5


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, C's own among them, and not what measures coverage."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(
        called.callcount
        for entry in profile.getstats()
        if not _measures(entry.code)
        for called in entry.calls or ()
        if not _measures(called.code)
    )


def _measures(code: CodeType | str) -> bool:
    return "slipcover" in (code if isinstance(code, str) else code.co_filename)


_HEAD = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Sampler
from torch.utils.data.distributed import DistributedSampler

"""


def shape(make: Callable[[int], Iterator[str] | Tree]) -> Shape:
    """A shape by the function's name: the lines of one program after its imports, or a tree."""

    def grown(size: int) -> Tree:
        made = make(size)
        return made if isinstance(made, dict) else {"train.py": _HEAD + "\n".join(made) + "\n"}

    SHAPES[make.__name__] = grown
    return grown


def _indented(depth: int, *lines: str) -> str:
    return "\n".join("    " * depth + line for line in lines)


def _loop(loader: str, sampler: str | None = None, depth: int = 0) -> str:
    """Three epochs over a loader, the epoch set if its sampler is named."""
    lines = ["for epoch in range(3):"]
    if sampler is not None:
        lines.append(f"    {sampler}.set_epoch(epoch)")
    lines += [f"    for batch in {loader}:", "        loss(batch).backward()"]
    lines.append("        optimizer.step()")
    return _indented(depth, *lines)


# -- loaders and loops


@shape
def loaders_and_loops(n: int) -> Iterator[str]:
    """Each loader with a loop of its own, in one file."""
    for i in range(n):
        yield f"sampler_{i} = DistributedSampler(data)"
        yield f"loader_{i} = DataLoader(data, sampler=sampler_{i})"
        yield _loop(f"loader_{i}")


@shape
def loaders_and_loops_in_functions(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"def train_{i}(data):"
        yield "    sampler = DistributedSampler(data)"
        yield "    loader = DataLoader(data, sampler=sampler)"
        yield _loop("loader", depth=1)


@shape
def loops_over_one_loader(n: int) -> Iterator[str]:
    yield "sampler = DistributedSampler(data)"
    yield "loader = DataLoader(data, sampler=sampler)"
    for _ in range(n):
        yield _loop("loader")


@shape
def loaders_of_one_factory(n: int) -> Iterator[str]:
    yield "def make(data, batch_size):"
    yield "    return DataLoader(data, batch_size, sampler=DistributedSampler(data))"
    for i in range(n):
        yield f"loader_{i} = make(data, {i})"
        yield _loop(f"loader_{i}")


@shape
def loaders_of_one_factory_in_functions(n: int) -> Iterator[str]:
    yield "def make(data, shuffle=True):"
    yield "    sampler = DistributedSampler(data, shuffle=shuffle)"
    yield "    return DataLoader(data, sampler=sampler), sampler"
    for i in range(n):
        yield f"def train_{i}(data):"
        yield f"    loader, sampler = make(data, shuffle={i % 2 == 0})"
        yield _loop("loader", depth=1)


@shape
def factories_in_a_chain(n: int) -> Iterator[str]:
    yield "def make_0(data):"
    yield "    return DataLoader(data, sampler=DistributedSampler(data))"
    for i in range(1, n):
        yield f"def make_{i}(data):"
        yield f"    return make_{i - 1}(data)"
    yield f"loader = make_{n - 1}(data)"
    yield _loop("loader")


@shape
def factories_of_one_main(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"def make_{i}(data):"
        yield "    return DataLoader(data, sampler=DistributedSampler(data))"
    yield "def main(data):"
    for i in range(n):
        yield f"    loader_{i} = make_{i}(data)"
        yield _loop(f"loader_{i}", depth=1)


@shape
def loaders_in_one_list(n: int) -> Iterator[str]:
    yield "loaders = ["
    for _ in range(n):
        yield "    DataLoader(data, sampler=DistributedSampler(data)),"
    yield "]"
    yield "for epoch in range(3):"
    yield "    for loader in loaders:"
    yield "        for batch in loader:"
    yield "            loss(batch).backward()"


@shape
def loaders_in_one_dictionary(n: int) -> Iterator[str]:
    yield "loaders = {"
    for i in range(n):
        yield f"    'part_{i}': DataLoader(data, sampler=DistributedSampler(data)),"
    yield "}"
    for i in range(n):
        yield _loop(f"loaders['part_{i}']")


@shape
def loaders_stored_in_one_dictionary(n: int) -> Iterator[str]:
    yield "loaders = {}"
    for i in range(n):
        yield f"loaders['part_{i}'] = DataLoader(data, sampler=DistributedSampler(data))"
    for i in range(n):
        yield _loop(f"loaders['part_{i}']")


@shape
def loops_of_one_function(n: int) -> Iterator[str]:
    yield "def main(data):"
    for i in range(n):
        yield f"    loader_{i} = DataLoader(data, sampler=DistributedSampler(data))"
        yield _loop(f"loader_{i}", depth=1)


@shape
def loops_of_one_class(n: int) -> Iterator[str]:
    yield "class Trainer:"
    for i in range(n):
        yield f"    def train_{i}(self, data, epochs):"
        yield "        loader = DataLoader(data, sampler=DistributedSampler(data))"
        yield "        for _ in range(epochs):"
        yield "            for batch in loader:"
        yield "                loss(batch).backward()"


@shape
def files(n: int) -> Tree:
    text = _HEAD + "loader = DataLoader(data, sampler=DistributedSampler(data))\n" + _loop("loader")
    return {f"train_{i}.py": text + "\n" for i in range(n)}


@shape
def files_of_one_factory(n: int) -> Tree:
    tree = {
        f"train_{i}.py": f"from data import make\n\nloader = make({i})\n{_loop('loader')}\n"
        for i in range(n)
    }
    tree["data.py"] = _HEAD + (
        "def make(data):\n    return DataLoader(data, sampler=DistributedSampler(data))\n"
    )
    return tree


@shape
def files_in_a_chain(n: int) -> Tree:
    tree = {
        f"data_{i}.py": f"from data_{i - 1} import make as below\n\n"
        "def make(data):\n    return below(data)\n"
        for i in range(1, n)
    }
    tree["data_0.py"] = _HEAD + (
        "def make(data):\n    return DataLoader(data, sampler=DistributedSampler(data))\n"
    )
    tree["train.py"] = f"from data_{n - 1} import make\n\nloader = make(0)\n{_loop('loader')}\n"
    return tree


# -- classes


def _sampler(name: str, base: str = "Sampler") -> str:
    return f"""\
class {name}({base}):
    def __init__(self, data, seed=0):
        self.data = data
        self.seed = seed
        self.epoch = 0

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.seed + self.epoch)
        return iter(torch.randperm(len(self.data), generator=generator).tolist())

    def __len__(self):
        return len(self.data)

    def set_epoch(self, epoch):
        self.epoch = epoch
"""


@shape
def sampler_classes(n: int) -> Iterator[str]:
    for i in range(n):
        yield _sampler(f"Sampler{i}")


@shape
def sampler_classes_in_files(n: int) -> Tree:
    return {f"sampler_{i}.py": _HEAD + _sampler(f"Sampler{i}") for i in range(n)}


@shape
def sampler_classes_in_a_chain(n: int) -> Iterator[str]:
    yield _sampler("Sampler0")
    for i in range(1, n):
        yield f"class Sampler{i}(Sampler{i - 1}):"
        yield "    def __len__(self):"
        yield f"        return len(self.data) // {i}"
        yield ""


@shape
def sampler_classes_of_one_base(n: int) -> Iterator[str]:
    yield _sampler("Base")
    for i in range(n):
        yield f"class Sampler{i}(Base):"
        yield "    def __len__(self):"
        yield f"        return len(self.data) // {i + 1}"
        yield ""


@shape
def sampler_classes_used(n: int) -> Iterator[str]:
    for i in range(n):
        yield _sampler(f"Sampler{i}")
        yield f"loader_{i} = DataLoader(data, sampler=Sampler{i}(data))"
        yield _loop(f"loader_{i}")


@shape
def samplers_without_their_attributes(n: int) -> Iterator[str]:
    """Each with a finding (an attribute that is not there) and a fix."""
    for i in range(n):
        yield f"class Sampler{i}(Sampler):"
        yield "    def __init__(self, data):"
        yield "        self.data = data"
        yield "    def __iter__(self):"
        yield "        return iter(range(len(self.dataset)))"
        yield "    def __len__(self):"
        yield "        return len(self.data)"


@shape
def attributes_of_one_object(n: int) -> Iterator[str]:
    yield "class Trainer:"
    yield "    def __init__(self, data):"
    for i in range(n):
        yield f"        self.loader_{i} = DataLoader(data, sampler=DistributedSampler(data))"
    yield "    def train(self):"
    for i in range(n):
        yield _loop(f"self.loader_{i}", depth=2)


@shape
def attributes_of_a_sampler(n: int) -> Iterator[str]:
    yield "class Own(Sampler):"
    yield "    def __init__(self, data):"
    for i in range(n):
        yield f"        self.data_{i} = data"
    yield "    def __iter__(self):"
    for i in range(n):
        yield f"        yield from range(len(self.data_{i}))"
    yield "    def __len__(self):"
    yield "        return len(self.data_0)"


@shape
def methods_of_one_class(n: int) -> Iterator[str]:
    yield "class Trainer:"
    yield "    def __init__(self, data):"
    yield "        self.sampler = DistributedSampler(data)"
    yield "        self.loader = DataLoader(data, sampler=self.sampler)"
    for i in range(n):
        yield f"    def train_{i}(self):"
        yield _loop("self.loader", depth=2)


@shape
def trainer_classes(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"class Trainer{i}:"
        yield "    def __init__(self, data):"
        yield "        self.sampler = DistributedSampler(data)"
        yield "        self.loader = DataLoader(data, sampler=self.sampler)"
        yield "    def train(self):"
        yield _loop("self.loader", depth=2)
        yield f"Trainer{i}(data).train()"


# -- imports


@shape
def star_imports_in_a_chain(n: int) -> Tree:
    tree = {
        f"data_{i}.py": f"from data_{i - 1} import *\n\nname_{i} = DataLoader\n"
        for i in range(1, n)
    }
    tree["data_0.py"] = _HEAD + (
        "def make(data):\n    return DataLoader(data, sampler=DistributedSampler(data))\n"
    )
    tree["train.py"] = f"from data_{n - 1} import *\n\nloader = make(0)\n{_loop('loader')}\n"
    return tree


@shape
def star_imports_of_many_files(n: int) -> Tree:
    tree = {
        f"data_{i}.py": _HEAD + f"def make_{i}(data):\n"
        "    return DataLoader(data, sampler=DistributedSampler(data))\n"
        for i in range(n)
    }
    lines = [f"from data_{i} import *" for i in range(n)]
    lines += [f"loader_{i} = make_{i}(0)\n{_loop(f'loader_{i}')}" for i in range(n)]
    tree["train.py"] = "\n".join(lines) + "\n"
    return tree


@shape
def star_imports_of_each_other(n: int) -> Tree:
    """A package whose files all bring all names of its ``__init__``, which brings theirs."""
    tree = {
        f"data/part_{i}.py": "from data import *\nfrom torch.utils.data import DataLoader\n"
        "from torch.utils.data.distributed import DistributedSampler\n\n"
        f"def make_{i}(data):\n"
        f"    return DataLoader(data, sampler=DistributedSampler(data), num_workers=WORKERS_{i})\n"
        for i in range(n)
    }
    tree["data/__init__.py"] = "".join(f"from .part_{i} import *\n" for i in range(n))
    return tree


@shape
def imports_of_many_names(n: int) -> Tree:
    lines = [f"from data import make_{i}" for i in range(n)]
    lines += [f"loader_{i} = make_{i}(0)\n{_loop(f'loader_{i}')}" for i in range(n)]
    factories = [
        f"def make_{i}(data):\n    return DataLoader(data, sampler=DistributedSampler(data))\n"
        for i in range(n)
    ]
    return {"data.py": _HEAD + "\n".join(factories), "train.py": "\n".join(lines) + "\n"}


# -- statements of one function


def _around(body: Iterator[str]) -> Iterator[str]:
    yield "def main(data, flags):"
    yield "    sampler = DistributedSampler(data)"
    yield "    loader = DataLoader(data, sampler=sampler)"
    yield from body
    yield _loop("loader", depth=1)


@shape
def ifs_in_a_row(n: int) -> Iterator[str]:
    return _around(
        _indented(1, f"if flags[{i}]:", f"    sampler = DistributedSampler(data, seed={i})")
        for i in range(n)
    )


@shape
def ifs_with_loaders_in_a_row(n: int) -> Iterator[str]:
    return _around(
        _indented(
            1,
            f"if flags[{i}]:",
            f"    loader = DataLoader(data, sampler=DistributedSampler(data, seed={i}))",
            "else:",
            "    loader.sampler.set_epoch(3)",
        )
        for i in range(n)
    )


@shape
def ifs_around_loops(n: int) -> Iterator[str]:
    return _around(
        _indented(1, f"if flags[{i}]:") + "\n" + _loop("loader", "sampler", depth=2)
        for i in range(n)
    )


@shape
def ifs_that_return(n: int) -> Iterator[str]:
    return _around(_indented(1, f"if flags[{i}]:", "    return") for i in range(n))


@shape
def elifs(n: int) -> Iterator[str]:
    def body() -> Iterator[str]:
        for i in range(n):
            yield f"    {'elif' if i else 'if'} flags[{i}]:"
            yield f"        loader = DataLoader(data, sampler=DistributedSampler(data, seed={i}))"

    return _around(body())


@shape
def elifs_around_loops(n: int) -> Iterator[str]:
    def body() -> Iterator[str]:
        for i in range(n):
            yield f"    {'elif' if i else 'if'} flags[{i}]:"
            yield _loop("loader", "sampler", depth=2)

    return _around(body())


@shape
def ifs_in_each_other(n: int) -> Iterator[str]:
    """As deep as Python parses, so many times as it takes."""
    deepest = 16

    def body() -> Iterator[str]:
        for i in range(n):
            depth = i % deepest
            yield _indented(depth + 1, f"if flags[{i}]:", "    sampler.set_epoch(0)")

    return _around(body())


@shape
def tries_in_a_row(n: int) -> Iterator[str]:
    return _around(
        _indented(
            1,
            "try:",
            f"    sampler = DistributedSampler(data, seed={i})",
            "except ValueError:",
            "    sampler.set_epoch(0)",
        )
        for i in range(n)
    )


@shape
def loops_in_a_row(n: int) -> Iterator[str]:
    return _around(_indented(1, f"for i in range({i}):", "    print(i)") for i in range(n))


@shape
def assignments_to_one_variable(n: int) -> Iterator[str]:
    return _around(
        _indented(1, f"loader = DataLoader(data, {i}, sampler=sampler)") for i in range(n)
    )


@shape
def assignments_of_one_another(n: int) -> Iterator[str]:
    yield "loader_0 = DataLoader(data, sampler=DistributedSampler(data))"
    for i in range(1, n):
        yield f"loader_{i} = loader_{i - 1}"
    yield _loop(f"loader_{n - 1}")


@shape
def rebuilt_from_itself(n: int) -> Iterator[str]:
    return _around(_indented(1, f"loader = wrap_{i}(loader)") for i in range(n))


@shape
def set_epoch_calls(n: int) -> Iterator[str]:
    return _around(_indented(1, f"sampler.set_epoch({i})") for i in range(n))


@shape
def set_epoch_loops(n: int) -> Iterator[str]:
    return _around(iter([_loop("loader", "sampler", depth=1)] * n))


@shape
def seeds(n: int) -> Iterator[str]:
    yield "rank = dist.get_rank()"
    for i in range(n):
        yield f"torch.manual_seed({i} + rank)"
        yield f"sampler_{i} = DistributedSampler(data, seed={i} + rank)"
        yield f"loader_{i} = DataLoader(data, sampler=sampler_{i})"


@shape
def seed_parameters(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"def make_{i}(data, seed):"
        yield "    torch.manual_seed(seed)"
        yield "    return DataLoader(data, sampler=DistributedSampler(data))"
        yield f"make_{i}(data, {i})"


@shape
def seeds_through_one_factory(n: int) -> Iterator[str]:
    yield "def make(data, seed):"
    yield "    return DataLoader(data, sampler=DistributedSampler(data, seed=seed))"
    for i in range(n):
        yield f"make(data, {i} + dist.get_rank())"


@shape
def ranks(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"def main_{i}(rank, world_size, data):"
        yield "    sampler = DistributedSampler(data, world_size, rank=rank)"
        yield "    loader = DataLoader(data, sampler=sampler)"
        yield _loop("loader", "sampler", depth=1)
        yield f"torch.multiprocessing.spawn(main_{i}, (4, data), nprocs=4)"


@shape
def partitions(n: int) -> Iterator[str]:
    """Each a sampler that takes its share of the data by arithmetic."""
    for i in range(n):
        yield f"class Shard{i}(Sampler):"
        yield "    def __init__(self, data, rank, world_size):"
        yield "        self.data, self.rank, self.world_size = data, rank, world_size"
        yield "        self.share = len(data) // world_size"
        yield "    def __iter__(self):"
        yield "        begin = self.rank * self.share"
        yield "        return iter(range(begin, begin + self.share))"
        yield "    def __len__(self):"
        yield "        return self.share"


# -- expressions


@shape
def a_long_sum(n: int) -> Iterator[str]:
    yield "workers = " + " + ".join(["1"] * n)
    yield "loader = DataLoader(data, num_workers=workers, sampler=DistributedSampler(data))"
    yield _loop("loader")


@shape
def a_long_condition(n: int) -> Iterator[str]:
    yield "shuffle = " + " or ".join(f"flag_{i}" for i in range(n))
    yield "loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=shuffle))"
    yield _loop("loader")


@shape
def long_strings(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"text_{i} = 'sampler ' 'loader ' 'set_epoch {i}'"
    yield "loader = DataLoader(data, sampler=DistributedSampler(data))"
    yield _loop("loader")


@shape
def arguments(n: int) -> Iterator[str]:
    yield "loader = DataLoader(data, sampler=DistributedSampler(data), options=dict("
    yield from (f"    option_{i}={i}," for i in range(n))
    yield "))"
    yield _loop("loader")


@shape
def parameters(n: int) -> Iterator[str]:
    names = [f"option_{i}" for i in range(n)]
    yield f"def make(data, {', '.join(names)}):"
    yield "    return DataLoader(data, sampler=DistributedSampler(data))"
    yield f"loader = make(data, {', '.join(names)})"
    yield _loop("loader")


@shape
def one_table(n: int) -> Iterator[str]:
    yield "options = {"
    yield from (f"    'option_{i}': {i}," for i in range(n))
    yield "    'sampler': DistributedSampler(data),"
    yield "}"
    yield "loader = DataLoader(data, **options)"
    yield _loop("loader")


# -- what is said of findings


@shape
def suppressions(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"loader_{i} = DataLoader(data, sampler=DistributedSampler(data))"
        yield "for epoch in range(3):  # noqa: SMP102"
        yield f"    for batch in loader_{i}:"
        yield "        loss(batch).backward()"


@shape
def unused_suppressions(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"loader_{i} = DataLoader(data)  # noqa: SMP102"


@shape
def cells(n: int) -> Tree:
    """A notebook, two cells to each loader."""
    sources = [_HEAD]
    for i in range(n):
        sources.append(f"loader_{i} = DataLoader(data, sampler=DistributedSampler(data))")
        sources.append(_loop(f"loader_{i}"))
    made = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{i}",
            "metadata": {},
            "outputs": [],
            "source": source.splitlines(keepends=True),
        }
        for i, source in enumerate(sources)
    ]
    notebook = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return {"train.ipynb": json.dumps(notebook, indent=1)}


@shape
def samplers_by_star_imports(n: int) -> Tree:
    """Each derives from the one before, which a star import brings."""
    tree = {
        f"sampler_{i}.py": f"from sampler_{i - 1} import *\n\n"
        f"class Sampler{i}(Sampler{i - 1}):\n"
        "    def __len__(self):\n        return len(self.data)\n"
        for i in range(1, n)
    }
    tree["sampler_0.py"] = _HEAD + _sampler("Sampler0")
    return tree


@shape
def samplers_of_many_star_imports(n: int) -> Tree:
    tree = {f"sampler_{i}.py": _HEAD + _sampler(f"Sampler{i}") for i in range(n)}
    lines = [f"from sampler_{i} import *" for i in range(n)]
    lines += [f"loader_{i} = DataLoader(data, sampler=Sampler{i}(data))" for i in range(n)]
    tree["train.py"] = "\n".join(lines) + "\n"
    return tree


@shape
def factories_that_pass_a_seed(n: int) -> Iterator[str]:
    yield "def make_0(data, seed):"
    yield "    return DataLoader(data, sampler=DistributedSampler(data, seed=seed))"
    for i in range(1, n):
        yield f"def make_{i}(data, seed):"
        yield f"    return make_{i - 1}(data, seed)"
    yield "torch.manual_seed(args.seed)"
    yield f"loader = make_{n - 1}(data, dist.get_rank())"
    yield _loop("loader")


@shape
def factories_that_call_all_before(n: int) -> Iterator[str]:
    yield "def make_0(data, which):"
    yield "    return DataLoader(data, sampler=DistributedSampler(data))"
    for i in range(1, n):
        yield f"def make_{i}(data, which):"
        yield "    if which:"
        yield f"        return make_{i - 1}(data, which - 1)"
        yield f"    return make_{i // 2}(data, which - 2)"
    yield f"loader = make_{n - 1}(data, 3)"
    yield _loop("loader")


@shape
def appended_loaders(n: int) -> Iterator[str]:
    for i in range(n):
        yield f"loaders_{i} = []"
        yield f"loaders_{i}.append(DataLoader(data, sampler=DistributedSampler(data)))"
        yield _loop(f"loaders_{i}[0]")


@shape
def calls_of_one_seeding_function(n: int) -> Iterator[str]:
    yield "def seed_all(seed):"
    yield "    torch.manual_seed(seed)"
    for i in range(n):
        yield f"seed_all(args.seed + {i})"
        yield f"sampler_{i} = DistributedSampler(data)"
        yield f"loader_{i} = DataLoader(data, sampler=sampler_{i})"


# -- many ways to one pass


@shape
def wrappers_given_twice(n: int) -> Iterator[str]:
    """Each wrapper is given the one before it twice: two to the n ways to the loader."""
    yield "from ourlib import wrap"
    yield "sampler = DistributedSampler(data)"
    yield "loader_0 = DataLoader(data, sampler=sampler)"
    for i in range(n):
        yield f"loader_{i + 1} = wrap(loader_{i}, loader_{i})"
    yield _loop(f"loader_{n}", "sampler")


@shape
def functions_called_twice(n: int) -> Iterator[str]:
    """Each function calls the one before it in both branches."""
    yield "sampler = DistributedSampler(data)"
    yield "def run_0(loader):"
    yield "    for batch in loader:"
    yield "        loss(batch).backward()"
    for i in range(n):
        yield f"def run_{i + 1}(loader):"
        yield f"    if flags[{i}]:\n        run_{i}(loader)\n    else:\n        run_{i}(loader)"
    yield "loader = DataLoader(data, sampler=sampler)"
    yield "for epoch in range(3):"
    yield "    sampler.set_epoch(epoch)"
    yield f"    run_{n}(loader)"


@shape
def loaders_by_keyword_arguments(n: int) -> Iterator[str]:
    """Loaders of one factory that hands its keyword arguments on, and of dicts filled later."""
    yield "def make(data, **options):\n    return DataLoader(data, **options)\n"
    for i in range(n):
        yield f"def build_{i}(data, epochs):"
        yield "    options = {'num_workers': 2}"
        yield "    options['sampler'] = DistributedSampler(data)"
        yield "    options.update(batch_size=4)"
        yield "    options.pop('shuffle', None)"
        yield f"    kept_{i} = DataLoader(data, **options)"
        yield f"    made_{i} = make(data, sampler=DistributedSampler(data))"
        yield "    for epoch in range(epochs):"
        yield f"        for batch in kept_{i}:\n            step(batch)"
        yield f"        for batch in made_{i}:\n            step(batch)\n"


@shape
def hooks_called_by_a_string(n: int) -> Iterator[str]:
    """Hooks of one list, called by the names that each of many trainers gives."""
    yield "class Runner:"
    yield "    def __init__(self, hooks):\n        self.hooks = hooks\n"
    yield "    def tell(self, moment):"
    yield "        for hook in self.hooks:\n            getattr(hook, moment)(self)\n"
    for i in range(n):
        yield f"class Hook{i}:\n    def at_{i}(self, runner):\n        runner.optimizer.step()\n"
    yield "def main(data, epochs):"
    hooks = ", ".join(f"Hook{i}()" for i in range(n))
    yield f"    runner = Runner([{hooks}])"
    for i in range(n):
        yield f"    loader_{i} = DataLoader(data, sampler=DistributedSampler(data))"
        yield f"    for epoch in range(epochs):\n        for batch in loader_{i}:"
        yield f"            runner.tell('at_{i}')"
