"""Loaders whose ranks do not get each sample once: padded, cut off, or read by one rank alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import depends_on, is_one_value, scope_of
from sampler_lint.analysis.values import ExtObj, Obj, Value
from sampler_lint.domain.conditions import (
    asks_parameters,
    conditions,
    contradict,
    excludes,
    is_built_without,
    is_left_out,
    ways_made,
)
from sampler_lint.domain.datasets import refuses_samplers
from sampler_lint.domain.engines import evaluated_by_call
from sampler_lint.domain.epochs import (
    feeds_training,
    hooked_to_evaluate,
    is_named_after_training,
    pass_evaluates,
    pass_trains,
)
from sampler_lint.domain.injection import injections
from sampler_lint.domain.model import BATCH_SAMPLER, DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.options import shown
from sampler_lint.domain.passes import Pass, have_no_object, passes_near
from sampler_lint.domain.programs import built_outside_tests, is_test, once_a_program, program_files
from sampler_lint.domain.rank_terms import runs_on_one_rank
from sampler_lint.domain.ranks import reached
from sampler_lint.domain.settled import never_runs
from sampler_lint.domain.shares import is_alone, pads, passes_over_shared
from sampler_lint.domain.taking import as_taken, is_beside_range, takes_some
from sampler_lint.domain.undivided import starts_processes
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import imported_module, text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.remembered import remembered
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp504_evaluation_padding.counting import (
    ADDS,
    COUNTING,
    TOGETHER,
    computes,
    counts_inline,
    is_of_one_turn,
    names_drawn,
    sums_up,
)
from sampler_lint.syntax.navigation import leftmost, nodes_in, operands, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Name,
    Node,
    Scope,
    Seq,
    Simple,
    Stmt,
    last_name,
)

# The sampler that makes the ranks of a loader equally long, or drops what is left.


def batch_maker(model: Model, loader: Obj) -> Obj:
    """What puts a loader's batches together: itself, or torch's batch sampler that it is given."""
    given = [
        value
        for value in model.passed_to(loader, "batch_sampler")
        if not isinstance(value, Obj) or not excludes(model, value.through, value.site)
    ]
    plain = [v for v in given if isinstance(v, Obj) and v.cls == BATCH_SAMPLER and v.site]
    one = plain[0] if len(plain) == 1 else None
    if one is not None and all(v is one or _goes_over(model, v, one) for v in given):
        return one
    return loader


def _goes_over(model: Model, value: Value, inner: Obj) -> bool:
    """Whether an object of the tree was built over another: what repeats a batch sampler."""
    site = value.site if isinstance(value, Obj) and isinstance(value.cls, Class) else None
    given = [v for arg in (site.args if site else ()) for v in model.flow.values(arg.value)]
    return any(isinstance(v, Obj) and v.site is inner.site for v in given)


def may_drop_last(model: Model, loader: Obj) -> Expr | None:
    """What a loader is told of its last batch, where that may be an incomplete one."""
    size = model.flow.argument(loader, "batch_size")
    if size is None or model.flow.constants(size, loader.through) == {1}:
        return None  # one sample a batch: none is left over
    if isinstance(size, Attr) and shown(model, size) == {1}:
        return None
    return model.flow.argument(loader, "drop_last")


def drops(model: Model, given: Expr, through: Call | None = None, *around: Call) -> bool:
    """Whether a loader is told to drop its last batch by the call of its function.

    A condition that is true of this loader alone says for which it is meant.
    """
    if model.flow.constants(given, through, *around) != {True}:
        return False
    if not isinstance(given, (Choice, Compare)):
        return True
    scope = scope_of(given)
    others = model.flow.callers(scope) if through is not None else ()
    return (
        isinstance(scope, Function)
        and asks_parameters(given, scope)
        and any(model.flow.constants(given, o) == {True} for o in others if o is not through)
    )


@remembered
def padding_sampler(model: Model, loader: Obj) -> Obj | None:
    """The sampler of torch's own making that shares out the loader's samples."""
    if excludes(model, loader.through, loader.site) or refuses_samplers(model, loader):
        return None
    given = [
        value
        for value in model.passed_to(batch_maker(model, loader), "sampler")
        if isinstance(value, Obj)
        and value.site is not None
        and not excludes(model, value.through, value.site)
        and not _is_left_out(model, loader, value.site)
        and not is_left_out(model, value.site)
        and not is_alone(model, value)
        and not _is_of_another_program(model, loader, value)
    ]
    if any(_is_exact(model, each) for each in given) or any(map(_is_beside_none, given)):
        return None
    return next((each for each in given if _pads(model, each)), None)


def _is_left_out(model: Model, loader: Obj, site: Call) -> bool:
    """Whether what the loader's function was asked for leaves out a call beside the loader's."""
    own = loader.site
    return own is not None and own.scope is site.scope and excludes(model, loader.through, site)


def _is_of_another_program(model: Model, loader: Obj, sampler: Obj) -> bool:
    """Whether a script that never runs with the loader's had a function build the sampler."""
    ways = [made.through for made in (loader, sampler)]
    places = [model.module_of(way.scope) for way in ways if way is not None]
    return len(places) == len(ways) and program_files(model).run_apart(*places)


def _is_beside_none(sampler: Obj) -> bool:
    """Whether a list adds loaders without a sampler: ``[*make_samplers(train), None]``."""
    made = sampler.through
    return made is not None and any(
        any(node is made for node in walk(whole))
        and any(
            isinstance(item, Const) and item.value is None
            for part in walk(whole)
            if isinstance(part, Seq)
            for item in part.items
        )
        for whole in nodes_in([made.stmt] if made.stmt is not None else [])
        if isinstance(whole, Seq) or (isinstance(whole, Bin) and whole.op == "Add")
    )


def _pads(model: Model, sampler: Obj) -> bool:
    """Whether the sampler makes the ranks equally long: as torch's, or in a way of its own."""
    if model.flow.method(sampler.cls, "__iter__") == DISTRIBUTED_SAMPLER:
        return model.is_a(sampler, DISTRIBUTED_SAMPLER) is True
    return pads(model, sampler)


def _is_exact(model: Model, sampler: Obj) -> bool:
    """Whether the ranks of a class of the tree, iterated as torch's, have each sample once."""
    cls = sampler.cls
    if not isinstance(cls, Class) or model.flow.method(cls, "__iter__") != DISTRIBUTED_SAMPLER:
        return False
    tried = [trial for trial in model.trials(cls).usual if not trial.world.drop_last]
    return bool(tried) and all(trial.divides for trial in tried)


# Evaluations to which one rank alone comes, with a loader that holds its own share.


def alone(model: Model, found: Pass, sampler: Obj) -> Suspect | None:
    """An evaluation that only one rank makes: it sees its own share of the samples, no more."""
    asked = _asked(model, found, sampler)
    kept = None
    if asked is None:
        kept = _counted_on_one_rank(model, found) or _kept_to_one_rank(model, found)
    place = asked or kept
    if place is None or not (
        sums_up(model, found.scope, found.stmt) or counts_inline(model, found)
    ):
        return None
    is_here = getattr(found.source, "scope", found.scope) is found.scope
    does = "evaluates" if kept is None else "uses what it counts"
    return Suspect(
        model.module_of(found.scope),
        found.source if is_here else found.iterated,
        f"one rank alone {does} over `{unparse(found.source)}`, and it has only its own share",
        why=(
            Related(model.place(place.scope, place), "only one rank gets here"),
            Related(model.place_of(sampler), "this sampler gives each rank its part"),
        ),
        effect="with N processes, 1/N of the samples are evaluated",
        advice="evaluate on every rank and bring the results together, or without a sampler there",
    )


def _asked(model: Model, found: Pass, sampler: Obj) -> Stmt | None:
    """The statement that only one rank comes to, on each way to the pass."""
    if _is_of_one_rank(model, found.stmt):
        return found.stmt
    if not _is_called_apart(model, found.scope):
        return None
    ways = [
        call
        for call in ways_with(model, found, sampler) or ()
        if call is not None and _gives(model, call, found.loader)
    ]
    if not ways or not all(_is_of_one_rank(model, call) for call in ways):
        return None
    return ways[0].stmt


def _kept_to_one_rank(model: Model, found: Pass) -> Stmt | None:
    """The first use of what each rank sums up in a pass, where one rank alone uses its own sum."""
    loop, scope = found.stmt, found.scope
    if not isinstance(loop, For) or not all(map(_only_counts, scope.calls_in(loop))):
        return None
    summed = {
        root.id
        for stmt in statements(loop.body)
        if isinstance(stmt, AugAssign) and isinstance(root := leftmost(stmt.target), Name)
        if not is_of_one_turn(loop, stmt)
    }
    if not summed:
        return None
    later = [
        stmt for stmt in statements(scope.body) if stmt is not loop and not loop.encloses(stmt)
    ]
    made = [stmt for stmt in later if isinstance(stmt, Assign)]
    while names := {name for stmt in made for name in _made_of(model, stmt, summed)} - summed:
        summed |= names
    uses = [
        stmt
        for stmt in later
        if not _is_renewed(stmt, summed)
        if any(isinstance(node, Name) and node.id in summed for node in nodes_in([stmt]))
    ]
    return uses[0] if uses and all(_is_of_one_rank(model, stmt) for stmt in uses) else None


def _counted_on_one_rank(model: Model, found: Pass) -> Stmt | None:
    """The first count of a pass whose turns count on one rank alone, and bring nothing together."""
    loop, calls = found.stmt, found.scope.calls_in(found.stmt)
    inner = [each for call in calls for callee in model.flow.callees(call) for each in callee.calls]
    if not isinstance(loop, For) or any(TOGETHER.names(each.func) for each in (*calls, *inner)):
        return None
    counts = [s for s in statements(loop.body) if isinstance(s, AugAssign)]
    places: list[Stmt] = [stmt for stmt in counts if not is_of_one_turn(loop, stmt)]
    places += [c.stmt for c in calls if last_name(c.func) in COUNTING | ADDS and c.stmt is not None]
    return places[0] if places and all(_is_of_one_rank(model, each) for each in places) else None


def _only_counts(call: Call) -> bool:
    """Whether a call brings nothing together, and tells no meter."""
    return not TOGETHER.names(call.func) and last_name(call.func) not in COUNTING


def _made_of(model: Model, stmt: Assign, names: set[str]) -> set[str]:
    """What every rank computes of some names: the mean of a sum, whether it is the best yet."""
    made = {target.id for target in stmt.targets if isinstance(target, Name)}
    is_computed = not made <= names and any(
        isinstance(node, Name) and node.id in names for node in walk(stmt.value)
    )
    is_made = is_computed and _is_renewed(stmt, made) and not _is_of_one_rank(model, stmt)
    return made if is_made else set()


def _is_renewed(stmt: Stmt, names: set[str]) -> bool:
    """Whether a statement only gives one of some names another value: the mean of its sum."""
    return (
        isinstance(stmt, Assign)
        and len(stmt.targets) == 1
        and isinstance(stmt.targets[0], Name)
        and stmt.targets[0].id in names
        and all(_only_counts(node) for node in walk(stmt.value) if isinstance(node, Call))
    )


@remembered
def _is_called_apart(model: Model, scope: Scope) -> bool:
    """Whether some call of a function is made by one rank alone; asked for each loader there."""
    calls = model.flow.callers(scope)
    return any(_is_of_one_rank(model, call) for call in calls)


def ways_with(model: Model, found: Pass, sampler: Obj) -> list[Call | None]:
    """The calls that lead to a pass in a run that builds the sampler; ``[None]`` if none is known.

    Where one process has no sampler, and it alone comes here, there are none; so where the sampler
    asks for processes and the script starts none, and where the loader is built without it.
    """
    scope = found.scope
    if _is_never_joined(model, found, sampler):
        return []
    calls = model.flow.starters(scope)
    built = [each for each in (sampler.site, sampler.through) if each is not None]
    made = [each for each in (found.loader.site, found.loader.through) if each is not None]
    if is_built_without(model, found.source, found.loader, sampler):
        return []
    if contradict(model, built, [found.stmt]) or any(
        have_no_object(model, each.scope, scope) for each in (*built, *made)
    ):
        return []
    judged: dict[Scope, bool] = {scope: False}
    left = [
        call
        for call in calls
        if _is_on_way(model, built, call, judged) and not never_runs(model, call)
    ]
    return [*left] if calls else [None]


def _is_never_joined(model: Model, found: Pass, sampler: Obj) -> bool:
    """Whether a sampler is for processes that are joined, and the script of a pass joins none."""
    module = model.module_of(found.scope)
    return (
        sampler.site is not None
        and (_JOINED, True) in conditions(model, sampler.site)
        and program_files(model).has_script(module)
        and not injections(model).trainers(module)
        and not starts_processes(model, module)
    )


_JOINED = "torch.distributed.is_initialized"


def _is_on_way(model: Model, built: list[Call], call: Call, judged: dict[Scope, bool]) -> bool:
    """Whether a run that comes to some calls may come to another, by one of the ways there."""
    if contradict(model, built, [call]):
        return False
    scope = call.scope
    if scope not in judged:
        judged[scope] = False  # a function that calls itself comes from elsewhere too
        calls = model.flow.starters(scope)
        judged[scope] = not calls or any(_is_on_way(model, built, c, judged) for c in calls)
    return judged[scope]


def _gives(model: Model, call: Call, loader: Obj) -> bool:
    """Whether a call may hand a loader in, as far as it hands any in."""
    given = [value for arg in call.args for value in model.flow.values(arg.value)]
    loaders = [value for value in given if model.role(value) == "loader"]
    return not loaders or any(map(loader.may_be, loaders))


def _is_of_one_rank(model: Model, place: Stmt | Call) -> bool:
    stmt = place.stmt if isinstance(place, Call) else place
    return stmt is not None and any(
        runs_on_one_rank(model, each, stmt.scope, answer=answer)
        for test, answer in tests(place)
        for each in (operands(test) if answer else [test])
    )


# Evaluations over loaders that leave out the last batch.


def cut_off(model: Model) -> Iterator[Suspect]:
    """Evaluations over a loader that leaves out the last batch, whoever divides the data."""
    seen: set[Stmt] = set()
    for loader, site, _ in built_outside_tests(model, model.loaders):
        maker = batch_maker(model, loader)
        given = may_drop_last(model, maker)
        if given is None or padding_sampler(model, loader) is not None:
            continue
        for found in _passes_of(model, site):
            if found.stmt in seen or _ends_early(found.stmt) or takes_some(model, found):
                continue
            ways = _ways_to(model, found, None if maker is loader else maker)
            if contradict(model, [site], [found.stmt]) or not all(
                drops(model, given, *way) and not (way and excludes(model, way[0], site, *way[1:]))
                for way in ways
            ):
                continue
            is_named = sums_up(model, found.scope, found.stmt)
            if not (is_named or _keeps_results(model, found, ways)) or any(
                pass_trains(model, each)
                and each.loader.may_be(found.loader)
                and is_one_value(model.flow, each.source, found.source)
                and not _is_made_apart(model, each, ways)
                for each in (found, *_passes_of(model, site))
            ):
                continue  # what it trains with, too, drops the last batch for that
            seen.add(found.stmt)
            may_end = _breaks(found.stmt) or is_beside_range(found)
            grade = Grade.LIKELY if may_end else Grade.CERTAIN
            yield _leaves_out(model, maker.site or site, given, found.scope, found.stmt, grade)


def cut_off_in_hooks(model: Model) -> Iterator[Suspect]:
    """The same of the loaders that a framework evaluates with."""
    seen: set[Call] = set()
    hooks = ((hook, hook, loader) for hook, loader in hooked_to_evaluate(model))
    calls = ((call.scope, call, loader) for call, loader in evaluated_by_call(model))
    for scope, where, loader in (*hooks, *calls):
        site = loader.site
        if site is None or site in seen or is_test(model.module_of(site.scope)):
            continue
        if excludes(model, loader.through, site):
            continue
        seen_here = [each for each in _passes_of(model, site) if loader.may_be(each.loader)]
        if seen_here and all(_ends_early(each.stmt) for each in seen_here):
            continue  # the program goes over it itself
        given = may_drop_last(model, loader)
        if given is not None and drops(model, given, loader.through):
            seen.add(site)
            yield _leaves_out(model, site, given, scope, where, Grade.LIKELY)


def _leaves_out(
    model: Model,
    site: Call,
    given: Expr,
    scope: Scope,
    where: Node,
    grade: Grade = Grade.CERTAIN,
) -> Suspect:
    is_here = isinstance(given, (Name, Attr, Const)) and any(given is a.value for a in site.args)
    return Suspect(
        model.module_of(site.scope),
        given if is_here else site.func,  # not what a dict of another file holds
        "this evaluation leaves out the last samples: its loader drops the incomplete batch",
        why=(Related(model.place(scope, where), "they are counted here"),),
        grade=grade,
        effect="up to `batch_size - 1` samples, on each rank, are never evaluated",
        fix=None if _also_trains(model, site) else partial(_keep_last, model, site, given),
        advice="leave `drop_last` out",
    )


def _also_trains(model: Model, site: Call) -> bool:
    """Whether something trains, or may train, with what a call builds or is part of."""
    built = [each for each in model.loaders if site in {each.site, batch_maker(model, each).site}]
    return feeds_training(model, *built) is not False or any(
        pass_trains(model, found)
        for each in built
        if each.site is not None
        for found in _passes_of(model, each.site)
    )


def _keep_last(model: Model, site: Call, given: Expr, editor: Editor) -> Fix | None:
    """Do not drop the last batch, where the call says so by a literal."""
    if not isinstance(given, Const) or all(arg.value is not given for arg in site.args):
        return None
    editor.at(model.module_of(site.scope)).replace(given, "False")
    why = "the last batch may have another size"
    return editor.fix("Keep the last batch", Applicability.UNSAFE, why)


def read_once(model: Model, found: Pass, sampler: Obj, editor: Editor) -> Fix | None:
    """Give each rank of an evaluation every so many samples, in the place of torch's sampler.

    Not where the ranks talk at each batch: one that has a batch less would be waited for.
    """
    site, dataset = sampler.site, model.flow.argument(sampler, "dataset")
    if site is None or site.has_star or not isinstance(dataset, (Name, Attr)):
        return None
    if sampler.cls != DISTRIBUTED_SAMPLER or dataset.scope is not site.scope:
        return None
    there = editor.at(model.module_of(site.scope))
    ranks = imported_module(there.module, "torch.distributed")
    if ranks is None or not _only_shares_out(model, found.loader, site):
        return None
    if _talks(model, found.stmt):
        return None
    first, step = (
        f"{ranks}.{asks}()" if given is None else text_of(there.source, given)
        for asks, given in (
            ("get_rank", site.keyword("rank")),
            ("get_world_size", site.keyword("num_replicas")),
        )
    )
    there.replace(site, f"range({first}, len({text_of(there.source, dataset)}), {step})")
    why = "some ranks may have a batch less, and no batch may wait for those of all ranks"
    return editor.fix("Give each sample to one rank", Applicability.UNSAFE, why)


def _talks(model: Model, turn: Stmt) -> bool:
    """Whether a loop, or what it calls, brings something together, or a model's buffers."""
    calls = [node for node in nodes_in(statements([turn])) if isinstance(node, Call)]
    callees = {callee for call in calls for callee in model.flow.callees(call)}
    scopes = {each for callee in callees for each in reached(model, callee)}
    return any(
        TOGETHER.names(call.func)
        or any(
            isinstance(value, ExtObj) and catalog.averaging(value.dotted)
            for value in model.flow.values(call.func)
        )
        for call in (*calls, *(one for scope in scopes for one in scope.calls))
    )


def _only_shares_out(model: Model, loader: Obj, site: Call) -> bool:
    """Whether one loader gets the sampler, and nobody else: it is told no epoch, asked nothing."""
    users = [
        each
        for each in model.loaders
        if _is_built_at(site, model.passed_to(batch_maker(model, each), "sampler"))
    ]
    if {each.site for each in users} != {loader.site} or len(site.positional) > 1:
        return False
    if feeds_training(model, *users) is not False or any(
        isinstance(call.func, Attr) and _is_built_at(site, model.flow.values(call.func.value))
        for call in model.epoch_setters
    ):
        return False
    stmt, own = site.stmt, batch_maker(model, loader).site
    if own is None or stmt is own.stmt:
        return own is not None
    target = stmt.targets[0] if isinstance(stmt, Assign) and len(stmt.targets) == 1 else None
    if not isinstance(target, Name) or own.scope is not site.scope:
        return False
    reads = [
        node
        for node in nodes_in(statements(site.scope.body))
        if isinstance(node, Name) and node.id == target.id and node is not target
    ]
    return [node for node in reads if node.stmt is not stmt] == [own.keyword("sampler")]


def _is_built_at(site: Call, values: Iterable[Value]) -> bool:
    return any(isinstance(each, Obj) and each.site is site for each in values)


def _ways_to(model: Model, found: Pass, maker: Obj | None = None) -> list[list[Call]]:
    """The calls that a loader comes through to a pass, of each way, innermost first.

    Those of what puts its batches together, if that is another object.
    """
    site, through = found.loader.site, (maker or found.loader).through
    made = ways_made(model, found.source, site) if maker is None and site is not None else []
    own = [] if through is None else [through]
    return [way for way in made if way[:1] == own] or [own]


def _keeps_results(model: Model, found: Pass, ways: list[list[Call]]) -> bool:
    """Whether a pass only uses a model, and keeps what comes out for each batch.

    One that also trains, or shuffles, may be over data of which enough is left.
    """
    loader, loop = found.loader, found.stmt
    shuffle = model.argument(loader, "shuffle")
    if not isinstance(loop, For) or not (shuffle is None or _is_off(model, shuffle, ways)):
        return False
    if is_named_after_training(loader) or not pass_evaluates(model, found):
        return False
    if loader.site is None or any(
        pass_trains(model, each) and not _is_made_apart(model, each, ways)
        for each in _passes_of(model, loader.site)
    ):
        return False
    drawn = names_drawn(loop)
    kept = [
        arg.value
        for call in found.scope.calls_in(loop)
        if last_name(call.func) in COUNTING | ADDS
        for arg in call.args
    ]
    kept += [stmt.value for stmt in statements(loop.body) if isinstance(stmt, AugAssign)]
    return computes(model, found.scope, loop) or any(
        depends_on(model.flow, each, lambda e: isinstance(e, Name) and e.id in drawn) is not None
        for each in kept
    )


def _is_made_apart(model: Model, other: Pass, ways: list[list[Call]]) -> bool:
    """Whether another pass certainly is over what other calls had a function build."""
    of_other = _ways_to(model, other)
    return all((*ways, *of_other)) and not any(way in of_other for way in ways)


def _is_off(model: Model, shuffle: Expr, ways: list[list[Call]]) -> bool:
    return all(model.flow.constants(shuffle, *way) == {False} for way in ways)


def _passes_of(model: Model, site: Call) -> list[Pass]:
    """The passes over what a call builds, also over what a framework gives back for it."""
    return _passes_by_site(model, site.scope).get(site, [])


@once_a_program
def _passes_by_site(model: Model, near: Scope) -> dict[Call, list[Pass]]:
    by_site: dict[Call, list[Pass]] = {}
    made = (*passes_near(model, near), *passes_over_shared(model))
    for found in (taken for each in made for taken in as_taken(model, each)):
        if found.loader.site is not None:
            by_site.setdefault(found.loader.site, []).append(found)
    return by_site


def _breaks(loop: Stmt) -> list[Stmt]:
    """Where a loop over the batches stops before the last one on purpose."""
    return [s for s in statements([loop]) if isinstance(s, Simple) and s.kind == "break"]


def _ends_early(loop: Stmt) -> bool:
    """Whether it does so in every run that is not told otherwise."""
    return not all(_is_by_setting(loop, stop) for stop in _breaks(loop))


def _is_by_setting(loop: Stmt, stop: Stmt) -> bool:
    """Whether a loop stops only where something says so that no turn changes: ``args.debug``."""
    around = [each for each in stop.ancestors() if loop.encloses(each)]
    inside = {each.test for each in around if isinstance(each, If)}
    return any(
        not any(isinstance(node, Name) and _is_bound_in(loop, node) for node in walk(each))
        for test, answer in tests(stop)
        if test in inside
        for each in (operands(test) if answer else [test])
    )


def _is_bound_in(loop: Stmt, name: Name) -> bool:
    found = (each.stmt for each in name.scope.bindings.get(name.id, ()))
    return any(stmt is loop or (stmt is not None and loop.encloses(stmt)) for stmt in found)
