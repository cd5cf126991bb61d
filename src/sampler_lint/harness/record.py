"""The recorder: what every rank's loaders really handed out, noted from outside.

It runs inside the program under test, which knows nothing of it, so it is bound by two rules.
It stands alone: standard library only, loaded by path, no import from this package. And it
changes nothing: no iteration, no random draw, no attribute on the user's objects; if it fails,
it falls silent and says so in its log.

What it sees is appended at once to ``<directory>/<pid>.jsonl``, one JSON object a line, so that
a rank that is killed or leaves through ``os._exit`` leaves everything it did. The reader is
:mod:`sampler_lint.harness.runs`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import operator
import os
import random
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

#: Where the log goes; set, it also makes ``sitecustomize`` install the recorder.
DIRECTORY = "SAMPLER_LINT_RECORD"

#: Indices kept in full, for one pass and for a whole process; beyond them only counts and hash.
KEPT_PER_PASS = 10_000
KEPT_PER_PROCESS = 1_000_000

#: Seconds between two progress notes of a pass whose indices are no longer kept.
PROGRESS = 1.0

#: Real-time, so that no program has it for something else.
DUMP_SIGNAL = getattr(signal, "SIGRTMIN", 0) and signal.SIGRTMIN + 7


class Recorder:
    """Notes the loaders, passes and ``set_epoch`` calls of this process."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        # torch itself may still be half imported: ``torch.utils`` is no attribute of it yet.
        self._torch: Any = sys.modules["torch"]
        self._data: Any = sys.modules["torch.utils.data"]
        self._torch_folder: str = os.path.join(os.path.dirname(str(self._torch.__file__)), "")
        self._start()

    def _start(self) -> None:
        """Begin with nothing seen, in this process."""
        self._pid = os.getpid()
        self._file: int | None = None
        self._numbers = _Numbers()
        self._rank: tuple[int, int] | None = None
        self._loaders: set[int] = set()
        self._passes = 0
        self._kept = 0
        self._in_set_epoch: set[int] = set()

    # -- the log

    def _awake(self) -> bool:
        """Whether this process is to be recorded; a forked one starts its own log."""
        if self._pid != os.getpid():
            self._start()
        # A loader's worker process reads data; what it does with loaders of its own is not
        # what the rank hands out.
        return self._data.get_worker_info() is None

    def note(self, event: str, **fields: Any) -> None:
        """Append one line to the log."""
        if self._file is None:
            path = os.path.join(self.directory, f"{self._pid}.jsonl")
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(path, flags, 0o600)
            self.note("process", pid=self._pid)
        line = json.dumps({"event": event, **fields}, separators=(",", ":"))
        os.write(self._file, line.encode("ascii") + b"\n")

    def note_rank(self) -> None:
        """Note rank and world size when they are news."""
        dist: Any = sys.modules.get("torch.distributed")
        if dist is not None and dist.is_available() and dist.is_initialized():
            rank = (int(dist.get_rank()), int(dist.get_world_size()))
        elif self._rank is not None:
            return  # the group is gone: the rank it had still is this process's
        else:
            rank = (int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))
        if rank != self._rank:
            self._rank = rank
            self.note("rank", rank=rank[0], world_size=rank[1])

    # -- loaders

    def built(self, loader: Any) -> int:
        """Note a loader when it is new; its number."""
        number = self._numbers.of(loader)
        if number in self._loaders:
            return number
        self.note_rank()
        path, line = self._place(loader)
        dataset, subset = _base_dataset(self._data.Subset, loader.dataset)
        iterable = isinstance(loader.dataset, self._data.IterableDataset)
        index_sampler = None if iterable else loader._index_sampler
        self.note(
            "loader",
            loader=number,
            path=path,
            line=line,
            cls=_class_name(loader),
            dataset=self._numbers.of(loader.dataset),
            dataset_cls=_class_name(dataset),
            dataset_length=self._untouched(lambda: len(dataset))[0],
            subset=subset,
            iterable=iterable,
            batch_size=_plain(loader.batch_size),
            drop_last=self._drops(loader),
            num_workers=_plain(loader.num_workers),
            samplers=[] if iterable else self._samplers(index_sampler),
            shuffling=None if iterable else self._shuffling(index_sampler),
        )
        self._loaders.add(number)
        for sampler in _chain(index_sampler):
            self.watch(type(sampler))
        return number

    def _drops(self, loader: Any) -> bool | None:
        """Whether the loader's tail may be dropped, as far as its attributes tell."""
        attributes = [loader, *_chain(loader.batch_sampler), *_chain(loader.sampler)]
        values = [_attribute(one, "drop_last") for one in attributes]
        known = [value for value in values if isinstance(value, bool)]
        return any(known) if known else None

    def _samplers(self, sampler: Any) -> list[dict[str, Any]]:
        """What the loader reads its indices from, the outermost first."""
        return [
            {"object": self._numbers.of(one), "cls": _class_name(one)} for one in _chain(sampler)
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

    def _place(self, loader: Any) -> tuple[str, int]:
        """The file and line that built ``loader``: the first frame of the user's own code."""
        frame: FrameType | None = sys._getframe(1)
        library: tuple[str, int] | None = None
        while frame is not None:
            path = frame.f_code.co_filename
            own = path == __file__ or path.startswith((self._torch_folder, "<"))
            if not own and not _is_method_of(frame, loader):
                if "site-packages" not in path and "dist-packages" not in path:
                    return os.path.abspath(path), frame.f_lineno
                library = library or (path, frame.f_lineno)
            frame = frame.f_back
        return library or ("<unknown>", 0)

    # -- passes

    def begin(self, loader: Any) -> _Pass:
        """Note that ``loader`` starts to hand out its data."""
        number = self.built(loader)
        self.note_rank()
        length, error = self._claimed(loader)
        sampler_length = None
        if type(loader.batch_sampler) is self._data.BatchSampler:
            inner = loader.batch_sampler.sampler
            sampler_length = self._untouched(lambda: len(inner))[0]
        started = _Pass(self._passes, loader.batch_sampler is not None)
        self._passes += 1
        self.note(
            "pass",
            number=started.number,
            loader=number,
            length=length,
            length_error=error,
            sampler_length=sampler_length,
            grad=self._torch.is_grad_enabled(),
        )
        return started

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

    def drawn(self, current: _Pass, index: Any) -> None:
        """Note what the index sampler gave for one batch."""
        indices = current.indices(index)
        current.batches += 1
        current.count += len(indices)
        text = json.dumps(indices, separators=(",", ":"))
        current.digest.update(text[1:-1].encode("ascii") + b",")
        if current.count <= KEPT_PER_PASS and self._kept < KEPT_PER_PROCESS:
            self._kept += len(indices)
            self.note("draw", number=current.number, indices=indices)
        else:
            current.whole = False
            self._progress(current)

    def yielded(self, current: _Pass) -> None:
        """Note that the program was given one batch."""
        current.yielded += 1
        if current.whole:
            self.note("yield", number=current.number)
        else:
            self._progress(current)

    def _progress(self, current: _Pass) -> None:
        now = time.monotonic()
        if now - current.noted >= PROGRESS:
            current.noted = now
            self.note("progress", **current.state())

    def ended(self, current: _Pass, by: str) -> None:
        """Note that the index sampler (``sampler``) or the loader (``loader``) has ended."""
        self.note("end", by=by, **current.state())

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
        self.note(
            "set_epoch",
            object=self._numbers.of(sampler),
            cls=_class_name(sampler),
            value=_plain(value),
            passes=self._passes,
        )

    # -- safety

    def guarded(self, action: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do ``action`` if this process is recorded; the program never sees it fail."""
        try:
            if self._awake():
                return action(*args, **kwargs)
        except Exception as error:
            with contextlib.suppress(Exception):
                self.note("failed", reason=f"{type(error).__name__}: {error}")
        return None

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
            self._sampler_lint = recorder.guarded(recorder.begin, loader)
            original(self, loader, *args, **kwargs)

        @_around(iterator, "_reset")
        def reset(
            original: Any, self: Any, loader: Any, first_iter: bool = False, *args: Any
        ) -> None:
            if not first_iter:  # persistent workers: the same iterator starts another pass
                self._sampler_lint = recorder.guarded(recorder.begin, loader)
            original(self, loader, first_iter, *args)

        @_around(iterator, "_next_index")
        def next_index(original: Any, self: Any) -> Any:
            current = getattr(self, "_sampler_lint", None)
            if current is None:
                return original(self)
            try:
                index = original(self)
            except StopIteration:
                recorder.guarded(recorder.ended, current, "sampler")
                raise
            recorder.guarded(recorder.drawn, current, index)
            return index

        @_around(iterator, "__next__")
        def next_batch(original: Any, self: Any) -> Any:
            current = getattr(self, "_sampler_lint", None)
            if current is None:
                return original(self)
            try:
                batch = original(self)
            except StopIteration:
                recorder.guarded(recorder.ended, current, "loader")
                raise
            recorder.guarded(recorder.yielded, current)
            return batch

        for cls in (distributed, *_subclasses(sampler)):
            self.watch(cls)

        def init_subclass(cls: type[Any], **kwargs: Any) -> None:
            super(sampler, cls).__init_subclass__(**kwargs)
            recorder.guarded(recorder.watch, cls)

        if "__init_subclass__" not in vars(sampler):
            sampler.__init_subclass__ = classmethod(init_subclass)  # type: ignore[arg-type]


class _Pass:
    """One run of a loader from its start."""

    def __init__(self, number: int, batched: bool) -> None:
        self.number = number
        self.batched = batched
        self.batches = 0
        self.count = 0
        self.yielded = 0
        self.whole = True
        self.noted = 0.0
        self.digest = hashlib.blake2b(digest_size=8)

    def indices(self, index: Any) -> list[Any]:
        """What was drawn as a list of plain indices; never consumes what it is given."""
        if hasattr(index, "tolist"):  # a tensor or an array
            index = index.tolist()
        # Without batching a list is a batch all the same, a tuple is one index.
        batch = Sequence if self.batched else list
        if isinstance(index, batch) and not isinstance(index, (str, bytes)):
            return [_plain(one) for one in index]
        return [_plain(index)]

    def state(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "batches": self.batches,
            "count": self.count,
            "yielded": self.yielded,
            "digest": self.digest.hexdigest(),
        }


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
    """The sampler and those it wraps, by torch's attribute names."""
    for _ in range(8):
        if sampler is None:
            return
        yield sampler
        inner = _attribute(sampler, "batch_sampler")
        sampler = _attribute(sampler, "sampler") if inner is None else inner


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


def _is_method_of(frame: FrameType, thing: Any) -> bool:
    """Whether the frame runs a method of ``thing`` (a loader subclass's constructor)."""
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return bool(names) and frame.f_locals.get(names[0]) is thing


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


def install(directory: str) -> None:
    """Record this process from now on; ``torch.utils.data`` must be imported.

    Signal :data:`DUMP_SIGNAL` then writes the stack of every thread to ``<pid>.stack``.
    """
    recorder = Recorder(directory)
    recorder.patch()
    if "RANK" in os.environ:  # a rank is known even if it never gets as far as a loader
        recorder.guarded(recorder.note_rank)
    if DUMP_SIGNAL:
        path = os.path.join(directory, f"{os.getpid()}.stack")
        stack = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        faulthandler.register(DUMP_SIGNAL, file=stack, all_threads=True, chain=False)


class _Finder(importlib.abc.MetaPathFinder):
    """Installs the recorder when the program imports ``torch.utils.data``, not before."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The real module's spec, with a loader that installs the recorder after it."""
        if fullname != "torch.utils.data":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                # A torch that is not built as we know it runs unrecorded.
                with contextlib.suppress(Exception):
                    install(self.directory)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def arm(directory: str) -> None:
    """Record this process from the moment it imports ``torch.utils.data``."""
    sys.meta_path.insert(0, _Finder(directory))
