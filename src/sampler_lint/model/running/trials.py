"""Builds a sampler class for a few small worlds, counts what each rank hands out and promises.

Constructor arguments are made from the names and annotations of the parameters, as anyone
would who tries the class by hand; what has a default keeps it. A class that needs more, or
does something the interpreter does not know, is not judged.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sampler_lint.model.facts import Class
from sampler_lint.model.running.interpreter import Interpreter
from sampler_lint.model.running.values import (
    COLUMN,
    UNKNOWN,
    Array,
    CannotTellError,
    Data,
    Fn,
    Instance,
    Klass,
    RaisedError,
    Source,
)

_ENDLESS = 400

#: What the interpreter raises for a program it cannot follow, or that fails in its own hands.
_SILENT = (
    CannotTellError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,  # RecursionError too
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class World:
    """One set-up: a data set of ``samples``, ``ranks`` processes, and the usual arguments."""

    samples: int
    ranks: int
    batch_size: int
    drop_last: bool = False

    def counts(self, *, sharded: bool) -> set[int]:
        """What a sampler may hand out here: samples or batches, of all or of a rank's share."""
        ranks = self.ranks if sharded else 1
        out = set()
        for share in (self.samples // ranks, -(-self.samples // ranks)):
            out |= {share, share // self.batch_size, -(-share // self.batch_size)}
        return out


@dataclass(frozen=True, slots=True)
class Turn:
    """What one rank does in a world."""

    rank: int
    yielded: tuple[Any, ...] | None
    """What it hands out; None when ``__iter__`` raises."""
    length: int | None
    """What ``len()`` says before the first iteration; None without ``__len__``."""
    later: int | None
    """What ``len()`` says after it."""
    raised: RaisedError | None = None
    """What ``__iter__`` raises."""
    from_data: bool = False
    """Whether anything hung on what the data holds."""

    @property
    def count(self) -> int:
        """How many it hands out."""
        return len(self.yielded or ())

    @property
    def in_batches(self) -> bool:
        """Whether it hands out lists of samples."""
        return any(isinstance(item, (list, tuple, Array)) for item in self.yielded or ())

    @property
    def indices(self) -> tuple[int, ...] | None:
        """The sample numbers, batches taken apart; None where they are not known."""
        out: list[int] = []
        for item in self.yielded or ():
            parts = item.items if isinstance(item, Array) else item
            parts = parts if isinstance(parts, (list, tuple)) else [parts]
            if not all(type(part) is int for part in parts):
                return None
            out += parts
        return tuple(out)


@dataclass(frozen=True, slots=True)
class Trial:
    """A world and what each of its ranks does."""

    world: World
    turns: tuple[Turn, ...]
    takes_batch_size: bool
    takes_drop_last: bool
    refused: RaisedError | None = None
    """What building the sampler raises; the turns then end with the rank before."""

    @property
    def raised(self) -> RaisedError | None:
        """What the sampler raises first, when built or when iterated."""
        return next((turn.raised for turn in self.turns if turn.raised), self.refused)

    @property
    def from_data(self) -> bool:
        """Whether the outcome hangs on what the data holds."""
        return any(turn.from_data for turn in self.turns)

    @property
    def story(self) -> str:
        """The world in words."""
        world = self.world
        parts = [f"{world.samples} sample{'s' * (world.samples != 1)}"]
        if world.ranks > 1:
            parts.append(f"{world.ranks} ranks")
        if self.takes_batch_size:
            parts.append(f"batch_size={world.batch_size}")
        if self.takes_drop_last:
            parts.append(f"drop_last={world.drop_last}")
        return ", ".join(parts)


#: The first must run through, else the class is not understood.
_WORLDS = (
    World(8, 2, 4),
    World(7, 2, 2),
    World(9, 2, 2),
    World(13, 2, 4),
    World(11, 3, 2),
    World(16, 2, 4),
    World(24, 2, 4),
    World(21, 4, 4),
)
_TINY = (World(1, 4, 1), World(3, 8, 1), World(9, 8, 1))


@dataclass(frozen=True, slots=True)
class Trials:
    """Every world that a class could be tried in."""

    usual: tuple[Trial, ...] = ()
    """Empty when the class is not understood."""
    tiny: tuple[Trial, ...] = ()
    """Worlds with hardly more samples than ranks, as far as the class could be tried there."""
    length_raised: RaisedError | None = None
    """What ``len()`` of a new object raises, whatever else is understood."""
    unknown: str = ""
    """Why there are no usual ones."""

    @property
    def sharded(self) -> bool:
        """Whether ranks differ in what they hand out."""
        return any(
            turn.yielded is not None and turn.indices != trial.turns[0].indices
            for trial in self.usual
            for turn in trial.turns
        )


def try_out(interpreter: Interpreter, cls: Class) -> Trials:
    """Try a sampler class in several worlds."""
    length_raised = None
    usual: list[Trial] = []
    unknown = ""
    try:
        spec = _Signature(interpreter, interpreter.class_of(cls))
        interpreter.restart(_WORLDS[0].ranks, 0)
        length_raised = _length(interpreter, spec.build(_WORLDS[0], 0))[1]
    except (RaisedError, *_SILENT) as error:
        return Trials(unknown=repr(error))
    try:
        for world in _WORLDS:
            for drop_last in (False, True) if spec.takes_drop_last else (False,):
                usual += _trial(interpreter, spec, replace(world, drop_last=drop_last))
                if not usual or usual[0].raised is not None:
                    raise CannotTellError("how it is used")
    except _SILENT as error:
        usual.clear()
        unknown = repr(error)
    tiny = []
    for world in _TINY:
        with contextlib.suppress(*_SILENT):
            tiny += _trial(interpreter, spec, world)
    return Trials(tuple(usual), tuple(tiny), length_raised, unknown)


def _trial(interpreter: Interpreter, spec: _Signature, world: World) -> list[Trial]:
    turns: list[Turn] = []
    refused = None
    for rank in range(world.ranks):
        interpreter.restart(world.ranks, rank)
        asked = Data.asked
        try:
            instance = spec.build(world, rank)
        except RaisedError as error:
            refused = error
            break
        turns.append(_turn(interpreter, instance, rank, asked))
    return [Trial(world, tuple(turns), spec.takes_batch_size, spec.takes_drop_last, refused)]


def _turn(interpreter: Interpreter, instance: Instance, rank: int, asked: int) -> Turn:
    length, _ = _length(interpreter, instance)
    yielded: list[Any] = []
    raised = None
    try:
        for item in interpreter.iterate(instance):
            # A batch may be cleared by who yielded it.
            yielded.append(list(item) if isinstance(item, list) else item)
            if len(yielded) > _ENDLESS:
                raise CannotTellError("whether it ends")
    except RaisedError as error:
        raised = error
    later, _ = _length(interpreter, instance)
    outcome = None if raised else tuple(yielded)
    return Turn(rank, outcome, length, later, raised, Data.asked > asked)


def _length(interpreter: Interpreter, instance: Instance) -> tuple[int | None, RaisedError | None]:
    if interpreter.method(instance, "__len__") is None:
        return None, None
    try:
        return interpreter.length(instance), None
    except RaisedError as error:
        return None, error


# --------------------------------------------------------------------------- arguments

_WORLD_NAMES = re.compile(
    r"^(num|n|total)?_?(replicas?|world_?size|world|ranks|shards|gpus|processes|procs|nodes)$"
    r"|^world_?size$|^size_of_world$",
    re.IGNORECASE,
)
_RANK_NAMES = re.compile(
    r"^(global_|local_|dist_|process_|shard_|gpu_)?(rank|rank_id|process_index|shard_id)$"
    r"|^(shard|process|replica)_(id|idx|index)$",
    re.IGNORECASE,
)
_BATCH_NAMES = re.compile(
    r"^(batch_?size|bs|bsz|batch|samples_per_gpu|per_(device|gpu)_batch_size|mini_?batch_?size)$",
    re.IGNORECASE,
)
_DATA_NAMES = re.compile(
    r"^(dataset|data_?source|ds|data|iterable|train_?(set|dataset)|data_set|source)$"
)
_SIZE_NAMES = re.compile(
    r"^(size|length|n_samples|num_samples|n_data_samples|dataset_(size|len|length)"
    r"|data_(size|len|length)|total_samples|num_data)$"
)
_LABEL_NAMES = re.compile(r"^(labels|targets|classes|group_ids|ids)$")
_PART_NAMES = re.compile(r"^(dataset|data|set|subset)_(sizes|lens|lengths)$|_sizes?_per_epoch$")
_LENGTH_NAMES = re.compile(r"^(lengths|sizes|lens|durations|seq_lens|num_tokens_vec)$")
_NUMBER_NAMES = re.compile(r"^(n|num|number_of|max|min)_|_(size|per_\w+|num|count|threshold)$")


class _Signature:
    """A constructor, and arguments for it."""

    def __init__(self, interpreter: Interpreter, klass: Klass) -> None:
        self.interpreter = interpreter
        self.klass = klass
        init = interpreter.member(klass, "__init__")
        self.params: list[tuple[ast.arg, ast.expr | None]] = []
        if isinstance(init, Fn):
            spec = init.node.args
            plain_params = [*spec.posonlyargs, *spec.args][1:]
            missing = len(plain_params) - len(spec.defaults)
            defaults: list[ast.expr | None] = [None] * max(0, missing)
            defaults += spec.defaults[-len(plain_params) :] if plain_params else []
            self.params = list(zip(plain_params, defaults, strict=True))
            self.params += zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        self.names = {param.arg for param, _ in self.params}
        self.takes_drop_last = "drop_last" in self.names
        self.takes_batch_size = any(_BATCH_NAMES.match(name) for name in self.names)

    def build(self, world: World, rank: int) -> Instance:
        """An instance for one rank of a world."""
        keywords = {}
        for param, default in self.params:
            value = self._argument(param, default, world, rank)
            if value is not _KEEP:
                keywords[param.arg] = value
        return self.interpreter.build(self.klass, [], keywords)

    def _argument(self, param: ast.arg, default: ast.expr | None, world: World, rank: int) -> Any:
        name = param.arg
        note = ast.unparse(param.annotation) if param.annotation is not None else ""
        if _WORLD_NAMES.match(name):
            return world.ranks
        if _RANK_NAMES.match(name):
            return rank
        if _BATCH_NAMES.match(name):
            return world.batch_size
        if name == "drop_last":
            return world.drop_last
        if _DATA_NAMES.match(name):
            return self._data(note, world)
        if isinstance(default, ast.Constant) and default.value is None and "column" in name:
            return [COLUMN]
        if default is not None:
            return _KEEP
        return self._required(name, note, world)

    def _data(self, note: str, world: World) -> Any:
        if re.search(r"\b(List|list|Sequence)\[", note):
            raise CannotTellError("a list of data sets")
        if "Sampler" in note:
            return self._sampler(note, world)
        return Source(world.samples)

    def _required(self, name: str, note: str, world: World) -> Any:
        if name in {"batch_samplers", "samplers"} or re.search(r"[Ll]ist\[\w*Sampler", note):
            inner = [Source(part.size) for part in Source(world.samples).parts()]
            if "batch" in name or "BatchSampler" in note:
                return [self._batches(world, part) for part in inner]
            return [self._sampler("", world, part) for part in inner]
        if self.names & {"n_classes", "num_classes", "n_labels"} and name.startswith(
            ("n_", "num_")
        ):
            return 2
        if _PART_NAMES.search(name):
            return [part.size for part in Source(world.samples).parts()]
        if name in {"boundaries", "bucket_boundaries"}:
            return [0, 2, 4, 6]
        if name in {"batch_sampler", "base_batch_sampler"}:
            return self._batches(world)
        if name in {"sampler", "base_sampler"}:
            return self._sampler(note, world)
        if _SIZE_NAMES.match(name) and note in {"", "int"}:
            return world.samples
        if name in {"seed", "epoch", "start_iter", "start_epoch", "random_seed"}:
            return 0
        if name in {"shuffle", "distributed"}:
            return True
        if _LABEL_NAMES.match(name):
            return _numbers([index % 2 for index in range(world.samples)], note)
        if _LENGTH_NAMES.match(name):
            values = [Data(f"{name}[{index}]").number for index in range(world.samples)]
            return _numbers(values, note)
        if note == "int" or (note == "" and _NUMBER_NAMES.search(name)):
            return 6 if name.startswith("max") else 2
        if note == "bool":
            return False
        if "Callable" in note or name.endswith("_fn"):
            return Data(name)
        return UNKNOWN

    def _sampler(self, note: str, world: World, data: Source | None = None) -> Instance:
        if re.search(r"\[\s*(List|list)\s*\[", note) or "BatchSampler" in note:
            return self._batches(world)
        known = self.interpreter.known_class("SequentialSampler")
        return self.interpreter.build(known, [data or Source(world.samples)], {})

    def _batches(self, world: World, data: Source | None = None) -> Instance:
        known = self.interpreter.known_class("BatchSampler")
        arguments: Sequence[Any] = [
            self._sampler("", world, data),
            world.batch_size,
            world.drop_last,
        ]
        return self.interpreter.build(known, list(arguments), {})


_KEEP = object()


def _numbers(values: list[int], note: str) -> Any:
    return list(values) if "ist" in note or "Sequence" in note else Array(values)
