"""What a call passes for which parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sampler_lint import catalog
from sampler_lint.analysis.values import Table
from sampler_lint.syntax.navigation import nodes_in, same, statements, walk
from sampler_lint.syntax.nodes import (
    Arg,
    Attr,
    Binding,
    Call,
    Choice,
    Class,
    Const,
    Expr,
    Function,
    If,
    Index,
    Name,
    Param,
    Seq,
)

#: What a loader is given its order by, of which it has one, and none where it is None.
ORDERS_OF_LOADER = frozenset({"sampler", "batch_sampler"})
MISSING = object()
"""A parameter that a call does not fill (its default holds)."""


def passed(function: Function, param: Param, call: Call, *, is_bound: bool | None = None) -> Any:
    """What ``call`` passes for ``param``: an expression, :data:`MISSING`, or None if unclear.

    ``is_bound``: whether the first parameter is filled already; as a method's is, if not said.
    """
    for arg in call.args:
        if arg.keyword == param.name:
            return arg.value
    positional = [p for p in function.params if p.is_positional]
    if positional and (function.is_bound if is_bound is None else is_bound):
        positional = positional[1:]
    if param in positional:
        index = positional.index(param)
        given = call.positional
        if index < len(given):
            return given[index]
        if call.has_star:
            return None
    if call.has_double_star:
        return None
    return MISSING


def may_fill(call: Call, function: Function) -> bool:
    """Whether the arguments of a call may be those of a function; Python refuses them if not.

    What decorates the function may pass it others; a method may be called on its class.
    """
    if function.decorators and not (function.is_static or function.is_classmethod):
        return True
    names = {param.name for param in function.params if param.kind != "positional_only"}
    takes_all = {param.kind for param in function.params if param.is_star}
    if "kwarg" not in takes_all and any(
        arg.keyword and arg.keyword not in names for arg in call.args
    ):
        return False
    return any(
        _fills(call, function, is_bound, "vararg" in takes_all)
        for is_bound in {function.is_bound, False}
    )


def _fills(call: Call, function: Function, is_bound: bool, takes_rest: bool) -> bool:
    places = [param for param in function.params if param.is_positional][is_bound:]
    named = [param for param in function.params if param.kind == "keyword_only"]
    return (takes_rest or len(call.positional) <= len(places)) and not any(
        param.default is None and passed(function, param, call, is_bound=is_bound) is MISSING
        for param in (*places, *named)
    )


def complete(site: Call, call: Call) -> Call:
    """What calling ``partial(function, …)``, built at ``site``, calls: both calls' arguments.

    It stands where ``call`` does, whose keywords replace those of the partial. With ``site`` for
    both it is the call that needs no argument more, where the partial stands.
    """
    function, *given = site.args
    added = [] if call is site else call.args
    keywords = {arg.keyword for arg in added if arg.keyword}
    made = Call.at(call)
    made.scope, made.stmt = call.scope, call.stmt
    made.func = function.value
    made.args = [arg for arg in given if arg.keyword not in keywords] + added
    return made


def passed_on(call: Call, given: dict[str, Expr]) -> Call:
    """The call that passes some arguments of a call on by name, and stands where that does."""
    made = Call.at(call)
    made.func, made.scope, made.stmt = call.func, call.scope, call.stmt
    made.args = [Arg(value, name, 0) for name, value in given.items()]
    return made


def collected(function: Function, call: Call) -> Call:
    """The ``dict(…)`` that a call fills the ``**kwargs`` of a function with."""
    named = {param.name for param in function.params if param.kind != "kwarg"}
    made = Call.at(call)
    made.func, made.scope, made.stmt = call.func, function, None
    made.args = [
        arg for arg in call.args if arg.stars == 2 or (arg.keyword and arg.keyword not in named)
    ]
    return made


def remaining(call: Call, taken: int) -> Seq:
    """The tuple of the positional arguments of a call after the first ``taken``."""
    made = Seq.at(call)
    made.kind, made.items, made.scope = "tuple", call.positional[taken:], call.scope
    return made


def decorated(cls: Class) -> Iterator[Call]:
    """The calls that the decorators of a class are."""
    name = Name.at(cls)
    name.id, name.scope, name.stmt = cls.name, cls.outer or cls.module, None
    for decorator in cls.decorators:
        made = Call.at(decorator)
        made.func, made.scope, made.stmt = decorator, name.scope, None
        made.args = [Arg(name, None, 0)]
        yield made


def field_names(call: Call) -> tuple[str, ...] | None:
    """The fields that ``namedtuple("Name", …)`` is called with; None if they are not literal."""
    given = call.positional[1] if len(call.positional) > 1 else call.keyword("field_names")
    if isinstance(given, Const) and isinstance(given.value, str):
        return tuple(given.value.replace(",", " ").split())
    if not isinstance(given, Seq):
        return None
    names = [item.value for item in given.items if isinstance(item, Const)]
    if len(names) != len(given.items) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(str(name) for name in names)


def as_tuple(names: tuple[str, ...], call: Call) -> Seq | None:
    """The display of what a named tuple with these fields is built of; None if it is unclear."""
    items = dict(zip(names, call.positional, strict=False))
    items.update({arg.keyword: arg.value for arg in call.args if arg.keyword})
    tables = [arg.value for arg in call.args if arg.stars == 2]
    if len(tables) == 1:
        items.update({name: _entry(tables[0], name) for name in names if name not in items})
    if call.has_star or len(tables) > 1 or set(items) != set(names):
        return None
    made = Seq.at(call)
    made.kind, made.items, made.scope = "tuple", [items[name] for name in names], call.scope
    return made


def _entry(table: Expr, name: str) -> Index:
    """What a dict that is passed by ``**`` holds for a name."""
    made = Index.at(table)
    made.value, made.key = table, literal(table, name)
    return made


def given_as(call: Call, params: Sequence[str], name: str) -> Expr | None:
    """What ``Base(…)``, ``super().__init__(…)`` or ``Base.__init__(self, …)`` passes."""
    given = call.keyword(name)
    if given is not None:
        return given
    positional = call.positional
    func = call.func
    if isinstance(func, Attr) and func.name == "__init__" and not isinstance(func.value, Call):
        positional = positional[1:]  # Base.__init__(self, …)
    index = params.index(name)
    return positional[index] if index < len(positional) else None


def given_in_branches(
    calls: Sequence[Call], params: Sequence[str], name: str
) -> tuple[Call, Expr | None] | None:
    """What several calls that exclude one another pass, as one of them: that call, and the value.

    Two in the branches of one ``if`` pass ``yes if test else no``, as one call would. None where
    they are not so, or where it is not plain what one of them passes.
    """
    if len(calls) == 1:
        return calls[0], given_as(calls[0], params, name)
    if len(calls) != 2:
        return None
    given = [given_as(call, params, name) for call in calls]
    test = _deciding(*calls)
    if test is None or any(call.has_star for call in calls):
        return None
    if given[0] is None and given[1] is None:
        return calls[0], None
    for place, value in enumerate(given):
        if value is None:
            # No sampler is what None is, too; other defaults are not known.
            if name not in ORDERS_OF_LOADER:
                return None
            given[place] = literal(calls[place], None)
    yes, no = given
    assert yes is not None
    assert no is not None
    if same(yes, no):
        return calls[0], yes
    made, first = Choice.at(yes), calls[0]
    made.kind, made.test, made.options = "if", test, [yes, no]
    return first, made


def _deciding(yes: Call, no: Call) -> Expr | None:
    """The test on which it hangs which of two calls is made, if exactly one is."""
    for stmt in yes.stmt.ancestors() if yes.stmt is not None and no.stmt is not None else ():
        if isinstance(stmt, If) and any(each is no.stmt for each in statements(stmt.orelse)):
            return stmt.test
    return None


def literal(at: Expr, value: object) -> Const:
    """A literal that stands where another expression does."""
    made = Const.at(at)
    made.value = value
    return made


def tested_parameters(function: Function) -> list[Param]:
    """The parameters that conditions of a function read."""
    tests = (
        each.test
        for stmt in statements(function.body)
        for each in (stmt, *nodes_in([stmt]))
        if isinstance(each, (If, Choice)) and each.test is not None
    )
    names = {each.id for test in tests for each in walk(test) if isinstance(each, Name)}
    return [param for param in function.params if param.name in names]


#: What gives back what it is given last, or its items.
_TRANSPARENT_CALLS = frozenset(
    {
        *("cast", "typing.cast", "copy.copy", "copy.deepcopy", "typing.assert_type"),
        "weakref.proxy",
        *("iter", "list", "reversed", "set", "sorted", "tuple"),
    }
)


def handed_back(dotted: str, call: Call) -> Expr | None:
    """The one thing that a library's function gives back of what it is given."""
    if dotted in _TRANSPARENT_CALLS and call.positional:
        return call.positional[-1]
    params = catalog.handed_back(dotted)
    if params == ("self",):
        return call.func.value if isinstance(call.func, Attr) else None
    return given_as(call, params, *params) if len(params) == 1 else None


def table_entry(table: Table, name: str) -> Expr | None:
    """The value that a dict display or ``dict(…)`` has for a key."""
    return next((value for key, value in table.entries if key == name), None)


def takes_parameter(binding: Binding, function: Function) -> bool:
    """Whether a local name is a parameter, what a call gives that is handed one, or by its key."""
    if isinstance(binding.payload, Param):
        return not (function.is_bound and binding.payload is function.params[0])
    value = binding.value
    if binding.how != "assign" or binding.path:
        return False
    handed = [arg.value for arg in value.args] if isinstance(value, Call) else []
    handed += [value.key] if isinstance(value, Index) else []
    return any(isinstance(each, Name) and function.param(each.id) is not None for each in handed)
