"""What SMP201, SMP202 and SMP203 say about small programs: a line that ends in ``# !`` is wrong."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.engine import Options
from sampler_lint.findings import Applicability

IMPORTS = """\
import argparse
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, DistributedSampler, Subset
"""
SETTINGS = """\
args = argparse.ArgumentParser().parse_args()
torch.manual_seed(args.seed)
"""


def check(folder: Path, code: str, source: str, **files: str) -> tuple[set[str], set[str]]:
    """The places that are reported, and those that should be."""
    (folder / "pyproject.toml").touch()
    texts = {"main": IMPORTS + textwrap.dedent(source)}
    texts |= {name: IMPORTS + textwrap.dedent(text) for name, text in files.items()}
    wanted = set()
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        rows = enumerate(text.splitlines(), 1)
        wanted |= {f"{name}.py:{row}" for row, line in rows if line.endswith("# !")}
    found = engine.check([str(folder)], Options(select=(code,))).findings
    return {f"{Path(one.path).name}:{one.start.row}" for one in found}, wanted


# SMP201: the data brings the seed


@pytest.mark.parametrize(
    "body",
    [
        """
        train = load(args.path)
        sampler = DistributedSampler(train)  # !
        """,
        """
        train, held_out = load(args.path, args.seed)
        sampler = DistributedSampler(train)
        """,
        """
        rng = np.random.RandomState(seed=args.seed)
        data = load(args.path)
        sampler = DistributedSampler(Subset(data, rng.permutation(len(data))))
        """,
        """
        rng = np.random.RandomState(seed=args.seed)
        train, held_out = split(shuffled(load(args.path), rng), 0.9)
        sampler = DistributedSampler(train)
        """,
        """
        data = load(args.path, seed=7)
        sampler = DistributedSampler(data)  # !
        """,
    ],
)
def test_data_in_an_order_of_the_seed(tmp_path: Path, body: str) -> None:
    found, wanted = check(tmp_path, "SMP201", SETTINGS + textwrap.dedent(body))
    assert found == wanted


# SMP201: whom a factory serves


FACTORY = """
def get_loader(args, data):
    sampler = DistributedSampler(data)
    return DataLoader(data, sampler=sampler)
"""


@pytest.mark.parametrize(
    ("calls", "reports"),
    [
        ("def validation_pass(args, data):\n    return get_loader(args, data)\n", False),
        ("val_loader = get_loader(args, held_out)\n", False),
        ("loader = get_loader(args, data)\n", True),
        ("val_loader = get_loader(args, held_out)\nloader = get_loader(args, data)\n", True),
        ("", True),
    ],
)
def test_factory_of_evaluation_loaders(tmp_path: Path, calls: str, reports: bool) -> None:
    factory = FACTORY.replace("(data)\n", "(data)  # !\n") if reports else FACTORY
    found, wanted = check(tmp_path, "SMP201", SETTINGS + factory + calls)
    assert found == wanted


@pytest.mark.parametrize(
    ("call", "reports"),
    [
        ("loader = get_loader(data, seed=666 if args.fix_seed else None)\n", False),
        ("loader = get_loader(data, seed=1)\n", False),
        ("loader = get_loader(data, seed=args.seed)\n", True),
        ("loader = get_loader(data, seed=drawn())\n", True),
        ("loader = get_loader(data)\n", True),
    ],
)
def test_factory_that_is_only_given_literals(tmp_path: Path, call: str, reports: bool) -> None:
    source = f"""
args = argparse.ArgumentParser().parse_args()
def get_loader(data, seed=None):
    sampler = DistributedSampler(data){"  # !" if reports else ""}
    return DataLoader(data, sampler=sampler)
{call}"""
    found, wanted = check(tmp_path, "SMP201", source)
    assert found == wanted


# SMP201: a seed that each process draws


def test_seed_overwritten_by_a_draw_is_no_setting(tmp_path: Path) -> None:
    source = """
        args = argparse.ArgumentParser().parse_args()
        args.seed = random.randint(1, 1000)
        torch.manual_seed(args.seed)
        sampler = DistributedSampler(data)
    """
    assert check(tmp_path, "SMP201", source) == (set(), set())


def test_seed_that_may_be_drawn_is_never_passed_safely(tmp_path: Path) -> None:
    source = """
        def main(args):
            if args.seed is None:
                args.seed = random.randint(1, 1000)
            torch.manual_seed(args.seed)
            return DistributedSampler(data)  # !
        if __name__ == "__main__":
            main(argparse.ArgumentParser().parse_args())
    """
    found, wanted = check(tmp_path, "SMP201", source)
    assert found == wanted
    (finding,) = engine.check([str(tmp_path)], Options(select=("SMP201",))).findings
    assert finding.fix is None or finding.fix.applicability is not Applicability.SAFE


# SMP201: a constant of the file


@pytest.mark.parametrize(
    ("assigned", "reports"),
    [("42", True), ("read()", False), ("args.seed", False), ("42\nSEED = args.seed", False)],
)
def test_constant_for_a_seed(tmp_path: Path, assigned: str, reports: bool) -> None:
    mark = "  # !" if reports else ""
    source = f"SEED = {assigned}\nsampler = DistributedSampler(data, seed=SEED){mark}\n"
    found, wanted = check(tmp_path, "SMP201", SETTINGS + source)
    assert found == wanted
    if reports:
        engine.fix([str(tmp_path)], Options(select=("SMP201",)), unsafe=True)
        text = (tmp_path / "main.py").read_text(encoding="utf-8")
        assert "DistributedSampler(data, seed=args.seed)" in text


# SMP202: a seed that each process makes for itself


@pytest.mark.parametrize(
    "body",
    [
        "sampler = DistributedSampler(data, seed=int(time.time()))  # !",
        "seed = int(time.time()) % 1000\nsampler = DistributedSampler(data, seed=seed)  # !",
        """
        def build(data):
            seed = int.from_bytes(os.urandom(4), "big")
            return DistributedSampler(data, seed=seed)  # !
        """,
        """
        def build(data):
            seed = int(time.time())
            seed = from_rank_zero(seed)
            return DistributedSampler(data, seed=seed)
        """,
        """
        def build(data):
            seed = [int(time.time())]
            dist.broadcast_object_list(seed)
            return DistributedSampler(data, seed=seed[0])
        """,
        "sampler = DistributedSampler(data, shuffle=False, seed=int(time.time()))",
        # Generators that were seeded alike draw alike.
        "sampler = DistributedSampler(data, seed=random.randint(0, 9))",
    ],
)
def test_seed_from_the_clock(tmp_path: Path, body: str) -> None:
    head = "import os\nimport time\nimport torch.distributed as dist\n"
    found, wanted = check(tmp_path, "SMP202", head + textwrap.dedent(body) + "\n")
    assert found == wanted


# SMP201: how the fix names the seed


def test_fix_names_a_global_where_it_is_set(tmp_path: Path) -> None:
    """The call of `main` stands below `main`, but runs before `args` is there."""
    source = """
        parser = argparse.ArgumentParser()
        parser.add_argument("--seed", type=int, default=31)
        def main():
            global args
            args = parser.parse_args()
            torch.manual_seed(args.seed)
            return DistributedSampler(data)
        if __name__ == "__main__":
            main()
    """
    check(tmp_path, "SMP201", source)
    engine.fix([str(tmp_path)], Options(select=("SMP201",)))
    text = (tmp_path / "main.py").read_text(encoding="utf-8")
    assert "DistributedSampler(data, seed=args.seed)" in text
    assert text.endswith("    main()\n")


# SMP203: who builds the class


SAMPLER = """
class Shuffled(DistributedSampler):
    def __init__(self, data, shuffle=True):
        super().__init__(data)
        self.shuffle = shuffle

    def __iter__(self):
        g = torch.Generator()
        if self.shuffle:
            g.manual_seed(self.epoch)
        return iter(torch.randperm(len(self.dataset), generator=g).tolist())
"""
WRONG = SAMPLER.replace("(self.epoch)\n", "(self.epoch)  # !\n")


@pytest.mark.parametrize(
    ("use", "reports"),
    [
        ("", False),
        ("sampler = samplers.Shuffled(data, shuffle=False)\n", False),
        ("sampler = samplers.Shuffled(data)\n", True),
        ("sampler = samplers.Shuffled(data, shuffle=args.shuffle)\n", True),
        ("sampler = getattr(samplers, args.sampler)(data)\n", True),
    ],
)
def test_who_builds_the_class(tmp_path: Path, use: str, reports: bool) -> None:
    main = SETTINGS + ("import samplers\n" if use else "from samplers import other\n") + use
    samplers = (WRONG if reports else SAMPLER) + "other = 1\n"
    found, wanted = check(tmp_path, "SMP203", main, samplers=samplers)
    assert found == wanted


def test_generator_that_nothing_draws_from(tmp_path: Path) -> None:
    text = SAMPLER.replace(", generator=g)", ")") + "sampler = Shuffled(data)\n"
    assert check(tmp_path, "SMP203", SETTINGS + text) == (set(), set())


@pytest.mark.parametrize("decorator", ["", "@SAMPLERS.register_module()\n"])
def test_a_registered_class_is_built_by_name(tmp_path: Path, decorator: str) -> None:
    text = (WRONG if decorator else SAMPLER).replace("class", f"{decorator}class")
    found, wanted = check(tmp_path, "SMP203", SETTINGS + text)
    assert found == wanted


PLAIN = """
class Cyclic:
    def __init__(self, data):
        self.data = data
        self.epoch = 0

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.epoch)
        yield from torch.randperm(len(self.data), generator=g).tolist()

def build(data):
    return DataLoader(data, batch_sampler=Cyclic(data))
"""


@pytest.mark.parametrize(("use", "reports"), [("build", True), ("other", False)])
def test_builder_that_nobody_calls(tmp_path: Path, use: str, reports: bool) -> None:
    text = PLAIN.replace("(self.epoch)\n", "(self.epoch)  # !\n") if reports else PLAIN
    main = SETTINGS + f"from samplers import {use}\nmade = {use}(data)\n"
    found, wanted = check(
        tmp_path, "SMP203", main, samplers=text + "def other(data):\n    return 1\n"
    )
    assert found == wanted


def test_derived_class_that_is_built_counts(tmp_path: Path) -> None:
    derived = "class Mine(Shuffled):\n    pass\n\nsampler = Mine(data)\n"
    found, wanted = check(tmp_path, "SMP203", SETTINGS + WRONG + derived)
    assert found == wanted


def test_class_that_takes_a_seed_is_wrong_by_itself(tmp_path: Path) -> None:
    text = WRONG.replace("data, shuffle=True", "data, shuffle=True, seed=0")
    found, wanted = check(tmp_path, "SMP203", text)
    assert found == wanted
