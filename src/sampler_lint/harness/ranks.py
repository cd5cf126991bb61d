"""What every rank of a world would read from a sampler, without starting a process.

A sampler is a pure function of its arguments, its rank, the epoch it is told and the global
random generators. So a rank is simulated: the generators are seeded as at the start of its
process, ``torch.distributed`` and the environment answer with its rank, and the sampler is built
and iterated epoch after epoch. Any world size is possible, thousands of ranks included.

Not exact for constructors that run collectives other than a broadcast from rank 0;
:attr:`RankTrace.collectives` names them.
"""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import itertools
import math
import os
import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any
from unittest import mock

from sampler_lint.harness.synthetic import MadeUpSample, SyntheticDataset
from sampler_lint.properties import Item, Rank, Reading

#: Steps of one pass after which an iterator counts as endless.
ENDLESS = 2_000
ENDLESS_FACTOR = 50

#: Seconds of computing after which a sampler that has not yielded what it was asked for is stuck.
STUCK = 3.0

#: Seconds on the clock that a sampler may sleep; set where the process is our own.
ASLEEP: float | None = None

#: What samplers say of themselves, by the names that torch's own have.
DECLARED = ("shuffle", "drop_last", "batch_size", "replacement", "total_size")

#: Attributes under which samplers keep the sampler they draw from, as loops look for it.
INNER = ("batch_sampler", "sampler", "base_sampler", "_sampler")

_ENVIRONMENT = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
_REPLAYED = ("broadcast", "broadcast_object_list")
_COLLECTIVES = (
    *("all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "gather"),
    *("gather_object", "scatter", "scatter_object_list", "reduce", "monitored_barrier"),
)


@dataclass(frozen=True, order=True, slots=True)
class Setting:
    """The input of one experiment, in the order of how small it is."""

    size: int
    """Samples in the dataset."""
    world_size: int
    seed: int = 0
    batch_size: int = 4


class Case:
    """What a sampler is built from, on one rank; it notes what it is asked for.

    A factory with a parameter ``case`` gets it: ``lambda case: MySampler(case.dataset,
    case.world_size, case.rank)``.
    """

    def __init__(self, setting: Setting, rank: int) -> None:
        self.setting = setting
        self._rank = rank
        self.asked: set[str] = set()

    @property
    def rank(self) -> int:
        """This rank's number."""
        self.asked.add("rank")
        return self._rank

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        self.asked.add("rank")
        return self.setting.world_size

    num_replicas = world_size

    @property
    def seed(self) -> int:
        """The seed of the run, the same on every rank."""
        self.asked.add("seed")
        return self.setting.seed

    @property
    def batch_size(self) -> int:
        """The batch size of the experiment."""
        self.asked.add("batch_size")
        return self.setting.batch_size

    @property
    def shuffle(self) -> bool:
        """True: it is to shuffle."""
        self.asked.add("shuffle")
        return True

    @property
    def size(self) -> int:
        """How many samples there are."""
        self.asked.add("size")
        return self.setting.size

    @property
    def dataset(self) -> Any:
        """A dataset of that many samples, which are their own indices."""
        return _dataset_class()(self.size, self.asked)

    @property
    def indices(self) -> list[int]:
        """The indices of the dataset."""
        return list(range(self.size))

    @property
    def lengths(self) -> list[int]:
        """A length for each sample."""
        return SyntheticDataset(self.size).lengths

    @property
    def labels(self) -> list[int]:
        """A class for each sample."""
        return SyntheticDataset(self.size, self.asked).labels

    @property
    def weights(self) -> list[float]:
        """A weight for each sample."""
        return [1.0] * self.size

    @property
    def generator(self) -> Any:
        """A ``torch.Generator`` seeded with the seed of the run."""
        torch: Any = sys.modules["torch"]
        return torch.Generator().manual_seed(self.seed)


@functools.cache
def _dataset_class() -> type:
    """:class:`SyntheticDataset` as a ``torch.utils.data.Dataset``, which some insist on."""
    from torch.utils.data import Dataset

    return type("SyntheticDataset", (SyntheticDataset, Dataset), {})


@dataclass(slots=True)
class Pass(Reading):
    """One iteration over the sampler on one rank."""

    items: list[Item]
    stuck: bool = False
    """It computed for :data:`STUCK` seconds, or ate all memory, before it came to its end."""
    objects: bool = False
    """Its batches are no lists: a dataset must take each as a whole."""
    refused: bool = False
    """Its first item was refused by a statement of the sampler's."""

    slipped: bool = False
    """Its error is one of arithmetic or lookup, by which nobody refuses anything."""
    unanswered: str | None = None
    """What it wanted of the synthetic dataset, which does not have it."""


@dataclass(slots=True)
class RankTrace(Rank):
    """What one rank did: built its sampler and read it epoch after epoch."""

    passes: list[Pass] = field(default_factory=list)
    knows_rank: bool = False
    """It was told its rank, or asked for it."""
    asked: frozenset[str] = frozenset()
    route: str = "none"
    """Where ``set_epoch`` is: ``direct``, an attribute such as ``sampler``, or ``none``."""
    batches: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)
    """:data:`DECLARED` of it, or of what it wraps."""
    own: dict[str, Any] = field(default_factory=dict)
    """``batch_size`` and ``drop_last`` of the sampler itself."""
    once: str = ""
    """What it raised of its own when it was iterated a second time; later passes are none."""
    reopened_empty: bool = False
    """An endless sampler that was left, and then yielded nothing."""
    random_state: dict[str, int] = field(default_factory=dict)
    """A digest of each global generator at the end, where the ranks' differed."""
    collectives: frozenset[str] = frozenset()
    """Collectives it ran whose result a simulated rank cannot know."""

    @property
    def stuck(self) -> bool:
        """It had to be interrupted."""
        return any(one.stuck for one in self.passes)


Factory = Callable[[Case], Any]
Tell = Callable[[Any, int], object]


def _no_sampler(built: Any) -> str | None:
    """What speaks against it being a sampler: nobody goes over it, or it is a text."""
    cls = type(built)
    if isinstance(built, (str, bytes)) or not (
        hasattr(cls, "__iter__") or hasattr(cls, "__getitem__")
    ):
        return f"it gives an object of `{cls.__name__}`, which is no sampler"
    return None


def _is_raised_by(sampler: Any, place: TracebackType | None) -> bool:
    """Whether a method of the sampler, or of one in it, raised there: by no accident.

    An ``assert`` raises, too.
    """
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    frame = place.tb_frame
    operation = dis.opname[frame.f_code.co_code[place.tb_lasti]]
    at = frame.f_locals.get("self")
    return operation == "RAISE_VARARGS" and any(one is at for _, one in inner_samplers(sampler))


def plain(item: Any) -> Item:
    """An item as an index or a list of indices: tensors and arrays become numbers.

    A tuple in a batch is an index and what goes with it.
    """
    if isinstance(item, (int, str)):
        return item
    if hasattr(item, "tolist"):
        return item.tolist()
    if hasattr(item, "__index__"):
        return item.__index__()
    if isinstance(item, (list, tuple)):
        return [plain(key_of(one)) for one in item]
    return item


def key_of(item: Any) -> Any:
    """The index of what a batch holds: in a tuple, the first number that is no flag."""
    if not isinstance(item, tuple) or not item:
        return item
    numbers = (one for one in item if hasattr(type(one), "__index__") and not _is_flag(one))
    return next(numbers, item[0])


def _is_flag(thing: Any) -> bool:
    return type(thing).__name__ in {"bool", "bool_"}  # the latter is numpy's, which may be missing


def inner_samplers(sampler: Any) -> Iterator[tuple[str, Any]]:
    """The sampler and those it wraps, the outermost first, with the path to each."""
    path: list[str] = []
    seen: set[int] = set()
    while sampler is not None and id(sampler) not in seen and not isinstance(sampler, (list, dict)):
        seen.add(id(sampler))
        yield ".".join(path), sampler
        for name in INNER:
            inner = getattr(sampler, name, None)
            if inner is not None and hasattr(inner, "__iter__"):
                path.append(name)
                sampler = inner
                break
        else:
            return


def tell_epoch(sampler: Any, epoch: int) -> str:
    """Call ``set_epoch`` where a right training loop would; the route it took."""
    for path, one in inner_samplers(sampler):
        set_epoch = getattr(one, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)
            return path or "direct"
    return "none"


class Simulator:
    """Builds and reads samplers as the ranks of a world would."""

    def __init__(
        self, factory: Factory, *, tell: Tell = tell_epoch, index: Callable[[Any], Any] = plain
    ) -> None:
        """``tell`` is how the loop says the epoch; ``index`` turns what is yielded to indices."""
        self._factory = factory
        self._tell = tell
        self.index = index
        self.endless = False
        """It was seen to yield for ever: more of it than is judged tells nothing."""
        self._group = _Group()

    def world(
        self,
        setting: Setting,
        epochs: int | Sequence[int],
        *,
        ranks: Sequence[int] | None = None,
        apart: bool = False,
        until: float = math.inf,
    ) -> list[RankTrace]:
        """The traces of all ranks (or of ``ranks``) through ``epochs``; up to one that is stuck.

        ``apart``: the global generators of the ranks are in different states, as in a program
        that seeds each rank for itself, or not at all. After the time ``until`` of the monotonic
        clock no further rank is begun.
        """
        numbers = range(epochs) if isinstance(epochs, int) else epochs
        which = range(setting.world_size) if ranks is None else ranks
        self._group = _Group()
        traces: list[RankTrace] = []
        with _kept_state(), self._group.patched():
            for rank in which:
                if traces and time.monotonic() > until:
                    break
                traces.append(self._trace(setting, rank, numbers, apart))
                if traces[-1].stuck:
                    break  # the others would only take as long
        return traces

    def loaded(
        self,
        setting: Setting,
        make: Callable[[Callable[[], Any], Case], Any],
        *,
        batches: bool,
        objects: bool,
    ) -> list[RankTrace]:
        """The traces of all ranks through a loader: ``make`` gets a function that builds the
        user's sampler, the case, and builds the loader. ``objects``: it yields what the
        sampler yields.
        """
        read = self.index if objects else plain
        self._group = _Group()
        traces = []
        with _kept_state(), self._group.patched():
            for rank in range(setting.world_size):
                case = Case(setting, rank)
                with self._as_rank(setting, rank):
                    _seed_all(setting.seed)
                    trace = RankTrace(rank, asked=frozenset({"batch_size"}), batches=batches)
                    current = Pass([])
                    limit = ENDLESS + ENDLESS_FACTOR * setting.size
                    try:
                        with _limited():
                            loader = make(functools.partial(self._factory, case), case)
                            for item in itertools.islice(iter(loader), limit):
                                current.items.append(read(item))
                    except _StuckError:
                        current.error, current.stuck = "does not end", True
                    except Exception as error:
                        current.error = f"raises {_one_line(error)}"
                    if len(current.items) >= limit:
                        current.error = "does not end"
                    trace.passes.append(current)
                    trace.asked |= case.asked
                    traces.append(trace)
                if current.stuck:
                    break
        return traces

    def resumed(self, setting: Setting, rank: int, after: int) -> list[tuple[list[Item], ...]]:
        """What is left after ``after`` items of epoch 1, and epoch 2: of the run that goes on, and
        of a fresh sampler with the state from there. Empty when there is no ``state_dict``.

        Raises:
            Exception: whatever the sampler raises.
        """
        self._group = _Group()
        with _kept_state(), self._group.patched(), self._as_rank(setting, rank):
            _seed_all(setting.seed)
            sampler = self._factory(Case(setting, rank))
            if not (hasattr(sampler, "state_dict") and hasattr(sampler, "load_state_dict")):
                return []
            self._tell(sampler, 0)
            self._rest(iter(sampler))
            self._tell(sampler, 1)
            iterator = iter(sampler)
            for _ in itertools.islice(iterator, after):
                pass
            state = copy.deepcopy(sampler.state_dict())  # as a file would keep it
            left = self._rest(iterator)
            self._tell(sampler, 2)
            whole = left, self._rest(iter(sampler))
            _seed_all(setting.seed)
            fresh = self._factory(Case(setting, rank))
            self._tell(fresh, 1)
            fresh.load_state_dict(state)
            rest = self._rest(iter(fresh))
            self._tell(fresh, 2)
            return [whole, (rest, self._rest(iter(fresh)))]

    def _rest(self, iterator: Iterator[Any]) -> list[Item]:
        return [self.index(item) for item in itertools.islice(iterator, ENDLESS)]

    # -- one rank

    def _trace(self, setting: Setting, rank: int, epochs: Sequence[int], apart: bool) -> RankTrace:
        trace = RankTrace(rank)
        case = Case(setting, rank)
        with self._as_rank(setting, rank) as notes:
            _seed_all(setting.seed if not apart else 7919 * (rank + 1) + setting.seed)
            try:
                with _limited():
                    sampler = self._factory(case)
            except MemoryError:
                trace.passes.append(Pass([], error="takes all memory", stuck=True))
            except _StuckError:
                problem = f"is not built within {STUCK:g} s of computing"
                trace.passes.append(Pass([], error=problem, stuck=True))
            except Exception as error:
                trace.refusal = _unanswered(error) or _one_line(error)
            else:
                trace.refusal = _no_sampler(sampler)
                if trace.refusal is None:
                    self._read(sampler, setting, epochs, trace)
            if apart:
                trace.random_state = _random_states()
        trace.asked = frozenset(case.asked)
        trace.knows_rank = "rank" in case.asked or "rank" in notes
        trace.collectives = frozenset(notes & {*_COLLECTIVES})
        return trace

    def _read(
        self, sampler: Any, setting: Setting, epochs: Sequence[int], trace: RankTrace
    ) -> None:
        for epoch in epochs:
            try:
                told = self._tell(sampler, epoch)
                current = self._pass(sampler, setting, len(epochs))
            except Exception as error:
                trace.passes.append(Pass([], error=f"raises {_one_line(error)}"))
                break
            if current.unanswered:
                trace.refusal = current.unanswered
                break
            if trace.passes and current.refused:
                trace.once = (current.error or "").removeprefix("raises ")
                break
            if isinstance(told, str):
                trace.route = told
            current.number = len(trace.passes)
            trace.passes.append(current)
            if current.error or current.stuck:
                break
            if current.endless:
                self._unroll(sampler, current, setting, epochs, trace)
                break
        trace.batches = any(isinstance(i, list) for one in trace.passes for i in one.items[:1])
        for _, one in inner_samplers(sampler):
            for name in DECLARED:
                value = _quiet(one, name)
                if isinstance(value, (bool, int)):
                    trace.attributes.setdefault(name, value)
        trace.own = {name: _quiet(sampler, name) for name in ("batch_size", "drop_last")}

    def _pass(self, sampler: Any, setting: Setting, epochs: int) -> Pass:
        current = Pass([])
        try:
            current.claimed = len(sampler)
        except (TypeError, NotImplementedError):
            pass  # it has no length, or hands the question on to something that has none
        except Exception as error:
            current.length_error = _one_line(error)
        limit = ENDLESS + ENDLESS_FACTOR * setting.size
        if self.endless:
            claimed = current.claimed or 0  # what it will not reach cannot be judged
            limit = min(limit, max(claimed if claimed < limit else 0, epochs * _share(setting)) + 1)
        try:
            with _limited():
                for item in itertools.islice(iter(sampler), limit):
                    current.items.append(self.index(item))
                    if len(current.items) == 1:
                        known = isinstance(item, (list, tuple)) or hasattr(item, "tolist")
                        current.objects = isinstance(current.items[0], list) and not known
        except _StuckError:
            current.stuck = True
            if setting.size:
                current.error = f"does not end within {STUCK:g} s of computing"
            else:  # of nothing, an endless stream can make nothing
                current.endless = True
        except Exception as error:
            current.unanswered = _unanswered(error)
            current.refused = not current.items and _is_raised_by(sampler, error.__traceback__)
            current.slipped = isinstance(error, (ArithmeticError, LookupError))
            current.error = f"raises {_one_line(error)}"
            current.stuck = isinstance(error, MemoryError)
        current.endless |= len(current.items) >= limit
        return current

    def _unroll(
        self,
        sampler: Any,
        current: Pass,
        setting: Setting,
        epochs: Sequence[int],
        trace: RankTrace,
    ) -> None:
        """Cut an endless stream into passes of one rank's share each, told the epoch before it."""
        share = _share(setting)
        if isinstance(current.items[0], list):
            share = max(1, share // max(1, current.largest))
        every = [
            current.items[number * share : (number + 1) * share] for number in range(len(epochs))
        ]
        with contextlib.suppress(Exception):
            stream = iter(sampler)
            if trace.route != "none":
                told = [self._next(sampler, stream, epoch, share) for epoch in epochs]
                every = told if told[0] and len(told[-1]) == share else every
            trace.reopened_empty = next(stream, None) is None
        trace.passes = [
            Pass(items, number, taken=len(current.items), endless=True, claimed=current.claimed)
            for number, items in enumerate(every)
        ]

    def _next(self, sampler: Any, stream: Iterator[Any], epoch: int, share: int) -> list[Item]:
        self._tell(sampler, epoch)
        return [self.index(item) for item in itertools.islice(stream, share)]

    @contextlib.contextmanager
    def _as_rank(self, setting: Setting, rank: int) -> Iterator[set[str]]:
        """``torch.distributed`` and the environment speak of this rank; what was asked of them."""
        size = setting.world_size
        os.environ.update(dict(zip(_ENVIRONMENT, map(str, (rank, rank, size, size)), strict=True)))
        with self._group.of(rank, size) as notes:
            yield notes


class _StuckError(BaseException):
    """Raised in code that computes for too long; no ``except Exception`` may swallow it."""


#: In the names of the files of coverage.py, which traces every line that runs.
_MEASURING = f"{os.sep}coverage{os.sep}"


def _imports(frame: FrameType | None) -> int:
    """How many imports are under way."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_name == "_find_and_load"
        frame = frame.f_back
    return count


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise :class:`_StuckError` after :data:`STUCK` seconds of computing, imports apart.

    Only the main thread of a Unix process can be interrupted; elsewhere there is no limit. The
    clock of computing is free in most programs, and waits while others use the machine.
    """
    usable = threading.current_thread() is threading.main_thread()
    clocks: list[tuple[int, int, float]] = []
    if usable and hasattr(signal, "setitimer"):
        clocks = [(signal.ITIMER_PROF, signal.SIGPROF, STUCK)]
        if ASLEEP:
            clocks.append((signal.ITIMER_REAL, signal.SIGALRM, ASLEEP))
        clocks = [one for one in clocks if not signal.getitimer(one[0])[0]]

    clock_of = {number: clock for clock, number, _ in clocks}
    imports = _imports(sys._getframe())

    def interrupt(number: int, frame: FrameType | None) -> None:
        if frame is not None and _MEASURING in frame.f_code.co_filename:
            # It may hold its lock, for which it would wait for ever once thrown out.
            signal.setitimer(clock_of[number], 0.001)
        elif _imports(frame) > imports:
            # A framework takes seconds to import, once, which is not the sampler's doing.
            signal.setitimer(clock_of[number], STUCK)
        else:
            raise _StuckError

    before = {number: signal.signal(number, interrupt) for _, number, _ in clocks}
    for clock, _, seconds in clocks:
        signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        for clock, number, _ in clocks:
            signal.setitimer(clock, 0)
            signal.signal(number, before[number])


@contextlib.contextmanager
def _kept_state() -> Iterator[None]:
    """Leave environment, generators and process group as they were."""
    torch: Any = sys.modules["torch"]
    numpy: Any = sys.modules.get("numpy.random")
    states = random.getstate(), torch.get_rng_state(), numpy.get_state() if numpy else None
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is not None and c10d.GroupMember.WORLD is not None:
        raise RuntimeError("check_sampler simulates the ranks; destroy the process group first")
    # A process group puts its rank before every line of a traceback.
    with mock.patch.dict(os.environ), mock.patch.object(sys, "excepthook", sys.excepthook):
        try:
            yield
        finally:
            random.setstate(states[0])
            torch.set_rng_state(states[1])
            if numpy:
                numpy.set_state(states[2])


class _Group:
    """A process group of torch's own ``fake`` backend, in which broadcasts from rank 0 arrive."""

    def __init__(self) -> None:
        self.notes: set[str] = set()
        self._tape: list[Any] = []
        self._rank = self._position = 0

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Hear who asks torch.distributed for a rank, and answer broadcasts."""
        c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
        if c10d is None:  # a torch without torch.distributed: nobody can ask
            yield
            return
        dist: Any = sys.modules["torch.distributed"]
        ask = c10d._get_default_group

        def asked() -> Any:
            self.notes.add("rank")
            return ask()

        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(c10d, "_get_default_group", asked))
            for module in (c10d, dist):
                for name in {*_REPLAYED, *_COLLECTIVES} & {*vars(module)}:
                    original = getattr(module, name)
                    new = self._replayed if name in _REPLAYED else self._noting(name, original)
                    stack.enter_context(mock.patch.object(module, name, new))
            yield

    @contextlib.contextmanager
    def of(self, rank: int, size: int) -> Iterator[set[str]]:
        """``torch.distributed`` says that this is ``rank`` of ``size``; what it was asked."""
        self._rank, self._position = rank, 0
        notes: set[str] = set()
        self.notes = notes
        try:
            from torch.testing._internal.distributed.fake_pg import FakeStore
        except ImportError:
            yield notes
            return
        dist: Any = sys.modules["torch.distributed"]
        dist.init_process_group("fake", rank=rank, world_size=size, store=FakeStore())
        self.notes.clear()
        try:
            yield notes
        finally:
            with contextlib.suppress(Exception):  # the program may have ended it
                dist.destroy_process_group()

    def _replayed(self, value: Any, *_: Any, **__: Any) -> None:
        """A broadcast: what rank 0 sent at this point."""
        number, self._position = self._position, self._position + 1
        if self._rank == 0:
            self._tape.append(value.clone() if hasattr(value, "clone") else list(value))
        elif number < len(self._tape):
            if hasattr(value, "copy_"):
                value.copy_(self._tape[number])
            else:
                value[:] = self._tape[number]

    def _noting(self, name: str, original: Any) -> Any:
        def collective(*args: Any, **kwargs: Any) -> Any:
            self.notes.add(name)
            return original(*args, **kwargs)

        return collective


def _share(setting: Setting) -> int:
    """How many samples there are for each rank."""
    return max(1, -(-setting.size // setting.world_size))


def _seed_all(seed: int) -> None:
    torch: Any = sys.modules["torch"]
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    numpy: Any = sys.modules.get("numpy.random")
    if numpy:
        numpy.seed(seed)


def _random_states() -> dict[str, int]:
    torch: Any = sys.modules["torch"]
    numpy: Any = sys.modules.get("numpy.random")
    states = {
        "random": hash(random.getstate()),
        "torch": hash(tuple(torch.get_rng_state().view(torch.int64).tolist())),
    }
    if numpy:
        states["numpy"] = hash((numpy.get_state()[1].tobytes(), numpy.get_state()[2]))
    return states


def _quiet(sampler: Any, name: str) -> Any:
    """An attribute that may be a property which raises."""
    with contextlib.suppress(Exception):
        return getattr(sampler, name, None)
    return None


_SYNTHETIC = (SyntheticDataset, MadeUpSample)
#: Samplers that were made up to be wrapped.
_MADE_UP: Any = weakref.WeakSet()


def made_up(sampler: Any) -> Any:
    """A sampler that nobody gave: what it lacks is not the fault of what wraps it."""
    _MADE_UP.add(sampler)
    return sampler


def _unanswered(error: Exception) -> str | None:
    """What an error says that the class, or the synthetic dataset, lacks; None if it says other."""
    if isinstance(error, NotImplementedError):
        return f"it is abstract ({_one_line(error)})"
    text = str(error)
    if isinstance(error, AttributeError):
        lacks = isinstance(error.obj, _SYNTHETIC) or any(error.obj is one for one in _MADE_UP)
    else:
        lacks = isinstance(error, TypeError) and any(one.__name__ in text for one in _SYNTHETIC)
    if lacks:
        return (
            f"what it is tried with is not enough for it ({text}); "
            "write a function that builds it of data of yours"
        )
    return None


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
