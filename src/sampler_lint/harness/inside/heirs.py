"""Programs that a recorded one starts are recorded, too, whatever environment they are given."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .log import DIRECTORY, KEEP_ALL

#: What the recorder comes in through: its ``sitecustomize`` is found before all others.
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_site")

#: Where ``_posixsubprocess.fork_exec`` takes the environment, since Python 3.5.
_ENVIRONMENT = 5


def recorded(environment: Mapping[str, str], directory: str) -> dict[str, str]:
    """The environment with which a Python program records itself in ``directory``."""
    given = environment.get("PYTHONPATH")  # an empty part of it is the current folder
    rest = [path for path in given.split(os.pathsep) if path != SITE] if given else []
    return {**environment, "PYTHONPATH": os.pathsep.join([SITE, *rest]), DIRECTORY: directory}


def is_recorded(environment: Mapping[str, str]) -> bool:
    """Whether a Python program records itself in this environment."""
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    return DIRECTORY in environment and SITE in paths


def keep(directory: str) -> None:
    """Give the recorder to every program that this process starts, or becomes."""
    keep_all = {name: os.environ[name] for name in (KEEP_ALL,) if name in os.environ}

    def kept(environment: Mapping[Any, Any] | None) -> dict[str, str] | None:
        """What to pass on instead; None where nothing is to be changed."""
        given = os.environ if environment is None else environment
        plain = {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
        return None if is_recorded(plain) else {**keep_all, **recorded(plain, directory)}

    def around(module: Any, name: str, change: Callable[..., tuple[Any, ...]]) -> None:
        original = getattr(module, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def start(*args: Any, **kwargs: Any) -> Any:
            try:
                args = change(*args)
            except Exception:  # whatever the program passes there, it is answered as ever
                return original(*args, **kwargs)
            return original(*args, **kwargs)

        setattr(module, name, start)

    def third(path: Any, argv: Any, environment: Any, *rest: Any) -> tuple[Any, ...]:
        return (path, argv, kept(environment) or environment, *rest)

    def forked(*args: Any) -> tuple[Any, ...]:
        pairs = args[_ENVIRONMENT]
        given = None if pairs is None else dict(one.split(b"=", 1) for one in pairs)
        changed = kept(given)
        if changed is None:
            return args
        listed = [os.fsencode(f"{name}={value}") for name, value in changed.items()]
        return (*args[:_ENVIRONMENT], listed, *args[_ENVIRONMENT + 1 :])

    execv, execve = os.execv, os.execve

    def become(path: Any, argv: Any) -> None:
        changed = kept(None)
        execv(path, argv) if changed is None else execve(path, argv, changed)

    for name in ("execve", "posix_spawn", "posix_spawnp"):
        around(os, name, third)
    os.execv = functools.wraps(execv)(become)  # type: ignore[assignment]
    try:
        module = importlib.import_module("_posixsubprocess")
    except ImportError:  # no Unix
        return
    around(module, "fork_exec", forked)
    if "_fork_exec" in vars(sys.modules.get("subprocess", os)):
        sys.modules["subprocess"]._fork_exec = module.fork_exec  # type: ignore[attr-defined]
