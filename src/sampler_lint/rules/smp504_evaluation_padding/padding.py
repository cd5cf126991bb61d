"""The sampler that makes the ranks of a loader equally long, or drops what is left."""

from __future__ import annotations

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.conditions import excludes
from sampler_lint.domain.model import BATCH_SAMPLER, DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import program_files
from sampler_lint.domain.shares import pads
from sampler_lint.syntax.navigation import nodes_in, walk
from sampler_lint.syntax.nodes import Bin, Call, Class, Const, Expr, Seq


def batch_maker(model: Model, loader: Obj) -> Obj:
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


def may_drop_last(model: Model, loader: Obj) -> Expr | None:
    """What a loader is told of its last batch, where that may be an incomplete one."""
    size = model.flow.argument(loader, "batch_size")
    if size is None or model.flow.constants(size, loader.through) == {1}:
        return None  # one sample a batch: none is left over
    return model.flow.argument(loader, "drop_last")


def padding_sampler(model: Model, loader: Obj) -> Obj | None:
    """The sampler of torch's own making that shares out the loader's samples."""
    if excludes(model, loader.through, loader.site):
        return None
    given = [
        value
        for value in model.passed_to(batch_maker(model, loader), "sampler")
        if isinstance(value, Obj)
        and value.site is not None
        and not excludes(model, value.through, value.site)
        and not _is_left_out(model, loader, value.site)
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
    return isinstance(sampler.cls, Class) and pads(model, sampler.cls)


def _is_exact(model: Model, sampler: Obj) -> bool:
    """Whether the ranks of a class of the tree, iterated as torch's, have each sample once."""
    cls = sampler.cls
    if not isinstance(cls, Class) or model.flow.method(cls, "__iter__") != DISTRIBUTED_SAMPLER:
        return False
    tried = [trial for trial in model.trials(cls).usual if not trial.world.drop_last]
    return bool(tried) and all(trial.divides for trial in tried)
