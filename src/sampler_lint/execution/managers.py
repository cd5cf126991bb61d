"""What ``with`` statements enter and leave: things that hold from the one to the other."""

from __future__ import annotations

import builtins
from collections.abc import Generator
from functools import partial
from typing import Any

from sampler_lint.execution.budget import Cost, Table
from sampler_lint.execution.errors import CannotTellError, RaisedError
from sampler_lint.execution.standard import DOTTED
from sampler_lint.execution.values import UNKNOWN, External, Instance, Native, Run

#: Yields once, what the statement binds; its body is run meanwhile.
Steps = Generator[Any, None, Any]
#: What of the library has an effect as a context manager that is known.
MANAGERS = Table()


class Manager:
    """A context manager, as a generator that yields where the body is run."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def enter(self) -> Any:
        """What the statement binds.

        Raises:
            RaisedError: it yields nothing, or stops with an error of its own.
        """
        for held in self._steps:
            return held
        raise RaisedError("RuntimeError")

    def leave(self) -> None:
        """Do what is done when the body has come to its end."""
        for _ in self._steps:
            raise RaisedError("RuntimeError")

    def swallows(self, error: RaisedError) -> bool:
        """Do what is done when the body stops with an error; whether that is the end of it.

        Raises:
            RaisedError: another error, or the same again.
        """
        try:
            self._steps.throw(error)
        except StopIteration:
            return True
        raise RaisedError("RuntimeError")


def manager_of(run: Run, value: Any) -> Manager | None:
    """What a value does as a context manager; None if that is not known."""
    if isinstance(value, Instance) and run.method(value, "__enter__") is not None:
        return Manager(_entered(run, value))
    return value if isinstance(value, Manager) else None


def _entered(run: Run, owner: Instance) -> Steps:
    """An object of a class with ``__enter__``."""
    enter, leave = run.method(owner, "__enter__"), run.method(owner, "__exit__")
    held = run.call(enter, [], {})
    try:
        yield held
    except RaisedError as error:
        given = [External(f"builtins.{error.kind}"), UNKNOWN, UNKNOWN]
        if leave is None or not run.true(run.call(leave, given, {})):
            raise
    else:
        if leave is not None:
            run.call(leave, [None, None, None], {})


def _forked(run: Run) -> Steps:
    """torch's own generator is afterwards what it was before."""
    stream = run.chance.of_process("torch")
    before = stream.kept()
    try:
        yield None
    finally:
        stream.restore(before)


def _suppressing(kinds: tuple[Any, ...]) -> Steps:
    """Errors of some kinds, or kinds of those, end the body and no more."""
    try:
        yield None
    except RaisedError as error:
        raised = getattr(builtins, error.kind, Exception)
        names = {f"builtins.{base.__name__}" for base in raised.__mro__}
        if not any(isinstance(kind, External) and kind.dotted in names for kind in kinds):
            raise


def _made_by(run: Run, function: Any, *args: Any, **keywords: Any) -> Manager:
    """What a function under ``contextlib.contextmanager`` gives.

    Raises:
        CannotTellError: it is no generator of the tree, into which an error can be thrown.
    """
    steps = run.call(function, [*args], keywords)
    if not isinstance(steps, Generator):
        raise CannotTellError("a context manager")
    return Manager(steps)


DOTTED(Cost.FLAT, "contextlib.contextmanager")(
    lambda run, function: Native(partial(_made_by, run, function))
)
MANAGERS(Cost.FLAT, "torch.random.fork_rng")(lambda run, *args, **kw: Manager(_forked(run)))
MANAGERS(Cost.FLAT, "contextlib.suppress")(lambda run, *kinds: Manager(_suppressing(kinds)))
DOTTED.update(MANAGERS)


def is_manager(callee: Any) -> bool:
    """Whether what a function of the library gives has an effect that is known."""
    return isinstance(callee, External) and callee.dotted in MANAGERS
