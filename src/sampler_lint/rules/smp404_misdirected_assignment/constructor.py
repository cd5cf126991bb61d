"""What a constructor is given or stores, and what stands in its place afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from sampler_lint import catalog
from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.asked import apart
from sampler_lint.analysis.origins import depends_on
from sampler_lint.analysis.values import Obj
from sampler_lint.catalog.torch import DEFAULTS
from sampler_lint.domain.concepts import NAMESPACES
from sampler_lint.domain.conditions import excludes, told_what_for
from sampler_lint.domain.datasets import may_be_iterable
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import in_test_function
from sampler_lint.domain.samplers import orders_nothing
from sampler_lint.domain.signatures import Construction, base_inits
from sampler_lint.edits.editor import Editor, replacing
from sampler_lint.edits.names import name_of, quoted, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.parameters import FLAGS, Role, role_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp404_misdirected_assignment.attributes import (
    call_of,
    is_read_only,
    read_by,
)
from sampler_lint.syntax.navigation import (
    nodes_in,
    same,
    self_class,
    self_stores,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    SUMS,
    Assign,
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Param,
    Scope,
    Stmt,
    Store,
    Unary,
    last_name,
)
from sampler_lint.workspace.project import Module

# Attributes set before ``super().__init__()``, which stores another value over them.


if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial, Trials
    from sampler_lint.execution.values import Lost

#: What a constructor of torch's samplers stores when the argument is left out.


def set_before_super(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """Attributes set before the base's ``__init__``, which stores something else."""
    init = cls.method("__init__")
    if init is None:
        return
    found = [*_by_its_arguments(model, module, cls, init)]
    yield from found or _by_running(model, module, cls, init)


def _by_running(model: Model, module: Module, cls: Class, init: Function) -> Iterator[Suspect]:
    """What the base's constructor overwrites with something else when the class is built."""
    read = read_by(model, cls)
    for base in model.flow.mro(cls):
        entry = catalog.known(base) if isinstance(base, str) else None
        read |= entry.attributes if entry is not None else set()
    for made in base_inits(model, cls):
        stmt = made.call.stmt
        before = {
            (target.row, target.col): target
            for target, store in self_stores([init], cls)
            if target.name in read
            and not isinstance(store.value, Const)
            and stmt is not None
            and store.stmt.order < stmt.order
            and not reads(init, target.name, store.stmt, stmt)
        }
        overwritten = (
            (before[place], trial.story, lost)
            for trial, lost in (_lost_by(model.trials(cls)) if before else ())
            if (place := (lost.target.lineno, lost.target.col_offset)) in before
        )
        for target, story, lost in itertools.islice(overwritten, 1):
            yield _taken_over(module, made, target, story, lost)


def _lost_by(trials: Trials) -> Iterator[tuple[Trial, Lost]]:
    """What is lost in some usual world, or in all those of which some arguments are guessed."""
    for trial in trials.usual or trials.guessed[:1]:
        for lost in trial.lost:
            if trials.usual or all(
                any(other.target is lost.target for other in each.lost)
                for each in trials.guessed
                if each.turns
            ):
                yield trial, lost


def _taken_over(
    module: Module, made: Construction, target: Attr, story: str, lost: Lost
) -> Suspect:
    shown = text_of(module.source, target)
    why = (Related(module.place(target), f"`{shown}` set here"),)
    return Suspect(
        module,
        made.call,
        f"`{made.built}.__init__` overwrites `{shown}`, which was set before",
        why=why,
        effect=f"with {story}, {lost.value} is replaced by {lost.other}",
        advice="set it after this call",
    )


def _by_its_arguments(
    model: Model, module: Module, cls: Class, init: Function
) -> Iterator[Suspect]:
    """What a call of a base's constructor says that it overwrites."""
    for made in base_inits(model, cls):
        owner, stmt = made.signature.owner, made.call.stmt
        entry = catalog.known(owner) if isinstance(owner, str) else None
        if entry is None or stmt is None or stmt.parent is not None:
            continue
        if any(arg.stars for arg in made.args):
            continue
        read = read_by(model, cls)
        for target, store in self_stores([init], cls):
            if (
                target.name in entry.attributes & read
                and (target.name in entry.params or _is_floored(store.value))
                and store.stmt.order < stmt.order
                and store.value is not None
                and store.how == "assign"
                and not store.path
                and not _stored_again(init, target, store)
            ):
                given = given_for(made, target.name)
                if target.name not in entry.params or _differs(target, store.value, given):
                    yield _overwrite(module, cls, made, store, target, store.value, given)
                    break


def _stored_again(init: Function, target: Attr, store: Store) -> bool:
    return any(
        other is not store and isinstance(other.target, Attr) and other.target.name == target.name
        for other in init.stores
    )


def given_for(made: Construction, name: str) -> Expr | None:
    """What a call of a base's constructor passes for one of its parameters."""
    for arg in made.args:
        if arg.keyword == name:
            return arg.value
    if name not in made.signature.positional:
        return None
    index = made.signature.positional.index(name)
    return made.positional[index] if index < len(made.positional) else None


def _is_floored(value: Expr | None) -> bool:
    """Whether it is a count of the class's own, and not rounded up as the base does."""
    return (
        isinstance(value, Bin)
        and value.op == "FloorDiv"
        and not any(
            isinstance(node, Unary) or (isinstance(node, Bin) and node.op in SUMS)
            for node in walk(value)
        )
    )


def _differs(target: Attr, stored: Expr, given: Expr | None) -> bool:
    """Whether the base certainly stores another value than the one stored before."""
    if given is None:
        return target.name in DEFAULTS and not (
            isinstance(stored, Const) and stored.value == DEFAULTS[target.name]
        )
    if same(stored, given) or same(target, given):
        return False
    # Another spelling may be the same value; a value made from what is passed is not.
    return isinstance(given, Name) and any(
        same(node, given) for node in walk(stored) if node is not stored
    )


def _overwrite(
    module: Module,
    cls: Class,
    made: Construction,
    store: Store,
    target: Attr,
    stored: Expr,
    given: Expr | None,
) -> Suspect:
    shown = text_of(module.source, target)
    base = made.built
    advice = f"pass `{target.name}={shown}`"
    if given is not None:
        what = f"sets it to `{quoted(module.source, given)}`"
    elif target.name not in DEFAULTS:
        what, advice = "computes its own", "set it after that call"
    else:
        what = f"sets it to its default, {DEFAULTS[target.name]}"
    why = (Related(module.place(store.stmt), f"`{shown}` set here"),)
    fix = None if given is None else replacing(given, shown, f"Pass `{shown}`")
    if given is None and target.name in DEFAULTS:
        fix = partial(_pass, made.call, target.name, shown)
    return Suspect(
        module,
        made.call,
        f"`{base}.__init__` overwrites `{shown} = {quoted(module.source, stored)}`",
        why=why,
        fix=fix,
        effect=f"called afterwards, it {what}",
        advice=advice,
    )


def _pass(call: Call, name: str, shown: str, editor: Editor) -> Fix:
    """Pass on what was stored, so that the base stores it again."""
    return editor.add_argument(call, name, shown).fix(f"Pass `{name}={shown}`", Applicability.SAFE)


# An argument that a constructor keeps, and overwrites before anything has read it.


def overwritten(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``self.x = x``, and then ``self.x = 0`` with nothing between that reads it."""
    init = cls.method("__init__")
    kept: dict[str, Store] = {}
    for store in init.stores if init is not None else ():
        target = store.target
        if init is None or not isinstance(target, Attr) or self_class(target.value) is not cls:
            continue
        before = kept.get(target.name)
        kept[target.name] = store
        if (
            before is not None
            and before.stmt.block is store.stmt.block
            and before.stmt is not store.stmt
            and store.how == before.how == "assign"
            and not reads(init, target.name, before.stmt, store.stmt)
            and not _hands_on(init, before.stmt, store.stmt)
            and (param := _without_a_say(model, init, before, store)) is not None
        ):
            yield _overwritten(module, cls, before, store, param)


def _without_a_say(model: Model, init: Function, before: Store, store: Store) -> str | None:
    """An argument that the one value is made of, and the other is not."""
    if before.value is None or store.value is None:
        return None
    params = [
        node.id
        for node in walk(before.value)
        if isinstance(node, Name) and init.param(node.id) is not None
    ]

    def source(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id in params

    return None if not params or depends_on(model.flow, store.value, source) else params[0]


def reads(init: Function, name: str, first: Stmt, second: Stmt) -> bool:
    """Whether the attribute is read from one statement to the other."""
    return any(
        read.name == name and read.stmt is not None and _is_between(first, read.stmt, second)
        for read in init.reads
    )


def _is_between(first: Stmt, stmt: Stmt, second: Stmt) -> bool:
    return first.order < stmt.order <= second.last_order


def _hands_on(init: Function, first: Stmt, second: Stmt) -> bool:
    """Whether other functions may read the object from one statement to the other."""
    return any(
        call.stmt is not None
        and _is_between(first, call.stmt, second)
        and (
            last_name(call.func) == "super"
            or (isinstance(call.func, Attr) and self_class(call.func.value) is not None)
            or any(self_class(arg.value) is not None for arg in call.args)
        )
        for call in init.calls
    )


def _overwritten(module: Module, cls: Class, before: Store, store: Store, param: str) -> Suspect:
    shown = text_of(module.source, store.target)
    why = (Related(module.place(before.stmt), f"`{param}` kept here"),)
    return Suspect(
        module,
        store.target,
        f"`{shown}` is overwritten before the `{param}` stored there is read",
        why=why,
        effect=f"the argument `{param}` of `{cls.name}` changes nothing",
        advice="drop one of the two",
    )


# A flag that a caller passes, where a constant stands in for it.


def unheeded(model: Model) -> Iterator[Suspect]:
    """``def build(data, shuffle): DataLoader(data, shuffle=False)``, called with ``True``."""
    for obj in model.constructions():
        function = obj.site.scope if obj.site is not None else None
        if (
            obj.site is None
            or not isinstance(function, Function)
            or in_test_function(model, function)
        ):
            continue
        for arg in obj.site.args:
            role = role_of(arg.keyword) if arg.keyword else None
            param = _of_role(function, role) if role in FLAGS else None
            if (
                isinstance(arg.value, Const)
                and param is not None
                and not _is_heeded(function, param, obj.site)
                and not (role is Role.SHUFFLE and orders_nothing(model, obj))
                and (
                    (data := model.flow.argument(obj, "dataset")) is None
                    or arg.value.value
                    or not may_be_iterable(model, data)
                )
            ):
                calls = (
                    (call, passed(function, param, call))
                    for call in model.flow.callers(function)
                    if not excludes(model, call, obj.site)
                )
                yield from _not_heeded(
                    model, function, param, arg.value, calls, f"the `{obj.name}`"
                )


def not_passed_on(model: Model) -> Iterator[Suspect]:
    """``def load(data, drop_last): return make(data)``, where ``make`` drops by default."""
    for obj in model.constructions():
        maker = obj.site.scope if obj.site is not None else None
        if obj.site is None or not isinstance(maker, Function):
            continue
        for arg in obj.site.args:
            param = _of_role(maker, role_of(arg.keyword)) if arg.keyword else None
            if param is None or role_of(param.name) not in FLAGS:
                continue
            if isinstance(arg.value, Name) and arg.value.id == param.name:
                yield from _left_to_default(model, obj, maker, param)


def _left_to_default(model: Model, obj: Obj, maker: Function, param: Param) -> Iterator[Suspect]:
    """The calls that leave a flag to its default in a function that is told another."""
    for call in model.flow.callers(maker):
        outer = call.scope
        told = outer.param(param.name) if isinstance(outer, Function) else None
        if (
            not isinstance(outer, Function)
            or told is None
            or not isinstance(param.default, Const)
            or passed(maker, param, call) is not MISSING
            or call.has_star
            or call.has_double_star
            or in_test_function(model, outer)
            or _is_heeded(outer, told, call)
        ):
            continue
        for caller in model.flow.callers(outer):
            given = passed(outer, told, caller)
            values = model.flow.constants(given) if isinstance(given, Expr) else None
            other = [each for each in values or () if bool(each) is not bool(param.default.value)]
            if other and not excludes(model, caller, call):
                yield Suspect(
                    model.module_of(outer),
                    call.func,
                    f"`{outer.name}` is called with `{told.name}={other[0]}`, but the "
                    f"`{obj.name}` of `{maker.name}` gets {param.default.value}",
                    why=(Related(model.place(caller.scope, caller), "called here"),),
                    effect=f"`{told.name}` changes nothing here",
                    advice=f"pass `{told.name}` on",
                )
                break


def unheeded_by_class(model: Model, cls: Class) -> Iterator[Suspect]:
    """``self.shuffle = True`` in a constructor that takes ``shuffle``; ``self.seed = 0`` anyhow."""
    init = cls.method("__init__")
    for store in init.stores if init is not None else ():
        target = store.target
        if init is None or not isinstance(target, Attr) or self_class(target.value) is not cls:
            continue
        param = init.param(target.name)
        if (
            param is None
            or not isinstance(store.value, Const)
            or any(True for _ in _reads(init, param))
        ):
            continue
        if role_of(param.name) is Role.SEED and store.value.value is not None:
            yield Suspect(
                model.module_of(init),
                store.value,
                f"`{cls.name}` takes a `{param.name}`, but keeps {store.value.value} in its place",
                fix=partial(_pass_on, store.value, param.name),
                effect=f"`{param.name}` changes nothing",
                advice=f"keep `{param.name}`",
            )
        elif role_of(param.name) in FLAGS:
            calls = (
                (obj.site, model.flow.argument(obj, param.name))
                for obj in model.built.get(cls, ())
                if obj.site is not None
            )
            yield from _not_heeded(
                model, init, param, store.value, calls, f"the attribute `{target.name}`"
            )


# A parameter that nothing reads, and in whose place another one is kept or passed on.


def crossed(model: Model) -> Iterator[Suspect]:
    """``self.shuffle = drop_last`` beside ``self.drop_last = drop_last``: who reads ``shuffle``?"""
    for function, told in _told(model):
        straight = {name for name, value in told if isinstance(value, Name) and value.id == name}
        for name, value in told:
            param = function.param(name)
            if (
                param is not None
                and isinstance(value, Name)
                and value.id != name
                and value.id in straight
                and function.param(value.id) is not None
                and not in_test_function(model, function)
                and not [*_reads(function, param)]
            ):
                yield Suspect(
                    model.module_of(function),
                    value,
                    f"`{name}` gets `{value.id}`, and nothing reads the `{name}` that "
                    f"`{function.name}` is given",
                    fix=replacing(value, name, f"Pass `{name}` on"),
                    effect=f"the argument `{name}` changes nothing",
                    advice=f"write `{name}`",
                )


def _told(model: Model) -> Iterator[tuple[Function, list[tuple[str, Expr]]]]:
    """What constructors of samplers keep, and what samplers and loaders are built with."""
    calls = [obj.site for obj in model.constructions() if obj.site is not None]
    for _, cls in model.classes():
        init = cls.method("__init__") if model.is_meant_as_sampler(cls) else None
        if init is not None:
            yield (
                init,
                [
                    (target.name, store.value)
                    for target, store in self_stores([init], cls)
                    if store.how == "assign" and store.value is not None and not store.path
                ],
            )
            calls += (made.call for made in base_inits(model, cls))
    for call in dict.fromkeys(calls):
        if isinstance(call.scope, Function):
            yield call.scope, [(arg.keyword, arg.value) for arg in call.args if arg.keyword]


def _of_role(function: Function, role: Role | None) -> Param | None:
    found = [param for param in function.params if role_of(param.name) is role]
    return found[0] if len(found) == 1 and len(function.bindings[found[0].name]) == 1 else None


def _reads(function: Function, param: Param) -> Iterator[Expr]:
    scopes: list[Scope] = [s for s in function.module.scopes if function in s.outward()]
    for scope in scopes:
        yield from NAMESPACES.calls_in(scope.calls)
        for node in nodes_in(statements(scope.body)):
            if isinstance(node, Name) and node.id == param.name:
                yield node


def _is_heeded(function: Function, param: Param, site: Call) -> bool:
    """Whether the parameter may have a say where an object is built: not in another branch."""
    elsewhere = [
        arg.value for other in function.calls if apart([site], [other]) for arg in other.args
    ]
    if told_what_for(site) is not None:
        elsewhere.clear()  # whoever passes it may never come here
    return any(all(read is not given for given in elsewhere) for read in _reads(function, param))


def _not_heeded(
    model: Model,
    function: Function,
    param: Param,
    constant: Const,
    calls: Iterator[tuple[Call, object]],
    what: str,
) -> Iterator[Suspect]:
    """The finding at the constant, if a call certainly asks for something else."""
    for call, given in calls:
        if not isinstance(given, Expr):
            continue
        around = (c for c in model.flow.callers(call.scope) if not in_test_function(model, c.scope))
        values = (v for way in (None, *around) for v in model.flow.constants(given, way) or ())
        other = [value for value in values if bool(value) is not bool(constant.value)]
        if other and not in_test_function(model, call.scope):
            yield Suspect(
                model.module_of(function),
                constant,
                f"`{function.name}` is called with `{param.name}={other[0]}`, but {what} gets "
                f"{constant.value}",
                why=(Related(model.place(call.scope, call), "called here"),),
                fix=partial(_pass_on, constant, param.name),
                effect=f"`{param.name}` changes nothing here",
                advice=f"pass `{param.name}` on",
            )
            return


def _pass_on(constant: Const, name: str, editor: Editor) -> Fix | None:
    editor.replace(constant, name)
    why = "callers may rely on the constant"
    return editor.fix(f"Pass `{name}` on", Applicability.UNSAFE, why)


# What a class body defines under a name that the constructor of its base stores.


def stored_by_base(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """Attributes, methods and properties of a class body that an object has otherwise.

    Its base's constructor stores something else in the object, and that is found first.
    """
    base = next(iter(model.flow.mro(cls)[1:]), None)
    entry = catalog.known(base) if isinstance(base, str) else None
    if entry is None or not (cls.method("__init__") is None or any(base_inits(model, cls))):
        return
    for name in sorted(entry.attributes & cls.bindings.keys()):
        if len(cls.bindings[name]) > 1:
            continue
        binding = cls.bindings[name][0]
        found = cls.method(name)
        if isinstance(binding.value, Const) and isinstance(binding.stmt, Assign):
            if _is_default_stored(model, cls, name, binding.value):
                stored = f"stores its default, {DEFAULTS[name]}, in each object"
                yield Suspect(
                    module,
                    binding.stmt,
                    f"`{entry.name.rpartition('.')[2]}.__init__` overwrites the `{name}` of "
                    f"`{cls.name}`",
                    effect=f"it {stored}: what the class says is never read",
                    advice=f"pass `{name}={binding.value.value}` to `super().__init__()`",
                )
        elif found is not None and (
            is_read_only(found, name)
            or (not found.decorators and call_of(model, cls, found) is not None)
        ):
            is_method = not found.decorators
            effect = f"`{name}(…)` raises TypeError: what is stored is no function"
            yield Suspect(
                module,
                name_of(module, found),
                f"`{entry.name.rpartition('.')[2]}.__init__` stores a `{name}`, which `{cls.name}` "
                f"has as a {'method' if is_method else 'property'}",
                effect=effect if is_method else "AttributeError when the object is built",
                advice="give it another name",
            )


def _is_default_stored(model: Model, cls: Class, name: str, value: Const) -> bool:
    """Whether the base's constructor is never told what the class says, and stores another."""
    if name not in DEFAULTS or value.value == DEFAULTS[name]:
        return False
    if any(
        isinstance(store.target, Attr) and store.target.name == name
        for scope in scopes_inside(cls)
        for store in scope.stores
    ):
        return False
    inits = [*base_inits(model, cls)]
    if cls.method("__init__") is not None:
        return bool(inits) and all(
            not any(arg.stars for arg in made.args) and given_for(made, name) is None
            for made in inits
        )
    built = model.built.get(cls, ())
    return bool(built) and all(model.argument(obj, name) is None for obj in built)
