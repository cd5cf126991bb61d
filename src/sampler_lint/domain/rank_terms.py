"""Which values differ between the ranks of a program, and which are the same on all of them.

One backward slice answers both: it follows a value to where it comes from, through assignments,
parameters, attributes and returns. Where it meets the rank, the value differs; where every
source is a literal or the configuration, the value is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sampler_lint.analysis.origins import (
    HANDED_ON,
    LOCAL,
    NUMBERS,
    Hop,
    Step,
    entries,
    is_computed,
    only,
    onward,
    origins,
    parameter_of,
    read_of,
    stored,
)
from sampler_lint.analysis.values import Ext, FuncRef
from sampler_lint.domain.agreement import agrees
from sampler_lint.domain.concepts import COLLECTIVE, ENVIRONMENT, FIRST_RANK, RANK
from sampler_lint.domain.draws import drawn_before_seeding, own_entropy
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import looked_up, options, options_of
from sampler_lint.domain.programs import files_storing, is_test
from sampler_lint.domain.seeds import drawn_unseeded, is_seed_name
from sampler_lint.findings import Refuted
from sampler_lint.limits import DEEPEST_SLICE
from sampler_lint.parameters import is_of_model
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import binder_of, builtin_type, self_class, unparse
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Choice,
    Compare,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Param,
    Scope,
    Seq,
    Store,
    Unary,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module

#: These differ between two ranks in a row when their first operand does; quotients may not.
_KEEPS = frozenset({"Add", "Sub", "Mult", "BitXor", "BitOr", "LShift", "Mod"})
#: Of several values these give one.
_CHOOSE = frozenset({"len", "max", "min"})


class RankTerm(NamedTuple):
    """Where the rank enters a value."""

    scope: Scope
    term: Expr
    """The rank itself (``dist.get_rank()``)."""
    whole: Expr
    """The expression it enters (``args.seed + dist.get_rank()``)."""


def rank_in(expr: Expr) -> Expr | None:
    """The rank, when ``expr`` is one by its name."""
    if isinstance(expr, (Name, Attr)):
        return expr if RANK.names(expr) else None
    if isinstance(expr, Call) and RANK.is_call(expr) and not expr.positional:
        return expr
    read = looked_up(expr)
    return expr if read is not None and read[1] in RANK.variables else None


def is_rank(expr: Expr) -> bool:
    """Whether an expression is the rank by its name."""
    return rank_in(expr) is not None


_MADE_OF = LOCAL | Hop.CALLER | Hop.RETURN | Hop.ATTRIBUTE | Hop.ITEM


def differs(model: Model, expr: Expr, scope: Scope) -> RankTerm | None:
    """Where the rank enters ``expr``, if its value certainly differs between ranks.

    For a value that depends on a setting (``seed + rank if args.diff_seed else seed``) that is
    certain under that setting.
    """
    steps = origins(
        model.flow,
        expr,
        _MADE_OF,
        scope=scope,
        stop=lambda step: is_rank(step.expr),
        drop=_may_vanish,
        more=partial(_settings_and_items, model),
    )
    for step in steps:
        term = rank_in(step.expr)
        if term is None and numbers_process(model, step.expr):
            return RankTerm(step.scope, step.expr, step.whole)
        if term is not None and not _is_one_for_all(model, term, step.scope):
            return RankTerm(step.scope, term, step.whole)
    return None


def numbers_process(model: Model, expr: Expr) -> bool:
    """Whether a name is what ``mp.spawn`` gives a function: which of the processes this one is."""
    function, param = parameter_of(expr) or (None, None)
    if function is None or param is None:
        return False
    place = function.params.index(param) - function.is_bound
    return any(
        isinstance(value, FuncRef) and value.function is function
        for _, target, added in model.flow.spawned.get(function.name, ())
        if 0 <= place < added
        for value in model.flow.values(target)
    )


def _is_one_for_all(model: Model, rank: Expr, scope: Scope) -> bool:
    """Whether what is called a rank is a number above 0 for all processes: that of an adapter."""
    if not isinstance(rank, (Name, Attr)):
        return False
    more = partial(_settings_and_defaults, model)
    steps = origins(model.flow, rank, HANDED_ON, scope=scope, more=more)
    ends = (step.expr for step in steps if step.is_end)
    numbers = (each for end in ends for each in (end.items if isinstance(end, Seq) else [end]))
    return any(isinstance(n, Const) and type(n.value) is int and n.value > 0 for n in numbers)


_SEEDED_BY = LOCAL | Hop.CALLER | Hop.RETURN | Hop.ATTRIBUTE


def drawn_apart(model: Model, seed: Expr) -> tuple[Step, str] | None:
    """Where a seed comes from the clock or the system, and what gives it, as it is spelled.

    None where the ranks agree on it.
    """
    steps = origins(model.flow, seed, _SEEDED_BY, drop=partial(_is_aside, model))
    found = ((step, _drawn_by(model, step.expr)) for step in steps if step.is_end)
    return next(((step, source) for step, source in found if source is not None), None)


def _drawn_by(model: Model, expr: Expr) -> str | None:
    return (
        own_entropy(model, expr) or drawn_before_seeding(model, expr) or drawn_unseeded(model, expr)
    )


def _is_aside(model: Model, step: Step) -> bool:
    """Whether the ranks agree on it, or only a test passes it."""
    is_of_test = step.hop is Hop.CALLER and is_test(model.module_of(step.scope))
    return is_of_test or is_agreed(step)


def parameter_differs(model: Model, function: Function, param: Param) -> RankTerm | None:
    """The same for what the tree passes for a parameter."""
    return differs(model, read_of(function, param), function)


def _may_vanish(step: Step) -> bool:
    """Whether a rank in it may leave no difference: a quotient, what the ranks agree on.

    Or it is the rank of something else than this process.
    """
    if is_agreed(step) or _is_rank_of_others(step.expr) or _is_counted(step.expr):
        return True
    made = step.towards.expr if step.towards is not None else None
    if step.hop is Hop.ARGUMENT:
        return isinstance(made, Call) and (len(made.args) > 1 or last_name(made.func) in _CHOOSE)
    if step.hop is Hop.OPERAND and isinstance(made, (Choice, Seq)):
        return False
    if made is not None and _is_divisor(step, made):
        return True
    return step.hop is Hop.ELEMENT or (
        (bool(step.op) or step.hop is Hop.OPERAND) and step.op not in _KEEPS
    )


def _is_divisor(step: Step, made: Expr) -> bool:
    """Whether something is divided by it: ``seed % x``, ``seed %= x``."""
    if isinstance(made, Bin):
        return made.op == "Mod" and made.right is step.expr
    return step.op == "Mod" and last_name(made) != last_name(step.expr)


def _is_rank_of_others(expr: Expr) -> bool:
    """Whether a call gives the rank in a group that shares its data: ``get_pipeline_rank()``."""
    name = last_name(expr.func) if isinstance(expr, Call) else None
    return name is not None and name.endswith("_rank") and is_of_model(name)


def _is_counted(expr: Expr) -> bool:
    """Whether a loop goes through the ranks, so that its variable is none of this process."""
    if not isinstance(expr, Name):
        return False
    owner = binder_of(expr.scope, expr.id)
    found = owner.bindings[expr.id] if owner is not None else ()
    return bool(found) and all(one.how == "element" for one in found)


def is_agreed(step: Step) -> bool:
    """Whether the ranks talk about it, so that it may be the same on each."""
    if step.hop is Hop.RETURN and agrees(step.scope):
        return True
    return isinstance(step.expr, Call) and COLLECTIVE.names(step.expr.func)


def why_not_shared(model: Model, expr: Expr, scope: Scope) -> str | None:
    """Why ``expr`` may differ between processes or be no int; None if it is an int all share.

    A setting whose kind nobody states counts as what the program takes it for.
    """
    for step in _sources(model, expr, scope):
        kind, shown = _kind(step), unparse(step.expr)
        place = model.place(step.scope, step.expr)
        if kind == "rank":
            return Refuted(f"{place}: `{shown}` differs between the ranks")
        # What only decides between shared values may be any option of the configuration.
        if kind == "unknown" and not (step.decides and isinstance(step.expr, Attr)):
            if own_entropy(model, step.expr) is not None:
                return Refuted(f"{place}: `{shown}` is another on each process")
            return f"{place}: whether `{shown}` is the same on every process is not known"
        if (why := _no_int(model, step)) is not None:
            return why
    return None


def why_no_int(model: Model, expr: Expr, scope: Scope) -> str | None:
    """Why ``expr`` may be no int; None if nothing that it may be is known to be none."""
    found = (_no_int(model, step) for step in _sources(model, expr, scope))
    return next(filter(None, found), None)


def _sources(model: Model, expr: Expr, scope: Scope) -> Iterator[Step]:
    return origins(
        model.flow,
        expr,
        _MADE_OF | Hop.TEST,
        scope=scope,
        stop=partial(_is_source, model),
        drop=is_agreed,
        more=partial(_settings_and_defaults, model),
    )


def _no_int(model: Model, step: Step) -> str | None:
    """Why the end of a way is no int."""
    kind, expr = _kind(step), step.expr
    if _is_of_numpy(model, expr) and not _is_converted(step):
        return f"{model.place(step.scope, expr)}: `{unparse(expr)}` is no int of Python"
    is_number = isinstance(expr, Const) and type(expr.value) is int
    is_wrong = kind == "text" or (kind == "literal" and not (is_number or _gives_way(step)))
    if not is_wrong or step.decides or _is_converted(step):
        return None
    why = f"{model.place(step.scope, expr)}: `{unparse(expr)}` is not an int"
    # Who is to choose a seed may always do so.
    is_none = isinstance(expr, Const) and expr.value is None
    return why if is_none else Refuted(why)


def _kind(step: Step) -> str:
    """What the end of a way is; nothing where it goes on.

    ``rank``, ``literal``, ``setting`` (a command line, a configuration), ``text`` (a variable of
    the environment, or what else is no int) or ``unknown``.
    """
    expr = step.expr
    if is_rank(expr):
        return "rank"
    if isinstance(expr, Const):
        return "literal"
    if is_variable(expr) or _makes_no_int(expr):
        return "text"
    read = _setting(expr)
    if read is not None:
        return "setting" if is_seed_name(read[1]) else "unknown"
    if step.hops > DEEPEST_SLICE or step.hop is Hop.ELEMENT or not _goes_on(expr):
        return "unknown"
    return "unknown" if step.is_end and parameter_of(expr) is None else ""


def _goes_on(expr: Expr) -> bool:
    """Whether what it is computed from tells whether it is shared."""
    return isinstance(expr, (Attr, Bin, Call, Choice, Index, Name)) or (
        isinstance(expr, Unary) and expr.op != "Not"
    )


def _is_source(model: Model, step: Step) -> bool:
    """Whether nothing more is to be learnt behind a step."""
    expr = step.expr
    if isinstance(expr, Call) and is_computed(model.flow, expr):
        return not is_computed(model.flow, expr, NUMBERS)
    return not _goes_on(expr) or _kind(step) in {"rank", "text"}


def _is_converted(step: Step) -> bool:
    """Whether a number is computed from it."""
    return any(each.hop is Hop.ARGUMENT for each in step.way())


def _is_of_numpy(model: Model, expr: Expr) -> bool:
    """Whether it is a number of numpy's, which a sum may overflow; what that draws is none."""
    made = expr
    while isinstance(made, Index):
        made = made.value
    return isinstance(made, Call) and any(
        isinstance(value, Ext)
        and value.dotted.startswith("numpy.")
        and not (made is expr and value.dotted.startswith("numpy.random."))
        for value in model.flow.values(made.func)
    )


def _gives_way(step: Step) -> bool:
    """Whether a literal is false, and another value stands after an ``or``: `None or 0` is 0."""
    return not getattr(step.expr, "value", True) and any(
        each.op == "or"
        and each.towards is not None
        and isinstance(each.towards.expr, Choice)
        and each.expr is not each.towards.expr.options[-1]
        for each in step.way()
    )


# --------------------------------------------------------------------------- settings


def is_variable(expr: Expr) -> bool:
    """Whether an expression reads a variable of the environment."""
    if isinstance(expr, Index):
        return dotted(expr.value) in ENVIRONMENT.made_by
    owner, key = looked_up(expr) or (None, None)
    return (
        key is not None
        and isinstance(expr, Call)
        and (last_name(expr.func) == "getenv" or dotted(owner) in ENVIRONMENT.made_by)
    )


def _makes_no_int(expr: Expr) -> bool:
    """Whether it makes a text or the like: ``str(seed)``, an option as it is typed."""
    if not isinstance(expr, Call):
        return False
    func = expr.func
    if isinstance(func, Name) and binder_of(func.scope, func.id) is None:
        kind = builtin_type(func.id)
        return kind is not None and not issubclass(kind, int)
    return last_name(func) == "add_argument"


def _setting(expr: Expr) -> tuple[Expr, str] | None:
    """Of what an attribute, an entry or ``get(…)`` reads which setting."""
    if isinstance(expr, Attr):
        return expr.value, expr.name
    owner, key = looked_up(expr) or (None, None)
    return (owner, str(key)) if owner is not None else None


def _settings(model: Model, step: Step) -> Iterator[Step]:
    """What is stored in an attribute of that name of what is spelled alike (``args.seed``)."""
    read = _setting(step.expr)
    if read is None or is_variable(step.expr) or self_class(read[0]) is not None:
        return
    owner, name = read
    for module in files_storing(model, model.module_of(step.scope), name):
        for store in _stores(model, module, name).get(last_name(owner), ()):
            yield from stored(step, store)
    for store in model.project.stores_of(name):  # those by name: `override(args, seed=3)`
        is_plain = store in store.scope.module.stores_by_name.get(name, ())
        is_ours = last_name(store.target.value) == last_name(owner) is not None
        if is_ours and not is_plain and model.project.same_program(store.scope, step.scope):
            yield from stored(step, store)


def _settings_and_items(model: Model, step: Step) -> Iterator[Step]:
    """The same, and the rank by which one of several values is taken (``seeds[rank]``)."""
    yield from _settings(model, step)
    if isinstance(step.expr, Index) and is_rank(step.expr.key):
        yield onward(step, Hop.ITEM, step.expr.key)


@remembered
def _stores(_: Model, module: Module, name: str) -> dict[str | None, list[Store]]:
    """What a file stores in attributes of that name, by how their owner is called."""
    by_owner: dict[str | None, list[Store]] = {}
    for store in module.facts.stores_by_name.get(name, ()):
        owner = store.target.value
        if last_name(owner) is not None and self_class(owner) is None:
            by_owner.setdefault(last_name(owner), []).append(store)
    return by_owner


def _settings_and_defaults(model: Model, step: Step) -> Iterator[Step]:
    """The same, and what a setting is if nobody sets it: the default of an option, of a field."""
    yield from _settings(model, step)
    read = _setting(step.expr)
    if read is not None:
        yield from _built_with(model, step, *read)
    if isinstance(step.expr, Call) and ENVIRONMENT.is_call(step.expr):
        yield from (onward(step, Hop.OPERAND, each) for each in step.expr.positional[1:])
    if read is None or is_variable(step.expr):
        return
    _, name = read
    program = model.project.program_of(model.module_of(step.scope))
    for prop in model.properties(name):
        if model.project.program_of(model.module_of(prop)) == program:
            for returned in prop.returns:
                if returned.value is not None:
                    yield onward(step, Hop.RETURN, returned.value, prop, ())
    if isinstance(step.expr, Attr):
        declared = options_of(model, program, step.expr)
    else:
        declared = options(model, program, name)
    for call in declared:
        default, kind = call.keyword("default"), call.keyword("type")
        action = call.keyword("action")
        if default is not None:
            yield onward(step, Hop.ATTRIBUTE, default, call.scope, ())
        is_stored = action is None or (isinstance(action, Const) and action.value == "store")
        if (
            call.keyword("nargs") is not None
            or not is_stored
            or kind is None  # the text that somebody types
            or builtin_type(last_name(kind)) not in {None, int}
        ):
            yield onward(step, Hop.ATTRIBUTE, call, call.scope, ())
    for module in model.project.modules_in(program):
        for cls in module.facts.classes:
            if name in cls.bindings:  # a field, which whoever builds the object may give
                for call in model.project.calls_near(cls.name, cls):
                    if (given := call.keyword(name)) is not None:
                        yield onward(step, Hop.ATTRIBUTE, given, call.scope, ())
            for binding in cls.bindings.get(name, ()):
                value = binding.value
                if isinstance(value, Call) and last_name(value.func) == "field":
                    value = value.keyword("default_factory") or value.keyword("default") or value
                if value is not None:
                    yield onward(step, Hop.ATTRIBUTE, value, cls, ())
            if name in cls.bindings:
                for store in model.project.own_stores(name, cls):
                    yield from stored(step, store)


def _built_with(model: Model, step: Step, owner: Expr, name: str) -> Iterator[Step]:
    """What the calls that make the owner pass by that name: ``replace(cfg, seed=…)``."""
    made = origins(model.flow, owner, _MADE_OF & ~Hop.OPERAND, scope=step.scope)
    for call in (each.expr for each in made if isinstance(each.expr, Call)):
        for arg in call.args:
            if arg.keyword == name:
                yield onward(step, Hop.ATTRIBUTE, arg.value, call.scope, ())
            elif arg.stars == 2:
                for value, frames in entries(model.flow, arg.value, name):
                    yield onward(step, Hop.ATTRIBUTE, value, call.scope, frames)


def runs_on_one_rank(model: Model, test: Expr, scope: Scope, *, answer: bool = True) -> bool:
    """Whether a test has an answer on one rank only (of all, or of a node)."""
    value = only(model.flow, test, Hop.ASSIGNED)
    if value is not test and runs_on_one_rank(model, value, scope, answer=answer):
        return True
    if isinstance(test, Unary) and test.op == "Not":
        return runs_on_one_rank(model, test.operand, scope, answer=not answer)
    if isinstance(test, (Name, Attr, Call)):
        is_asked = FIRST_RANK.names(test.func if isinstance(test, Call) else test)
        return is_asked if answer else not is_asked and differs(model, test, scope) is not None
    if not isinstance(test, Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.rights[0])
    if test.ops == ["In" if answer else "NotIn"] and isinstance(sides[1], Seq):
        # `local_rank in (-1, 0)`
        among = {item.value if isinstance(item, Const) else None for item in sides[1].items}
        return {0} <= among <= {-1, 0} and differs(model, sides[0], scope) is not None
    if test.ops not in ([["Eq"]] if answer else [["NotEq"], ["Gt"]]):
        return False
    numbers = [side for side in sides if isinstance(side, Const) and side.value == 0]
    return bool(numbers) and any(differs(model, side, scope) is not None for side in sides)
