"""SMP306: the ranks of a distributed sampler yield different numbers of items."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from sampler_lint.analysis.origins import is_one_value
from sampler_lint.analysis.values import Obj, Pack
from sampler_lint.domain.concepts import COLLECTIVE
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.epochs import feeds_training
from sampler_lint.domain.injection import injections, shards_itself
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.undivided import trained_together
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Fix, Grade, Related
from sampler_lint.limits import FEWEST_GUESSED
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._evened import even_out
from sampler_lint.rules._trials import (
    counts,
    defined_by,
    graded,
    is_meant,
    is_uneven,
    judged,
    may_be_uneven,
    splitting_place,
)
from sampler_lint.syntax.nodes import Attr, Call, Class, Comp, Expr, Function, Name, With, last_name
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial, Trials


class UnevenRanks(Rule):
    """The ranks of a sampler yield different numbers of samples or batches.

    What it does:
        Simulates the sampler for a few small datasets and numbers of ranks, in an interpreter
        built into the linter (your code is neither imported nor run), and counts what each rank
        yields; also with its optional limits and flags, and around a `DistributedSampler` where
        the program gives it one. Reports a class whose ranks differ, with the numbers; as likely
        where they do for every guess at arguments that nobody knows. One whose
        `__len__` is exact on every rank is taken to be uneven on purpose, unless ranks differ even
        where the data divides evenly, or a loop trains with it and the program wraps its model in
        `DistributedDataParallel`. Not reported are
        samplers named for evaluation, and programs that train in DDP's `join` context, which
        waits for the last rank. Also reports a batch sampler without
        `drop_last` where Accelerate gets `even_batches=False`, and one whose `__len__` is a
        number that the ranks agree on, but whose `__iter__` does not yield that many.

    Why is this bad?
        `DistributedDataParallel` averages gradients in every backward pass. A rank with one batch
        more waits for the others in an all-reduce they never join: training hangs at the end of
        the epoch, or the ranks with fewer batches start their next epoch and the ranks are in
        different epochs from then on.

    Fix safety:
        Unsafe: the list that the ranks take slices of is first cut to a multiple of their number,
        or padded with its first samples, whichever makes all ranks yield as much as their
        `__len__` says in every simulated case; where each says a number of its own, all are cut,
        and `__len__` says so. Only you know whether samples may be left out or
        repeated. No other fix is offered.

    How it is proved:
        Invariant `equal-steps`: the steps of each rank are counted; in the corrected program they
        are equal.

    References:
        - torch/nn/parallel/distributed.py, `DistributedDataParallel.join`: uneven inputs
        - torch/utils/data/distributed.py, `DistributedSampler.__init__`: `total_size`
        - accelerate/data_loader.py, `BatchSamplerShard._iter_with_no_split`
        - https://github.com/axolotl-ai-cloud/axolotl/pull/461
        - met in https://github.com/labomics/midas (src/scmidas/data.py)
    """

    code = "SMP306"
    name = "uneven-ranks"
    symptoms = ("the job hangs at the end of an epoch", "ranks take different numbers of steps")
    invariant = "equal-steps"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Compare the ranks of each class that shards."""
        shared = _given_a_share(model)
        for module, cls in judged(model):
            if may_be_uneven(cls) or _joins(model, module):
                continue
            suspect = _uneven(model, module, cls, model.trials(cls))
            if suspect is None and cls in shared:
                trials = model.trials(cls, around_shard=True)
                suspect = _uneven(model, module, cls, trials, shared[cls])
            suspect = suspect or _not_cut(model, cls)
            yield from graded(model, cls, self.code, suspect)
        yield from _left_over(model)


def _not_cut(model: Model, cls: Class) -> Suspect | None:
    """A length that the ranks agree on, and an iteration that does not keep to it."""
    length, iterate = (defined_by(model, cls, name) for name in ("__len__", "__iter__"))
    if length is None or iterate is None:
        return None
    counting = reach(model, cls, "__len__").functions
    agreeing = {method for method in counting if _agrees(method)}
    if not agreeing:
        return None
    kept = {
        store.target.name
        for method in counting
        for store in method.stores
        if isinstance(store.target, Attr)
    }
    for method in reach(model, cls, "__iter__").functions:
        if method in agreeing or method is length or _agrees(method):
            return None
        if any(read.name in kept for read in method.reads) or any(
            (last_name(call.func) or "").strip("_") == "len"
            and any(isinstance(a, Name) and a.id == "self" for a in (*call.positional, call.func))
            for call in method.calls
        ):
            return None
    given = [stmt.value for stmt in iterate.returns if stmt.value is not None] + list(
        iterate.yields
    )
    agreed = min(agreeing, key=lambda method: method.row)
    why = (Related(model.place(agreed, agreed), "the ranks agree on it here"),)
    where = given[0] if len(given) == 1 else name_of(model.module_of(iterate), iterate)
    return Suspect(
        model.module_of(iterate),
        where,
        f"`{cls.name}.__iter__` yields all that its rank has, not the count that the ranks agreed "
        f"on",
        why=why,
        effect=_HANGS,
        advice="stop after the count that all ranks have",
    )


def _agrees(method: Function) -> bool:
    """Whether the ranks know the same number after calls of it."""
    return any(COLLECTIVE.names(call.func) for call in method.calls)


def _left_over(model: Model) -> Iterator[Suspect]:
    """Batch samplers whose last batches Accelerate gives to some ranks only."""
    injection = injections(model)
    for cls, loader in model.used_as_batch_sampler.items():
        module = model.module_of(cls)
        uneven = injection.even_batches_off(module)
        attributes = model.attributes(cls)
        if (
            uneven is None
            or attributes.open is not None
            or "drop_last" in attributes.names
            or shards_itself(cls)
            or _joins(model, module)
        ):
            continue
        why = (
            Related(model.place(*uneven), "`even_batches` is switched off here"),
            Related(model.place_of(loader), "used as `batch_sampler=` here"),
        )
        yield Suspect(
            module,
            name_of(module, cls),
            f"with `even_batches=False`, some ranks only may get the last batches of `{cls.name}`",
            why=why,
            effect=f"Accelerate deals out the batches rank by rank, and nothing drops the rest: "
            f"{_HANGS}",
            advice="set `drop_last = True` on the batch sampler",
        )


def _uneven(
    model: Model, module: Module, cls: Class, trials: Trials, given: Obj | None = None
) -> Suspect | None:
    # What is given to be shared out may be such that it can be.
    is_any = _has_one_each(model, cls)
    told = tuple(trial for trial in trials.told if is_any or not trial.walks_guess)
    trial = next(filter(is_uneven, told), None)
    trained: Call | None = None
    if trial is not None and is_meant(told) and not any(map(_is_uneven_for_nothing, told)):
        trained = _trained_with(model, cls)
        trial = trial if trained is not None else None
    trial = trial or _uneven_by_option(trials)
    grade = Grade.CERTAIN
    guessed = [one for one in trials.guessed if one.raised is None]
    if trial is None and not told and len(guessed) >= FEWEST_GUESSED:
        # Another guess changes what is counted, but not that the ranks differ.
        ways = {one.also for one in guessed}
        uneven = {one.also: one for one in reversed(guessed) if is_uneven(one)}
        if len(uneven) == len(ways) and (len(ways) > 1 or all(map(is_uneven, guessed))):
            trial = uneven[guessed[0].also]
        grade = Grade.LIKELY
    if trial is None:
        return None
    some = " (for some data)" if trial.from_data else ""
    iterate = defined_by(model, cls, "__iter__")
    where, node = splitting_place(model, cls) or (module, name_of(module, cls))
    why = [] if iterate is None else [Related(model.place(iterate, iterate), "yielded here")]
    if given is not None:
        why.append(Related(model.place_of(given), "given a distributed sampler here"))
    if trained is not None:
        why.append(Related(model.place(trained.scope, trained), "the ranks train together here"))
    return Suspect(
        where,
        node,
        f"ranks of `{cls.name}` yield different numbers: {counts(trial)}",
        why=tuple(why),
        grade=grade,
        fix=partial(_even_out, model, cls) if given is None and grade is Grade.CERTAIN else None,
        effect=f"with {trial.story}{some}; {_HANGS}",
        advice=_ADVICE[given is not None].format(cls.name),
    )


def _is_uneven_for_nothing(trial: Trial) -> bool:
    """Whether ranks differ although all could have the same: no one means that.

    Not where samples differ in more than their number.
    """
    return trial.world.is_even and not trial.from_data and is_uneven(trial)


def _even_out(model: Model, cls: Class, editor: Editor) -> Fix | None:
    return even_out(model, cls, often=False, editor=editor)


_HANGS = "at the end of the epoch, a rank with more than the others waits for them: training hangs"
_ADVICE = (
    "pad or truncate to a multiple of the number of ranks before `{0}` splits",
    "build the batches from all indices and shard the batches, or cut every rank of `{0}` to the "
    "smallest count",
)


def _has_one_each(model: Model, cls: Class) -> bool:
    """Whether the sampler is given something of each sample, however many there are.

    A list of what the loader's own data holds, wherever a loader gets such a sampler.
    """
    found = False
    for sampler, loader in model.loaded.get(cls, ()):
        if loader.site is None or sampler.cls is not cls:
            continue
        data = model.argument(loader, "dataset")
        lists = _lists_given(model, sampler)
        if data is None or not lists:
            return False
        if not all(_is_one_each(model, each, data) for each in lists):
            return False
        found = True
    return found


def _lists_given(model: Model, sampler: Obj) -> list[Pack]:
    args = sampler.site.args if sampler.site is not None else ()
    values = (value for arg in args for value in model.flow.values(arg.value))
    return [value for value in values if isinstance(value, Pack)]


def _is_one_each(model: Model, given: Pack, data: Expr) -> bool:
    made = given.node
    if not isinstance(made, Comp) or made.tests or len(made.iters) != 1:
        return False
    source = made.iters[0]
    while isinstance(source, Attr):
        source = source.value
    return made.kind in {"ListComp", "GeneratorExp"} and is_one_value(model.flow, source, data)


def _trained_with(model: Model, cls: Class) -> Call | None:
    """What makes ranks wait for one another that certainly train with the sampler, if they do."""
    loaders = (loader for sampler, loader in model.loaded.get(cls, ()) if sampler.cls is cls)
    for loader in loaders:
        if loader.site is not None and feeds_training(model, loader) is True:
            joins = trained_together(model, loader.site)
            if joins is not None:
                return joins
    return None


def _uneven_by_option(trials: Trials) -> Trial | None:
    """A world in which one optional argument makes the ranks differ."""
    for _, group in groupby(trials.varied, key=lambda trial: trial.also):
        same = tuple(group)
        found = next((t for t in same if is_uneven(t) and not t.says_uneven), None)
        if found is not None and not is_meant(same):
            return found
    return None


def _given_a_share(model: Model) -> dict[Class, Obj]:
    """The classes whose ``sampler`` is a distributed one somewhere, with what is built there."""
    out: dict[Class, Obj] = {}
    for obj in model.constructions():
        if isinstance(obj.cls, Class) and any(
            isinstance(value, Obj) and model.is_a(value, DISTRIBUTED_SAMPLER) is True
            for name in ("sampler", "base_sampler")
            for value in model.passed_to(obj, name)
        ):
            out.setdefault(obj.cls, obj)
    return out


def _joins(model: Model, module: Module) -> bool:
    """Whether the program trains in torch's ``join`` context, which waits for the last rank."""
    program = model.project.program_of(module)
    return any(
        isinstance(call.stmt, With) and any(item is call for item, _ in call.stmt.items)
        for name in ("join", "Join")
        for call in model.project.calls_in(program, name)
    )
