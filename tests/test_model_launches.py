"""Which parts of a program may start which others, and what nothing uses."""

from __future__ import annotations

import gc
import textwrap
import weakref
from pathlib import Path

import pytest

from sampler_lint.domain.launches import launches
from sampler_lint.domain.model import Model
from sampler_lint.domain.seeds import seeding
from sampler_lint.syntax.nodes import Scope
from trees import Tree

LIBRARY = """\
    # loader
    def seed_all(args):
        torch.manual_seed(args.seed)

    def build(data):
        return sampler

    class Job:
        def run(self):
            return build(self.data)
"""
#: Two runs of one library: what seeds is in the one, the sampler may be in the other.
SEEDS = "# loader\nimport lib\nif __name__ == '__main__':\n    lib.seed_all(args)\n"


def tree(folder: Path, **files: str) -> Tree:
    texts = {"lib": LIBRARY, **files}
    return Tree(folder, {f"{name}.py": textwrap.dedent(text) for name, text in texts.items()})


def scope(made: Tree, name: str, file: str = "lib.py") -> Scope:
    (found,) = (s for s in made.module(file).facts.scopes if s.name == name)
    return found


def together(made: Tree, name: str = "build") -> bool | None:
    return launches(made.model).together(scope(made, "seed_all"), scope(made, name))


STARTS = {
    "alone": ("import lib\nif __name__ == '__main__':\n    lib.build(1)\n", False),
    "both": (
        "import lib\nif __name__ == '__main__':\n    lib.seed_all(1)\n    lib.build(1)\n",
        True,
    ),
    "alias": (
        "from lib import build as make, seed_all\ndef go():\n    seed_all(1)\n    make(1)\ngo()\n",
        True,
    ),
    "star": ("from lib import *\nseed_all(1)\nbuild(1)\n", True),
    "by a class": ("from lib import Job, seed_all\nseed_all(1)\nJob().run()\n", True),
    "a class alone": ("from lib import Job\nJob().run()\n", False),
    "through a table": (
        "import lib\nTABLE = {'a': lib.build}\n"
        "def main():\n    lib.seed_all(1)\n    TABLE['a'](1)\n"
        "if __name__ == '__main__':\n    main()\n",
        True,
    ),
    "other parts": (
        "import lib\ndef one():\n    lib.seed_all(1)\ndef two():\n    lib.build(1)\n"
        "if __name__ == '__main__':\n    two()\n",
        False,
    ),
    "nothing starts it": ("import lib\ndef hook():\n    lib.build(1)\n", None),
}


@pytest.mark.parametrize("how", STARTS)
def test_what_may_run_together(tmp_path: Path, how: str) -> None:
    text, answer = STARTS[how]
    assert together(tree(tmp_path, other="# loader\n" + text, seeds=SEEDS)) is answer


def test_what_runs_on_import_runs_with_the_importer(tmp_path: Path) -> None:
    setup = "# loader\nimport lib\nlib.seed_all(read())\n"
    main = "# loader\n{}import lib\nif __name__ == '__main__':\n    lib.build(1)\n"
    made = tree(tmp_path / "a", setup=setup, main=main.format("import setup\n"))
    assert together(made) is True
    made = tree(tmp_path / "b", setup=setup, main=main.format(""))
    assert together(made) is False


def test_through_a_package_that_exports_it(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from pkg.data import build\nfrom pkg.seeds import seed_all\n",
        "pkg/data.py": "# loader\ndef build():\n    return 1\n",
        "pkg/seeds.py": "def seed_all(args):\n    torch.manual_seed(args.seed)\n",
        "main.py": "# loader\nimport pkg\nif __name__ == '__main__':\n    pkg.build()\n{}",
        "other.py": SEEDS.replace("lib", "pkg"),
    }
    for extra, answer in (("", False), ("    pkg.seed_all(1)\n", True)):
        texts = {**files, "main.py": files["main.py"].format(extra)}
        made = Tree(tmp_path / str(answer), texts)
        one = scope(made, "seed_all", "pkg/seeds.py")
        other = scope(made, "build", "pkg/data.py")
        assert launches(made.model).together(one, other) is answer


# what nothing uses

USER = "# loader\nimport lib\nif __name__ == '__main__':\n    lib.seed_all(1)\n"
USES = {
    "another part of its file": ("", True),
    "the program": ("main = lib.Job\n", False),
    "a lookup by name": ("main = getattr(lib, args.job)\n", False),
    "a lookup in what is no module": (
        "import torch\ngetattr(torch, args.type)\nvars(args)\n",
        True,
    ),
    "a name of its own": ("class Job:\n    pass\nmain = Job\n", True),
}


@pytest.mark.parametrize("use", USES)
def test_dead_parts(tmp_path: Path, use: str) -> None:
    text, answer = USES[use]
    made = tree(tmp_path, main=USER + text)
    assert launches(made.model).is_dead(scope(made, "run")) is answer


def test_what_only_dead_parts_use_is_dead(tmp_path: Path) -> None:
    for call, answer in (("", True), ("\nlib.outer()\n", False)):
        made = tree(
            tmp_path / str(answer),
            main=USER + call,
            lib=textwrap.dedent(LIBRARY)
            + "def outer():\n    return inner()\ndef inner():\n    return outer, 1\n",
        )
        assert launches(made.model).is_dead(scope(made, "inner")) is answer


def test_a_file_without_a_sampler_word_may_use_it(tmp_path: Path) -> None:
    answers = {
        "from lib import Job\nJob()\n": False,
        "from lib import Job as Work\nWork()\n": False,
        "from lib import Job\n": True,  # An import alone uses nothing,
        "from lib import Job\n__all__ = ['Job']\n": False,  # but may be for others.
        "from other import Job\nJob()\n": True,
        "from elsewhere import Job\nJob()\n": True,
    }
    for number, (text, answer) in enumerate(answers.items()):
        made = tree(tmp_path / str(number), main=USER, quiet=text, other="class Job: pass\n")
        assert launches(made.model).is_dead(scope(made, "run")) is answer


@pytest.mark.parametrize(
    ("file", "text", "answer"),
    [
        ("setup.py", "", False),
        ("pyproject.toml", "[project]\nname = 'lib'\n", False),
        ("pyproject.toml", "[tool.ruff]\n", True),
    ],
)
def test_what_can_be_installed_is_there_for_others(
    tmp_path: Path, file: str, text: str, answer: bool
) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    made = tree(tmp_path, main=USER)
    assert launches(made.model).is_dead(scope(made, "run")) is answer


@pytest.mark.parametrize("change", ["@register\nclass Job", "__all__ = ['Job']\nclass Job"])
def test_what_is_registered_or_listed_is_used(tmp_path: Path, change: str) -> None:
    library = textwrap.dedent(LIBRARY).replace("class Job", change)
    made = tree(tmp_path, lib=library, main=USER)
    assert launches(made.model).is_dead(scope(made, "run")) is False


def test_without_an_application_nothing_is_dead(tmp_path: Path) -> None:
    made = tree(tmp_path)
    assert launches(made.model).is_dead(scope(made, "run")) is False


def test_answers_do_not_keep_a_model_alive(tmp_path: Path) -> None:
    made = tree(tmp_path, main=USER)
    model: Model = made.model
    module = made.module("main.py")
    seeding(model, module, module.facts)
    launches(model).is_dead(scope(made, "run"))
    gone = weakref.ref(model)
    del made, model, module
    gc.collect()
    assert gone() is None
