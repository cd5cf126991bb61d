"""The recorder: what every rank's loaders really yielded, noted from outside.

It changes nothing: no iteration, no random draw, no attribute on the user's objects; if it
fails, it falls silent and says so in its log.

Each process leaves two files, ``<host>.rank<RANK>.<pid>.jsonl`` and the same with ``.tape``.
The first has a JSON object a line for what happens rarely: loaders, passes, ``set_epoch`` calls.
The second (:mod:`.tape`) costs a few microseconds a batch, and a rank that is killed or leaves
through ``os._exit`` leaves everything it did. Both are read by :mod:`sampler_lint.harness.runs`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import sys
import sysconfig
import time
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from types import FrameType, ModuleType
from typing import Any

from . import draws
from .collectives import SUMS, patch_collectives
from .content import LOOKED_AT, checksum, largest
from .learning import (
    Learning,
    averaged_by,
    averaged_on_mesh,
    patch_optimizers,
    patch_saving,
    patch_schedules,
    patch_wrapper,
)
from .log import KEEP_ALL, Log
from .objects import (
    HERE,
    Numbers,
    asks_for_rank,
    attribute,
    base_dataset,
    caller,
    chain,
    class_name,
    draws_an_order,
    epoch_sampler,
    is_of_another,
    is_users,
    layers,
    length_of,
    mark,
    numbers_in,
    of_module,
    plain,
    self_of,
    shuffles_itself,
)
from .passes import Pass
from .sampling import KEPT_PER_PASS, KEPT_PER_PROCESS, is_sampled, one_in
from .tape import LOADER_ENDED, SAMPLER_ENDED


class Recorder(Log):
    """Notes the loaders, passes and ``set_epoch`` calls of this process."""

    def __init__(self) -> None:
        super().__init__()
        # torch itself may still be half imported: ``torch.utils`` is no attribute of it yet.
        self._torch: Any = sys.modules["torch"]
        self.data: Any = sys.modules["torch.utils.data"]
        self._at_first = dict(draws.unseeded_states())
        self.libraries = tuple(
            os.path.join(os.path.realpath(path), "")
            for path in (
                os.path.dirname(str(self._torch.__file__)),
                sysconfig.get_paths()["stdlib"],
            )
        )
        dataloader: Any = importlib.import_module("torch.utils.data.dataloader")
        self._at_once: type[Any] = dataloader._SingleProcessDataLoaderIter
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.start)
        atexit.register(self.guarded, self.note_exit)

    def start(self) -> None:
        """Begin with nothing seen, in this process; a forked one starts its own log."""
        current = getattr(self, "current", None)
        self.before_fork = (current, self.draws) if current else None
        super().start()
        self.learning = Learning(self.note)
        self._numbers = Numbers()
        self._rank: tuple[int, int] | None = None
        self._groups: list[tuple[int, ...]] = []
        #: Of each loader that was noted, what its indices come from.
        self._loaders: dict[int, list[int]] = {}
        #: How many passes have begun.
        self.begun = 0
        self._looked_into: Counter[int] = Counter()
        #: How many passes have begun at each line.
        self._passes: Counter[tuple[str, int]] = Counter()
        self._in_set_epoch: set[int] = set()
        #: The passes that may still go on, by their numbers.
        self._live: Any = weakref.WeakValueDictionary()
        #: How often wrapped models were called.
        self.called = 0
        #: How many more sums to look at: some after each loader, until gradients are computed.
        self.counting = 0
        #: The pass that began last, and the last whose gradients were noted as thrown away.
        self.last: Pass | None = None
        self._dropped: Pass | None = None
        #: The loader and the pass that began last, for the workers that are forked then.
        self.current: tuple[int, int] | None = None
        self._fetchers = 0

    def record_in(self, directory: str) -> None:
        """Leave the records in ``directory`` from now on."""
        self.directory = directory
        self.keep_all = os.environ.get(KEEP_ALL) == "1"
        if "RANK" in os.environ:  # a rank is known even if it never gets as far as a loader
            self.guarded(self.note_rank)

    # -- the process

    def note_rank(self) -> None:
        """Note rank and world size, and this rank's process groups, when they are news."""
        dist: Any = sys.modules.get("torch.distributed")
        if dist is not None and dist.is_available() and dist.is_initialized():
            rank = (int(dist.get_rank()), int(dist.get_world_size()))
            self._note_groups(rank[1])
        elif self._rank is not None:
            return  # the group is gone: the rank it had still is this process's
        else:
            rank = (int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))
        if rank != self._rank:
            self._rank = rank
            self.note("rank", rank=rank[0], world_size=rank[1])

    def _note_groups(self, world_size: int) -> None:
        """Note the process groups smaller than the world (tensor parallelism …)."""
        c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
        groups = getattr(getattr(c10d, "_world", None), "pg_group_ranks", {})
        ranks = sorted({tuple(sorted(one)) for one in groups.values() if len(one) < world_size})
        if ranks != self._groups:
            self._groups = ranks
            self.note("groups", ranks=ranks)

    def note_exit(self) -> None:
        """Note that the program has come to its end, and what ended it."""
        if self.file is None:
            return
        error = getattr(sys, "last_value", None)
        self.note_zeroed()
        done: dict[str, Any] = {"backwards": self.backwards, "steps": self.learning.taken}
        if error is None:
            self.note("exit", error=None, path=None, line=None, **done)
            return
        done["within"] = [
            (os.path.abspath(frame.f_code.co_filename), line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if self.is_users(frame.f_code.co_filename)
        ]
        place: tuple[str | None, int] = done["within"][-1] if done["within"] else (None, 0)
        if isinstance(error, SyntaxError) and error.filename and place[0] is None:
            place = (error.filename, error.lineno or 0)
        text = " ".join(str(error).split())[:300]
        name = type(error).__name__
        message = f"{name}: {text}" if text else name
        self.note("exit", error=message, path=place[0], line=place[1], **done)

    # -- loaders

    def built(self, loader: Any) -> int:
        """Note a loader when it is new; its number."""
        number = self._numbers.of(loader)
        if number in self._loaders:
            return number
        self.note_rank()
        path, line = self._place(loader)
        dataset, subset = base_dataset(self.data.Subset, loader.dataset, KEPT_PER_PASS)
        iterable = isinstance(loader.dataset, self.data.IterableDataset)
        index_sampler = None if iterable else loader._index_sampler
        makers = self._makers(loader)
        self.note(
            "loader",
            loader=number,
            makers=[self._numbers.of(maker) for maker in makers],
            path=path,
            line=line,
            cls=class_name(loader),
            dataset=self._numbers.of(loader.dataset),
            dataset_cls=class_name(dataset),
            dataset_length=self._untouched(lambda: len(dataset))[0],
            mark=mark(dataset),
            subset=subset,
            iterable=iterable,
            batch_size=plain(loader.batch_size),
            drop_last=self._drops(loader),
            own_iterator=type(loader).__iter__ is not self.data.DataLoader.__iter__,
            users_dataset=self.is_users(_file_of(type(loader.dataset))),
            shuffles=shuffles_itself(loader.dataset),
            sources=self._sources(loader.dataset) if iterable else [],
            workers=loader.num_workers,
            lasting=loader.num_workers > 0 and loader.persistent_workers,
            own_batch_sampler=loader.batch_size is None and loader.batch_sampler is not None,
            **self._indices(number, index_sampler, loader.dataset),
        )
        for thing in (loader, loader.dataset, *makers):
            self.watch(type(thing))
        return number

    def _indices(self, number: int, sampler: Any, dataset: Any) -> dict[str, Any]:
        """What a loader's indices come from."""
        every, most = [*chain(sampler)], KEPT_PER_PASS
        self._loaders[number] = [self._numbers.of(one) for one in every]
        for one in every:
            self.watch(type(one))
        return {
            "samplers": self._samplers(sampler),
            "shuffling": self._shuffling(sampler),
            "elsewhere": bool(every) and is_of_another(self.data, every[-1], dataset, most),
        }

    def _note_changed(self, loader: Any, number: int) -> None:
        """Note it when a loader has got other samplers since it was built."""
        if not isinstance(loader.dataset, self.data.IterableDataset):
            sampler = loader._index_sampler
            if self._loaders[number] != [self._numbers.of(one) for one in chain(sampler)]:
                indices = self._indices(number, sampler, loader.dataset)
                self.note("samplers", loader=number, **indices)

    def _makers(self, loader: Any) -> list[Any]:
        """The libraries' objects that build the loader and take ``set_epoch`` for it."""
        makers: list[Any] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not self.is_users(frame.f_code.co_filename):
            maker = self_of(frame)
            takes = callable(getattr(type(maker), "set_epoch", None))
            if takes and maker is not loader and not any(maker is one for one in makers):
                makers.append(maker)
            frame = frame.f_back
        return makers

    def _drops(self, loader: Any) -> bool | None:
        """Whether the loader's tail may be dropped, as far as its attributes tell."""
        attributes = [loader, *chain(loader.batch_sampler), *chain(loader.sampler)]
        values = [attribute(one, "drop_last") for one in attributes]
        known = [value for value in values if isinstance(value, bool)]
        return any(known) if known else None

    def _samplers(self, sampler: Any) -> list[dict[str, Any]]:
        """What the loader reads its indices from, the outermost first."""
        return [
            {
                "object": self._numbers.of(one),
                "cls": class_name(one),
                "module": type(one).__module__,
                "set_epoch": callable(getattr(type(one), "set_epoch", None)),
                "asks": asks_for_rank(type(one)),
                "shuffles": shuffles_itself(one) or (type(one) is list and self._made_at_random()),
                "values": numbers_in(of_module(type(one)), getattr(one, "__dict__", {})),
            }
            for one in chain(sampler)
        ]

    def _shuffling(self, sampler: Any) -> bool | None:
        """Whether the order is meant to be random; None when nothing says so."""
        data = self.data
        unknown = False
        for one in chain(sampler):
            shuffle = attribute(one, "shuffle")
            if isinstance(shuffle, bool):
                return None if unknown and not shuffle else shuffle
            unknown = unknown or callable(getattr(one, "set_epoch", None))
            if isinstance(
                one, (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)
            ):
                return True
            if type(one) is data.SequentialSampler:
                return None if unknown else False
        return None

    def _sources(self, dataset: Any) -> list[dict[str, Any]]:
        """A stream and those in it, the outermost first: what they know of ranks."""
        return [
            {
                "cls": class_name(one),
                "asks": asks_for_rank(type(one)),
                "sampler": epoch_sampler(one),
                "values": numbers_in(
                    *map(vars, filter(is_dataclass, getattr(one, "__dict__", {}).values())),
                    of_module(type(one)),
                    getattr(one, "__dict__", {}),
                ),
            }
            for one in layers(dataset)
        ]

    def _made_at_random(self) -> bool:
        """Whether the user's function at work draws an order."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not self.is_users(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None and draws_an_order(frame)

    def is_users(self, path: str) -> bool:
        """Whether a file is no library's, as far as its path tells."""
        ours = path.startswith(HERE)
        return is_users(path) and not ours and not os.path.realpath(path).startswith(self.libraries)

    def _place(self, loader: Any = None) -> tuple[str, int]:
        """File and line at work: the first frame of the user's own code.

        Methods of ``loader`` itself are passed over: a subclass's constructor is not the place.
        """
        frame: FrameType | None = sys._getframe(1)
        library: tuple[str, int] | None = None
        while frame is not None:
            path = frame.f_code.co_filename
            if loader is None or self_of(frame) is not loader:
                if self.is_users(path):
                    return os.path.abspath(path), frame.f_lineno
                if not path.startswith(("<", HERE, *self.libraries)):
                    library = library or (path, frame.f_lineno)
            frame = frame.f_back
        return library or ("<unknown>", 0)

    # -- passes

    def begin(self, loader: Any, iterator: Any) -> Pass:
        """Note that ``loader`` starts to yield its data."""
        number = self.built(loader)
        self._note_changed(loader, number)
        self.note_rank()
        length, error = self._claimed(loader)
        sampler_length = None
        if type(loader.batch_sampler) is self.data.BatchSampler:
            inner = loader.batch_sampler.sampler
            sampler_length = self._untouched(lambda: len(inner))[0]
        path, line = self._place(loader)
        size = self._untouched(lambda: len(loader.dataset))[0] or 0
        every = 1 if self.keep_all else one_in(size)
        self._passes[path, line] += 1
        keep = self.keep_all or (
            not self.full and (self.kept < KEPT_PER_PROCESS or is_sampled(self._passes[path, line]))
        )
        at_once = isinstance(iterator, self._at_once)
        counted_only = isinstance(loader.dataset, self.data.IterableDataset)
        batches, of_stream, passes = LOOKED_AT
        looks = of_stream if counted_only else batches
        looks = looks if self._looked_into[number] < passes else 0
        self._looked_into[number] += 1
        started = Pass(self, self.begun, loader, every, keep, at_once, counted_only, looks)
        self.current = number, self.begun
        self.last = self._live[self.begun] = started
        self.begun += 1
        self.totals[0] += 1
        self.counting = SUMS
        self.note(
            "pass",
            number=started.number,
            loader=number,
            length=length,
            length_error=error,
            sampler_length=sampler_length,
            mark=mark(loader.dataset),
            grad=self._torch.is_grad_enabled(),
            one_in=every,
            dataset_values=_numbers_of(loader.dataset),
            random=next(draws.held(loader.dataset), None) is not None,
            steps=self.learning.taken,
            path=path,
            line=line,
        )
        if looks:
            self._note_generators(started.number, chain(loader._index_sampler))
        return started

    def _note_generators(self, number: int, samplers: Iterable[Any]) -> None:
        """Note from which states of random generators a pass sets out.

        One that nobody has seeded or drawn from is as the process got it.
        """
        states = {
            name: state
            for name, state in draws.global_states()
            if name == "torch" or state != self._at_first.setdefault(name, state)
        }
        for one in samplers:
            own = draws.held_states(one)
            states |= {f"{class_name(one)}.{name}": state for name, state in own}
        self.note("generators", number=number, seed=self._torch.initial_seed(), states=states)

    def _claimed(self, loader: Any) -> tuple[int | None, str | None]:
        """The number of batches the loader says it has.

        ``len(loader)`` itself would make torch warn about an iterable dataset's length later.
        """
        if not isinstance(loader.dataset, self.data.IterableDataset):
            return self._untouched(lambda: len(loader))
        length, error = self._untouched(lambda: len(loader.dataset))
        if length is not None and loader.batch_size is not None:
            length = (length if loader.drop_last else length + loader.batch_size - 1) // (
                loader.batch_size
            )
        return length, error

    def _untouched(self, ask: Callable[[], int]) -> tuple[int | None, str | None]:
        """Ask for a length with every global random generator left as it was."""
        numpy: Any = sys.modules.get("numpy.random")
        states = (random.getstate(), self._torch.get_rng_state())
        numpy_state = numpy.get_state() if numpy else None
        try:
            return length_of(ask)
        finally:
            random.setstate(states[0])
            self._torch.set_rng_state(states[1])
            if numpy:
                numpy.set_state(numpy_state)

    # -- set_epoch

    def watch(self, cls: type) -> None:
        """Note every call of ``set_epoch`` and ``load_state_dict`` on instances of ``cls``."""
        for base in cls.__mro__:
            for name, watched in (("set_epoch", self._watched), ("load_state_dict", self._loads)):
                function = vars(base).get(name)
                if callable(function) and not hasattr(function, "__sampler_lint__"):
                    with contextlib.suppress(TypeError, AttributeError):  # a class that is closed
                        setattr(base, name, watched(function))

    def _loads(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def load_state_dict(thing: Any, *args: Any, **kwargs: Any) -> Any:
            self.guarded(lambda: self.note("loaded", object=self._numbers.of(thing)))
            return function(thing, *args, **kwargs)

        load_state_dict.__sampler_lint__ = True  # type: ignore[attr-defined]
        return load_state_dict

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def set_epoch(sampler: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = id(sampler) not in self._in_set_epoch
            if outermost:
                self._in_set_epoch.add(id(sampler))
                self.guarded(self._note_epoch, sampler, *args, **kwargs)
            try:
                return function(sampler, *args, **kwargs)
            finally:
                if outermost:
                    self._in_set_epoch.discard(id(sampler))

        set_epoch.__sampler_lint__ = True  # type: ignore[attr-defined]
        return set_epoch

    def _note_epoch(self, sampler: Any, *args: Any, **kwargs: Any) -> None:
        value = next(iter((*args, *kwargs.values())), None)
        path, line = self._place()
        frame = caller()
        self.note(
            "set_epoch",
            direct=frame is not None and self.is_users(frame.f_code.co_filename),
            object=self._numbers.of(sampler),
            cls=class_name(sampler),
            value=plain(value),
            passes=self.begun - (self.last is not None and self.last.waits),
            time=time.time(),
            path=path,
            line=line,
        )

    # -- what becomes of gradients, and of metrics

    def note_zeroed(self) -> None:
        """Note gradients that are thrown away, or left, although no step has used them.

        Only those that were the last when a loader ended: within its loop it may be meant.
        """
        unused, last = self.backwards - self.learning.used, self.last
        if not unused or last is None or last is self._dropped or not self.learning.used:
            return
        # A framework that reads one batch ahead gives the last one after the end.
        ahead = -1 if last.ended_at is None else self.backwards - last.ended_at
        if ahead in (0, 1):
            self._dropped = last
            told = {"backwards": unused, "steps": self.learning.taken, "ahead": ahead}
            self.guarded(self.note, "dropped", number=last.number, **told)

    def note_saved(self, kind: str) -> None:
        """Note that something was saved, and how much each pass had given to learn from by then.

        Passes that are gone have given all that they gave.
        """
        given = self.last.given if self.last is not None else 0
        learned = {number: one.learned for number, one in self._live.items()}
        self.note(kind, steps=self.learning.taken, given=given, learned=learned)

    def note_fetched(self, drew: bool) -> None:
        """Note whether a batch of the pass that began last was fetched with random numbers."""
        if self.last is not None:
            self.guarded(self.note, "fetched", number=self.last.number, drew=drew)

    @property
    def looked(self) -> bool:
        """Whether the program has a batch that was looked into."""
        return self.last is not None and self.last.looked

    def note_fed(self, things: Any) -> None:
        """Note how large a part of the batch a model is given."""
        if self.last is not None:
            self.note("fed", number=self.last.number, size=largest(things))

    def note_inputs(self, things: Any) -> None:
        """Note which inputs a model is given, where there is no loader to tell."""
        if digest := checksum(things):
            path, line = self._place()
            self.note("inputs", number=self.called, digest=digest, path=path, line=line)

    # -- safety

    def guarded(self, action: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do ``action`` if this process is recorded; the program never sees it fail.

        A loader's worker process reads data, too; what it does with loaders of its own is not
        what the rank yields.
        """
        try:
            if self.data.get_worker_info() is None:
                return action(*args, **kwargs)
        except Exception as error:
            self.failed(error)
        return None

    def in_worker(self, fetcher: Any, worker: int) -> None:
        """Note what a worker of ours draws at random; ``start`` has forgotten what it was."""
        if self.before_fork is None:
            return
        (loader, number), path = self.before_fork
        about = {"loader": loader, "number": number + self._fetchers, "worker": worker}
        self._fetchers += 1
        draws.watch(fetcher, path, about)

    # -- torch

    def patch(self) -> None:
        """Put the recorder between torch's loaders and their index samplers."""
        dataloader = importlib.import_module("torch.utils.data.dataloader")
        sampler = importlib.import_module("torch.utils.data.sampler").Sampler
        distributed = importlib.import_module("torch.utils.data.distributed").DistributedSampler
        iterator = dataloader._BaseDataLoaderIter
        recorder = self

        @_around(dataloader.DataLoader, "__init__")
        def build(original: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            recorder.guarded(recorder.built, loader)

        @_around(iterator, "__init__")
        def start(original: Any, self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            self._sampler_lint = recorder.guarded(recorder.begin, loader, self)
            original(self, loader, *args, **kwargs)

        @_around(iterator, "_reset")
        def reset(
            original: Any, self: Any, loader: Any, first_iter: bool = False, *args: Any
        ) -> None:
            if not first_iter:  # persistent workers: the same iterator starts another pass
                self._sampler_lint = recorder.guarded(recorder.begin, loader, self)
            original(self, loader, first_iter, *args)

        # Those that run for every batch are written out, for speed.
        next_index, next_batch = iterator._next_index, iterator.__next__
        iterator._sampler_lint = None

        @functools.wraps(next_index)
        def _next_index(self: Any) -> Any:
            try:
                index = next_index(self)
            except StopIteration:
                if self._sampler_lint is not None:
                    self._sampler_lint.ended(SAMPLER_ENDED)
                raise
            if self._sampler_lint is not None:
                self._sampler_lint.drawn(index)
            return index

        @functools.wraps(next_batch)
        def _next_batch(self: Any) -> Any:
            try:
                batch = next_batch(self)
            except StopIteration:
                if self._sampler_lint is not None:
                    self._sampler_lint.ended(LOADER_ENDED, self)
                raise
            if self._sampler_lint is not None:
                self._sampler_lint.yielded()
                if self._sampler_lint.looks:
                    self._sampler_lint.look(batch)
            return batch

        @functools.wraps(next_batch)
        def _next_batch_at_once(self: Any) -> Any:
            try:
                batch = next_batch(self)
            except BaseException as error:
                if self._sampler_lint is not None:
                    self._sampler_lint.stopped(error, self)
                raise
            if self._sampler_lint is not None and self._sampler_lint.looks:
                self._sampler_lint.look(batch)
            return batch

        iterator._next_index, iterator.__next__ = _next_index, _next_batch
        dataloader._SingleProcessDataLoaderIter.__next__ = _next_batch_at_once

        kinds = dataloader._DatasetKind
        create_fetcher = kinds.create_fetcher

        @functools.wraps(create_fetcher)
        def _create_fetcher(*args: Any, **kwargs: Any) -> Any:
            fetcher = create_fetcher(*args, **kwargs)
            worker = self.data.get_worker_info()
            with contextlib.suppress(Exception):
                if worker is not None:
                    recorder.in_worker(fetcher, worker.id)
                elif recorder.last is not None and recorder.last.looks:
                    draws.watch_fetches(fetcher, recorder.last.looks, recorder.note_fetched)
            return fetcher

        kinds.create_fetcher = staticmethod(_create_fetcher)

        for cls in (distributed, *_subclasses(sampler)):
            self.watch(cls)

        def init_subclass(cls: type[Any], **kwargs: Any) -> None:
            super(sampler, cls).__init_subclass__(**kwargs)
            recorder.guarded(recorder.watch, cls)

        if "__init_subclass__" not in vars(sampler):
            sampler.__init_subclass__ = classmethod(init_subclass)  # type: ignore[arg-type]

    def patch_autograd(self, autograd: Any) -> None:
        """Count backward passes: they tell training from evaluation."""
        original = autograd.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            self.backwards += 1
            self.counting = 0
            return original(*args, **kwargs)

        autograd.backward = backward

    def patch_join(self, join: Any) -> None:
        """Note when the program says that its ranks take different numbers of steps."""

        @_around(join.Join, "__init__")
        def build(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
            recorder.guarded(recorder.note, "join")
            original(self, *args, **kwargs)

        recorder = self


def _file_of(cls: type) -> str:
    """Where the class is from."""
    return str(getattr(sys.modules.get(cls.__module__), "__file__", None) or "<unknown>")


def _numbers_of(thing: Any) -> dict[str, int]:
    """An object's attributes that are numbers."""
    values = getattr(thing, "__dict__", {}).items()
    return {name: value for name, value in values if type(value) is int}


def _around(cls: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replace method ``name`` by the decorated function, which gets the original first."""
    original = getattr(cls, name)

    def decorate(function: Callable[..., Any]) -> None:
        @functools.wraps(original)
        def method(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        setattr(cls, name, method)

    return decorate


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def install(directory: str) -> Recorder:
    """Record this process from now on; ``torch.utils.data`` must be imported.

    Without a directory, only get everything ready for :meth:`Recorder.record_in`.
    """
    recorder = Recorder()
    recorder.patch()
    for name, patch in _LATER.items():
        if name in sys.modules and not getattr(sys.modules[name].__spec__, "_initializing", False):
            patch(recorder, sys.modules[name])
    if directory:
        recorder.record_in(directory)
    return recorder


#: Modules that are imported after ``torch.utils.data``, and what is to be done with them then.
_LATER: dict[str, Callable[[Recorder, Any], None]] = {
    "torch.autograd": Recorder.patch_autograd,
    "torch.distributed.algorithms.join": Recorder.patch_join,
    "torch.optim.optimizer": patch_optimizers,
    "torch.optim.lr_scheduler": patch_schedules,
    "torch.serialization": patch_saving,
    "torch.distributed": patch_collectives,
    "torch.nn.parallel.distributed": patch_wrapper(
        "DistributedDataParallel", averaged_by("process_group")
    ),
    "torch.distributed.fsdp.fully_sharded_data_parallel": patch_wrapper(
        "FullyShardedDataParallel", averaged_by("process_group", "_inter_node_pg")
    ),
    "torch.distributed.fsdp._fully_shard._fsdp_param_group": patch_wrapper(
        "FSDPParamGroup", averaged_on_mesh
    ),
}


class _Finder(importlib.abc.MetaPathFinder):
    """Installs the recorder when the program imports ``torch.utils.data``, not before."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.recorder: Recorder | None = None
        self.awaited = {"torch.utils.data", *_LATER}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The real module's spec, with a loader that installs the recorder after it."""
        if fullname not in self.awaited:
            return None
        self.awaited.discard(fullname)
        if not self.awaited:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                # A torch that is not built as we know it runs unrecorded.
                with contextlib.suppress(Exception):
                    self.imported(fullname, module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def imported(self, name: str, module: ModuleType) -> None:
        """Record what one of the awaited modules brings."""
        if name == "torch.utils.data":
            self.recorder = install(self.directory)
        elif self.recorder is not None:
            _LATER[name](self.recorder, module)


def arm(directory: str) -> None:
    """Record this process from the moment it imports ``torch.utils.data``."""
    sys.meta_path.insert(0, _Finder(directory))
