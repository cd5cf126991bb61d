"""Where loaders are iterated, through whatever wraps them."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Container, Iterator
from typing import NamedTuple

from sampler_lint.analysis.origins import given_by
from sampler_lint.analysis.values import Ext, ExtObj, FuncRef, Obj, Unknown
from sampler_lint.domain.concepts import ASKS_BY_NAME
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.model import DATA_LOADER, Model
from sampler_lint.domain.programs import once_a_program
from sampler_lint.domain.samplers import sharding_programs
from sampler_lint.domain.wrapping import (
    flat,
    held,
    iterated,
    iterated_attributes,
    loader_below,
    parameter_kept,
)
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import (
    children,
    makes_iterator,
    self_class,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
    Class,
    Const,
    Expr,
    For,
    Function,
    Loop,
    Map,
    Name,
    Return,
    Scope,
    Seq,
    Simple,
    Stmt,
    While,
    dotted,
    last_name,
)

#: What hands on no batches of what it is given: numbers, keys, or one batch.
_NO_BATCHES = frozenset({"range", "next", "items", "keys", "values"})


class Pass(NamedTuple):
    """One place where a loader is iterated."""

    scope: Scope
    stmt: Stmt
    source: Expr
    """The expression that gives the loader (``loader`` in ``enumerate(loader)``)."""
    loader: Obj
    iterated: Expr
    """What is iterated there itself, if a wrapper that was made elsewhere holds the loader."""


@remembered
def passes(model: Model) -> list[Pass]:
    """Every place where a known loader is iterated, in programs that shard by an epoch."""
    return list(dict.fromkeys(_passes(model, sharding_programs(model))))


@once_a_program
def passes_near(model: Model, scope: Scope) -> list[Pass]:
    """Those of the program that a scope is of, also of one that shards nothing."""
    program = model.project.program_of(model.module_of(scope))
    is_among = program in sharding_programs(model)
    return passes(model) if is_among else list(dict.fromkeys(_passes(model, {program})))


def _passes(model: Model, programs: Collection[str]) -> Iterator[Pass]:
    for module in model.modules:
        if model.project.program_of(module) not in programs:
            continue
        for scope in module.facts.scopes:
            for source, stmt in scope.iterated:
                if not _is_replaced(model, scope, source):
                    yield from passes_over(model, scope, stmt, source, set())
            for source, stmt in taken_from(scope):
                yield from _passes_by_steps(model, scope, stmt, source)


def taken_from(scope: Scope) -> Iterator[tuple[Expr, Stmt]]:
    """What a scope goes over step by step, by ``next``, and where."""
    for call in scope.calls if "next" in scope.called else ():
        if isinstance(call.func, Name) and call.func.id == "next" and call.stmt is not None:
            yield from ((each, call.stmt) for each in call.positional[:1])


def _passes_by_steps(model: Model, scope: Scope, stmt: Stmt, source: Expr) -> Iterator[Pass]:
    """The passes over loaders by what is made around them there: ``cycle(loader)``.

    Whatever ``iter`` makes is known to be iterated where that is called.
    """
    for value in model.flow.values(source):
        if (
            isinstance(value, ExtObj)
            and value.dotted != "iter"
            and makes_iterator(value.dotted)
            and value.site.scope is scope
        ):
            yield from _passes_over_made(model, scope, stmt, value, set(), source)


def _is_replaced(model: Model, scope: Scope, source: Expr) -> bool:
    """Whether every class that keeps what a method iterates has another method in its place."""
    cls = scope.cls if isinstance(scope, Function) else None
    if cls is None or not isinstance(scope, Function):
        return False
    names = {
        node.name
        for node in walk(source)
        if isinstance(node, Attr) and self_class(node.value) is not None
    }
    keeping = [
        each
        for each in (cls, *(model.flow.subclasses(cls) if names else ()))
        if any(
            _holds_something(store.value)
            for base in model.flow.own_mro(each)
            for name in names
            for store in model.project.own_stores(name, base)
        )
    ]
    methods = [model.flow.method(each, scope.name) for each in keeping]
    return bool(keeping) and all(
        isinstance(each, Function) and each is not scope and not _calls_base(model, each, scope)
        for each in methods
    )


def have_no_object(model: Model, one: Scope, other: Scope) -> bool:
    """Whether two methods of one line of classes are never those of one and the same object.

    A class that has one of them has another one in the place of the other. Of two classes that
    have a base in common, where its methods alone call both.
    """
    if not isinstance(one, Function) or not isinstance(other, Function):
        return False
    first, second = one.cls, other.cls
    if first is None or second is None or first is second:
        return False
    lower, upper = (first, second) if second in model.flow.mro(first) else (second, first)
    shared = {*model.flow.own_mro(first)} & {*model.flow.own_mro(second)}
    if upper not in shared and not all(_is_begun_by(model, each, shared) for each in (one, other)):
        return False
    return not any(
        _has_method(model, cls, one) and _has_method(model, cls, other)
        for cls in (lower, *model.flow.subclasses(lower))
    )


def _is_begun_by(model: Model, method: Function, classes: Container[object]) -> bool:
    """Whether nothing but methods of some classes calls a method, of their own object."""
    calls = model.flow.callers(method)
    return bool(calls) and all(
        isinstance(call.func, Attr) and self_class(call.func.value) in classes for call in calls
    )


def _has_method(model: Model, cls: Class, method: Function) -> bool:
    """Whether a method is a class's own or inherited one, or called by what is in its place."""
    todo = [model.flow.method(cls, method.name)]
    for found in todo:
        if not isinstance(found, Function) or found is method:
            return True
        named = (call for call in found.calls if last_name(call.func) == method.name)
        todo += {each for call in named for each in model.flow.callees(call)} - {*todo}
    return False


def _calls_base(model: Model, method: Function, base: Function) -> bool:
    """Whether a method calls the one of a base that it replaces."""
    named = (call for call in method.calls if last_name(call.func) == base.name)
    return any(base in model.flow.callees(call) for call in named)


def _holds_something(value: Expr | None) -> bool:
    """Whether a value is none of those that only say what will be kept: None, ``iter([])``."""
    if isinstance(value, (Seq, Map)):
        return bool(children(value))
    if isinstance(value, Call) and dotted(value.func) in vars(builtins):
        return any(map(_holds_something, value.positional))
    return not isinstance(value, Const)


def passes_over(
    model: Model,
    scope: Scope,
    stmt: Stmt,
    source: Expr,
    seen: set[tuple[Expr, Stmt, Expr | None]],
    iterated: Expr | None = None,
) -> Iterator[Pass]:
    """The passes that iterating ``source`` in ``stmt`` makes, through whatever wraps the loader.

    What one statement iterates leads over the same wrappers on many ways: ``seen`` are those that
    have been gone through.
    """
    if isinstance(source, Const) or (source, stmt, iterated) in seen:
        return
    seen.add((source, stmt, iterated))
    if isinstance(source, Choice):
        for option in source.options:
            yield from passes_over(model, scope, stmt, option, seen, iterated)
        return
    if (below := loader_below(model, scope, source)) is not None:
        for loader in model.loaders:
            cls = loader.cls if loader.site is not None else None
            if isinstance(cls, Class) and below.cls in model.flow.mro(cls):
                yield Pass(scope, stmt, below.me, loader, iterated or below.me)
        return
    if isinstance(source, Call):
        if last_name(source.func) in _NO_BATCHES:
            return
        is_loader = source.stmt is stmt and any(
            isinstance(value, Obj) for value in model.flow.values(source)
        )
        if _hands_on(model, source) and not is_loader:
            for arg in source.positional:
                yield from passes_over(model, scope, stmt, arg, seen, iterated)
            for each in _spread(model, source):
                for found in passes_over(model, scope, stmt, each, seen, iterated):
                    # What the list holds may stand elsewhere: it is no name for the loader here.
                    yield found._replace(source=source, iterated=source)
            yield from _passes_over_owner(model, scope, stmt, source, seen, iterated or source)
            return
        if (handed := _given_back(model, source)) is not None:
            for arg in handed:
                yield from passes_over(model, scope, stmt, arg, seen, iterated)
            return
    iterated = iterated or source
    for value in model.flow.values(source):
        if isinstance(value, Obj) and value.site is not None and _gives_order(model, value, scope):
            yield Pass(scope, stmt, source, value, iterated)
        elif isinstance(value, Obj) and isinstance(value.cls, Class):
            for loader, given in _handed_on(model, value):
                named = isinstance(given, (Name, Attr)) and given.scope is scope
                yield Pass(scope, stmt, given if named else source, loader, iterated)
        elif isinstance(value, ExtObj) and value.site is not source:
            yield from _passes_over_made(model, scope, stmt, value, seen, iterated)


def _hands_on(model: Model, call: Call) -> bool:
    """Whether a call may be an outside one that hands on what it is given: enumerate, zip, tqdm.

    One of them may be a generator of the tree, which does so where there is no such library.
    """
    values = model.flow.values(call.func)
    outside = [value for value in values if isinstance(value, (Ext, ExtObj, Unknown))]
    others = [value for value in values if value not in outside]
    if not all(isinstance(v, FuncRef) and v.function.is_generator and outside for v in others):
        return False
    # What `getattr` reads of an object is no wrapper of it.
    return last_name(call.func) != "prepare" and not ASKS_BY_NAME.is_call(call)


def _given_back(model: Model, call: Call) -> list[Expr] | None:
    """What a function of the tree hands on of what a call gives it, if it returns nothing else.

    As it does with a progress bar around it, or without; or where it stands for a library's own
    that is not there.
    """
    given: list[Expr] = []
    values = model.flow.values(call.func)
    for value in values:
        if isinstance(value, Ext) and any(isinstance(each, FuncRef) for each in values):
            given += call.positional[:1]
            continue
        function = value.function if isinstance(value, FuncRef) else None
        if function is None or function.is_generator or not function.returns:
            return None
        for stmt in function.returns:
            options = stmt.value.options if isinstance(stmt.value, Choice) else [stmt.value]
            for handed in options:
                while (
                    isinstance(handed, Call)
                    and handed.positional
                    and _hands_on(model, handed)
                    and not any(isinstance(made, Obj) for made in model.flow.values(handed))
                ):
                    handed = handed.positional[0]
                found = given_by(model.flow, call, handed) if isinstance(handed, Name) else None
                if found is None:
                    return None
                given.append(found)
    return given or None


def _spread(model: Model, call: Call) -> Iterator[Expr]:
    """What the lists hold that a call is given by ``*``: ``zip(*loaders)``."""
    for arg in call.args:
        for value in model.flow.values(arg.value) if arg.stars == 1 else ():
            yield from held(value)


def _gives_order(model: Model, value: Obj, scope: Scope) -> bool:
    """Whether it is a loader, or a sampler that is iterated by hand (and not by another one)."""
    role = model.role(value)
    if role == "loader" or role is None:
        return role is not None
    owner = scope.cls if isinstance(scope, Function) else None
    return owner is None or not (
        model.is_sampler_class(owner) or model.flow.is_a(owner, DATA_LOADER) is not False
    )


def _passes_over_made(
    model: Model,
    scope: Scope,
    stmt: Stmt,
    made: ExtObj,
    seen: set[tuple[Expr, Stmt, Expr | None]],
    iterated: Expr,
) -> Iterator[Pass]:
    """The passes over what a library made around a loader before: ``bar = tqdm(loader)``."""
    site = made.site
    if site.stmt is None or last_name(site.func) in _NO_BATCHES:
        return
    here = site.scope is scope
    # An iterator runs once: made outside of a loop, it is not started again in it.
    once = makes_iterator(last_name(site.func)) and here and loops_of(site.stmt) != loops_of(stmt)
    where = site.stmt if once else stmt
    yield from _passes_over_owner(model, scope, where, site, seen, iterated)
    for arg in site.positional:
        yield from passes_over(model, scope, where, arg, seen, None if here else iterated)
        # An object made of several loaders takes turns; a function hands on the loaders themselves.
        for value in model.flow.values(arg) if (last_name(site.func) or "")[:1].isupper() else ():
            for each in held(value):
                for found in passes_over(model, scope, where, each, seen, iterated):
                    yield found._replace(source=iterated, iterated=iterated)


def _passes_over_owner(
    model: Model,
    scope: Scope,
    stmt: Stmt,
    call: Call,
    seen: set[tuple[Expr, Stmt, Expr | None]],
    iterated: Expr,
) -> Iterator[Pass]:
    """The passes over what a library's object gives that was made around a loader."""
    for value in model.flow.values(call.func.value) if isinstance(call.func, Attr) else ():
        if isinstance(value, ExtObj) and (call, stmt, iterated) not in seen:
            seen.add((call, stmt, iterated))
            yield from _passes_over_made(model, scope, stmt, value, seen, iterated)


@remembered
def _handed_on(model: Model, wrapper: Obj) -> list[tuple[Obj, Expr]]:
    """The loaders that an object (a prefetcher) holds and iterates when it is iterated."""
    return list(_loaders_held(model, wrapper))


def _loaders_held(
    model: Model, wrapper: Obj, around: frozenset[Class | str] = frozenset()
) -> Iterator[tuple[Obj, Expr]]:
    site, cls = wrapper.site, wrapper.cls
    around |= {cls}
    if site is None or not isinstance(cls, Class):
        return
    kept = [
        (name, value)
        for name in _iterated_attributes(model, cls)
        for value in flat(model, model.flow.ask_field(wrapper, name), dicts=True)
        if isinstance(value, Obj) and value.site and any(_loaders_of(model, value, around))
    ]
    if not kept:
        return
    given = {
        value: arg.value
        for arg in site.args
        for value in flat(model, model.flow.values(arg.value), dicts=True)
    }
    # The attribute is one for all wrappers of the class; this one has what it was given.
    own = {name for name, value in kept if value in given}
    others = {
        value for name, value in kept if name in own or _is_given_another(model, wrapper, cls, name)
    }
    for _, value in kept:
        if value in given or value not in others:
            for loader in _loaders_of(model, value, around):
                yield loader, given.get(value, site)


def never_ends(model: Model, wrapper: Obj) -> bool:
    """Whether an object begins what it holds again for ever, or goes over one that does."""
    cls, site = wrapper.cls, wrapper.site
    if not isinstance(cls, Class) or site is None:
        return False
    iterate = model.flow.method(cls, "__iter__")
    if isinstance(iterate, Function) and iterate.yields and any(map(_is_endless, iterate.loops)):
        return True
    given = {value for arg in site.args for value in model.flow.values(arg.value)}
    held = {
        value
        for name in _iterated_attributes(model, cls)
        for value in model.flow.ask_field(wrapper, name)
        if value in given
    }
    return bool(held) and all(
        isinstance(each, Obj) and each.cls != cls and never_ends(model, each) for each in held
    )


def _is_endless(loop: Loop) -> bool:
    """Whether it is ``while True``, and nothing inside leaves it."""
    return (
        isinstance(loop, While)
        and isinstance(loop.test, Const)
        and bool(loop.test.value)
        and not any(
            isinstance(stmt, Return) or (isinstance(stmt, Simple) and stmt.kind == "break")
            for stmt in statements(loop.body)
        )
    )


def _loaders_of(model: Model, held: Obj, around: frozenset[Class | str]) -> list[Obj]:
    """The loaders that going over what is held goes over: it may be a wrapper, of another class."""
    if model.role(held) == "loader":
        return [held]
    if held.cls in around or len(around) > 1 or not isinstance(held.cls, Class):
        return []  # deeper ones are too many to go through in a big tree
    return [loader for loader, _ in _loaders_held(model, held, around)]


def _is_given_another(model: Model, wrapper: Obj, cls: Class, name: str) -> bool:
    """Whether an attribute keeps what the constructor is given, and no loader is given here."""
    kept = parameter_kept(model, cls, name)
    given = model.argument(wrapper, kept.name) if kept is not None else None
    return given is not None and all(
        not isinstance(value, Obj) and not isinstance(value, Unknown)
        for value in model.flow.values(given)
    )


@remembered
def _iterated_attributes(model: Model, cls: Class) -> list[str]:
    """What an object of the class keeps and iterates when it is iterated, by a library perhaps."""
    run = reach(model, cls, "__iter__", "__next__")
    handed = {
        arg.name
        for function in run.functions
        for source in iterated(function)
        if isinstance(source, Call) and _hands_on(model, source)
        for arg in source.positional
        if isinstance(arg, Attr) and self_class(arg.value) is not None
    }
    return sorted(iterated_attributes(model, run) | handed)


def loops_of(stmt: Stmt) -> list[Stmt]:
    """The loops around a statement, innermost first."""
    return [outer for outer in stmt.ancestors() if isinstance(outer, (For, While))]
