"""SMP104: ``set_epoch`` of a sampler or wrapper does not reach what makes the order."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.epoch_state import (
    EpochState,
    epoch_state,
    is_closed,
    iterates,
    lookup,
    wraps,
)
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._epoch_frameworks import unreached_by_lightning
from sampler_lint.rules._trials import graded
from sampler_lint.rules.smp104_epoch_not_forwarded.forwarding import asked, not_forwarded
from sampler_lint.rules.smp104_epoch_not_forwarded.not_read import other_attribute, unread
from sampler_lint.rules.smp104_epoch_not_forwarded.setter import add_method
from sampler_lint.syntax.nodes import Class
from sampler_lint.workspace.project import Module


class EpochNotForwarded(Rule):
    """`set_epoch` of a sampler or wrapper does not reach what determines the order.

    What it does:
        Reports a sampler, a batch sampler, a dataset or a wrapper of loaders whose `set_epoch`

        - does not pass the epoch on to the object it wraps, although that shuffles by its own
          `set_epoch`,
        - stores the epoch where no iteration reads it: the generator is seeded without it, the
          order was drawn in `__init__`, or `__iter__` reads another attribute,
        - seeds a generator with it from which nothing is drawn afterwards: the draw comes first, or
          is made from another generator (`torch.randperm(n)` without `generator=`),
        - changes nothing when the class is simulated with several epochs on a small dataset, be
          it only while its seed is the default (`seed * epoch` with a seed of 0), or comes after
          the constructor or the first iteration has drawn the order and kept it,
        - is missing, although `__iter__` seeds its generator with an epoch that nothing ever
          changes,
        - belongs to a batch sampler returned by Lightning's `train_dataloader` hook: Lightning
          2.0 and later call it on `loader.sampler` and on `loader.batch_sampler.sampler` only.

        Not reported where the wrapped object's epoch is set directly, where the wrapper passes
        the epoch on in `__iter__` or seeds the global generator with it, and where the order
        comes from the global generator, which advances by itself.

    Why is this bad?
        The training loop correctly calls `set_epoch`, but the call has no effect. Every epoch
        then repeats one order (or, with a generator that keeps its state, resuming at epoch `k`
        replays epoch 0). No error is raised.

    Fix safety:
        Safe where everything that the wrapper holds is known and has a `set_epoch`, all of which
        one fix tells, where the epoch is added to one plain seed, and where the one seeded
        generator is passed to the one draw. No fix where the wrapper keeps the order that it has
        first drawn from what it holds. Unsafe, with a `hasattr` guard, where it may be another
        object, where a method is added that nothing calls yet, where the seed also decides which
        part of the data is read, where it may be no int (none, a text, a list), and where the
        class, run as the fix leaves it, stops with an error or is not seen to change its order.
        Unsafe, too, where something else than a pass draws by the same method, where the state to
        resume from leaves the epoch out, where a metaclass, a decorator or a way of its own to
        copy may make something else of the class, and where its epoch does more than draw.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs have one order before the fix and
        different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.set_epoch` (stores, no more)
        - https://github.com/Lightning-AI/pytorch-lightning/issues/21454
        - lightning/fabric/utilities/data.py, `_set_sampler_epoch`
        - https://github.com/huggingface/accelerate/pull/3556
        - met in https://github.com/open-mmlab/mmfewshot (mmfewshot/utils/infinite_sampler.py)
    """

    code = "SMP104"
    name = "epoch-not-forwarded"
    symptoms = (
        "every epoch has the same order",
        "resumed training repeats batches it has already seen",
    )
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every class of the tree whose passes give an order."""
        yield from unreached_by_lightning(model)
        told = set()
        for module, cls in model.classes():
            ordered = iterates(model, cls)
            tells = ordered or (wraps(model, cls) and _is_told(model, cls))
            if not tells or not is_closed(model, cls):
                continue
            state = epoch_state(model, cls)
            if state.iteration.opaque or not state.iteration.functions | state.iteration.outside:
                continue
            found = list(not_forwarded(model, state))
            if not found and ordered:
                found = [s for s in (unread(model, module, state),) if s is not None]
            if not found and ordered and state.setter is None:
                found = [s for s in (_missing(model, module, state),) if s is not None]
            for suspect in found:
                place = (suspect.module, suspect.start.row, suspect.start.col)
                if place not in told:
                    told.add(place)
                    yield from graded(model, cls, self.code, suspect)


def _is_told(model: Model, cls: Class) -> bool:
    """Whether an instance has a ``set_epoch``, or is asked for one."""
    return lookup(model, cls, "set_epoch", None) is not None or asked(model, cls) is not None


def _missing(model: Model, module: Module, state: EpochState) -> Suspect | None:
    if any("set_epoch" in cls.bindings for cls in model.flow.own_mro(state.cls)):
        return None  # something else of that name
    read = other_attribute(model, state)
    if read is None:
        return None
    if any(derived.method("set_epoch") for derived in model.flow.subclasses(state.cls)):
        return None
    call = asked(model, state.cls)
    name = read.name
    message = (
        f"`{state.cls.name}` has no `set_epoch`, and nothing changes the `self.{name}` that it "
        f"seeds its order with"
    )
    why = [Related(model.place(read.scope, read), "the epoch is read here")]
    if call is not None:
        why.append(Related(call, "`set_epoch` is called here"))

    def fix(editor: Editor) -> Fix:
        add_method(editor, state.cls, [f"self.{name} = epoch"], "epoch")
        safe = Applicability.SAFE if call is not None else Applicability.UNSAFE
        why = "who builds it may set the epoch otherwise"
        return editor.fix("Add `set_epoch`", safe, why)

    return Suspect(
        module,
        name_of(module, state.cls),
        message,
        why=tuple(why),
        fix=fix,
        effect="every epoch repeats one order",
        advice="add `set_epoch(epoch)` and call it in each epoch",
    )
