"""The program's own seed: who sets it, and how a scope can name it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint.domain import seed_names, seeds
from trees import TORCH, Tree

IMPORTS = "import argparse\nimport random\nimport numpy as np\nimport torch\n" + TORCH

#: Settings that the person who starts the program can choose.
CONFIGURED = """\
args = argparse.ArgumentParser().parse_args()
cfg = read(args.path)
"""


def tree(folder: Path, source: str, **files: str) -> Tree:
    main = IMPORTS + textwrap.dedent(source)
    return Tree(folder, {"main.py": main, **{f"{k}.py": v for k, v in files.items()}})


def seeding(folder: Path, source: str, **files: str) -> str | None:
    """The call that seeds the program of ``main.py``."""
    made = tree(folder, CONFIGURED + textwrap.dedent(source), **files)
    return seeding_of(made, "main.py")


def seeding_of(made: Tree, name: str) -> str | None:
    """The call that seeds the program of a file, for what the file does at its top level."""
    module = made.module(name)
    found = seeds.seeding(made.model, module, module.facts)
    return found and made.text(found.call)


def seed_at(folder: Path, source: str, **files: str) -> seed_names.Seed | None:
    """The seed as it can be named at the probe."""
    made = tree(folder, source, **files)
    probe = made.probe("x")
    return seed_names.in_scope(made.model, made.project.module_of(probe.scope), probe.scope, probe)


PROBE = 'probe_loader("x", 0)'


# who seeds


@pytest.mark.parametrize(
    ("line", "seeds_it"),
    [
        ("torch.manual_seed(args.seed)", True),
        ("torch.cuda.manual_seed_all(args.seed)", True),
        ("random.seed(args.seed)", True),
        ("np.random.seed(cfg.train.seed + 1)", True),
        ("seed_everything(seed=args.seed)", True),
        ("torch.manual_seed(cfg['seed'])", True),
        ("worker.manual_seed(args.seed)", False),
        ("torch.Generator().manual_seed(args.seed)", False),
        ("torch.manual_seed(0)", False),
        ("torch.manual_seed(args.number)", False),
        ("torch.manual_seed()", False),
        ("other(args.seed)", False),
    ],
)
def test_calls_that_seed(tmp_path: Path, line: str, seeds_it: bool) -> None:
    assert seeding(tmp_path, line + "\n") == (line if seeds_it else None)


def test_torchs_own_generator_comes_first(tmp_path: Path) -> None:
    source = "random.seed(args.seed)\ntorch.manual_seed(args.seed)\n"
    assert seeding(tmp_path, source) == "torch.manual_seed(args.seed)"


def test_the_files_own_seeding_comes_first(tmp_path: Path) -> None:
    other = "import torch  # loader\ncfg = read()\ntorch.manual_seed(cfg.seed)\n"
    source = "import other\nrandom.seed(args.seed)\n"
    assert seeding(tmp_path, source, other=other) == "random.seed(args.seed)"
    assert seeding(tmp_path / "b", "import other\n", other=other) == "torch.manual_seed(cfg.seed)"


def test_another_program_seeds_itself_only(tmp_path: Path) -> None:
    made = Tree(
        tmp_path,
        {
            "one/main.py": "# loader\nimport torch\nargs = read()\ntorch.manual_seed(args.seed)\n",
            "two/main.py": "# loader\nx = 1\n",
        },
    )
    assert seeding_of(made, "one/main.py") == "torch.manual_seed(args.seed)"
    assert seeding_of(made, "two/main.py") is None


# how it is spelled


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (f"def f(seed):\n    {PROBE}\n", "seed"),
        (f"def f(random_seed):\n    {PROBE}\n", "random_seed"),
        (f"def f(args):\n    torch.manual_seed(args.seed)\n    {PROBE}\n", "args.seed"),
        (f"def f(cfg):\n    torch.manual_seed(cfg.train.seed)\n    {PROBE}\n", "cfg.train.seed"),
        (f"def f(seed):\n    def g():\n        {PROBE}\n", "seed"),
        (f"def f(split_seed):\n    {PROBE}\n", None),
        (f"def f(seeds):\n    {PROBE}\n", None),
        (f"def f(data):\n    {PROBE}\n", None),
        (f"def f(data):\n    random.seed(1)\n    {PROBE}\n", None),
        (
            f"def g(args):\n    torch.manual_seed(args.seed)\ndef f(args):\n    {PROBE}\n",
            "args.seed",
        ),
        (f"def g(args):\n    torch.manual_seed(args.seed)\ndef f(data):\n    {PROBE}\n", None),
    ],
)
def test_spelling(tmp_path: Path, source: str, code: str | None) -> None:
    seed = seed_at(tmp_path, source)
    assert (seed and seed.code) == code


CONFIG = """
class Config:
    seed: int = 1
class Other:
    size: int = 1
class Whole:
    train: Config
def start(cfg: Config):
    torch.manual_seed(cfg.seed)
"""


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (f"def f(settings: Config):\n    {PROBE}\n", "settings.seed"),
        (f"def f(settings: Config | None):\n    {PROBE}\n", "settings.seed"),
        (f"def f(cfg: Other):\n    {PROBE}\n", None),
        (f"def f(settings: Other):\n    {PROBE}\n", None),
        (f"def f(settings: Config):\n    settings = Other()\n    {PROBE}\n", None),
        (
            "class T:\n    def __init__(self, c: Config):\n        self.config = c\n"
            f"    def f(self):\n        {PROBE}\n",
            "self.config.seed",
        ),
        (
            "class T:\n    def __init__(self, c: Other):\n        self.config = c\n"
            f"    def f(self):\n        {PROBE}\n",
            None,
        ),
    ],
)
def test_in_what_is_declared_to_be_the_configuration(
    tmp_path: Path, source: str, code: str | None
) -> None:
    seed = seed_at(tmp_path, CONFIG + source)
    assert (seed and seed.code) == code


def test_in_a_part_of_what_is_declared(tmp_path: Path) -> None:
    start = "def go(cfg: Whole):\n    torch.manual_seed(cfg.train.seed)\n"
    source = CONFIG.replace("def start(cfg: Config):\n    torch.manual_seed(cfg.seed)\n", start)
    seed = seed_at(tmp_path, f"{source}def f(all: Whole):\n    {PROBE}\n")
    assert seed is not None
    assert seed.code == "all.train.seed"


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        ("    start(args)\n    f(args)\n", "settings.rng_seed"),
        ("    start(args)\n    f(other)\n", None),
        ("    start(args)\n    f(args)\n    f(other)\n", None),
        ("    torch.manual_seed(args.rng_seed)\n    f(args)\n", "settings.rng_seed"),
        ("    f(args)\n", None),
    ],
)
def test_in_what_every_caller_hands_over(tmp_path: Path, calls: str, code: str | None) -> None:
    source = "def start(conf):\n    torch.manual_seed(conf.rng_seed)\n"
    source += f"def f(settings):\n    {PROBE}\n"
    source += f"def main():\n    args, other = read()\n{calls}"
    seed = seed_at(tmp_path, source)
    assert (seed and seed.code) == code


def test_in_an_entry_of_a_mapping(tmp_path: Path) -> None:
    source = (
        "class T:\n    def start(self):\n        if self.cfg['seed'] is not None:\n"
        "            torch.manual_seed(self.cfg['seed'])\n"
        f"    def f(self):\n        {PROBE}\n"
    )
    assert seed_at(tmp_path, source) == seed_names.Seed("self.cfg['seed']", is_number=False)


def test_not_in_an_entry_that_a_rank_changes(tmp_path: Path) -> None:
    source = (
        "class T:\n    def start(self, rank):\n        self.cfg['seed'] += rank\n"
        "        self.cfg['seed'] = self.cfg['seed'] + rank\n"
        "        torch.manual_seed(self.cfg['seed'])\n"
        f"    def f(self):\n        {PROBE}\n"
    )
    assert seed_at(tmp_path, source) is None


def test_not_in_the_settings_of_another_script(tmp_path: Path) -> None:
    """A script's own ``args`` need not have the seed that another's has."""
    train = "# loader\nimport argparse, torch, main\n"
    train += "args = argparse.ArgumentParser().parse_args()\ntorch.manual_seed(args.seed)\n"
    own = "args = argparse.ArgumentParser().parse_args()\n"
    source = f"def f():\n    {PROBE}\n{own}f()\n"
    assert seed_at(tmp_path, source, train=train) is None
    handed = f"def f(args):\n    {PROBE}\n{own}f(args)\n"
    seed = seed_at(tmp_path / "b", handed, train=train)
    assert seed is not None  # nothing says what options this script has
    options = own.replace(".parse", "\nargs.add_argument('--size')\nargs = args.parse")
    train = train.replace("main", "maker")
    maker = f"# loader\n{IMPORTS}def f(args):\n    {PROBE}\n"
    script = "from maker import f\n" + options + "f(args)\n"
    assert seed_at(tmp_path / "c", script, train=train, maker=maker) is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("cfg.seed", "cfg.seed"),
        ("cfg.train.seed + 1", "cfg.train.seed"),
        ("cfg['train.seed']", "cfg['train.seed']"),
        ("opts.seed", None),
        ("opts['seed']", None),
        ("cfg['seed', 0]", None),
    ],
)
def test_in_another_file_by_a_name_that_the_scope_has(
    tmp_path: Path, given: str, code: str | None
) -> None:
    """A file that seeds by other names is not even parsed."""
    source = f"import other\ndef f(cfg):\n    {PROBE}\nf(read())\n"
    other = f"import torch\ndef g(cfg, opts):\n    torch.manual_seed({given})\n"
    made = tree(tmp_path, source, other=other)
    probe = made.probe("x")
    module = made.project.module_of(probe.scope)
    seed = seed_names.in_scope(made.model, module, probe.scope, probe)
    assert (seed and seed.code) == code
    assert made.project.is_parsed(str(tmp_path / "other.py")) is not given.startswith("opts")


def test_on_self(tmp_path: Path) -> None:
    source = f"""
        class Trainer:
            def __init__(self, cfg):
                self.cfg = cfg
                torch.manual_seed(self.cfg.seed)
            def build(self):
                {PROBE}
    """
    seed = seed_at(tmp_path, source)
    assert seed is not None
    assert seed.code == "self.cfg.seed"


def test_self_of_another_class_is_not_ours(tmp_path: Path) -> None:
    source = f"""
        class Trainer:
            def seed(self):
                torch.manual_seed(self.cfg.seed)
        class Other:
            def build(self):
                {PROBE}
    """
    assert seed_at(tmp_path, source) is None


def test_a_name_bound_only_later_cannot_be_used(tmp_path: Path) -> None:
    source = f"""
        def main():
            {PROBE}
            args = read()
            torch.manual_seed(args.seed)
    """
    assert seed_at(tmp_path, source) is None


@pytest.mark.parametrize(
    "line", ["seed = seed + rank", "seed += rank", "seed = args.seed + dist.get_rank()"]
)
def test_a_seed_made_the_ranks_own_is_not_the_programs(tmp_path: Path, line: str) -> None:
    source = f"def f(seed, rank, args):\n    {line}\n    {PROBE}\n"
    seed = seed_at(tmp_path, source)
    assert seed is None or seed.code != "seed"


def test_a_setting_made_the_ranks_own_is_not_the_programs(tmp_path: Path) -> None:
    source = f"""
        def f(args, rank):
            args.seed = args.seed + rank
            torch.manual_seed(args.seed)
            {PROBE}
    """
    assert seed_at(tmp_path, source) is None


# whether it is a number


@pytest.mark.parametrize(
    ("option", "is_number"),
    [
        ('"--seed", type=int, default=7', True),
        ('"--seed", type=int, required=True', True),
        ('"--seed", type=int', False),
        ('"--seed", type=int, default=None', False),
        ('"--random-number", dest="seed", type=int, default=0', True),
        ('"--seed", type=int, default=read()', True),
        ('"--seed", default=read()', None),
        ('"--other", default=None', None),
    ],
)
def test_number_from_argparse(tmp_path: Path, option: str, is_number: bool | None) -> None:
    source = f"""
        parser = argparse.ArgumentParser()
        parser.add_argument({option})
        args = parser.parse_args()
        torch.manual_seed(args.seed)
        {PROBE}
    """
    seed = seed_at(tmp_path, source)
    assert seed is not None
    assert seed.is_number is is_number


@pytest.mark.parametrize(
    ("field", "is_number"),
    [
        ("seed: int = 7", True),
        ("seed: int", True),
        ("seed: Optional[int] = None", False),
        ("seed: int | None = None", False),
        ("seed = 7", True),
        ("seed = None", False),
    ],
)
def test_number_from_a_dataclass(tmp_path: Path, field: str, is_number: bool) -> None:
    source = f"""
        from dataclasses import dataclass
        @dataclass
        class Config:
            {field}
        cfg = Config()
        torch.manual_seed(cfg.seed)
        {PROBE}
    """
    seed = seed_at(tmp_path, source)
    assert seed is not None
    assert seed.is_number is is_number


@pytest.mark.parametrize(
    ("param", "is_number"),
    [
        ("seed: int", True),
        ("seed: int = 0", True),
        ("seed=0", True),
        ("seed=None", False),
        ("seed: int = None", False),
        ("seed", None),
    ],
)
def test_number_from_a_parameter(tmp_path: Path, param: str, is_number: bool | None) -> None:
    seed = seed_at(tmp_path, f"def f({param}):\n    {PROBE}\n")
    assert seed is not None
    assert seed.is_number is is_number


def test_a_generators_method_is_no_seed(tmp_path: Path) -> None:
    source = "def f(data):\n    generator = torch.Generator()\n    generator.manual_seed(3)\n"
    assert seed_at(tmp_path, f"{source}    {PROBE}\n") is None
