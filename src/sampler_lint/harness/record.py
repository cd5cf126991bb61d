"""The recorder: what every rank's loaders really handed out, noted from outside.

It runs inside the program under test, which knows nothing of it, so it is bound by two rules.
It stands alone: standard library only, loaded by path, no import from this package. And it
changes nothing: no iteration, no random draw, no attribute on the user's objects; if it fails,
it falls silent and says so in its log.

Each process leaves two files, ``<host>.rank<RANK>.<pid>.jsonl`` and the same with ``.tape``.
The first has a JSON object a line for what happens rarely: loaders, passes, ``set_epoch`` calls.
The second holds the counts of every pass and the indices drawn. It is written through memory,
without a system call, so it costs a few microseconds a batch, and a rank that is killed or
leaves through ``os._exit`` leaves everything it did. Both are read by
:mod:`sampler_lint.harness.runs`.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import errno
import faulthandler
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import json
import mmap
import operator
import os
import random
import signal
import socket
import struct
import sys
import sysconfig
import threading
import time
import traceback
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

#: Where the log goes; set, it also makes ``sitecustomize`` install the recorder.
DIRECTORY = "SAMPLER_LINT_RECORD"

#: Set to 1, every index is kept.
KEEP_ALL = "SAMPLER_LINT_KEEP_ALL"

#: Indices kept for one pass and for a whole process, unless all are asked for. Of a bigger
#: dataset every n-th sample is kept, the same ones on every rank; the rest is counted and hashed.
KEPT_PER_PASS = 10_000
KEPT_PER_PROCESS = 1_000_000

#: Indices at the beginning of a pass that are kept whatever its size.
FIRST = 8

#: Real-time, so that no program has it for something else.
DUMP_SIGNAL = getattr(signal, "SIGRTMIN", 0) and signal.SIGRTMIN + 7

#: The tape grows by as many bytes; a record lies within one such segment.
SEGMENT = 1 << 20

#: What the numbers of a pass on the tape mean. ``ORDER`` is the checksum of the indices if they
#: are not all kept. ``YIELDED`` is below 0 where every batch drawn is yielded at once: -1, and less
#: by one for each that was not.
BATCHES, COUNT, ORDER, YIELDED, ENDS, LEARNED, STATE = range(7)

#: Bits of ``ENDS``: the index sampler has ended, the loader has.
SAMPLER_ENDED, LOADER_ENDED = 1, 2

#: Numbers in the first record of a pass's indices, in each that follows, and at most.
_CHUNKS = (256, 4096, 100_000)

#: The first record of a tape: passes begun, batches yielded, passes ended.
TOTALS = 3


class Tape:
    """An append-only file of 64-bit integers, written through memory.

    A record is a head, a length and as many numbers. The head is -(n + 1) for the numbers of
    pass n, n + 1 for indices that it drew, each batch after its size plus one; 0 ends a segment,
    and the batches of a record.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o600)
        self._size = 0
        self._lock = threading.Lock()
        self._extend()

    def _extend(self) -> None:
        # The blocks are taken now: a disk that fills up must not end the program by SIGBUS.
        try:
            os.posix_fallocate(self._file, self._size, SEGMENT)
        except (AttributeError, OSError) as error:
            if getattr(error, "errno", None) == errno.ENOSPC:
                raise
            os.ftruncate(self._file, self._size + SEGMENT)  # not every file system can
        memory = mmap.mmap(self._file, SEGMENT, offset=self._size)
        self._view = memoryview(memory).cast("q")
        self._size += SEGMENT
        self._next = 0

    def append(self, head: int, values: array.array[int]) -> memoryview[int]:
        """Write a record; where its numbers lie, to be changed in place."""
        count = len(values)
        with self._lock:
            if self._next + count + 2 > len(self._view):
                self._extend()
            begin = self._next + 2
            self._next = end = begin + count
            view = self._view
        view[begin:end] = values
        view[begin - 1] = count
        view[begin - 2] = head  # last: a record without its head is not there
        return view[begin:end]


_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)


def host_name() -> str:
    """This machine's name as it stands in the names of files."""
    return "".join(one if one.isalnum() else "-" for one in socket.gethostname())


def stack_path(directory: str, pid: int | str) -> str:
    """Where a process of this machine writes its stacks."""
    return os.path.join(directory, f"{host_name()}.{pid}.stack")


class Recorder:
    """Notes the loaders, passes and ``set_epoch`` calls of this process."""

    def __init__(self) -> None:
        self.directory = ""
        self.backwards = 0
        # torch itself may still be half imported: ``torch.utils`` is no attribute of it yet.
        self._torch: Any = sys.modules["torch"]
        self._data: Any = sys.modules["torch.utils.data"]
        self._libraries = tuple(
            os.path.join(os.path.realpath(path), "")
            for path in (
                os.path.dirname(str(self._torch.__file__)),
                sysconfig.get_paths()["stdlib"],
            )
        )
        self.keep_all = False
        dataloader: Any = importlib.import_module("torch.utils.data.dataloader")
        self._at_once: type[Any] = dataloader._SingleProcessDataLoaderIter
        self._start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start)
        atexit.register(self.guarded, self._note_exit)

    def _start(self) -> None:
        """Begin with nothing seen, in this process; a forked one starts its own log."""
        self._file: int | None = None
        self._tried = False
        self._stack: int | None = None
        self.tape: Tape | None = None
        self.totals: Any = None
        self._numbers = _Numbers()
        self._rank: tuple[int, int] | None = None
        self._groups: list[int] = []
        self._loaders: set[int] = set()
        self._passes = 0
        self.kept = 0
        self._in_set_epoch: set[int] = set()

    def record_in(self, directory: str) -> None:
        """Leave the records in ``directory`` from now on."""
        self.directory = directory
        self.keep_all = os.environ.get(KEEP_ALL) == "1"
        if "RANK" in os.environ:  # a rank is known even if it never gets as far as a loader
            self.guarded(self.note_rank)

    # -- the log

    def note(self, event: str, **fields: Any) -> None:
        """Append one line to the log."""
        if self._file is None:
            self._open()
        assert self._file is not None
        line = json.dumps({"event": event, **fields}, separators=(",", ":"))
        os.write(self._file, line.encode("ascii") + b"\n")

    def _open(self) -> None:
        if self._tried:
            raise OSError("the log cannot be written")
        self._tried = True
        host = host_name()
        rank = os.environ.get("RANK", "")
        name = f"{host}.rank{rank if rank.isdecimal() else ''}.{os.getpid()}"
        stem = os.path.join(self.directory, name)
        for number in range(1, 100):  # another machine may have the same name
            with contextlib.suppress(FileExistsError):
                self.tape = Tape(f"{stem}.tape")
                break
            stem = os.path.join(self.directory, f"{name}-{number}")
        assert self.tape is not None
        self.totals = self.tape.append(TOTALS, array.array("q", [0] * TOTALS))
        self._file = os.open(
            f"{stem}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | _CLOEXEC, 0o600
        )
        self.note(
            "process",
            pid=os.getpid(),
            host=host,
            attempt=int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0),
            time=time.time(),
        )
        self.watch_signal()

    def watch_signal(self) -> None:
        """From now on :data:`DUMP_SIGNAL` writes every thread's stack to :func:`stack_path`."""
        if DUMP_SIGNAL and self._stack is None:
            path = stack_path(self.directory, os.getpid())
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _CLOEXEC
            self._stack = os.open(path, flags, 0o600)
            faulthandler.register(DUMP_SIGNAL, file=self._stack, all_threads=True, chain=False)

    def note_rank(self) -> None:
        """Note rank and world size, and the sizes of process groups, when they are news."""
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
        """Note the sizes of process groups smaller than the world (tensor parallelism …)."""
        c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
        groups = getattr(getattr(c10d, "_world", None), "pg_group_ranks", {})
        sizes = sorted({len(ranks) for ranks in groups.values()} - {world_size})
        if sizes != self._groups:
            self._groups = sizes
            self.note("groups", sizes=sizes)

    def _note_exit(self) -> None:
        """Note that the program has come to its end, and what ended it."""
        if self._file is None:
            return
        error = getattr(sys, "last_value", None)
        if error is None:
            self.note("exit", error=None, path=None, line=None)
            return
        place: tuple[str | None, int] = (None, 0)
        for frame, line in traceback.walk_tb(error.__traceback__):
            if self._is_users(frame.f_code.co_filename):
                place = (os.path.abspath(frame.f_code.co_filename), line)
        text = " ".join(str(error).split())[:300]
        name = type(error).__name__
        message = f"{name}: {text}" if text else name
        self.note("exit", error=message, path=place[0], line=place[1])

    # -- loaders

    def built(self, loader: Any) -> int:
        """Note a loader when it is new; its number."""
        number = self._numbers.of(loader)
        if number in self._loaders:
            return number
        self.note_rank()
        path, line, function = self._place(loader)
        dataset, subset = _base_dataset(self._data.Subset, loader.dataset)
        iterable = isinstance(loader.dataset, self._data.IterableDataset)
        index_sampler = None if iterable else loader._index_sampler
        makers = self._makers(loader)
        self.note(
            "loader",
            loader=number,
            makers=[self._numbers.of(maker) for maker in makers],
            path=path,
            line=line,
            function=function,
            cls=_class_name(loader),
            dataset=self._numbers.of(loader.dataset),
            dataset_cls=_class_name(dataset),
            dataset_length=self._untouched(lambda: len(dataset))[0],
            mark=_mark(dataset),
            subset=subset,
            iterable=iterable,
            batch_size=_plain(loader.batch_size),
            drop_last=self._drops(loader),
            num_workers=_plain(loader.num_workers),
            own_batch_sampler=loader.batch_size is None and loader.batch_sampler is not None,
            samplers=[] if iterable else self._samplers(index_sampler),
            shuffling=None if iterable else self._shuffling(index_sampler),
        )
        self._loaders.add(number)
        for thing in (*_chain(index_sampler), loader, loader.dataset, *makers):
            self.watch(type(thing))
        return number

    def _makers(self, loader: Any) -> list[Any]:
        """The libraries' objects that build the loader and take ``set_epoch`` for it."""
        makers: list[Any] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not self._is_users(frame.f_code.co_filename):
            maker = _self_of(frame)
            takes = callable(getattr(type(maker), "set_epoch", None))
            if takes and maker is not loader and not any(maker is one for one in makers):
                makers.append(maker)
            frame = frame.f_back
        return makers

    def _drops(self, loader: Any) -> bool | None:
        """Whether the loader's tail may be dropped, as far as its attributes tell."""
        attributes = [loader, *_chain(loader.batch_sampler), *_chain(loader.sampler)]
        values = [_attribute(one, "drop_last") for one in attributes]
        known = [value for value in values if isinstance(value, bool)]
        return any(known) if known else None

    def _samplers(self, sampler: Any) -> list[dict[str, Any]]:
        """What the loader reads its indices from, the outermost first."""
        return [
            {
                "object": self._numbers.of(one),
                "cls": _class_name(one),
                "module": type(one).__module__,
                "set_epoch": callable(getattr(type(one), "set_epoch", None)),
                "values": {
                    name: value
                    for name, value in getattr(one, "__dict__", {}).items()
                    if type(value) in (int, bool) and not name.startswith("__")
                },
            }
            for one in _chain(sampler)
        ]

    def _shuffling(self, sampler: Any) -> bool | None:
        """Whether the order is meant to be random; None when nothing says so."""
        data = self._data
        for one in _chain(sampler):
            shuffle = _attribute(one, "shuffle")
            if isinstance(shuffle, bool):
                return shuffle
            if isinstance(
                one, (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)
            ):
                return True
            if type(one) is data.SequentialSampler:
                return False
        return None

    def _is_users(self, path: str) -> bool:
        """Whether a file is no library's, as far as its path tells."""
        if path == __file__ or path.startswith("<"):
            return False
        if "site-packages" in path or "dist-packages" in path:
            return False
        return not os.path.realpath(path).startswith(self._libraries)

    def _place(self, loader: Any = None) -> tuple[str, int, str]:
        """File, line and function at work: the first frame of the user's own code.

        Methods of ``loader`` itself are passed over: a subclass's constructor is not the place.
        """
        frame: FrameType | None = sys._getframe(1)
        library: tuple[str, int, str] | None = None
        while frame is not None:
            path, name = frame.f_code.co_filename, frame.f_code.co_name
            if loader is None or _self_of(frame) is not loader:
                if self._is_users(path):
                    return os.path.abspath(path), frame.f_lineno, name
                if path != __file__ and not path.startswith(("<", *self._libraries)):
                    library = library or (path, frame.f_lineno, name)
            frame = frame.f_back
        return library or ("<unknown>", 0, "")

    # -- passes

    def begin(self, loader: Any, iterator: Any) -> _Pass:
        """Note that ``loader`` starts to hand out its data."""
        number = self.built(loader)
        self.note_rank()
        length, error = self._claimed(loader)
        sampler_length = None
        if type(loader.batch_sampler) is self._data.BatchSampler:
            inner = loader.batch_sampler.sampler
            sampler_length = self._untouched(lambda: len(inner))[0]
        path, line, function = self._place(loader)
        stride = self._stride(loader)
        at_once = isinstance(iterator, self._at_once)
        started = _Pass(self, self._passes, loader, stride, at_once)
        self._passes += 1
        self.totals[0] += 1
        self.note(
            "pass",
            number=started.number,
            loader=number,
            length=length,
            length_error=error,
            sampler_length=sampler_length,
            grad=self._torch.is_grad_enabled(),
            stride=stride,
            time=time.time(),
            path=path,
            line=line,
            function=function,
        )
        return started

    def _stride(self, loader: Any) -> int:
        """Which samples are kept: those whose index it divides."""
        if self.keep_all:
            return 1
        length = self._untouched(lambda: len(loader.dataset))[0] or 0
        if length <= KEPT_PER_PASS:
            return 1
        # A prime has no part in the strides with which samplers share out.
        return next(filter(_is_prime, range(-(-length // (KEPT_PER_PASS // 2)), 2 * length)))

    def _claimed(self, loader: Any) -> tuple[int | None, str | None]:
        """The number of batches the loader says it has.

        ``len(loader)`` itself would make torch warn about an iterable dataset's length later.
        """
        if not isinstance(loader.dataset, self._data.IterableDataset):
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
            return _length(ask)
        finally:
            random.setstate(states[0])
            self._torch.set_rng_state(states[1])
            if numpy:
                numpy.set_state(numpy_state)

    # -- set_epoch

    def watch(self, cls: type) -> None:
        """Note every ``set_epoch`` call on instances of ``cls``."""
        for base in cls.__mro__:
            function = vars(base).get("set_epoch")
            if callable(function) and not hasattr(function, "__sampler_lint__"):
                with contextlib.suppress(TypeError, AttributeError):  # a class that is closed
                    base.set_epoch = self._watched(function)  # type: ignore[attr-defined]

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
        path, line, _ = self._place()
        caller: FrameType | None = sys._getframe(1)
        while caller is not None and caller.f_code.co_filename == __file__:
            caller = caller.f_back
        self.note(
            "set_epoch",
            direct=caller is not None and self._is_users(caller.f_code.co_filename),
            object=self._numbers.of(sampler),
            cls=_class_name(sampler),
            value=_plain(value),
            passes=self._passes,
            time=time.time(),
            path=path,
            line=line,
        )

    # -- safety

    def guarded(self, action: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do ``action`` if this process is recorded; the program never sees it fail.

        A loader's worker process reads data, too; what it does with loaders of its own is not
        what the rank hands out.
        """
        try:
            if self._data.get_worker_info() is None:
                return action(*args, **kwargs)
        except Exception as error:
            self.failed(error)
        return None

    def failed(self, error: Exception) -> None:
        """Note what made the recorder fall silent."""
        with contextlib.suppress(Exception):
            self.note("failed", reason=f"{type(error).__name__}: {error}")

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
                    self._sampler_lint.ended(LOADER_ENDED)
                raise
            if self._sampler_lint is not None:
                self._sampler_lint.yielded()
            return batch

        @functools.wraps(next_batch)
        def _next_batch_at_once(self: Any) -> Any:
            try:
                return next_batch(self)
            except BaseException as error:
                if self._sampler_lint is not None:
                    self._sampler_lint.stopped(error)
                raise

        iterator._next_index, iterator.__next__ = _next_index, _next_batch
        dataloader._SingleProcessDataLoaderIter.__next__ = _next_batch_at_once

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
            return original(*args, **kwargs)

        autograd.backward = backward

    def patch_join(self, join: Any) -> None:
        """Note when the program says that its ranks take different numbers of steps."""

        @_around(join.Join, "__init__")
        def build(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
            recorder.guarded(recorder.note, "join")
            original(self, *args, **kwargs)

        recorder = self


class _Pass:
    """One run of a loader from its start; what runs for every batch is here."""

    def __init__(
        self, recorder: Recorder, number: int, loader: Any, stride: int, at_once: bool
    ) -> None:
        assert recorder.tape is not None
        self.number = number
        self._recorder = recorder
        self._tape = recorder.tape
        self._totals = recorder.totals
        self._batched = loader.batch_sampler is not None
        # torch draws placeholders for an iterable dataset: only the batches mean something.
        self._counted_only = isinstance(loader.dataset, recorder._data.IterableDataset)
        self._stride = stride
        #: A batch that is drawn is yielded, unless fetching it fails.
        self._at_once = at_once
        #: All indices are kept; otherwise they are hashed, and some of them kept.
        self._whole = stride == 1
        self._keep = True
        self._chunks: list[Any] = []
        self._chunk: Any = ()
        self._at = 0
        #: Where the batch after the next must begin to be written here and now.
        self._end = 0
        self._size = -1
        self._pack: Any = None
        self._backwards = recorder.backwards
        state = [0] * STATE
        if at_once:
            state[YIELDED] = -1
        self._state = recorder.tape.append(-1 - number, array.array("q", state))

    def drawn(self, index: Any) -> None:
        """Note what the index sampler gave for one batch."""
        if self._recorder.tape is not self._tape:
            return  # a process forked during the pass; it is not the rank
        try:
            state = self._state
            state[BATCHES] += 1
            if self._at_once:
                self._totals[1] += 1
                if self._recorder.backwards != self._backwards:
                    self._learned(state[BATCHES])
            if self._counted_only:
                return
            if type(index) is not list:
                index = self._listed(index)
            size = len(index)
            end = self._at + 1 + size
            if end > self._end:
                self._drawn_slowly(index)
                return
            if size != self._size:
                self._size, self._pack = size, struct.Struct(f"{size + 1}q").pack_into
            try:
                self._pack(self._chunk, 8 * self._at, size + 1, *index)
            except (struct.error, TypeError):
                self._chunk[self._at] = 0  # what was written of it
                self._drawn_keys(index)
                return
            self._at = end
            state[COUNT] += size
        except Exception as error:
            self._recorder.failed(error)

    def _drawn_slowly(self, index: list[Any]) -> None:
        """The same where the indices are hashed, or need room first."""
        try:
            data = struct.pack(f"{len(index)}q", *index)
        except (struct.error, TypeError):
            self._drawn_keys(index)
            return
        state, stride, kept = self._state, self._stride, index
        if stride > 1:
            if state[BATCHES] == 1:
                first = array.array("q", data[: 8 * FIRST]).tolist()
                self._recorder.note("first", number=self.number, indices=first)
            kept = [one for one in index if not one % stride]
        if self._keep:
            end = self._at + 1 + len(kept)
            if end > len(self._chunk):
                self._room(1 + len(kept))
                end = 1 + len(kept)
            if self._keep:
                self._chunk[self._at + 1 : end] = array.array("q", kept)
                self._chunk[self._at] = len(kept) + 1
                self._at = end
        if not self._whole:
            state[ORDER] = zlib.crc32(data, state[ORDER])
        state[COUNT] += len(index)

    def _room(self, needed: int) -> None:
        """Make room for more indices, unless enough were kept."""
        recorder = self._recorder
        first, more, most = _CHUNKS
        kept = self._state[COUNT] if self._stride == 1 else 0
        if needed > most or not (
            recorder.keep_all or (kept < KEPT_PER_PASS and recorder.kept < KEPT_PER_PROCESS)
        ):
            self._hash()
            self._keep = False
            return
        size = max(needed, more if len(self._chunk) else first)
        recorder.kept += size
        self._chunk = self._tape.append(self.number + 1, array.array("q", bytes(8 * size)))
        self._at = 0
        if self._whole:
            self._chunks.append(self._chunk)
            self._end = size

    def _hash(self) -> None:
        """From now on the indices are hashed, with those that were kept so far."""
        if self._whole:
            order = 0
            for chunk in self._chunks:
                for batch in batches_in(chunk):
                    order = zlib.crc32(batch, order)
            self._state[ORDER] = order
        self._whole, self._chunks, self._end = False, [], 0

    def _drawn_keys(self, index: list[Any]) -> None:
        """The same for indices that are no integers."""
        self._hash()
        keys = [_plain(one) for one in index]
        text = json.dumps(keys, separators=(",", ":"))
        self._state[ORDER] = zlib.crc32(text.encode("ascii"), self._state[ORDER])
        self._state[COUNT] += len(keys)
        self._recorder.kept += len(keys)
        if self._state[COUNT] <= KEPT_PER_PASS and self._recorder.kept <= KEPT_PER_PROCESS:
            self._recorder.note("draw", number=self.number, indices=keys)

    def _listed(self, index: Any) -> list[Any]:
        """What was drawn as a list; never consumes what it is given."""
        if hasattr(index, "tolist"):  # a tensor or an array
            index = index.tolist()
        # Without batching a list is a batch all the same, a tuple is one index.
        batch = Sequence if self._batched else list
        if isinstance(index, batch) and not isinstance(index, (str, bytes)):
            return list(index)
        return [index]

    def yielded(self) -> None:
        """Note that the program was given one batch."""
        if self._recorder.tape is not self._tape:
            return
        self._state[YIELDED] += 1
        self._totals[1] += 1
        if self._recorder.backwards != self._backwards:
            self._learned(self._state[YIELDED])

    def _learned(self, batches: int) -> None:
        """Note that gradients were computed since the last batch, which is training.

        Not those from before the first of ``batches``.
        """
        if batches > 1 or self._state[ENDS] & LOADER_ENDED:
            self._state[LEARNED] += 1
        self._backwards = self._recorder.backwards

    def ended(self, by: int) -> None:
        """Note that the index sampler or the loader has ended."""
        if self._recorder.tape is self._tape:
            self._state[ENDS] |= by
            if by == LOADER_ENDED:
                self._totals[2] += 1
                if self._recorder.backwards != self._backwards:
                    self._learned(0)

    def stopped(self, error: BaseException) -> None:
        """Note that there is no batch, where each that is drawn is yielded at once."""
        if isinstance(error, StopIteration):
            self.ended(LOADER_ENDED)
        if self._recorder.tape is self._tape and not self._state[ENDS] & SAMPLER_ENDED:
            self._state[YIELDED] -= 1


def batches_in(chunk: Any) -> Iterator[Any]:
    """The batches of a record, each as the part of ``chunk`` that it takes."""
    at = 0
    while at < len(chunk) and chunk[at]:
        end = at + chunk[at]
        yield chunk[at + 1 : end]
        at = end


class _Numbers:
    """A number for every object, in the order of first sight; keeps nothing alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], Any], int]] = {}
        self._next = 0

    def of(self, thing: Any) -> int:
        """The object's number."""
        reference, number = self._known.get(id(thing), (None, -1))
        if reference is not None and reference() is thing:
            return number
        try:
            reference = weakref.ref(thing)
        except TypeError:  # a list or a tuple; it stays, there are few

            def reference() -> Any:
                return thing

        number = self._next
        self._next += 1
        self._known[id(thing)] = (reference, number)
        return number


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


def _class_name(thing: Any) -> str:
    return type(thing).__qualname__


def _attribute(thing: Any, name: str) -> Any:
    """An attribute's value without running any of the user's code."""
    return getattr(thing, "__dict__", {}).get(name)


def _chain(sampler: Any) -> Iterator[Any]:
    """The sampler and those it wraps."""
    for _ in range(8):
        if sampler is None:
            return
        yield sampler
        sampler = _wrapped(sampler)


def _wrapped(sampler: Any) -> Any:
    """What a sampler draws from: by torch's attribute names, or the one sampler that it holds.

    To share a sampler out, wrappers make a dataset of it, of a class of their own module, for the
    ``DistributedSampler`` that they are.
    """
    for name in ("batch_sampler", "sampler"):
        inner = _attribute(sampler, name)
        if inner is not None:
            return inner
    held = list(getattr(sampler, "__dict__", {}).values())
    data = _attribute(sampler, "dataset")
    if type(data).__module__ == type(sampler).__module__:
        held += getattr(data, "__dict__", {}).values()
    base = sys.modules["torch.utils.data"].Sampler
    return next((value for value in held if isinstance(value, base)), None)


def _base_dataset(subset_type: Any, dataset: Any) -> tuple[Any, list[int] | None]:
    """The dataset below ``Subset`` layers, and the indices into it (None: all, or too many)."""
    indices: list[int] | None = None
    while type(dataset) is subset_type:
        if len(dataset.indices) > KEPT_PER_PASS:
            return dataset, None
        layer = [operator.index(one) for one in dataset.indices]
        indices = layer if indices is None else [layer[one] for one in indices]
        dataset = dataset.dataset
    return dataset, indices


def _mark(dataset: Any) -> int:
    """A checksum of what a dataset holds, as far as a glance at its attributes tells.

    It tells whether index 7 is the same sample on two ranks: a program may give each rank a
    dataset of its own. Runs none of the user's code and reads no sample.
    """
    found: list[str] = []
    with contextlib.suppress(Exception):
        _glance(dataset, found, 4)
    return zlib.crc32("\n".join(found).encode("utf-8", "backslashreplace"))


def _glance(thing: Any, found: list[str], depth: int) -> None:
    kind = type(thing)
    if len(found) > 1000 or depth < 0:
        return
    if thing is None or kind in (bool, int, float, complex):
        found.append(repr(thing))
    elif kind in (str, bytes):
        found.append(repr(thing[:200]))
    elif kind in (list, tuple):
        found.append(str(len(thing)))
        for one in (*thing[:3], *thing[-3:]):
            _glance(one, found, depth - 1)
    elif kind is dict:
        found.append(str(len(thing)))
        for key, value in itertools.islice(thing.items(), 40):
            _glance(key, found, depth - 1)
            _glance(value, found, depth - 1)
    elif kind.__module__ in ("torch", "numpy") and hasattr(thing, "tolist"):
        found.append(f"{kind.__name__} {getattr(thing, 'shape', None)} {thing.dtype}")
        device = getattr(thing, "device", None)
        simple = str(device or "cpu") == "cpu" and "object" not in str(thing.dtype)
        if simple and thing.ndim and len(thing):
            found += [repr(one.reshape(-1)[:8].tolist()) for one in (thing[:1], thing[-1:])]
    elif kind.__module__.startswith(("pandas.", "polars.", "pathlib")):
        found.append(repr(thing)[:2000])
    else:
        found.append(kind.__qualname__)
        for name, value in getattr(thing, "__dict__", {}).items():
            if not callable(value) or hasattr(value, "__dict__"):
                found.append(name)
                _glance(value, found, depth - 1)


def _self_of(frame: FrameType) -> Any:
    """The first argument of the function at work: of a method, its object."""
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return frame.f_locals.get(names[0]) if names else None


def _length(ask: Callable[[], int]) -> tuple[int | None, str | None]:
    """A length, or the error that asking for it raises; neither if there is none."""
    try:
        return operator.index(ask()), None
    except TypeError as error:
        # torch's own way to say "no length" is a TypeError about len(); others are bugs.
        return None, None if "has no len()" in str(error) else f"TypeError: {error}"
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _plain(value: Any) -> Any:
    """``value`` as JSON can say it: integers stay, anything else becomes a string."""
    if value is None or isinstance(value, bool):
        return value
    try:
        return operator.index(value)
    except TypeError:
        plain = isinstance(value, (str, float, tuple, list))
        return repr(value) if plain else type(value).__qualname__


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % one for one in range(2, int(number**0.5) + 1))


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
