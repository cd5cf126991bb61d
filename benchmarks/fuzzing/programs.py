"""Where the fuzzer's programs come from."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sampler_lint.source import is_candidate

REPOSITORY = Path(__file__).resolve().parents[2]

#: Contents by path, with ``/`` between folders.
Tree = dict[str, bytes]

_HEAD = "from torch.utils.data import DataLoader, DistributedSampler, Sampler\n"


def own() -> list[Tree]:
    """The fixtures' programs and the tests' snippets: all are about samplers."""
    parts = [path for path in sorted(REPOSITORY.glob("fixtures/*/*/*")) if [*path.rglob("*.py")]]
    trees = [
        {path.relative_to(part).as_posix(): path.read_bytes() for path in part.rglob("*.py")}
        for part in parts
    ]
    for path in sorted((REPOSITORY / "tests" / "snippets").glob("*.txt")):
        trees += _snippets(path.read_text("utf-8"))
    return trees


def _snippets(text: str) -> Iterator[Tree]:
    """The programs of a file of snippets; how they stand there is told in ``test_snippets.py``."""
    header, *parts = re.split(r"^==== .*\n", text, flags=re.MULTILINE)
    for part in parts:
        body = part.partition("----\n")[0].strip("\n") + "\n"
        main, *others = re.split(r"^#### (?=.)", body, flags=re.MULTILINE)
        named = dict(other.partition("\n")[::2] for other in others)
        yield {name: code.encode() for name, code in {"main.py": header + main, **named}.items()}


def installed() -> list[Tree]:
    """Files of installed packages that speak of samplers."""
    folders = [Path(entry) for entry in sys.path if Path(entry).name == "site-packages"]
    return [tree for folder in folders for tree in below(folder)]


def below(folder: Path) -> Iterator[Tree]:
    """Files that speak of samplers, each with its neighbours that do."""
    by_folder: dict[Path, Tree] = {}
    for path in sorted(folder.rglob("*.py")):
        if path.is_file() and path.stat().st_size < 60_000 and is_candidate(path.read_bytes()):
            by_folder.setdefault(path.parent, {})[path.name] = path.read_bytes()
    for tree in by_folder.values():
        names = sorted(tree)
        for first in range(0, len(names), 3):
            yield {name: tree[name] for name in names[first : first + 3]}


def random_programs(seed: int, count: int) -> list[Tree]:
    """Random syntax from hypothesmith's grammar, below imports that make it matter."""
    import libcst._nodes.whitespace  # noqa: F401  hypothesmith forgets it
    import hypothesmith  # isort: skip
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded

    made: list[str] = []

    @seeded(seed)
    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(hypothesmith.from_node())
    def collect(code: str) -> None:
        made.append(code)

    collect()
    return [{"made.py": (_HEAD + code).encode("utf-8", "surrogatepass")} for code in made]
