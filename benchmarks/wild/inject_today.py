#!/usr/bin/env python3
"""Put one bug of today's training at a time into public programs, and count how many are seen.

    python benchmarks/wild/inject_today.py TREES [--part read|blind] [--per 2] [--kinds K …]

Ranks that share, or do not share, what they draw; frameworks that shard again; workers that keep
copies; evaluations, factories and resumed runs. As inject_loaders.py, which tells how it counts.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import inject_loaders
from inject_loaders import Edit, File, main, places

CODES = {
    "rank-constant": {"SMP502"},
    "split-by-rank": {"SMP202"},
    "sharded-again": {"SMP307"},
    "setup-dropped": {"SMP502"},
    "stream-not-split": {"SMP308"},
    "worker-copy-changed": {"SMP602", "SMP103"},
    "epoch-from-zero": {"SMP105"},
    "factory-keyword": {"SMP403"},
    "evaluation-drops-last": {"SMP504"},
    "generator-copied": {"SMP601"},
    "list-drawn-once": {"SMP106"},
}
_DATASET = """

import random as random_of_bug
import torch.utils.data


class Changed(torch.utils.data.Dataset):
    def __init__(self, data):
        self.data, self.level, self.rng = data, 0, random_of_bug.Random(0)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index], {read}
"""
inject_loaders._BELOW["worker-copy-changed"] = _DATASET.format(read="self.level")
inject_loaders._BELOW["generator-copied"] = _DATASET.format(read="self.rng.random()")
_TRAINS = ("backward(", ".step()")
#: Calls that share data out, with the bug of leaving them out.
_SHARES = {"setup_dataloaders": "setup-dropped", "split_dataset_by_node": "stream-not-split"}


class Today(File):
    """A file and the bugs that fit into it."""

    def bugs(self) -> Iterator[Edit]:
        """Every bug that fits."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                name = _last(node.func)
                if name == "DistributedSampler":
                    yield from self._rank(node)
                elif name == "DataLoader":
                    yield from self._loader(node)
                elif name == "random_split" and b"DistributedSampler(" in self.raw:
                    yield from self._split(node)
                elif name in _SHARES and node.args:
                    kind = _SHARES[name]
                    is_fabric = len(node.args) == 1 and b"Fabric" in self.raw
                    if is_fabric or kind == "stream-not-split":
                        yield self.edit(kind, node, self.source(node.args[0]))
                elif isinstance(node.func, ast.Name):
                    yield from self._keyword(node, node.func.id)
            if isinstance(node, ast.For):
                yield from self._from_zero(node)

    def _rank(self, call: ast.Call) -> Iterator[Edit]:
        given = {word.arg: word.value for word in call.keywords}
        rank = given.get("rank") or (call.args[2] if len(call.args) > 2 else None)
        size = given.get("num_replicas") or (call.args[1] if len(call.args) > 1 else None)
        if rank is None or size is None or isinstance(size, ast.Constant):
            return
        if not isinstance(rank, ast.Constant) and not self._is_evaluated(call):
            yield self.edit("rank-constant", rank, "0")

    def _split(self, call: ast.Call) -> Iterator[Edit]:
        is_plain = len(call.args) == 2 and not call.keywords
        if is_plain and b"import torch\n" in self.raw and "random" not in self.source(call.args[0]):
            rank = "torch.distributed.get_rank()"
            own = f"generator=torch.Generator().manual_seed({rank})"
            yield self.edit("split-by-rank", call.args[1], f"{self.source(call.args[1])}, {own}")

    def _loader(self, call: ast.Call) -> Iterator[Edit]:
        given = {word.arg: word.value for word in call.keywords}
        data = call.args[0] if call.args else given.get("dataset")
        if data is None or isinstance(data, ast.Starred) or None in given:
            return
        if self.is_evaluation(call):
            size, workers = given.get("batch_size"), given.get("num_workers")
            has_batches = size is not None and self.source(size) not in {"1", "None"}
            if has_batches and "drop_last" not in given:
                last = call.keywords[-1].value
                new = f"{self.source(last)}, drop_last=True"
                shuffle = given.get("shuffle")  # then it takes some of the data at random
                is_whole = "sampler" not in given and not self.stops(call)
                is_whole &= shuffle is None or self.source(shuffle) == "False"
                if is_whole and workers is not last:
                    yield self.edit("evaluation-drops-last", last, new)
            return
        if not self.trains(call):
            return
        shuffle = given.get("shuffle")
        shuffles = isinstance(shuffle, ast.Constant) and shuffle.value is True
        if shuffles and b"import torch\n" in self.raw:
            word = next(word for word in call.keywords if word.arg == "shuffle")
            drawn = f"sampler=torch.randperm(len({self.source(data)})).tolist()"
            yield self.edits("list-drawn-once", [(word, drawn)])
            if b"accelerator.prepare(" in self.raw:
                own = f"torch.utils.data.distributed.DistributedSampler({self.source(data)})"
                yield self.edits("sharded-again", [(word, f"sampler={own}")])
        workers = given.get("num_workers")
        is_free = {"worker_init_fn", "persistent_workers", "multiprocessing_context"}.isdisjoint(
            given
        )
        if isinstance(workers, ast.Constant) and workers.value and is_free:
            changed = f"Changed({self.source(data)})"
            # One worker alone draws what no other one does.
            if (shuffles or "sampler" in given) and workers.value != 1:
                yield self.edit("generator-copied", data, changed)
            yield from self._changed(call, data, workers, changed)

    def _changed(
        self, call: ast.Call, data: ast.expr, workers: ast.expr, changed: str
    ) -> Iterator[Edit]:
        made = self.parents[call]
        name = made.targets[0] if isinstance(made, ast.Assign) else None
        if not isinstance(name, ast.Name):
            return
        for loop in ast.walk(self.function(call)):
            if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
                continue
            text = self.source(loop)
            inner = [node for node in ast.walk(loop) if isinstance(node, ast.For)][1:]
            is_read = any(name.id in self.source(each.iter) for each in inner)
            if "range(" in self.source(loop.iter) and is_read and all(t in text for t in _TRAINS):
                first = loop.body[0]
                indent = " " * first.col_offset
                new = f"{name.id}.dataset.level = {loop.target.id}\n{indent}{self.source(first)}"
                kept = f"{self.source(workers)}, persistent_workers=True"
                changes = [(first, new), (workers, kept), (data, changed)]
                in_order = sorted(changes, key=lambda pair: self.span(pair[0]), reverse=True)
                yield self.edits("worker-copy-changed", in_order)
                return

    def _keyword(self, call: ast.Call, name: str) -> Iterator[Edit]:
        for made in self.tree.body:
            if not isinstance(made, ast.FunctionDef) or made.name != name or made.decorator_list:
                continue
            returned = [n for n in ast.walk(made) if isinstance(n, ast.Return) and n.value]
            is_factory = any("loader" in self.source(each).lower() for each in returned)
            taken = [*made.args.args, *made.args.kwonlyargs]
            if made.args.kwarg or not is_factory or "DataLoader(" not in self.source(made):
                continue
            if self._is_caught(call):
                continue
            for word in call.keywords:
                if word.arg and len(word.arg) > 5 and word.arg in {each.arg for each in taken}:
                    new = f"{word.arg[:-1]}={self.source(word.value)}"
                    yield self.edits("factory-keyword", [(word, new)])
                    return

    def _from_zero(self, loop: ast.For) -> Iterator[Edit]:
        counted = loop.iter
        text = self.source(loop)
        if not isinstance(counted, ast.Call) or len(counted.args) != 2 or "set_epoch(" not in text:
            return
        is_range = _last(counted.func) == "range" and not isinstance(counted.args[0], ast.Constant)
        whole = self.source(self.function(loop))
        loads = "torch.load(" in whole and "optimizer.load_state_dict(" in whole
        if is_range and loads:
            yield self.edit("epoch-from-zero", counted, f"range({self.source(counted.args[1])})")

    def _is_evaluated(self, sampler: ast.Call) -> bool:
        """Whether the statement of a sampler says so."""
        around: ast.AST = sampler
        while around in self.parents and not isinstance(around, ast.stmt):
            around = self.parents[around]
        return bool(inject_loaders._EVALUATION.search(self.source(around)))

    def _is_caught(self, call: ast.Call) -> bool:
        """Whether something around a call catches any error."""
        around: ast.AST = call
        while around in self.parents:
            around = self.parents[around]
            if isinstance(around, ast.Try) and any(
                each.type is None or _last(each.type) == "Exception" for each in around.handlers
            ):
                return True
        return False


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


if __name__ == "__main__":
    main(CODES, functools.partial(places, reader=Today))
