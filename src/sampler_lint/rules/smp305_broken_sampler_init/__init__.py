"""SMP305: a sampler's constructor leaves the torch sampler under it broken."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.catalog.torch import WITHOUT_INIT
from sampler_lint.domain.launches import launches
from sampler_lint.domain.model import SAMPLER, Model
from sampler_lint.findings import Grade
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules.smp305_broken_sampler_init.base_arguments import (
    extra_arguments,
    not_taken,
    reaches_sampler,
)
from sampler_lint.rules.smp305_broken_sampler_init.missing_call import not_called
from sampler_lint.rules.smp305_broken_sampler_init.unset import no_batch_size, set_by_set_epoch_only
from sampler_lint.syntax.nodes import Class
from sampler_lint.workspace.project import Module


class BrokenSamplerInit(Rule):
    """A sampler's constructor calls the constructor of its torch base wrongly, or not at all.

    What it does:
        Reports an argument passed to `Sampler.__init__`, in any spelling (`super().__init__(x)`,
        `super(C, self).__init__(x)`, `Sampler.__init__(self, x)`), where no class in between
        defines `__init__`; an `__init__` that does not call the base's, although an inherited
        `__iter__`, `__len__` or `set_epoch` reads what that sets; an attribute that only
        `set_epoch` sets although `__iter__` reads it; and a `batch_size` that is None by default
        and is passed on to `BatchSampler.__init__`. The argument is not reported where the
        repository's requirements exclude torch 2.10 and later. Classes that nothing uses, in a
        repository that builds its samplers and loaders itself, are only likely.

    Why is this bad?
        `Sampler.__init__(data_source)` was deprecated in torch 2.1 and removed in torch 2.10: the
        call reaches `object.__init__`, and building the sampler raises `TypeError:
        object.__init__() takes exactly one argument`. The other mistakes raise AttributeError
        when the loader is iterated or `len(loader)` is called, or ValueError.

    Fix safety:
        Safe for the argument, which is dropped, where the repository's requirements say that
        torch is 2.1 or newer: torch never stored it, and 2.0 or older requires it. Otherwise
        unsafe, and also if the argument is itself a call, which may have an effect, and if a
        derived class lets `super()` reach another `__init__`. Safe for `self.epoch = 0`, torch's
        own first value. Unsafe for the missing call, which gets the arguments of the same names,
        and for a `__len__` that raises TypeError, which is defined where `BatchSampler.__len__`
        would miscount the batches of the class.

    How it is proved:
        Invariant `runs`: before the fix the script fails with the error on every rank, after it
        the script finishes.

    References:
        - torch/utils/data/sampler.py, classes `Sampler` (2.0, 2.1 and 2.10) and `BatchSampler`
        - https://github.com/pytorch/pytorch/pull/97338
        - https://github.com/pytorch/pytorch/pull/163134
        - https://github.com/facebookresearch/detectron2/issues/186
        - met in https://github.com/lhotse-speech/lhotse (lhotse/dataset/sampling/stateless.py)
    """

    code = "SMP305"
    name = "broken-sampler-init"
    symptoms = (
        "TypeError: object.__init__() takes exactly one argument",
        "AttributeError while iterating over a sampler",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at the constructor of every class that is certainly a sampler."""
        for module, cls in model.classes():
            if model.is_a(cls, SAMPLER) is not True:
                continue
            found = list(_findings(model, module, cls))
            dead = bool(found) and launches(model).is_dead(cls)
            for suspect in found:
                if dead:
                    suspect.grade = Grade.LIKELY
                yield suspect


def _findings(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    for call in model.flow.base_init_calls(cls):
        extra = extra_arguments(call)
        if extra and reaches_sampler(model, cls, call):
            versions = model.versions(module, "torch")
            if versions.may_be(WITHOUT_INIT):
                yield not_taken(model, module, cls, call, extra, versions)
    yield from not_called(model, module, cls)
    yield from set_by_set_epoch_only(model, module, cls)
    yield from no_batch_size(model, module, cls)
