"""What the classes that a fix changes do when they are run as they are afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from sampler_lint.analysis.origins import LOCAL, Hop, origins
from sampler_lint.domain.concepts import EPOCH, GENERATORS, LOGS, SEED, SEEDS_ONE, SETS_EPOCH
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import is_variable
from sampler_lint.domain.seeds import constructions
from sampler_lint.edits.safety.classes import (
    AROUND,
    drawn_beside,
    forgotten,
    not_followed,
    overriding,
    seeded_beside,
)
from sampler_lint.edits.safety.meaning import scope_at
from sampler_lint.edits.safety.receivers import rewritten
from sampler_lint.edits.safety.texts import FUNCTIONS, Changed
from sampler_lint.findings import Refuted
from sampler_lint.fixing import apply_edits
from sampler_lint.syntax.navigation import self_class, walk
from sampler_lint.syntax.nodes import Assign, Attr, Bin, Class, Const, Expr, Function, Unary
from sampler_lint.workspace.project import Module


def fails_when_run(model: Model, changes: Mapping[str, tuple[Module, Changed]]) -> str | None:
    """A class that stops with an error after the fix, or whose epochs still have one order."""
    texts = {
        module.path: apply_edits(module.source.text, changed.edits)
        for module, changed in changes.values()
    }
    for module, changed in changes.values():
        for cls, node in rewritten(module, changed).items():
            if own := overriding(model, cls, "__setattr__", "__getattribute__"):
                return f"`{own}` may change what is stored or read"
            if reason := not_followed(model, cls):
                return reason
            if reason := _drawn_besides(model, changed, cls):
                return reason
            told = _new_seeds(model, changed, cls, node) | _given_anew(changed, node)
            if reason := seeded_beside(model, cls, told):
                return reason
            if model.flow.method(cls, "set_epoch") is None:
                continue
            written = [*_epochs(changed, node)]
            for method in _methods_with(module, changed, written):
                if reason := drawn_beside(model, cls, method) or forgotten(model, cls):
                    return reason
            for each in (cls, *model.flow.subclasses(cls)):
                if any(_raises_now(model, each, texts, around_shard=one) for one in AROUND):
                    return f"`{each.name}` stops with an error in a run"
                if (seed := _refused(model, each, texts)) is not None:
                    return f"`{each.name}` would stop at its seed, {seed}"
            if (written or _stores_epoch(changed, node)) and _drifts(model, cls):
                return f"a pass of `{cls.name}` rests on those before it"
            if reason := _same_order(model, cls, texts, written):
                return reason
    return None


def _drawn_besides(model: Model, changed: Changed, cls: Class) -> str | None:
    """What else than its order a class draws by a generator that the fix seeds in another way."""
    passing = reach(model, cls, "__iter__", "__next__").functions
    for call in (one for method in cls.methods for one in method.calls):
        if call.stmt is None or not (SEEDS_ONE.is_call(call) or GENERATORS.is_call(call)):
            continue
        held = call.stmt.targets if isinstance(call.stmt, Assign) else []
        held = [*held, call.func.value] if isinstance(call.func, Attr) else held
        names = {part.name for each in held for part in walk(each) if isinstance(part, Attr)}
        own = {part for each in held for part in walk(each)}
        place = call.stmt.row, call.stmt.col
        if not any(
            isinstance(one, ast.stmt)
            and (one.lineno, one.col_offset) == place
            and any(changed.is_touched(part) for part in ast.walk(one) if part in changed.old.spans)
            for one in changed.old.spans
        ):
            continue
        for method in (one for each in model.flow.own_family(cls) for one in each.methods):
            for read in method.reads if method not in passing else ():
                if read.name in names and self_class(read.value) and read not in own:
                    return f"{model.place(method, read)} draws by it, too"
    return None


def _epochs(changed: Changed, cls: ast.ClassDef) -> Iterator[ast.AST]:
    """Where the fix writes an epoch that is read, or a call that tells one, in a class."""
    for node in ast.walk(cls):
        name = getattr(node, "attr", None) or getattr(node, "id", None)
        is_read = isinstance(getattr(node, "ctx", None), ast.Load) and changed.is_written(node)
        if is_read and isinstance(name, str) and (name == "set_epoch" or EPOCH.says(name)):
            yield node


def _new_seeds(model: Model, changed: Changed, cls: Class, node: ast.ClassDef) -> set[str]:
    """The seeds by which the fix has a class draw its order, as it did not before."""
    passing = reach(model, cls, "__iter__", "__next__").functions
    before = {read.name for method in passing for read in method.reads}
    return {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)
        if SEED.says(one.attr) and one.attr not in before and changed.is_written(one)
    }


def _given_anew(changed: Changed, cls: ast.ClassDef) -> set[str]:
    """The seeds that the fix has a class keep another value of."""
    stmts = [
        one
        for one in ast.walk(cls)
        if isinstance(one, ast.Assign)
        and one in changed.back
        and any(
            part in changed.old.spans and changed.is_touched(part)
            for part in ast.walk(changed.back[one])
        )
    ]
    return {
        part.attr
        for stmt in stmts
        for target in stmt.targets
        for part in ast.walk(target)
        if isinstance(part, ast.Attribute) and SEED.says(part.attr)
    }


def _stores_epoch(changed: Changed, cls: ast.ClassDef) -> bool:
    """Whether the fix has a class keep the epoch."""
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(cls)
        if EPOCH.says(getattr(node, "attr", "")) and changed.is_written(node)
    )


def _drifts(model: Model, cls: Class) -> bool:
    """Whether passes of the class go on from one another as it is: they are no repeats."""
    trials = [model.epoch_trial(cls, around_shard=one, mixes=True) for one in AROUND]
    return any(one is not None and one.drifts for one in trials)


def _methods_with(module: Module, changed: Changed, written: list[ast.AST]) -> Iterator[Function]:
    """The methods in which the fix makes a draw depend on the epoch."""
    for node in written:
        holder = next((one for one in changed.new.around(node) if isinstance(one, FUNCTIONS)), None)
        method = scope_at(module, changed.back.get(holder)) if holder is not None else None
        if isinstance(method, Function) and getattr(node, "attr", "") != "set_epoch":
            yield method


def _raises_now(model: Model, cls: Class, texts: Mapping[str, str], *, around_shard: bool) -> bool:
    """Whether a class that ran before the fix stops with an error after it."""
    before = model.epoch_trial(cls, around_shard=around_shard)
    if before is None:
        return False
    after = model.epoch_trial(cls, around_shard=around_shard, texts=texts)
    return after is not None and after.raises


def _refused(model: Model, cls: Class, texts: Mapping[str, str]) -> int | None:
    """The long seed among those that the program gives a class, or by default, that fails now."""
    init = model.flow.method(cls, "__init__")
    params = init.params if isinstance(init, Function) else []
    given = [param.default for param in params if SEED.says(param.name)]
    for made in constructions(model):
        if made.cls is cls:
            given += [
                model.flow.argument(made, param.name) for param in params if SEED.says(param.name)
            ]
    known = {each for one in given for each in model.flow.constants(one) or ()}
    if any(_may_be_long(model, one) for one in given):
        known.add(2**64 - 1)
    for seed in sorted(each for each in known if isinstance(each, int) and abs(each) >= 2**31):
        before = model.epoch_trial(cls, seed=seed)
        after = model.epoch_trial(cls, seed=seed, texts=texts)
        if before is not None and after is not None and after.raises:
            return seed
    return None


def _may_be_long(model: Model, given: Expr | None) -> bool:
    """Whether a number is worked out, or found in the environment: then it is for no default."""
    if given is None:
        return False
    if isinstance(given, Bin) and all(map(_is_number, walk(given))):
        return True
    steps = origins(model.flow, given, LOCAL | Hop.CALLER | Hop.RETURN)
    return any(is_variable(part) for step in steps for part in walk(step.expr))


def _is_number(part: Expr) -> bool:
    return isinstance(part, (Bin, Const, Unary))


def _same_order(
    model: Model, cls: Class, texts: Mapping[str, str], written: list[ast.AST]
) -> str | None:
    """What speaks against a run of the class having another order for another epoch."""
    if not written or model.flow.method(cls, "__iter__") is None:
        return None  # no run shows what others ask it for
    trials = [model.epoch_trial(cls, around_shard=one, texts=texts, mixes=True) for one in AROUND]
    known = [one for one in trials if one is not None and not one.raises]
    if any(one.drifts for one in known):
        return f"a pass of `{cls.name}` would rest on those before it"
    if reason := _other_count(model, cls, written):
        return reason
    if any(one.changes and not one.lumps for one in known):
        return None
    if any(one.draws or one.frozen for one in known):
        return Refuted(f"the epochs of `{cls.name}` still have one order in a run")
    if any(getattr(one, "attr", "") == "set_epoch" for one in written):
        return None  # what is told it is looked at for itself
    return f"it is not known what the epochs of `{cls.name}` come to"


def _other_count(model: Model, cls: Class, written: list[ast.AST]) -> str | None:
    """A number that a class makes of the epoch for itself, where the fix hands on the epoch."""
    setter = model.flow.method(cls, "set_epoch")
    if not isinstance(setter, Function) or not any(
        getattr(one, "attr", "") == "set_epoch" for one in written
    ):
        return None
    for method in reach(model, cls, "__iter__", "__next__").functions:
        tells = [c for c in method.calls if SEEDS_ONE.is_call(c) or GENERATORS.is_call(c)]
        tells += [c for c in method.calls if SETS_EPOCH.is_call(c) or LOGS.is_call(c)]
        told = {id(part) for call in tells for arg in call.args for part in walk(arg.value)}
        for read in method.reads:
            if EPOCH.says(read.name) and self_class(read.value) and id(read) not in told:
                return f"`{cls.name}` goes by the epoch itself"
    for store in setter.stores:
        given = walk(store.value) if store.value is not None else ()
        is_epoch = isinstance(store.target, Attr) and EPOCH.says(store.target.name)
        if is_epoch and any(isinstance(part, Bin) for part in given):
            return f"`{cls.name}` counts epochs in another way"
    return None
