"""Whether a class that a fix edits, tells an epoch or gives a seed is one that is understood.

What the class does by itself is shown by a run in which an order is another one for other seeds.
What no run shows, since Python or others do it, is looked for in its text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sampler_lint.analysis.origins import part_of, scope_of
from sampler_lint.analysis.values import ClassRef, FuncRef
from sampler_lint.domain.concepts import EPOCH, GENERATORS, GIVES_STATE, SEED, SEEDS_ONE
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.callers import is_wrapped
from sampler_lint.syntax.navigation import same, self_class, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Expr,
    Function,
    Name,
    dotted,
    last_name,
)

#: By which a copy of an object, or one in another process, is made in a way of its own.
_COPIES = (
    *("__copy__", "__deepcopy__", "__getnewargs__", "__getnewargs_ex__"),
    *("__getstate__", "__reduce__", "__reduce_ex__", "__setstate__"),
)
#: By which an object, or a class that is derived, is made in a way of its own.
_MAKES = ("__init_subclass__", "__new__")
#: What it takes to make an object and to go over it.
_RUN = ("__init__", "__iter__", "__next__", "set_epoch")
#: The decorators that leave a method as it is.
_PLAIN = frozenset({"abstractmethod", "final", "inference_mode", "no_grad", "override"})
#: The metaclasses that change nothing about an object.
_PLAIN_METACLASSES = frozenset({"ABCMeta", "GenericMeta", "type"})
#: A loader, or a sampler, is given as a DistributedSampler; or nothing that is known.
AROUND = (False, True)


def overriding(model: Model, cls: Class, *names: str) -> str | None:
    """A method by one of the names in a class of the program."""
    found = (each.method(name) for each in model.flow.own_mro(cls) for name in names)
    return next((f"{one.cls.name}.{one.name}" for one in found if one and one.cls), None)


def not_followed(model: Model, cls: Class) -> str | None:
    """What may make something else of a class than its methods say."""
    return next(_not_followed(model, cls), None)


def _not_followed(model: Model, cls: Class) -> Iterator[str]:
    for each in model.flow.own_mro(cls):
        for arg in each.keywords:
            if last_name(arg.value) not in _PLAIN_METACLASSES:
                yield f"`{arg.keyword}={last_name(arg.value)}` may change what `{each.name}` does"
        for decorator in each.decorators:
            if _changes_class(model, decorator):
                yield f"`{each.name}` is decorated"
        for name in _RUN:
            method = each.method(name)
            if method is None:
                continue
            if is_wrapped(model, method) or {*map(last_name, method.decorators)} - _PLAIN:
                yield f"`{each.name}.{name}` is decorated"
        for name, made in each.bindings.items():
            if any(b.how == "assign" and _works_out(b.value) for b in made) and (
                EPOCH.says(name) or SEED.says(name)
            ):
                yield f"`{each.name}.{name}` may be worked out"
    if own := overriding(model, cls, *_MAKES):
        yield f"`{own}` may make something else"
    if own := overriding(model, cls, *_COPIES):
        yield f"`{own}` may leave something out of a copy"


def _works_out(value: Expr | None) -> bool:
    """Whether what a class body gives a name may be something that is asked at each read."""
    return isinstance(value, Call) and last_name(value.func) not in {"field", "Field", "int"}


def _changes_class(model: Model, decorator: Expr) -> bool:
    """Whether a decorator of the program may do more than note a class."""
    for value in model.flow.values(decorator):
        if isinstance(value, ClassRef):
            return True
        if isinstance(value, FuncRef):
            maker = value.function
            inside = (maker, *maker.module.inside(maker))
            if any(isinstance(store.target, Attr) for one in inside for store in one.stores):
                return True
            if any(last_name(call.func) == "setattr" for one in inside for call in one.calls):
                return True
            returned = [one.value for function in inside for one in function.returns]
            if not all(isinstance(one, Name) for one in returned):
                return True
    return False


def other_epochs(model: Model, cls: Class) -> str | None:
    """What speaks against each epoch of a class of the program having an order of its own."""
    if own := overriding(model, cls, "__setattr__", "__getattribute__"):
        return f"`{own}` may not store what is told"
    if reason := not_followed(model, cls) or carried(model, cls):
        return reason
    trials = [model.epoch_trial(cls, around_shard=each, mixes=True) for each in AROUND]
    known = [trial for trial in trials if trial is not None]
    if any(trial.lumps and trial.changes for trial in known):
        return f"`{cls.name}` gives epochs that follow one another the same order"
    if any(trial.drifts for trial in known):
        return f"a pass of `{cls.name}` rests on those before it"
    level = (model.epoch_trial(cls, around_shard=each, levels=True) for each in AROUND)
    if any(trial is not None and trial.does_more for trial in level):
        return f"the epoch of `{cls.name}` does more than draw its order"
    if any(trial.changes for trial in known):
        return None
    # A class with a setter of its own may hand the epoch on to what no run knows.
    is_own = isinstance(model.flow.method(cls, "set_epoch"), Function)
    if is_own and not any(trial.draws or trial.frozen for trial in known):
        return None
    return f"it is not known that `{cls.name}` has another order in each epoch"


def carried(model: Model, cls: Class) -> str | None:
    """A pass of a class that goes on from what another pass has left."""
    functions = reach(model, cls, "__iter__", "__next__").functions
    for function in functions:
        for store in function.stores:
            target, given = store.target, part_of(store.value, store.path)
            if not isinstance(target, Attr) or self_class(target.value) is None:
                continue
            if given is None or EPOCH.says(target.name):
                continue
            read = [p for p in walk(given) if isinstance(p, Attr) and same(p, target)]
            others = [each for one in functions for each in one.reads if same(each, target)]
            is_used = any(all(each is not one for one in (*read, target)) for each in others)
            if is_used and (store.how == "aug" or read):
                return f"a pass of `{cls.name}` goes on from the `{target.name}` of another"
    return None


def drawn_beside(model: Model, cls: Class, method: Function) -> str | None:
    """A call, beside that of the pass, of a method whose draw a fix makes another in each epoch."""
    passing = reach(model, cls, "__iter__", "__next__").functions
    if method not in passing or method.name in _RUN:
        return None
    other = ("__len__", method.name)  # one that overrides it draws for the same pass
    calls = [call for call in model.flow.callers(method) if call.scope.name not in other]
    beside: list[Expr] = [call for call in calls if call.scope not in passing]
    beside += calls[1:]
    if method.is_property:
        named = (
            read
            for each in model.flow.own_family(cls)
            for one in each.methods
            for read in one.reads
        )
        beside += [read for read in named if read.name == method.name and read.scope not in passing]
    if beside:
        return f"{model.place(scope_of(beside[0]), beside[0])} draws by `{method.name}`, too"
    return None


def forgotten(model: Model, cls: Class) -> str | None:
    """A method that gives the state of an object, and leaves the epoch out."""
    for each in model.flow.own_mro(cls):
        for method in each.methods:
            if GIVES_STATE.says(method.name) and not any(
                EPOCH.says(read.name) for read in method.reads
            ):
                return f"`{each.name}.{method.name}` gives no epoch to go on with"
    return None


def seeded_beside(model: Model, cls: Class, names: Collection[str]) -> str | None:
    """What a class seeds beside its order with what a fix changes, or changes the order by."""
    passing = reach(model, cls, "__iter__", "__next__").functions
    asked = {read.name for method in passing for read in method.reads}
    orders = model.flow.method(cls, "__iter__") is not None
    for each in model.flow.own_mro(cls) if orders else ():
        for method in each.methods:
            for call in method.calls if method not in passing else ():
                seeds = SEEDS_ONE.is_call(call) or GENERATORS.is_call(call)
                parts = (part for arg in call.args for part in walk(arg.value))
                held = call.stmt.targets if isinstance(call.stmt, Assign) else []
                held = [*held, call.func.value] if isinstance(call.func, Attr) else held
                if any(isinstance(each, Attr) and each.name in asked for each in held):
                    continue  # what the order is drawn from
                if seeds and any((dotted(p) or "").rpartition(".")[2] in names for p in parts):
                    return f"{model.place(method, call)} seeds something else, too"
    return None
