"""SMP504: evaluation metrics count the samples that a distributed sampler repeats or drops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from sampler_lint.analysis.origins import (
    HANDED_ON,
    Hop,
    Step,
    depends_on,
    onward,
    origins,
    scope_of,
)
from sampler_lint.analysis.values import ClassRef, Ext, Obj
from sampler_lint.domain.concepts import EVALUATES, TRAINS, Concept
from sampler_lint.domain.conditions import contradict, excludes, tests
from sampler_lint.domain.epochs import (
    Pass,
    hooked_to_evaluate,
    is_named_after_training,
    pass_evaluates,
    pass_trains,
    passes,
    passes_near,
)
from sampler_lint.domain.model import BATCH_SAMPLER, DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import in_test_function, is_test, program_files
from sampler_lint.domain.shares import pads, passes_over_shared
from sampler_lint.domain.taking import as_taken
from sampler_lint.findings import Grade, Related, Severity
from sampler_lint.limits import DEEPEST_WRAPPING
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import nodes_in, same, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Class,
    Comp,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Map,
    Name,
    Node,
    Other,
    Scope,
    Seq,
    Simple,
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
        dataset. Also one over a loader with `drop_last=True`
        that goes to the end; there, any pass counts that only uses a model and keeps what it gives.
        Only `likely` of such a loader that a hook gives a framework, as `test_dataloader`, and of
        an evaluation of what Accelerate divides that calls `gather`, not `gather_for_metrics`.

    Why is this bad?
        The sampler makes all ranks equally long: it repeats up to `num_replicas - 1` samples, or
        leaves some out with `drop_last=True`. Metrics over all ranks then count these samples
        twice or not at all, and change with the number of processes.

    Fix safety:
        No fix is offered: cut the gathered results to `len(dataset)`, count unique sample ids, or
        evaluate with a sampler that does not pad.

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
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at evaluation passes over known loaders, and at functions made for such loaders."""
        seen = set()
        for found in (each for one in passes(model) for each in as_taken(model, one)):
            sampler = _padding_sampler(model, found.loader)
            if sampler is None or (found.scope, found.stmt) in seen:
                continue
            if _asks_for_rest(model, sampler.site):
                continue  # it is known what is counted twice, and told
            if in_test_function(found.scope):
                continue  # it counts to compare with what it expects
            if pass_trains(model, found):
                continue
            whole = _over_whole(model, found, sampler)
            if whole is not None and not _is_for_one_process(model, found, sampler):
                seen.add((found.scope, found.stmt))
                yield _part_of_whole(model, found, sampler, whole)
                continue
            if not _evaluates(model, found.scope, found.stmt) and not _counts_inline(model, found):
                continue
            if (
                _is_for_one_process(model, found, sampler)
                or _keeps_by_key(model, found)
                or _is_for_training(model, sampler.site)
            ):
                continue  # what comes twice is kept once; or nothing comes twice
            seen.add((found.scope, found.stmt))
            why = (Related(model.place_of(sampler), "sampler built here"),)
            source = unparse(found.source)
            # What a function of another file wrapped is named where it is iterated.
            is_here = getattr(found.source, "scope", found.scope) is found.scope
            place = found.source if is_here else found.iterated
            told, effect, advice = _SURPLUS[_drops(model, sampler)]
            yield Suspect(
                model.module_of(found.scope),
                place,
                f"this evaluation over `{source}` {told.format(sampler.name)}",
                why=why,
                effect=effect,
                advice=advice,
            )
        yield from _cut_off(model)
        yield from _cut_off_in_hooks(model)
        yield from _gathered(model)
        for module in model.modules:
            for function in module.facts.functions:
                if any(scope is function for scope, _ in seen):
                    continue
                test = _expects_sharding(model, function)
                if test is not None and _evaluates(model, function, None) and not _steps(function):
                    yield Suspect(
                        module,
                        test,
                        f"`{function.name}` counts every sample of a distributed sampler, with "
                        f"its padding",
                        effect=_TWICE,
                        advice=_ADVICE,
                    )


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
_COUNTING = frozenset(
    {
        "add_batch", "all_gather", "all_gather_object", "all_reduce", "gather", "reduce", "update",
        "update_metric", "update_metrics",
    }
)  # fmt: skip
_UPDATES = frozenset({"update", "update_metric", "update_metrics"})
_ADDS = frozenset({"append", "extend", "update"})
_BY_KEY = frozenset({"items", "keys"})
#: How a tokenizer, and a convolution, is told to fill up what it gets.
_OF_TOKENS = "padding"
_CORRECTS = Concept(
    spelled=re.compile(
        r"total_size|gather_for_metrics|duplicat|dedup|uniq|drop_last|surplus"
        # What fills up the tokens of one sample says nothing about how often a sample comes.
        r"|padd(?:ed|ing)(?!_(?:idx|mask|side|value|token))",
        re.IGNORECASE,
    )
)


#: What brings together what the ranks have counted.
_TOGETHER = Concept(
    spelled=re.compile(r"reduce|gather|sync|collect|broadcast|merge", re.IGNORECASE)
)


def _over_whole(model: Model, found: Pass, sampler: Obj) -> Bin | None:
    """``right / len(loader.dataset)``, where a rank has counted its part and no rank the others'.

    Neither in the evaluation nor where it is called, as far as calls are named.
    """
    loop, scope = found.stmt, found.scope
    if not isinstance(loop, For) or not isinstance(scope, Function):
        return None
    if not EVALUATES.says(scope.name):
        return None
    calls = model.flow.callers(scope)
    built = [sampler.site] if sampler.site is not None else []
    if calls and all(contradict(model, built, [call]) for call in calls):
        return None  # only one process comes here
    near = [scope, *(call.scope for call in calls)]
    if any(_TOGETHER.names(call.func) for each in near for call in each.calls):
        return None
    summed = {
        stmt.target.id
        for stmt in statements([loop])
        if isinstance(stmt, AugAssign)
        and isinstance(stmt.target, Name)
        and not _is_of_one_turn(loop, stmt)
    }
    return next(
        (
            node
            for stmt in statements(scope.body)
            if stmt.order > loop.order and not loop.encloses(stmt)
            for node in nodes_in([stmt])
            if isinstance(node, Bin)
            and node.op == "Div"
            and _is_length(node.right)
            and _cuts(node.right)
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


def _cut_off(model: Model) -> Iterator[Suspect]:
    """Evaluations over a loader that leaves out the last batch, whoever divides the data."""
    seen: set[Stmt] = set()
    for loader in model.loaders:
        site = loader.site
        if site is None or is_test(model.module_of(site.scope)):
            continue
        maker = _batch_maker(model, loader)
        given = _may_drop_last(model, maker)
        if given is None or _padding_sampler(model, loader) is not None:
            continue
        for found in _passes_of(model, site):
            if found.stmt in seen or _ends_early(found.stmt):
                continue
            is_named = _sums_up(model, found.scope, found.stmt)
            if pass_trains(model, found) or not (is_named or _keeps_results(model, found)):
                continue
            through = found.loader.through
            told = through if maker is loader else maker.through
            if excludes(model, through, site) or model.flow.constants(given, told) != {True}:
                continue
            seen.add(found.stmt)
            yield _leaves_out(model, maker.site or site, given, found.scope, found.stmt)


def _batch_maker(model: Model, loader: Obj) -> Obj:
    """What puts a loader's batches together: itself, or torch's batch sampler that it is given."""
    given = [
        value
        for value in model.passed_to(loader, "batch_sampler")
        if not isinstance(value, Obj) or not excludes(model, value.through, value.site)
    ]
    match given:
        case [Obj(cls=cls) as one] if cls == BATCH_SAMPLER and one.site is not None:
            return one
    return loader


def _may_drop_last(model: Model, loader: Obj) -> Expr | None:
    """What a loader is told of its last batch, where that may be an incomplete one."""
    size = model.flow.argument(loader, "batch_size")
    if size is None or model.flow.constants(size, loader.through) == {1}:
        return None  # one sample a batch: none is left over
    return model.flow.argument(loader, "drop_last")


def _cut_off_in_hooks(model: Model) -> Iterator[Suspect]:
    """The same of the loaders that a framework evaluates with."""
    seen: set[Call] = set()
    for hook, loader in hooked_to_evaluate(model):
        site = loader.site
        if site is None or site in seen or is_test(model.module_of(site.scope)):
            continue
        given = _may_drop_last(model, loader)
        if given is not None and model.flow.constants(given, loader.through) == {True}:
            seen.add(site)
            yield _leaves_out(model, site, given, hook, hook, Grade.LIKELY)


def _gathered(model: Model) -> Iterator[Suspect]:
    """Evaluations that gather, of what Accelerate divides, also what makes the ranks even."""
    for found in passes_over_shared(model):
        gather = next(
            (
                call
                for call in found.scope.calls_in(found.stmt)
                if last_name(call.func) == "gather"
                and any(
                    isinstance(value, Ext) and value.dotted.startswith("accelerate.")
                    for value in model.flow.values(call.func)
                )
            ),
            None,
        )
        later = (s for s in statements(found.scope.body) if s.order >= found.stmt.order)
        if (
            gather is not None
            and not pass_trains(model, found)
            and not any(_CORRECTS.names(node) or _cuts(node) for node in nodes_in(later))
        ):
            yield Suspect(
                model.module_of(found.scope),
                gather.func,
                f"`{unparse(gather.func)}` also gathers the samples that make the ranks even",
                why=(Related(model.place_of(found.loader), "the loader is built here"),),
                grade=Grade.LIKELY,
                effect=_TWICE,
                advice="call `gather_for_metrics`, which leaves them out",
            )


def _leaves_out(
    model: Model,
    site: Call,
    given: Expr,
    scope: Scope,
    where: Node,
    grade: Grade = Grade.CERTAIN,
) -> Suspect:
    return Suspect(
        model.module_of(site.scope),
        given if isinstance(given, (Name, Attr, Const)) else site.func,
        "this evaluation leaves out the last samples: its loader drops the incomplete batch",
        why=(Related(model.place(scope, where), "they are counted here"),),
        grade=grade,
        effect="up to `batch_size - 1` samples, on each rank, are never evaluated",
        advice="leave `drop_last` out",
    )


def _keeps_results(model: Model, found: Pass) -> bool:
    """Whether a pass only uses a model, and keeps what comes out for each batch.

    One that also trains, or shuffles, may be over data of which enough is left.
    """
    loader, loop = found.loader, found.stmt
    shuffle = model.argument(loader, "shuffle")
    if not isinstance(loop, For) or not (shuffle is None or _is_off(model, loader, shuffle)):
        return False
    if is_named_after_training(loader) or not pass_evaluates(model, found):
        return False
    if loader.site is None or any(pass_trains(model, e) for e in _passes_of(model, loader.site)):
        return False
    drawn = _drawn(loop)
    kept = [
        arg.value
        for call in found.scope.calls_in(loop)
        if last_name(call.func) in _COUNTING | _ADDS
        for arg in call.args
    ]
    kept += [stmt.value for stmt in statements(loop.body) if isinstance(stmt, AugAssign)]
    return any(
        depends_on(model.flow, each, lambda e: isinstance(e, Name) and e.id in drawn) is not None
        for each in kept
    )


def _is_off(model: Model, loader: Obj, shuffle: Expr) -> bool:
    return model.flow.constants(shuffle, loader.through) == {False}


def _passes_of(model: Model, site: Call) -> list[Pass]:
    """The passes over what a call builds."""
    known: dict[str, dict[Call, list[Pass]]] = model.memo.setdefault(_passes_of, {})
    program = model.project.program_of(model.module_of(site.scope))
    if program not in known:
        by_site = known[program] = {}
        for found in passes_near(model, site.scope):
            if found.loader.site is not None:
                by_site.setdefault(found.loader.site, []).append(found)
    return known[program].get(site, [])


def _ends_early(loop: Stmt) -> bool:
    """Whether a loop over the batches stops before the last one on purpose."""
    return any(isinstance(stmt, Simple) and stmt.kind == "break" for stmt in statements([loop]))


def _is_for_training(model: Model, call: Call | None, depth: int = 0) -> bool:
    """Whether each way to a call lies below a test that asks for training."""
    if call is None or call.stmt is None or depth > DEEPEST_WRAPPING:
        return False
    if any(answer and _asks_for_training(test) for test, answer in tests(model, call)):
        return True
    callers = model.flow.callers(call.scope) if isinstance(call.scope, Function) else []
    return bool(callers) and all(_is_for_training(model, each, depth + 1) for each in callers)


def _asks_for_training(test: Expr) -> bool:
    if isinstance(test, Unary):
        return False
    named = [
        str(node.value) if isinstance(node, Const) else last_name(node)
        for node in walk(test)
        if isinstance(node, (Name, Attr, Const))
    ]
    return any(map(TRAINS.says, named)) and not any(map(EVALUATES.says, named))


def _padding_sampler(model: Model, loader: Obj) -> Obj | None:
    """The sampler of torch's own making that shares out the loader's samples."""
    if excludes(model, loader.through, loader.site):
        return None
    given = [
        value
        for value in model.passed_to(_batch_maker(model, loader), "sampler")
        if isinstance(value, Obj)
        and value.site is not None
        and not excludes(model, value.through, value.site)
        and not _is_of_another_program(model, loader, value)
    ]
    if any(_is_exact(model, each) for each in given) or any(map(_is_beside_none, given)):
        return None
    return next((each for each in given if _pads(model, each)), None)


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
    return isinstance(sampler.cls, Class) and pads(model, sampler.cls)


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


def _arguments_on(onwards: Mapping[Expr, Expr], step: Step) -> Iterator[Step]:
    """From a call to one of its arguments, as the calls that lead to it pass it."""
    to = onwards.get(step.expr)
    if to is not None:
        yield onward(step, Hop.ARGUMENT, to, scope_of(to))


def _asks_for_rest(model: Model, site: Call | None) -> bool:
    """Whether the function that builds a sampler asks if the ranks have equally many samples."""
    known: dict[Scope, bool] = model.memo.setdefault(_asks_for_rest, {})
    if site is not None and site.scope not in known:
        known[site.scope] = any(
            isinstance(node, Bin) and node.op == "Mod" and _is_length(node.left)
            for stmt in statements(site.scope.body)
            if isinstance(stmt, If)
            for node in walk(stmt.test)
        )
    return site is not None and known[site.scope]


def _is_length(expr: Expr) -> bool:
    return isinstance(expr, Call) and last_name(expr.func) == "len"


def _is_exact(model: Model, sampler: Obj) -> bool:
    """Whether the ranks of a class of the tree, iterated as torch's, have each sample once."""
    cls = sampler.cls
    if not isinstance(cls, Class) or model.flow.method(cls, "__iter__") != DISTRIBUTED_SAMPLER:
        return False
    tried = [trial for trial in model.trials(cls).usual if not trial.world.drop_last]
    return bool(tried) and all(trial.divides for trial in tried)


def _drops(model: Model, sampler: Obj) -> bool | None:
    """Whether the sampler drops samples instead of repeating some; None if either may be."""
    truths = model.option(sampler, "drop_last", False)
    return next(iter(truths)) is True if truths is not None and len(truths) == 1 else None


def _evaluates(model: Model, scope: Scope, within: Stmt | None) -> bool:
    """Whether code in the scope sums up metrics and takes no sample out again."""
    return _sums_up(model, scope, within) and not _corrects(model, scope)


def _counts_inline(model: Model, found: Pass) -> bool:
    """Whether a pass that only uses a model, in code named after more, sums up what that gives.

    As ``main`` does that trains for an epoch and then evaluates, and one function for both.
    Nothing may take a sample out again below.
    """
    loop, scope = found.stmt, found.scope
    if not isinstance(loop, For) or EVALUATES.says(getattr(scope, "name", None)):
        return False
    return (
        pass_evaluates(model, found)
        and any(_comes_of_model(model, loop, each) for each in _added(loop))
        and not any(
            _CORRECTS.names(node) or _cuts(node)
            for node in nodes_in(s for s in statements(scope.body) if s.order >= loop.order)
        )
    )


def _added(loop: For) -> Iterator[Expr]:
    """What the turns of a loop add to what is counted."""
    for stmt in statements(loop.body):
        if isinstance(stmt, AugAssign) and not _is_of_one_turn(loop, stmt):
            yield stmt.value
    for call in loop.scope.calls_in(loop):
        if last_name(call.func) in _UPDATES:
            yield from (arg.value for arg in call.args)


def _comes_of_model(model: Model, loop: For, added: Expr) -> bool:
    """Whether a number is made of the batch: not its size alone, as a progress bar is told."""
    drawn = _drawn(loop)
    return (
        depends_on(
            model.flow,
            added,
            lambda expr: isinstance(expr, Name) and expr.id in drawn,
            sanitized=lambda step: _is_size(step.expr),
        )
        is not None
    )


def _is_size(expr: Expr) -> bool:
    name = last_name(expr.func if isinstance(expr, Call) else expr)
    return isinstance(expr, (Call, Attr)) and name in {"len", "numel", "shape", "size"}


def _sums_up(model: Model, scope: Scope, within: Stmt | None) -> bool:
    """Whether code in the scope, or what it hands a batch to, sums up metrics of an evaluation."""
    if not isinstance(scope, Function) or not EVALUATES.says(scope.name):
        return False
    if not _COUNTING.isdisjoint(scope.called):
        return True
    if any(
        isinstance(stmt, AugAssign)
        and (within is None or (within.encloses(stmt) and not _is_of_one_turn(within, stmt)))
        for stmt in statements(scope.body)
    ):
        return True
    return isinstance(within, For) and any(
        not _COUNTING.isdisjoint(callee.called)
        for call in scope.calls_in(within)
        if any(isinstance(e, Name) and e.id in _drawn(within) for e in call.positional)
        for callee in model.flow.callees(call)
    )


def _is_of_one_turn(loop: Stmt, counting: AugAssign) -> bool:
    """Whether each turn of a loop begins anew with what a statement of it adds to."""
    root = counting.target
    while isinstance(root, (Attr, Index)):
        root = root.value
    return isinstance(root, Name) and any(
        isinstance(target, Name) and target.id == root.id
        for stmt in statements([loop])
        if isinstance(stmt, Assign)
        for target in stmt.targets
    )


def _drawn(loop: For) -> set[str]:
    """The names that each turn of a loop binds."""
    return {node.id for node in walk(loop.target) if isinstance(node, Name)}


def _keeps_by_key(model: Model, found: Pass) -> bool:
    """Whether the pass keeps what it counts in a dictionary, by what each sample is called."""
    if not isinstance(found.stmt, For):
        return False
    drawn = _drawn(found.stmt)

    def is_drawn(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id in drawn

    return (
        any(
            isinstance(target, Index)
            and isinstance(target.value, Name)
            and any(
                isinstance(made.value, Map)
                for made in found.scope.bindings.get(target.value.id, ())
            )
            and depends_on(model.flow, target.key, is_drawn, sanitized=_is_made_by_key) is not None
            and not any(same(node, target.value) for node in walk(stmt.value))
            for stmt in statements([found.stmt])
            if isinstance(stmt, Assign)
            for target in stmt.targets
        )
        or _puts_into_dict(found)
        or _is_keyed(model, found.stmt, is_drawn)
    )


def _is_keyed(model: Model, loop: For, is_drawn: Callable[[Expr], bool]) -> bool:
    """Whether a turn puts its results into a dictionary by what each sample is called."""
    displays = [
        node.table if isinstance(node, Comp) else node
        for node in nodes_in(statements(loop.body))
        if isinstance(node, (Comp, Map))
    ]
    return any(
        key is not None
        and not isinstance(key, Const)
        and depends_on(model.flow, key, is_drawn, sanitized=_is_made_by_key) is not None
        for display in displays
        if display is not None
        for key, _ in display.items
    )


def _is_made_by_key(step: Step) -> bool:
    """Whether it is what a call made by keys of its own: ``criterion(outputs).items()``."""
    above = step.towards
    return (
        isinstance(step.expr, Call)
        and above is not None
        and isinstance(above.expr, (Name, Attr))
        and any(
            isinstance(each.expr, Call) and last_name(each.expr.func) in _BY_KEY
            for each in above.way()
        )
    )


def _puts_into_dict(found: Pass) -> bool:
    """Whether what the pass counts goes into a dictionary, by ``results.update(…)`` alone."""
    kept = [
        call
        for call in found.scope.calls
        if last_name(call.func) in _ADDS
        and call.stmt is not None
        and found.stmt.encloses(call.stmt)
        and isinstance(call.func, Attr)
    ]
    return bool(kept) and all(
        isinstance(call.func, Attr)
        and isinstance(call.func.value, Name)
        and call.func.name == "update"
        and any(
            isinstance(made.value, Map) for made in found.scope.bindings.get(call.func.value.id, ())
        )
        for call in kept
    )


def _corrects(model: Model, scope: Scope) -> bool:
    """Whether code in the scope or around it has to do with repeated samples."""
    while isinstance(scope.outer, Function):
        scope = scope.outer
    assert isinstance(scope, Function)
    for inner in (scope, *scope.module.inside(scope)):
        # What another loader or sampler is given says nothing about the results.
        apart = {n for call in inner.calls if _builds(model, call) for n in walk(call)}
        if any(
            _CORRECTS.says(arg.keyword) and arg.keyword != _OF_TOKENS
            for call in inner.calls
            if call not in apart
            for arg in call.args
        ):
            return True
        nodes = (node for node in nodes_in(statements(inner.body)) if node not in apart)
        if any(_CORRECTS.names(node) or _cuts(node) for node in nodes):
            return True
    return False


def _builds(model: Model, call: Call) -> bool:
    """Whether a call certainly builds a loader or a sampler."""
    values = model.flow.values(call)
    return bool(values) and all(isinstance(v, Obj) and model.role(v) is not None for v in values)


def _cuts(node: Expr) -> bool:
    """``out[:total]``, a check of the number counted, and anything about ``len(dataset)``."""
    if isinstance(node, Compare) and node.ops == ["Eq"]:  # an assertion that nothing comes twice
        sides = [node.left, *node.rights]
        return any(role_of(last_name(side) or "") is Role.SIZE for side in sides)
    if isinstance(node, Index) and isinstance(node.key, Other):
        parts = list(walk(node.key))
        called = {part.func for part in parts if isinstance(part, Call)}  # the batch's own size()
        sizes = (last_name(part) for part in parts if part not in called)
        return any(role_of(size or "") is Role.SIZE for size in sizes)
    if not isinstance(node, Call) or last_name(node.func) != "len":
        return False
    return any((last_name(one) or "").endswith(("dataset", "sampler")) for one in node.positional)


def _steps(function: Function) -> bool:
    return any(map(TRAINS.is_call, function.calls))


def _expects_sharding(model: Model, function: Function) -> Call | None:
    """A test ``isinstance(loader.sampler, DistributedSampler)`` in the function."""
    for call in function.calls:
        if last_name(call.func) != "isinstance" or len(call.positional) != 2:
            continue
        what, kind = call.positional
        if not isinstance(what, Attr) or what.name != "sampler":
            continue
        for value in model.flow.values(kind):
            cls: Class | str | None = None
            if isinstance(value, ClassRef):
                cls = value.cls
            elif isinstance(value, Ext):
                cls = value.dotted
            if cls is not None and model.flow.is_a(cls, DISTRIBUTED_SAMPLER) is True:
                return call
    return None
