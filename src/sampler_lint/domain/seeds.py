"""The program's own seed: how it is spelled, which scope can name it, whether it may be None."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.origins import EVERYWHERE, Hop, Step, origins, parameter_of
from sampler_lint.analysis.values import Ext, FuncRef, ModRef, Obj, Partial
from sampler_lint.domain.concepts import (
    ENVIRONMENT,
    SEED,
    SEEDS_ALL,
    SEEDS_ONE,
    WORKERS,
    called_name,
    library_of,
)
from sampler_lint.domain.conditions import conditions
from sampler_lint.domain.draws import draw_of_process, is_drawn
from sampler_lint.domain.launches import is_installable, launches
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.limits import MOST_VALUES
from sampler_lint.remembered import remembered
from sampler_lint.source import says_between
from sampler_lint.syntax.navigation import inherited, same, self_class, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Param,
    Scope,
    Stmt,
    With,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module

#: A setting by one of these names is the program's seed; ``split_seed`` and the like are not.
_SEED_NAME = re.compile(
    r"^(?:(?:rand(?:om)?|rnd|manual|rng|global|base|init|train|training|data|torch|np)_?)*seed"
    r"(?:_?val(?:ue)?|_)?$",
    re.IGNORECASE,
)
#: What stands around such a name where an attribute or an entry is read: ``.seed``, ``["a.seed"]``.
_BEFORE_SEED = re.compile(rb"[.\"'/]\s{0,80}\w{0,80}\Z")
_AFTER_SEED = re.compile(rb"(?!\w|\s{0,80}\()")


class Seeding(NamedTuple):
    """A place where a program seeds its generators from a setting."""

    module: Module
    call: Call
    setting: Setting


def seeding(model: Model, module: Module, user: Call | Scope) -> Seeding | None:
    """Where the program that runs ``user`` seeds its generators with a value that can be set."""
    script = module.is_script

    def is_heard(item: Seeding) -> bool:
        if item.setting.by_caller and (script or _package(item.module) != _package(module)):
            return False
        if _is_replaced(model, item, user):
            return False
        return item.module is module or (
            program_files(model).run_together(item.module, module)
            and not _is_numbers_only(item)
            and _runs_with(model, item, module, user)
        )

    program = model.project.program_of(module)
    own = [path for path in program_files(model).seeding(program) if path == module.path]
    near = (item for path in own for item in _seedings_in(model, path))
    for found in (near, seedings(model, program)):
        first = None
        for item in filter(is_heard, found):
            if last_name(item.call.func) == "manual_seed":
                return item  # torch's own generator is the one a reader thinks of
            first = first or item
        if first is not None:
            return first
    return None


def _runs_with(model: Model, item: Seeding, module: Module, user: Call | Scope) -> bool:
    """Whether a program that has the setting runs ``user``, which is in the file ``module``.

    Where it is not seen what starts them, some file has to lead to both by its imports, or
    whoever chooses the seed puts the parts of its package together from outside.
    """
    if item.setting.at is None:
        return True
    together = launches(model).together(item.setting.at, user)
    if together is None:
        return item.setting.by_caller or program_files(model).share_importer(item.module, module)
    return together


def _is_replaced(model: Model, item: Seeding, user: Call | Scope) -> bool:
    """Whether another seed takes the place of the setting wherever ``user`` is built.

    ``if engine.distributed: seed = engine.local_rank``, with a sampler below the same test.
    """
    call, chosen = item.call, getattr(item.setting.at, "stmt", None)
    asked = conditions(model, user) if isinstance(user, Call) else frozenset()
    if not asked or chosen is None or call.stmt is None:
        return False
    names = [arg.value.id for arg in call.args if isinstance(arg.value, Name)]
    return any(
        binding.stmt is not None
        and chosen.order < binding.stmt.order < call.stmt.order
        and conditions(model, binding.stmt) <= asked
        for name in names
        for bound in [call.scope.bindings.get(name, ())]
        if any(binding.stmt is chosen for binding in bound)
        for binding in bound
    )


def _is_numbers_only(item: Seeding) -> bool:
    """Whether it seeds ``random`` or numpy alone: in another file, that may be for anything."""
    scope = item.call.scope
    return last_name(item.call.func) == "seed" and not any(
        called_name(call) != "seed" and SEEDS_ALL.says(called_name(call)) for call in scope.calls
    )


def seedings(model: Model, program: str) -> Iterator[Seeding]:
    """Every call of a program that seeds a global generator from a setting.

    A file is parsed when its turn comes.
    """
    for path in program_files(model).seeding(program):
        yield from _seedings_in(model, path)


def spelled_seedings(model: Model, program: str) -> Iterator[Seeding]:
    """Those in files that read an attribute or an entry by the name of a seed."""
    files = program_files(model)
    for path in files.seeding(program):
        if files.tells(path, _spells_seed):
            yield from _seedings_in(model, path)


def spelled_reads(model: Model, program: str, is_wanted: Callable[[str], bool]) -> Iterator[Attr]:
    """The attributes with a seed's name that wanted files seed with, each spelling once a file."""
    files = program_files(model)
    by_path: dict[str, dict[str | None, Attr]] = model.memo.setdefault(spelled_reads, {})
    for path in files.seeding(program):
        if not files.tells(path, _spells_seed) or not is_wanted(path):
            continue
        if path not in by_path:
            given = (arg.value for item in _seedings_in(model, path) for arg in item.call.args)
            reads = (node for expr in given for node in walk(expr) if isinstance(node, Attr))
            by_path[path] = {dotted(read): read for read in reads if is_seed_name(read.name)}
        yield from by_path[path].values()


def _spells_seed(data: bytes) -> bool:
    """Whether a file may read an attribute or an entry by the name of a seed."""
    return says_between(data.lower(), b"seed", _BEFORE_SEED, _AFTER_SEED)


@remembered
def _seedings_in(model: Model, path: str) -> list[Seeding]:
    module = model.project.module_at(path)
    return [] if module is None else list(_find_seedings(model, module))


def _find_seedings(model: Model, module: Module) -> Iterator[Seeding]:
    for call in module.facts.all_calls:
        given = seed_given(model, call)
        is_put_back = call.stmt is not None and inherited(call.stmt, _is_put_back, False)
        if given is not None and not is_put_back:
            for setting in islice(_settings(model, given), MOST_VALUES):
                if not (setting.by_caller and _is_alias(call)):
                    yield Seeding(module, call, setting)


def _package(module: Module) -> str:
    return module.name.partition(".")[0]


def _is_alias(call: Call) -> bool:
    """Whether a library's function stands behind one of the same name, which seeds nothing yet."""
    return call.scope.name == last_name(call.func)


@remembered
def constructions(model: Model) -> list[Obj]:
    """Every sampler built in the candidate files, those built by ``cls(…)`` too."""
    return [*_constructions(model)]


def _constructions(model: Model) -> Iterator[Obj]:
    yield from model.constructions()
    for _, cls in model.classes():
        if not model.is_sampler_class(cls):
            continue
        for method in cls.methods:
            first = method.params[0].name if method.is_classmethod and method.params else None
            for call in method.calls:
                if first and isinstance(call.func, Name) and call.func.id == first:
                    yield Obj(cls, call)


def takes_seed(model: Model, cls: Class) -> bool:
    """Whether whoever builds the class can give it a seed."""
    init = model.flow.method(cls, "__init__")
    if isinstance(init, Function):
        return any(is_seed_name(param.name) for param in init.params)
    return init is None and DISTRIBUTED_SAMPLER in model.flow.mro(cls)


def epoch_carries_seed(model: Model, module: Module) -> bool:
    """Whether the program hands a seed over with the epoch (``set_epoch(seed + epoch)``)."""
    program = model.project.program_of(module)
    return any(
        SEED.is_mentioned(arg.value)
        for call in model.project.calls_in(program, "set_epoch")
        for arg in call.args
    )


def seed_given(model: Model, call: Call) -> Expr | None:
    """What ``call`` seeds the program's global generators with, if it does."""
    given = global_seed(model, call)
    if given is None or any(
        (isinstance(scope, Function) and runs_in_worker(model, scope))
        or (isinstance(scope, Class) and model.is_sampler_class(scope))
        for scope in call.scope.outward()
    ):
        return None
    return given


def global_seed(model: Model, call: Call) -> Expr | None:
    """What ``call`` seeds a global generator with, be it for one draw alone."""
    name = called_name(call)
    if name is None or not SEEDS_ALL.says(name) or not _is_global(model, call, name):
        return None
    given = call.positional[:1] or [arg.value for arg in call.args if arg.keyword == "seed"]
    return given[0] if given else None


def _is_put_back(found: bool, stmt: Stmt) -> bool:
    """Whether a ``with`` block around it gives the generators back their state at its end."""
    around = stmt.parent
    return found or (
        isinstance(around, With)
        and any(
            isinstance(item, Call) and last_name(item.func) in {"fork_rng", "isolate_rng"}
            for item, _ in around.items
        )
    )


def runs_in_worker(model: Model, function: Function) -> bool:
    """Whether a loader's worker runs the function: it takes the worker's number, or is given."""
    takes_number = bool(function.params) and WORKERS.says(function.params[0].name)
    return takes_number or function in _given_to_workers(model)


@remembered
def _given_to_workers(model: Model) -> set[Function]:
    known: set[Function] = set()
    for module in model.modules:
        for call in module.facts.all_calls:
            given = call.keyword("worker_init_fn")
            for value in model.flow.values(given) if given is not None else ():
                if isinstance(value, Partial) and value.site.positional:
                    found = model.flow.values(value.site.positional[0])
                else:
                    found = frozenset({value})
                known.update(each.function for each in found if isinstance(each, FuncRef))
    return known


def _is_global(model: Model, call: Call, name: str) -> bool:
    """Whether the call seeds a library's own generator, not one that was made."""
    values = model.flow.values(call.func)
    if SEEDS_ONE.is_call(call):
        return any(isinstance(value, Ext) and library_of(value.dotted) for value in values)
    if isinstance(call.func, Name) or name == "seed_everything":
        return True
    return any(
        (isinstance(value, Ext) and "()" not in value.dotted)
        or (
            isinstance(value, FuncRef)
            and any(SEEDS_ALL.says(called_name(inner)) for inner in value.function.calls)
        )
        for value in values
    )


class Setting(NamedTuple):
    """Where a seed is set."""

    code: str
    """As it is spelled (``args.seed``)."""
    at: Name | Attr | Call | Function | None
    """What reads it, or the function that takes it; None if it is not known."""
    by_caller: bool = False
    """Whether it is the parameter of a public function that nothing in the tree calls."""
    entry: Index | None = None
    """The entry of a mapping that holds it (``cfg["seed"]``), if it is one."""


def setting_of(model: Model, expr: Expr) -> Setting | None:
    """The setting that a seed comes from; None for literals and what is drawn.

    A setting is an attribute or an entry called ``seed`` of a configuration, the parameter of a
    public function that nothing in the tree calls, or of a command.
    """
    return next(_settings(model, expr), None)


_THROUGH = EVERYWHERE & ~(Hop.RETURN | Hop.ITEM)


def _settings(model: Model, expr: Expr) -> Iterator[Setting]:
    """The settings that a seed may come from: each caller of a function may have its own."""
    stop, drop = partial(_is_read, model), partial(_is_aside, model)
    for step in origins(model.flow, expr, _THROUGH, stop=stop, drop=drop):
        yield from _setting_at(model, step)


def _setting_at(model: Model, step: Step) -> Iterator[Setting]:
    expr = step.expr
    if isinstance(expr, Attr) and not _is_func(step) and self_class(expr.value) is None:
        whole = unparse(expr)
        is_seed = is_seed_name(expr.name) and not is_file(model, expr.value)
        is_other = isinstance(expr.value, Call) or WORKERS.says(whole) or _is_redrawn(model, expr)
        if is_seed and not is_other:
            yield Setting(whole, expr)
    elif isinstance(expr, Index) and _is_seed_key(expr.key):
        yield Setting(unparse(expr), next(_placed(expr), None), entry=expr)
    elif isinstance(expr, Call) and _looks_up(expr):
        key = next((arg for arg in expr.positional if _is_seed_key(arg)), None)
        if isinstance(key, Const):
            yield Setting(str(key.value), expr)
    elif (parameter := parameter_of(expr)) is not None:
        yield from _parameter_settings(model, *parameter)


def is_file(model: Model, expr: Expr) -> bool:
    """Whether it is a file of the tree, whose names its own lines set."""
    return any(isinstance(value, ModRef) for value in model.flow.values(expr))


def _looks_up(call: Call) -> bool:
    return ENVIRONMENT.is_call(call) or last_name(call.func) == "getattr"


def _is_func(step: Step) -> bool:
    """Whether it is what a call calls: what a generator draws comes from what made it."""
    made = step.towards.expr if step.towards is not None else None
    return isinstance(made, Call) and made.func is step.expr


def _is_read(model: Model, step: Step) -> bool:
    """Whether a setting is read there, and nothing lies behind it."""
    expr = step.expr
    if isinstance(expr, Attr) and not _is_func(step):
        return self_class(expr.value) is None or not is_seed_name(expr.name)
    return isinstance(expr, Index) or (isinstance(expr, Call) and _looks_up(expr))


def _is_aside(model: Model, step: Step) -> bool:
    """Whether a test passes it, or it only names what is called."""
    is_called = _is_func(step) and isinstance(step.expr, Name)
    return is_called or (step.hop is Hop.CALLER and is_test(model.module_of(step.scope)))


def _placed(expr: Expr) -> Iterator[Name | Attr | Call]:
    """What is in the expression and says where it stands."""
    return (node for node in walk(expr) if isinstance(node, (Name, Attr, Call)))


def _is_seed_key(expr: Expr) -> bool:
    return (
        isinstance(expr, Const)
        and isinstance(expr.value, str)
        and is_seed_name(expr.value.rpartition(".")[2].rpartition("/")[2])
    )


def _is_redrawn(model: Model, expr: Attr) -> bool:
    """Whether each run overwrites what was set by a draw (``args.seed = randint(…)``)."""
    owner = expr.value
    return isinstance(owner, Name) and any(
        store.value is not None
        and store.stmt.parent is None
        and store.scope is owner.scope
        and same(store.target, expr)
        and is_drawn(store.value)
        for store in model.project.stores_near(expr.name, expr.scope)
    )


def _parameter_settings(model: Model, function: Function, param: Param) -> Iterator[Setting]:
    """The parameter itself, where what is passed for it is not seen."""
    if not is_seed_name(param.name):
        return
    calls = [
        call for call in model.flow.callers(function) if not is_test(model.module_of(call.scope))
    ]
    for call in calls:
        given = passed(function, param, call)
        if given is None:
            yield Setting(param.name, call)
        elif given is MISSING and param.default is None and function.decorators:
            yield Setting(param.name, function)  # its decorator passes it, as of a command
    if calls:
        return
    made = function.cls if function.name == "__init__" else None
    name = function.name if made is None else made.name
    module = model.module_of(function)
    # A file of settings builds objects; functions are for those who install the package.
    is_reached = made is not None or is_installable(model.project, module)
    public = not name.startswith("_") and module.in_package and is_reached
    is_command = bool(function.decorators) or function.name == "main"
    if public or is_command:
        yield Setting(param.name, function, not is_command)


def is_seed_name(name: str) -> bool:
    """Whether a setting or parameter of this name is the program's seed."""
    return _SEED_NAME.match(name) is not None


@remembered
def seeding_files(model: Model, program: str, *, also_torch: bool = False) -> list[Module]:
    """The files of a program that seed more than torch's generators, or those as well."""
    return [
        module
        for module in program_files(model).holding(program, _SEEDING.search)
        if any(_seeds(model, call, also_torch=also_torch) for call in module.facts.all_calls)
    ]


_SEEDING = re.compile(rb"seed\w{0,40}[ \t]*\(|enable_full_determinism")


def _seeds(model: Model, call: Call, *, also_torch: bool) -> bool:
    name = (last_name(call.func) or "").lower()
    return (
        ("seed" in name or name == "enable_full_determinism")
        and (also_torch or "manual_seed" not in name)
        and not any(
            isinstance(scope, Function) and runs_in_worker(model, scope)
            for scope in call.scope.outward()
        )
    )


def drawn_unseeded(model: Model, expr: Expr) -> str | None:
    """The draw of a program from a generator that nothing seeds, as it is spelled.

    None where no script of the tree runs it: who does may seed it, as may a framework.
    """
    draw, library = draw_of_process(model, expr) or (None, "")
    if draw is None:
        return None
    module, files = model.module_of(draw.scope), program_files(model)
    program = model.project.program_of(module)
    if not files.has_script(module) or any(
        files.share_importer(module, other)
        for other in seeding_files(model, program, also_torch=library == "torch")
    ):
        return None
    together = (m for m in model.project.modules_in(program) if files.share_importer(module, m))
    if any(model.project.imports_of(m) & catalog.FRAMEWORK_PACKAGES.keys() for m in together):
        return None
    return f"{unparse(draw.func)}()"
