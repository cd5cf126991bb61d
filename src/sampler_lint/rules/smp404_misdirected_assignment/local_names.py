"""Local variables that nothing reads, named like an attribute of the sampler."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import replacing
from sampler_lint.findings import Applicability
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp404_misdirected_assignment.attributes import read_by
from sampler_lint.rules.smp404_misdirected_assignment.kept_seed import name_reads
from sampler_lint.syntax.navigation import statements, walk
from sampler_lint.syntax.nodes import Assign, Attr, Class, For, Function, Name, While
from sampler_lint.workspace.project import Module


def lost_locals(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """A local that nothing reads, named like an attribute that the class reads."""
    wanted = read_by(model, cls) & model.attributes(cls).names
    wanted -= {method.name for method in cls.methods}
    for function in cls.methods:
        if function.self_name is None or function.is_static:
            continue
        for stmt in statements(function.body):
            if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
                continue
            target = stmt.targets[0]
            if (
                isinstance(target, Name)
                and target.id in wanted
                and target.id in function.bindings
                and _is_lost(module, function, stmt, target.id)
            ):
                yield _local(module, cls, function, stmt, target)


def _is_lost(module: Module, function: Function, stmt: Assign, name: str) -> bool:
    """Whether nothing reads the local after it is assigned, and it is no leftover.

    A name that is read earlier may have served its turn, unless what was read went to the
    attribute of that name, which this assignment was to correct.
    """
    inner = module.facts.inside(function)
    reads = [read for scope in (function, *inner) for read in name_reads(scope, name)]
    if not function.called.isdisjoint({"locals", "eval", "exec"}):
        return False
    loops = [outer for outer in stmt.ancestors() if isinstance(outer, (For, While))]
    for read in reads:
        if read is stmt:
            continue
        if read.scope is not function or read.order > stmt.order:
            return False
        if any(loop.encloses(read) for loop in loops):
            return False
        early = any(
            isinstance(store.target, Attr)
            and store.target.name == name
            and isinstance(store.value, Name)
            and store.value.id == name
            and store.stmt.order < stmt.order
            for store in function.stores
        )
        if not early:
            return False
    return not any(
        isinstance(store.target, Attr)
        and store.target.name == name
        and store.stmt.order > stmt.order
        for store in function.stores
    )


def _local(module: Module, cls: Class, function: Function, stmt: Assign, target: Name) -> Suspect:
    receiver = function.self_name
    message = (
        f"`{cls.name}.{function.name}` assigns a local `{target.id}` that nothing reads, not "
        f"`{receiver}.{target.id}`"
    )
    is_setter = function.name.startswith("set_") and any(
        isinstance(node, Name) and function.param(node.id) for node in walk(stmt.value)
    )
    applicability = Applicability.SAFE if is_setter else Applicability.UNSAFE
    meant = f"{receiver}.{target.id}"
    fix = replacing(target, meant, f"Assign `{meant}`", applicability)
    effect = f"`{meant}`, which the sampler reads, keeps its old value"
    return Suspect(module, target, message, fix=fix, effect=effect, advice=f"assign `{meant}`")
