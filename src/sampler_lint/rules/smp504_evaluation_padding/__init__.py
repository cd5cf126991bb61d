"""SMP504: evaluation metrics count the samples that a distributed sampler repeats or drops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import HANDED_ON, Hop, Step, onward, origins, scope_of
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import EVALUATES, TRAINS
from sampler_lint.domain.epochs import pass_evaluates, pass_trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass, passes
from sampler_lint.domain.programs import in_test_function
from sampler_lint.domain.ranks import kinds
from sampler_lint.domain.shares import parameters, passes_over_shared, reached_by
from sampler_lint.domain.taking import as_taken, takes_one, takes_some
from sampler_lint.findings import Grade, Related, Severity
from sampler_lint.limits import DEEPEST_WRAPPING
from sampler_lint.parameters import Role, role_of
from sampler_lint.remembered import remembered
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules.smp504_evaluation_padding.counting import (
    TOGETHER,
    counts_inline,
    cuts,
    evaluates,
    is_length,
    is_of_one_turn,
    keeps_by_key,
    names_drawn,
    takes_out,
)
from sampler_lint.rules.smp504_evaluation_padding.loaders import (
    alone,
    batch_maker,
    cut_off,
    cut_off_in_hooks,
    drops,
    may_drop_last,
    padding_sampler,
    read_once,
    ways_with,
)
from sampler_lint.syntax.navigation import nodes_in, operands, owner_of, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Const,
    Expr,
    For,
    Function,
    If,
    Name,
    Scope,
    Stmt,
    Unary,
    last_name,
)


class EvaluationPadding(Rule):
    """An evaluation counts samples twice that a `DistributedSampler` pads with, or misses some.

    What it does:
        Reports an evaluation pass (one that trains nothing and sums up metrics) over a loader
        with torch's `DistributedSampler` or one of the repository that repeats samples as that
        does, and an evaluation function that expects such a loader, where nothing removes the
        repeated samples, or where what one rank has counted is divided by the size of the whole
        dataset, or where one rank alone comes to the evaluation or uses what it has counted. Not
        reported where a record of each sample is kept for somebody else to count, or the results go
        into files that are called after the samples, nor where the pass always ends after a number
        of batches. Also one over a loader with `drop_last=True`
        that goes to the end; there, any pass counts that only uses a model and keeps what it gives.
        Only `likely` of loaders that a hook gives a framework, as `test_dataloader`, of a pass
        that a setting may end before (`if args.debug and step > 9: break`), and of an evaluation of
        what Accelerate divides that calls `gather`, not `gather_for_metrics`.
        Nothing is said where a class of settings that nothing sets says no to the evaluation.

    Why is this bad?
        The sampler makes all ranks equally long: it repeats up to `num_replicas - 1` samples, or
        leaves some out with `drop_last=True`. Metrics over all ranks then count these samples
        twice or not at all, and change with the number of processes.

    Fix safety:
        Unsafe: a literal `drop_last` of a loader that trains nothing becomes False; the last batch
        may have another size. Unsafe, too: torch's sampler of one loader gives way to
        `range(rank, len(dataset), world_size)`, in which each sample comes once, unless the ranks
        talk at each batch; some ranks may have one batch less. No other fix is offered, as only
        who wrote the metrics knows what they may leave out: cut the gathered results to
        `len(dataset)`, or count unique sample ids.

    How it is proved:
        Invariant `runs`: the fixture checks its count, and stops where two gloo ranks have
        counted more samples than there are; it finishes where the repeated samples are removed.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`: "add extra samples to
          make it evenly divisible"
        - https://github.com/mosaicml/composer/pull/2218
        - met in https://github.com/OpenGVLab/InternImage (classification/main.py)
    """

    code = "SMP504"
    name = "evaluation-padding"
    symptoms = ("metrics change with the number of GPUs",)
    severity = Severity.WARNING
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at evaluation passes over known loaders."""
        seen = set()
        for found in (each for one in passes(model) for each in as_taken(model, one)):
            sampler = padding_sampler(model, found.loader)
            if sampler is None or (found.scope, found.stmt) in seen:
                continue
            if sampler.site is not None and _asks_for_rest(model, sampler.site.scope):
                continue  # it is known what is counted twice, and told
            if in_test_function(model, found.scope):
                continue  # it counts to compare with what it expects
            if pass_trains(model, found) or not ways_with(model, found, sampler):
                continue
            if takes_one(found) or takes_some(model, found):
                continue  # what is repeated comes last
            whole = _over_whole(model, found, sampler)
            if whole is not None and not _is_for_one_process(model, found, sampler):
                seen.add((found.scope, found.stmt))
                yield _part_of_whole(model, found, sampler, whole)
                continue
            lonely = alone(model, found, sampler)
            if lonely is not None and not _is_for_one_process(model, found, sampler):
                seen.add((found.scope, found.stmt))
                yield lonely
                continue
            if not evaluates(model, found.scope, found.stmt) and not counts_inline(model, found):
                continue
            if (
                _is_for_one_process(model, found, sampler)
                or _is_made_even(model, found)
                or keeps_by_key(model, found)
                or _is_for_training(model, sampler.site)
                or (TRAINS.names(found.source) and not EVALUATES.names(found.source))
            ):
                continue  # what comes twice is kept once, or comes once, or is no test
            seen.add((found.scope, found.stmt))
            why = (Related(model.place_of(sampler), "sampler built here"),)
            source = unparse(found.source)
            # What a function of another file wrapped is named where it is iterated.
            is_here = getattr(found.source, "scope", found.scope) is found.scope
            place = found.source if is_here else found.iterated
            told, effect, advice = _SURPLUS[_drops(model, found.loader, sampler)]
            yield Suspect(
                model.module_of(found.scope),
                place,
                f"this evaluation over `{source}` {told.format(sampler.name)}",
                why=why,
                effect=effect,
                fix=partial(read_once, model, found, sampler),
                advice=advice,
            )
        yield from cut_off(model)
        yield from cut_off_in_hooks(model)
        yield from _gathered(model)


_ADVICE = (
    "drop the duplicates before computing metrics, or evaluate with a sampler that does not pad"
)


_TWICE = "samples that pad the ranks to equal length are counted twice in the metrics"


#: Message, effect and advice, by whether the sampler drops.
_SURPLUS = {
    False: (
        "counts the samples that its `{}` repeats",
        _TWICE,
        _ADVICE,
    ),
    True: (
        "misses the samples that its `{}` drops",
        "with `drop_last=True` the ranks get equally many, and the rest is not in the metrics",
        "evaluate with a sampler that neither pads nor drops",
    ),
    None: (
        "counts samples twice or misses some: its `{}` pads or drops",
        "the metrics do not count each sample exactly once",
        "evaluate with a sampler that neither pads nor drops",
    ),
}


def _over_whole(model: Model, found: Pass, sampler: Obj) -> Bin | None:
    """``right / len(loader.dataset)``, where a rank has counted its part and no rank the others'.

    Neither in the evaluation nor where it is called, as far as calls are named.
    """
    loop, scope = found.stmt, found.scope
    if not isinstance(loop, For) or not isinstance(scope, Function):
        return None
    if not EVALUATES.says(scope.name):
        return None
    near = [scope, *(call.scope for call in model.flow.callers(scope))]
    if any(TOGETHER.names(call.func) for each in near for call in each.calls):
        return None
    summed = {
        stmt.target.id
        for stmt in statements([loop])
        if isinstance(stmt, AugAssign)
        and isinstance(stmt.target, Name)
        and not is_of_one_turn(loop, stmt)
    }
    return next(
        (
            node
            for stmt in statements(scope.body)
            if stmt.order > loop.order and not loop.encloses(stmt)
            for node in nodes_in([stmt])
            if isinstance(node, Bin)
            and node.op == "Div"
            and is_length(node.right)
            and cuts(node.right)
            and any(isinstance(part, Name) and part.id in summed for part in walk(node.left))
        ),
        None,
    )


def _part_of_whole(model: Model, found: Pass, sampler: Obj, whole: Bin) -> Suspect:
    return Suspect(
        model.module_of(found.scope),
        whole,
        "this divides what one rank has counted by the size of the whole dataset",
        why=(Related(model.place_of(sampler), "this sampler gives each rank its part"),),
        effect="with two processes the metric is half of what it should be",
        advice="sum up over the ranks first (`dist.all_reduce`), or divide by what was counted",
    )


def _gathered(model: Model) -> Iterator[Suspect]:
    """Evaluations that gather, of what Accelerate divides, also what makes the ranks even."""
    for found in passes_over_shared(model):
        gather = next(_gathers(model, found), None)
        later = [s for s in statements(found.scope.body) if s.order >= found.stmt.order]
        if gather is not None and gather.scope is not found.scope:
            later += statements(gather.scope.body)
        is_named = EVALUATES.says(getattr(found.scope, "name", None))
        if (
            gather is not None
            and (pass_evaluates(model, found) or (is_named and not pass_trains(model, found)))
            and not takes_out(nodes_in(later))
        ):
            yield Suspect(
                model.module_of(gather.scope),
                gather.func,
                f"`{unparse(gather.func)}` also gathers the samples that make the ranks even",
                why=(Related(model.place_of(found.loader), "the loader is built here"),),
                grade=Grade.LIKELY,
                effect=_TWICE,
                advice="call `gather_for_metrics`, which leaves them out",
            )


def _gathers(model: Model, found: Pass) -> Iterator[Call]:
    """Where a pass, or a function that it hands a batch to, has Accelerate gather results."""
    calls = found.scope.calls_in(found.stmt)
    drawn = names_drawn(found.stmt) if isinstance(found.stmt, For) else set()
    given = [
        callee
        for call in calls
        if any(isinstance(arg.value, Name) and arg.value.id in drawn for arg in call.args)
        for callee in model.flow.callees(call)
    ]
    for call in (*calls, *(each for callee in given for each in callee.calls)):
        if (
            last_name(call.func) == "gather"
            and any(d.startswith("accelerate.") for d in reached_by(model, call, "accelerate"))
            and not _is_left(call)
        ):
            yield call


def _is_left(call: Call) -> bool:
    """Whether what a call gives gets a name that nothing reads."""
    stmt = call.stmt
    names = {t.id for t in stmt.targets if isinstance(t, Name)} if isinstance(stmt, Assign) else ()
    return bool(names) and not any(
        isinstance(node, Name) and node.id in names and _may_be_read_from(node, stmt)
        for other in statements(call.scope.body)
        for node in nodes_in([other])
        if not (isinstance(other, Assign) and node in other.targets)
    )


def _may_be_read_from(name: Name, stmt: Stmt | None) -> bool:
    owner = owner_of(name)
    return owner is None or any(each.stmt is stmt for each in definitions(owner, name))


def _is_for_training(model: Model, call: Call | None, depth: int = 0) -> bool:
    """Whether each way to a call lies below a test that asks for training."""
    if call is None or call.stmt is None or depth > DEEPEST_WRAPPING:
        return False
    asked = (each for test, answer in tests(call) if answer for each in operands(test))
    if any(map(_asks_for_training, asked)):
        return True
    callers = model.flow.callers(call.scope)
    return bool(callers) and all(_is_for_training(model, each, depth + 1) for each in callers)


def _asks_for_training(test: Expr) -> bool:
    """Whether a test is about training; not by what the object is called whose attribute it is."""
    if isinstance(test, Unary):
        return False
    nodes = list(walk(test))
    owners = {node.value for node in nodes if isinstance(node, Attr)}
    named = [
        str(node.value) if isinstance(node, Const) else last_name(node)
        for node in nodes
        if isinstance(node, (Name, Attr, Const)) and node not in owners
    ]
    return any(map(TRAINS.says, named)) and not any(map(EVALUATES.says, named))


def _is_for_one_process(model: Model, found: Pass, sampler: Obj) -> bool:
    """Whether the loader of a pass was asked for one process: it then has each sample once."""
    size = model.flow.argument(sampler, "num_replicas")
    site = found.loader.site
    if size is None or site is None or sampler.site is None:
        return False
    asked = [
        step.expr
        for step in origins(
            model.flow,
            found.source,
            HANDED_ON,
            more=partial(_arguments_on, {site: sampler.site, sampler.site: size}),
        )
        if step.is_end and any(each.expr is size for each in step.way())
    ]
    return bool(asked) and all(isinstance(e, Const) and e.value == 1 for e in asked)


def _is_made_even(model: Model, found: Pass) -> bool:
    """Whether the dataset of a pass is told how many ranks there are: it fills itself up then."""
    site, data = found.loader.site, model.flow.argument(found.loader, "dataset")
    return (
        site is not None
        and data is not None
        and any(
            role_of(arg.keyword or "") is Role.WORLD_SIZE or "world size" in kinds(model, arg.value)
            for step in origins(
                model.flow, found.source, HANDED_ON, more=partial(_arguments_on, {site: data})
            )
            if isinstance(step.expr, Call) and any(each.expr is data for each in step.way())
            for arg in step.expr.args
        )
    )


def _arguments_on(onwards: Mapping[Expr, Expr], step: Step) -> Iterator[Step]:
    """From a call to one of its arguments, as the calls that lead to it pass it."""
    to = onwards.get(step.expr)
    if to is not None:
        yield onward(step, Hop.ARGUMENT, to, scope_of(to))


@remembered
def _asks_for_rest(_: Model, scope: Scope) -> bool:
    """Whether the function that builds a sampler asks if the ranks have equally many samples."""
    return any(
        isinstance(node, Bin) and node.op == "Mod" and is_length(node.left)
        for stmt in statements(scope.body)
        if isinstance(stmt, If)
        for node in walk(stmt.test)
    )


def _drops(model: Model, loader: Obj, sampler: Obj) -> bool | None:
    """Whether the sampler drops samples instead of repeating some; None if either may be.

    What it repeats comes last, in the batch that a loader may drop.
    """
    maker = batch_maker(model, loader)
    given = may_drop_last(model, maker)
    if given is not None and drops(model, given, maker.through):
        return None
    if "drop_last" not in parameters(model, sampler):
        return False  # nobody can ask for that
    truths = model.option(sampler, "drop_last", False)
    return next(iter(truths)) is True if truths is not None and len(truths) == 1 else None
