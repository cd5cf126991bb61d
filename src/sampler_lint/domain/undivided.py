"""Whether the processes of a program train on what one of its loaders gives, all of it each."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import is_one_value, passed_as
from sampler_lint.analysis.reaching import is_taken_apart_otherwise
from sampler_lint.analysis.values import Ext, ExtObj, Obj, Pack, Table, Unknown
from sampler_lint.domain.concepts import (
    FIRST_RANK,
    ITERATED,
    ITERATES,
    PROCESSES,
    RANK,
    SAMPLER,
    SEEDS_ALL,
    SHARDS,
    SHARES,
    TRAINS,
    WORLD_SIZE,
)
from sampler_lint.domain.conditions import contradict
from sampler_lint.domain.datasets import sampled
from sampler_lint.domain.epochs import EpochLoop, feeds_training, loops_over, pass_trains, trains
from sampler_lint.domain.injection import (
    injections,
    is_one_device,
    is_several_processes,
    is_told_to_leave_samplers,
    may_be_told_more,
    told_by_settings,
)
from sampler_lint.domain.launches import launches
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import program_files
from sampler_lint.domain.ranks import (
    chains,
    data_parallel,
    is_about_processes,
    is_guarded,
    reached,
    reached_on,
)
from sampler_lint.domain.samplers import distributed_samplers
from sampler_lint.domain.shares import is_left_there, passes_over_shared
from sampler_lint.domain.wrapping import parameter_kept
from sampler_lint.parameters import Role, role_of
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import method_around, nodes_in, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    UNEQUAL,
    Assign,
    Attr,
    Bin,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    Function,
    If,
    Index,
    Name,
    Other,
    Param,
    Return,
    Scope,
    Stmt,
    Unary,
    last_name,
)
from sampler_lint.workspace.project import Module


def undivided(model: Model, loader: Obj) -> Call | None:
    """What makes the processes of the program that trains with a loader.

    None where anything of that program may give the processes different samples.
    """
    site = loader.site
    if site is None or is_guarded(site):
        return None
    through = loader.through
    for entry, calls in _ways(model, site):
        if any(is_guarded(call) for call in calls):
            continue
        if calls and through is not None and calls[-1].scope is not through.scope:
            continue  # the factory builds another loader there
        scopes = reached_on(model, entry, calls, site.scope)
        joins = _joining(model, scopes, [site, *calls])
        if joins is None or not _trains(scopes):
            continue
        modules = {model.module_of(scope) for scope in scopes}
        modules.update(model.module_of(call.scope) for call in calls)
        if _differs_by_rank(scopes, site):
            return None
        if not _is_started(model, joins, model.module_of(entry)):
            return None
        elsewhere = _is_sharded_elsewhere(model, site, modules)
        if not elsewhere or _trains_as_it_is(model, loader, scopes):
            return joins
        return None
    return None


def trained_together(model: Model, site: Call) -> Call | None:
    """What makes the processes of a program that trains with what a call builds.

    Whether anything shares the data out among them is not asked.
    """
    for entry, calls in _ways(model, site) if not is_guarded(site) else ():
        if any(is_guarded(call) for call in calls):
            continue
        scopes = reached_on(model, entry, calls, site.scope)
        joins = _joining(model, scopes, [site, *calls])
        if joins is not None and _trains(scopes):
            return joins if _is_started(model, joins, model.module_of(entry)) else None
    return None


def _ways(model: Model, site: Call) -> Iterator[tuple[Scope, tuple[Call, ...]]]:
    """What leads to a call, by branches that one run may take together."""
    return chains(
        model,
        site.scope,
        lambda call, calls: (
            not contradict(model, [site, *calls], [call])
            and not is_taken_apart_otherwise(call, calls[0] if calls else site)
        ),
    )


def _joining(model: Model, scopes: frozenset[Scope], built: list[Call]) -> Call | None:
    """What makes processes train together, in a run that comes to where the data is built."""
    found = data_parallel(model, scopes)
    return next(
        (
            each
            for each in found
            if not contradict(model, built, [each]) and not _is_declined(model, each, scopes)
        ),
        None,
    )


def _is_declined(model: Model, joins: Call, scopes: Set[Scope]) -> bool:
    """Whether a flag of the object decides, and all that the program builds have it off."""
    method = method_around(joins.scope)
    cls = method.cls if method is not None else None
    init = model.flow.method(cls, "__init__") if cls is not None else None
    if cls is None or not isinstance(init, Function):
        return False
    asked = [
        parameter_kept(model, cls, part.name)
        for test, answer in tests(joins)
        for part in (test.options if isinstance(test, Choice) and test.kind == "and" else [test])
        if answer and isinstance(part, Attr) and self_class(part.value) is not None
    ]
    made = [call for call in model.flow.callers(init) if call.scope in scopes]
    return bool(made) and any(
        param in init.params and all(_is_off(model, init, param, call) for call in made)
        for param in asked
        if param is not None
    )


def _is_off(model: Model, init: Function, param: Param, call: Call) -> bool:
    given = passed(init, param, model.flow.as_made(call))
    return model.flow.constants(param.default if given is MISSING else given) == {False}


def _is_started(model: Model, joins: Call, module: Module) -> bool:
    """Whether a file that runs with the training starts the processes, which torch does not."""
    if all(
        isinstance(value, Ext) and not value.dotted.startswith("torch.")
        for value in model.flow.values(joins.func)
    ):
        return True
    return starts_processes(model, module)


def starts_processes(model: Model, module: Module) -> bool:
    """Whether a file that runs with another one has torch start the processes."""
    files = program_files(model)
    return any(
        files.share_importer(module, other)
        for other in files.holding(model.project.program_of(module), _STARTS.search)
    )


_STARTS = re.compile(rb"init_process_group|init_distributed|PartialState")


def _trains_as_it_is(model: Model, loader: Obj, scopes: Set[Scope]) -> bool:
    """Whether a loop certainly trains with what the constructor made, and nothing divides that.

    Whatever else the program imports or shards then has no part in it.
    """
    modules = {model.module_of(scope) for scope in scopes}
    frameworks = {name for m in modules for name in injections(model).trainers(m)}
    if any(_may_divide(scopes, name) for name in frameworks):
        return False
    if any(
        SHARES.is_mentioned(node) or _takes_share(node)
        for scope in scopes
        for node in nodes_in(statements(scope.body))
    ):
        return False
    data = model.argument(loader, "dataset")
    if data is None or any(
        (over := sampled(model, made)) is not None
        and is_one_value(model.flow, over, data)
        and not _has_loader(model, made)
        for made in distributed_samplers(model)
    ):
        return False  # somebody divides that dataset: SMP503 tells of a sampler that is not passed
    return _is_read_raw(model, loader, loops_over(model, loader))


def _has_loader(model: Model, sampler: Obj) -> bool:
    """Whether a loader gets a sampler: this one in another branch, or another one."""
    return any(
        sampler.may_be(given)
        for loader in model.loaders
        for given in model.passed_to(loader, "sampler")
    )


def _is_read_raw(model: Model, loader: Obj, loops: list[EpochLoop]) -> bool:
    """Whether a loop trains, and each of them reads what a constructor made and nothing else.

    Another loader may be read there if this one is asked for by more than the number of processes.
    """
    read = [value for loop in loops for value in model.flow.values(loop.inner.source)]
    is_chosen = any(not loader.may_be(value) for value in read)
    return (
        any(trains(model, loop) for loop in loops)
        and all(isinstance(value, Obj) and model.role(value) == "loader" for value in read)
        and all(_is_iterated_there(loop.inner.source) for loop in loops)
        and not (is_chosen and loader.site and not is_asked_for(model, loader.site))
    )


def is_asked_for(model: Model, site: Call) -> bool:
    """Whether a call is made where a test says yes, and no test there is about processes.

    What one process does without being asked for it, where several do something else, is right.
    """
    asked = [*tests(site)]
    return any(answer is not _is_negated(test) for test, answer in asked) and not any(
        is_about_processes(model, test) or SAMPLER.is_mentioned(test) for test, _ in asked
    )


def _is_negated(test: Expr) -> bool:
    return (isinstance(test, Unary) and test.op == "Not") or (
        isinstance(test, Compare) and test.ops[0] in UNEQUAL
    )


def _is_iterated_there(source: Expr) -> bool:
    """Whether nothing but what goes through it gets a loader before it is iterated."""
    stmt = source.stmt if isinstance(source, (Name, Attr, Call)) else None
    return stmt is not None and all(
        node is source or ITERATES.is_call(node) or not any(part is source for part in walk(node))
        for node in nodes_in([stmt])
        if isinstance(node, Call)
    )


def _may_divide(scopes: Set[Scope], name: str) -> bool:
    """Whether a framework may be given a loader, or makes one of what it is given."""
    own = catalog.framework(name).own_data
    return not own or any(
        arg.stars or arg.keyword == own
        for scope in scopes
        for call in scope.calls
        if last_name(call.func) in catalog.framework(name).trainers
        for arg in call.args
    )


class Left(NamedTuple):
    """What keeps a framework from dividing a loader."""

    call: Call
    """The Trainer (or LightningCLI, or Fabric) that is told so, or whose set-up is missing."""
    settings: str | None = None
    """The file of settings that tells it, where the code does not."""
    through: str = ""
    """What would divide the loader, if it were handed to it."""


def left_whole(model: Model, loader: Obj) -> Left | None:
    """What keeps Lightning from dividing a loader that it trains with.

    A Trainer that is told ``use_distributed_sampler=False``, perhaps by a file of settings. None
    where anything may divide it.
    """
    if loader.site is None or is_guarded(loader.site):
        return None
    injection = injections(model)
    module = model.module_of(loader.site.scope)
    if "lightning" not in injection.trainers(module):
        return None
    scopes, made = _of_lightning(model, module)
    trainers = [call for call in made if last_name(call.func) in {"Trainer", "LightningCLI"}]
    settings = None
    if not trainers or any(last_name(call.func) == "Fabric" for call in made):
        return None
    if not all(is_told_to_leave_samplers(model, call) for call in trainers):
        settings = told_by_settings(model, module) if _reads_settings(model, trainers) else None
        if settings is None:
            return None
    if not _is_fitted(model, loader, scopes) or any(is_one_device(model, each) for each in made):
        return None
    if _any_shards(model, scopes, made):
        return None
    return None if _chooses_by_rank(loader.site) else Left(trainers[0], settings)


def left_iterable(model: Model, loader: Obj) -> Call | None:
    """The Trainer, or the Fabric, of several processes that trains with iterable data.

    Lightning divides none: each process goes over all that the dataset gives it. None where
    anything of the program may divide it.
    """
    if loader.site is None or is_guarded(loader.site):
        return None
    injection = injections(model)
    module = model.module_of(loader.site.scope)
    if "lightning" not in injection.trainers(module):
        return None
    scopes, made = _of_lightning(model, module)
    kinds = catalog.framework("lightning").trainers
    trainers = [call for call in made if last_name(call.func) in kinds]
    if not trainers or not all(is_several_processes(model, each) for each in trainers):
        return None
    fitted = (
        value
        for scope in scopes
        for call in scope.calls
        if last_name(call.func) == "fit"
        for given in (*passed_as(model.flow, call, "train_dataloaders"), *call.positional[1:2])
        for value in model.flow.values(given)
    )
    if (
        not any(isinstance(value, Obj) and loader.may_be(value) for value in fitted)
        and not feeds_training(model, loader)
        and not any(
            loader.may_be(found.loader) and pass_trains(model, found)
            for found in passes_over_shared(model)
        )
    ):
        return None
    if _any_shards(model, scopes, made) or _chooses_by_rank(loader.site):
        return None
    return trainers[0]


@remembered
def _of_lightning(model: Model, module: Module) -> tuple[list[Scope], list[Call]]:
    """The scopes of a program that may run with a file, and what they call of Lightning's."""
    injection, together = injections(model), program_files(model).running_with(module)
    scopes = [scope for each in together for scope in each.facts.scopes]
    made = [call for scope in scopes for call in scope.calls if injection.is_lightning(call)]
    return scopes, made


def left_out(model: Model, loader: Obj) -> Left | None:
    """What gives each rank a part of the loaders that it is handed, and never gets this one.

    An Accelerator, or a Fabric, with which a loop trains that reads the loader as it was built.
    """
    if loader.site is None or is_guarded(loader.site):
        return None
    module = model.module_of(loader.site.scope)
    for framework in sorted(injections(model).trainers(module)):
        known = catalog.sharders(framework)
        loops = loops_over(model, loader) if known else []
        scopes = {scope for loop in loops for scope in _around(model, loop)}
        made = [call for call in _averaging_by(model, framework, known, scopes) if call.stmt]
        if (
            not made
            or any(is_one_device(model, each) for each in made)
            or not _is_read_raw(model, loader, loops)
        ):
            continue
        if _may_take_share(scopes, loader.site):
            return None
        together = program_files(model).running_with(module)
        if not any(_may_be_handed(model, each, framework, loader) for each in together):
            return Left(made[0], through=next(iter(known)).rpartition(".")[2])
    return None


def taken_as_it_is(model: Model, hook: Function, loader: Obj) -> Expr | None:
    """Where a program knows of processes whose framework trains with a hook's loader as it is.

    None where anything of the program may divide it.
    """
    module = model.module_of(hook)
    if loader.site is None or is_guarded(loader.site):
        return None
    together = program_files(model).running_with(module)
    scopes = {scope for each in together for scope in each.facts.scopes}
    if _may_take_share(scopes, loader.site):
        return None
    if any(
        _may_be_handed(model, each, framework, loader)
        for each in together
        for framework in ("transformers", "accelerate")
    ):
        return None
    return next(
        (
            node
            for each in together
            for scope in each.facts.scopes
            for node in nodes_in(statements(scope.body))
            if RANK.is_call(node)
            or (isinstance(node, (Name, Attr)) and (RANK.names(node) or FIRST_RANK.names(node)))
        ),
        None,
    )


def _may_take_share(scopes: set[Scope], site: Call) -> bool:
    """Whether some code may leave each rank a part of what a call builds a loader for."""
    return _differs_by_rank(scopes, site) or any(
        _takes_share(node) for scope in scopes for node in nodes_in(statements(scope.body))
    )


def _around(model: Model, loop: EpochLoop) -> set[Scope]:
    """What runs with a loop: what leads to it, and what that calls."""
    return {scope for entry, _ in chains(model, loop.loop.scope) for scope in reached(model, entry)}


def _averaging_by(
    model: Model, framework: str, known: Mapping[str, catalog.Sharder], scopes: Set[Scope]
) -> Iterator[Call]:
    """Where the object of a framework is made by which a program computes its gradients."""
    owners = {name.rpartition(".")[0] for name in known}
    for scope in scopes:
        for call in scope.calls:
            if last_name(call.func) == "backward" and isinstance(call.func, Attr):
                for value in model.flow.values(call.func.value):
                    if isinstance(value, ExtObj) and f"{value.dotted}()" in owners:
                        yield value.site


def _may_be_handed(model: Model, module: Module, framework: str, loader: Obj) -> bool:
    """Whether a file hands the loader to what divides it, or what it hands that is not known.

    And goes on with what it gets back for it.
    """
    names = {name.rpartition(".")[2] for name in catalog.sharders(framework)}
    return any(
        arg.stars or _may_hold(model, arg.value, loader)
        for call in module.facts.all_calls
        # What is called is not a function of the tree: its body is asked itself.
        if last_name(call.func) in names and not model.flow.callees(call)
        for place, arg in enumerate(call.args)
        if not is_left_there(model, call, place)
    )


def _may_hold(model: Model, given: Expr, loader: Obj) -> bool:
    """Whether what is handed over may be the loader, or hold it.

    What is not known is no loader if it has a name, and another than loaders have: a model.
    """
    values = model.flow.values(given)
    is_other = isinstance(given, (Name, Attr)) and not ITERATED.names(given)
    return (not values and not is_other) or any(
        (isinstance(value, Unknown) and not is_other)
        or isinstance(value, (Pack, Table))
        or (isinstance(value, Obj) and loader.may_be(value))
        for value in values
    )


def _reads_settings(model: Model, trainers: list[Call]) -> bool:
    """Whether the one Trainer of a program gets its arguments from elsewhere than the code."""
    return len(trainers) == 1 and (
        last_name(trainers[0].func) == "LightningCLI" or may_be_told_more(model, trainers[0])
    )


def _is_fitted(model: Model, loader: Obj, scopes: list[Scope]) -> bool:
    """Whether Lightning trains with the loader: it is passed to ``fit``, or a hook returns it."""
    given = (
        value
        for scope in scopes
        for call in scope.calls
        if last_name(call.func) == "fit"
        for arg in call.args
        for value in model.flow.values(arg.value)
    )
    return any(isinstance(value, Obj) and loader.may_be(value) for value in given) or bool(
        feeds_training(model, loader)
    )


def _trains(scopes: Set[Scope]) -> bool:
    return any(TRAINS.is_call(call) for scope in scopes for call in scope.calls)


def _is_sharded_elsewhere(model: Model, site: Call, modules: set[Module]) -> bool:
    """Whether anything in the files of the program shards, be it another loader.

    What only other programs may start that use these files has no say.
    """
    injection = injections(model)
    return any(
        model.project.imports_of(m) & catalog.SHARDING_PACKAGES or injection.trainers(m)
        for m in modules
    ) or any(
        launches(model).together(site, scope) is not False
        for module in modules
        for scope in module.facts.scopes
        if _any_shards(model, [scope])
    )


def _differs_by_rank(scopes: Set[Scope], site: Call) -> bool:
    """Whether what is built, or drawn, may be another on each rank."""
    return _chooses_by_rank(site) or any(
        SEEDS_ALL.names(call.func) and any(PROCESSES.is_mentioned(a.value) for a in call.args)
        for scope in scopes
        for call in scope.calls
    )


def _any_shards(model: Model, scopes: Iterable[Scope], but: Container[Call] = ()) -> bool:
    """Whether a scope shards by itself that the application uses."""
    return any(
        _shards_by_itself(scope, but) and not launches(model).is_idle(scope) for scope in scopes
    )


def _shards_by_itself(scope: Scope, but: Container[Call] = ()) -> bool:
    """Whether a scope uses anything that gives the ranks different samples; imports do not.

    What some calls are told has no say.
    """
    names = [
        arg.keyword
        for call in scope.calls
        if call not in but
        for arg in call.args
        if not (isinstance(arg.value, Const) and (arg.value.value is False or _is_text(arg.value)))
    ]
    names += [param.name for param in scope.params] if isinstance(scope, Function) else []
    bases = scope.bases if isinstance(scope, Class) else []
    return (
        any(map(SHARDS.says, names))
        or any(map(SHARDS.names, bases))
        or any(SHARDS.names(n) or _takes_share(n) for n in nodes_in(statements(scope.body)))
    )


def _takes_share(node: Expr) -> bool:
    """``files[rank::world_size]``, and ``step % world_size``."""
    if isinstance(node, Index):
        return isinstance(node.key, Other) and PROCESSES.is_mentioned(node.key)
    if not isinstance(node, Bin) or node.op != "Mod" or _is_text(node.left):
        return False
    sizes = (role_of(last_name(part) or "") is Role.WORLD_SIZE for part in walk(node.right))
    return WORLD_SIZE.is_mentioned(node.right) or any(sizes)


def _is_text(expr: Expr) -> bool:
    """Whether it is a text, into which ``%`` puts a number."""
    return isinstance(expr, Const) and isinstance(expr.value, str)


def _chooses_by_rank(site: Call) -> bool:
    """Whether a condition about ranks in the scope decides on a loader, or on what is returned.

    What is built there and kept by names that the loader has nothing to do with has no say.
    """
    return any(
        isinstance(stmt, If)
        and PROCESSES.is_mentioned(stmt.test)
        and any(
            isinstance(inner, Return) or (_builds(inner) and not _is_apart(inner, site))
            for inner in statements([stmt])
        )
        for stmt in statements(site.scope.body)
    )


def _is_apart(stmt: Stmt, site: Call) -> bool:
    """Whether a statement only binds names that neither are a loader nor go into it."""
    if not isinstance(stmt, Assign) or not isinstance(site.stmt, Assign):
        return isinstance(stmt, If)  # the statements below it are looked at themselves
    targets = [*stmt.targets, *site.stmt.targets]
    bound = {target.id for target in stmt.targets if isinstance(target, Name)}
    used = {target.id for target in site.stmt.targets if isinstance(target, Name)}
    todo: list[Expr] = [site]
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, Name) and node.id not in used:
                used.add(node.id)
                todo += (each.value for each in site.scope.bindings.get(node.id, ()) if each.value)
    return all(isinstance(target, Name) for target in targets) and used.isdisjoint(bound)


def _builds(stmt: Stmt) -> bool:
    return any(isinstance(node, Call) and ITERATED.names(node.func) for node in nodes_in([stmt]))
