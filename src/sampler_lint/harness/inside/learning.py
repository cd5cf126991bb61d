"""Who learns together: the groups that average gradients, and the gradients themselves.

Ranks that read the same data may do so on purpose. They do not if their gradients are averaged,
which wrappers (``DistributedDataParallel``, FSDP) say, and what the optimizers are given shows.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from .content import ELEMENTS, FEW
from .log import STOP_AT

#: Steps that a process may go on for after it was told to stop, once.
PATIENCE = 20


#: So many steps of a schedule tell how many steps of an optimizer come between two.
FEW_STEPS = 2
#: So many exchanges may be for another reason.
FEW_EXCHANGES = 3


class Learning:
    """What one process was seen to learn; ``note`` appends to its log."""

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self._told: set[tuple[str, tuple[int, ...]]] = set()
        #: Of how many batches a group has exchanged what the model made, and at which one, how.
        self._exchanged: dict[tuple[int, ...], int] = {}
        self._exchanging: dict[tuple[int, ...], tuple[Any, set[str]]] = {}
        self._optimizers: Any = weakref.WeakKeyDictionary()
        self._steps: list[int] = []
        #: The numbers of schedules, and how often each was stepped since a state was loaded.
        self._schedules: Any = weakref.WeakKeyDictionary()
        #: How often gradients had been computed at the last step.
        self.used = 0
        stop = os.environ.get(STOP_AT, "")
        self._stop = int(stop) if stop.isdecimal() else None

    @property
    def taken(self) -> int:
        """Steps of all optimizers."""
        return sum(self._steps)

    def tell(self, kind: str, ranks: Any) -> None:
        """Note a group of ranks, once."""
        members = tuple(int(rank) for rank in ranks)
        if (kind, members) not in self._told:
            self._told.add((kind, members))
            self._note(kind, ranks=members)

    def has_shape(self, shape: Any) -> bool:
        """Whether a parameter of an optimizer has this shape."""
        return any(one.shape == shape for each in self._optimizers for one in _parameters(each))

    def exchanged(self, batch: Any, how: str, ranks: Any) -> None:
        """Note ranks that exchange what a model makes of ``batch`` before gradients are computed.

        A sum is one exchange; else something is sent, and something comes back. A few times may
        be for another reason.
        """
        members = tuple(sorted(int(rank) for rank in ranks))
        at, ways = self._exchanging.get(members, (None, set()))
        ways = {*ways, how} if at == batch else {how}
        self._exchanging[members] = batch, ways
        if ways in ({"all_reduce"}, {"send", "recv"}):
            self._exchanging[members] = batch, {*ways, ""}
            self._exchanged[members] = self._exchanged.get(members, 0) + 1
            if self._exchanged[members] == FEW_EXCHANGES:
                self.tell("exchanges", members)

    def stepped(self, optimizer: Any, backwards: int) -> None:
        """Note what the optimizer was given, at steps 1, 2, 4, 8 …

        ``backwards`` is how often gradients have been computed.
        """
        self.used = backwards
        number = self._optimizers.setdefault(optimizer, len(self._steps))
        if number == len(self._steps):
            self._steps.append(0)
            self._tell_parts(optimizer)
        self._steps[number] = step = self._steps[number] + 1
        if not step & (step - 1):
            self._note("step", optimizer=number, step=step, gradients=_digest(optimizer))
        if self._stop is not None:
            gone_on = self.taken - self._stop
            if gone_on == 0:  # it may save now, as who is preempted does
                os.kill(os.getpid(), signal.SIGTERM)
            elif gone_on >= PATIENCE:
                os.kill(os.getpid(), signal.SIGKILL)

    def resumed(self, optimizer: Any) -> None:
        """Note how many steps an optimizer had taken whose state was loaded."""
        steps = [state.get("step", 0) for state in optimizer.state.values()]
        self._note("optimizer_loaded", steps=max(map(int, steps), default=0))
        self._schedules.clear()

    def scheduled(self, schedule: Any) -> None:
        """Note how far a schedule of the learning rate is, the first times that it goes on.

        Some optimizers, SGD among them, do not know how many steps they have taken.
        """
        last = int(schedule.last_epoch)
        number, count, before = self._schedules.get(schedule, (len(self._schedules), 0, None))
        if last == before:
            return  # a class's own step that calls that of its base
        self._schedules[schedule] = number, count + 1, last
        optimizer = self._optimizers.get(schedule.optimizer)
        if count < FEW_STEPS and optimizer is not None:
            self._note("scheduled", schedule=number, last=last, taken=self._steps[optimizer])

    def _tell_parts(self, optimizer: Any) -> None:
        """Note the ranks that hold parts of one parameter, as its mesh tells."""
        dist: Any = sys.modules.get("torch.distributed")
        for parameter in _parameters(optimizer):
            mesh = getattr(parameter, "device_mesh", None)
            for dimension, placement in enumerate(getattr(parameter, "placements", ())):
                if mesh is not None and placement.is_shard():
                    self.tell("parts", dist.get_process_group_ranks(mesh.get_group(dimension)))


def _parameters(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _digest(optimizer: Any) -> int | None:
    """A checksum of some elements of some gradients; None if there are none but zeros."""
    known = [one for one in _parameters(optimizer) if one.grad is not None]
    found = []
    for parameter in known[:: -(-len(known) // FEW) or 1]:
        gradient = parameter.grad.detach()
        gradient = getattr(gradient, "_local_tensor", gradient)
        if gradient.is_sparse or not gradient.numel():
            continue
        flat = gradient.reshape(-1)
        found += flat[:: -(-len(flat) // ELEMENTS)].tolist()
    return zlib.crc32(repr(found).encode("ascii")) if any(found) else None


def _after(cls: Any, name: str, then: Callable[[Any], None]) -> None:
    """Call ``then`` with the object after its method ``name``."""
    original = getattr(cls, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        then(self)
        return result

    setattr(cls, name, method)


def patch_optimizers(recorder: Any, module: Any) -> None:
    """Note what optimizers are given, and that a state is loaded."""

    def stepped(optimizer: Any, *_: Any) -> None:
        recorder.guarded(lambda: recorder.learning.stepped(optimizer, recorder.backwards))

    module.register_optimizer_step_post_hook(stepped)
    _after(
        module.Optimizer,
        "load_state_dict",
        lambda one: recorder.guarded(lambda: recorder.learning.resumed(one)),
    )
    _after(
        module.Optimizer,
        "state_dict",
        lambda one: recorder.guarded(recorder.note_saved, "optimizer_saved"),
    )
    _after(module.Optimizer, "zero_grad", lambda one: recorder.note_zeroed())


def patch_schedules(recorder: Any, module: Any) -> None:
    """Note how far schedules of the learning rate are."""

    def stepped(schedule: Any) -> None:
        if getattr(schedule, "last_epoch", 0):  # its constructor makes the step to 0
            recorder.guarded(recorder.learning.scheduled, schedule)

    for cls in vars(module).values():
        if isinstance(cls, type) and issubclass(cls, module.LRScheduler) and "step" in vars(cls):
            _after(cls, "step", stepped)


def patch_saving(recorder: Any, module: Any) -> None:
    """Note that the program writes something that it may go on from."""
    original = module.save

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        recorder.guarded(recorder.note_saved, "saved")
        return result

    torch: Any = sys.modules["torch"]  # which may still be half imported
    for holder in (module, torch):
        if getattr(holder, "save", None) is original:
            holder.save = save


def averaged_by(*names: str) -> Callable[[Any, Any, Any], None]:
    """Note the process groups that a wrapper keeps under these names."""

    def tell(recorder: Any, module: Any, wrapper: Any) -> None:
        dist: Any = sys.modules["torch.distributed"]
        for name in names:
            group = getattr(wrapper, name, None)
            if group is not None:
                recorder.learning.tell("averages", dist.get_process_group_ranks(group))

    return tell


def patch_wrapper(name: str, tell: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any], None]:
    """Let ``tell`` note what the class ``name`` of a module has built."""

    def patch(recorder: Any, module: Any) -> None:
        def built(wrapper: Any) -> None:
            recorder.guarded(tell, recorder, module, wrapper)

        cls = getattr(module, name)
        _after(cls, "__init__", built)
        if hasattr(cls, "forward"):
            cls.forward = _feeding(recorder, cls.forward)

    return patch


def _feeding(recorder: Any, original: Any) -> Any:
    """Note how much of a batch that was looked into a wrapped model is given."""
    torch: Any = sys.modules["torch"]  # which may still be half imported

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            if recorder.looked:
                recorder.guarded(recorder.note_fed, (*args[1:], *kwargs.values()))
            recorder.called += 1
            if not recorder.called & (recorder.called - 1) and torch.is_grad_enabled():
                recorder.guarded(recorder.note_inputs, (*args[1:], *kwargs.values()))
        return original(*args, **kwargs)

    return forward


def averaged_on_mesh(recorder: Any, module: Any, wrapper: Any) -> None:
    """Note the ranks of a wrapper's mesh, and the groups along its dimensions."""
    dist: Any = sys.modules["torch.distributed"]
    mesh = wrapper.mesh_info.mesh
    recorder.learning.tell("averages", mesh.mesh.flatten().tolist())
    for dimension in range(mesh.ndim):
        group = mesh.get_group(dimension)
        recorder.learning.tell("averages", dist.get_process_group_ranks(group))
