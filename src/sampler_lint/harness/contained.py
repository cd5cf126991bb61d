"""Examine a class by its name in a process of its own, which may do whatever it likes.

The process gets a deadline, a limit of memory and pipes that keep only the ends of what it
prints; it is reaped with all that it started. It says which input it is about to try before it
tries it, so that an input which hangs, kills or ends the process is named.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import importlib.util
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sampler_lint.harness import HarnessError, ranks
from sampler_lint.harness.command import supervised
from sampler_lint.harness.construct import CannotGuessError, takes
from sampler_lint.harness.contract import CannotBuildError, Judgement, Report, examine
from sampler_lint.harness.inside.supervise import TAIL
from sampler_lint.harness.ranks import Setting

#: Seconds that the process may take beyond its own time limit, for imports and the last input.
MARGIN = 60.0

#: Seconds that one pass over the sampler may sleep.
WAKE = 10.0


class TargetError(HarnessError):
    """The class cannot be found, or cannot be built; the message says what to do."""


class UnbuildableError(TargetError):
    """The class was found, and its constructor raises on every input."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to examine, and on what."""

    target: str
    """``package.module:Class`` or ``path/to/file.py:Class``."""
    kw: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of :func:`sampler_lint.harness.contract.examine` that fit JSON."""
    paths: Sequence[str] = ()
    """Folders to import from, before all others."""
    sampler_only: bool = False
    """Refuse a class that cannot be iterated."""


def examine_class(
    request: Request,
    *,
    timeout: float,
    cwd: str | os.PathLike[str] | None = None,
    python: str | None = None,
) -> Report:
    """The report on a class.

    A process that did not live to report counts as a broken promise called ``ends``.

    Raises:
        TargetError: the class cannot be imported or built.
        HarnessError: the process cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="sampler-lint-") as folder:
        asked, answers = Path(folder, "request.json"), Path(folder, "answers.jsonl")
        plain = {**dataclasses.asdict(request), "kw": repr(dict(request.kw))}
        asked.write_text(json.dumps(plain))
        answers.touch()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        command = [
            *(python or sys.executable, "-c", _BOOT, str(Path(__file__).parents[2])),
            *(str(asked), str(answers), str(timeout)),
        ]
        root = os.path.abspath(cwd or os.curdir)
        child = supervised(command, root, environment, timeout + MARGIN)
        said = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
    settings = [Setting(*one["setting"]) for one in said if "setting" in one]
    if len(settings) < len(said):
        return report_in(said[-1])
    if child.hung:
        what = f"was still busy after {timeout + MARGIN:.0f} s"
    elif child.status is not None and child.status < 0:
        what = f"was killed by signal {signal.Signals(-child.status).name}"
    else:
        what = f"ended with status {child.status}"
    last = child.err.text[-TAIL:].strip().splitlines()
    because = f": {last[-1]}" if last else ""
    if not settings:
        raise TargetError(
            f"{request.target}: the process {what} while it imported the class{because}"
        )
    where = f"n={settings[-1].size}, world size {settings[-1].world_size}"
    reason = f"{where}: the process {what}{because}"
    return Report(
        request.target.rpartition(":")[2],
        {"ends": Judgement("ends", "broken", reason, settings[-1])},
        notes=["nothing else could be judged"],
        experiments=len(settings),
        seconds=timeout,
    )


def report_in(answer: Mapping[str, Any]) -> Report:
    """The report in what :func:`examined` said.

    Raises:
        TargetError: it said why there is none.
    """
    if "error" in answer:
        raise (UnbuildableError if answer["unbuildable"] else TargetError)(answer["error"])
    return Report.from_dict(answer["report"])


#: The child's program: its own folder must not come before the user's modules.
_BOOT = (
    "import sys; root = sys.argv.pop(1); sys.path.append(root); "
    "from sampler_lint.harness import contained; contained.child(*sys.argv[1:])"
)


def child(asked: str, answers: str, timeout: str) -> None:
    """Examine what the request names and append to the answers; in the child process."""
    _limit_memory()
    plain = json.loads(Path(asked).read_text("utf-8"))
    descriptor = os.open(answers, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def say(**answer: Any) -> None:
        os.write(descriptor, json.dumps(answer).encode("ascii") + b"\n")

    def progress(setting: Setting) -> None:
        say(setting=dataclasses.astuple(setting))

    ranks.ASLEEP = WAKE
    request = Request(**{**plain, "kw": ast.literal_eval(plain["kw"])})
    say(**examined(request, float(timeout), progress))
    os._exit(0)  # threads and exit handlers of what was imported are of no more use


def examined(
    request: Request,
    time_limit: float,
    progress: Callable[[Setting], None] = lambda setting: None,
) -> dict[str, Any]:
    """Examine in this process what a request names: a ``report``, or an ``error``."""
    target, kw = request.target, request.kw
    sys.path[:0] = request.paths
    try:
        factory = find(target)
        if request.sampler_only and not hasattr(factory, "__iter__"):
            raise TargetError(f"{target.rpartition(':')[2]} is no sampler")
        if request.sampler_only:  # the values are for all samplers of a project
            kw = {name: value for name, value in kw.items() if takes(factory, name)}
        report = examine(
            factory, kw=kw, progress=progress, time_limit=time_limit, **request.options
        )
    except (HarnessError, CannotGuessError, TypeError, ValueError) as error:
        text = str(error) if isinstance(error, TargetError) else f"{target}: {error}"
        return {"error": text, "unbuildable": isinstance(error, CannotBuildError)}
    return {"report": report.to_dict()}


def _limit_memory() -> None:
    from sampler_lint.harness.inside.fork_server import MEMORY

    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def find(target: str) -> Any:
    """The class or function that ``module:Class`` or ``file.py:Class`` names.

    Raises:
        TargetError: there is none, or importing its module raised.
    """
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise TargetError(f"{target}: write package.module:Class or path/to/file.py:Class")
    try:
        found = _file(place) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise TargetError(f"{target}: importing {place} raised {text}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            known = _classes(found)
            hint = f"; it has {', '.join(known)}" if known else ""
            raise TargetError(f"{target}: {place} has no {name}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise TargetError(f"{target}: {name} is neither a class nor a function")
    return found


def _file(place: str) -> Any:
    path = os.path.abspath(place)
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise FileNotFoundError(f"{place}: no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _classes(module: Any) -> Sequence[str]:
    """The classes that look like samplers, for a hint."""
    return [
        name
        for name, one in vars(module).items()
        if isinstance(one, type) and hasattr(one, "__iter__") and "ampler" in name
    ][:8]
