"""SMP401: a sampler reads an attribute that nothing in its hierarchy defines."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator

from sampler_lint import catalog
from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import Hop, Step, origins
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ClassRef, FuncRef, Obj, Value
from sampler_lint.domain.concepts import (
    ASKS_BY_NAME,
    EPOCH,
    ITERATED,
    LOOKS,
    PROCESSES,
    SAMPLER,
    Concept,
)
from sampler_lint.domain.conditions import contradict, excludes
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.epoch_calls import is_nothing
from sampler_lint.domain.launches import is_installable
from sampler_lint.domain.model import (
    DISTRIBUTED_SAMPLER,
    Model,
    calls_inside,
    handing_itself,
    is_registered,
    made_up_by,
    scopes_inside,
    sets_by_name,
)
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.ranks import chains, is_about_processes
from sampler_lint.domain.samplers import epoch_path
from sampler_lint.domain.stored_outside import is_stored_outside
from sampler_lint.edits.editor import Editor, Fixer, replacing
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.parameters import same_role
from sampler_lint.remembered import remembered
from sampler_lint.rules._alike import closest
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.rules._foreign_reads import near_names, outside_reads
from sampler_lint.rules._meant import (
    divided_count,
    drop_telling,
    forgotten,
    halves,
    keep_parameter,
    left_over,
    only_tells,
    tell_both,
)
from sampler_lint.rules._some_paths import on_some_paths, unset_when_built
from sampler_lint.rules._trials import graded
from sampler_lint.syntax.navigation import (
    is_main_guard,
    method_around,
    nodes_in,
    owner_of,
    self_class,
    statements,
    unbound_names,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Call,
    Choice,
    Class,
    Const,
    Declare,
    Expr,
    For,
    Function,
    If,
    ModuleFacts,
    Name,
    Raise,
    Return,
    Scope,
    Simple,
    Stmt,
    Try,
    While,
)
from sampler_lint.workspace.project import Module

#: What speaks against reading an attribute of like name.
_ANOTHER = "another attribute may be meant"


class UndefinedAttribute(Rule):
    """A sampler reads `self.name`, and nothing in its class hierarchy defines that name.

    What it does:
        Reports reads of `self.x` in a class of samplers or iterable datasets where neither the
        class, nor a base, nor a subclass, nor an assignment from outside defines `x`, and reads
        in `__init__` before anything can have set `x`; and, elsewhere, `sampler.x` where the
        object is certainly a sampler that has no `x`. Also `self.x` of a class that the program
        builds, or registers, where `x` is named after a sampler, a loader or a dataset, or given to
        `set_epoch`; only `likely` where what gets the object is not known. Not reported when a
        base class is not known, and when the class can get attributes by name (`setattr`,
        `__getattr__`, `__dict__`). Also reports an unguarded `loader.sampler.set_epoch(...)` where
        the loader is built either with a `DistributedSampler` or with none or another one of
        torch, which has no such method, and one for several processes that one of several loaders
        comes to without a sampler. Also reports a bare `x` that is defined nowhere, where the
        sampler has `self.x`; and an attribute or local variable that is set under a flag (or
        another choice that the constructor offers) and read without it, where a simulation of the
        class with the other choice fails there.

    Why is this bad?
        The line raises `AttributeError`, often late: in a branch that never runs on one GPU, on
        one rank only (the others then wait until the timeout), or when a run is first resumed.

    Fix safety:
        Safe for the remainder of a quotient: after `self.q = self.n // self.k`, a read of an
        undefined name in `self.<name> % self.k` can only mean `self.n`, since the remainder is
        that of the divided count (the quotient's name is sometimes more similar, but wrong: see
        SMP402). Safe for the constructor's argument of the same name in an error message that is
        raised before the attribute is set, and for `self.epoch = 0` in a constructor that does not
        call torch's. Unsafe for everything else: a similar name; the only
        attribute that nothing reads and that differs in one word; an argument of `__init__` that
        was not stored, which then is; two attributes that replaced one (`low_edge` and
        `high_edge` for `edge`), where it is only formatted as text; and a message that can only
        raise, which is removed. With `--verify`, all similar names are tried by running the
        class, and the best one is used.

    How it is proved:
        Invariant `runs`: before the fix the script fails with the AttributeError, after it every
        rank finishes.

    References:
        - https://github.com/mit-han-lab/efficientvit/issues/175
        - met in https://github.com/FAIR-Chem/fairchem (src/fairchem/core/common/data_parallel.py)
    """

    code = "SMP401"
    name = "undefined-attribute"
    symptoms = (
        "AttributeError while iterating over a sampler",
        "it runs on one GPU and fails on several",
        "one rank crashes and the others hang",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Compare what each sampler class reads with what its hierarchy defines."""
        for module, cls in model.classes():
            for suspect in self._in_class(model, module, cls):
                yield from graded(model, cls, self.code, suspect)
        yield from _no_epoch_to_set(model)
        yield from outside_reads(model)

    def _in_class(self, model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
        if model.is_meant_as_sampler(cls) or is_iterated(model, cls):
            yield from self._class(model, module, cls)
        else:
            yield from self._keeper(model, module, cls)
        if model.is_meant_as_sampler(cls):
            yield from on_some_paths(model, module, cls)
            yield from unset_when_built(model, module, cls)

    def _class(self, model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
        attributes = model.attributes(cls)
        if attributes.open is not None:
            return
        reads = [*_own_reads(cls)]
        asked = _asked(cls)
        yield from _too_early(model, module, cls, asked)
        yield from _without_self(model, module, cls, set(attributes.names))
        yield from self._undefined(model, module, cls, reads, asked)

    def _keeper(self, model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
        """Samplers, loaders and datasets, and epochs to set, that a class of the tree never got."""
        reads = [*_own_reads(cls, ITERATED), *_told(model).get(cls, ())]
        if reads and _is_built(model, cls):
            grade: Grade | None = Grade.CERTAIN
            if model.attributes(cls).open is not None:
                grade = _kept_by(model, cls)
                reads = [read for read in reads if is_nothing(model.flow.values(read))]
            if grade is not None:
                for suspect in self._undefined(model, module, cls, reads, _asked(cls)):
                    if grade is not Grade.CERTAIN:
                        suspect.grade = grade
                    yield suspect

    def _undefined(
        self, model: Model, module: Module, cls: Class, reads: list[Attr], asked: set[object]
    ) -> Iterator[Suspect]:
        defined = set(model.attributes(cls).names)
        subclasses: set[str] | None = None
        is_open = False
        for read in reads:
            if read.name in defined or read.name in asked or _is_declared(read):
                continue
            if read.name.startswith("__") or is_expected(model, read, AttributeError):
                continue
            if is_stored_outside(model, cls, read.name) or _is_of_another(model, cls, read):
                continue
            if subclasses is None:
                subclasses = set()
                for derived in model.flow.subclasses(cls):
                    below = model.attributes(derived)
                    subclasses |= below.names
                    if below.open is not None and _kept_by(model, derived) is None:
                        return
                    is_open |= below.open is not None
            if read.name in subclasses or (is_open and not is_nothing(model.flow.values(read))):
                continue
            suspect = self._suspect(model, module, cls, read.scope, read, defined)
            if _is_never_run(model, module, read):
                suspect.grade = Grade.LIKELY
            yield suspect

    def _suspect(
        self, model: Model, module: Module, cls: Class, scope: Scope, read: Attr, defined: set[str]
    ) -> Suspect:
        method = scope
        while method.outer is not cls and method.outer is not None:
            method = method.outer
        where = f"`{method.name}`" if isinstance(method, Function) else "the class body"
        owner = text_of(module.source, read.value)
        count = divided_count(cls, scope, read)
        near = near_names(read.name, defined)
        meant = None
        fix: Fixer | None = None
        message = (
            f"`{cls.name}` reads `{text_of(module.source, read)}`, which neither it nor its bases "
            f"define"
        )
        advice = ""
        if count is not None:
            meant = text_of(module.source, count)
        elif (
            (init := forgotten(cls, read.name)) is not None
            and scope is init
            and not isinstance(read.stmt, AugAssign)
        ):
            meant, near = read.name, []
        elif init is not None:
            advice = f"keep the argument `{read.name}` in `__init__`"
            fix = functools.partial(keep_parameter, cls, init, read.name)
        elif (both := halves(model, cls, read.name)) is not None:
            message += f"; did you mean `{owner}.{both[0]}` and `{owner}.{both[1]}`?"
            fix = functools.partial(tell_both, scope, read, both)
        elif len(near) == 1:
            meant = f"{owner}.{near[0]}"
        elif not near and (unread := left_over(model, cls, read.name)) is not None:
            meant = f"{owner}.{unread}"
            near = [unread]
        elif not near and (alike := same_role(read.name, sorted(defined))) is not None:
            meant = f"{owner}.{alike}"
            near = [alike]
        elif not near and read.stmt is not None and only_tells(read.stmt):
            fix = functools.partial(drop_telling, read.stmt)
        if meant is not None:
            message += f"; did you mean `{meant}`?"
        skipped = _skipped_base(model, cls, read.name)
        if skipped is not None:
            meant, fix, near = None, None, []
            message = (
                f"`{cls.name}` reads `{text_of(module.source, read)}`, which `{skipped}.__init__` "
                f"sets, and `{cls.name}.__init__` does not call that"
            )
            advice = "call `super().__init__(...)`"
            if EPOCH.says(read.name):
                advice += f", or set `{read.name} = 0`"
                fix = functools.partial(_set_zero, cls, read.name)
        applicability = Applicability.SAFE if count is not None else Applicability.UNSAFE

        def reading(name: str) -> Fixer:
            return replacing(read, name, f"Read `{name}`", applicability, _ANOTHER)

        def candidates() -> list[Fixer]:
            own = [name for name in defined if not name.startswith("__")]
            some = dict.fromkeys([*near, *closest(read.name, own, most=4, at_least=0.6)])
            names = dict.fromkeys(
                [*([meant] if meant else []), *(f"{owner}.{one}" for one in some)]
            )
            return [reading(name) for name in names]

        if meant is not None:
            fix = reading(meant)
        return Suspect(
            module,
            read,
            message,
            fix=fix,
            candidates=candidates,
            effect=f"AttributeError when {where} runs",
            advice=advice,
            hides=True,
        )


def _is_of_another(model: Model, cls: Class, read: Attr) -> bool:
    """Whether a method is called on its class with another object: ``Sampler.add_to(parser)``."""
    method = owner_of(read.value) if isinstance(read.value, Name) else None
    if not isinstance(method, Function) or method.is_classmethod:
        return False
    kin = {cls, *model.flow.subclasses(cls)}
    return any(
        any(isinstance(value, ClassRef) for value in model.flow.values(call.func.value))
        and not any(
            isinstance(value, Obj) and value.cls in kin
            for value in model.flow.values(call.positional[0])
        )
        for call in model.flow.callers(method)
        if isinstance(call.func, Attr) and call.positional
    )


def _is_never_run(model: Model, module: Module, read: Attr) -> bool:
    """Whether it is in a method that nothing names, of a program that nobody installs."""
    method = method_around(read.scope)
    if method is None or method.decorators or method.name.startswith("__"):
        return False
    if is_installable(model.project, module):
        return False
    files, name = program_files(model), method.name
    naming = [path for path in files.beside(module.path) if files.says(path, name)]
    return not any(
        files.says(path, f'"{name}"', f"'{name}'")
        or (found := model.project.module_at(path)) is None
        or name in _names_read(found.facts)
        for path in naming
    )


@remembered
def _names_read(facts: ModuleFacts) -> frozenset[str]:
    """The names of the attributes that a file reads."""
    return frozenset(read.name for scope in facts.scopes for read in scope.reads)


def _skipped_base(model: Model, cls: Class, name: str) -> str | None:
    """The base of torch whose constructor sets an attribute, if the class's own leaves it out."""
    if cls.method("__init__") is None or model.flow.base_init_calls(cls):
        return None
    for base in model.flow.mro(cls):
        entry = catalog.known(base) if isinstance(base, str) else None
        if entry is not None and name in entry.attributes:
            return base.rpartition(".")[2] if isinstance(base, str) else None
    return None


def _set_zero(cls: Class, name: str, editor: Editor) -> Fix | None:
    """Let the constructor set the epoch to what torch's own begins with."""
    init = cls.method("__init__")
    if init is None or init.self_name is None:
        return None
    editor.store(init, f"{init.self_name}.{name} = 0")
    return editor.fix(f"Set `{name} = 0` in `__init__`", Applicability.SAFE)


def _without_self(model: Model, module: Module, cls: Class, defined: set[str]) -> Iterator[Suspect]:
    """Names that are bound nowhere, and are attributes of the sampler whose method reads them."""
    if module.facts.star_imports:
        return
    for scope in scopes_inside(cls):
        method = scope if isinstance(scope, Function) else None
        if method is None or method.self_name is None or method.name == "__init__":
            continue
        for name in unbound_names(method):
            if name.id in defined and not is_expected(model, name, NameError):
                meant = f"{method.self_name}.{name.id}"
                message = (
                    f"`{cls.name}.{method.name}` reads `{name.id}`, which is not defined; did "
                    f"you mean `{meant}`?"
                )
                fix = replacing(name, meant, f"Read `{meant}`", Applicability.UNSAFE, _ANOTHER)
                yield Suspect(
                    module, name, message, fix=fix, effect="NameError when it runs", hides=True
                )


def _own_reads(cls: Class, about: Concept | None = None) -> Iterator[Attr]:
    """What a class reads of ``self`` by names of that kind, with ``self.x += 1``."""
    passed = {
        (call.func.name, len(call.positional))
        for call in calls_inside(cls)
        if isinstance(call.func, Attr) and self_class(call.func.value) is cls
    }
    for scope in scopes_inside(cls):
        if _lacks_self(cls, scope, passed):
            continue  # what it calls so is an argument
        changed = (store.target for store in scope.stores if store.how == "aug")
        for read in (*scope.reads, *(each for each in changed if isinstance(each, Attr))):
            if about is not None and not about.says(read.name):
                continue
            if self_class(read.value) is cls:
                yield read


def _lacks_self(cls: Class, scope: Scope, passed: set[tuple[str, int]]) -> bool:
    """Whether the class passes a method of its own all that it takes, and the instance besides.

    ``passed``: how many arguments it passes its methods, by their names.
    """
    return (
        isinstance(scope, Function)
        and scope.cls is cls
        and (scope.name, len(scope.params)) in passed
        and not any(param.is_star for param in scope.params)
    )


def _asked(cls: Class) -> set[object]:
    """The attributes that a class looks for by name before it reads them."""
    return {
        arg.value
        for call in calls_inside(cls)
        if ASKS_BY_NAME.is_call(call)
        for arg in call.positional[1:2]
        if isinstance(arg, Const)
    }


def _kept_by(model: Model, cls: Class) -> Grade | None:
    """How sure it is that what is seen to set attributes of a class is all; None if it is not.

    Whoever gets the object may set some: what is not known is hardly made for that.
    """
    grade = Grade.CERTAIN
    for each in model.flow.own_family(cls):
        if made_up_by(each) is not None:
            return None
        for call in handing_itself(each):
            for value in model.flow.values(call.func) or (None,):
                inside: Iterable[Scope] = ()
                if isinstance(value, FuncRef):
                    inside = (value.function,)
                elif isinstance(value, ClassRef):
                    inside = scopes_inside(value.cls)
                else:
                    grade = Grade.LIKELY
                if any(sets_by_name(scope) is not None for scope in inside):
                    return None
    return grade


@remembered
def _told(model: Model) -> dict[Class, list[Attr]]:
    """What is read of ``self`` to set an epoch, by the class that reads it."""
    found: dict[Class, list[Attr]] = {}
    for call in model.epoch_setters:
        for read in (node for arg in call.args for node in walk(arg.value)):
            owner = self_class(read.value) if isinstance(read, Attr) else None
            if owner is not None and isinstance(read, Attr) and not ITERATED.says(read.name):
                found.setdefault(owner, []).append(read)
    return found


def _is_built(model: Model, cls: Class) -> bool:
    """Whether the tree itself builds the class, or one of it, so that no others complete it."""
    return any(
        is_registered(each)
        or any(
            isinstance(value, ClassRef) and value.cls is each
            for call in model.project.calls_near(each.name, each)
            for value in model.flow.values(call.func)
        )
        for each in (cls, *model.flow.subclasses(cls))
    )


def _no_epoch_to_set(model: Model) -> Iterator[Suspect]:
    """``loader.sampler.set_epoch(e)``, unguarded, where the loader may be built without one."""
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        sampler = call.func.value
        if not (
            call.func.name == "set_epoch"
            and isinstance(sampler, Attr)
            and sampler.name == "sampler"
        ):
            continue
        values = model.flow.values(sampler.value)
        loaders = [v for v in values if isinstance(v, Obj) and model.role(v) == "loader"]
        for loader in loaders:
            if not isinstance(loader.cls, str):
                continue  # a subclass may do anything
            given = model.passed_to(loader, "sampler")
            if given:
                if len(loaders) < len(values) or not _may_have_another(model, call, loader, given):
                    continue
                said = f"with `sampler={_other_choice(model, loader)}` too"
                when, advice = " in a run of one process", _TEST
            elif _is_told(model, call, loader, loaders):
                said, when, advice = "without a sampler", "", _GIVE
                if model.passed_to(loader, "batch_sampler"):
                    said, advice = "with a `batch_sampler` instead", _TEST
            else:
                continue
            yield Suspect(
                model.module_of(call.scope),
                call.func,
                f"`{text_of(model.module_of(call.scope).source, call.func)}` fails where the "
                f"loader is built without a distributed sampler",
                why=(Related(model.place_of(loader), f"built here, {said}"),),
                grade=Grade.CERTAIN if len(loaders) == len(values) else Grade.LIKELY,
                effect=f"AttributeError{when}: torch puts a RandomSampler or SequentialSampler "
                "there, which has no `set_epoch`",
                advice=advice,
            )
            break


_TEST = "test whether it is a DistributedSampler first"
_GIVE = "give the loader a DistributedSampler: each process reads all of its data"


def _may_have_another(model: Model, call: Call, loader: Obj, given: Collection[Value]) -> bool:
    """Whether the call certainly runs for a loader, too, whose sampler is another than given."""
    return (
        _other_choice(model, loader) is not None
        and any(model.is_a(value, DISTRIBUTED_SAMPLER) is True for value in given)
        and not model.passed_to(loader, "batch_sampler")
        and not _is_checked(model, call, 3)
    )


def _is_told(model: Model, call: Call, loader: Obj, loaders: Collection[Value]) -> bool:
    """Whether the call runs for a loader, too, that never gets a sampler.

    Only several processes come to it; other loaders get theirs, or this one a batch sampler, which
    carries no epoch either.
    """
    in_batches = model.passed_to(loader, "batch_sampler")
    site = loader.site
    if (
        site is None
        or is_test(model.module_of(site.scope))
        or any(model.flow.may_be_passed(loader, name) for name in ("sampler", "batch_sampler"))
        or (model.argument(loader, "batch_sampler") is not None and not in_batches)
        or any(epoch_path(model, each) is not None for each in in_batches)
        or is_expected(model, call, AttributeError)
        or not _is_for_processes(model, call)
        or any(ITERATED.is_mentioned(test) for test, _ in tests(call))
        or not (
            in_batches
            or any(
                model.is_a(value, DISTRIBUTED_SAMPLER) is True
                for other in loaders
                if isinstance(other, Obj) and other.site is not site
                for value in model.passed_to(other, "sampler")
            )
        )
    ):
        return False
    return any(
        not any(_is_for_processes(model, each) for each in (site, *calls))
        and not contradict(model, [site, *calls], [call])
        for _, calls in chains(
            model, site.scope, lambda call, below: not excludes(model, call, (*below, site)[0])
        )
        if calls
    )


def _is_for_processes(model: Model, place: Call) -> bool:
    """Whether a test on the way to a place asks for processes."""
    return any(is_about_processes(model, test) for test, _ in tests(place))


def _other_choice(model: Model, loader: Obj) -> str | None:
    """What the code that passes a loader its sampler chooses besides, that is told no epoch.

    No sampler, or another one of torch.
    """
    through = Hop.ASSIGNED | Hop.OPERAND

    def stop(step: Step) -> bool:
        return not isinstance(step.expr, (Choice, Name))

    expr = model.argument(loader, "sampler")
    if isinstance(expr, Attr) and (cls := self_class(expr.value)) is not None:
        # What is set in several places was set in one of them before: only a choice counts.
        stores = model.project.own_stores(expr.name, cls)
        expr = stores[0].value if len(stores) == 1 and not stores[0].path else None
    steps = [*origins(model.flow, expr, through, stop=stop)] if expr is not None else []
    found = [step.expr for step in steps if step.is_end]
    asked = [
        test for step in steps for test in _tests(model, step) if is_about_processes(model, test)
    ]
    answers = [model.flow.constants(test, loader.through) for test in asked]
    if all(answer is not None and len(answer) == 1 for answer in answers):
        return None  # who trains with it has chosen the sampler, or may have
    others = (unparse(each) for each in found if _is_told_no_epoch(model, each))
    return next(others, None) if len(found) > 1 else None


def _tests(model: Model, step: Step) -> Iterator[Expr]:
    """What decides which of several values one is."""
    if isinstance(step.expr, Choice):
        yield from [step.expr.test] if step.expr.test is not None else step.expr.options
    if isinstance(step.expr, Name) and (owner := owner_of(step.expr)) is not None:
        for binding in definitions(owner, step.expr):
            if binding.stmt is not None:
                yield from (test for test, _ in tests(binding.stmt))


def _is_told_no_epoch(model: Model, expr: Expr) -> bool:
    if isinstance(expr, Const):
        return expr.value is None
    values = model.flow.values(expr) if isinstance(expr, Call) else ()
    return bool(values) and all(
        isinstance(value, Obj)
        and isinstance(value.cls, str)
        and not any("set_epoch" in entry.methods for entry in catalog.known_mro(value.cls))
        for value in values
    )


def _is_checked(model: Model, call: Call, depth: int) -> bool:
    """Whether anything may keep the call, or every call of its function, from being run."""
    stmt = call.stmt
    if stmt is None or any(
        isinstance(outer, Try)
        or (isinstance(outer, If) and not (is_main_guard(outer) or _is_single_branch(outer, stmt)))
        for outer in stmt.ancestors()
    ):
        return True
    if any(node is call for option in _options(stmt) for node in walk(option)):
        return True
    function = call.scope
    if not isinstance(function, Function):
        return False
    if any(
        stopping.order < stmt.order and _asks_for_ranks(stopping)
        for stopping in statements(function.body)
    ):
        return True
    callers = list(model.flow.callers(function))
    return not callers or (
        depth > 0 and all(_is_checked(model, caller, depth - 1) for caller in callers)
    )


def _options(stmt: Stmt) -> Iterator[Expr]:
    """The parts of a statement that are evaluated if another part of it says so."""
    for node in nodes_in([stmt]):
        if isinstance(node, Choice):
            yield from node.options if node.kind == "if" else node.options[1:]


def _asks_for_ranks(stmt: Stmt) -> bool:
    """Whether the statement leaves, or fails, by a condition about ranks or samplers."""
    if isinstance(stmt, Simple) and stmt.kind == "assert":
        tests = stmt.parts[:1]
    elif isinstance(stmt, (Return, Raise)) or (
        isinstance(stmt, Simple) and stmt.kind == "continue"
    ):
        tests = [outer.test for outer in stmt.ancestors() if isinstance(outer, If)]
    else:
        return False
    return any(PROCESSES.is_mentioned(test) or SAMPLER.is_mentioned(test) for test in tests)


def _is_single_branch(choice: If, stmt: Stmt) -> bool:
    """Whether the statement is what ``if distributed: … else:`` does with one process."""
    return (
        isinstance(choice.test, (Name, Attr))
        and PROCESSES.is_mentioned(choice.test)
        and any(part.encloses(stmt) for part in choice.orelse)
    )


def _too_early(model: Model, module: Module, cls: Class, asked: set[object]) -> Iterator[Suspect]:
    """Reads of ``self.x`` in ``__init__`` before anything can have set it."""
    init = cls.method("__init__")
    if init is None:
        return
    derived = model.flow.subclasses(cls)
    ready = asked | _ready(model, cls)
    for read in init.reads:
        if self_class(read.value) is not cls or read.stmt is None or read.name in ready:
            continue
        stores = {owner: model.project.own_stores(read.name, owner) for owner in (cls, *derived)}
        own = [s for s in stores.pop(cls) if s.scope is init]
        if (
            not own
            or any(stores.values())
            or any(s.stmt.order <= read.stmt.order for s in own)
            or _may_set_before(init, read)
            or is_expected(model, read, AttributeError)
            or _is_declared(read)
        ):
            continue
        yield _early_read(module, cls, init, read)


def _ready(model: Model, cls: Class) -> set[str]:
    """What is there before ``__init__`` begins, or what a base may set."""
    names = set(cls.bindings)
    for base in model.flow.mro(cls)[1:]:
        if isinstance(base, Class):
            names |= model.attributes(base).names
        elif isinstance(base, str):
            entry = catalog.known(base)
            names |= entry.methods | entry.attributes if entry is not None else set()
    return names


def _may_set_before(init: Function, read: Attr) -> bool:
    """Whether a method, or a loop around, may have set the attribute by then."""
    assert read.stmt is not None
    for call in init.calls:
        if call.stmt is None or call.stmt.order > read.stmt.order:
            continue
        takes_self = any(self_class(arg.value) is not None for arg in call.args)
        on_self = isinstance(call.func, Attr) and self_class(call.func.value) is not None
        if on_self or (takes_self and not LOOKS.is_call(call)):
            return True
    return any(isinstance(outer, (For, While)) for outer in read.stmt.ancestors())


def _early_read(module: Module, cls: Class, init: Function, read: Attr) -> Suspect:
    shown = text_of(module.source, read)
    param = init.param(read.name)
    rebound = len(init.bindings.get(read.name, ())) > 1
    message = f"`{cls.name}.__init__` reads `{shown}` before it assigns it"
    effect = "AttributeError when the line runs"
    if param is None:
        return Suspect(module, read, message, effect=effect)
    message += f"; did you mean the argument `{read.name}`?"
    sure = isinstance(read.stmt, Raise) and not rebound
    applicability = Applicability.SAFE if sure else Applicability.UNSAFE
    title, why = f"Read the argument `{read.name}`", "what is kept may be another value"
    fix = replacing(read, read.name, title, applicability, why)
    return Suspect(module, read, message, fix=fix, effect=effect, hides=True)


def _is_declared(read: Attr) -> bool:
    """``self.x: int``, which reads nothing."""
    return isinstance(read.stmt, Declare) and read.stmt.target is read
