"""What has to be true where a statement or a call stands, as the code around it asks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TypeAlias, TypeGuard

from sampler_lint.analysis.asked import chosen, decided, tests, upright
from sampler_lint.analysis.origins import HANDED_ON, Hop, Step, onward, origins
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ClassRef, Ext, FuncRef, Obj
from sampler_lint.domain.concepts import EVALUATES, FOR_TRAINING, PROCESSES, TRAINS
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.settled import never_runs
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import method_around, owner_of, self_class, unparse, walk
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    Attr,
    Binding,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Name,
    Scope,
    Stmt,
    Unary,
    While,
    dotted,
)

#: A question that has one answer in a run, and the answer.
Condition: TypeAlias = "tuple[object, bool]"


def contradict(model: Model, one: Iterable[Stmt | Call], other: Iterable[Stmt | Call]) -> bool:
    """Whether a question that both places rest on is answered yes at one and no at the other.

    The questions are calls without arguments (``is_distributed()``), which give one answer in a
    run, settings that are spelled alike (``args.distributed``), and how either compares
    (``args.local_rank == -1``, ``dist.get_world_size() > 1``).
    """
    there = frozenset().union(*(conditions(model, place) for place in one))
    if not there:
        return False
    here = frozenset().union(*(conditions(model, place) for place in other))
    return any((question, not answer) in there for question, answer in here) or any(
        _is_refuted(kind, question, answer)
        for known, others in ((there, here), (here, there))
        for kind, is_it in known
        if is_it and _is_kind(kind)
        for question, answer in others
    )


def _is_refuted(kind: tuple[object, str], question: object, answer: bool) -> bool:
    """Whether something that is equal to a literal gives another answer to a question."""
    if _is_kind(question):
        return answer and question[0] == kind[0] and question[1] != kind[1]
    match question:
        case (asked, "In", str(part)) if asked == kind[0]:
            whole = ast.literal_eval(kind[1])
            return isinstance(whole, str) and (part in whole) is not answer
    return False


def _is_kind(question: object) -> TypeGuard[tuple[object, str]]:
    """Whether it asks whether something is equal to one literal."""
    return isinstance(question, tuple) and len(question) == 2


def excludes(model: Model, through: Call | None, place: Call | None, *around: Call) -> bool:
    """Whether what a call of a factory passes excludes the branch in which a place of it stands.

    What that hands on has the values that the calls ``around`` it pass, the next one first.
    """
    return through is not None and place is not None and _excludes(model, [through, *around], place)


def _excludes(
    model: Model,
    through: Sequence[Call],
    place: Stmt | Call,
    parameters_of: Function | None = None,
) -> bool:
    """The same, of the tests that ask for nothing but parameters of a function, if one is given.

    ``through`` is the call of the place's function, and those by which the program comes to it.
    """
    for test, answer in tests(place):
        if parameters_of is not None and not asks_parameters(test, parameters_of):
            continue  # a setting may come from where nobody sees it
        if model.flow.is_never(test, answer, *through):
            return True
    return False


def is_built_without(model: Model, source: Expr, made: Obj, part: Obj) -> bool:
    """Whether each way from where an object is used to where it is built leaves a part of it out.

    By what the calls on that way pass: ``Data(cfg).loader``, built in the constructor, with a
    sampler where ``distributed`` is true.
    """
    site, place = made.site, part.site
    if site is None or place is None:
        return False
    led = [place] if place.scope is site.scope or part.through is None else [place, part.through]
    if led[-1].scope is not site.scope or not any(asked for each in led for asked in tests(each)):
        return False
    ways = ways_made(model, source, site)
    return bool(ways) and all(
        any(
            isinstance(each.scope, Function)
            and through != []
            and _excludes(model, through, each, each.scope)
            for each, through in ((each, [*led[at:], *way]) for at, each in enumerate(led, 1))
        )
        for way in ways
    )


def ways_made(model: Model, source: Expr, site: Call) -> list[list[Call]]:
    """The calls by which an object comes from where it is built, of each way, innermost first."""
    return [
        [call for _, call in step.frames]
        for step in origins(model.flow, source, HANDED_ON, more=partial(_kept_by, model))
        if step.expr is site
    ]


def _kept_by(model: Model, step: Step) -> Iterator[Step]:
    """What the constructor of an object keeps in an attribute that is read of it."""
    read = step.expr
    if not isinstance(read, Attr) or self_class(read.value) is not None:
        return
    for value in model.flow.values(read.value):
        if not isinstance(value, Obj) or value.site is None or not isinstance(value.cls, Class):
            continue
        for base in model.flow.mro(value.cls):
            init = base.method("__init__") if isinstance(base, Class) else None
            if init is None or not isinstance(base, Class):
                continue
            for store in model.project.own_stores(read.name, base):
                if store.scope is init and not store.path and store.value is not None:
                    yield onward(step, Hop.ATTRIBUTE, store.value, init, ((init, value.site),))


def is_left_out(model: Model, place: Stmt | Call, objects: Iterable[Obj] = ()) -> bool:
    """Whether every call of its function, tests aside, excludes the branch a place stands in.

    Of the calls that pass one of some objects, if any does: the others run for other objects.
    """
    if never_runs(model, place):
        return True
    scope = function_asked(model, place)
    if scope is None:
        return False
    callers = [c for c in model.flow.callers(scope) if not is_test(model.module_of(c.scope))]
    passing = [call for call in callers if _passes(model, call, objects)]
    if not passing and _is_started_elsewhere(model, scope):
        return _excludes(model, [], place, scope)  # by what it gets in another process, too
    through = passing or callers
    return bool(through) and all(_excludes(model, [call], place, scope) for call in through)


def _is_started_elsewhere(model: Model, function: Function) -> bool:
    """Whether something runs a function in another process or thread, with what it gets there."""
    return len(model.flow.starters(function)) > len(model.flow.callers(function))


def is_never_built(model: Model, cls: Class) -> bool:
    """Whether something builds a class, and every call around that leaves it out."""
    sites = [s for s in _building(model, cls) if not is_test(model.module_of(s.scope))]
    return bool(sites) and all(is_left_out(model, site) for site in sites)


def is_settled(model: Model, test: Expr, scope: Scope) -> bool:
    """Whether every call of a function, tests aside, answers a test of its parameters alike."""
    if not isinstance(scope, Function) or not asks_parameters(test, scope):
        return False
    callers = [c for c in model.flow.callers(scope) if not is_test(model.module_of(c.scope))]
    found = [model.flow.constants(test, call) for call in callers]
    found += [model.flow.constants(test)] if _is_started_elsewhere(model, scope) else []
    answers = {bool(value) for values in found for value in values or ()}
    return None not in found and len(answers) == 1


@remembered
def function_asked(model: Model, place: Stmt | Call) -> Function | None:
    """The function of a place, if a test on the way to it asks nothing but its parameters."""
    stmt = place.stmt if isinstance(place, Call) else place
    scope = stmt.scope if stmt is not None else None
    if isinstance(scope, Function) and any(
        asks_parameters(test, scope) for test, _ in tests(place)
    ):
        return scope
    return None


def asks_parameters(test: Expr, function: Function, around: frozenset[str] = frozenset()) -> bool:
    """Whether it asks for parameters alone, or variables set once to what does."""
    return not any(
        isinstance(node, (Attr, Call))
        or (isinstance(node, Name) and not _is_of_parameters(node, function, around))
        for node in walk(test)
    )


def _is_of_parameters(name: Name, function: Function, around: frozenset[str]) -> bool:
    if function.param(name.id) is not None:
        return True
    if name.id in around:
        return False  # it is set to what it was
    match function.bindings.get(name.id):
        case [
            Binding(
                how="assign",
                path=(),
                value=Call(func=Attr(name="get" | "pop", value=Name(id=rest))),
            )
        ]:
            return any(param.name == rest and param.kind == "kwarg" for param in function.params)
        case [Binding(how="assign", path=(), value=Expr() as value)]:
            return asks_parameters(value, function, around | {name.id})
    return False


def _passes(model: Model, call: Call, objects: Iterable[Obj]) -> bool:
    return any(
        obj.may_be(value)
        for arg in call.args
        for value in model.flow.values(arg.value)
        for obj in objects
    )


def told_what_for(place: Call) -> bool | None:
    """Whether a place is for training, or (False) for evaluation.

    ``phase == "train"``, ``is_train``.
    """
    for test, answer in map(upright, tests(place)):
        if isinstance(test, (Name, Attr)) and FOR_TRAINING.names(test):
            return answer
        if isinstance(test, Compare) and isinstance(asked := test.rights[0], Const):
            is_it = (test.ops[0] in EQUAL) is answer if test.ops[0] in EQUAL | UNEQUAL else None
            if is_it is not None and isinstance(asked.value, str):
                if TRAINS.says(asked.value):
                    return is_it
                if EVALUATES.says(asked.value) and is_it:
                    return False
    return None


def conditions(model: Model, place: Stmt | Call) -> frozenset[Condition]:
    """What the branches around a place, and those before it that leave, ask."""
    if not isinstance(place, Call):
        return _around(model, place)
    if place.stmt is None:
        return frozenset()
    return _around(model, place.stmt).union(
        *(_asked(model, test, answer) for test, answer in chosen(place))
    )


def _around(model: Model, stmt: Stmt) -> frozenset[Condition]:
    known: dict[Stmt | None, frozenset[Condition]] = model.memo.setdefault(conditions, {})
    inner: list[Stmt] = []
    for each in chain([stmt], stmt.ancestors()):
        if each in known:
            break
        inner.append(each)
    for each in reversed(inner):
        around = _of_class(model, each.scope) if each.parent is None else known[each.parent]
        asked = {
            condition for test, answer in decided(each) for condition in _asked(model, test, answer)
        }
        known[each] = around | asked if asked else around
    return known[stmt]


def _of_class(model: Model, scope: Scope) -> frozenset[Condition]:
    """What is asked wherever an object is built that has a method, or where its class is chosen."""
    method = method_around(scope)
    if method is None or method.cls is None:
        return frozenset()
    known: dict[Class, frozenset[Condition]] = model.memo.setdefault(_of_class, {})
    if method.cls not in known:
        known[method.cls] = frozenset()  # for what its own methods build
        found = [
            conditions(model, site).union(*_where_chosen(model, site.func, cls))
            for cls in (method.cls, *model.flow.subclasses(method.cls))
            for site in _building(model, cls)
        ]
        known[method.cls] = frozenset.intersection(*found) if found else frozenset()
    return known[method.cls]


def _building(model: Model, cls: Class) -> Iterator[Call]:
    return (made.site for made in model.flow.built(cls) if made.site is not None)


def _where_chosen(model: Model, func: Expr, cls: Class) -> Iterator[frozenset[Condition]]:
    """What is asked at the only binding that gives a name a class: ``Kind = A`` below a test."""
    owner = owner_of(func) if isinstance(func, Name) else None
    if isinstance(func, Name) and owner is not None:
        found = [
            each
            for each in definitions(owner, func)
            if each.value is not None and ClassRef(cls) in model.flow.values(each.value)
        ]
        if len(found) == 1 and found[0].stmt is not None:
            yield _around(model, found[0].stmt)


def _asked(model: Model, test: Expr, answer: bool) -> Iterator[Condition]:
    if isinstance(test, Unary) and test.op == "Not":
        yield from _asked(model, test.operand, not answer)
    elif isinstance(test, Choice) and test.kind != "if":
        if answer == (test.kind == "and"):
            for option in test.options:
                yield from _asked(model, option, answer)
    elif isinstance(test, Compare) and test.ops[0] in _SEARCHES and isinstance(test.left, Const):
        asked = _question(model, test.rights[0])
        if asked is not None and len(test.ops) == 1 and isinstance(test.left.value, str):
            yield (asked, "In", test.left.value), answer is _SEARCHES[test.ops[0]]
    elif isinstance(test, Compare) and len(test.ops) == 1:
        asked, (kind,), op = _question(model, test.left), test.rights, test.ops[0]
        counts = isinstance(test.left, Call) and not PROCESSES.names(test.left.func)
        if asked is None or counts or not _is_plain(kind):
            return  # what a function counts may be another number the next time
        if op in EQUAL | UNEQUAL:
            yield (asked, unparse(kind)), answer is (op in EQUAL)
        elif op in _ORDERED:
            same, is_yes = _ORDERED[op]
            yield (asked, same, unparse(kind)), answer is is_yes
    elif (asked := _question(model, test)) is not None:
        yield asked, answer


_SEARCHES = {"In": True, "NotIn": False}
#: Comparisons by the one that they are, or whose opposite they are.
_ORDERED = {"Gt": ("Gt", True), "LtE": ("Gt", False), "Lt": ("Lt", True), "GtE": ("Lt", False)}


def _question(model: Model, expr: Expr) -> object:
    """What has one answer in a run: a setting as it is spelled, a function without arguments.

    Or a variable of a function that is bound once: in a call of that, as good as.
    """
    if isinstance(expr, Name):
        return _only_binding(expr)
    if not isinstance(expr, Call):
        return _setting(expr)
    values = model.flow.values(expr.func) if not expr.args else frozenset()
    value = next(iter(values)) if len(values) == 1 else None
    if isinstance(value, Ext):
        return value.dotted
    return value.function if isinstance(value, FuncRef) else None


def _only_binding(name: Name) -> Binding | None:
    owner = owner_of(name)
    found = owner.bindings.get(name.id, ()) if isinstance(owner, Function) else ()
    if len(found) != 1 or not found[0].is_plain:
        return None
    around = found[0].stmt.ancestors() if found[0].stmt is not None else ()
    return None if any(isinstance(each, (For, While)) for each in around) else found[0]


def _setting(expr: Expr) -> str | None:
    """How a setting is spelled: ``args.distributed``, also of the ``self.args`` that kept them."""
    if not isinstance(expr, Attr) or (isinstance(expr.value, Name) and expr.value.id == "self"):
        return None
    spelled = dotted(expr)
    return spelled.removeprefix("self.") if spelled is not None else None


def _is_plain(expr: Expr) -> bool:
    """Whether it is a number, text, or name of Python itself, as it stands."""
    return isinstance(expr.operand if isinstance(expr, Unary) else expr, Const)
