"""The loaders that the engine of a framework goes over in each epoch, without a loop to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import passed_as
from sampler_lint.analysis.values import Ext, ExtObj, FuncRef, Obj
from sampler_lint.catalog.schema import Runner
from sampler_lint.domain.datasets import may_be_iterable
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.steps import steps
from sampler_lint.remembered import remembered
from sampler_lint.syntax.nodes import Attr, Call, Const, Expr, last_name
from sampler_lint.workspace.project import Module


class Run(NamedTuple):
    """A call that has an engine train with a loader for several epochs."""

    call: Call
    data: Expr
    """The argument that gives the loader."""


@remembered
def runs(model: Model) -> list[Run]:
    """Every such call."""
    return [
        run
        for module in model.modules
        if not is_test(module)
        and any(catalog.framework(name).runners for name in model.frameworks(module))
        for call in module.facts.all_calls
        if isinstance(call.func, Attr)
        for run in _run(model, call)
    ]


def run_over(model: Model) -> list[Obj]:
    """The loaders that engines train with, also where they set the epoch themselves."""
    given = [*(run.data for run in runs(model)), *(data for _, data in fitted(model))]
    return [loader for data in given for loader in _objects(model, data)]


def evaluated_by_call(model: Model) -> Iterator[tuple[Call, Obj]]:
    """The loaders that a call hands to a framework to evaluate with, each with the call."""
    for call, data in fitted(model, evaluates=True):
        yield from ((call, loader) for loader in _objects(model, data))


def _objects(model: Model, data: Expr) -> list[Obj]:
    values = model.flow.values(data)
    return [value for value in values if isinstance(value, Obj) and value.site is not None]


def fitted(model: Model, *, evaluates: bool = False) -> Iterator[tuple[Call, Expr]]:
    """What calls hand to frameworks to train, or to evaluate, with."""
    for module in model.modules:
        if is_test(module) or not any(
            catalog.framework(name).fits for name in model.frameworks(module)
        ):
            continue
        for call in module.facts.all_calls:
            for value in model.flow.values(call.func) if call.args else ():
                for known in catalog.fits(value.dotted) if isinstance(value, Ext) else ():
                    data = _given(model, call, known) if known.evaluates is evaluates else None
                    if data is not None:
                        yield call, data


def _given(model: Model, call: Call, known: catalog.Fit) -> Expr | None:
    by_name = (word for name in known.params for word in passed_as(model.flow, call, name))
    named = next(by_name, None)
    if named is not None or known.place is None or call.has_star:
        return named
    return next(iter(call.positional[known.place :]), None)


def _run(model: Model, call: Call) -> Iterator[Run]:
    assert isinstance(call.func, Attr)
    values = model.flow.values(call.func)
    found = [catalog.runner(v.dotted) if isinstance(v, Ext) else None for v in values]
    if not found or call.has_star or call.has_double_star:
        return
    for runner in found:
        if runner is None or not _trains(model, call.func.value, runner):
            return
    data, epochs = (
        call.keyword(name) or next(iter(call.positional[place:]), None)
        for place, name in enumerate(found[0].params if found[0] is not None else ())
    )
    if data is not None and epochs is not None and model.flow.constants(epochs) != {1}:
        yield Run(call, data)


def _trains(model: Model, engine: Expr, runner: Runner) -> bool:
    """Whether what an engine calls for each batch certainly steps an optimizer."""
    made = [value.site for value in model.flow.values(engine) if isinstance(value, ExtObj)]
    if not runner.step:
        return bool(made)
    given = [site.keyword(runner.step) or next(iter(site.positional), None) for site in made]
    return bool(given) and all(
        each is not None
        and any(
            isinstance(value, FuncRef) and steps(model, value.function)
            for value in model.flow.values(each)
        )
        for each in given
    )


class Made(NamedTuple):
    """A loader that a framework makes of a dataset."""

    call: Call
    is_sharded: bool
    """Whether it certainly has a distributed sampler: none is made for an iterable dataset."""


def made_by_framework(model: Model, data: Expr) -> Made | None:
    """Where a framework makes a loader, with a sampler of torch that shuffles by its epoch."""
    values = model.flow.values(data)
    made = [v.site for v in values if isinstance(v, ExtObj) and catalog.makes_loader(v.dotted)]
    if len(made) != 1 or len(values) != 1 or made[0].has_double_star:
        return None
    dataset = next(iter(made[0].positional), None)
    shuffle = made[0].keyword("shuffle")
    if shuffle is not None and not (isinstance(shuffle, Const) and shuffle.value is True):
        return None
    if made[0].keyword("sampler") or made[0].keyword("batch_sampler"):
        return None
    if dataset is None or may_be_iterable(model, dataset):
        return None
    # Torch refuses to shuffle what is iterable.
    is_sharded = shuffle is not None or all(
        isinstance(value, Obj) for value in model.flow.values(dataset)
    )
    return Made(made[0], is_sharded)


def may_be_told(model: Model, run: Run, sampler: Obj | None) -> bool:
    """Whether anything near a run may set the epoch of the sampler behind what it goes over.

    ``sampler`` is None where only the framework has it, as ``loader.sampler``.
    """
    near = program_files(model).running_with(model.module_of(run.call.scope))
    setters = [
        (call.scope, call.func.value) for call in model.epoch_setters if isinstance(call.func, Attr)
    ]
    setters += [(scope, receiver) for scope, _, receiver in model.epoch_setters_kept]
    return any(
        model.module_of(scope) in near and _may_be(model, receiver, sampler)
        for scope, receiver in setters
    ) or any(_is_handed_on(model, module, sampler) for module in near)


def _may_be(model: Model, receiver: Expr, sampler: Obj | None) -> bool:
    values = model.flow.values(receiver)
    return not values or any(
        not isinstance(value, Obj) or (sampler is not None and sampler.may_be(value))
        for value in values
    )


def _is_handed_on(model: Model, module: Module, sampler: Obj | None) -> bool:
    """Whether a file hands the sampler to a function of a framework, which may set its epoch."""
    return any(
        (isinstance(arg.value, Attr) and last_name(arg.value) == "sampler")
        or (sampler is not None and any(map(sampler.may_be, model.flow.values(arg.value))))
        for call in module.facts.all_calls
        if any(_is_of_framework(value) for value in model.flow.values(call.func))
        for arg in call.args
    )


def _is_of_framework(value: object) -> bool:
    return isinstance(value, Ext) and value.dotted.split(".")[0] in catalog.FRAMEWORK_PACKAGES
