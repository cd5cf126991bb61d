"""SMP103, SMP104: calls that a framework hides, never makes, or makes useless by its order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.values import ExtObj, Obj
from sampler_lint.domain.concepts import EPOCH
from sampler_lint.domain.epoch_calls import carriers
from sampler_lint.domain.epoch_state import epoch_state
from sampler_lint.domain.model import Model
from sampler_lint.domain.samplers import follows_epoch
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import fresh_name, imported_as, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import same, self_class, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Name,
    Seq,
    Stmt,
    While,
    dotted,
    last_name,
)


def framework_calls(model: Model) -> Iterator[Suspect]:
    """Every call that Accelerate or Ignite leaves without effect."""
    yield from _hidden_by_prepare(model)
    yield from _before_run(model)


# --------------------------------------------------------------------------- accelerate


def _hidden_by_prepare(model: Model) -> Iterator[Suspect]:
    prepared = [
        call for call in model.project.calls_named("prepare") if _is_accelerate(model, call)
    ]
    wrapper = catalog.contracts("accelerate", "wraps", "batch_sampler")[0].names[0]
    for call in model.epoch_setters if prepared else ():
        func = call.func
        if not isinstance(func, Attr) or func.name != "set_epoch":
            continue
        target = func.value
        if not isinstance(target, Attr) or target.name != "batch_sampler":
            continue
        loader = target.value
        for prepare in prepared:
            given = _given_for(prepare, loader)
            if given is None:
                continue
            hidden = next(_own_epochs(model, given), None)
            if hidden is None or _set_otherwise(model, call, hidden):
                continue
            message = (
                f"`{unparse(func)}` does not reach `{hidden.name}`: `{unparse(prepare.func)}` "
                f"wraps it in a {wrapper}"
            )
            why = (
                Related(model.place(prepare.scope, prepare), "the loader is prepared here"),
                Related(model.place_of(hidden), "batch sampler built here"),
            )
            yield Suspect(
                model.module_of(call.scope),
                call,
                message,
                why=why,
                effect="with several processes the wrapper has no `set_epoch`, so every epoch "
                "repeats one order",
                advice="keep a reference to the batch sampler itself and call its `set_epoch`",
            )
            break


def _is_accelerate(model: Model, call: Call) -> bool:
    if not isinstance(call.func, Attr):
        return False
    trainers = catalog.framework("accelerate").trainers
    return any(
        isinstance(v, ExtObj)
        and v.dotted.startswith("accelerate.")
        and v.dotted.rpartition(".")[2] in trainers
        for v in model.flow.values(call.func.value)
    )


def _given_for(prepare: Call, loader: Expr) -> Expr | None:
    """What was passed to ``prepare`` at the place that ``loader`` is assigned from."""
    stmt = prepare.stmt
    if not isinstance(stmt, Assign) or stmt.value is not prepare or prepare.has_star:
        return None
    for target in stmt.targets:
        if isinstance(target, Seq):
            for index, item in enumerate(target.items):
                if _means(item, loader) and index < len(prepare.positional):
                    return prepare.positional[index]
        elif _means(target, loader) and len(prepare.positional) == 1:
            return prepare.positional[0]
    return None


def _means(target: Expr, loader: Expr) -> bool:
    """Whether the assigned target and the expression read later are the same thing."""
    if isinstance(target, Name) and isinstance(loader, Name):
        return target.id == loader.id and target.scope is loader.scope
    return (
        isinstance(target, Attr)
        and isinstance(loader, Attr)
        and target.name == loader.name
        and self_class(target.value) is not None
        and self_class(target.value) is self_class(loader.value)
    )


def _own_epochs(model: Model, given: Expr) -> Iterator[Obj]:
    """Batch samplers of the tree, in the loaders of an expression, with an epoch of their own."""
    for loader in model.flow.values(given):
        if not isinstance(loader, Obj) or model.role(loader) != "loader":
            continue
        for found in carriers(model, loader):
            if found.path == ("batch_sampler",) and isinstance(found.sampler.cls, Class):
                yield found.sampler


def _set_otherwise(model: Model, call: Call, sampler: Obj) -> bool:
    for other in model.epoch_setters_near(call.scope):
        assert isinstance(other.func, Attr)
        if other is call:
            continue
        values = model.flow.values(other.func.value)
        if any(
            isinstance(v, Obj) and (v.cls, v.site) == (sampler.cls, sampler.site) for v in values
        ):
            return True
        # prepared.batch_sampler.batch_sampler is the one that was passed in.
        inner = other.func.value
        if dotted(inner) is not None and unparse(inner).endswith(".batch_sampler.batch_sampler"):
            return True
    return False


# --------------------------------------------------------------------------- ignite


def _before_run(model: Model) -> Iterator[Suspect]:
    """``set_epoch(trainer.state.epoch)`` once, before ``trainer.run``: the number is still 0."""
    for call in model.epoch_setters:
        stmt = call.stmt
        if stmt is None or len(call.args) != 1 or last_name(call.func) != "set_epoch":
            continue
        if any(isinstance(s, (For, While)) for s in stmt.ancestors()):
            continue
        module = model.module_of(call.scope)
        if "ignite" not in model.frameworks(module):
            continue
        engine = _engine_of(call.args[0].value)
        if engine is None:
            continue
        runs = [
            other
            for other in call.scope.calls
            if isinstance(other.func, Attr)
            and other.func.name == "run"
            and same(other.func.value, engine)
            and other.stmt is not None
            and other.stmt.order > stmt.order
        ]
        if not runs or _is_handler(call):
            continue
        name = unparse(engine)
        message = (
            f"`{unparse(call.func)}` is called once, before `{name}.run()`, so every epoch repeats "
            f"one order"
        )
        why = (Related(model.place(call.scope, runs[0]), f"`{name}` runs here"),)
        yield Suspect(
            module,
            call,
            message,
            why=why,
            fix=partial(_handle, call, engine),
            effect=f"`{name}.state.epoch` does not count before the engine runs",
            advice="call it in a handler of `Events.EPOCH_STARTED`",
        )


def _handle(call: Call, engine: Expr, editor: Editor) -> Fix | None:
    """Make the call, with the tests around it, a handler of the start of each epoch."""
    events = imported_as(editor.module, "Events")
    stmt = call.stmt
    if events is None or not isinstance(stmt, ExprStmt) or stmt.value is not call:
        return None
    whole: Stmt = stmt
    for parent in stmt.ancestors():
        if not isinstance(parent, If) or parent.orelse or len(whole.block) != 1:
            break
        whole = parent
    if whole.parent is not None:
        return None
    name = fresh_name(call.scope, "set_epoch", "set_sampler_epoch")
    handler = f"@{text_of(editor.source, engine)}.on({events}.EPOCH_STARTED)"
    editor.nest(whole, handler, f"def {name}():")
    why = "other handlers may rely on the order"
    return editor.fix(f"Handle `{events}.EPOCH_STARTED`", Applicability.UNSAFE, why)


def _engine_of(argument: Expr) -> Expr | None:
    """``T`` in an expression over ``T.state.epoch``."""
    for node in walk(argument):
        if (
            isinstance(node, Attr)
            and node.name == "epoch"
            and isinstance(node.value, Attr)
            and node.value.name == "state"
        ):
            return node.value.value
    return None


def _is_handler(call: Call) -> bool:
    """Whether the call's function is one that an engine calls by event."""
    return isinstance(call.scope, Function) and bool(call.scope.decorators)


# --------------------------------------------------------------------------- Lightning


def unreached_by_lightning(model: Model) -> Iterator[Suspect]:
    """Batch samplers that shuffle by their own epoch, in the loader of a Lightning hook.

    Silent where the tree may run with a version that calls them.
    """
    for module, cls in model.classes():
        hook = cls.method("train_dataloader")
        package = _lightning_package(model, cls) if hook is not None else None
        if hook is None or package is None:
            continue
        versions = model.versions(module, "lightning", package)
        told = [
            contract
            for contract in catalog.contracts("lightning", "calls")
            if versions.may_be(contract.versions)
        ]
        if not told or any(contract.part == "batch_sampler" for contract in told):
            continue
        parts = dict.fromkeys(f"of `loader.{contract.part}`" for contract in told)
        who = f"Lightning ({told[-1].versions}) sets the epoch {' and '.join(parts)} only"
        for returned in hook.returns:
            for loader in model.flow.values(returned.value) if returned.value is not None else ():
                if not isinstance(loader, Obj) or model.role(loader) != "loader":
                    continue
                site = loader.site
                for carrier in carriers(model, loader):
                    sampler = carrier.sampler
                    if (
                        site is not None
                        and carrier.path == ("batch_sampler",)
                        and isinstance(sampler.cls, Class)
                        and model.attributes(sampler.cls).open is None
                        and "sampler" not in model.attributes(sampler.cls).names
                        and not _moves_by_itself(model, sampler.cls)
                        and follows_epoch(model, sampler.cls)
                        and not _may_be_set(model, sampler, cls)
                    ):
                        message = (
                            f"nothing calls `{sampler.name}.set_epoch`, so every epoch repeats one "
                            f"order"
                        )
                        why = (Related(model.place(hook, hook), "Lightning gets the loader here"),)
                        yield Suspect(
                            model.module_of(site.scope),
                            site,
                            message,
                            why=why,
                            effect=who,
                            advice="call it in `on_train_epoch_start`",
                        )


def _lightning_package(model: Model, cls: Class) -> str | None:
    """The import name of the Lightning that a class derives from."""
    for base in model.flow.mro(cls):
        package = base.partition(".")[0] if isinstance(base, str) else ""
        if catalog.FRAMEWORK_PACKAGES.get(package) == "lightning":
            return package
    return None


def _moves_by_itself(model: Model, cls: Class) -> bool:
    """Whether a pass changes an attribute that says epoch."""
    return any(
        isinstance(store.target, Attr) and EPOCH.names(store.target)
        for function in epoch_state(model, cls).iteration.functions
        for store in function.stores
    )


def _may_be_set(model: Model, sampler: Obj, near: Class) -> bool:
    """Whether some call in the program sets (or may set) the sampler's epoch."""
    for call in model.epoch_setters_near(near):
        assert isinstance(call.func, Attr)
        values = model.flow.values(call.func.value)
        if any(isinstance(v, Obj) and v.cls is sampler.cls for v in values):
            return True
        if not values or any(not isinstance(v, Obj) for v in values):
            return True
    return False
