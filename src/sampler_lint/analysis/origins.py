"""The backward slice: where a value may come from, hop by hop, on demand.

A slice begins at an expression and goes to what it is computed from: through assignments (those
that reach the read), operands, arguments, the callers of a function, what functions return,
attributes and entries of dicts. Who asks says which hops count and where to stop. What is come to
through the return of a call goes out of the function by that very call again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Flag, auto
from typing import NamedTuple, TypeAlias

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.containers import VIEWS
from sampler_lint.analysis.fillings import PUTS
from sampler_lint.analysis.points_to import Flow
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import TOO_MUCH, Ext, Frame, Obj, Pack, Table, Unknown, Value
from sampler_lint.limits import DEEPEST_SLICE, MOST_REACHING
from sampler_lint.syntax.navigation import children, owner_of, same, self_class
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Bin,
    Binding,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    Function,
    Imported,
    Index,
    Map,
    Name,
    Nth,
    Param,
    Scope,
    Seq,
    Store,
    Unary,
    dotted,
    last_name,
)


class Hop(Flag):
    """How a value is made from another."""

    ASSIGNED = auto()
    """A name, from what is assigned to it; an imported one too."""
    ELEMENT = auto()
    """A name, from what a loop or a ``with`` takes it of."""
    CALLER = auto()
    """A parameter, from what the callers pass and from its default."""
    RETURN = auto()
    """A call (or a property), from what the function returns."""
    ATTRIBUTE = auto()
    """An attribute of ``self``, from what the class keeps in it."""
    ITEM = auto()
    """An entry of a dict, or an item of a display, by its key."""
    OPERAND = auto()
    """Arithmetic, a comparison, a choice, a display: from its parts."""
    TEST = auto()
    """A choice, from what decides it."""
    ARGUMENT = auto()
    """A builtin that computes from its arguments, from these."""
    PART = auto()
    """Any other call, attribute or item, from the object that it is taken of, and arguments."""

    def meets(self, other: Hop) -> bool:
        """Whether a hop is of both: ``&`` makes a flag each time, which takes long."""
        return bool(self._value_ & other._value_)


#: Within one function: nothing is followed out of it or into another.
LOCAL = Hop.ASSIGNED | Hop.OPERAND | Hop.ARGUMENT
_NO_HOP = Hop(0)
EVERYWHERE = ~_NO_HOP
#: The ways on which a value stays the object that it is.
HANDED_ON = Hop.ASSIGNED | Hop.ELEMENT | Hop.CALLER | Hop.RETURN | Hop.ATTRIBUTE | Hop.ITEM

#: What computes a number from its arguments alone, and what computes anything else from them
#: (the hash of a text is another one in each process).
NUMBERS = frozenset(
    {
        *("abs", "bool", "divmod", "float", "int", "len", "max", "min", "pow", "round", "sum"),
        "numpy.uint32",
    }
)
COMPUTES = NUMBERS | {"hash", "list", "set", "sorted", "str", "tuple"}
_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in COMPUTES)


class Step(NamedTuple):
    """An expression that the value asked for may come from, and how it was come to."""

    expr: Expr
    scope: Scope
    hop: Hop
    """The last hop; none for the expression that was asked about."""
    towards: Step | None
    """The step that it was come to from."""
    hops: int
    """The assignments, parameters, returns and attributes between it and the value asked for."""
    op: str = ""
    """The operator that it is an operand of (``Add``), or the kind of choice (``or``)."""
    frames: tuple[Frame, ...] = ()
    """The calls that were gone into by their returns, innermost first."""
    decides: bool = False
    """Whether it only decides which of several values is taken."""
    is_end: bool = False
    """Whether no hop goes on from here, or not all that it may come from is seen."""

    @property
    def whole(self) -> Expr:
        """The expression of the same place that it is an operand of, or itself."""
        step = self
        while step.towards is not None and step.hop.meets(_INSIDE):
            step = step.towards
        return step.expr

    def way(self) -> Iterator[Step]:
        """The step and those that led to it, back to the expression that was asked about."""
        step: Step | None = self
        while step is not None:
            yield step
            step = step.towards


#: Hops that stay inside one expression, and cost nothing.
_INSIDE = Hop.OPERAND | Hop.TEST | Hop.ARGUMENT | Hop.PART

More: TypeAlias = Callable[[Step], Iterable[Step]]
"""What the analysis does not know of: where else a step may come from."""


def onward(
    step: Step,
    hop: Hop,
    expr: Expr,
    scope: Scope | None = None,
    frames: tuple[Frame, ...] | None = None,
    op: str = "",
) -> Step:
    """The step from ``step`` to ``expr``, in the same scope and call if no others are given."""
    frames = step.frames if frames is None else frames
    hops = step.hops + (not hop.meets(_INSIDE))
    decides = step.decides or hop is Hop.TEST
    return Step(expr, scope or step.scope, hop, step, hops, op, frames, decides)


def stored(step: Step, store: Store) -> Iterator[Step]:
    """The step from an attribute to what a store keeps in it."""
    part = part_of(store.value, store.path)
    op = store.stmt.op if isinstance(store.stmt, AugAssign) else ""
    if part is not None:
        yield onward(step, Hop.ATTRIBUTE, part, store.scope, (), op)
    elif store.value is not None:
        yield onward(step, Hop.ELEMENT, store.value, store.scope, ())


def is_one_value(flow: Flow, a: Expr, b: Expr) -> bool:
    """Whether two expressions come from one: a variable, or what is made at one place."""
    through = Hop.ASSIGNED | Hop.CALLER
    made = {_identity(step.expr) for step in origins(flow, a, through)}
    return any(_identity(step.expr) in made for step in origins(flow, b, through))


def is_one_object(flow: Flow, a: Expr, b: Expr) -> bool:
    """Whether two expressions certainly give one object, or equal literals."""
    one, other = (only(flow, expr, Hop.ASSIGNED) for expr in (a, b))
    if isinstance(one, Name) and isinstance(other, Name):
        owner = owner_of(one)
        if owner is not None and owner is owner_of(other) and one.id == other.id:
            return definitions(owner, one) == definitions(owner, other)
    return one is other or (isinstance(one, Const) and same(one, other))


def _identity(expr: Expr) -> object:
    """What two expressions share that are one variable, or an attribute of one."""
    root = expr
    while isinstance(root, Attr):
        root = root.value
    if not isinstance(root, Name):
        return expr
    cls = self_class(root) if root is not expr else None
    return owner_of(root) if cls is None else cls, dotted(expr)


def given_by(flow: Flow, call: Call, name: Expr) -> Expr | None:
    """What a call of a function passes for the parameter that a name of it is where it stands."""
    param = read_parameter(name)
    given = passed(*param, flow.as_made(call)) if param is not None else None
    return given if isinstance(given, Expr) else None


def as_passed(flow: Flow, expr: Expr, through: Call | None) -> Expr | None:
    """An expression as one call of its function sees it.

    Of a parameter what is passed there, or its default; None if it has neither.
    """
    param = read_parameter(expr)
    if param is None or through is None or param[0] not in flow.callees(through):
        return expr
    given = passed(*param, flow.as_made(through))
    return param[1].default if given is MISSING else given or expr


def read_parameter(name: Expr) -> tuple[Function, Param] | None:
    """The parameter that a name certainly is where it stands.

    ``batches = iter(batches)`` reads it, whatever is read below.
    """
    found = parameter_of(name)
    if found is None or not isinstance(name, Name):
        return None
    return found if len(definitions(found[0], name)) == 1 else None


def parameter_of(expr: Expr) -> tuple[Function, Param] | None:
    """The parameter that a name may be read from, and whose it is."""
    owner = owner_of(expr) if isinstance(expr, Name) else None
    if not isinstance(expr, Name) or not isinstance(owner, Function):
        return None
    given = (each.payload for each in definitions(owner, expr))
    return next(((owner, each) for each in given if isinstance(each, Param)), None)


def part_of(value: Expr | None, path: tuple[int, ...]) -> Expr | None:
    """What of ``a, b = x, y`` goes to one target; None if that is not seen."""
    for index in path:
        if not isinstance(value, Seq) or not -1 < index < len(value.items):
            return None
        value = value.items[index]
    return value


def _never(_: Step) -> bool:
    return False


def origins(
    flow: Flow,
    expr: Expr,
    through: Hop = EVERYWHERE,
    *,
    scope: Scope | None = None,
    stop: Callable[[Step], bool] = _never,
    drop: Callable[[Step], bool] = _never,
    more: More | None = None,
) -> Iterator[Step]:
    """Every step of the backward slice of ``expr``, itself first; its ends are marked.

    ``through`` are the hops to follow. A step to ``stop`` at is an end; one to ``drop`` is as if
    it was not there. ``scope`` is where the expression stands, where no name in it tells.
    """
    start = Step(expr, scope or scope_of(expr), _NO_HOP, None, 0)
    return _Slice(flow, through, stop, drop, more).run(start)


def ends(
    flow: Flow,
    expr: Expr,
    through: Hop = EVERYWHERE,
    *,
    stop: Callable[[Step], bool] = _never,
) -> Iterator[Expr]:
    """The expressions at which the backward slice of ``expr`` ends."""
    return (step.expr for step in origins(flow, expr, through, stop=stop) if step.is_end)


def only(flow: Flow, expr: Expr, through: Hop = EVERYWHERE) -> Expr:
    """The one expression that ``expr`` stands for; itself if there are several."""
    found = [*ends(flow, expr, through)]
    return found[0] if len(found) == 1 else expr


def handed_on(flow: Flow, expr: Expr) -> frozenset[Value]:
    """The values of an expression, also of one whose every origin is too much to ask for at once.

    Then those of the places at which its slice ends, where each of them is known.
    """
    values = flow.values(expr)
    if TOO_MUCH not in values:
        return values
    apart: set[Value] = set()
    for end in ends(flow, expr, HANDED_ON):
        found = flow.values(end)
        made = [value for value in found if isinstance(value, Obj) and value.site is end]
        apart.update(made or found)
    return values if any(isinstance(value, Unknown) for value in apart) else frozenset(apart)


def read_of(function: Function, param: Param) -> Name:
    """A read of a parameter in its function, to ask where its value comes from."""
    read = Name.at(param.node)
    read.id, read.scope, read.stmt = param.name, function, None
    return read


def depends_on(
    flow: Flow,
    expr: Expr,
    source: Callable[[Expr], bool],
    through: Hop = EVERYWHERE,
    *,
    sanitized: Callable[[Step], bool] = _never,
) -> Step | None:
    """The first step of the backward slice that is a source; None if there is none.

    What is ``sanitized`` carries nothing on from what it is made of.
    """
    steps = origins(flow, expr, through, stop=lambda step: source(step.expr), drop=sanitized)
    return next((step for step in steps if source(step.expr)), None)


def entries(flow: Flow, expr: Expr, key: object) -> Iterator[tuple[Expr, tuple[Frame, ...]]]:
    """What a container that is followed holds under a key, as expressions."""
    todo, seen = [*flow.values(expr)], set()
    while todo:
        value = todo.pop(0)
        if value in seen:  # `kwargs = {**kwargs, "a": 1}`
            continue
        seen.add(value)
        if isinstance(value, Table) and isinstance(key, str):
            for _, source, path in flow.entries(value, key) or ():
                if not path:
                    is_inside = scope_of(source) is value.node.scope
                    yield source, value.frames if is_inside else ()
        if isinstance(value, Pack) and isinstance(value.node, Seq) and type(key) is int:
            if -len(value.items) <= key < len(value.items):
                yield value.items[key], value.frames
        elif isinstance(value, Table) and isinstance(value.node, Call):
            given = value.node.keyword(key) if isinstance(key, str) else None
            if given is not None:
                yield given, value.frames
        elif isinstance(value, Table) and isinstance(value.node, Map):
            for entry, item in value.node.items:
                if entry is None:
                    todo += flow.values(item)
                elif isinstance(entry, Const) and entry.value == key:
                    yield item, value.frames


def passed_as(flow: Flow, call: Call, name: str) -> Iterator[Expr]:
    """What a call passes by a name: as a keyword, or in a dict that it unpacks."""
    given = call.keyword(name)
    if given is not None:
        yield given
    for arg in call.args if given is None else ():
        if arg.stars == 2:
            yield from (item for item, _ in entries(flow, arg.value, name))


def contents(scope: Scope, container: Expr) -> Iterator[Expr]:
    """What a scope puts into a container, by its name, besides what it is made with.

    For a view or a copy of it, that itself, too.
    """
    func = container.func if isinstance(container, Call) else None
    if isinstance(func, Attr) and (func.name in VIEWS or func.name == "copy"):
        container = func.value
        yield container
    if not isinstance(container, (Name, Attr)):
        return
    for store in scope.stores:
        if (
            isinstance(store.target, Index)
            and store.value is not None
            and same(store.target.value, container)
        ):
            yield store.value
    for call in scope.calls:
        put = call.func
        if isinstance(put, Attr) and put.name in PUTS and same(put.value, container):
            yield from call.positional[PUTS[put.name] :][:1]


def _own_scope(expr: Expr, otherwise: Scope) -> Scope:
    """The scope that an expression stands in, or another where nothing in it tells."""
    found = scope_of(expr)
    return otherwise if found is _NOWHERE else found


def scope_of(expr: Expr) -> Scope:
    """The scope that an expression stands in, by the first part that knows; else an empty one."""
    todo = [expr]
    while todo:
        node = todo.pop()
        scope: Scope | None = getattr(node, "scope", None)
        if scope is not None:
            return scope
        todo += reversed(children(node))
    return _NOWHERE


_NOWHERE = Scope()


class _Slice:
    """One question."""

    def __init__(
        self,
        flow: Flow,
        through: Hop,
        stop: Callable[[Step], bool],
        drop: Callable[[Step], bool],
        more: More | None,
    ) -> None:
        self._flow = flow
        self._through = through
        self._stop = stop
        self._drop = drop
        self._more = more

    def run(self, start: Step) -> Iterator[Step]:
        todo, seen = [start], set()
        while todo:
            step = todo.pop()
            key = (step.expr, step.frames, step.decides)
            if key in seen or self._drop(step):
                continue
            seen.add(key)
            if step.hops > DEEPEST_SLICE or self._stop(step):
                yield step._replace(is_end=True)
                continue
            found = self._expand(step)
            before = [each for each in found.before if self._through.meets(each.hop)]
            is_end = not before or not found.is_whole or len(before) < len(found.before)
            if self._through.meets(Hop.PART):
                before += (onward(step, Hop.PART, part) for part in _parts(step.expr))
            if self._more is not None:
                before += self._more(step)
            yield step._replace(is_end=is_end and not (before and found.is_whole))
            todo += reversed(before)

    def _expand(self, step: Step) -> _Found:
        expr = step.expr
        if isinstance(expr, Name):
            return self._name(step, expr)
        if isinstance(expr, Attr):
            return self._attribute(step, expr)
        if isinstance(expr, Call):
            return self._call(step, expr)
        if isinstance(expr, Index):
            key = expr.key.value if isinstance(expr.key, Const) else None
            held = entries(self._flow, expr.value, key) if self._through.meets(Hop.ITEM) else ()
            return _Found(
                [
                    onward(step, Hop.ITEM, item, None if not frames else frames[0][0], frames)
                    for item, frames in held
                ]
            )
        if isinstance(expr, Choice):
            tests = [onward(step, Hop.TEST, expr.test)] if expr.test is not None else []
            options = [onward(step, Hop.OPERAND, each, op=expr.kind) for each in expr.options]
            return _Found(options + (tests if self._through.meets(Hop.TEST) else []))
        op = expr.op if isinstance(expr, (Bin, Unary)) else ""
        if isinstance(expr, Compare):
            op = expr.ops[0]
        return _Found([onward(step, Hop.OPERAND, part, op=op) for part in children(expr)])

    # -- names

    def _name(self, step: Step, name: Name) -> _Found:
        owner = owner_of(name)
        if owner is None or self_class(name) is not None:
            return _Found([])
        bindings = definitions(owner, name)
        if len(bindings) > MOST_REACHING:
            return _Found([], is_whole=False)
        found = [self._binding(step, owner, each) for each in reversed(bindings)]
        steps = [each for one in found for each in one.before]
        return _Found(steps, all(one.is_whole for one in found))

    def _binding(
        self, step: Step, owner: Scope, binding: Binding, imports: tuple[Binding, ...] = ()
    ) -> _Found:
        how, value = binding.how, binding.value
        if isinstance(binding.payload, Param) and isinstance(owner, Function):
            if not self._through.meets(Hop.CALLER):
                return _Found([], is_whole=False)
            return self._callers(step, owner, binding.payload)
        if isinstance(binding.payload, Imported) and self._through.meets(Hop.ASSIGNED):
            if binding in imports:  # a package that imports a module of its own by name
                return _Found([], is_whole=False)
            return self._imported(step, owner, binding.payload, (*imports, binding))
        if how == "aug" and isinstance(binding.stmt, AugAssign):
            return self._augmented(step, owner, binding.stmt)
        if value is None:
            return _Found([], is_whole=False)
        part = part_of(value, binding.path)
        if how == "assign" and part is not None:
            return _Found([onward(step, Hop.ASSIGNED, part, owner)])
        if how == "assign" and isinstance(value, Call) and self._through.meets(Hop.RETURN):
            unpacked = self._unpacked(step, value, binding.path)
            if unpacked.is_whole or unpacked.before:
                return unpacked
        held = [value, *contents(owner, value)] if self._through.meets(Hop.ELEMENT) else []
        found = [onward(step, Hop.ELEMENT, each, owner) for each in held]
        return _Found(found, is_whole=how != "assign")

    def _augmented(self, step: Step, scope: Scope, stmt: AugAssign) -> _Found:
        """``x += y``: what ``x`` was, and ``y``."""
        both = (stmt.target, stmt.value)
        return _Found([onward(step, Hop.ASSIGNED, each, scope, op=stmt.op) for each in both])

    def _imported(
        self, step: Step, scope: Scope, imported: Imported, imports: tuple[Binding, ...]
    ) -> _Found:
        name, attribute, level = imported
        project = self._flow.project
        path = project.imports.find(name, project.module_of(scope), level) if attribute else None
        module = project.module_telling(path) if path is not None else None
        bindings = module.facts.bindings.get(attribute or "", []) if module is not None else []
        if module is None or not bindings:
            return _Found([], is_whole=False)
        found = [self._binding(step, module.facts, each, imports) for each in bindings]
        steps = [each for one in found for each in one.before]
        return _Found(steps, all(one.is_whole for one in found))

    # -- functions

    def _callers(self, step: Step, function: Function, param: Param) -> _Found:
        if step.frames and step.frames[0][0] is function:
            calls, frames = [step.frames[0][1]], step.frames[1:]
        else:
            calls, frames = self._flow.callers(function), ()
        found: list[Step] = []
        is_whole, is_missed = bool(calls), not calls
        for call in calls:
            given = passed(function, param, call)
            if isinstance(given, Expr):
                found.append(onward(step, Hop.CALLER, given, call.scope, frames))
            elif given is MISSING:
                is_missed = True
            else:
                spread = [
                    onward(step, Hop.CALLER, item, _own_scope(item, call.scope), held)
                    for container, key in _unpacked_for(function, param, call)
                    for item, held in entries(self._flow, container, key)
                ]
                found += spread
                is_whole &= bool(spread)
        if is_missed and param.default is not None:
            found.append(onward(step, Hop.CALLER, param.default, function, ()))
        elif is_missed:
            is_whole = False
        return _Found(found, is_whole)

    def _call(self, step: Step, call: Call) -> _Found:
        if self._through.meets(Hop.ARGUMENT) and is_computed(self._flow, call):
            return _Found([onward(step, Hop.ARGUMENT, arg.value) for arg in call.args])
        if not self._through.meets(Hop.RETURN):
            return _Found([])
        found: list[Step] = []
        is_whole = True
        for function in self._flow.callees(call):
            if function.name == "__init__":
                continue
            if any(function is inside for inside, _ in step.frames):
                continue  # a recursive call adds nothing that the outer one does not
            frames = ((function, call), *step.frames)
            found += self._returned(step, function, frames)
            is_whole &= bool(function.returns or function.yields)
        return _Found(found, is_whole)

    def _unpacked(self, step: Step, call: Call, path: tuple[int, ...]) -> _Found:
        """``a, b = call()``: that part of what is returned, where it is a display.

        Also where a function returns what another call does.
        """
        found: list[Step] = []
        unsplit: list[Step] = []
        whole = self._call(step, call)
        is_whole, is_told = whole.is_whole, False
        for each in whole.before:
            if path and isinstance(path[0], Nth) and not path[0].may_be_of(each.expr):
                is_told = True  # not returned to this call: it could not be taken apart
                continue
            if each.hop is Hop.RETURN and isinstance(each.expr, Call):
                inner = self._unpacked(each, each.expr, path)
                found += inner.before
                is_whole &= inner.is_whole
                is_told |= inner.is_whole
                continue
            part = part_of(each.expr, path) if each.hop is Hop.RETURN else None
            if part is not None:
                found.append(each._replace(expr=part))
            elif not isinstance(each.expr, Seq):
                unsplit.append(each._replace(hop=Hop.ELEMENT))
            is_whole &= part is not None
        if found and not is_whole and self._through.meets(Hop.ELEMENT):
            found += unsplit
        return _Found(found, is_whole and (is_told or bool(found)))

    def _returned(
        self, step: Step, function: Function, frames: tuple[Frame, ...]
    ) -> Iterator[Step]:
        for stmt in function.returns:
            if stmt.value is not None:
                yield onward(step, Hop.RETURN, stmt.value, function, frames)
        for produced in function.yields:
            if produced.value is not None and self._through.meets(Hop.ELEMENT):
                yield onward(step, Hop.RETURN, produced.value, function, frames)

    # -- attributes

    def _attribute(self, step: Step, attribute: Attr) -> _Found:
        cls = self_class(attribute.value)
        if cls is None:
            return self._property(step, attribute)
        family = [base for base in self._flow.mro(cls) if isinstance(base, Class)]
        getters = [
            method
            for base in (*family, *self._flow.subclasses(cls))
            if (method := base.method(attribute.name)) is not None and method.is_property
        ]
        if getters and self._through.meets(Hop.RETURN):
            return _Found([each for g in getters for each in self._returned(step, g, step.frames)])
        found: list[Step] = []
        for base in family if self._through.meets(Hop.ATTRIBUTE) else ():
            for store in self._flow.project.own_stores(attribute.name, base):
                found += self._kept(step, store)
            for binding in base.bindings.get(attribute.name, ()):
                if binding.value is not None:
                    found.append(onward(step, Hop.ATTRIBUTE, binding.value, base, ()))
        return _Found(found)

    def _property(self, step: Step, attribute: Attr) -> _Found:
        """What a property of an object of the tree returns."""
        if not self._through.meets(Hop.RETURN):
            return _Found([])
        owners = self._flow.values(attribute.value)
        methods = [self._flow.method(v.cls, attribute.name) for v in owners if isinstance(v, Obj)]
        getters = [each for each in methods if isinstance(each, Function) and each.is_property]
        found = (each for g in dict.fromkeys(getters) for each in self._returned(step, g, ()))
        return _Found([*found], is_whole=not getters or len(getters) == len(owners))

    def _kept(self, step: Step, store: Store) -> Iterable[Step]:
        """What a store keeps in an attribute: of a call that returns several, that one."""
        if store.path and isinstance(store.value, Call) and self._through.meets(Hop.RETURN):
            made = onward(step, Hop.ATTRIBUTE, store.value, store.scope, ())
            unpacked = self._unpacked(made, store.value, store.path)
            if unpacked.is_whole:
                return unpacked.before
        return stored(step, store)


def _unpacked_for(function: Function, param: Param, call: Call) -> Iterator[tuple[Expr, object]]:
    """What a call unpacks that may hold a parameter's value, and by which key."""
    places = [each for each in function.params if each.is_positional][function.is_bound :]
    stars = [place for place, arg in enumerate(call.args) if arg.stars == 1]
    for arg in call.args:
        if arg.stars == 2:
            yield arg.value, param.name
        elif arg.stars == 1 and len(stars) == 1 and param in places[stars[0] :]:
            yield arg.value, places.index(param) - stars[0]


class _Found(NamedTuple):
    """What one step may come from."""

    before: list[Step]
    is_whole: bool = True
    """Whether it comes from nothing else."""


def is_computed(flow: Flow, call: Call, by: Collection[str] = COMPUTES) -> bool:
    """Whether a call gives what a function of a library computes from its arguments alone."""
    return last_name(call.func) in _LAST_NAMES and any(
        isinstance(value, Ext) and value.dotted in by for value in flow.values(call.func)
    )


def _parts(expr: Expr) -> list[Expr]:
    """What an attribute, an item or a call is taken of, and the arguments."""
    return children(expr) if isinstance(expr, (Attr, Call, Index)) else []
