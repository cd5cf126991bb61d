"""SMP102: an epoch loop over what draws by its epoch never calls ``set_epoch``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from sampler_lint.analysis.origins import is_computed
from sampler_lint.analysis.values import ClassRef, Obj
from sampler_lint.domain.concepts import ORDERS, RANGES
from sampler_lint.domain.conditions import contradict, excludes, is_built_without
from sampler_lint.domain.draws import draws
from sampler_lint.domain.engines import Run, made_by_framework, may_be_told, runs
from sampler_lint.domain.epoch_calls import (
    Carrier,
    begin_apart,
    carriers,
    epoch_datasets,
    epoch_samplers,
    runs_in,
)
from sampler_lint.domain.epochs import (
    EpochLoop,
    epoch_loops,
    loops_in_samplers,
    loops_over,
    loops_that_build,
    trains,
)
from sampler_lint.domain.forgotten import untold
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.passes import have_no_object, never_ends
from sampler_lint.domain.pipelines import unmoved_streams
from sampler_lint.domain.ranks import reached as run_by
from sampler_lint.domain.repeated import runs_again
from sampler_lint.domain.samplers import (
    is_distributed_sampler,
    orders_nothing,
    sharding_programs,
    shuffle_choice,
    shuffles,
    shuffles_by_epoch,
)
from sampler_lint.domain.settled import never_runs
from sampler_lint.domain.taking import takes_one
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import fresh_name
from sampler_lint.findings import Applicability, Fix, Grade, Place, Related, Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules.smp102_epoch_never_set.insertion import (
    Receiver,
    counter_of,
    goes_on_before,
    goes_over_again,
    receiver_for,
)
from sampler_lint.rules.smp102_epoch_never_set.setters import (
    leads_to,
    may_be_set,
    setter_left_out,
    told_holder,
    tries_to_set,
)
from sampler_lint.syntax.navigation import (
    method_around,
    nodes_in,
    same,
    self_class,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    For,
    Loop,
    Name,
    Scope,
    Stmt,
    last_name,
)


class EpochNeverSet(Rule):
    """An epoch loop trains over a shuffling `DistributedSampler` whose `set_epoch` is never called.

    What it does:
        Follows each loader built with a shuffling `DistributedSampler`, or with a sampler of this
        repository that goes over one, to the loops that iterate it, through functions, attributes
        and files, and reports an epoch loop in which nothing calls `set_epoch` on that sampler. The
        same holds, on one GPU too, for a dataset in the repository that seeds its random numbers
        with an epoch which only its `set_epoch` changes. A sampler that iterates another one
        repeatedly counts as an epoch loop, and so does a loop that builds a loader in each epoch
        over the same sampler, or over a new one with the same data and seed, and the run of an
        engine of Ignite for several epochs. Not reported with `shuffle=False`, where the sampler is
        otherwise rebuilt for each epoch, where a wrapper or framework sets the epoch, and where a
        `set_epoch` call might reach the sampler. Also a stream of `datasets` that is shuffled and
        read in each turn of a loop, in a program without a framework that never calls `set_epoch`.
        Likely where it is only unknown whether the sampler shuffles, and for such a dataset in a
        loader that a framework trains with which sets the epoch of samplers only; a warning where a
        setting decides that.

    Why is this bad?
        `DistributedSampler` seeds its shuffle with `seed + epoch`, and `epoch` stays 0: every
        epoch gives every rank the same samples in the same order. Training goes on, but learns
        less. A dataset that seeds its masks, crops or shuffle with `self.epoch` repeats those of
        epoch 0.

    Fix safety:
        Safe: `set_epoch(epoch)` is inserted as the first statement of the loop, for every sampler
        that the loop reads, on the variable in scope or through the loader or what wraps it,
        guarded where the sampler may be `None` or another one; directly before the pass, where
        only an inner loop names the loader, and before a loop over steps restarts it. A loop
        without a counter gets one. Unsafe where the loader may also be an unknown one, where a
        turn trains over it twice, with one epoch for both, or takes its first batch alone, where
        what holds the sampler is told, and where the loop counts something else than the program's
        epochs. Unsafe, too, where the program comes to the sampler again and the count begins anew
        (a second stage, a warm-up), and where the sampler's own `set_epoch` refuses an epoch, gives
        several one order or undoes what was restored, where no run of its class shows that orders
        differ, or a pass goes on from what another has left, where a metaclass, a decorator or a
        way of its own to copy may make something else of the class, where each turn begins with the
        same model, and where code keeps the one order of before or goes by it: what it keeps by
        the number of a batch, sets beside what an earlier pass left or carries from turn to turn,
        what takes a first part of the pass besides, and what else reads the sampler's epoch (a
        rate, a warm-up). No fix where persistent workers would keep their copies of a dataset,
        where several places restart a loader, where a `continue` would skip the counter, or where
        the loop sets a wrong attribute of the sampler, which SMP404 fixes.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs have one order before the fix and
        different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__` and `set_epoch`
        - https://github.com/pytorch/pytorch/issues/31771
        - https://github.com/kan-bayashi/ParallelWaveGAN/issues/177
        - https://github.com/kekmodel/FixMatch-pytorch/issues/34
        - https://github.com/lucidrains/DALLE-pytorch/pull/230
        - met in https://github.com/NVIDIA/DeepLearningExamples (PyTorch/Forecasting/TFT/train.py)
    """

    code = "SMP102"
    name = "epoch-never-set"
    symptoms = ("every epoch has the same order",)
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each epoch loop once for every sampler that it iterates, and at streams."""
        yield from _streams(model)
        yield from run_by_engines(model)
        yield from read_by_frameworks(model)
        by_loop: dict[Stmt, list[_Missing]] = {}
        for found, reached in _read_by_epoch(model):
            if _is_left_out(model, found, reached.sampler):
                continue
            veto = _veto(model, found, reached)
            if veto is not None and not veto.beside:
                model.silent(self.code, found.loop.scope, found.loop, veto.reason)
                model.silent(self.code, found.inner.scope, found.inner.stmt, veto.reason)
                continue
            told_at = found.inner.stmt if found.is_restart else found.loop
            by_loop.setdefault(told_at, []).append(_Missing(found, reached, veto))
        for missing in by_loop.values():
            certain = [one for one in missing if one.doubt is None]
            yield _suspect(model, certain or missing)


def _streams(model: Model) -> Iterator[Suspect]:
    """Shuffled streams of `datasets` that loops go over again, in the order of epoch 0."""
    for shuffle, loop in unmoved_streams(model):
        yield Suspect(
            model.module_of(loop.scope),
            loop.iter,
            "nothing calls `set_epoch` on the stream that this loop reads",
            effect="every epoch has the order of epoch 0: a stream shuffles by its seed and epoch",
            advice="call `set_epoch(epoch)` of the stream at the start of each epoch",
            why=(Related(model.place(shuffle.scope, shuffle), "the stream is shuffled here"),),
        )


def _read_by_epoch(model: Model) -> Iterator[tuple[EpochLoop, Carrier]]:
    """The epoch loops, each with what it reads in an order, or with draws, of its epoch."""
    loops: Iterator[EpochLoop] = iter(())
    if sharding_programs(model):
        loops = chain(epoch_loops(model), loops_in_samplers(model), loops_that_build(model))
    for found in loops:
        read = [*epoch_samplers(model, found.inner.loader)]
        if found.builds_anew and not all(
            is_alike_in_turns(model, found.loop, reached.sampler) for reached in read
        ):
            continue
        for reached in read:
            if is_distributed_sampler(model, reached.sampler):
                yield found, reached
    for loader in model.loaders:
        for reached in epoch_datasets(model, loader):
            yield from ((found, reached) for found in loops_over(model, loader))


def _is_left_out(model: Model, found: EpochLoop, sampler: Obj) -> bool:
    """Whether this sampler is built in a branch that is not taken in a run with this loop.

    The loader's own factory call, or one around it, takes another, or the loop stands in one that
    excludes it, or what builds it is a method of objects that have another loop.
    """
    through = found.inner.loader.through
    site = sampler.site
    built = [call for call in (site, found.inner.loader.site, through) if call is not None]
    if contradict(model, built, [found.loop, found.inner.stmt, *found.calls]):
        return True
    if found.is_restart and _never_comes(model, found):
        return True
    if site is not None and never_runs(model, site):
        return True
    if site is not None and begin_apart(model, [found.loop.scope], site.scope):
        return True
    if site is not None and any(have_no_object(model, site.scope, one) for one in found.scopes):
        return True
    return excludes(model, through, site) or is_built_without(
        model, found.inner.source, found.inner.loader, sampler
    )


def _never_comes(model: Model, found: EpochLoop) -> bool:
    """Whether what is started again where it has run out never runs out."""
    gone_over = model.flow.values(found.inner.iterated)
    return bool(gone_over) and all(isinstance(v, Obj) and never_ends(model, v) for v in gone_over)


class _Veto(NamedTuple):
    """Why a loop is, or may be, right."""

    reason: str
    beside: bool = False
    """Whether it says only that something beside the loop is not known: the bug is likely."""


def _veto(model: Model, found: EpochLoop, reached: Carrier) -> _Veto | None:
    """Why the loop is (or may be) right; None when it certainly is not."""
    sampler = f"the {reached.sampler.name} of {model.place_of(reached.sampler)}"
    does = reached.is_data or shuffles(model, reached.sampler, found.inner.loader.through)
    if does is False:
        return _Veto(f"{sampler} does not shuffle")
    if orders_nothing(model, reached.sampler):
        return _Veto("the dataset gives a sample without looking at its index")
    if not trains(model, found):
        return _Veto("no optimizer step is seen in this pass: it may only evaluate")
    setter = may_be_set(model, found, reached)
    if setter is not None and setter.misses:
        who = f"{setter.who} tries to set the epoch"
        return _Veto(f"{who}, and does not reach {sampler} (see there)")
    if setter is not None:
        return _Veto(f"{setter.who} sets (or may set) the epoch of {sampler}")
    if does is None:
        beside = shuffles_by_epoch(model, reached.sampler, found.inner.loader.through)
        return _Veto(f"whether {sampler} shuffles is not known", beside)
    return None


class _Missing(NamedTuple):
    """A loop, and one sampler or dataset whose epoch nothing sets there."""

    found: EpochLoop
    reached: Carrier
    doubt: _Veto | None


def _suspect(model: Model, missing: Sequence[_Missing]) -> Suspect:
    """What is told of all that one loop reads: fixed together, or the finding would stay."""
    first, *others = missing
    suspect = _told(model, first.found, first.reached)
    if first.doubt is not None:
        suspect.grade = Grade.LIKELY
        suspect.effect += f" (but {first.doubt.reason})"
    built = (_built(model, each.reached) for each in others)
    suspect.why += tuple(dict.fromkeys(one for one in built if one not in suspect.why))
    fix = _count_restarts if first.found.is_restart else _call_in_loop
    suspect.fix = partial(fix, model, missing)
    return suspect


def _count_restarts(model: Model, missing: Sequence[_Missing], editor: Editor) -> Fix | None:
    """Count the passes where the loader starts again, from the one before the loop on."""
    found, reached, _ = missing[0]
    loop, restart = found.loop, found.inner.stmt
    others = [one for one in epoch_loops(model) if one.inner.loader.may_be(found.inner.loader)]
    if any(one.loop is not loop or one.inner.stmt is not restart for one in others):
        return None  # other passes would have the same numbers
    if len(missing) > 1 or found.calls or restart.scope is not loop.scope:
        return None
    if runs_again(model, found):
        return None  # it would count from 0 once more
    receiver = _receiver(model, found, reached)
    if receiver is None or _stays(model, found, reached) or tries_to_set(model, found, reached):
        return None
    if setter_left_out(model, found) is not None:
        return None
    counter, call = fresh_name(loop.scope, "epoch"), f"{receiver.code}.set_epoch"
    line = f"{call}({counter})"
    lines = [line] if receiver.guard is None else [receiver.guard, editor.source.indent + line]
    editor.insert_before(loop, f"{counter} = 0")
    editor.insert_before(restart, f"{counter} += 1", *lines)
    safe = Applicability.SAFE if receiver.certain else Applicability.UNSAFE
    title = f"Count the passes and call `{line}` before each after the first"
    return editor.fix(title, safe, f"what `{receiver.code}` is may not be known")


def _call_in_loop(model: Model, missing: Sequence[_Missing], editor: Editor) -> Fix | None:
    """Set the epoch of everything that the loop reads, or of nothing."""
    loop = missing[0].found.loop
    counter = counter_of(editor.module, loop)
    if counter.new and goes_on_before(loop, len(loop.body)):
        return None
    calls: dict[str, list[str]] = {}
    before: dict[Stmt | None, list[str]] = {}
    safe, because = Applicability.SAFE, ""
    for found, reached, _ in missing:
        if any(found.inner.source in other.found.calls for other in missing):
            continue  # what that call gives is the pass that it makes
        receiver = _receiver(model, found, reached)
        if receiver is None or _stays(model, found, reached) or tries_to_set(model, found, reached):
            return None
        if setter_left_out(model, found) is not None:
            return None
        line = f"{receiver.code}.set_epoch({counter.code})"
        if line in calls:
            continue
        guard = receiver.guard
        calls[line] = [line] if guard is None else [guard, editor.source.indent + line]
        before.setdefault(receiver.before, []).extend(calls[line])
        if not receiver.certain:
            safe, because = Applicability.UNSAFE, f"what `{receiver.code}` is may not be known"
        elif goes_over_again(model, found):
            safe, because = Applicability.UNSAFE, "each turn goes over it twice, with one order"
        elif takes_one(found.inner):
            safe, because = Applicability.UNSAFE, "each turn may be meant to take the same batch"
        elif told_holder(model, found) is not None:
            safe, because = (
                Applicability.UNSAFE,
                "what is told the epoch may be meant to pass it on",
            )
    if any(before) and not counter.is_kept:
        return None
    counts_first = all(counter.is_advanced_before(each.found) for each in missing)
    for stmt, lines in before.items():
        if stmt is None and counter.advanced is not None and counts_first:
            editor.insert_after(counter.advanced, *lines)
        elif stmt is None:
            editor.insert_first(loop, *lines)
        else:
            editor.insert_before(stmt, *lines)
    counter.write(editor)
    said = " and ".join(f"`{line}`" for line in calls)
    return editor.fix(f"Call {said} in the loop", safe, because)


def _built(model: Model, reached: Carrier) -> Related:
    what = "dataset" if reached.is_data else "sampler"
    return Related(model.place_of(reached.sampler), f"{what} built here")


def _receiver(model: Model, found: EpochLoop, reached: Carrier) -> Receiver | None:
    """How the loop's body can name what it reads, unless it builds that itself."""
    site = reached.sampler.site
    is_new = site is not None and site.stmt is not None and found.loop.encloses(site.stmt)
    return None if is_new else receiver_for(model, found, reached)


def _stays(model: Model, found: EpochLoop, reached: Carrier) -> bool:
    """Whether the workers go on with the copies that they have."""
    return reached.is_data and _may_persist(model, found.inner.loader)


def _may_persist(model: Model, loader: Obj) -> bool:
    return model.option(loader, "persistent_workers", False) != {False}


def _told(model: Model, found: EpochLoop, reached: Carrier) -> Suspect:
    module = model.module_of(found.loop.scope)
    loop = found.loop
    site = reached.sampler.site
    is_new = site is not None and site.stmt is not None and found.loop.encloses(site.stmt)
    receiver = _receiver(model, found, reached)
    counter = counter_of(module, loop)
    what = "dataset" if reached.is_data else "sampler"
    where = f"the {what} itself"
    repeated = "the random numbers of epoch 0" if reached.is_data else "the order of epoch 0"
    if leads_to(model, found.inner.source, reached):
        where = f"`{'.'.join((unparse(found.inner.source), *reached.path))}`"
    if found.is_restart:
        message = (
            f"the loader starts again here and nothing calls `set_epoch` on its "
            f"`{reached.sampler.name}`"
        )
        inner = found.inner
        return Suspect(
            model.module_of(inner.scope),
            inner.stmt,
            message,
            why=(_built(model, reached),),
            effect=f"every pass repeats {repeated}",
            advice=f"count the passes and call `set_epoch` on {where} before this line",
        )
    message = (
        f"nothing calls `set_epoch` on the `{reached.sampler.name}` that this loop trains over"
    )
    effect = f"every epoch repeats {repeated}"
    choice = None
    if not reached.is_data:
        choice = shuffle_choice(model, reached.sampler, found.inner.loader.through)
    if choice is not None:
        effect += f" (when `{unparse(choice)}` is true)"
    if receiver is not None:
        when = "at the start of each epoch" if receiver.before is None else "before each pass"
        advice = f"call `{receiver.code}.set_epoch({counter.code})` {when}"
        if receiver.guard is not None and not receiver.guard.endswith("is not None:"):
            advice += ", where it has one"
    else:
        when = "once it is built" if is_new else "at the start of each epoch"
        advice = f"call `set_epoch` on {where} {when}"
    left_out = setter_left_out(model, found)
    if left_out is not None:
        advice = "pass what that call asks for"
    if _stays(model, found, reached):
        advice = "share the epoch with the workers (`multiprocessing.Value`) and " + advice
    why = [_built(model, reached)]
    if reached.path:
        what = "loader" if model.role(found.inner.loader) == "loader" else "batch sampler"
        why.append(Related(model.place_of(found.inner.loader), f"handed to this {what}"))
    if left_out is not None:
        where_out = model.place(left_out.scope, left_out)
        why.append(Related(where_out, "no caller lets this call run for the sampler"))
    if found.calls:
        why.append(Related(model.place(found.inner.scope, found.inner.stmt), "iterated here"))
    told = told_holder(model, found)
    if told is not None:
        place = model.place(told.scope, told)
        why.append(Related(place, f"`{unparse(told.func)}` does not pass the epoch on to it"))

    header_end = loop.iter if isinstance(loop, For) else loop.test
    return Suspect(
        module,
        loop,
        message,
        end=header_end,
        why=tuple(why),
        severity=None if choice is None else Severity.WARNING,
        effect=effect,
        advice=advice,
    )


# Loaders that the engine of a framework trains with, epoch after epoch.


def run_by_engines(model: Model) -> Iterator[Suspect]:
    """Loaders that a framework's engine trains with for several epochs, and nobody tells those."""
    for run in runs(model):
        made = made_by_framework(model, run.data)
        if made is not None and not may_be_told(model, run, None):
            grade = Grade.CERTAIN if made.is_sharded else Grade.LIKELY
            yield _told_of_run(model, run, model.place(made.call.scope, made.call), grade)
        for loader in model.flow.values(run.data):
            reached = carriers(model, loader) if isinstance(loader, Obj) else ()
            for sampler in (each.sampler for each in reached):
                if sampler.cls == DISTRIBUTED_SAMPLER and not may_be_told(model, run, sampler):
                    yield _told_of_run(model, run, model.place_of(sampler), Grade.CERTAIN)


def read_by_frameworks(model: Model) -> Iterator[Suspect]:
    """Datasets whose draws hang on their epoch, which a framework goes over and never tells it."""
    for loader, reached in untold(model):
        assert loader.site is not None
        yield Suspect(
            model.module_of(loader.site.scope),
            loader.site.func,
            f"nothing calls `set_epoch` on the `{reached.sampler.name}` of this loader",
            grade=Grade.LIKELY,
            effect="every epoch repeats the random numbers of epoch 0: the framework that trains "
            "with the loader tells samplers only",
            advice="call it at the start of each epoch, in a hook",
            why=(Related(model.place_of(reached.sampler), "dataset built here"),),
        )


def _told_of_run(model: Model, run: Run, built: Place | str, grade: Grade) -> Suspect:
    done = unparse(run.call.func)
    return Suspect(
        model.module_of(run.call.scope),
        run.call.func,
        f"nothing calls `set_epoch` on the `DistributedSampler` that `{done}` trains over",
        grade=grade,
        effect="every epoch repeats the order of epoch 0",
        advice="call it in a handler of the start of each epoch",
        why=(Related(built, "sampler built here"),),
    )


# Samplers that each turn of a loop builds anew: whether each is like the one before.


def is_alike_in_turns(model: Model, loop: Loop, sampler: Obj) -> bool:
    """Whether each turn has one sampler, or builds torch's over the same data with one seed."""
    site = sampler.site
    if site is None or site.stmt is None:
        return False
    if site.scope is not loop.scope:
        method = method_around(loop.scope)
        family = model.flow.mro(method.cls) if method is not None and method.cls else ()
        is_made_with_it = any(
            isinstance(cls, Class) and cls.method("__init__") is site.scope for cls in family
        )
        if is_made_with_it or runs_in(model, loop, site.scope) is False:
            return True
        data, seed = (model.argument(sampler, name) for name in ("dataset", "seed"))
        return (
            not isinstance(sampler.cls, Class)
            and not model.flow.may_be_passed(sampler, "seed")
            and (seed is None or isinstance(seed, Const) or _is_as_built(model, loop, seed))
            and data is not None
            and _is_as_built(model, loop, data)
        )
    if not loop.encloses(site.stmt):
        return True
    if isinstance(sampler.cls, Class) or model.flow.may_be_passed(sampler, "seed"):
        return False
    data = model.flow.argument(sampler, "dataset")
    seed = model.flow.argument(sampler, "seed")
    return (
        isinstance(data, Name)
        and _is_same_in_turns(model, loop, data, set())
        and (seed is None or _seed_stays(loop, seed))
        and _is_only_handed_on(model, loop, data)
    )


def _is_as_built(model: Model, loop: Loop, given: Expr) -> bool:
    """Whether it is an attribute that is set as its object is built, and asked for nothing more."""
    cls = self_class(given.value) if isinstance(given, Attr) else None
    if cls is None or not isinstance(given, Attr):
        return False
    stores = model.project.stores_near(given.name, given.scope)
    calls = chain(loop.scope.calls, *(method.calls for method in cls.methods))
    return all(store.scope.name == "__init__" for store in stores) and not any(
        isinstance(call.func, Attr) and last_name(call.func.value) == given.name for call in calls
    )


def _seed_stays(loop: Loop, seed: Expr) -> bool:
    return isinstance(seed, Const) or (isinstance(seed, Name) and not _is_bound_in(loop, seed))


def _is_bound_in(loop: Loop, name: Name) -> bool:
    return any(
        binding.stmt is not None and loop.encloses(binding.stmt)
        for binding in name.scope.bindings.get(name.id, ())
    )


def _is_same_in_turns(model: Model, loop: Loop, expr: Expr, seen: set[tuple[Scope, str]]) -> bool:
    """Whether each turn has or makes the same by an expression: of a file, it may be, or a part."""
    for node in walk(expr):
        if isinstance(node, Name) and (node.scope, node.id) not in seen:
            seen.add((node.scope, node.id))
            if _is_put_in_order(loop, node):
                return False
            bound = [each for each in node.scope.bindings.get(node.id, ()) if each.stmt is not None]
            for each in bound:
                assert each.stmt is not None
                if each.stmt is loop:
                    return False
                if loop.encloses(each.stmt) and not (
                    each.how in {"assign", "element"}
                    and each.value is not None
                    and _is_same_in_turns(model, loop, each.value, seen)
                ):
                    return False
        is_other = (isinstance(node, Attr) and _is_moved_on(model, node)) or (
            isinstance(node, Call) and not _makes_the_same(model, node)
        )
        if is_other:
            return False
    return True


def _is_moved_on(model: Model, read: Attr) -> bool:
    """Whether a function that is no constructor stores an attribute of that name."""
    stores = model.project.stores_near(read.name, read.scope)
    return any(store.scope.name != "__init__" and store.scope.outer is not None for store in stores)


def _is_put_in_order(loop: Loop, name: Name) -> bool:
    """Whether a turn shuffles what a name holds, or draws from it."""
    calls = (node for node in nodes_in(statements(loop.body)) if isinstance(node, Call))
    return any(
        same(each, name) for call in calls if ORDERS.is_call(call) for each in call.positional
    )


def _makes_the_same(model: Model, call: Call) -> bool:
    """Whether a call computes from its arguments alone, or is of the tree, where nothing draws."""
    callees = model.flow.callees(call)
    if not callees:
        classes = [each for each in model.flow.values(call.func) if isinstance(each, ClassRef)]
        return bool(classes) or RANGES.is_call(call) or is_computed(model.flow, call)
    return not any(map(draws, (scope for each in callees for scope in run_by(model, each))))


def _is_only_handed_on(model: Model, loop: Loop, data: Name) -> bool:
    """Whether the loop does no more with the data than to build from them, so that they stay."""
    nodes = [n for stmt in (loop, *statements(loop.body)) for n in nodes_in([stmt])]
    calls = [node for node in nodes if isinstance(node, Call)]
    called = {id(call.func) for call in calls}
    harmless = {
        id(arg.value)
        for call in calls
        if last_name(call.func) == "len" or any(map(model.role, model.flow.values(call)))
        for arg in call.args
    }
    harmless |= {id(n.value) for n in nodes if isinstance(n, Attr) and id(n) not in called}
    made = (stmt for stmt in statements(loop.body) if isinstance(stmt, Assign))
    harmless |= {id(target) for stmt in made for target in stmt.targets}
    return all(
        id(node) in harmless
        for node in nodes
        if isinstance(node, Name) and node.id == data.id and node.scope is data.scope
    )
