"""What constructors take, and the functions of the tree that return a sampler or a loader."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import read_parameter
from sampler_lint.analysis.values import ClassRef, Ext, FuncRef, Obj, Pack, Value
from sampler_lint.catalog import TORCH_DATA
from sampler_lint.domain.model import Model
from sampler_lint.syntax.nodes import (
    Arg,
    Attr,
    Call,
    Class,
    Expr,
    Function,
    Name,
    Param,
    Scope,
    Store,
    last_name,
    positional,
)


class Signature(NamedTuple):
    """The parameters of a constructor, or of a function, without ``self``."""

    owner: Class | Function | str
    """The class whose ``__init__`` it is, or the function."""
    positional: tuple[str, ...]
    keywords: frozenset[str] = frozenset()
    """Keyword-only parameters."""
    open_keywords: bool = False
    """Whether it takes ``**kwargs``."""
    open_positional: bool = False
    """Whether it takes ``*args``."""
    required: frozenset[str] = frozenset()
    """The parameters without a default."""

    @property
    def names(self) -> frozenset[str]:
        """Every parameter that has a name."""
        return self.keywords.union(self.positional)


class Construction(NamedTuple):
    """A call that runs a known constructor or factory, and what of it goes there."""

    call: Call
    signature: Signature
    built: str
    """The class's name as the message says it."""
    args: tuple[Arg, ...]

    @property
    def positional(self) -> list[Expr]:
        """The positional arguments before the first ``*star``."""
        return positional(self.args)


def of_class(model: Model, cls: Class | str) -> Signature | None:
    """What building ``cls`` takes; None when that is not certain."""
    if isinstance(cls, str):
        entry = catalog.known(cls)
        if entry is None or not entry.required or not entry.name.startswith(TORCH_DATA):
            return None
        return Signature(
            entry.name,
            entry.params,
            entry.keywords,
            required=frozenset(entry.params[: entry.required]),
        )
    for base in model.flow.mro(cls):
        if not isinstance(base, Class):
            return of_class(model, base) if isinstance(base, str) else None
        if base.keywords or base.bindings.get("__new__") or _is_remade(base):
            return None
        if inits := base.bindings.get("__init__"):
            init = base.method("__init__")
            if init is None or init.decorators or len(inits) > 1:
                return None
            return _of_function(base, init)
        if len(base.bases) > 1:
            return None
    return None


def _is_remade(cls: Class) -> bool:
    """Whether a decorator writes the constructor (a registry's decorator gives the class back)."""
    return any("dataclass" in (last_name(_called(d)) or "dataclass") for d in cls.decorators)


def _called(decorator: Expr) -> Expr:
    return decorator.func if isinstance(decorator, Call) else decorator


def _of_function(owner: Class, init: Function) -> Signature | None:
    params = init.params
    if not params or not params[0].is_positional:
        return None
    rest = params[1:]
    return _signature(owner, rest)


def _signature(owner: Class | Function, rest: list[Param]) -> Signature:
    return Signature(
        owner,
        tuple(p.name for p in rest if p.is_positional),
        frozenset(p.name for p in rest if p.kind == "keyword_only"),
        open_keywords=any(p.kind == "kwarg" for p in rest),
        open_positional=any(p.kind == "vararg" for p in rest),
        required=frozenset(p.name for p in rest if p.default is None and not p.is_star),
    )


def constructions(model: Model) -> Iterator[Construction]:
    """Every call that certainly builds one sampler or loader class with known parameters."""
    for obj in model.constructions():
        call = obj.site
        assert call is not None
        targets = model.flow.values(call.func)
        if len(targets) != 1:
            continue
        target = next(iter(targets))
        if isinstance(target, ClassRef):
            signature = of_class(model, target.cls)
        elif isinstance(target, Ext):
            signature = of_class(model, target.dotted)
        else:
            continue
        if signature is not None:
            yield Construction(call, signature, obj.name, tuple(call.args))


def factory_calls(model: Model) -> Iterator[Construction]:
    """Every call that certainly runs one function of the tree that returns a sampler or loader."""
    todo = list(dict.fromkeys(obj.site.scope for obj in model.constructions() if obj.site))
    seen = set(todo)
    for scope in todo:
        if not isinstance(scope, Function) or not _gives_one(model, scope):
            continue
        for call in model.flow.callers(scope):
            if call.scope not in seen:
                seen.add(call.scope)
                todo.append(call.scope)
            signature = _of_callee(model, call, scope)
            if signature is not None:
                yield Construction(call, signature, scope.name, tuple(call.args))


def _gives_one(model: Model, function: Function) -> bool:
    """Whether a function returns a sampler or a loader, perhaps among others."""
    todo: list[Value] = [
        value
        for each in function.returns
        if each.value is not None
        for value in model.flow.values(each.value)
    ]
    parts = [*todo]
    for value in todo:
        items = value.items if isinstance(value, Pack) else []
        if isinstance(value, Obj) and value.site is not None and model.role(value) is None:
            items = [arg.value for arg in value.site.args]  # what keeps a loader beside others
        parts += [each for item in items for each in model.flow.values(item)]
    return any(isinstance(part, Obj) and model.role(part) is not None for part in parts)


def _of_callee(model: Model, call: Call, function: Function) -> Signature | None:
    """What a call of the function may give; None where it may run another one."""
    values = model.flow.values(call.func)
    value = next(iter(values)) if len(values) == 1 else None
    if not isinstance(value, FuncRef) or value.function is not function:
        return None
    kept = function.is_classmethod or function.is_static
    if len(function.decorators) > kept or _is_overridden(model, function):
        return None
    is_bound = value.bound is not None or function.is_classmethod
    if function.is_bound and not is_bound:
        return None
    return _signature(function, function.params[is_bound:])


def _is_overridden(model: Model, function: Function) -> bool:
    """Whether a class that derives from the method's has another one of its name."""
    return function.cls is not None and any(
        derived.bindings.get(function.name) for derived in model.flow.subclasses(function.cls)
    )


def base_inits(model: Model, cls: Class) -> Iterator[Construction]:
    """The calls of a base's ``__init__`` in the class's own, where the base is certain."""
    for call in model.flow.base_init_calls(cls):
        assert isinstance(call.func, Attr)
        owner = call.func.value
        args = tuple(call.args)
        base: Class | str | None = None
        if isinstance(owner, Call) and last_name(owner.func) == "super":
            start = owner.positional[0] if owner.positional else None
            if (start is None or last_name(start) == cls.name) and _is_single_line(model, cls):
                above = model.flow.mro(cls)[1:]
                first = above[0] if above else None
                base = first if isinstance(first, (Class, str)) else None
        else:
            values = model.flow.values(owner)
            value = next(iter(values)) if len(values) == 1 else None
            args = args[1:]
            if isinstance(value, ClassRef) and value.cls is not cls:
                base = value.cls
            elif isinstance(value, Ext):
                base = value.dotted
        if base is None:
            continue
        signature = of_class(model, base)
        if signature is not None:
            name = base.name if isinstance(base, Class) else base.rpartition(".")[2]
            yield Construction(call, signature, name, args)


def _is_single_line(model: Model, cls: Class) -> bool:
    """Whether ``super()`` in the class can only mean its one base, in subclasses too."""
    return len(cls.bases) == 1 and all(
        len(derived.bases) == 1 for derived in model.flow.subclasses(cls)
    )


def refuser(
    model: Model, func: Expr, keyword: str, but: Collection[Scope | None] = ()
) -> str | None:
    """The name of what a call may build or call instead, and that takes no such argument.

    ``kind = RandomSampler if alone else DistributedSampler``: a ``seed`` fits one of them only.
    The functions (and the ``__init__`` of classes) ``but`` are to take it.
    """
    values = model.flow.values(func)
    for value in values if len(values) > 1 else ():
        if isinstance(value, FuncRef):
            name = value.function.name
            init: Function | None = value.function
            signature: Signature | None = _signature(value.function, value.function.params)
        else:
            known = value.cls if isinstance(value, ClassRef) else getattr(value, "dotted", None)
            signature = of_class(model, known) if known is not None else None
            name = known.name if isinstance(known, Class) else str(known).rpartition(".")[2]
            init = known.method("__init__") if isinstance(known, Class) else None
        takes = signature is None or signature.open_keywords or keyword in signature.names
        if not takes and (init is None or init not in but):
            return name
    return None


def is_changed(table: Name) -> bool:
    """Whether something is stored in the dict, called on it, or it is passed on whole."""
    return stored_in(table) != []


def stored_in(table: Name) -> list[Store] | None:
    """What is stored in the dict; None if it is called on, or passed on whole."""

    def is_it(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id == table.id

    scopes = [scope for scope in table.scope.module.scopes if table.scope in scope.outward()]
    if any(
        (isinstance(call.func, Attr) and is_it(call.func.value))
        or any(not arg.stars and is_it(arg.value) for arg in call.args)
        for scope in scopes
        for call in scope.calls
    ):
        return None
    return [store for scope in scopes for store in scope.stores if is_it(store.target.value)]


def never_in(unpacked: Expr) -> frozenset[str]:
    """What the ``**kwargs`` of a function never hold: the other parameters, which take that."""
    if not isinstance(unpacked, Name):
        return frozenset()
    function, param = read_parameter(unpacked) or (None, None)
    if function is None or param is None or param.kind != "kwarg" or is_changed(unpacked):
        return frozenset()
    named = (one for one in function.params if not one.is_star)
    return frozenset(one.name for one in named if one.kind != "positional_only")
