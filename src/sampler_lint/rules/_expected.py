"""Whether code expects an error: what is caught, or asked for by a test, is no finding."""

from __future__ import annotations

import builtins
from itertools import chain

from sampler_lint.domain.concepts import awaits_error
from sampler_lint.domain.model import Model
from sampler_lint.remembered import remembered
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Expr,
    Function,
    Lambda,
    ModuleFacts,
    Name,
    Scope,
    Seq,
    Stmt,
    Try,
    With,
    last_name,
)


def is_expected(
    model: Model,
    node: Name | Attr | Call,
    error: type[Exception] | None = None,
    *,
    by_name: bool = False,
) -> bool:
    """Whether something around a node expects it to raise ``error``, or anything if none is given.

    A handler of it (or of a base of it), ``pytest.raises(…)``, ``self.assertRaises(…)`` and
    ``contextlib.suppress(…)``, around the node or around every call of its function or told to
    run it, and the marks by which pytest and unittest let a whole test fail. A type that is not
    Python's own may be a base of it, for all we see. What takes every error counts around the node
    itself only, and not if the error has to be expected ``by_name``; so does any handler where no
    error is given.
    """
    return _is_expected(model, node, error, frozenset(), by_name=by_name)


def _is_expected(
    model: Model,
    node: Name | Attr | Call,
    error: type[Exception] | None,
    within: frozenset[Scope],
    *,
    by_name: bool,
) -> bool:
    stmt: Stmt | None = node.stmt
    if stmt is None:
        return False
    for around in _guards(model, stmt):
        if isinstance(around, With):
            # A test expects it of the block's last statement: after another none would run.
            if any(_takes(item, error) for item, _ in around.items) and (
                around is stmt or around.body[-1] is stmt or around.body[-1].encloses(stmt)
            ):
                return True
        elif any(inner is stmt or inner.encloses(stmt) for inner in around.body) and any(
            not ((within or by_name) and (error is None or _is_catch_all(kind)))
            and (kind is None or _covers(kind, error))
            for kind, _ in around.handlers
        ):
            return True
    function = node.scope
    if not isinstance(function, Function) or function in within:
        return False
    if any(last_name(getattr(d, "func", d)) in _TO_FAIL for d in function.decorators):
        return True
    if any(
        _takes(call, error) and _hands_over(call, function)
        for call in _expecting(model, function.module)
    ):
        return True
    calls = model.flow.callers(function)
    within |= {function}
    return bool(calls) and all(
        _is_expected(model, call, error, within, by_name=by_name) for call in calls
    )


def _guards(model: Model, stmt: Stmt) -> tuple[With | Try, ...]:
    """The statements that an error may end in, at and around one."""
    known: dict[Stmt | None, tuple[With | Try, ...]]
    known = model.memo.setdefault(_guards, {None: ()})
    inner: list[Stmt] = []
    for each in chain([stmt], stmt.ancestors()):
        if each in known:
            break
        inner.append(each)
    for each in reversed(inner):
        around = known[each.parent]
        known[each] = (*around, each) if isinstance(each, (With, Try)) else around
    return known[stmt]


def _is_catch_all(kind: Expr | None) -> bool:
    """Whether a handler takes every error: around a whole run it expects none in particular."""
    return kind is None or getattr(builtins, last_name(kind) or "", None) in {
        Exception,
        BaseException,
    }


_TO_FAIL = frozenset({"xfail", "expectedFailure"})


@remembered
def _expecting(model: Model, module: ModuleFacts) -> list[Call]:
    """The calls of a module that say that an error will come."""
    return [call for call in module.all_calls if _expects(call)]


def _expects(call: Call) -> bool:
    name = last_name(call.func) or ""
    return awaits_error(name) or name == "suppress"


def _hands_over(call: Call, function: Function) -> bool:
    """Whether a call is given the function to run: ``raises(TypeError, lambda: …)``."""
    return any(
        given.function is function
        if isinstance(given, Lambda)
        else isinstance(given, Name) and given.id == function.name
        for given in call.positional
    )


def _takes(item: Expr, error: type[Exception] | None) -> bool:
    """Whether a context manager (or a call of the same) is told that ``error`` will come."""
    return (
        isinstance(item, Call)
        and _expects(item)
        and any(
            _covers(kind, error) for kind in (*item.positional, *(arg.value for arg in item.args))
        )
    )


def _covers(kind: Expr, error: type[Exception] | None) -> bool:
    """Whether a type (or a tuple of types) is ``error`` or a base of it."""
    if isinstance(kind, Seq):
        return any(_covers(each, error) for each in kind.items)
    if not isinstance(kind, (Name, Attr)):
        return False
    if error is None:
        return True
    known = getattr(builtins, last_name(kind) or "", None)
    return not isinstance(known, type) or issubclass(error, known)
