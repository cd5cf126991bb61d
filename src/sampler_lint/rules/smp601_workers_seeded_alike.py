"""SMP601: ``worker_init_fn`` gives the workers of each epoch the seeds of the first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.values import ExtObj, Obj
from sampler_lint.catalog import Span
from sampler_lint.domain.concepts import SEEDS_ONE
from sampler_lint.domain.epochs import feeds_training
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import built_outside_tests
from sampler_lint.domain.stale import has_workers
from sampler_lint.domain.workers import (
    draw_in_workers,
    draw_of_copies,
    may_be_given,
    parts,
    seedings_alike,
    several_workers,
)
from sampler_lint.edits.draw_fixes import seed_by_worker
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import Call


class WorkersSeededAlike(Rule):
    """A `worker_init_fn` seeds the workers alike in every epoch, so augmentations repeat.

    What it does:
        Reports a `worker_init_fn` that seeds `random`, numpy or torch with a value that is the
        same in every epoch (a constant, the worker's id, a setting, the rank), where the loader
        trains in a loop, does not keep its workers, and its dataset or a transform draws from
        that generator. `likely` where the loop is not known and the loader is named after
        training. Not reported where the seed comes from `torch.initial_seed()`, the worker's own
        seed or the epoch, and where it is not known what is drawn.

        Without a `worker_init_fn`, reports an item's draw from a generator that the dataset, or a
        transform that it holds, makes once and keeps (`self.rng = np.random.default_rng(0)`), and
        one from numpy where the project's requirements allow no torch but one before 1.9, which
        does not seed numpy in workers. Both are `likely` where who starts the program says how
        many workers there are, and no option has a number of them by default.

    Why is this bad?
        Workers are restarted and seeded again for each epoch, so each epoch draws the same random
        numbers and repeats the augmentations of the first. torch itself draws a new base seed for
        every epoch; seeding by hand undoes that.

    Fix safety:
        Unsafe: every generator that the `worker_init_fn` seeds alike is seeded with
        `torch.initial_seed()`, which follows the program's seed and differs between passes and
        workers. It differs between ranks only where their torch is seeded differently. No fix is
        offered in a function that is called elsewhere, too, and in a file without `import torch`.

    How it is proved:
        Invariant `runs`: the fixture stops where two epochs have drawn the same numbers; it
        finishes where the workers keep the seeds that torch gives them.

    References:
        - torch/utils/data/_utils/worker.py, `_worker_loop`: seeds with the base seed of the pass,
          then calls `init_fn`
        - https://pytorch.org/docs/stable/notes/randomness.html#dataloader
        - https://github.com/pytorch/pytorch/issues/5059
        - https://github.com/open-mmlab/OpenPCDet/issues/886
        - met in https://github.com/HiLab-git/SSL4MIS (code/train_fully_supervised_2D.py)
    """

    code = "SMP601"
    name = "workers-seeded-alike"
    symptoms = ("every epoch repeats the same augmentations",)
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at what seeds the workers of each loader that trains."""
        yield from _left_unseeded(model)
        yield from _copied(model)
        seen = set()
        for loader, _, _ in built_outside_tests(model, model.loaders):
            seedings = list(seedings_alike(model, loader))
            if not seedings or not has_workers(model, loader) or not _starts_anew(model, loader):
                continue
            for seeding in seedings:
                drawn = _drawn(model, loader, seeding.library)
                trains = feeds_training(model, loader) if drawn is not None else False
                if drawn is None or trains is False or seeding.call.scope in seen:
                    continue
                seen.add(seeding.call.scope)
                alike = [one for one in seedings if one.call.scope is seeding.call.scope]
                yield Suspect(
                    model.module_of(seeding.call.scope),
                    seeding.call,
                    f"workers seed `{seeding.library}` with `{unparse(seeding.seed)}`, the same in "
                    f"every epoch",
                    why=(
                        Related(model.place(drawn.scope, drawn), "the workers draw here"),
                        Related(model.place_of(loader), "loader built here"),
                    ),
                    fix=partial(seed_by_worker, model, alike),
                    grade=Grade.CERTAIN if trains else Grade.LIKELY,
                    effect="each epoch repeats the augmentations of the first",
                    advice="seed with `torch.initial_seed() % 2**32`",
                )


def _left_unseeded(model: Model) -> Iterator[Suspect]:
    """Draws by numpy in the workers of a torch that does not seed it there."""
    seen = set()
    for loader, _, module in built_outside_tests(model, model.loaders):
        has_several = several_workers(model, loader, 1)
        if has_several is None or any(
            may_be_given(model, loader, name)
            for name in ("worker_init_fn", "multiprocessing_context")
        ):
            continue
        versions = model.versions(module, "torch")
        if not versions.is_stated or versions.may_be(Span(since=_SEEDS_NUMPY)):
            continue
        drawn = _drawn(model, loader, "numpy.random")
        trains = feeds_training(model, loader) if drawn is not None else False
        if drawn is None or trains is False or drawn in seen or _is_seeded(drawn):
            continue
        seen.add(drawn)
        yield Suspect(
            model.module_of(drawn.scope),
            drawn,
            f"all workers draw the same numbers from numpy with torch before {_SEEDS_NUMPY}",
            why=(
                Related(model.place_of(loader), "loader built here"),
                Related(versions.stated[0].place, "the version is asked for here"),
            ),
            grade=has_several if trains else Grade.LIKELY,
            effect="each worker starts with a copy of the main process's generator, in every epoch "
            "the same one",
            advice="pass a `worker_init_fn` that calls "
            "`np.random.seed(torch.initial_seed() % 2**32)`",
        )


def _copied(model: Model) -> Iterator[Suspect]:
    """Draws of items from a generator of the dataset, which each worker has a copy of."""
    seen = set()
    for loader, _, _ in built_outside_tests(model, model.loaders):
        grade = several_workers(model, loader, 1)
        if grade is None or may_be_given(model, loader, "worker_init_fn"):
            continue
        datasets = model.passed_to(loader, "dataset")
        for part in (part for data in datasets for part in parts(model, data)):
            drawn = draw_of_copies(model, part) if isinstance(part, Obj) else None
            if drawn is None or drawn in seen or feeds_training(model, loader) is not True:
                continue
            assert isinstance(part, Obj)
            seen.add(drawn)
            keeps = "the dataset" if part in datasets else f"`{part.name}`"
            again = ", in every epoch again" if _starts_anew(model, loader) else ""
            yield Suspect(
                model.module_of(drawn.scope),
                drawn,
                f"each worker draws from its own copy of a generator that {keeps} keeps",
                why=(Related(model.place_of(loader), "loader built here"),),
                grade=grade,
                effect=f"all workers draw the same numbers{again}",
                advice="draw from the process's generator, which torch seeds in each worker, or "
                "seed with `torch.initial_seed()` in a `worker_init_fn`",
            )


#: The first torch that seeds numpy in workers; it has always seeded `random` and itself.
_SEEDS_NUMPY = "1.9"


def _is_seeded(drawn: Call) -> bool:
    """Whether the function that draws seeds by itself before."""
    return any(map(SEEDS_ONE.is_call, drawn.scope.calls))


def _starts_anew(model: Model, loader: Obj) -> bool:
    """Whether each pass certainly starts workers of its own."""
    return model.option(loader, "persistent_workers", False) == {False}


def _drawn(model: Model, loader: Obj, library: str) -> Call | None:
    """A draw from the library's generator that an item of the loader's dataset makes."""
    for dataset in model.passed_to(loader, "dataset"):
        if isinstance(dataset, (Obj, ExtObj)):
            drawn = draw_in_workers(model, dataset, library)
            if drawn is not None:
                return drawn
    return None
