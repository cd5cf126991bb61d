"""Run any command (``torchrun …``) with the recorder in every Python program of it.

The recorder comes in from outside, at the price of importing torch in each process; where ranks
are ours to fork, :mod:`sampler_lint.harness.world` is faster.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from sampler_lint.harness import HarnessError
from sampler_lint.harness.inside import supervise
from sampler_lint.harness.inside.heirs import recorded
from sampler_lint.harness.inside.log import DUMP_SIGNAL, stack_path
from sampler_lint.harness.runs import (
    RankRun,
    Run,
    logs_in,
    recorded_run,
    relative,
    waiting_place,
    waiting_within,
)

_LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".hg", "__pycache__", ".venv", "venv", "node_modules", ".tox", ".nox", "*.pyc"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache"),
)
#: What the names of our temporary folders begin with.
_TEMPORARY = "sampler-lint-"
#: Larger files are linked if nobody may write to them.
LINKED_ABOVE = 10 << 20


def run_command(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = 120.0,
    env: Mapping[str, str] | None = None,
) -> tuple[int, Run]:
    """Run a command such as ``torchrun …`` and record every rank in it from outside.

    The recorder comes in through ``sitecustomize`` on ``PYTHONPATH``, so Python with ``-I``, ``-E``
    or ``-S``, or from a shell with another path, leaves no record. The ranks are those that did.

    Returns:
        The command's exit status and what was recorded.

    Raises:
        HarnessError: the command cannot be started.
    """
    root = os.path.abspath(cwd or os.curdir)
    with tempfile.TemporaryDirectory(prefix="sampler-lint-") as directory:
        environment = recorded_environment(directory, {**os.environ, **(env or {})})
        started = time.monotonic()
        with _spawned(argv, root, environment) as child:

            def dump(_: supervise.Child) -> None:
                dump_stacks(directory, {child.pid, *supervise.descendants(child.pid)}, wait=0)

            supervise.watch([child], timeout, dump=dump)
        run = recorded_run(logs_in(directory), root, argv)
        run.duration = time.monotonic() - started
        for rank in run.ranks:
            _judge_end(rank, child, directory, root)
    return child.status if child.status is not None else 1, run


def supervised(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str], timeout: float
) -> supervise.Child:
    """Run a command to its end, or for ``timeout`` seconds; what became of it.

    Raises:
        HarnessError: the command cannot be started.
    """
    with _spawned(argv, cwd, environment) as child:
        supervise.watch([child], timeout)
    return child


@contextlib.contextmanager
def _spawned(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str]
) -> Iterator[supervise.Child]:
    """The command as a supervised child, in a session of its own; nothing of it stays."""
    with supervise.adopting() as others:
        try:
            with _piped(argv, cwd, environment) as child:
                yield child
        finally:
            supervise.kill_orphans(others)


@contextlib.contextmanager
def _piped(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str]
) -> Iterator[supervise.Child]:
    out, err = os.pipe(), os.pipe()
    try:
        process = subprocess.Popen(
            startable(argv, environment),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out[1],
            stderr=err[1],
            start_new_session=True,
        )
    except OSError as error:
        os.close(out[0])
        os.close(err[0])
        raise HarnessError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
    finally:
        os.close(out[1])
        os.close(err[1])
    child = supervise.Child(process.pid, supervise.Sink(out[0]), supervise.Sink(err[0]))
    try:
        yield child
    finally:
        process.returncode = child.status if child.status is not None else -signal.SIGKILL
        os.close(out[0])
        os.close(err[0])


def startable(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command, its program beside this interpreter where ``PATH`` has none of that name.

    So ``.venv/bin/sampler-lint trace -- torchrun …`` finds the ``torchrun`` of its environment,
    activated or not.
    """
    program, *rest = argv
    path = environment.get("PATH", os.defpath)
    if not os.path.dirname(program) and shutil.which(program, path=path) is None:
        program = shutil.which(program, path=os.path.dirname(sys.executable)) or program
    return [program, *rest]


def recorded_environment(directory: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that makes a Python program, and those it starts, record themselves."""
    return recorded(environment, directory)


def dump_stacks(directory: str, pids: Collection[int], *, wait: float = supervise.DUMP) -> set[int]:
    """Make those of the processes that are recorded write down where they are; which they were.

    Others would die of the signal.
    """
    names = glob.glob(stack_path(glob.escape(directory), "*"))
    asked = {int(name.split(".")[-2]) for name in names} & set(pids)
    for pid in asked:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, DUMP_SIGNAL)
    if names:
        time.sleep(wait)
    return asked


def note_wait(rank: RankRun, pid: int, directory: str, root: str) -> None:
    """Note where the rank waited when :func:`dump_stacks` asked its process."""
    stack = Path(stack_path(directory, pid))
    if stack.exists():
        text = stack.read_text("utf-8", "replace")
        rank.place, rank.within = waiting_place(text, root), waiting_within(text, root)


def _judge_end(rank: RankRun, child: supervise.Child, directory: str, root: str) -> None:
    """Note what became of a rank of the command."""
    rank.stdout, rank.stderr = child.out.text, child.err.text
    told = re.search(rf"exitcode *: ([1-9]\d*) \(pid: {rank.log.pid}\)", child.err.text)
    if came_to_end(rank, root):
        if told and rank.outcome == "finished":  # torchrun saw it leave by sys.exit
            rank.outcome, rank.reason = "died", f"exit status {told[1]}"
    elif child.hung:
        hung(rank, rank.log.pid, directory, root)
    elif child.status != 0:
        rank.outcome, rank.reason = "died", f"the command ended with status {child.status}"


def came_to_end(rank: RankRun, root: str) -> bool:
    """Whether the rank's program came to its end; the exception, if one ended it, is noted.

    The exit status of a command says less: its launcher has one for all ranks, and torch 2.13
    aborts one short gloo program in seven while the interpreter goes down.
    """
    end = rank.log.exit
    if end is not None and end["error"] is not None:
        rank.outcome, rank.reason = "died", end["error"]
        rank.within = [(path, line) for path, line in end["within"]]
        if end["path"]:
            rank.place = f"{relative(end['path'], root)}:{end['line']}"
    return end is not None


def hung(rank: RankRun, pid: int, directory: str, root: str) -> None:
    """Note that the rank was still at work when time was up, and where."""
    rank.outcome, rank.reason = "hung", "time was up"
    note_wait(rank, pid, directory, root)


def copy_tree(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy what a run of the command needs of a folder; links in it stay links."""
    shutil.copytree(source, target, symlinks=True, ignore=_left_out, copy_function=copied)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What is not copied: also the copies themselves, where they lie below what is copied."""
    left = set(_LEFT_OUT(folder, names))
    if os.path.realpath(folder) == os.path.realpath(tempfile.gettempdir()):
        left.update(name for name in names if name.startswith(_TEMPORARY))
    return left


def copied(source: str, target: str) -> str:
    """Copy a file; link a large one that is read-only, and pass over FIFOs and such.

    A file that may be written is never linked: the program would write its checkpoint through the
    link into the user's.
    """
    if not os.path.isfile(source):
        return target
    if os.path.getsize(source) > LINKED_ABOVE and not os.access(source, os.W_OK):
        os.symlink(source, target)
        return target
    return str(shutil.copy2(source, target))
