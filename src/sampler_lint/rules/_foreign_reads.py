"""Attributes that are read of a sampler or loader from outside, and what of them it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType

from sampler_lint import catalog
from sampler_lint.analysis.asked import is_kept_out
from sampler_lint.analysis.origins import parameter_of
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ClassRef, Obj, Value
from sampler_lint.domain.concepts import ASKS_KIND, ITERATED, SAMPLER_ARGUMENTS
from sampler_lint.domain.model import BATCH_SAMPLER, DATA_LOADER, Model
from sampler_lint.domain.programs import is_test
from sampler_lint.edits.editor import renaming
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Related
from sampler_lint.remembered import remembered
from sampler_lint.rules._alike import slips
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import (
    blocks,
    built_by_itself,
    inherited,
    leaves,
    leftmost,
    nodes_in,
    same,
    self_class,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
    Class,
    Const,
    Expr,
    If,
    ModuleFacts,
    Name,
    Other,
    Scope,
    Simple,
    Stmt,
    Try,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module


def outside_reads(model: Model) -> Iterator[Suspect]:
    """``sampler.name`` where every sampler that it may be has no ``name``."""
    for module, read in _reads(model, of_batches=False):
        suspect = _missing(model, module, read)
        if suspect is not None:
            yield suspect


def reads_of_batch_samplers(model: Model) -> Iterator[tuple[Module, Attr, Obj]]:
    """``sampler.batch_size`` and its like, where every sampler that it may be has none.

    With the first of these samplers.
    """
    for module, read in _reads(model, of_batches=True):
        owners = model.flow.values(read.value)
        if owners and _had_by_all(model, owners, read.name) is not None:
            yield module, read, next(owner for owner in owners if isinstance(owner, Obj))


def _reads(model: Model, *, of_batches: bool) -> Iterator[tuple[Module, Attr]]:
    """What is read of samplers and loaders without asking first.

    What torch's batch sampler has, or what it has not.
    """
    batch_sampler = catalog.known(BATCH_SAMPLER)
    assert batch_sampler is not None
    for module, read in _named_reads(model):
        if (
            (read.name in batch_sampler.attributes) is of_batches
            and not model.project.stores_near(read.name, read.scope)
            and not is_expected(model, read, AttributeError)
            and not is_asked_first(read.stmt, read.value, read.name)
        ):
            yield module, read


@remembered
def _named_reads(model: Model) -> list[tuple[Module, Attr]]:
    """What is read of anything, ``self`` aside, that is named after what a pass goes over."""
    return [
        (module, read)
        for module in model.modules
        if not is_test(module)
        for scope in module.facts.scopes
        for read in scope.reads
        if ITERATED.names(read.value)
        and self_class(read.value) is None
        and not read.name.startswith("_")
    ]


def _missing(model: Model, module: Module, read: Attr) -> Suspect | None:
    function, _ = parameter_of(read.value) or (None, None)
    if function is not None and module.is_library(function):
        return None  # its users may hand in anything
    holder = self_class(leftmost(read.value))
    if holder is not None and holder in _put_together(model):
        return None  # a class beside it may have put something else there
    owners = model.flow.values(read.value)
    had = _had_by_all(model, owners, read.name)
    if had is None:
        return _missing_in_branch(model, module, read)
    roles = {model.role(owner) for owner in owners}
    if not owners or (read.name == "set_epoch" and roles <= {"loader", "batch_sampler"}):
        return None  # SMP103 says of these what to call
    owner = next(o for o in owners if isinstance(o, Obj))
    near = near_names(read.name, had)
    shown = text_of(module.source, read)
    message = f"`{owner.name}` has no attribute `{read.name}`"
    effect = f"`{shown}` raises AttributeError when the line runs"
    why = (Related(model.place_of(owner), "built here"),)
    if len(near) != 1:
        return Suspect(module, read, message, why=why, effect=effect)
    message += f"; did you mean `{near[0]}`?"
    why_not = "another attribute may be meant"
    fix = renaming(read, read.name, near[0], f"Read `{near[0]}`", Applicability.UNSAFE, why_not)
    return Suspect(module, read, message, why=why, fix=fix, effect=effect)


@remembered
def _put_together(model: Model) -> set[Class]:
    """The classes that are named where others are made of some: ``type("Trainer", bases, {})``."""
    return {
        value.cls
        for name in ("type", "__class__")
        for call in model.project.calls_named(name)
        if len(call.args) == 3
        for node in nodes_in(statements(call.scope.body))
        if isinstance(node, (Name, Attr))
        for value in model.flow.values(node)
        if isinstance(value, ClassRef)
    }


def _missing_in_branch(model: Model, module: Module, read: Attr) -> Suspect | None:
    """``s.total_size`` below ``s = DistributedSampler(d) if several else RandomSampler(d)``."""
    found, stmt = read.value, read.stmt
    if not isinstance(found, Name) or found.id not in read.scope.bindings or stmt is None:
        return None
    for binding in definitions(read.scope, found):
        made, test = binding.stmt, None
        if made is not None and binding.how == "assign" and binding.value is not None:
            test = _decides(made, stmt)
        if made is None or test is None or (value := binding.value) is None:
            continue
        owners = frozenset(
            each
            for each in model.flow.values(value)
            if not is_kept_out(model.flow, made, value, each)
        )
        owner = next((each for each in owners if isinstance(each, Obj)), None)
        if owner is None or _had_by_all(model, owners, read.name) is None:
            continue
        branch = "where" if any(made in block for block in [*blocks(test)][:1]) else "where not"
        return Suspect(
            module,
            read,
            f"`{owner.name}` has no attribute `{read.name}`",
            why=(Related(model.place_of(owner), f"built here, {branch} `{unparse(test.test)}`"),),
            effect=f"`{text_of(module.source, read)}` raises AttributeError then",
            advice="ask first which of them it is",
        )
    return None


def _decides(made: Stmt, stmt: Stmt) -> If | None:
    """The condition that makes the one of two statements run, and the second always behind it."""
    outer = made.parent
    if not isinstance(outer, If) or outer.encloses(stmt):
        return None
    around = [*stmt.ancestors()]
    if any(isinstance(each, (If, Try, While)) and not each.encloses(made) for each in around):
        return None
    if any(isinstance(node, Choice) for node in nodes_in([stmt])) or any(
        made.order < each.order < stmt.order
        and (leaves(each) or (isinstance(each, Simple) and each.kind == "assert"))
        for each in statements(stmt.scope.body)
    ):
        return None
    return outer


def _had_by_all(model: Model, owners: frozenset[Value], name: str) -> set[str] | None:
    """The attributes of all owners; None where one may have ``name``."""
    had: set[str] | None = None
    for owner in owners:
        names = _names(model, owner)
        if names is None or name in names:
            return None
        had = names if had is None else had & names
    return had or set()


def _names(model: Model, owner: Value) -> set[str] | None:
    """The attributes of what is certainly a sampler or loader; None when there may be others.

    Of the loaders only torch's: the catalog does not have all that those of frameworks add.
    """
    role = model.role(owner)
    if not isinstance(owner, Obj) or (role not in SAMPLER_ARGUMENTS and owner.cls != DATA_LOADER):
        return None
    if isinstance(owner.cls, str):
        names: set[str] = {*dir(object), "__dict__"}
        for entry in catalog.known_mro(owner.cls):
            names |= entry.attributes | entry.methods | set(entry.params) | entry.keywords
        return names | _OF_ITERATORS
    names = set()
    heirs = () if _is_exact(owner) else model.flow.subclasses(owner.cls)
    for cls in (owner.cls, *heirs):
        attributes = model.attributes(cls)
        if attributes.open is not None:
            return None
        names |= attributes.names
    return names


def _is_exact(obj: Obj) -> bool:
    """Whether an object certainly is of its class itself, as a call by the class's name builds."""
    if obj.site is None or built_by_itself(obj.site) is not None:
        return False
    return last_name(obj.site.func) not in {None, "__class__"}


#: What an iterator has: the points-to analysis takes what `iter` gives for the object itself;
#: torch's had `next` until 1.13.
_OF_ITERATORS = frozenset({*dir(GeneratorType), "next"})


def is_asked_first(stmt: Stmt | None, of: Expr, name: str) -> bool:
    """Whether a condition around a statement looks at an object, or for ``name``, first."""
    if stmt is None:
        return True
    owner = last_name(of)
    tests = []
    if inherited(stmt, _is_below_question, False) or _is_where_it_failed(stmt, of):
        return True
    names, constants = _said_in_tests(stmt.scope.module, stmt.scope)
    if owner in names or name in constants:
        tests += [s.test for s in stmt.ancestors() if isinstance(s, (If, While))]
    for node in nodes_in([stmt]):
        if isinstance(node, Choice) and node.test is not None:
            tests.append(node.test)
        elif isinstance(node, Other) or (isinstance(node, Call) and ASKS_KIND.is_call(node)):
            return True
    return any(
        last_name(node) == owner
        or (isinstance(node, Const) and node.value == name)
        or (isinstance(node, Call) and ASKS_KIND.is_call(node))
        for test in tests
        for node in walk(test)
    )


def _is_where_it_failed(stmt: Stmt, of: Expr) -> bool:
    """Whether a statement only runs where something else that was asked of an object failed.

    ``try: n = len(loader)``, ``except TypeError: n = loader.num_batches``: it is another then.
    """
    return any(
        isinstance(around, Try)
        and any(
            inner is stmt or inner.encloses(stmt) for _, body in around.handlers for inner in body
        )
        and any(same(node, of) for node in nodes_in(statements(around.body)))
        for around in stmt.ancestors()
    )


def _is_below_question(found: bool, stmt: Stmt) -> bool:
    """Whether a condition around the statement asks what something is or has."""
    around = stmt.parent
    return found or (
        isinstance(around, (If, While))
        and any(isinstance(node, Call) and ASKS_KIND.is_call(node) for node in walk(around.test))
    )


@remembered
def _said_in_tests(_: ModuleFacts, scope: Scope) -> tuple[set[str | None], set[object]]:
    """The names (None for what has none) and literals in the conditions of a scope."""
    tests = (s.test for s in statements(scope.body) if isinstance(s, (If, While)))
    nodes = [node for test in tests for node in walk(test)]
    constants = {node.value for node in nodes if isinstance(node, Const)}
    return {last_name(node) for node in nodes}, constants


def near_names(name: str, defined: set[str]) -> list[str]:
    """The names that a slip of the pen may have made of ``name``."""
    own = [other for other in defined if not other.startswith("__")]
    return slips(name, own, at_least=0.8)
