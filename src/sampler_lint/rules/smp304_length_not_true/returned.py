"""A ``__len__`` that returns no whole number, or never more than one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.values import Ext, Obj, Value
from sampler_lint.domain.concepts import DRAW, PROTOCOL, SAMPLER_ARGUMENTS
from sampler_lint.domain.epoch_state import Reach, is_closed, reach
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor, replacing
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.parameters import OBJECTS, role_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.rules._foreign_reads import is_asked_first
from sampler_lint.rules._some_paths import only_stores
from sampler_lint.rules._trials import defined_by
from sampler_lint.rules.smp304_length_not_true.asked import is_held_to_number
from sampler_lint.syntax.navigation import blocks, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Name,
    Raise,
    Return,
    Scope,
    Seq,
    Simple,
    Stmt,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module


def returns_nothing(module: Module, cls: Class) -> Suspect | None:
    """A ``__len__`` without a value."""
    length = cls.method("__len__")
    if length is None or length.yields or length.decorators:
        return None
    if any(
        stmt.value is not None and not (isinstance(stmt.value, Const) and stmt.value.value is None)
        for stmt in length.returns
    ):
        return None
    if not length.returns and not _comes_to_its_end(length.body):
        return None
    node = length.returns[0] if length.returns else name_of(module, length)
    return Suspect(
        module,
        node,
        f"`{cls.name}.__len__` returns None",
        effect="`len()` of the sampler and of its loader raises TypeError ('NoneType' object "
        "cannot be interpreted as an integer)",
        advice="count what `__iter__` yields, or leave `__len__` out",
    )


def _comes_to_its_end(body: list[Stmt]) -> bool:
    """Whether a function certainly raises nothing: it does nothing, or forgets what it computed."""
    if any(isinstance(stmt, Raise) for stmt in statements(body)):
        return False
    last = body[-1]
    if isinstance(last, If):
        return all(_comes_to_its_end(block) for block in (last.body, last.orelse) if block)
    if isinstance(last, ExprStmt):
        value = last.value
        is_length = isinstance(value, Call) and last_name(value.func) == "len"
        return is_length or isinstance(value, Bin)
    return isinstance(last, (Assign, AugAssign)) or all(map(_does_nothing, body))


#: Functions that round and give a float all the same.
_ROUNDING = frozenset(Ext(f"numpy.{name}") for name in ("ceil", "floor", "rint", "trunc"))


def returns_a_fraction(model: Model, module: Module, cls: Class) -> Suspect | None:
    """``return n / k``, or ``np.ceil(n / k)``: a float, which ``len()`` refuses."""
    length = cls.method("__len__")
    if length is None or length.decorators or len(length.returns) != 1:
        return None
    value = length.returns[0].value
    rounded = isinstance(value, Call) and bool(model.flow.values(value.func) & _ROUNDING)
    divided = isinstance(value, Bin) and value.op == "Div"
    if value is None or not (rounded or divided or _gives_fraction(model, cls, length)):
        return None

    def fix(editor: Editor) -> Fix:
        return editor.wrap(value, "int(", ")").fix("Make it an int", Applicability.SAFE)

    return Suspect(
        module,
        value,
        f"`{cls.name}.__len__` returns a float",
        fix=fix if rounded else None,
        effect="`len()` of the sampler and of its loader raises TypeError ('float' object cannot "
        "be interpreted as an integer)",
        advice="round it to an int",
    )


def _gives_fraction(model: Model, cls: Class, length: Function) -> bool:
    """Whether the length was a float where the class was tried."""
    return any(
        error.of_float
        and isinstance(error.node, ast.FunctionDef)
        and error.node.lineno == length.row
        for error in model.trials(cls).errors
    )


def at_most_one(model: Model, cls: Class, *, is_true: bool) -> Suspect | None:
    """``return min(1, …)``, in ``__len__`` or the method it returns.

    ``is_true``: whether the length was true wherever the class could be tried. One may be meant.
    """
    length = defined_by(model, cls, "__len__")
    todo = [] if length is None else [length]
    todo += [
        callee
        for method in todo
        for call in method.calls
        for callee in _own_methods(model, cls, call)
    ]
    for method in todo:
        for returned in method.returns:
            value = returned.value
            if (
                isinstance(value, Call)
                and isinstance(value.func, Name)
                and value.func.id == "min"
                and len(value.args) == 2
                and any(_is_one(arg.value) for arg in value.args)
            ):
                module = model.module_of(method)
                because = "its length was right in every simulated case" if is_true else ""
                if not because and is_held_to_number(model, cls):
                    because = "the program compares the length with a number"
                return Suspect(
                    module,
                    value,
                    f"`min(1, …)` makes `len()` of `{cls.name}` at most 1",
                    fix=replacing(
                        value.func,
                        "max",
                        "Make 1 the lower bound",
                        Applicability.UNSAFE if because else Applicability.SAFE,
                        because,
                    ),
                    effect="trainers take the steps per epoch and the learning-rate schedule "
                    "from `len(loader)`",
                    advice="use `max(1, …)` for a lower bound",
                )
    return None


def _own_methods(model: Model, cls: Class, call: Call) -> list[Function]:
    if not (isinstance(call.func, Attr) and self_class(call.func.value) is not None):
        return []
    method = defined_by(model, cls, call.func.name)
    is_returned = method is not None and isinstance(call.stmt, Return)
    return [method] if method is not None and is_returned else []


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == 1


def _does_nothing(stmt: Stmt) -> bool:
    return isinstance(stmt, Simple) and stmt.kind == "pass"


# Lengths that are set too late, or that skipping makes untrue.


def set_too_late(model: Model, cls: Class) -> Suspect | None:
    """A length that needs an attribute which only a later call sets."""
    length = defined_by(model, cls, "__len__")
    related = [*model.flow.mro(cls), *model.flow.subclasses(cls)]
    built = reach(model, cls, "__init__")
    for read in length.reads if length is not None else ():
        if self_class(read.value) is None or not _is_read_first(model, cls, read, built):
            continue
        setters = [store.scope for store in only_stores(model, cls, read.name, related) or ()]
        if setters and all(
            one.name == "__iter__" and one.outer is cls and one not in built.functions
            for one in setters
        ):
            return Suspect(
                model.module_of(read.scope),
                read,
                f"`len()` of `{cls.name}` reads `self.{read.name}`, which only `__iter__` sets",
                why=(Related(model.place(setters[0], setters[0]), "set here"),),
                effect="before the first epoch `len()` of the sampler and of its loader raises "
                "AttributeError; later it is the length of the previous epoch",
                advice="compute it in `__init__`",
            )
    return None


def _is_read_first(model: Model, cls: Class, read: Attr, built: Reach) -> bool:
    """Whether an attribute is certainly read of an object that was only built."""
    trials = model.trials(cls)
    error = trials.length_raised
    if error is not None and error.kind == "AttributeError":
        return isinstance(error.node, ast.Attribute) and error.node.attr == read.name
    return (
        not trials.usual
        and not trials.guessed
        and not built.opaque
        and model.attributes(cls).open is None
        and read.stmt is not None
        and not any(tests(read.stmt))
        and not is_asked_first(read.stmt, read.value, read.name)
        and not is_expected(model, read, AttributeError)
    )


def empty_at_first(model: Model, cls: Class) -> Suspect | None:
    """The length of a list that a pass fills, and that is empty until then."""
    length = defined_by(model, cls, "__len__")
    name = _counted(length) if length is not None else None
    if length is None or name is None or not is_closed(model, cls):
        return None
    built, passing = reach(model, cls, "__init__"), reach(model, cls, "__iter__")
    stores = [
        each for one in model.flow.own_mro(cls) for each in model.project.own_stores(name, one)
    ]
    begun = [store for store in stores if store.scope in built.functions]
    filled = [store for store in stores if store.scope not in built.functions]
    used = {read.name for read in built.self_reads()}
    if not begun or not filled or name in used or built.opaque:
        return None
    if not all(isinstance(store.value, Seq) and not store.value.items for store in begun):
        return None
    fillers = {store.scope for store in filled}
    if not all(
        isinstance(scope, Function) and scope in passing.functions and scope.name != "set_epoch"
        for scope in fillers
    ) or _is_filled_before(model, fillers, passing.functions):
        return None
    where, read = model.module_of(length), length.returns[0]
    why = (Related(model.place(filled[0].scope, filled[0].stmt), "filled here"),)
    return Suspect(
        where,
        read,
        f"`len()` of `{cls.name}` is 0 before its first pass, which fills `self.{name}`",
        why=why,
        effect="before the first epoch `len()` of its loader is 0, and with it what trainers take "
        "from that; later it is the length of the pass before",
        advice="fill it in `__init__`, too",
    )


def _counted(length: Function) -> str | None:
    """The attribute of ``return len(self.attribute)``, if that is all that a method does."""
    value = length.returns[0].value if len(length.returns) == len(length.calls) == 1 else None
    if not isinstance(value, Call) or last_name(value.func) != "len" or len(value.args) != 1:
        return None
    counted = value.args[0].value
    is_own = isinstance(counted, Attr) and self_class(counted.value) is not None
    return counted.name if is_own and isinstance(counted, Attr) else None


def _is_filled_before(model: Model, fillers: set[Scope], passing: set[Function]) -> bool:
    """Whether anything but a pass may call what fills a list."""
    return any(
        call.scope not in passing
        for filler in fillers
        if isinstance(filler, Function) and filler.name != "__iter__"
        for call in model.project.calls_near(filler.name, filler)
    )


def skips_under_inherited(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A length that counts every sample, above an ``__iter__`` that leaves some out."""
    iterate = cls.method("__iter__")
    owner = model.flow.method(cls, "__len__")
    if iterate is None or not isinstance(owner, str) or model.trials(cls).usual:
        return None
    if any(isinstance(call.func, Attr) and call.func.name in PROTOCOL for call in iterate.calls):
        return None
    skip = next(filter(None, map(_skip, (s for s in statements(iterate.body)))), None)
    if skip is None:
        return None
    base = owner.rpartition(".")[2]
    why = (Related(module.place(skip), "samples skipped here"),)
    return Suspect(
        module,
        name_of(module, cls),
        f"`{cls.name}.__iter__` skips samples that its `__len__`, inherited from {base}, counts",
        why=why,
        effect="`len()` is too large, and with it the steps per epoch and the learning-rate "
        "schedule",
        advice="define `__len__` for what is yielded",
    )


def _skip(stmt: Stmt) -> Stmt | None:
    """The ``continue`` under a condition that leaves a sample of the inner sampler out."""
    if not isinstance(stmt, For) or not any(
        isinstance(node, Attr) and role_of(node.name) in OBJECTS for node in walk(stmt.iter)
    ):
        return None
    for inner in _own(stmt.body):
        test = inner.parent
        if (
            isinstance(inner, Simple)
            and inner.kind == "continue"
            and isinstance(test, If)
            and test.body == [inner]
            and not _mentions(test, {"drop_last", "rank"})
        ):
            return inner
    return None


def _own(body: list[Stmt]) -> Iterator[Stmt]:
    """The statements of a loop's body that are not in another loop."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, (For, While)):
            for block in blocks(stmt):
                yield from _own(block)


def _mentions(test: If, names: set[str]) -> bool:
    return any(
        last_name(node) in names for node in walk(test.test) if isinstance(node, (Name, Attr))
    ) or any(isinstance(node, Call) for node in walk(test.test) if _is_random(node))


def _is_random(node: object) -> bool:
    return isinstance(node, Call) and isinstance(node.func, Attr) and DRAW.names(node.func)


# ``len()`` of a sampler that has none, or of a loader that is given such a one.


def length_missing(model: Model) -> Iterator[Suspect]:
    """Where a program asks for a length that no class defines.

    ``DataLoader.__len__`` asks its batch sampler, which asks its sampler; torch's ``Sampler`` has
    no ``__len__`` (torch/utils/data/sampler.py, the notes above the class).
    """
    if not any(
        model.is_sampler_class(cls) and _has_no_length(model, cls) for _, cls in model.classes()
    ):
        return
    for module in model.modules:
        for call in module.facts.all_calls:
            if not (isinstance(call.func, Name) and call.func.id == "len" and call.positional):
                continue
            of = call.positional[0]
            lacking = [_lacking(model, value) for value in model.flow.values(of)]
            if (
                not lacking
                or None in lacking
                or is_expected(model, call, TypeError)
                or is_asked_first(call.stmt, of, "__len__")
            ):
                continue
            sampler = next(each for each in lacking if each is not None)
            assert isinstance(sampler.cls, Class)
            shown = text_of(module.source, call)
            yield Suspect(
                module,
                call,
                f"`{shown}` fails: `{sampler.cls.name}` has no `__len__`",
                why=(Related(model.place_of(sampler), "sampler built here"),),
                effect="TypeError when the line runs",
                advice=f"give `{sampler.cls.name}` a `__len__` that counts what `__iter__` yields",
                hides=True,
            )


def _has_no_length(model: Model, cls: Class) -> bool:
    return model.attributes(cls).open is None and model.flow.method(cls, "__len__") is None


def _lacking(model: Model, value: Value) -> Obj | None:
    """The sampler by which asking the value for its length certainly fails."""
    if not isinstance(value, Obj):
        return None
    if isinstance(value.cls, Class):
        own = model.is_sampler_class(value.cls) and _has_no_length(model, value.cls)
        return value if own else None
    if model.role(value) is None or model.flow.method(value.cls, "__len__") != value.cls:
        return None
    for name in SAMPLER_ARGUMENTS:
        given = [_lacking(model, each) for each in model.passed_to(value, name)]
        if given and None not in given:
            return given[0]
    return None
