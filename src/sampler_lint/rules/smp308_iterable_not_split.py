"""SMP308: every worker, or every rank, gets all samples of iterable data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.reaching import surely_runs_before
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.epochs import is_named_after_training, trained_with
from sampler_lint.domain.model import Model
from sampler_lint.domain.pipelines import SPLITTERS, Reader, readers, workers
from sampler_lint.domain.programs import built_outside_tests
from sampler_lint.domain.splits import knows_no_worker, same_on_ranks, whole_pass
from sampler_lint.domain.undivided import left_iterable, trained_together, undivided
from sampler_lint.domain.workers import may_be_given, several_workers
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.loader_fixes import named_beside
from sampler_lint.edits.names import imported_module
from sampler_lint.edits.part_fixes import read_by_rank, read_by_worker
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import Call, Class, Function, last_name


class IterableNotSplit(Rule):
    """Every worker or rank reads all of an iterable dataset, so its samples are repeated.

    What it does:
        Reports a loader with more than one worker whose iterable dataset, a class in the
        repository, iterates known data (a range, a list, a file) without checking in which worker
        it runs: neither in its `__iter__`, nor in what that calls, nor in a `worker_init_fn`.
        Only `likely` where the number of workers is not known. Not reported for datasets that
        draw samples at random, that never end, or that iterate something unknown, which may
        divide itself.

        Also reports a loader over such a dataset, or over a stream of `datasets.load_dataset(…,
        streaming=True)`, in a program that wraps its model in `DistributedDataParallel` (or
        FSDP), trains it, and nowhere uses its rank or imports a framework that shards by itself.
        Lightning does not shard what is iterable: its Trainer, or Fabric, counts for such a
        program where it is told a strategy for several processes, or more than one device.
        Not reported where an iteration draws at random or calls something unknown.

        Also reports pipelines of webdataset that list every shard (`SimpleShardList`) and do not
        go through `split_by_worker`, or, in such a program, through `split_by_node`; and a
        `WebDataset` whose `nodesplitter` or `workersplitter` is None or gives back all shards. Not
        reported where a stage is not known, and for shards that are drawn (`ResampledShards`).

    Why is this bad?
        Each worker has a copy of the dataset and iterates all of it: with `num_workers=4` an
        epoch has every sample four times, and an evaluation counts each four times. With
        `num_workers=0` or 1 there is no problem, so it is noticed late. Ranks that read the same
        samples compute the same gradients: the program learns no more than on one device.

    Fix safety:
        Unsafe: a stream of `datasets` is passed through `split_dataset_by_node`, where the file
        imports `torch.distributed`; the processes have to be joined before. An `__iter__` that asks
        for no worker goes over every `num_workers`-th item, starting at `id`, both from
        `torch.utils.data.get_worker_info()`: wrong where a pass joins several items to a sample,
        or counts them. For ranks, it goes over every `world_size`-th item, starting at the rank,
        which `__init__` asks for, as the processes are joined before; where the samples cannot be
        shared out evenly, some ranks read one more, which hangs a training that does not expect it.
        Shards of webdataset are divided by its own splitters: there have to be enough
        of them. No other fix is offered.

    How it is proved:
        Invariant `runs`: the fixture counts the samples of an epoch and stops if there are more
        than in the data; it finishes where the workers share the data.

    References:
        - torch/utils/data/dataset.py, `IterableDataset`: "each replica must be configured
          separately to avoid having duplicate data"
        - https://github.com/pytorch/pytorch/issues/30599
        - https://github.com/huggingface/datasets/issues/5360
        - https://github.com/Smith42/astroPT/pull/64
        - met in https://github.com/salesforce/AugTriever (at 3bfe211, line 21 of
          src/adhoc/data/reproduce_datasets_nextepochhang.py)
    """

    code = "SMP308"
    name = "iterable-not-split"
    symptoms = (
        "samples are repeated within an epoch",
        "ranks train on the same samples",
        "metrics change with the number of GPUs",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each loader over data that is iterated: at its workers, then at the ranks."""
        for reader in readers(model):
            yield from _of_pipeline(model, reader)
        for loader, site, module in built_outside_tests(model, model.loaders):
            yield from _by_ranks(model, loader, site)
            for dataset in model.passed_to(loader, "dataset"):
                if not isinstance(dataset, Obj) or not is_iterated(model, dataset.cls):
                    continue
                iterate = whole_pass(model, dataset)
                grade = _grade(model, loader) if iterate is not None else None
                if iterate is None or grade is None:
                    continue
                asks = isinstance(dataset.cls, Class) and not knows_no_worker(model, dataset.cls)
                yield Suspect(
                    module,
                    site.func,
                    f"each worker of this `{loader.name}` reads all of `{dataset.name}`",
                    why=(
                        Related(model.place(iterate, iterate), "each worker runs all of this"),
                        Related(model.place_of(dataset), "the dataset is built here"),
                    ),
                    grade=grade,
                    fix=None if asks else partial(_by_worker, model, iterate),
                    effect=f"{_WHY[asks]}: with N workers every sample is read N times",
                    advice="split it by worker in `__iter__` (`get_worker_info()`)",
                )
                break


#: By whether the dataset asks which worker it is in.
_WHY = (
    "the dataset never calls `get_worker_info()`",
    "the dataset does not divide by what `get_worker_info()` tells it",
)


def _by_worker(model: Model, iterate: Function, editor: Editor) -> Fix | None:
    return read_by_worker(iterate, editor.at(model.module_of(iterate)))


def _share_out(model: Model, loader: Obj, given: Function | Call, editor: Editor) -> Fix | None:
    if isinstance(given, Call):
        return _split(model, given, editor)
    built = [each for each in model.passed_to(loader, "dataset") if isinstance(each, Obj)]
    if not all(_is_built_joined(model, each) for each in built):
        return None
    return read_by_rank(model, given, editor.at(model.module_of(given)))


def _is_built_joined(model: Model, dataset: Obj) -> bool:
    """Whether the processes are joined before a dataset is built, in the same function."""
    joins = model.project.calls_named("init_process_group")
    within = {call.scope for call in joins if isinstance(call.scope, Function)}
    steps = [*joins, *(call for each in within for call in model.flow.callers(each))]
    site = dataset.site
    return site is not None and any(surely_runs_before(one.stmt, site.stmt) for one in steps)


def _by_ranks(model: Model, loader: Obj, site: Call) -> Iterator[Suspect]:
    given = same_on_ranks(model, loader)
    joins = undivided(model, loader) if given is not None else None
    trained = trained_with(model, loader) if joins is not None else []
    if given is not None and joins is None:
        joins = left_iterable(model, loader)
        trained = [joins is not None]
    if given is None or joins is None or not (any(trained) or is_named_after_training(loader)):
        return
    is_stream = isinstance(given, Call)
    advice = (
        "pass the stream through `datasets.distributed.split_dataset_by_node`"
        if is_stream
        else "shard it by rank in `__iter__`"
    )
    where = given.scope if isinstance(given, Call) else given
    yield Suspect(
        model.module_of(site.scope),
        site.func,
        f"this `{loader.name}` trains in several processes, and each reads all of its iterable "
        f"dataset",
        effect="every rank reads every sample",
        advice=advice,
        why=(
            Related(model.place(where, given), "each rank reads all of this"),
            Related(model.place(joins.scope, joins), "the program runs as several processes"),
        ),
        grade=Grade.CERTAIN if any(trained) else Grade.LIKELY,
        fix=partial(_share_out, model, loader, given),
    )


def _split(model: Model, stream: Call, editor: Editor) -> Fix | None:
    """Give each rank its part of a stream, where the file can name the functions of the ranks."""
    module = model.module_of(stream.scope)
    ranks = imported_module(module, "torch.distributed")
    bound = module.facts.bindings.get(last_name(stream.func) or "") or []
    beside = next((each.stmt for each in bound if each.how == "import"), None)
    if ranks is None or beside is None or "split_dataset_by_node" in module.facts.bindings:
        return None
    part = f"rank={ranks}.get_rank(), world_size={ranks}.get_world_size()"
    editor.at(module).wrap(stream, "split_dataset_by_node(", f", {part})")
    editor.at(module).insert_after(beside, "from datasets.distributed import split_dataset_by_node")
    why = "the processes have to be joined before"
    return editor.fix("Pass it through `split_dataset_by_node`", Applicability.UNSAFE, why)


def _of_pipeline(model: Model, reader: Reader) -> Iterator[Suspect]:
    """What a pipeline of webdataset does not divide."""
    made, pipeline = reader
    module = model.module_of(made.scope)
    why = Related(model.place(pipeline.made.scope, pipeline.made), "the pipeline is built here")
    numbers = workers(model, made)
    is_certain = numbers is not None and any(isinstance(n, int) and n > 1 for n in numbers)
    if not pipeline.by_worker and (numbers is None or is_certain):
        yield Suspect(
            module,
            made.func,
            f"each worker of this `{unparse(made.func)}` reads all shards of its pipeline",
            effect="`num_workers` workers give every sample as many times",
            advice="put `wds.split_by_worker` behind the list of shards",
            why=(why,),
            fix=partial(_divide, model, pipeline.made, "split_by_worker"),
            grade=Grade.CERTAIN if is_certain else Grade.LIKELY,
        )
    joins = None if pipeline.by_node else trained_together(model, made)
    if joins is not None:
        yield Suspect(
            module,
            made.func,
            f"this `{unparse(made.func)}` trains in several processes, and each reads all shards",
            effect="every sample comes once for each rank",
            advice="divide the shards by `wds.split_by_node`",
            fix=partial(_divide, model, pipeline.made, "split_by_node"),
            why=(
                why,
                Related(model.place(joins.scope, joins), "the program runs as several processes"),
            ),
        )


def _divide(model: Model, pipeline: Call, splitter: str, editor: Editor) -> Fix | None:
    """Let a splitter of webdataset choose among a pipeline's shards."""
    if pipeline.has_star:
        return None  # another function gives the stages
    there = editor.at(model.module_of(pipeline.scope))
    named = named_beside(there, pipeline.func, splitter)
    if named is None:
        return None
    keeps_all = pipeline.keyword(SPLITTERS[splitter])
    if keeps_all is not None:
        there.replace(keeps_all, named)
    else:
        there.insert_argument(pipeline, pipeline.positional[0], named)
    why = "there have to be shards for each"
    return editor.fix(f"Divide the shards by `{named}`", Applicability.UNSAFE, why)


def _grade(model: Model, loader: Obj) -> Grade | None:
    """How sure it is that the loader has several workers, to which nothing tells their part."""
    is_told = may_be_given(model, loader, "worker_init_fn")
    return None if is_told else several_workers(model, loader, 2)
