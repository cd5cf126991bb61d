"""What a value holds at a moment, to tell later whether something has changed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sampler_lint.execution.budget import BUDGET, DEEPEST_VALUE
from sampler_lint.execution.errors import CannotTellError
from sampler_lint.execution.values import Array, Data, Instance, Source


def state(value: Any) -> Any:
    """The value with all that it holds, to compare with what it is later.

    Raises:
        CannotTellError: it is consumed by looking at it, or too large.
    """
    return _state(value, 0)


def _state(value: Any, depth: int) -> Any:
    if depth > DEEPEST_VALUE:
        raise CannotTellError("how deep it is")
    if isinstance(value, (list, tuple, Array)):
        items = value.items if isinstance(value, Array) else value
        BUDGET.items(len(items))
        return type(value), [_state(item, depth + 1) for item in items]
    if isinstance(value, dict):
        BUDGET.items(2 * len(value))
        return [(_state(key, depth + 1), _state(item, depth + 1)) for key, item in value.items()]
    if isinstance(value, set):
        BUDGET.items(len(value))
        return set(value)
    if isinstance(value, Source):
        return value.size, _state(value.changed, depth + 1)
    if isinstance(value, Data):
        return value.key
    if isinstance(value, Instance):
        BUDGET.step()
        return id(value), _state(value.attributes, depth + 1)
    if isinstance(value, Iterator):
        raise CannotTellError("what is left in it")
    if value is None or isinstance(value, (bool, int, float, str, range)):
        return value
    return id(value)
