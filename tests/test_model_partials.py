"""Functions and classes that are called by another name, or through ``functools.partial``."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from cases import Case, all_cases, check, fix, write_tree

PROGRAM = """
    from functools import partial
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    def fit(model, optimizer, loader, epoch):
        for x, y in loader:
            loss = model(x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    {around}

    def main():
        dist.init_process_group("gloo")
        dataset = TensorDataset(torch.randn(64, 2), torch.zeros(64))
        sampler = DistributedSampler(dataset)
        loader = {loader}
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        {start}

    main()
"""

PLAIN = "DataLoader(dataset, batch_size=4, sampler=sampler)"

ADD = "sampler.set_epoch(epoch)"


#: What stands around, how the loader is built, how the loop starts, what the fix adds to it.
WAYS = {
    "keywords": (
        "",
        PLAIN,
        """
        run = partial(fit, loader=loader, model=model)
        for epoch in range(3):
            run(optimizer=optimizer, epoch=epoch)
        """,
        ADD,
    ),
    "replaced-keyword": (
        "",
        PLAIN,
        """
        run = partial(fit, model, optimizer, loader=None)
        for epoch in range(3):
            run(loader=loader, epoch=epoch)
        """,
        ADD,
    ),
    "called-where-made": (
        "",
        PLAIN,
        """
        for epoch in range(3):
            partial(fit, model, optimizer, loader)(epoch)
        """,
        ADD,
    ),
    "of-a-partial": (
        "",
        PLAIN,
        """
        run = partial(partial(fit, model), optimizer)
        for epoch in range(3):
            run(loader, epoch)
        """,
        ADD,
    ),
    "other-name": (
        "run = fit",
        PLAIN,
        """
        for epoch in range(3):
            run(model, optimizer, loader, epoch)
        """,
        ADD,
    ),
    "loader": (
        "",
        "partial(DataLoader, batch_size=4, sampler=sampler)(dataset)",
        """
        for epoch in range(3):
            fit(model, optimizer, loader, epoch)
        """,
        ADD,
    ),
    "field-of-an-argument": (
        """
    class Run:
        def __init__(self, loader):
            self.loader = loader

    def one(run, model, optimizer):
        fit(model, optimizer, run.loader, 0)
        """,
        PLAIN,
        """
        work = Run(loader)
        for epoch in range(3):
            one(work, model, optimizer)
        """,
        ADD,
    ),
    "field-of-a-receiver": (
        """
    class Worker:
        def __init__(self, model, optimizer):
            self.model, self.optimizer = model, optimizer
            data = TensorDataset(torch.randn(64, 2), torch.zeros(64))
            self.loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))

        def turn(self):
            for x, y in self.loader:
                loss = self.model(x).sum()
                loss.backward()
                self.optimizer.step()
        """,
        PLAIN,
        """
        worker = Worker(model, optimizer)
        for epoch in range(3):
            worker.turn()
        """,
        "worker.loader.sampler.set_epoch(epoch)",
    ),
    "field-of-a-parameter": (
        """
    class Run:
        def __init__(self, loader):
            self.loader = loader

    def one(run, model, optimizer):
        for x, y in run.loader:
            loss = model(x).sum()
            loss.backward()
            optimizer.step()

    def go(job, model, optimizer):
        for epoch in range(3):
            one(job, model, optimizer)
        """,
        PLAIN,
        "go(Run(loader), model, optimizer)",
        "job.loader.sampler.set_epoch(epoch)",
    ),
    # Here the arguments were written where other names are known: nothing can be added.
    "parameter": (
        """
    def go(step, loader=None):
        for epoch in range(3):
            step(epoch=epoch)
        """,
        PLAIN,
        "go(partial(fit, model, optimizer, loader))",
        None,
    ),
    "attribute": (
        """
    class Trainer:
        def __init__(self, model, optimizer, loader):
            self.step = partial(fit, model, optimizer, loader)

        def train(self):
            for epoch in range(3):
                self.step(epoch)
        """,
        PLAIN,
        "Trainer(model, optimizer, loader).train()",
        None,
    ),
}


def program(way: str) -> str:
    around, loader, start, _ = WAYS[way]
    lines = textwrap.dedent(start).strip().splitlines()
    start = "\n        ".join(lines)
    return textwrap.dedent(PROGRAM.format(around=around, loader=loader, start=start)).lstrip()


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_reaches_the_loader(way: str, tmp_path: Path) -> None:
    source = program(way)
    write_tree(tmp_path, {"train.py": source.encode()})
    (found,) = check(tmp_path).findings
    rows = source.splitlines()
    assert found.code == "SMP102"
    assert rows[found.start.row - 1].strip() == "for epoch in range(3):"
    fix(tmp_path)
    after = (tmp_path / "train.py").read_text().splitlines()
    added = WAYS[way][3]
    if added is None:
        assert after == rows
    else:
        assert [row.strip() for row in after if row not in rows] == [added]
        assert after[found.start.row].strip() == added


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_that_sets_the_epoch_is_right(way: str, tmp_path: Path) -> None:
    source = f"from elsewhere import NUMBER\n{program(way)}"
    for passing in ("loader", "run.loader", "self.loader"):
        head = f"for x, y in {passing}:"
        row = next((row for row in source.splitlines() if row.strip() == head), "")
        if row:
            begin = row.replace(head, f"{passing}.sampler.set_epoch(NUMBER())")
            source = source.replace(row, f"{begin}\n{row}")
    write_tree(tmp_path, {"train.py": source.encode()})
    assert check(tmp_path).findings == []


@pytest.mark.parametrize(
    "kept",
    [
        "begin = sampler.set_epoch",
        "hooks.append(sampler.set_epoch)",
        "begin = loader.sampler.set_epoch",
        "begin = getattr(sampler, 'set_epoch', None)",
    ],
)
def test_a_set_epoch_that_is_kept_may_be_called(kept: str, tmp_path: Path) -> None:
    source = program("keywords").replace("    run = partial(", f"    {kept}\n    run = partial(", 1)
    assert kept in source
    write_tree(tmp_path, {"train.py": source.encode()})
    assert check(tmp_path).findings == []


# -- classes


class Partially(ast.NodeTransformer):
    """Builds each sampler and loader through a ``partial`` that holds some of the arguments."""

    def __init__(self, held: str) -> None:
        self.held = held
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        builds = name[:1].isupper() and name.endswith(("Sampler", "Loader", "Batches"))
        if not builds or any(isinstance(arg, ast.Starred) for arg in node.args):
            return node
        self.count += 1
        first = node.args if self.held != "keywords" else []
        second = node.keywords if self.held != "positions" else []
        make = ast.Attribute(ast.Name("functools", ast.Load()), "partial", ast.Load())
        partial = ast.Call(make, [node.func, *first], second)
        rest = [] if first is node.args else node.args
        return ast.Call(partial, rest, [] if second is node.keywords else node.keywords)


#: These rules read the call as it is written, or take a name given away as one that is used.
AS_WRITTEN = {"SMP501", "SMP503"}


@pytest.mark.parametrize("each", all_cases()[::4], ids=lambda case: case.name)
def test_a_class_through_partial_is_judged_alike(each: Case, tmp_path: Path) -> None:
    """Each second fixture, in one of three ways: the same codes in the same files, and fixed."""
    held = ("all", "keywords", "positions")[sum(each.name.encode()) % 3]
    plain, partial, built = {}, {}, 0
    for name, data in each.files("bad").items():
        tree = ast.parse(data)
        plain[name] = ast.unparse(tree).encode()
        change = Partially(held)
        tree = change.visit(tree)
        if change.count:
            future = [isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"
                      for stmt in tree.body]  # fmt: skip
            docstring = ast.get_docstring(tree) is not None
            start = future.index(True) + 1 if any(future) else int(docstring)
            tree.body.insert(start, ast.Import([ast.alias("functools")]))
            built += change.count
        partial[name] = ast.unparse(ast.fix_missing_locations(tree)).encode()
    if not built:
        pytest.skip("builds no sampler or loader by name")
    expected = check(write_tree(tmp_path / "plain", plain)).findings
    folder = write_tree(tmp_path / "partial", partial)
    found = check(folder).findings
    kept = {item.code for item in expected} - AS_WRITTEN
    assert [(f.path, f.code) for f in found if f.code in kept] == [
        (f.path, f.code) for f in expected if f.code in kept
    ]
    assert {f.code for f in found} <= {f.code for f in expected}
    fix(folder)
    for path in folder.rglob("*.py"):
        compile(path.read_bytes(), str(path), "exec")
    assert fix(folder).report.findings == check(folder).findings


def test_a_class_given_to_partial_in_another_file_is_unknown(tmp_path: Path) -> None:
    make = b"from functools import partial\nfrom torch.utils.data import DataLoader\n"
    use = b"from make import make_loader\nloader = make_loader(data, num_worker=2)\n"
    held = b"make_loader = partial(DataLoader, batch_size=4)\n"
    write_tree(tmp_path, {"make.py": make + held, "use.py": use})
    assert check(tmp_path).findings == []
    write_tree(tmp_path, {"use.py": make + held + use.splitlines(keepends=True)[1]})
    (found,) = check(tmp_path).findings
    assert (found.path, found.code, found.start.row) == ("use.py", "SMP403", 4)


def test_partials_of_themselves_end(tmp_path: Path) -> None:
    source = b"""\
from functools import partial
from torch.utils.data import DataLoader
one = DataLoader
two = partial(one, batch_size=4)
one = partial(two, num_workers=2)
two = partial(one, sampler=s)
loader = one(data)
for batch in two(data):
    one(*batch)()
"""
    write_tree(tmp_path, {"train.py": source})
    assert check(tmp_path).findings == []


def test_an_endless_loader_that_is_only_tested_with(tmp_path: Path) -> None:
    source = program("other-name")
    forever = """
def forever(loader):
    while True:
        for batch in loader:
            yield batch
"""
    measure = """
def measure(model, optimizer, loader, epoch):
    {mode}
    batches = forever(loader)
    for step in range(9):
        model(next(batches)[0])
"""
    for mode, codes in (("model.eval()", []), ("model.train()", ["SMP102"])):
        whole = source.replace(
            "\nrun = fit", f"\n{forever}{measure.format(mode=mode)}\nrun = measure"
        )
        # Others train with what the generator gives.
        whole = whole.replace("for x, y in loader:", "for x, y in forever(loader):")
        write_tree(tmp_path, {"train.py": whole.encode()})
        assert [found.code for found in check(tmp_path).findings] == codes


@pytest.mark.parametrize(
    "build",
    [
        "DistributedSampler[int](dataset)",
        "{'spread': DistributedSampler, 'plain': RandomSampler}['spread'](dataset)",
        "KINDS['spread'](dataset)",
        "kind(dataset)",
        "(DistributedSampler if dist.is_initialized() else RandomSampler)(dataset)",
    ],
)
def test_a_class_by_another_name(build: str, tmp_path: Path) -> None:
    source = program("other-name").replace("DistributedSampler(dataset)", build)
    kinds = (
        "from torch.utils.data import RandomSampler\n"
        "KINDS = dict(spread=DistributedSampler, plain=RandomSampler)\n"
        "kind = DistributedSampler if dist.is_available() else RandomSampler\n"
    )
    source = source.replace("\ndef fit", f"\n{kinds}\ndef fit")
    write_tree(tmp_path, {"train.py": source.encode()})
    assert [found.code for found in check(tmp_path).findings] == ["SMP102"]
