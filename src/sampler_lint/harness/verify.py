"""The proof of a fix: the program breaks its invariant before, and keeps it after.

Both, or the fix is not proved: a check that was never seen to fail proves nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sampler_lint.harness import HarnessError, invariants
from sampler_lint.harness.invariants import Invariant, Verdict
from sampler_lint.harness.runs import Run
from sampler_lint.harness.world import TIMEOUT, World

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The script of a fixture that is run.
SCRIPT = "train.py"

#: Optional settings of a fixture's proof.
SETTINGS = "proof.toml"

_TYPES: dict[str, tuple[type, ...]] = {
    "invariant": (str,),
    "world_size": (int,),
    "args": (list,),
    "timeout": (int, float),
}


class FixtureError(HarnessError):
    """A fixture, or the folder they should be in, is not as it has to be."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """A folder ``<CODE>/<case>`` with a program that has the bug in ``bad/``."""

    folder: Path
    code: str
    invariant: Invariant
    world_size: int = 2
    args: tuple[str, ...] = ()
    timeout: float = TIMEOUT

    @property
    def name(self) -> str:
        """``<CODE>/<case>``."""
        return f"{self.code}/{self.folder.name}"

    @property
    def has_fix(self) -> bool:
        """Whether the rule fixes the program; some findings come without a fix."""
        return (self.folder / "fixed").is_dir()

    @property
    def has_twin(self) -> bool:
        """Whether there is a program that does the same and is right."""
        return (self.folder / "good" / SCRIPT).is_file()


@dataclass(frozen=True, slots=True)
class Proof:
    """What a fixture's program did before and after its fix."""

    fixture: str
    code: str
    invariant: str
    before: Verdict
    after: Verdict
    """Of the fixed program; of the right twin when the rule offers no fix."""
    twin: Verdict | None = None
    """Of the right twin, if there is one."""

    @property
    def proved(self) -> bool:
        """Broken before, kept after, and not broken by the right twin."""
        cleared = self.twin is None or not self.twin.broken
        return self.before.broken and self.after.holds and cleared


def find_fixtures(paths: Sequence[str | os.PathLike[str]]) -> list[Fixture]:
    """The fixtures at and below ``paths``, by name.

    Raises:
        FixtureError: there is none, or one is not as it has to be.
    """
    folders: set[Path] = set()
    for path in map(Path, paths):
        if not path.is_dir():
            raise FixtureError(f"{path}: no such folder")
        below: set[Path] = set()
        for folder, subfolders, _ in os.walk(path):
            if "bad" in subfolders:
                below.add(Path(folder).resolve())
                subfolders.clear()
        if not below:
            raise FixtureError(
                f"{path}: no fixtures here (a fixture is a folder with bad/{SCRIPT})"
            )
        folders |= below
    return sorted(map(read_fixture, folders), key=lambda fixture: fixture.name)


def read_fixture(folder: Path) -> Fixture:
    """The fixture in ``folder``, with the settings of its ``proof.toml``.

    Raises:
        FixtureError: it has no script, belongs to no rule, or its settings are wrong.
    """
    code = folder.parent.name
    if not (folder / "bad" / SCRIPT).is_file():
        raise FixtureError(f"{folder}: bad/{SCRIPT} is missing")
    settings = _settings(folder / SETTINGS)
    name = settings.pop("invariant", None) or _rule_invariant(code, folder)
    try:
        invariant = invariants.get(name)
    except invariants.UnknownInvariantError as error:
        raise FixtureError(f"{folder}: {error}") from error
    settings["args"] = tuple(settings.get("args", ()))
    return Fixture(folder, code, invariant, **settings)


def _settings(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        settings: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise FixtureError(f"{path}: {error}") from error
    for key, value in settings.items():
        if key not in _TYPES:
            raise FixtureError(f"{path}: unknown key {key!r}; known are {', '.join(_TYPES)}")
        if isinstance(value, bool) or not isinstance(value, _TYPES[key]):
            raise FixtureError(f"{path}: {key} cannot be {value!r}")
        if isinstance(value, list) and not all(isinstance(one, str) for one in value):
            raise FixtureError(f"{path}: {key} is a list of strings")
    return settings


def _rule_invariant(code: str, folder: Path) -> str:
    from sampler_lint.rules import all_rules

    for rule in all_rules():
        if rule.code == code:
            if not rule.invariant:
                raise FixtureError(
                    f"{folder}: rule {code} names no invariant; name one in {SETTINGS}, such as "
                    f'invariant = "reshuffles"'
                )
            return rule.invariant
    raise FixtureError(
        f"{folder}: there is no rule {code}; it belongs in a folder named after a code, as SMP101"
    )


def verify_fixtures(
    paths: Sequence[str | os.PathLike[str]],
    *,
    jobs: int = 1,
    world_size: int | None = None,
    world: World | None = None,
    progress: Callable[[str, int], None] = lambda name, total: None,
) -> list[Proof]:
    """Prove the fix of every fixture at and below ``paths``; the proofs by fixture name.

    ``jobs`` programs run at a time; ``world_size`` overrides the fixtures' own; ``world`` may
    be at work already. Unsafe fixes are applied, too. ``progress`` hears of each fixture
    whose runs are waited for, and how many there are.

    Raises:
        FixtureError: there is no fixture, or one is not as it has to be.
        TorchMissingError: torch is not installed.
        HarnessError: torch cannot be imported.
    """
    fixtures = find_fixtures(paths)
    with contextlib.ExitStack() as stack:
        pool = ThreadPoolExecutor(max(1, jobs))
        stack.callback(pool.shutdown)
        ranks = world or stack.enter_context(World())
        # Before the world is closed, or what still waits would open it again.
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)

        def judge(program: Path, fixture: Fixture) -> Verdict:
            return fixture.invariant.judge(_run(ranks, program, fixture, world_size))

        pending: list[tuple[Fixture, list[Future[Verdict]]]] = []
        for fixture in fixtures:
            # The fixes are made here, one after the other, while earlier programs run.
            futures: dict[tuple[tuple[str, bytes], ...], Future[Verdict]] = {}
            in_order = []
            for program in stack.enter_context(prepared(fixture)):
                content = content_of(program)  # the right twin may be what the fix makes
                if content not in futures:
                    futures[content] = pool.submit(judge, program, fixture)
                in_order.append(futures[content])
            pending.append((fixture, in_order))
        proofs = []
        for fixture, in_order in pending:
            progress(fixture.name, len(pending))
            proofs.append(_proof(fixture, [future.result() for future in in_order]))
        return proofs


def run_fixture(
    fixture: Fixture, world: World, *, world_size: int | None = None
) -> list[list[Run]]:
    """The runs of the fixture's programs, in the order of :func:`prepared`."""
    with prepared(fixture) as programs:
        return [_run(world, program, fixture, world_size) for program in programs]


def judged(fixture: Fixture, programs: Sequence[Sequence[Run]]) -> Proof:
    """The proof that the runs of a fixture's programs make."""
    return _proof(fixture, [fixture.invariant.judge(runs) for runs in programs])


def _proof(fixture: Fixture, verdicts: Sequence[Verdict]) -> Proof:
    before, rest = verdicts[0], list(verdicts[1:])
    after = rest.pop(0) if fixture.has_fix else None
    twin = rest.pop(0) if fixture.has_twin else None
    if after is None:
        after = twin or Verdict(False, "no evidence: neither a fix nor a right twin", False)
        after = replace(after, evidence=f"no fix is offered; the right twin: {after.evidence}")
    return Proof(fixture.name, fixture.code, fixture.invariant.name, before, after, twin)


def _run(world: World, program: Path, fixture: Fixture, world_size: int | None) -> list[Run]:
    """Run the program in folder ``program`` as often as the fixture's invariant asks."""
    return [
        world.run(
            program / SCRIPT,
            [*fixture.args, *args],
            world_size=world_size or fixture.world_size,
            timeout=fixture.timeout,
        )
        for args in fixture.invariant.runs
    ]


@contextlib.contextmanager
def prepared(fixture: Fixture) -> Iterator[list[Path]]:
    """Copies of the fixture's programs to run: as it is, with our fix, and the right twin.

    The second is there when the rule has a fix, the third when the fixture has one.
    """
    from sampler_lint import engine

    with tempfile.TemporaryDirectory(prefix="sampler-lint-") as temporary:
        before = Path(temporary, "before")
        _copy(fixture.folder / "bad", before)
        programs = [before]
        if fixture.has_fix:
            after = Path(temporary, "after")
            _copy(fixture.folder / "bad", after)
            engine.fix([str(after)], engine.Options(select=(fixture.code,)), unsafe=True)
            programs.append(after)
        if fixture.has_twin:
            twin = Path(temporary, "twin")
            _copy(fixture.folder / "good", twin)
            programs.append(twin)
        yield programs


def content_of(folder: Path) -> tuple[tuple[str, bytes], ...]:
    """All that is in a program's folder: equal for programs that are the same."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple((str(path.relative_to(folder)), path.read_bytes()) for path in files)


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def render_table(proofs: Sequence[Proof]) -> str:
    """The proofs for a person: one block a fixture, and a last line with the count."""
    lines = []
    for proof in proofs:
        mark = "proved" if proof.proved else "NOT PROVED"
        lines.append(f"{proof.fixture}  {proof.invariant}  {mark}")
        lines.append(f"  before: {_word(proof.before)} - {proof.before.evidence}")
        lines.append(f"  after:  {_word(proof.after)} - {proof.after.evidence}")
        if proof.twin is not None and proof.twin.broken:
            lines.append(f"  right twin: {_word(proof.twin)} - {proof.twin.evidence}")
    proved = sum(proof.proved for proof in proofs)
    lines.append(f"{proved} of {len(proofs)} fixtures proved.")
    return "\n".join(lines) + "\n"


def _word(verdict: Verdict) -> str:
    if verdict.holds:
        return "holds"
    return "broken" if verdict.broken else "unknown"


def to_json(proofs: Sequence[Proof]) -> str:
    """The proofs as a JSON array."""

    def plain(verdict: Verdict) -> dict[str, Any]:
        return {"holds": verdict.holds, "evidence": verdict.evidence}

    return json.dumps(
        [
            {
                "fixture": proof.fixture,
                "code": proof.code,
                "invariant": proof.invariant,
                "before": plain(proof.before),
                "after": plain(proof.after),
                "proved": proof.proved,
            }
            for proof in proofs
        ],
        indent=2,
        ensure_ascii=False,
    )
