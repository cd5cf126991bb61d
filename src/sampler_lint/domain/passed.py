"""What a tree passes for the parameters of its classes, wherever it builds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sampler_lint.analysis.points_to import Flow
from sampler_lint.analysis.values import ExtObj, Lit, Obj, Value
from sampler_lint.domain.concepts import RANK, WORLD_SIZE, spelled_as
from sampler_lint.syntax.nodes import Call, Class, Seq

if TYPE_CHECKING:
    from sampler_lint.execution.values import Passed


def passed_for(
    flow: Flow, role: Callable[[Value], str | None], cls: Class, built: Iterable[Obj] | None
) -> dict[str, tuple[Passed, ...]]:
    """What is passed for each parameter of a class that any construction passes something for.

    ``built`` are its objects, if it may be a sampler: of what may be none, only what leaves
    batches out is told.
    """
    from sampler_lint.execution.values import Passed
    from sampler_lint.parameters import Role, role_of

    roles = ((RANK, Role.RANK), (WORLD_SIZE, Role.WORLD_SIZE))
    samplers = {"sampler": Role.SAMPLER, "batch_sampler": Role.BATCH_SAMPLER}
    out: dict[str, dict[Passed, None]] = {}
    objects = [*(flow.built(cls) if built is None else built)]
    left: set[str] = set()
    names = dict.fromkeys(flow.params(cls) or ())
    sites = (obj.site for obj in objects if obj.site is not None)
    names.update((arg.keyword, None) for site in sites for arg in site.args if arg.keyword)
    for obj in objects:
        for name in names:
            if built is None and role_of(name) is not Role.DROP_LAST:
                continue
            given = flow.argument(obj, name)
            if given is None:
                left.add(name)
                if role_of(name) is Role.DROP_LAST:  # its default, or nobody knows what
                    lost = flow.may_be_passed(obj, name)
                    out.setdefault(name, {})[Passed(None if lost else Role.DROP_LAST)] = None
                continue
            found, values = out.setdefault(name, {}), flow.values(given)
            if isinstance(given, Seq):
                found[Passed(value=())] = None
            for value in values:
                if isinstance(value, Lit) and value.value is not None:
                    found[Passed(value=value.value)] = None
                elif isinstance(value, Lit):
                    left.add(name)
                elif isinstance(value, ExtObj):
                    if value.dotted.removeprefix("builtins.") == "len":
                        found[Passed(Role.SIZE)] = None
                    for concept, means in roles:
                        if value.dotted in concept.made_by:
                            found[Passed(means)] = None
                elif (kind := samplers.get(role(value) or "")) is not None:
                    found[Passed(kind)] = None
                elif not isinstance(given, Seq):
                    left.add(name)
            for concept, means in roles:
                if concept.is_call(given):
                    found[Passed(means)] = None
            spelled = spelled_as(given.func if isinstance(given, Call) else given)
            if spelled == "len":
                found[Passed(Role.SIZE)] = None
            elif spelled and {type(getattr(v, "value", v)) for v in values} != {bool}:
                found[Passed(name=spelled)] = None
    return {
        name: tuple(each._replace(is_always=name not in left) for each in found)
        for name, found in out.items()
    }


__all__ = ["passed_for"]
