"""SMP404: a sampler's setting is stored under a name that nothing reads, or is hidden again."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import graded
from sampler_lint.rules.smp404_misdirected_assignment.attributes import (
    Reads,
    hidden_methods,
    hiding,
    unread_inside,
    unread_outside,
)
from sampler_lint.rules.smp404_misdirected_assignment.constructor import (
    crossed,
    not_passed_on,
    overwritten,
    set_before_super,
    stored_by_base,
    unheeded,
    unheeded_by_class,
)
from sampler_lint.rules.smp404_misdirected_assignment.draws import idle_generators, seed_not_read
from sampler_lint.rules.smp404_misdirected_assignment.overrides import misspelled
from sampler_lint.rules.smp404_misdirected_assignment.slips import (
    confused_places,
    lost_locals,
    moving_getters,
    no_effect,
)
from sampler_lint.syntax.nodes import Class, Stmt
from sampler_lint.workspace.project import Module


class MisdirectedAssignment(Rule):
    """A sampler's setting is stored under the wrong name, or overwritten at once.

    What it does:
        Reports, on samplers and loaders that are certain,

        - an attribute that nothing reads, next to a similar one that is read
          (`sampler.epochs = epoch`),
        - a local variable that nothing reads, named like an attribute of the sampler
          (`epoch = epoch` in `set_epoch`),
        - a setter that assigns nothing (`self.epoch == epoch`, `self.epoch: epoch`),
        - an attribute set before `super().__init__(...)`, which overwrites it,
        - an argument that the constructor stores, and overwrites before anything reads it,
        - an attribute with the name of a property, or of a method that is called; also one that
          the constructor of a base stores over what the class itself says,
        - a `seed` that the constructor stores and nothing reads, next to a shuffle with a global
          generator,
        - a generator that an iteration makes and seeds, next to a draw of torch from a global one,
          where nothing draws from it, or another draw beside that one does,
        - a `shuffle` or `drop_last` that a caller passes, where the sampler or loader that is
          built gets a constant instead, or the default of a function that it is not passed on to,
        - a `seed` that a constructor takes, and keeps a number in its place,
        - a parameter that nothing reads, where another one is kept or passed on in its place
          (`self.shuffle = drop_last` beside `self.drop_last = drop_last`),
        - a rank that is set to the number of processes, or the other way round
          (`num_replicas = dist.get_rank()`),
        - a `state_dict` that stores its argument as the sampler's own position,
        - an abstract method of the first base class that hides the real one of a later base,
        - a method that nothing calls, and whose name is that of one of the protocol but for
          underscores or a plural (`__len`, `set_epochs`).

    Why is this bad?
        No error is raised. The epoch never changes, the validation sampler shuffles, or the rank
        that saves a checkpoint skips samples that the others read.

    Fix safety:
        Safe where the spelling differs by a letter, where a setter's parameter goes to a local of
        the attribute's name, where a parameter that nothing reads is passed on in the place of
        another, and for the value passed to `super().__init__`. Unsafe otherwise: a similar name
        may mean something else, and the order of base classes affects more than one method.

    How it is proved:
        Invariant `reshuffles`: before the fix every epoch has the same order, after it they
        differ.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__init__` and `set_epoch`
        - https://docs.python.org/3/howto/mro.html
        - https://github.com/NVIDIA/DeepLearningExamples (MaskRCNN's sampler stores
          `shuffle` as True)
        - met in https://github.com/NVIDIA/DeepLearningExamples
          (PyTorch/Segmentation/MaskRCNN, `distributed.py`)
    """

    code = "SMP404"
    name = "misdirected-assignment"
    symptoms = (
        "every epoch has the same order",
        "a sampler argument has no effect",
        "some samples are never read",
    )
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at what is stored on samplers, from inside and outside."""
        reads = Reads(model)
        yield from unread_outside(model, reads)
        yield from unheeded(model)
        yield from not_passed_on(model)
        yield from crossed(model)
        yield from confused_places(model)
        told: set[Stmt] = set()
        for module, cls in model.classes():
            if model.is_meant_as_sampler(cls):
                for suspect in _in_class(model, module, cls, reads, told):
                    yield from graded(model, cls, self.code, suspect)


def _in_class(
    model: Model, module: Module, cls: Class, reads: Reads, told: set[Stmt]
) -> Iterator[Suspect]:
    yield from unread_inside(model, module, cls, reads)
    yield from lost_locals(model, module, cls)
    yield from set_before_super(model, module, cls)
    yield from overwritten(model, module, cls)
    yield from hiding(model, module, cls)
    yield from stored_by_base(model, module, cls)
    yield from moving_getters(module, cls)
    yield from hidden_methods(model, module, cls)
    yield from misspelled(model, module, cls)
    yield from seed_not_read(model, module, cls)
    yield from no_effect(module, cls)
    yield from idle_generators(model, cls, told)
    yield from unheeded_by_class(model, cls)
