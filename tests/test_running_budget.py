"""What trying a class may cost: charged before it is done, on every way to do it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

import running_attacks
from sampler_lint.domain import tried
from sampler_lint.domain.model import Model
from sampler_lint.execution import budget
from sampler_lint.execution.budget import BUDGET, Op
from sampler_lint.execution.errors import OverBudgetError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.explain import explain
from sampler_lint.workspace.project import Project

#: Only a fault of the budget takes so long, or the memory that the child is limited to.
_SECONDS = 600


def _outcomes(mode: str, folder: Path) -> dict[str, list]:
    """What each attack came to; the last is missing when the child died of it."""
    command = [sys.executable, running_attacks.__file__, mode, str(folder)]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        ).stdout
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode()
    lines = [json.loads(line) for line in said.splitlines()]
    return dict(zip(lines[::2], lines[1::2], strict=False))


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    return _once("classes", tmp_path_factory)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    return _once("library", tmp_path_factory)


def _once(mode: str, factory: pytest.TempPathFactory) -> dict[str, list]:
    """The outcomes, found by one of the processes that share out the tests."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return _outcomes(mode, factory.mktemp(mode))
    found = base.parent / f"{mode}.json"
    with FileLock(f"{found}.lock"):
        if not found.exists():
            found.write_text(json.dumps(_outcomes(mode, factory.mktemp(mode))))
    return json.loads(found.read_text())


@pytest.mark.parametrize("name", running_attacks.attacks())
def test_each_attack_ends_within_the_budget(classes: dict[str, list], name: str) -> None:
    usual, unknown, steps = classes[name]
    assert bool(usual) != bool(unknown)
    assert steps <= running_attacks.STEPS_A_CLASS


@pytest.mark.parametrize("name", running_attacks.library_tables())
def test_each_function_of_the_library_is_charged(functions: dict[str, list], name: str) -> None:
    peak, _refused, calls = functions[name]
    assert calls > 20
    assert peak < 2 * running_attacks.FEW_BYTES


def test_every_function_of_the_library_states_its_cost() -> None:
    assert all(isinstance(op, Op) for op in running_attacks.library_tables().values())


def model_of(tmp_path: Path, body: str) -> Model:
    path = tmp_path / "samplers.py"
    path.write_text(f"{running_attacks.HEAD}\nclass S(Sampler):\n{body}")
    return Model(Project(str(tmp_path), {str(path): "samplers.py"}))


def test_the_same_class_takes_the_same_steps(tmp_path: Path) -> None:
    body = "    def __iter__(self): yield from sorted(range(9))\n    def __len__(self): return 9\n"
    counts = set()
    for _ in range(2):
        model = model_of(tmp_path, body)
        assert model.trials(next(cls for _, cls in model.classes())).usual
        counts.add(BUDGET.steps)
    assert len(counts) == 1


def test_ranks_that_can_do_nothing_else_are_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    restart = Interpreter.restart

    def noted(self: Interpreter, world: int, rank: int) -> None:
        runs.append(rank)
        restart(self, world, rank)

    monkeypatch.setattr(Interpreter, "restart", noted)
    for start, ranks in (("0", {0}), ("torch.distributed.get_rank()", set(range(8)))):
        body = f"    def __iter__(self): return iter(range({start}, 9))\n"
        model = model_of(tmp_path, body)
        runs.clear()
        turns = model.trials(next(cls for _, cls in model.classes())).usual[0].turns
        second = range(9) if start == "0" else range(1, 9)
        assert [(turn.rank, turn.indices) for turn in turns] == [
            (0, tuple(range(9))),
            (1, tuple(second)),
        ]
        assert set(runs) == ranks


def test_a_class_that_takes_much_in_many_worlds_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
    def __iter__(self):
        for i in range(3000):
            pass
        yield 0
"""
    model = model_of(tmp_path, body)
    cls = next(cls for _, cls in model.classes())
    assert model.trials(cls).usual
    monkeypatch.setattr(budget, "STEPS_A_CLASS", 20_000)
    monkeypatch.setattr(tried, "_BY_TEXT", {})
    model = model_of(tmp_path, body)
    trials = model.trials(next(cls for _, cls in model.classes()))
    assert (trials.usual, trials.tiny) == ((), ())
    assert trials.unknown == "it takes more than 20,000 steps in all"


def test_a_batch_that_holds_itself_is_looked_through_once(tmp_path: Path) -> None:
    body = """
    def __iter__(self):
        batch = [0, 1]
        batch.append(batch)
        yield batch
"""
    model = model_of(tmp_path, body)
    assert model.trials(next(cls for _, cls in model.classes())).usual  # and in bounded memory


def test_what_is_over_stays_over() -> None:
    BUDGET.open()
    with pytest.raises(OverBudgetError, match="32 MB"):
        BUDGET.collect(range(10**6))
    with pytest.raises(OverBudgetError):
        BUDGET.step()
    BUDGET.restart()
    BUDGET.step()
    assert BUDGET.steps <= budget.STEPS_A_RUN + 1


def test_what_runs_leave_in_circles_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    collected = []
    monkeypatch.setattr(budget.gc, "collect", collected.append)
    BUDGET.open()
    for _ in range(4):
        BUDGET.items(200_000)
        BUDGET.restart()
    assert collected == [0]


def test_explain_says_why_a_class_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").touch()
    model_of(tmp_path, "    def __iter__(self):\n        return iter([0] * 10**9)\n")
    monkeypatch.chdir(tmp_path)
    row = next(
        row
        for row, line in enumerate(Path("samplers.py").read_text().splitlines(), 1)
        if line.startswith("class S")
    )
    why = "  not tried: it takes more than 32 MB (class S)"
    assert why in explain("samplers.py", row)
    assert why in explain("samplers.py", row + 2)
    assert why not in explain("samplers.py", 2)
