"""SMP302: a framework of the program cannot build the batch sampler anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.domain.batches import is_abstract, is_batch_sampler
from sampler_lint.domain.concepts import ASKS_BY_NAME, ASKS_KIND
from sampler_lint.domain.injection import injections, shards_itself
from sampler_lint.domain.model import BATCH_SAMPLER, Model, own_scopes
from sampler_lint.domain.programs import built_outside_tests, is_test
from sampler_lint.domain.signatures import Signature, of_class
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import self_class
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Expr,
    Function,
    Name,
    Node,
    Try,
    last_name,
)
from sampler_lint.workspace.project import Module


class BatchSamplerNotRebuildable(Rule):
    """A framework rebuilds the batch sampler, and its constructor does not take what it passes.

    What it does:
        Reports batch samplers in programs that train with Lightning (1.5 and later) without
        switching off `use_distributed_sampler` (before 2.0: `replace_sampler_ddp`). Their
        constructor does not accept the call that Lightning makes, `cls(sampler, batch_size=...,
        drop_last=...)`, or they read `.data_source` of the sampler they are given, which the
        injected `DistributedSampler` does not have. In mmengine's `DATA_SAMPLERS` registry: batch
        samplers that take no `sampler` or no `batch_size`, which mmengine passes by keyword.
        Not reported for a class that nothing builds, or that a test makes up.

    Why is this bad?
        Training on one GPU works. The first run on two fails with a TypeError or AttributeError
        inside the framework, or the constructor takes the sampler for its dataset. Batch samplers
        that shard by themselves are affected, too: Lightning looks at `loader.sampler`, which
        torch fills in. Deriving from `BatchSampler` alone is not enough: Lightning 1.7 and later
        then replays the constructor's own arguments, and replaces the one called `sampler`.

    Fix safety:
        Unsafe: where the class shards by rank itself, the Trainers of the program are told to
        leave that to it, and with it that of other loaders; of a sampler, `.dataset` is read where
        it is there. No other fix is offered: the constructor changes, and with it its callers.

    How it is proved:
        Invariant `runs`: a trainer that rebuilds the batch sampler as Lightning does fails; with
        a matching constructor it finishes.

    References:
        - lightning/fabric/utilities/data.py, `_dataloader_init_kwargs_resolve_sampler`
        - https://github.com/Lightning-AI/pytorch-lightning/issues/19048
        - mmengine/runner/runner.py, `Runner.build_dataloader`
        - met in https://github.com/sktime/pytorch-forecasting
          (pytorch_forecasting/data/samplers.py)
    """

    code = "SMP302"
    name = "batch-sampler-not-rebuildable"
    symptoms = (
        "it runs on one GPU and fails on several",
        "TypeError: __init__() got an unexpected keyword argument",
    )
    invariant = "runs"
    fixable = "sometimes"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Hold each batch sampler's constructor against the framework's call."""
        injection = injections(model)
        told: set[object] = set()
        for module, cls in model.classes():
            if is_test(module) or not is_batch_sampler(model, cls) or is_abstract(cls):
                continue  # no Trainer gets what a test makes up
            signature = of_class(model, cls)
            if signature is None or not isinstance(signature.owner, Class):
                continue
            trouble, fix = None, None
            if _is_registered(cls):
                trouble = _mmengine_trouble(model, module, signature)
            elif injection.rebuilds(module, cls) and _is_used(model, cls):
                trouble = _lightning_trouble(model, module, cls, signature)
                fix = partial(_leave_sharding, model, module, cls)
                read = _data_source(model, cls) if trouble is None else None
                if read is not None and read not in told:
                    told.add(read)
                    yield _wrong_dataset(model, cls, read)
            if trouble is not None and signature.owner not in told:
                told.add(signature.owner)
                yield _suspect(model, cls, signature.owner, trouble, fix)


def _is_used(model: Model, cls: Class) -> bool:
    """Whether the program builds the class or one derived from it, for a loader to hold it."""
    kinds = (cls, *model.flow.subclasses(cls))
    return any(any(built_outside_tests(model, model.built.get(kind, ()))) for kind in kinds) or any(
        kind in model.used_as_batch_sampler for kind in kinds
    )


def _is_registered(cls: Class) -> bool:
    registry = catalog.framework("mmengine").registry
    for decorator in cls.decorators:
        target = decorator.func if isinstance(decorator, Call) else decorator
        if isinstance(target, Attr) and last_name(target.value) == registry:
            return True
    return False


class _Trouble(NamedTuple):
    """Why a framework's call of the class fails, or does something else."""

    message: str
    """What of the class does not fit, to be put after its name."""
    effect: str
    advice: str


def _mmengine_trouble(model: Model, module: Module, signature: Signature) -> _Trouble | None:
    for contract in model.contracts(module, "mmengine", "rebuilds", "batch_sampler"):
        lacks = [name for name in contract.names if name not in signature.names]
        if lacks and not signature.open_keywords:
            named = " and ".join(f"`{name}`" for name in lacks)
            return _Trouble(
                f"cannot be rebuilt by mmengine: its constructor takes no {named}",
                f"{contract.without}: TypeError",
                "give its constructor both parameters",
            )
    return None


def _lightning_trouble(
    model: Model, module: Module, cls: Class, signature: Signature
) -> _Trouble | None:
    """What Lightning's call of the class stumbles over."""
    switch = _switch(model, module)
    advice = f"take a `sampler` and build on it, or pass `{switch}=False` and shard by rank"
    told = "cannot be rebuilt by Lightning: its constructor takes no {}".format
    calls = {c.names: c for c in model.contracts(module, "lightning", "rebuilds", "batch_sampler")}
    replay, rebuild = calls.get(("sampler",)), calls.get(("batch_size", "drop_last"))
    if replay is not None and model.is_a(cls, BATCH_SAMPLER) is True:
        if "sampler" in signature.names or signature.open_keywords:
            return None
        return _Trouble(told("`sampler`"), replay.without, advice)
    if rebuild is None or model.attributes(cls).open is not None:
        return None
    # Without `batch_size` and `drop_last` Lightning does not get as far (SMP301), but setting
    # them must not be what brings this up.
    first = next(iter(signature.positional), None)
    call = rebuild.without
    lacks = [name for name in rebuild.names if name not in signature.names]
    if lacks and not signature.open_keywords:
        named = " and ".join(f"`{name}`" for name in lacks)
        return _Trouble(told(named), f"{call}: TypeError", advice)
    others = sorted(signature.required - {first or "", *rebuild.names})
    if others:
        named = ", ".join(f"`{name}`" for name in others)
        what = f"cannot be rebuilt by Lightning: its constructor also requires {named}"
        return _Trouble(what, f"{call}: TypeError", advice)
    if first is not None and "sampler" not in first and first not in rebuild.names:
        what = f"cannot be rebuilt by Lightning: its first parameter is `{first}`, not a sampler"
        return _Trouble(what, f"{call}: `{first}` gets a sampler", advice)
    return None


def _leave_sharding(model: Model, module: Module, cls: Class, editor: Editor) -> Fix | None:
    """Tell the Trainers of a program to leave a class alone that shards by rank itself."""
    if not shards_itself(cls):
        return None
    injection = injections(model)
    switch = _switch(model, module)
    for call in injection.calls(injection.program(module)):
        editor.at(model.module_of(call.scope)).add_argument(call, switch, "False")
    why = "other loaders that the Trainer gets are not sharded either then"
    return editor.fix(f"Pass `{switch}=False` to the Trainer", Applicability.UNSAFE, why)


def _switch(model: Model, module: Module) -> str:
    """The argument that keeps the Lightning of a file from sharding."""
    versions = model.versions(module, "lightning")
    switches = catalog.framework("lightning").switches
    return next(name for name, span in switches if versions.may_be(span))


def _suspect(
    model: Model, cls: Class, owner: Class, trouble: _Trouble, fix: Fixer | None
) -> Suspect:
    module = model.module_of(owner)
    init = owner.method("__init__")
    params = init.params[1:] if init is not None else []
    place: Node = params[0].node if params else name_of(module, owner)
    message, effect, advice = trouble
    text = f"batch sampler `{cls.name}` {message}"
    return Suspect(module, place, text, fix=fix, effect=effect, advice=advice)


def _data_source(model: Model, cls: Class) -> Attr | None:
    """The read of ``sampler.data_source``, which a DistributedSampler does not have."""
    scopes = own_scopes(model, cls)
    for scope in scopes:
        for call in scope.calls:
            if (ASKS_KIND.is_call(call) or ASKS_BY_NAME.is_call(call)) and any(
                _is_sampler(arg) for arg in call.positional[:1]
            ):
                return None  # it looks at what it was given
    for scope in scopes:
        for read in scope.reads:
            if (
                read.name == "data_source"
                and _is_sampler(read.value)
                and read.stmt is not None
                and not any(isinstance(s, Try) for s in read.stmt.ancestors())
            ):
                return read
    return None


def _wrong_dataset(model: Model, cls: Class, read: Attr) -> Suspect:
    return Suspect(
        model.module_of(read.scope),
        read,
        f"`{cls.name}` reads `.data_source` of its sampler, which Lightning's DistributedSampler "
        f"does not have",
        effect="on several devices Lightning gives it a DistributedSampler, which has `.dataset`: "
        "AttributeError",
        advice="take the dataset as a separate argument",
        fix=partial(_take_either, read),
    )


def _take_either(read: Attr, editor: Editor) -> Fix:
    """Take the dataset of either kind of sampler."""
    sampler = text_of(editor.source, read.value)
    either = f'getattr({sampler}, "dataset", None) or {sampler}.data_source'
    is_whole = isinstance(read.stmt, Assign) and read.stmt.value is read
    editor.replace(read, either if is_whole else f"({either})")
    why = "the `.dataset` of another sampler may be something else"
    return editor.fix("Take `.dataset` where it is there", Applicability.UNSAFE, why)


def _is_sampler(expr: Expr) -> bool:
    """Whether the expression is an argument called ``sampler``, or where one is kept."""
    if isinstance(expr, Attr):
        return expr.name == "sampler" and self_class(expr.value) is not None
    return (
        isinstance(expr, Name)
        and expr.id == "sampler"
        and isinstance(expr.scope, Function)
        and expr.scope.param("sampler") is not None
    )
