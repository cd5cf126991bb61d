"""How often the contract says of published samplers what was measured of them.

    python benchmarks/contract.py entries.jsonl --venv /tmp/samplers

Each line of ``entries.jsonl`` names a sampler class of a published package, how it is built
(``construct``) and which invariants it keeps and breaks. The packages are installed into a
virtual environment of their own; each class is examined in a process of its own. Printed are the
agreement, each disagreement with the evidence of both sides, and the slowest classes.

In ``construct``, ``ds`` is the dataset, ``W`` the world size, ``r`` the rank, ``s`` the seed, ``n``
the size, ``bs`` the batch size and ``lengths`` a length for each sample. What is described there
in words is in ``WORDS``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

SOURCE = Path(__file__).resolve().parent.parent / "src"

#: Our promise for each invariant of the entries.
NAMES = {
    "coverage": "coverage",
    "disjoint": "disjoint",
    "even_batches": "equal-steps",
    "len": "length-is-true",
    "deterministic": "deterministic",
    "reshuffles": "reshuffles",
    "seed_sensitive": "seed-matters",
    "rank_agreement": "ranks-agree",
    "batch_size_attr": "batch-size",
    "lightning_reinit": "lightning",
    "accelerate_shard": "accelerate",
}
WORD = {"kept": "ok", "broken": "broken", "n/a": "n/a", "unknown": "unknown"}

#: The inputs that the entries were measured on.
SIZES, WORLD_SIZES = (0, 1, 2, 7, 8, 100, 101), (1, 2, 3, 4)

#: Parts of ``construct`` that are words, and the code they stand for.
WORDS = (
    (r" and set_epoch\(\) is never called.*", ""),
    (r"  #.*", ""),
    (r"\biterable_ds\b", "iterable(n)"),
    (r"ds \(each text twice\)", "texts(n, 2)"),
    (r"ds \(half of the rows one text\)", "texts(n, 0)"),
    (r"GroupByLabelBatchSampler\(ds", "GroupByLabelBatchSampler(labelled(n)"),
    (r"\bcuts\b", "cuts(n)"),
    (r"labels \(n, 2\)", "torch.tensor([[i % 4, i % 2] for i in range(n)]).reshape(n, 2)"),
    (
        r"concat of n//3 and the rest, (\[.*?\])\*2, g, s",
        "concat(n), [DefaultBatchSampler(SubsetRandomSampler(range(k), generator=g), bs, False) "
        "for k in (n // 3, n - n // 3)], g, s",
    ),
)

KEPT: list[Any] = []  # a library is gone with its last reference

#: The modules that ``construct`` may take a name from, beside its own.
HELPERS = ("torch.utils.data", "torch.utils.data.distributed", "accelerate.data_loader")


def code_of(entry: dict[str, Any]) -> str:
    code = entry["construct"]
    for pattern, replacement in WORDS:
        code = re.sub(pattern, replacement, code)
    return code.strip()


def import_torchvision(torch: Any) -> None:
    """Import the package index's torchvision, which is built for CUDA, beside a torch for the CPU.

    It is refused there unless its operators are known; no sampler uses one.
    """
    for _ in range(100):
        try:
            importlib.import_module("torchvision")
        except RuntimeError as error:  # noqa: PERF203
            missing = re.search(r"operator torchvision::(\w+) does not exist", str(error))
            if missing is None:
                return
            library = torch.library.Library("torchvision", "FRAGMENT")
            library.define(f"{missing[1]}(Tensor x) -> Tensor")
            KEPT.append(library)
            for name in [name for name in sys.modules if name.startswith("torchvision")]:
                del sys.modules[name]
        except ImportError:
            return
        else:
            return


def namespace(entry: dict[str, Any]) -> dict[str, Any]:
    """The names that ``construct`` uses."""
    import torch

    import_torchvision(torch)
    names: dict[str, Any] = {"torch": torch, "Generator": torch.Generator}
    for module in (*HELPERS, entry["module"]):
        try:
            names |= vars(importlib.import_module(module))
        except ImportError:  # noqa: PERF203
            if module == entry["module"]:
                raise

    def iterable(n: int) -> Any:
        class Stream(names["IterableDataset"]):  # type: ignore[misc]
            def __len__(self) -> int:
                return n

            def __iter__(self) -> Any:
                return iter(range(n))

        return Stream()

    def texts(n: int, repeat: int) -> Any:
        from datasets import Dataset

        rows = [f"text {i // repeat}" if repeat else f"text {max(i, n // 2)}" for i in range(n)]
        return Dataset.from_dict({"text": rows})

    def labelled(n: int) -> Any:
        from datasets import Dataset

        return Dataset.from_dict(
            {"text": [f"text {i}" for i in range(n)], "label": [i % 3 for i in range(n)]}
        )

    def concat(n: int) -> Any:
        first = names["TensorDataset"](torch.tensor(list(range(n // 3))))
        rest = names["TensorDataset"](torch.tensor(list(range(n - n // 3))))
        return names["ConcatDataset"]([first, rest])

    def cuts(n: int) -> Any:
        from lhotse import CutSet
        from lhotse.testing.dummies import dummy_cut

        made = [dummy_cut(i, start=0.0, duration=1.0 + i % 5) for i in range(n)]
        return CutSet.from_cuts(made)

    return {
        **names,
        "iterable": iterable,
        "texts": texts,
        "labelled": labelled,
        "concat": concat,
        "cuts": cuts,
    }


def examine(entry: dict[str, Any]) -> dict[str, Any]:
    """The contract's report on one entry; in the process made for it."""
    from sampler_lint.harness import contract

    names, code = namespace(entry), compile(code_of(entry), "construct", "eval")

    def factory(case: Any) -> Any:
        values = _Lazy(names, case)
        return eval(code, values)

    def index(item: Any) -> Any:
        if type(item).__name__ == "CutSet":
            return [int(cut.id.rsplit("-", 1)[-1].partition("_dup")[0]) for cut in item]
        return contract.plain(item)

    options: dict[str, Any] = {"index": index, "frameworks": ("lightning", "accelerate")}
    if "never called" in entry["construct"]:
        options["tell"] = lambda sampler, epoch: None
    return contract.examine(
        factory,
        sizes=SIZES,
        world_sizes=WORLD_SIZES,
        name=entry["class"],
        time_limit=100,
        **options,
    ).to_dict()


class _Lazy(dict):  # type: ignore[type-arg]
    """The case's values by their short names, asked for only when used."""

    SHORT: ClassVar = {
        "ds": "dataset",
        "W": "world_size",
        "r": "rank",
        "s": "seed",
        "n": "size",
        "bs": "batch_size",
        "lengths": "lengths",
        "labels": "labels",
        "g": "generator",
    }

    def __init__(self, names: dict[str, Any], case: Any) -> None:
        super().__init__(names)
        for short in self.SHORT:
            self.pop(short, None)
        self._case = case

    def __missing__(self, name: str) -> Any:
        if name in self.SHORT:
            value = getattr(self._case, self.SHORT[name])
            if name == "labels" or name == "g":
                self[name] = value
            return value
        raise KeyError(name)


def compare(entry: dict[str, Any], report: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Invariant, what was measured, what the contract says, and its reason."""
    rows = []
    for name, measured in entry["invariants"].items():
        found = report["promises"].get(NAMES.get(name, name))
        if found is not None:
            rows.append((name, measured, WORD[found["verdict"]], found["reason"]))
    return rows


def run(python: str, entry: dict[str, Any], timeout: float) -> tuple[dict[str, Any] | None, str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    try:
        done = subprocess.run(
            [python, __file__, "-", "--one"],
            input=json.dumps(entry),
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"not done in {timeout:.0f} s"
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["?"])[-1]
    return json.loads(done.stdout.splitlines()[-1]), ""


def install(folder: Path, entries: list[dict[str, Any]]) -> str:
    """The interpreter of a virtual environment with the packages of all entries."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        wanted = {f"{e['package']}=={e['version'].partition('+')[0]}" for e in entries}
        # Some samplers read a Hugging Face dataset, and lhotse does not ask for all it imports.
        wanted |= {"datasets", "urllib3"}
        subprocess.run([str(python), "-m", "pip", "install", "-q", *sorted(wanted)], check=True)
    return str(python)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("entries", type=Path)
    parser.add_argument("--venv", type=Path, help="where the packages are, or are to be installed")
    parser.add_argument("--only", help="a part of the class names to try")
    parser.add_argument("--timeout", type=float, default=180.0)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(examine(json.load(sys.stdin))))
        return 0
    lines = arguments.entries.read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    if arguments.only:
        entries = [entry for entry in entries if arguments.only in entry["class"]]
    python = install(arguments.venv, entries) if arguments.venv else sys.executable
    whole, agreeing, total, by_name = 0, 0, 0, Counter[str]()
    for entry in entries:
        started = time.monotonic()
        label = " ".join(filter(None, (entry["class"], entry["variant"])))
        report, trouble = run(python, entry, arguments.timeout)
        if report is None:
            print(f"{label}: NOT EXAMINED: {trouble}", flush=True)
            total += sum(name in NAMES for name in entry["invariants"])
            continue
        rows = compare(entry, report)
        different = [row for row in rows if row[1] != row[2]]
        whole += not different
        agreeing += len(rows) - len(different)
        total += len(rows)
        print(
            f"{label}: {len(rows) - len(different)} of {len(rows)} "
            f"({time.monotonic() - started:.1f} s)",
            flush=True,
        )
        for name, measured, found, reason in different:
            by_name[name] += 1
            print(f"    {name}: measured {measured}, contract {found}: {reason[:300]}")
        if different:
            print(f"    measured: {entry['evidence'][:400]}")
    print(
        f"{agreeing} of {total} invariants agree ({100 * agreeing / max(total, 1):.1f} %); "
        f"{whole} of {len(entries)} entries in all of theirs; "
        f"{sum(by_name.values())} differ: {dict(by_name)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
