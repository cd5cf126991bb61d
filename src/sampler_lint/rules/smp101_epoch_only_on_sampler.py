"""SMP101: ``set_epoch`` reaches ``loader.sampler`` while the batch sampler carries the epoch."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.findings import Applicability, Edit, Fix
from sampler_lint.model.facts import (
    Assign,
    Attr,
    Call,
    Expr,
    If,
    Name,
    Stmt,
    last_name,
    same,
    unparse,
    walk,
)
from sampler_lint.model.flow import Lit, Obj, Unknown, self_class
from sampler_lint.model.linked import Model
from sampler_lint.model.project import Module
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._mend import (
    define_helper,
    fix,
    fresh_name,
    future_annotations,
    imported_as,
    is_library,
    reads_within,
    text_of,
)
from sampler_lint.rules._region import Region, delete_lines


class EpochOnlyOnSampler(Rule):
    """`set_epoch` is called on `loader.sampler`, but the batch sampler carries the epoch.

    What it does:
        Reports `loader.sampler.set_epoch(...)` where `loader` was built with `batch_sampler=`
        and that batch sampler (or the sampler inside it) is what shuffles by epoch. In library
        code that takes anybody's loader, reports a guarded call that looks at `loader.sampler`
        only.

    Why is this bad?
        With `DataLoader(batch_sampler=...)` torch sets `loader.sampler` to a default
        `SequentialSampler` that nothing reads. A guard such as
        `isinstance(loader.sampler, DistributedSampler)` is then false, the epoch is never set,
        and every epoch repeats the first one's order. Nothing raises.

    Fix safety:
        Safe where every loader that reaches the call is known and they agree: the call and its
        guard are pointed at `loader.batch_sampler` or `loader.batch_sampler.sampler`. Unsafe in
        library code: a helper that finds the distributed sampler of any loader is added to the
        file and used.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs of the training loader have one
        order before the fix and different orders after it.

    References:
        - torch/utils/data/dataloader.py, `DataLoader.__init__` (`sampler` with `batch_sampler`)
        - https://github.com/mosaicml/composer/issues/3123
        - https://github.com/Lightning-AI/pytorch-lightning/issues/13316
    """

    code = "SMP101"
    name = "epoch-only-on-sampler"
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every ``set_epoch`` call whose receiver is some loader's ``.sampler``."""
        for call in model.epoch_setters:
            assert isinstance(call.func, Attr)
            if call.func.name != "set_epoch":
                continue
            receiver = _sampler_of_loader(call.func.value)
            if receiver is None or self_class(receiver.value) is not None:
                continue
            if isinstance(receiver.value, Attr) and receiver.value.name == "batch_sampler":
                continue
            suspect = self._judge(model, call, receiver)
            if suspect is not None:
                yield suspect

    def _judge(self, model: Model, call: Call, receiver: Attr) -> Suspect | None:
        module = model.module_of(call.scope)
        loader = receiver.value
        values = model.flow.values(loader)
        loaders = [v for v in values if isinstance(v, Obj) and model.role(v) == "loader"]
        library = is_library(module, call.scope) and not any(
            obj.site is not None and obj.site.scope.module is call.scope.module for obj in loaders
        )
        for other in model.epoch_setters:
            if other is not call and _reaches_batch_sampler(model, other, call, loader):
                return None
        missed = [(obj, path) for obj in loaders if (path := _missed(model, obj)) is not None]
        spelled = unparse(loader)
        if missed:
            obj, path = missed[0]
            target = ".".join((spelled, "batch_sampler", *path))
            batch_sampler = next(
                v for v in model.passed_to(obj, "batch_sampler") if isinstance(v, Obj)
            )
            message = (
                f"`{spelled}.sampler.set_epoch()` does not reach the sampler that carries the "
                f"epoch: the loader is built with `batch_sampler={batch_sampler.name}`, so its "
                f"`.sampler` is a SequentialSampler that nothing reads and every epoch repeats "
                f"one order; call `{target}.set_epoch()`"
            )
            why = (f"{model.place_of(obj)}: loader built here with `batch_sampler=`",)
            certain = not any(isinstance(v, Unknown) for v in values)
            paths = {found for _, found in missed}
            only = len(missed) == len(loaders) and len(paths) == 1
            mend = (
                (lambda: _retarget(module, call, receiver, (".".join(("batch_sampler", *path)))))
                if only and certain and not library
                else (lambda: _use_helper(module, call, receiver))
            )
            return Suspect(module, call, message, why=why, mend=mend)
        if loaders or not library or any(isinstance(v, Obj) for v in values):
            return None
        guard = _guard(call, receiver)
        if guard is None or _looks_at_batch_sampler(call):
            return None
        message = (
            f"`{spelled}.sampler.set_epoch()` may not reach the sampler that carries the epoch: "
            f"for a loader built with `batch_sampler=`, `.sampler` is a SequentialSampler that "
            f"nothing reads, this guard is false and every epoch repeats one order; look at "
            f"`{spelled}.batch_sampler` too"
        )
        return Suspect(module, call, message, mend=lambda: _use_helper(module, call, receiver))


def _sampler_of_loader(receiver: Expr) -> Attr | None:
    """``X.sampler`` when the receiver is that, or a local name for it."""
    if isinstance(receiver, Name):
        bindings = receiver.scope.bindings.get(receiver.id, [])
        if len({id(binding.value) for binding in bindings}) > 1:
            bindings = [
                b for b in bindings if isinstance(b.value, Attr) and b.value.name == "sampler"
            ]
            if len(bindings) != 1 or len(receiver.scope.bindings[receiver.id]) > 2:
                return None
        if len(bindings) != 1 or bindings[0].how != "assign" or bindings[0].path:
            return None
        receiver = bindings[0].value  # type: ignore[assignment]
    if isinstance(receiver, Attr) and receiver.name == "sampler":
        return receiver
    return None


def _missed(model: Model, loader: Obj) -> tuple[str, ...] | None:
    """The path from ``loader.batch_sampler`` to what carries the epoch; None if there is none."""
    batch_samplers = model.passed_to(loader, "batch_sampler")
    paths = set()
    for value in batch_samplers:
        if isinstance(value, Lit) and value.value is None:
            continue
        path = model.epoch_path(value)
        if not isinstance(path, tuple):
            return None
        paths.add(path)
    return paths.pop() if len(paths) == 1 else None


def _reaches_batch_sampler(model: Model, other: Call, call: Call, loader: Expr) -> bool:
    """Whether another ``set_epoch`` call sets the epoch of the loader's batch sampler."""
    assert isinstance(other.func, Attr)
    target = other.func.value
    mentions = [n for n in walk(target) if isinstance(n, Attr) and n.name == "batch_sampler"]
    if other.scope is call.scope and any(same(n.value, loader) for n in mentions):
        return True
    batch_samplers = {
        value
        for obj in model.flow.values(loader)
        if isinstance(obj, Obj) and model.role(obj) == "loader"
        for value in model.passed_to(obj, "batch_sampler")
        if isinstance(value, Obj)
    }
    if not batch_samplers:
        return bool(mentions) and other.scope.module is call.scope.module
    sites = {(value.cls, value.site) for value in batch_samplers}
    inner = {
        (value.cls, value.site)
        for batch_sampler in batch_samplers
        for value in model.flow.ask_field(batch_sampler, "sampler")
        if isinstance(value, Obj)
    }
    return any(
        isinstance(value, Obj) and (value.cls, value.site) in sites | inner
        for value in model.flow.values(target)
    )


def _guards(call: Call) -> list[If]:
    return [] if call.stmt is None else [s for s in call.stmt.ancestors() if isinstance(s, If)]


def _guard(call: Call, receiver: Attr) -> tuple[If, Call] | None:
    """The ``if`` around the call that asks what ``X.sampler`` is, and the asking call in it."""
    assert isinstance(call.func, Attr)
    for stmt in _guards(call):
        for node in walk(stmt.test):
            if (
                isinstance(node, Call)
                and last_name(node.func) in {"isinstance", "hasattr", "getattr"}
                and node.positional
                and (
                    same(node.positional[0], receiver) or same(node.positional[0], call.func.value)
                )
            ):
                return stmt, node
    return None


def _looks_at_batch_sampler(call: Call) -> bool:
    return any(read.name == "batch_sampler" for read in call.scope.reads)


def _retarget(module: Module, call: Call, receiver: Attr, attributes: str) -> Fix | None:
    """Point the call, its guards and its local name at the batch sampler."""
    import libcst as cst

    owner: Stmt | None = call.stmt
    for stmt in _guards(call):
        owner = stmt
    if owner is None:
        return None
    source = module.source
    assert isinstance(call.func, Attr)
    spelled = f"{text_of(source, receiver.value)}.{attributes}"
    edits: list[Edit] = []
    region = Region(module, owner)
    reads = reads_within(call.scope, owner, receiver.value, "sampler")
    if receiver.stmt is not None and not owner.encloses(receiver.stmt):
        region_of_name = Region(module, receiver.stmt)
        edits.append(region_of_name.replace(region_of_name.find(receiver, cst.Attribute), spelled))
    edits += [region.replace(region.find(read, cst.Attribute), spelled) for read in reads]
    return fix(f"Call `set_epoch` on `{spelled}`", Applicability.SAFE, edits, source)


def _use_helper(module: Module, call: Call, receiver: Attr) -> Fix | None:
    """Ask a helper for the sampler of any loader, where the guard asks about ``.sampler``."""
    import libcst as cst

    found = _guard(call, receiver)
    if found is None:
        return None
    stmt, asking = found
    if last_name(asking.func) == "getattr" or not same(asking.positional[0], receiver):
        return None
    source = module.source
    by_class = last_name(asking.func) == "isinstance"
    if by_class and len(asking.positional) != 2:
        return None
    name = "_get_distributed_sampler" if by_class else "_get_epoch_sampler"
    kind = text_of(source, asking.positional[1]) if by_class else ""
    edits: list[Edit] = []
    if name not in module.facts.bindings:
        helper = define_helper(module, _helper_lines(module, name, kind))
        if helper is None:
            return None
        edits.append(helper)
    region = Region(module, stmt)
    alias = _alias(stmt, receiver)
    if alias is not None:
        local, line = alias
        edits.append(delete_lines(source, line))
    else:
        local, line = fresh_name(call.scope, "sampler", "epoch_sampler"), None
    loader = text_of(source, receiver.value)
    asked = region.find(asking, cst.Call)
    edits.append(region.replace(asked, f"({local} := {name}({loader})) is not None"))
    start, end = region.span(asked)
    for read in reads_within(call.scope, stmt, receiver.value, "sampler"):
        edit = region.replace(region.find(read, cst.Attribute), local)
        if not start <= edit.start < end and read.stmt is not line:
            edits.append(edit)
    return fix(f"Find the sampler with `{name}`", Applicability.UNSAFE, edits, source)


def _alias(guard: If, receiver: Attr) -> tuple[str, Assign] | None:
    """``name = X.sampler`` right below the guard: the name can be set in the guard instead."""
    stmt = receiver.stmt
    if isinstance(stmt, Assign) and stmt.value is receiver and stmt.block is guard.body:
        target = stmt.targets[0]
        others = [s for s in guard.body if s is not stmt and s.row <= stmt.row <= s.end_row]
        if len(stmt.targets) == 1 and isinstance(target, Name) and not others:
            return target.id, stmt
    return None


def _helper_lines(module: Module, name: str, kind: str) -> list[str]:
    loader_class = imported_as(module, "DataLoader")
    parameter = f"dataloader: {loader_class}" if loader_class else "dataloader"
    returns = ""
    optional = imported_as(module, "Optional")
    if kind.isidentifier() and loader_class:
        if optional:
            returns = f" -> {optional}[{kind}]"
        elif future_annotations(module):
            returns = f" -> {kind} | None"
    indent, quote = module.source.indent, module.source.quote
    inner = f"getattr(batch_sampler, {quote}sampler{quote}, None)"
    test = f"isinstance(sampler, {kind})" if kind else f"hasattr(sampler, {quote}set_epoch{quote})"
    return [
        f"def {name}({parameter}){returns}:",
        f'{indent}"""The sampler of `dataloader` that carries the epoch, if it has one."""',
        f"{indent}batch_sampler = dataloader.batch_sampler",
        f"{indent}for sampler in (batch_sampler, {inner}, dataloader.sampler):",
        f"{indent * 2}if {test}:",
        f"{indent * 3}return sampler",
        f"{indent}return None",
    ]
