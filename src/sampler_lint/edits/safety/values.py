"""What a fix hands on: epochs that are ints, seeds that all processes share, lasting objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.origins import LOCAL, Hop, only, origins, parameter_of, part_of
from sampler_lint.analysis.reaching import definitions, reaching_at
from sampler_lint.analysis.values import Ext, Gen, Lit, Obj, Pack, Value, View
from sampler_lint.domain.concepts import DRAW, EPOCH, LOCAL_RANK, RANGES
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import looked_up, options
from sampler_lint.domain.rank_terms import differs, is_rank, why_no_int, why_not_shared
from sampler_lint.domain.seed_names import is_number
from sampler_lint.domain.seeds import constructions, is_seed_name, spelled_seedings
from sampler_lint.domain.signatures import never_in, refuser
from sampler_lint.domain.stored_outside import outside_stores
from sampler_lint.edits.safety.callers import is_wrapped, unseen_call
from sampler_lint.edits.safety.classes import not_followed, seeded_beside
from sampler_lint.edits.safety.kinds import are_ints, is_int, own_class
from sampler_lint.edits.safety.meaning import always, scope_at, scopes_of
from sampler_lint.edits.safety.names import COMPREHENSIONS, Assigned, path
from sampler_lint.edits.safety.observers import is_asked_for
from sampler_lint.edits.safety.receivers import (
    asked,
    in_model,
    receiver,
    rewritten,
    shown,
    worked_out_anew,
)
from sampler_lint.edits.safety.settings import set_elsewhere
from sampler_lint.edits.safety.texts import FUNCTIONS, Changed, gravest
from sampler_lint.findings import Refuted
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import same, self_class, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Name,
    Scope,
    Stmt,
    Text,
    Unary,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module


def constructed(model: Model, module: Module, call: ast.Call) -> Obj | None:
    """What a call of the file as it is builds, if it is a loader, a sampler or a dataset."""
    found = _constructed_at(model).get((call.lineno, call.col_offset), ())
    return next((made for site, made in found if model.module_of(site.scope) is module), None)


@remembered
def _constructed_at(model: Model) -> dict[tuple[int, int], list[tuple[Call, Obj]]]:
    """What calls of any file build, by their line and column."""
    known: dict[tuple[int, int], list[tuple[Call, Obj]]] = {}
    for made in model.constructions():
        if made.site is not None:
            known.setdefault((made.site.row, made.site.col), []).append((made.site, made))
    return known


def wrong_value(model: Model, module: Module, changed: Changed) -> str | None:
    """A value that is not what the fix takes it for, or may not be; what is known goes first."""
    return gravest(Values(model, module, changed).reasons())


class Values:
    """The values in one file that a fix changes."""

    def __init__(self, model: Model, module: Module, changed: Changed) -> None:
        self._model = model
        self._module = module
        self._changed = changed
        self._tree = changed.new
        self._scopes = scopes_of(changed.new)
        self._assigned: dict[ast.AST, Assigned] = {}
        self._called: dict[Assigned, list[tuple[ast.Attribute, frozenset[str]]]] = {}

    def _assigned_in(self, function: ast.AST) -> Assigned:
        """Worked out once, however many fixes read attributes there."""
        if function not in self._assigned:
            self._assigned[function] = Assigned(function)
        return self._assigned[function]

    def reasons(self) -> Iterator[str]:
        """The values that are not what the fix takes them for, or may not be."""
        for node in self._tree.spans:
            reason: str | None = None
            if isinstance(node, ast.Call):
                reason = self._call(node)
            elif isinstance(node, ast.BinOp):
                reason = self._sum(node)
            elif isinstance(node, ast.Attribute) and self._changed.is_altered(node):
                reason = self._stored_epoch(node) or self._has_no_room(node)
                if reason is None and self._changed.is_written(node):
                    reason = self._attribute(node) or self._without(node)
            if reason:
                yield reason

    def _sum(self, node: ast.BinOp) -> str | None:
        """A written sum of an int and of what cannot be added to it."""
        sides = node.left, node.right
        if not isinstance(node.op, ast.Add) or not any(map(self._changed.is_written, sides)):
            return None
        kinds = {self._kind(side): side for side in sides}
        if kinds.keys() == {True, False}:
            return self._not_int(kinds[False])
        for side in sides:
            where = in_model(self._module, self._changed, side)
            if where is not None:
                scope, stmt = where
                if reason := why_no_int(self._model, expression(side, scope, stmt), scope):
                    return reason
        return None

    # -- ints

    def _not_int(self, value: ast.expr, what: str = "") -> str | None:
        """Why a value may be no int."""
        kind = self._kind(value)
        shown = f"{what}`{ast.unparse(value)}`"
        if kind is None:
            return f"{shown} is not known to be an int"
        return None if kind else Refuted(f"{shown} is not an int")

    def _kind(self, value: ast.expr) -> bool | None:
        """Whether a value is an int; a variable that the fix makes, by what it is given there."""
        if isinstance(value, ast.Name):
            if self._is_new_parameter(value):
                return True
            owner = self._scopes.binder(value.id, self._scopes.scope(value))
            made = [
                one
                for one in self._scopes.stored.get(value.id, ())
                if self._scopes.binder(one.id, self._scopes.scope(one)) is owner
            ]
            if made and all(map(self._changed.is_written, made)):
                return all(self._is_given_int(one) for one in made) or None
        where = in_model(self._module, self._changed, value)
        return None if where is None else is_int(self._model, expression(value, *where))

    def _is_given_int(self, target: ast.Name) -> bool:
        """Whether a variable is certainly given an int where the fix writes its name."""
        part: tuple[int, ...] = ()
        parent = self._tree.parents[target]
        if isinstance(parent, ast.Tuple):
            part = (parent.elts.index(target),)
            parent = self._tree.parents[parent]
        if not isinstance(parent, (ast.For, ast.AsyncFor)):
            value = getattr(parent, "value", None)
            return not part and isinstance(value, ast.expr) and self._kind(value) is True
        where = in_model(self._module, self._changed, parent.iter)
        items = expression(parent.iter, *where) if where is not None else None
        return items is not None and are_ints(self._model, items, part) is True

    # -- arguments

    def _call(self, call: ast.Call) -> str | None:
        name = path(call.func) or str(getattr(call.func, "attr", ""))
        if name.rpartition(".")[2] == "set_epoch" and call.args:
            if any(self._changed.is_written(arg) for arg in call.args):
                reason = self._not_int(call.args[0], "the epoch ") or self._apart(call.args[0])
                told = receiver(self._model, self._module, self._changed, call)
                return gravest([reason, told])
            if self._changed.is_altered(call.func):  # another object gets what was passed before
                if self._kind(call.args[0]) is False:
                    return self._not_int(call.args[0], "the epoch ")
                return receiver(self._model, self._module, self._changed, call)
        for keyword in call.keywords:
            if keyword.arg is not None and self._changed.is_written(keyword.value):
                where = in_model(self._module, self._changed, call)
                func = expression(call.func, *where) if where is not None else None
                other = func and refuser(self._model, func, keyword.arg)
                if other and not self._changed.is_written(call):
                    return f"`{other}` takes no `{keyword.arg}`"
            if reason := self._passed_twice(call, keyword):
                return reason
        for name, value, before in self._arguments(call):
            if is_seed_name(name) and self._changed.is_altered(value):
                was = self._changed.back.get(call)
                made = (
                    constructed(self._model, self._module, was)
                    if isinstance(was, ast.Call)
                    else None
                )
                cls = made.cls if made is not None else None
                if isinstance(cls, Class) and (reason := seeded_beside(self._model, cls, {name})):
                    return reason
            if not (is_seed_name(name) and self._is_new(value)):
                continue
            reason = self._seed(value) or self._chosen(value, before) or self._unheeded(call)
            reason = reason or self._too_long(call, value)
            if reason:
                return reason
        return None

    def _apart(self, epoch: ast.expr) -> str | None:
        """What an epoch is counted from, where that differs between the processes."""
        where = in_model(self._module, self._changed, epoch)
        if where is None:
            return None
        scope, stmt = where
        told = [expression(epoch, scope, stmt)]
        for loop in (stmt, *stmt.ancestors()) if stmt is not None else ():
            if isinstance(loop, For) and any(same(each, told[0]) for each in walk(loop.target)):
                told += walk(loop.iter)
        for each in told:
            if differs(self._model, each, scope) is not None or DRAW.is_call(each):
                return Refuted(f"`{unparse(each)}` is not the same on all ranks")
            for part in each.positional if isinstance(each, Call) and RANGES.is_call(each) else ():
                why = why_not_shared(self._model, part, scope)
                if isinstance(why, Refuted):
                    return why
                for step in origins(self._model.flow, part, LOCAL | Hop.CALLER | Hop.RETURN):
                    if any(map(_is_of_rank, walk(step.expr))):
                        return f"`{unparse(part)}` may be another on each rank"
        return None

    def _arguments(self, call: ast.Call) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
        """What is passed: the parameter, the value, and what was passed before the fix."""
        old = self._changed.back.get(call)
        was = {one.arg: one.value for one in old.keywords} if isinstance(old, ast.Call) else {}
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield keyword.arg, keyword.value, was.get(keyword.arg)
        if isinstance(old, ast.Call) and any(map(self._changed.is_altered, call.args)):
            made = constructed(self._model, self._module, old)
            names = self._model.flow.params(made.cls) if made is not None else ()
            yield from zip(names or (), call.args, old.args, strict=False)

    def _unheeded(self, call: ast.Call) -> str | None:
        """What a class of the program makes of its seed, where no run shows that it draws by it."""
        old = self._changed.back.get(call)
        made = constructed(self._model, self._module, old) if isinstance(old, ast.Call) else None
        cls = made.cls if made is not None else None
        if not isinstance(cls, Class):
            return None
        init = self._model.flow.method(cls, "__init__")
        hands_on = isinstance(init, Function) and any(param.is_star for param in init.params)
        if not hands_on and not any(map(is_seed_name, self._model.flow.params(cls) or ())):
            return None  # the fix gives it one
        if reason := not_followed(self._model, cls):
            return reason
        trial = self._model.epoch_trial(cls, mixes=True)
        if trial is not None and trial.lumps and trial.changes:
            return f"a seed makes epochs of `{cls.name}` alike"
        if self._model.uses_seed(cls):
            return None
        if rewritten(self._module, self._changed).keys() & {*self._model.flow.mro(cls)}:
            return None
        return f"it is not known what `{cls.name}` makes of its seed"

    def _too_long(self, call: ast.Call, value: ast.expr) -> str | None:
        """A seed that may have more than the 32 bits that the class can take."""
        old, where = self._changed.back.get(call), in_model(self._module, self._changed, value)
        made = constructed(self._model, self._module, old) if isinstance(old, ast.Call) else None
        cls = made.cls if made is not None else None
        if where is not None and isinstance(value, ast.Attribute) and not isinstance(cls, Class):
            program = self._model.project.program_of(self._module)
            for option in options(self._model, program, value.attr):
                if _is_worked_out(option.keyword("default")):
                    return f"`{ast.unparse(value)}` may be too long to add an epoch to it"
        if where is None or not isinstance(cls, Class):
            return None
        long = self._model.epoch_trial(cls, seed=2**32, tells_errors=True)
        if long is None or not long.raises or self._model.epoch_trial(cls, seed=1) is None:
            return None
        seed, program = expression(value, *where), self._model.project.program_of(self._module)
        known = self._model.flow.constants(seed)
        if known is None and isinstance(seed, Attr):
            defaults = [one.keyword("default") for one in options(self._model, program, seed.name)]
            known = {one.value if isinstance(one, Const) else None for one in defaults} or None
        if known is not None and all(isinstance(one, int) and 0 <= one < 2**32 for one in known):
            return None
        for seeding in spelled_seedings(self._model, program):
            called = self._model.flow.values(seeding.call.func)
            is_numpy = any(isinstance(v, Ext) and v.dotted.startswith("numpy.") for v in called)
            same_name = (last_name(arg.value) == last_name(seed) for arg in seeding.call.args)
            if is_numpy and any(same_name):
                return None  # the program itself would stop at a longer one
        return f"`{made and made.name}` takes no seed of more than 32 bits"

    def _chosen(self, value: ast.expr, before: ast.expr | None) -> str | None:
        """A number that somebody wrote down as the seed; 0 is what torch itself takes."""
        where = in_model(self._module, self._changed, value)
        if before is None or where is None:
            return None
        literal = only(self._model.flow, expression(before, *where), Hop.ASSIGNED)
        around = where[1].ancestors() if where[1] is not None else ()
        is_choice = any(isinstance(one, If) and one.orelse for one in around)
        if isinstance(literal, Const) and (literal.value or is_choice):
            return f"the seed `{ast.unparse(before)}` may be meant"
        return None

    def _passed_twice(self, call: ast.Call, keyword: ast.keyword) -> str | None:
        """A keyword that is new beside `**` arguments, which may hold it, too."""
        old = self._changed.back.get(call)
        if not isinstance(old, ast.Call) or keyword.arg is None:
            return None
        if any(one.arg == keyword.arg for one in old.keywords):
            return None
        for starred in (one.value for one in call.keywords if one.arg is None):
            where = in_model(self._module, self._changed, starred)
            if where is not None and keyword.arg in never_in(expression(starred, *where)):
                continue
            made = constructed(self._model, self._module, old)
            flow = self._model.flow
            if made is None or flow.argument(made, keyword.arg) is not None:
                return f"`**{ast.unparse(starred)}` may pass `{keyword.arg}`, too"
            if flow.may_be_passed(made, keyword.arg):
                return f"`**{ast.unparse(starred)}` may pass `{keyword.arg}`, too"
        return None

    def _is_new(self, value: ast.expr) -> bool:
        """Whether the fix writes the value, or a part of it."""
        return any(
            self._changed.is_written(one) for one in ast.walk(value) if one in self._tree.spans
        )

    def _seed(self, value: ast.expr) -> str | None:
        where = in_model(self._module, self._changed, value)
        if any(isinstance(one, (ast.Lambda, *COMPREHENSIONS)) for one in ast.walk(value)):
            return "where the seed comes from is not known"
        if isinstance(value, ast.Name) and self._is_new_parameter(value):
            return None  # what is passed for it is looked at where it is passed
        if where is None:
            return (
                None
                if isinstance(value, ast.Constant)
                else "where the seed comes from is not known"
            )
        scope, stmt = where
        seed = expression(value, scope, stmt)
        return (
            why_not_shared(self._model, seed, scope)
            or set_elsewhere(self._model, self._module, value)
            or self._rebound(value, scope, stmt)
            or self._asked_for(value)
            or self._told_apart(value)
            or self._of_one_command(value, scope)
            or self._passed_elsewhere(value, seed)
            or self._unpassed(value, seed)
        )

    def _rebound(self, value: ast.expr, scope: Scope, stmt: Stmt | None) -> str | None:
        """What a name has been given since the program read that attribute of it."""
        for node in (one for one in ast.walk(value) if isinstance(one, ast.Attribute)):
            owner = node.value
            later = (
                store.stmt
                for store in scope.stores
                if dotted(store.target) == path(node) and stmt is not None
                if store.stmt.order > stmt.order
            )
            if (store := next(later, None)) is not None:
                return f"line {store.row} gives `{ast.unparse(node)}` another value afterwards"
            if not isinstance(owner, ast.Name) or len(scope.bindings.get(owner.id, ())) < 2:
                continue
            held = reaching_at(scope, owner.id, stmt) or ()
            known = {
                id(each)
                for one in (scope.reads if held else ())
                if isinstance(one.value, Name)
                if (one.value.id, one.name) == (owner.id, node.attr)
                for each in definitions(scope, one.value)
            }
            rows = [one.stmt.row for one in held if one.stmt and id(one) not in known]
            if rows:
                return f"line {rows[0]} gives `{owner.id}` another value"
        return None

    def _asked_for(self, value: ast.expr) -> str | None:
        """A place that asks whether an attribute is there: it may not be."""
        read = {
            (ast.unparse(one.value), one.attr)
            for one in ast.walk(value)
            if isinstance(one, ast.Attribute)
        }
        for call in self._tree.nodes:
            if not isinstance(call, ast.Call) or path(call.func) not in {"getattr", "hasattr"}:
                continue
            name = call.args[1] if len(call.args) > 1 else None
            asked = name.value if isinstance(name, ast.Constant) else None
            if (ast.unparse(call.args[0]), asked) in read:
                return f"line {call.lineno} asks whether `{asked!s}` is there"
        return None

    def _told_apart(self, value: ast.expr) -> str | None:
        """A test of the number itself: some of them may not be meant as a seed."""
        read = {ast.unparse(o) for o in ast.walk(value) if isinstance(o, (ast.Attribute, ast.Name))}
        for node in self._tree.nodes:
            if isinstance(node, ast.Compare) and ast.unparse(node.left) in read:
                other = node.comparators[0]
                other = other.operand if isinstance(other, ast.UnaryOp) else other
                if isinstance(other, ast.Constant) and isinstance(other.value, int):
                    return f"line {node.lineno} tells seeds apart"
        return None

    def _of_one_command(self, value: ast.expr, scope: Scope) -> str | None:
        """An option that only some subcommands take: of others it is not there."""
        for node in ast.walk(value):
            if not isinstance(node, ast.Attribute) or ast.unparse(node) in self._read_above(value):
                continue
            program = self._model.project.program_of(self._model.module_of(scope))
            for option in options(self._model, program, node.attr):
                parser = option.func.value if isinstance(option.func, Attr) else None
                made = parser and origins(self._model.flow, parser, LOCAL | Hop.CALLER | Hop.RETURN)
                calls = (one.expr for one in made or () if isinstance(one.expr, Call))
                if any(last_name(call.func) == "add_parser" for call in calls):
                    place = self._model.place(option.scope, option)
                    return f"{place}: only one command has the option `{node.attr}`"
        return None

    def _passed_elsewhere(self, value: ast.expr, seed: Expr) -> str | None:
        """A caller that the model does not know, whose object need not have the attribute."""
        above = self._read_above(value)
        for node in (one for one in walk(seed) if isinstance(one, Attr)):
            found = parameter_of(node.value)
            if found is None or unparse(node) in above:
                continue
            if reason := unseen_call(self._model, *found):
                return reason
        return None

    def _read_above(self, value: ast.expr) -> set[str]:
        """The attributes that the same function has read on every way to a value."""
        found: set[str] = set()
        stmt = self._tree.statement(value)
        while stmt is not None and not isinstance(stmt, (*FUNCTIONS, ast.ClassDef)):
            block = self._tree.block(stmt)
            for above in block[: block.index(stmt)]:
                found |= {
                    ast.unparse(one) for one in always(above) if isinstance(one, ast.Attribute)
                }
            stmt = next((one for one in self._tree.around(stmt) if isinstance(one, ast.stmt)), None)
        return found

    def _unpassed(self, value: ast.expr, seed: Expr) -> str | None:
        """A parameter that has its default in every call, and is for nothing else."""
        for name in (one for one in walk(seed) if isinstance(one, Name)):
            found = parameter_of(name)
            if found is not None and is_wrapped(self._model, found[0]):
                return f"`{found[0].name}` is decorated"
            if found is None or found[1].default is None:
                continue
            function, param = found
            calls = self._model.flow.callers(function)
            reads = sum(
                isinstance(one, ast.Name) and one.id == name.id and isinstance(one.ctx, ast.Load)
                for one in self._scopes.names
                if self._scopes.binder(one.id, self._scopes.scope(one))
                is self._scopes.binder(name.id, self._scopes.scope(value))
            )
            if reads == 1 and calls and all(passed(function, param, c) is MISSING for c in calls):
                return f"nobody passes `{param.name}` to `{function.name}`"
        return None

    def _is_new_parameter(self, name: ast.Name) -> bool:
        owner = self._scopes.binder(name.id, self._scopes.scope(name))
        return isinstance(owner, FUNCTIONS) and any(
            isinstance(arg, ast.arg) and arg.arg == name.id and self._changed.is_written(arg)
            for arg in ast.walk(owner.args)
        )

    # -- attributes of the object itself

    def _stored_epoch(self, node: ast.Attribute) -> str | None:
        """An attribute for the epoch that is given something else."""
        parent = self._tree.parents[node]
        if not isinstance(node.ctx, ast.Store) or not isinstance(parent, ast.Assign):
            return None
        if EPOCH.says(node.attr) and self._kind(parent.value) is False:
            return self._not_int(parent.value, "the epoch ")
        return None

    def _has_no_room(self, node: ast.Attribute) -> str | None:
        """A written attribute that the object has no place for.

        A method has its name, or ``__slots__`` does not list it and no base brings a dict.
        """
        cls = self._scopes.scope(self._scopes.scope(node))
        old = self._changed.back.get(cls)
        scope = scope_at(self._module, old) if isinstance(cls, ast.ClassDef) else None
        is_stored = isinstance(node.ctx, ast.Store)
        if not is_stored or not isinstance(scope, Class):
            return None
        for base in self._model.flow.own_family(scope):
            if base.method(node.attr) is not None:
                return f"`{node.attr}` is a method of `{base.name}`"
        if is_asked_for(self._model, scope, node.attr):
            return f"whether a `{scope.name}` has `{node.attr}` is asked"
        slots = [
            base.bindings.get("__slots__") if isinstance(base, Class) else None
            for base in self._model.flow.mro(scope)
            if base not in {"object", "builtins.object"}
        ]
        named = [bound.value for one in slots for bound in one or () if bound.value is not None]
        listed = {one.value for value in named for one in walk(value) if isinstance(one, Const)}
        has_room = not all(slots) or node.attr in listed
        return None if has_room else Refuted(f"`__slots__` has no `{node.attr}`")

    def _gone(self, name: str) -> str | None:
        row = self._deleted.get(name)
        return None if row is None else f"line {row} deletes `{name}`"

    @cached_property
    def _deleted(self) -> dict[str, int]:
        """The attributes that are deleted anywhere, and in which line."""
        return {
            one.attr: one.lineno
            for one in self._tree.nodes
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Del)
        }

    def _own_seed(self, cls: Class, name: str) -> str | None:
        """A seed that the object keeps, and that is none or another one on each process."""
        if not is_seed_name(name):
            return None
        for owner in self._model.flow.own_family(cls):
            own = self._model.project.own_stores(name, owner)
            for store in (*own, *outside_stores(self._model, owner, name)):
                value = part_of(store.value, store.path)
                if value is None:
                    return f"what `{name}` is changed to is not known"
                unfit = why_not_shared(self._model, value, store.scope)
                if reason := unfit or self._unstated(value, store.scope):
                    return reason
        for sampler in constructions(self._model):
            given = self._model.flow.argument(sampler, "seed")
            is_one = isinstance(sampler.cls, Class) and cls in self._model.flow.mro(sampler.cls)
            if not is_one or given is None or sampler.site is None:
                continue
            scope = sampler.site.scope
            if reason := why_not_shared(self._model, given, scope) or self._unstated(given, scope):
                return reason
        return None

    def _unstated(self, seed: Expr, scope: Scope) -> str | None:
        """Why a setting may be no int: nothing says so, and the program seeds nothing with it."""
        read = only(self._model.flow, seed, Hop.ASSIGNED)
        if not isinstance(read, (Attr, Index)) or self_class(read.value) is not None:
            return None
        module, shown = self._model.module_of(scope), unparse(read)
        number = is_number(self._model, module, read)
        if number is False:
            return f"{self._model.place(scope, seed)}: `{shown}` may be None"
        seeded = spelled_seedings(self._model, self._model.project.program_of(module))
        if number or any(same(node, read) for one in seeded for node in walk(one.call)):
            return None
        return f"{self._model.place(scope, seed)}: `{shown}` is not known to be an int"

    def _called_early(self, cls: Class, assigned: Assigned, method: str, where: str) -> str | None:
        """A call of the method in the constructor, before it stores what the method reads."""
        me = where.partition(".")[0]
        for called, state in self._calls_in(assigned):
            if where not in state:
                is_own = isinstance(called.value, ast.Name) and called.value.id == me
                if (is_own or called.attr == "__init__") and self._runs(cls, called.attr, method):
                    return f"line {called.lineno} calls `{method}` before `{where}` is there"
        return None

    def _calls_in(self, assigned: Assigned) -> list[tuple[ast.Attribute, frozenset[str]]]:
        """The methods that a function calls, with what is assigned when their statement begins."""
        if assigned not in self._called:
            self._called[assigned] = [
                (one.func, state)
                for stmt, state in assigned.at.items()
                if state is not None
                for one in ast.walk(stmt)
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
            ]
        return self._called[assigned]

    def _runs(self, cls: Class, name: str, method: str) -> bool:
        """Whether a method of the class, or the constructor of a base, comes to call another."""
        bases = self._model.flow.own_mro(cls)
        owners = bases[1:] if name == "__init__" else bases

        def called(each: str) -> Iterator[str]:
            for one in owners if each == name else bases:
                found = one.method(each)
                for call in found.calls if found is not None else ():
                    if isinstance(call.func, Attr) and self_class(call.func.value) is not None:
                        yield call.func.name

        return method in closure([name], called)

    def _attribute(self, node: ast.Attribute) -> str | None:
        """An attribute that the object may not have (yet) where a method reads it."""
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
            return None
        cls = own_class(self._tree, node)
        method = next((one for one in self._tree.around(node) if isinstance(one, FUNCTIONS)), None)
        if cls is None or method is None:
            return None
        old = self._changed.back.get(cls)
        scope = scope_at(self._module, old)
        if not isinstance(scope, Class):
            return None
        where = f"{node.value.id}.{node.attr}"
        if reason := self._gone(node.attr) or worked_out_anew(self._model, node.attr):
            return reason
        stmt = self._tree.statement(node)
        before = self._changed.back.get(stmt) if stmt is not None else None
        was_read = before is not None and any(path(one) == where for one in ast.walk(before))
        if not was_read and (reason := self._own_seed(scope, node.attr)):
            return reason
        here = self._assigned_in(method).at.get(stmt) if stmt is not None else None
        if here is not None and where in here:
            return None
        if any(node.attr in self._scopes.bound.get(one, ()) for one in (cls,)):
            return None
        if method.name == "__init__":
            if self._from_known_base(scope, node.attr):
                return None
            return f"`{where}` may not be there yet"
        init = next(
            (one for one in cls.body if isinstance(one, FUNCTIONS) and one.name == "__init__"), None
        )
        if init is not None:
            me = init.args.args[0].arg if init.args.args else "self"
            assigned = self._assigned_in(init)
            if assigned.end is not None and f"{me}.{node.attr}" in assigned.end:
                early = self._called_early(scope, assigned, method.name, f"{me}.{node.attr}")
                return early or self._skipped(scope, node.attr)
        attributes = self._model.attributes(scope)
        if self._from_known_base(scope, node.attr):
            return self._skipped(scope, node.attr)
        stored = any(
            one.attr == node.attr
            and isinstance(one.ctx, ast.Store)
            and isinstance(one.value, ast.Name)
            for one in ast.walk(cls)
            if isinstance(one, ast.Attribute)
        )
        if node.attr in attributes.names and not stored:
            return self._skipped(scope, node.attr)
        return f"`{where}` may not be there"

    def _without(self, node: ast.Attribute) -> str | None:
        """What an expression may stand for that has no such attribute, and nothing asks for it."""
        where = in_model(self._module, self._changed, node)
        is_store = not isinstance(node.ctx, ast.Load)
        if where is None or is_store or own_class(self._tree, node):
            return None
        if node.attr.startswith("__") and not node.attr.endswith("__"):
            return Refuted(f"`{node.attr}` has another name outside of its class")
        if asked(self._changed, node):
            return None
        values = self._model.flow.values(expression(node.value, *where))
        lacking = [value for value in values if self._lacks(value, node.attr)]
        if not lacking:
            return None
        why = f"`{ast.unparse(node.value)}` may be {shown(lacking[0])} without `{node.attr}`"
        return Refuted(why) if len(lacking) == len(values) else why

    def _lacks(self, value: Value, name: str) -> bool:
        if isinstance(value, Obj) and isinstance(value.cls, Class):
            found = self._model.attributes(value.cls)
            return found.open is None and name not in found.names
        kind = type(value.value) if isinstance(value, Lit) else list
        return isinstance(value, (Gen, Lit, Pack, View)) and not (
            hasattr(kind, name) or name in getattr(value, "names", ())
        )

    def _from_known_base(self, cls: Class, name: str) -> bool:
        """Whether a base, and not the class itself, provides the attribute."""
        return any(
            (isinstance(base, str) and name in self._model.attributes(cls).names)
            or (
                isinstance(base, Class)
                and base is not cls
                and name in self._model.attributes(base).names
            )
            for base in self._model.flow.mro(cls)
        )

    def _skipped(self, cls: Class, name: str) -> str | None:
        """A subclass whose constructor does not run the one that stores the attribute."""
        for derived in self._model.flow.subclasses(cls):
            if derived is cls or derived.method("__init__") is None:
                continue
            init = derived.method("__init__")
            stores = (
                any(getattr(store.target, "name", None) == name for store in init.stores)
                if init
                else False
            )
            if not stores and not self._model.flow.base_init_calls(derived):
                why = f"`{derived.name}` does not run the `__init__` that stores `{name}`"
                is_kept = derived.bindings.get(name) or self._model.project.own_stores(
                    name, derived
                )
                return why if is_kept else Refuted(why)
        return None


def _is_of_rank(part: Expr) -> bool:
    """Whether it is looked up by the rank, or read from what has the rank in its name."""
    name = part.positional[0] if isinstance(part, Call) and part.positional else None
    if isinstance(part, Index):
        name = part.key
    elif not isinstance(name, Text):
        return False
    return name is not None and any(
        is_rank(each) or (looked_up(each) or (None, None))[1] in LOCAL_RANK.variables
        for each in walk(name)
    )


def _is_worked_out(given: Expr | None) -> bool:
    """Whether a number is worked out of others: ``2**64 - 1``."""
    return isinstance(given, Bin) and all(
        isinstance(part, (Bin, Const, Unary)) for part in walk(given)
    )
