"""What the code above a place has set a setting to, or asked of it: a test has one answer then."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sampler_lint.analysis.asked import refuses, tests, upright
from sampler_lint.analysis.named_stores import may_spell
from sampler_lint.analysis.values import Ext, Obj
from sampler_lint.domain.concepts import PROCESSES
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test, program_files, stores_beside
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import owner_of, self_class, unparse
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Binding,
    Call,
    Choice,
    Class,
    Const,
    Expr,
    For,
    Function,
    ModuleFacts,
    Name,
    Scope,
    Stmt,
    While,
    dotted,
)


def never_runs(model: Model, place: Stmt | Call) -> bool:
    """Whether a place, or each call of its function, stands in a branch that is ruled out."""
    if is_ruled_out(model, place):
        return True
    scope = place.scope
    callers = model.flow.callers(scope) if isinstance(scope, Function) else []
    return bool(callers) and all(is_ruled_out(model, call) for call in callers)


def is_ruled_out(model: Model, place: Stmt | Call) -> bool:
    """Whether a test on the way to a place asks for what the code above it has settled otherwise.

    ``args.distributed = False`` above ``if args.distributed:``, or the same within ``if not
    args.distributed:``. ``BALANCE = False`` at the top of the file, where nothing else sets it.
    """
    return any(
        (_settled(model, part) if isinstance(part, Attr) else _kept_by_file(model, part))
        is (not said)
        for test, answer in tests(place)
        for part, said in _parts(test, answer)
        if isinstance(part, (Attr, Name)) and not refuses(part)
    )


def is_chosen_by_nobody(model: Model, cls: Class, place: Stmt) -> bool:
    """Whether what is passed wherever the program builds a class keeps its objects from a branch.

    ``if self.replacement:``, with what the constructor keeps as it gets it.
    """
    built = [
        obj.site for kin in (cls, *model.flow.subclasses(cls)) for obj in model.flow.built(kin)
    ]
    sites = [s for s in built if s is not None and not is_test(model.module_of(s.scope))]
    return bool(sites) and any(
        all(_kept(model, part, site) is (not said) for site in sites)
        for test, answer in tests(place)
        for part, said in _parts(test, answer)
        if isinstance(part, Attr)
    )


def _kept(model: Model, read: Attr, site: Call) -> bool | None:
    """Whether what an object keeps is true, by what a call passes to its constructor."""
    owner = self_class(read.value)
    stores = model.project.own_stores(read.name, owner) if owner is not None else []
    if len(stores) != 1 or stores[0].path or stores[0].value is None:
        return None
    if stores[0].scope.name != "__init__" or model.project.outer_stores_near(read.name, read.scope):
        return None
    found = model.flow.constants(stores[0].value, site)
    return bool(next(iter(found))) if found is not None and len(found) == 1 else None


def _parts(test: Expr, answer: bool) -> Iterator[tuple[Expr, bool]]:
    """What has to be answered how for a test to have an answer."""
    test, answer = upright((test, answer))
    if not isinstance(test, Choice) or test.kind == "if":
        yield test, answer
    elif answer is (test.kind == "and"):
        for option in test.options:
            yield from _parts(option, answer)


def _settled(model: Model, read: Attr) -> bool | None:
    """Whether a setting is true where it is read, as a test or an assignment above it says."""
    name, stmt = dotted(read), read.stmt
    if name is None or stmt is None:
        return None
    for above in chain([stmt], stmt.ancestors()):
        before = (each for each in reversed(above.block) if each.order < above.order)
        for each in before:
            if isinstance(each, Assign) and any(dotted(target) == name for target in each.targets):
                if not isinstance(each.value, Const) or _is_changed(model, read, each):
                    return None
                return bool(each.value.value)
    for test, answer in tests(stmt):
        for part, said in _parts(test, answer):
            asked = part.stmt if isinstance(part, Attr) and dotted(part) == name else None
            if asked is not None and not _is_changed(model, read, asked):
                return said
    return _written_once(model, read)


def _written_once(model: Model, read: Attr) -> bool | None:
    """Whether a setting is true that stands in a class of settings, and that nothing sets.

    ``class Args: evaluate = False``, of which the program makes an object and asks it.
    """
    if self_class(read.value) is not None:
        return None
    found = {
        _constant_in(model, value.cls, read.name)
        if isinstance(value, Obj) and isinstance(value.cls, Class) and value.site is not None
        else None
        for value in model.flow.values(read.value)
    }
    return found.pop() if len(found) == 1 else None


def _kept_by_file(model: Model, read: Name) -> bool | None:
    """Whether a variable of a file is true that is set once, to what it is, and by nothing else.

    None for one that turns several processes on: who checks a program means to run it so.
    """
    owner = owner_of(read)
    if not isinstance(owner, ModuleFacts) or PROCESSES.says(read.id):
        return None
    match owner.bindings[read.id]:
        case [Binding(how="assign", path=(), value=Const(value=bool() as value))]:
            by_name = any(not scope.called.isdisjoint(_SETS_ANY) for scope in owner.scopes)
            is_set = by_name or model.project.stores_near(read.id, read.scope)
            return None if is_set else value
    return None


@remembered
def _constant_in(model: Model, cls: Class, name: str) -> bool | None:
    """Whether a class that nothing derives from or tells anything else says yes to a setting."""
    bound = cls.bindings.get(name, [])
    value = bound[0].value if len(bound) == 1 and not bound[0].path else None
    if (
        not isinstance(value, Const)
        or cls.bases
        or cls.decorators
        or cls.method("__init__") is not None
        or model.flow.subclasses(cls)
        or any(stores_beside(model, name, cls))
    ):
        return None
    by_name = (
        call.positional[1]
        for call in model.project.calls_near("setattr", cls)
        if len(call.positional) == 3 and self_class(call.positional[0]) in {None, cls}
    )
    files = program_files(model)
    if any(may_spell(each, name) for each in by_name) or any(
        files.says(path, *_TELL_ALL) for path in files.beside(model.module_of(cls).path)
    ):
        return None
    return bool(value.value)


#: Calls by which a file may set whatever is named to it at its top level.
_SETS_ANY = frozenset({"exec", "globals", "locals", "vars"})
#: How a program may set whatever is named to it on an object.
_TELL_ALL = ("__dict__", "vars(", "namespace=")


def _is_changed(model: Model, read: Attr, since: Stmt) -> bool:
    """Whether something between a statement and the read may set the setting, or its owner."""
    stmt = read.stmt
    assert stmt is not None
    inner = [each for each in stmt.ancestors() if isinstance(each, (For, While))]
    loops = [each.last_order for each in inner if not each.encloses(since)]
    begin, end = since.order, max([stmt.order, *loops])
    name, scope = unparse(read), stmt.scope
    root = name.partition(".")[0]
    bound = [store.stmt for store in scope.stores if _covers(dotted(store.target), name)]
    bound += [each.stmt for each in scope.bindings.get(root, ()) if each.stmt is not None]
    if any(begin < each.order <= end for each in bound):
        return True
    setting = {store.scope for store in model.project.stores_near(read.name, scope)}
    calls = [c for c in scope.calls if c.stmt is not None and begin < c.stmt.order < end]
    called: list[Scope] = [callee for call in calls for callee in model.flow.callees(call)]
    reached: Iterator[Scope] = closure(called, model.flow.called_by)
    return not setting.isdisjoint(reached) or any(_is_open(model, call, root) for call in calls)


def _covers(target: str | None, name: str) -> bool:
    return target is not None and f"{name}.".startswith(f"{target}.")


def _is_open(model: Model, call: Call, root: str) -> bool:
    """Whether nobody knows what is called with the settings themselves."""
    if not any(dotted(arg.value) == root for arg in call.args) or model.flow.callees(call):
        return False
    values = model.flow.values(call.func)
    return not values or not all(isinstance(value, Ext) for value in values)
