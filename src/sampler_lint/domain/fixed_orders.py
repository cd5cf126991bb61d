"""Orders that are drawn when an object is built, and that every pass goes by ever after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from sampler_lint.analysis.asked import tests, upright
from sampler_lint.analysis.origins import (
    LOCAL,
    Hop,
    Step,
    as_passed,
    depends_on,
    ends,
    only,
    origins,
)
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import Ext, ExtObj, Lit, Obj, Unknown, Value
from sampler_lint.catalog.torch import MAP_STYLE, SEQUENTIAL_SAMPLER
from sampler_lint.domain.concepts import (
    DRAW,
    EVALUATES,
    GIVES_STATE,
    ORDERS,
    RESTORES,
    TRAINS,
    WORLD_SIZE,
    called_name,
)
from sampler_lint.domain.conditions import is_settled
from sampler_lint.domain.datasets import is_iterable, is_part, orders_itself, wholes
from sampler_lint.domain.draws import shuffled_by, shuffles_of
from sampler_lint.domain.epoch_state import (
    Reach,
    changed_elsewhere,
    epoch_state,
    is_closed,
    is_fixed,
    is_no_other_self,
    reach,
    seed_argument,
    seed_parts,
    seedings_of,
)
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, own_scopes, scopes_inside
from sampler_lint.domain.paths import Way, ways
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.ranks import built_classes, is_about_processes, joined_before
from sampler_lint.domain.samplers import always_draws, is_distributed_sampler, shuffles
from sampler_lint.domain.splits import opens_table
from sampler_lint.domain.wrapping import iterated, iterated_attributes
from sampler_lint.limits import MOST_SEARCHED_FOR_STEP
from sampler_lint.parameters import Role, role_of
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import (
    nodes_in,
    owner_of,
    self_class,
    self_stores,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    ModuleFacts,
    Name,
    Other,
    Return,
    Scope,
    While,
    Yield,
    last_name,
)
from sampler_lint.workspace.project import Module

#: The methods of a table of `datasets` that put its rows in another order.
_PUTS_IN_ORDER = frozenset({"shuffle", "sort", "train_test_split"})
_CONSTRUCTED = LOCAL | Hop.PART | Hop.ELEMENT | Hop.RETURN


class FixedOrder(NamedTuple):
    """An order that an object draws once."""

    draw: Call
    attribute: str
    """Where the object keeps it."""


def order_of_passes(model: Model, cls: Class) -> FixedOrder | None:
    """The order that a sampler draws when it is built, and that all its passes go by."""
    found = reach(model, cls, "__iter__", "__next__")
    if _is_drawn_in(model, found) or epoch_state(model, cls).reads(found):
        return None
    taken = iterated_attributes(model, found) | {name for name, _ in _items(model, found)}
    return _drawn_once(model, cls, found, taken)


def order_without_end(model: Model, cls: Class) -> Call | None:
    """The draw before a loop without end in a pass that goes over what was drawn in each turn."""
    found = reach(model, cls, "__iter__", "__next__")
    for function in found.functions:
        for loop in function.loops:
            if not isinstance(loop, While) or not _is_endless(loop):
                continue
            inside = [call for call in function.calls if call.stmt and loop.encloses(call.stmt)]
            # What is called may order it anew.
            if any(DRAW.is_call(call) or model.flow.callees(call) for call in inside):
                continue
            for name in _walked(loop):
                drawn = _drawn_before(model, function, loop, name)
                if drawn is not None:
                    return drawn
    return None


def _is_endless(loop: While) -> bool:
    return isinstance(loop.test, Const) and bool(loop.test.value)


def _walked(loop: While) -> Iterator[Name]:
    """The variables that a loop goes over, as a whole or all that is a rank's."""
    for stmt in statements(loop.body):
        nodes = nodes_in([stmt])
        yielded = (node.value for node in nodes if isinstance(node, Yield) and node.delegates)
        for order in filter(None, (stmt.iter if isinstance(stmt, For) else None, *yielded)):
            while (inner := _in_other_form(order)) is not None:
                order = inner
            if isinstance(order, Name):
                yield order


def _drawn_before(model: Model, function: Function, loop: While, name: Name) -> Call | None:
    """The draw that makes, or orders, what a variable holds before a loop that leaves it alone."""
    bindings = function.bindings.get(name.id, ())
    if len(bindings) != 1 or bindings[0].stmt is None or loop.encloses(bindings[0].stmt):
        return None
    step = depends_on(model.flow, name, _orders_all, LOCAL | Hop.PART)
    if step is not None and isinstance(step.expr, Call):
        return step.expr
    shuffles = shuffles_of(function, name.id)
    return next((c for c in shuffles if c.stmt and not loop.encloses(c.stmt)), None)


def _orders_all(expr: Expr) -> bool:
    """Whether a call gives all of what it is given in another order, and not a part of it."""
    return isinstance(expr, Call) and ORDERS.is_call(expr) and called_name(expr) != "sample"


def order_of_items(model: Model, cls: Class) -> FixedOrder | None:
    """The order that a dataset draws when it is built, and that it numbers its items by."""
    found = reach(model, cls, "__getitem__")
    return _drawn_once(model, cls, found, set(_numbered(model, found)), _takes_some)


def order_of_module(model: Model, cls: Class) -> Call | None:
    """The draw of a module's own code that the passes, or the items, of a class go by for ever."""
    found = reach(model, cls, "__iter__", "__next__", "__getitem__")
    if found.opaque or _is_drawn_in(model, found) or epoch_state(model, cls).reads(found):
        return None
    for name in _taken_names(model, found):
        module = owner_of(name)
        if not isinstance(module, ModuleFacts) or any(
            isinstance(scope, Function) and name.id in scope.declared for scope in module.scopes
        ):
            continue
        drawn = [*_draws_of(module, name.id)]
        if len(drawn) == 1 and drawn[0].scope is module:
            return drawn[0]
    return None


def _taken_names(model: Model, found: Reach) -> Iterator[Name]:
    """The variables that code iterates, or takes an item of by the number that it is asked for."""
    for function in found.functions:
        for source in iterated(function):
            steps = origins(model.flow, source, LOCAL)
            yield from (step.expr for step in steps if isinstance(step.expr, Name))
        for node in nodes_in(statements(function.body)):
            if (
                isinstance(node, Index)
                and isinstance(node.value, Name)
                and _is_numbered(model, node)
            ):
                yield node.value


def _draws_of(module: ModuleFacts, name: str) -> Iterator[Call]:
    """The calls of a file that draw, or shuffle, what a variable of it holds."""
    for call in ORDERS.calls_in(module.all_calls):
        given, stmt = shuffled_by(call), call.stmt
        is_shuffled = isinstance(given, Name) and given.id == name
        targets = stmt.targets if isinstance(stmt, Assign) else []
        if is_shuffled or any(isinstance(each, Name) and each.id == name for each in targets):
            yield call


def order_given(model: Model, loader: Obj) -> Call | None:
    """The draw of the list of numbers that a loader is given for a sampler."""
    given = model.argument(loader, "sampler")
    if given is None or any(isinstance(each, Obj) for each in model.flow.values(given)):
        return None
    whole = [given, only(model.flow, given, Hop.ASSIGNED)]
    while (inner := _in_other_form(whole[-1])) is not None:
        whole += inner, only(model.flow, inner, Hop.ASSIGNED)
    if isinstance(whole[-1], Call) and _orders_all(whole[-1]):
        return whole[-1]
    shuffled = (
        call
        for name in whole
        if isinstance(name, Name) and (scope := owner_of(name)) is not None
        for call in shuffles_of(scope, name.id)
    )
    return next(shuffled, None)


def _in_other_form(order: Expr) -> Expr | None:
    """The order of which this is a list, or a part: ``order.tolist()``, ``order[rank::world]``."""
    if isinstance(order, Index) and isinstance(order.key, Other):
        return order.value
    if isinstance(order, Call) and called_name(order) in {"tolist", "numpy", "list", "tuple"}:
        func = order.func
        return func.value if isinstance(func, Attr) else next(iter(order.positional), None)
    return None


def shuffled_by_processes(model: Model, loader: Obj) -> Obj | None:
    """The shuffling sampler of a loader that shuffles nothing where there is one process."""
    sampler, shuffle = (model.flow.argument(loader, name) for name in ("sampler", "shuffle"))
    if loader.site is None or sampler is None or not _is_off(model, loader, shuffle):
        return None
    if not all(isinstance(each, Lit) for each in model.passed_to(loader, "batch_sampler")):
        return None  # that says the order where there is no sampler
    passed = as_passed(model.flow, sampler, loader.through)
    site = loader.site if passed is sampler or loader.through is None else loader.through
    values = model.flow.values(passed) if passed is not None else ()
    if not any(map(_goes_in_turn, values)):
        return None
    data = model.flow.argument(loader, "dataset")
    asked = [each for each in (passed, data) if each is not None]
    if passed is None:
        return None
    here = site.scope, ways(model, site, asked) or []
    for scope, found in (here, *_ways_back(model, passed)):
        bare = [
            way
            for way in found
            if _is_bare(model, way) and not any(value.none for value in way.values[1:])
        ]
        has_own = any(_shuffles_alone(model, way) for way in found)
        for one, other in product(found, bare):
            apart, origin = one.apart(other), one.values[0].origin
            if not apart or any(is_settled(model, test, scope) for test in apart):
                continue  # one of the two ways is never gone
            if has_own and not other.values[0].none:
                continue  # another way of one process shuffles: this one is asked not to
            if _is_joined(model, scope, site, other, apart):
                continue
            for value in model.flow.values(origin) if origin is not None else ():
                if (
                    isinstance(value, Obj)
                    and shuffles(model, value)
                    and all(
                        is_about_processes(model, test)
                        or (not has_own and is_setting_of(model, test, value))
                        for test in apart
                    )
                ):
                    return value
    return None


def _goes_in_turn(sampler: Value) -> bool:
    """Whether it is no sampler, or torch's that goes through the dataset as it is."""
    if isinstance(sampler, Lit):
        return sampler.value is None
    return isinstance(sampler, Obj) and sampler.cls == SEQUENTIAL_SAMPLER


def _is_bare(model: Model, way: Way) -> bool:
    """Whether a way gives nothing that shuffles, for certain."""
    first = way.values[0]
    given = model.flow.values(first.origin) if first.origin is not None else ()
    return bool(first.none) or (bool(given) and all(map(_goes_in_turn, given)))


def _is_joined(model: Model, scope: Scope, site: Call, bare: Way, apart: set[Expr]) -> bool:
    """Whether a test asks if the processes are joined, and they are, so that a way is not gone."""
    callers = model.flow.callers(scope)
    going: list[Call | None] = [
        call
        for call in callers
        if not any(
            model.flow.constants(test, call) == {not answer} for test, answer in bare.decided
        )
    ]
    return bool(going or not callers) and all(
        any(_asks_if_joined(model, test, call) for test in apart)
        and joined_before(model, call or site)
        for call in going or [None]
    )


def _asks_if_joined(model: Model, test: Expr, through: Call | None) -> bool:
    asked = as_passed(model.flow, test, through)
    values = model.flow.values(asked.func) if isinstance(asked, Call) else ()
    return {v.dotted for v in values if isinstance(v, Ext)} == {"torch.distributed.is_initialized"}


def _ways_back(model: Model, made: Expr) -> Iterator[tuple[Scope, list[Way]]]:
    """The ways to the ends of the one function that made something, with what each returns."""
    call = only(model.flow, made, Hop.ASSIGNED)
    callees = model.flow.callees(call) if isinstance(call, Call) else []
    if len(callees) == 1:
        yield callees[0], [way for end in callees[0].returns for way in _ways_to(model, end)]


def _ways_to(model: Model, end: Return) -> Iterator[Way]:
    if end.value is None:
        return
    place = Call.at(end.value)
    place.func, place.args, place.scope, place.stmt = end.value, [], end.scope, end
    passed = {upright(asked) for asked in tests(end)}
    for way in ways(model, place, [end.value]) or ():
        yield replace(way, decided=way.decided | passed)


def _shuffles_alone(model: Model, way: Way) -> bool:
    """Whether a way gives a sampler that shuffles the samples of a single process."""
    origin = way.values[0].origin
    return origin is not None and any(
        isinstance(value, Obj)
        and always_draws(model, value)
        and not is_distributed_sampler(model, value)
        for value in model.flow.values(origin)
    )


def is_setting_of(model: Model, test: Expr, sampler: Obj) -> bool:
    """Whether a test is a setting that decides on a sampler which asks how many processes are."""
    return _needs_processes(model, sampler) and _is_flag(model, test)


def _needs_processes(model: Model, sampler: Obj) -> bool:
    """Whether it cannot be built before the processes are joined: it asks how many there are."""
    size = model.argument(sampler, "num_replicas")
    return sampler.cls == DISTRIBUTED_SAMPLER and (
        size is None or (isinstance(size, Call) and WORLD_SIZE.is_made(size, model.flow.values))
    )


def _is_flag(model: Model, test: Expr) -> bool:
    """Whether a test is a setting by itself, and says neither what for nor in which order."""
    asked = only(model.flow, test, Hop.ASSIGNED)
    names = [_name_of_setting(each) for each in (test, asked)]
    return isinstance(asked, (Name, Attr, Index)) and not any(
        TRAINS.says(name) or EVALUATES.says(name) or role_of(name) is Role.SHUFFLE for name in names
    )


def _name_of_setting(expr: Expr) -> str:
    """By what a setting is asked for: its name, or the key that it is looked up by."""
    if isinstance(expr, Index):
        return str(expr.key.value) if isinstance(expr.key, Const) else _name_of_setting(expr.key)
    return last_name(expr) or ""


def _is_off(model: Model, loader: Obj, shuffle: Expr | None) -> bool:
    """Whether the loader certainly shuffles nothing by itself."""
    if shuffle is not None:
        return isinstance(shuffle, Const) and not shuffle.value
    return not any(model.flow.may_be_passed(loader, name) for name in ("shuffle", "batch_sampler"))


def may_be_drawn_again(model: Model, call: Call) -> bool:
    """Whether a call stands in a loop, or in a function that one calls; tests aside."""

    def callers(each: Call) -> Iterator[Call]:
        found = model.flow.callers(each.scope)
        return (c for c in found if not is_test(model.module_of(c.scope)))

    return any(
        each.stmt is None or any(isinstance(a, (For, While)) for a in each.stmt.ancestors())
        for each in closure([call], callers)
    )


def looks_up(model: Model, dataset: Expr) -> bool:
    """Whether the dataset certainly looks samples up by their index, in no order of its own.

    So does a part that torch takes of one, or of what is not known; and what `datasets` opens
    whole.
    """
    if opens_table(model, dataset):
        asked = {v.dotted for v in model.flow.values(dataset) if isinstance(v, ExtObj)}
        return all(_PUTS_IN_ORDER.isdisjoint(re.split(r"[.()]+", each)) for each in asked)
    found = [dataset] if built_classes(model, dataset) else [*wholes(model, dataset)]
    is_any = is_part(model, dataset)
    return bool(found) and all(
        _looks_up(model, each)
        or (is_any and not any(isinstance(c, Class) for c in built_classes(model, each) or ()))
        for each in found
    )


def _looks_up(model: Model, dataset: Expr) -> bool:
    """Of one that makes up its length, a pass is not over the data that it has."""
    classes = built_classes(model, dataset)
    return (
        classes is not None
        and all(_has_items(model, cls) or _finds_by_number(model, cls) for cls in classes)
        and not orders_itself(model, dataset)
        and not any(
            isinstance(end.value, Const)
            for cls in built_classes(model, dataset) or ()
            if isinstance(length := model.flow.method(cls, "__len__"), Function)
            for end in length.returns
        )
    )


def keeps_order(model: Model, dataset: Expr) -> bool:
    """Whether an index certainly stands for one sample in every pass, in whatever order.

    That order may be the dataset's own, if it was made before.
    """
    return _has_only_items(model, dataset) and not orders_items(model, dataset)


def _has_only_items(model: Model, dataset: Expr) -> bool:
    classes = built_classes(model, dataset)
    return classes is not None and all(_has_items(model, cls) for cls in classes)


def orders_items(model: Model, dataset: Expr) -> bool:
    """Whether the dataset is iterated, or may order its data while samples are looked up.

    What it has ordered before is one order for all who read it.
    """
    return orders_itself(model, dataset) and (
        is_iterable(model, dataset)
        or any(
            found.opaque or _orders_what_it_takes_of(model, found)
            for value in model.flow.values(dataset)
            if isinstance(value, Obj) and isinstance(value.cls, Class)
            for found in [reach(model, value.cls, "__getitem__", "__getitems__")]
        )
    )


def _orders_what_it_takes_of(model: Model, found: Reach) -> bool:
    """Whether code orders that of which it takes items by number, or takes none by number.

    What it shuffles of an item is within that.
    """
    taken_of = {*_numbered(model, found)}
    return any(
        not taken_of
        or call.stmt is None
        or any(isinstance(n, Attr) and n.name in taken_of for n in nodes_in([call.stmt]))
        for call in ORDERS.calls_in(found.calls)
    )


def _has_items(model: Model, cls: Class | str) -> bool:
    if isinstance(cls, Class):
        return any(_numbered(model, reach(model, cls, "__getitem__")))
    return cls.startswith(MAP_STYLE)


def _finds_by_number(model: Model, cls: Class | str) -> bool:
    """Whether an item is made of what a call finds by its number: ``self.data.load(index)``."""
    method = model.flow.method(cls, "__getitem__")

    def finds(expr: Expr) -> bool:
        return (
            isinstance(expr, Call)
            and not DRAW.is_call(expr)
            and any(depends_on(model.flow, a.value, _is_parameter, LOCAL) for a in expr.args)
            and any(
                depends_on(model.flow, part, _is_held, LOCAL | Hop.PART)
                for part in (expr.func, *(arg.value for arg in expr.args))
            )
        )

    return isinstance(method, Function) and any(
        stmt.value is not None and depends_on(model.flow, stmt.value, finds, LOCAL | Hop.PART)
        for stmt in method.returns
    )


def _is_held(expr: Expr) -> bool:
    return isinstance(expr, Attr) and self_class(expr.value) is not None


def _numbered(model: Model, found: Reach) -> Iterator[str]:
    """The attributes of an object that code takes items of by a number that it is asked for."""
    return (name for name, index in _items(model, found) if _is_numbered(model, index))


def _is_drawn_in(model: Model, found: Reach) -> bool:
    """Whether the code, or what it calls, may draw."""
    for number, function in enumerate(closure(found.functions, model.flow.called_by)):
        if number == MOST_SEARCHED_FOR_STEP or any(
            DRAW.is_call(call) or DRAW.says(called_name(call)) for call in function.calls
        ):
            return True
    return False


def _items(model: Model, found: Reach) -> Iterator[tuple[str, Index]]:
    """Each ``self.name[…]`` in the code, with the name; also of a variable that holds it."""
    for function in found.functions:
        for node in nodes_in(statements(function.body)):
            if isinstance(node, Index):
                for owner in ends(model.flow, _without_view(node.value), Hop.ASSIGNED):
                    if isinstance(owner, Attr) and self_class(owner.value) is not None:
                        yield owner.name, node


def _without_view(source: Expr) -> Expr:
    """The table of pandas whose rows are taken by one of its views: ``self.table.iloc[index]``.

    All parts that one takes them of: ``self.parts[number][index]``.
    """
    while isinstance(source, Index):
        source = source.value
    if isinstance(source, Attr) and source.name in {"iloc", "loc", "iat", "at", "values"}:
        return source if self_class(source.value) is not None else source.value
    return source


def _is_numbered(model: Model, index: Index) -> bool:
    """Whether an item is taken by the number that the method is asked for."""
    return not any(map(DRAW.is_call, walk(index.key))) and (
        depends_on(model.flow, index.key, _is_parameter, LOCAL) is not None
    )


def _is_parameter(expr: Expr) -> bool:
    owner = owner_of(expr) if isinstance(expr, Name) else None
    return (
        isinstance(expr, Name)
        and isinstance(owner, Function)
        and self_class(expr) is None
        and any(each.how == "param" for each in definitions(owner, expr))
    )


def _takes_some(step: Step) -> bool:
    """Whether only some items are taken: the draw divides the data, and is to stay."""
    return isinstance(step.expr, Index) and isinstance(step.expr.key, (Const, Other))


def _drawn_once(
    model: Model, cls: Class, found: Reach, taken: set[str], sanitized: object = None
) -> FixedOrder | None:
    """The order in one of the attributes that only the constructor draws."""
    if not taken or found.opaque or found.outside or not is_closed(model, cls):
        return None
    built = reach(model, cls, "__init__")
    for function in sorted(built.functions, key=lambda each: (each.row, each.col)):
        for draw in ORDERS.calls_in(function.calls):
            if not _orders_all(draw) or _is_for_evaluation(draw):
                continue  # it chooses some, and the order of an evaluation is to stay
            for name in sorted(taken):
                if _is_kept(model, built, name, draw, sanitized) and not _is_made_again(
                    model, cls, built, name
                ):
                    return FixedOrder(draw, name)
    return None


def seeded_in_each_pass(model: Model, cls: Class, *, is_given: bool = False) -> Call | None:
    """The call that seeds every pass of a sampler alike, so that all draw one order.

    ``is_given``: of one that is given a seed, which it may be built without.

    Of a class with an epoch of its own that is another question (`epoch_state`). A run in a small
    world shows that the order rests on the seed; nothing may change the seed from outside.
    """
    state = epoch_state(model, cls)
    found = seedings_of(state.iteration)
    if state.setter is not None or not found or not is_closed(model, cls):
        return None
    for call in found:
        seed = seed_argument(call)
        if seed is None or _is_for_evaluation(call) or not is_fixed(model, state, seed):
            return None
        if _has_another_part(model, cls, state.iteration, seed):
            return None
    trial = model.epoch_trial(cls, seed=1 if is_given else None)
    is_alike = trial is not None and trial.draws and not (trial.changes or trial.frozen)
    return found[0] if is_alike else None


def order_of_first_pass(model: Model, cls: Class) -> Call | None:
    """The draw of the order that the first pass of a sampler without an epoch keeps for all.

    A run in a small world shows that. Nothing besides may bring it another, or let go of it.
    """
    state = epoch_state(model, cls)
    ran = state.iteration
    draws = [call for call in ORDERS.calls_in(ran.calls) if _orders_all(call)]
    if state.setter is not None or ran.opaque or not draws or not is_closed(model, cls):
        return None
    kept = {target.name for target, _ in self_stores(ran.functions)}
    kept |= {function.name for function in ran.functions if function.is_property}
    scopes = [scope for scope in own_scopes(model, cls) if isinstance(scope, Function)]
    if (
        any(map(_is_for_evaluation, draws))
        or any(GIVES_STATE.says(scope.name) or RESTORES.says(scope.name) for scope in scopes)
        or changed_elsewhere(model, state, *kept)
        or any(_lets_go(module, kept) for module in model.project.modules_near(cls))
    ):
        return None
    trial = model.epoch_trial(cls)
    return draws[0] if trial is not None and trial.keeps_first else None


def _lets_go(module: Module, kept: set[str]) -> bool:
    """Whether a file may delete an attribute of one of the names: ``del x.order``, or by a text."""
    names = "|".join(map(re.escape, sorted(kept)))
    pattern = rf"""\bdel\b[^\n]*\.(?:{names})\b|["'](?:{names})["']"""
    return bool(kept) and module.source.tells(re.compile(pattern.encode()).search)


def _has_another_part(model: Model, cls: Class, found: Reach, seed: Expr) -> bool:
    """Whether the class reads an attribute of the seed outside its passes too.

    It is then meant to move, or to be kept, and what goes wrong with that is told there.
    """
    names = {each.name for each in seed_parts(model, seed) if isinstance(each, Attr)}
    return any(
        read.name in names and self_class(read.value) is not None
        for scope in own_scopes(model, cls)
        if scope not in found.functions and getattr(scope, "name", "") != "__init__"
        for read in scope.reads
    )


def may_be_told_not_to(model: Model, obj: Obj, call: Call) -> bool:
    """Whether a test around ``call`` asks for a parameter that the object may be given."""
    init = model.flow.method(obj.cls, "__init__")
    if not isinstance(init, Function) or call.stmt is None:
        return False
    asked = {
        (last_name(node) or "").lstrip("_")
        for stmt in call.stmt.ancestors()
        if isinstance(stmt, If)
        for node in walk(stmt.test)
        if isinstance(node, (Name, Attr))
    }
    return any(
        param.name in asked
        and (
            model.argument(obj, param.name) is not None or model.flow.may_be_passed(obj, param.name)
        )
        for param in init.params
    )


def is_asked_to_draw(
    model: Model, obj: Obj, order: FixedOrder, *, among_several: bool = False
) -> bool:
    """Whether no parameter that a test on the way to the draw asks for is false for it.

    Not even for one process of several, if ``among_several``.
    """
    scope = order.draw.scope
    calls = [order.draw, *model.flow.callers(scope)]
    tests = (
        stmt.test
        for call in calls
        if call.stmt is not None
        for stmt in call.stmt.ancestors()
        if isinstance(stmt, If) and any(each.encloses(call.stmt) for each in stmt.body)
    )
    for test in tests:
        name = last_name(test) if isinstance(test, (Name, Attr)) else None
        init = model.flow.method(obj.cls, "__init__")
        param = init.param(name.lstrip("_")) if name and isinstance(init, Function) else None
        if param is None or model.flow.may_be_passed(obj, param.name):
            continue
        given = model.argument(obj, param.name) or param.default
        constants = model.flow.constants(given) if given is not None else None
        if constants is not None and not any(constants):
            return False
        is_open = constants is None or (among_several and not all(constants))
        if given is not None and is_open and is_about_processes(model, given):
            return False  # and which answer draws is not known
    return True


def _is_for_evaluation(call: Call) -> bool:
    """Whether the call stands below a test that asks for evaluation."""
    return call.stmt is not None and any(
        isinstance(stmt, If)
        and any(
            EVALUATES.is_mentioned(node)
            or (isinstance(node, Const) and EVALUATES.says(str(node.value)))
            for node in walk(stmt.test)
        )
        for stmt in call.stmt.ancestors()
    )


def _is_kept(model: Model, built: Reach, name: str, draw: Call, sanitized: object) -> bool:
    """Whether the attribute certainly holds what is drawn, or is put in order by it."""
    shuffled = shuffled_by(draw)
    if _is_own(shuffled, name):
        return True

    def is_drawn(expr: Expr) -> bool:
        return expr is draw or (
            isinstance(expr, Name)
            and isinstance(shuffled, Name)
            and expr.id == shuffled.id
            and owner_of(expr) is owner_of(shuffled)
        )

    drop = sanitized if callable(sanitized) else lambda _: False
    return any(
        store.value is not None
        and depends_on(model.flow, store.value, is_drawn, _CONSTRUCTED, sanitized=drop) is not None
        for function in built.functions
        for store in function.stores
        if _is_own(store.target, name)
    )


def _is_own(expr: Expr | None, name: str) -> bool:
    return isinstance(expr, Attr) and expr.name == name and self_class(expr.value) is not None


def _is_made_again(model: Model, cls: Class, built: Reach, name: str) -> bool:
    """Whether the order may change once the object is built."""
    scopes = [scope for each in model.flow.own_family(cls) for scope in scopes_inside(each)]
    later = [scope for scope in scopes if isinstance(scope, Function)]
    later = [scope for scope in later if scope not in built.functions]
    # What is put where it was may be brought another order, too.
    if any(
        GIVES_STATE.says(scope.name)
        or RESTORES.says(scope.name)
        or any(ORDERS.calls_in(scope.calls))
        for scope in later
    ):
        return True
    if any(
        store.scope not in built.functions and is_no_other_self(model, store.target.value, cls)
        for store in model.project.stores_near(name, cls)
        if isinstance(store.target, Attr)
    ):
        return True
    if any(
        isinstance(given, Attr)
        and given.name == name
        and call.scope not in built.functions
        and is_no_other_self(model, given.value, cls)
        for call in model.project.calls_near("shuffle", cls)
        for given in call.positional[:1]
    ):
        return True
    return any(
        caller.scope not in built.functions
        for function in built.functions
        if function.name != "__init__" and _may_order(function, name)
        for caller in (*model.flow.callers(function), *_may_be_calls(model, function, cls))
    )


def _may_be_calls(model: Model, method: Function, cls: Class) -> Iterator[Call]:
    """The calls of a method on what is not known: it may be an object of the class."""
    for call in model.project.calls_near(method.name, cls) if method.cls is not None else ():
        receiver = call.func.value if isinstance(call.func, Attr) else None
        if receiver is not None and is_no_other_self(model, receiver, cls):
            values = model.flow.values(receiver)
            if not values or any(isinstance(value, Unknown) for value in values):
                yield call


def _may_order(function: Function, name: str) -> bool:
    """Whether a function orders anything, or sets the attribute."""
    return any(ORDERS.calls_in(function.calls)) or any(
        _is_own(store.target, name) for store in function.stores
    )
