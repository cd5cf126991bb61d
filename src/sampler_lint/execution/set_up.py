"""Small worlds to try a sampler class in, and the arguments to build it with there.

Constructor arguments are made from the names and annotations of the parameters, as anyone
would who tries the class by hand; what has a default keeps it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from sampler_lint.execution.budget import BUDGET, MOST_HANDED_OUT
from sampler_lint.execution.errors import CannotTellError, Kind, WantedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.values import (
    COLUMN,
    NOT_MADE,
    UNKNOWN,
    Array,
    Data,
    Fn,
    Given,
    Instance,
    Klass,
    Passed,
    Role,
    Source,
    given,
)


class World(NamedTuple):
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


_WORLD_NAMES = re.compile(
    r"^(num|n|total)?_?(replicas?|world_?size|world|ranks|shards|gpus|processes|procs|nodes)$"
    r"|^world_?size$|^size_of_world$",
    re.IGNORECASE,
)
_RANK_NAMES = re.compile(
    r"(^|_)rank(_id)?$|^process_index$|^(shard|process|replica)_(id|idx|index)$",
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
_NUMBER_NAMES = re.compile(r"^(n|num|number_of|max|min)_|_(size|per_\w{1,60}|num|count|threshold)$")


#: Options that say themselves that ranks may differ, or that do not matter here.
_SAYS_UNEVEN = re.compile(
    r"even|pad|round|extend|fill|dup|repeat|replace|trunc|inf|endless|eval|test|val|verbose|debug"
    r"|seed|resume|start|epoch|drop|keep|distributed|sync|skip",
    re.IGNORECASE,
)
_LIMIT_NAMES = re.compile(r"^(max|min)_|_(length|len|limit|threshold|tokens|frames|max|min)$")
_PROGRESS_NAMES = re.compile(r"(^|_)(steps?|iter(ation)?s?|batch(es)?|batch_idx)$", re.IGNORECASE)


_INNER_NAMES = frozenset({"sampler", "base_sampler"})


class SetUp:
    """A constructor, and arguments for it."""

    def __init__(
        self, interpreter: Interpreter, klass: Klass, *, around_shard: bool = False
    ) -> None:
        self.interpreter = interpreter
        self.klass = klass
        self.around_shard = around_shard
        self.given: tuple[str, SetUp] | None = None
        """A parameter, and the class of the tree that is to be built for it."""
        self.guesses: dict[str, str] | None = None
        """What stands for arguments of which only the use tells something, by their names; None
        while they are left unknown."""
        self.fills_none = False
        """Whether arguments that may be None are given, too."""
        self.numbers_are_ranks = False
        """Whether each such argument that is a number is taken to be the rank."""
        self.settled: tuple[str, Any] | None = None
        """An optional argument without whose other value the class refuses every world."""
        self.dense = False
        """Whether the data holds the numbers of two classes, and no others."""
        self.place = 0
        init = interpreter.member(klass, "__init__")
        self.params, self.spread = _parameters(interpreter, klass, init)
        self.names = {param.arg for param, _ in [*self.params, *self.spread]}
        self.worlds = set(_sizes_beside_ranks(klass))
        self.takes_rank = any(_RANK_NAMES.search(name) for name in self.names)
        self.takes_drop_last = "drop_last" in self.names
        self.takes_batch_size = any(_BATCH_NAMES.match(name) for name in self.names)

    def options(self) -> Iterator[tuple[str, Any]]:
        """Optional arguments with another value than their default: flags, and limits."""
        for param, default in self.params:
            if not isinstance(default, ast.Constant) or _SAYS_UNEVEN.search(param.arg):
                continue
            if isinstance(default.value, bool):
                yield param.arg, not default.value
            elif default.value is None and _LIMIT_NAMES.search(param.arg):
                yield param.arg, _LIMIT
        init = self.interpreter.member(self.klass, "__init__")
        if isinstance(init, Fn) and init.node.args.kwarg is not None:
            for name in _read_keywords(init.node, init.node.args.kwarg.arg):
                if _LIMIT_NAMES.search(name) and not _SAYS_UNEVEN.search(name):
                    yield name, _LIMIT

    def flags(self) -> Iterator[tuple[str, bool]]:
        """Every optional flag, with the other value than its default."""
        for param, default in self.params:
            if isinstance(default, ast.Constant) and isinstance(default.value, bool):
                yield param.arg, not default.value

    @property
    def drops(self) -> tuple[bool, ...]:
        """The values of ``drop_last`` to be tried."""
        if self.settled is not None and self.settled[0] == "drop_last":
            return (self.settled[1],)
        return (False, True) if self.takes_drop_last else (False,)

    def settlements(self) -> Iterator[tuple[str, Any] | None]:
        """What may let a class be built that refuses the usual arguments."""
        yield None
        if self.takes_drop_last:
            yield "drop_last", True
        yield from (flag for flag in self.flags() if flag[0] != "drop_last")

    @property
    def has_while_loop(self) -> bool:
        """Whether a class of the tree in the hierarchy has one."""
        return any(
            isinstance(node, ast.While)
            for klass in self.klass.mro
            if isinstance(klass, Klass)
            for node in ast.walk(klass.node)
        )

    def small_numbers(self) -> Iterator[tuple[str, int]]:
        """Optional numbers too large for small worlds, with some that are not."""
        for param, default in self.params:
            value = default.value if isinstance(default, ast.Constant) else None
            if type(value) is int and value > _LARGE:
                yield param.arg, _SMALL

    def progress(self, state_dict: Fn, world: World, steps: int) -> dict[str, Any]:
        """Arguments for a ``state_dict()`` that is told how far training has come."""
        spec = state_dict.node.args
        params = [*spec.posonlyargs, *spec.args][1:]
        out: dict[str, Any] = {}
        for param in params[: len(params) - len(spec.defaults)]:
            if "batch_size" in param.arg:
                out[param.arg] = world.batch_size
            elif _PROGRESS_NAMES.search(param.arg):
                out[param.arg] = steps
            else:
                raise CannotTellError("how far it has come")
        return out

    def build(self, world: World, rank: int, option: tuple[str, Any] | None = None) -> Instance:
        """An instance for one rank of a world."""
        self.place = rank
        Data.dense = self.dense
        keywords = dict(part for part in (self.settled, option) if part is not None)
        for param, default in self.params:
            value = self._argument(param, default, world, rank)
            if value is not _KEEP and param.arg not in keywords:
                keywords[param.arg] = value
        args: list[Any] = []
        if self.spread:
            args = [
                keywords.pop(param.arg)
                if param.arg in keywords
                else self.interpreter.default(self.klass, default)
                for param, default in self.params
            ]
            for param, default in self.spread:
                value = self._argument(param, default, world, rank)
                if value is _KEEP:
                    break
                args.append(value)
        return self.interpreter.build(self.klass, args, keywords)

    def _argument(self, param: ast.arg, default: ast.expr | None, world: World, rank: int) -> Any:
        name = param.arg
        note = ast.unparse(param.annotation) if param.annotation is not None else ""
        if self.given is not None and name == self.given[0]:
            return self._built(name, note, world, rank)
        value = self._usual(name, note, world, rank)
        if value is not UNKNOWN:
            return value
        if isinstance(default, ast.Constant) and default.value is None and "column" in name:
            return [COLUMN]
        if self.around_shard and name in _INNER_NAMES:
            return self._sampler(note, world)
        if default is not None and not (
            self.fills_none and isinstance(default, ast.Constant) and default.value is None
        ):
            return _KEEP
        value = self._required(name, note, world)
        for passed in self.klass.passed.get(name, ()) if value is UNKNOWN else ():
            value = self._passed(passed, note, world, rank)
            if value is not UNKNOWN:
                break
        made = self._made(world)
        return given(name, made, name) if value is UNKNOWN and made is not None else value

    def _usual(self, name: str, note: str, world: World, rank: int) -> Any:
        """The place of the process, the data and what else nearly every sampler takes."""
        if _DATA_NAMES.match(name):
            return self._data(note, world)
        return self.placed(name, world, rank)

    def placed(self, name: str, world: World, rank: int) -> Any:
        """What the world says of a name."""
        if _WORLD_NAMES.match(name) or name in self.worlds:
            return world.ranks
        if _RANK_NAMES.search(name):
            self.interpreter.asked_place = True
            return rank
        if _BATCH_NAMES.match(name):
            return world.batch_size
        if name == "drop_last":
            return world.drop_last
        return UNKNOWN

    def _passed(self, passed: Passed, note: str, world: World, rank: int) -> Any:
        """What the tree passes for a parameter, as this world has it."""
        if passed.role is Role.CONSTANT:
            is_large = isinstance(passed.value, (int, float)) and passed.value > _LARGE
            return UNKNOWN if is_large else passed.value
        if passed.role is Role.NAMED:
            value = self._usual(passed.value, note, world, rank)
            return self._required(passed.value, note, world) if value is UNKNOWN else value
        return {
            Role.RANK: rank,
            Role.RANKS: world.ranks,
            Role.SAMPLES: world.samples,
        }[passed.role]

    def _made(self, world: World) -> Made | None:
        """What stands for arguments, and for parts of them, in a world."""
        if self.guesses is None:
            return None
        return Made(self, world)

    @property
    def guessed(self) -> list[str]:
        """The single values that stand for arguments, in words."""
        guesses = self.guesses or {}
        return [
            f"{name}={guesses[name]}"
            for name in guesses
            if guesses[name] in _SINGLE and name in self.names
        ]

    def otherwise(self) -> dict[str, str]:
        """Other numbers for the same arguments: what hangs on them is no fault of the class."""
        return {key: _OTHERWISE.get(guess, guess) for key, guess in (self.guesses or {}).items()}

    def large_worlds(self) -> tuple[World, ...]:
        """Worlds of more samples than any number that the class itself works with."""
        most = max(
            (
                node.value
                for klass in self.klass.mro
                if isinstance(klass, Klass)
                for node in ast.walk(klass.node)
                if isinstance(node, ast.Constant)
                and type(node.value) is int
                and node.value <= MOST_HANDED_OUT
            ),
            default=0,
        )
        base = max(64, most)
        return (
            World(base, 2, 4),
            World(3 * base // 2, 3, 2),
            World(2 * base, 2, 4),
            World(base, 4, 4),
            World(2 * base + 1, 2, 4),
        )

    def _built(self, name: str, note: str, world: World, rank: int) -> Any:
        """What :attr:`given` asks for: one object, or one for each part of the data."""
        assert self.given is not None
        inner = self.given[1]
        if re.search(r"\b([Ll]ist|Sequence|[Tt]uple)\[", note) or name.endswith("s"):
            sizes = [part.size for part in Source(world.samples).parts()]
            return [inner.build(world._replace(samples=size), rank) for size in sizes]
        return inner.build(world, rank)

    def _data(self, note: str, world: World) -> Any:
        if re.search(r"\b(List|list|Sequence)\[", note):
            raise CannotTellError("a list of data sets")
        if "Sampler" in note:
            return self._sampler(note, world)
        return Source(world.samples, self._made(world))

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
        if name in _INNER_NAMES:
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
        source = data or Source(world.samples)
        if self.around_shard:
            known = self.interpreter.known_class("DistributedSampler")
            place = {"num_replicas": world.ranks, "rank": self.place}
            return self.interpreter.build(known, [source], place)
        return self.interpreter.build(
            self.interpreter.known_class("SequentialSampler"), [source], {}
        )

    def _batches(self, world: World, data: Source | None = None) -> Instance:
        known = self.interpreter.known_class("BatchSampler")
        arguments: Sequence[Any] = [
            self._sampler("", world, data),
            world.batch_size,
            world.drop_last,
        ]
        return self.interpreter.build(known, list(arguments), {})


_KEEP = object()
#: Numbers for real data, of which a small world has too little.
_LARGE = 64
#: A number that many divide.
_SMALL = 24

#: Ways to stand for a sequence, of which all but the last two are of numbers.
_SEQUENCES: dict[str, Callable[[World], list[Any]]] = {
    "samples": lambda world: list(range(world.samples)),
    "sizes": lambda world: [part.size for part in Source(world.samples).parts()],
    "groups": lambda world: _groups(world),
    "parts": lambda world: list(Source(world.samples).parts()),
}
_SINGLE: dict[str, Any] = {"0": 0, "2": 2, "3": 3, "False": False, "True": True}
_OTHERWISE = {
    "0": "3",
    "2": "3",
    "False": "True",
    "True": "False",
    "its group": "its place",
    "its place": "its group",
}
#: What may stand for an argument, by what the program first does with it: what changes nothing
#: (an offset of 0, a flag that is not set) before what does.
STAND_INS: dict[Kind, tuple[str, ...]] = {
    Kind.NUMBER: ("0", "2"),
    Kind.FLAG: ("False", "True", "something", *_SEQUENCES),
    Kind.SEQUENCE: (*_SEQUENCES, "each", "both", "mapped groups"),
    Kind.MAPPING: ("mapped groups", "each mapped", "both mapped"),
}
#: The same for an item of a sequence, or a part of one: items differ.
ITEM_STAND_INS: dict[Kind, tuple[str, ...]] = {
    **STAND_INS,
    Kind.NUMBER: ("its group", "its place"),
    Kind.SEQUENCE: ("its share", "both"),
}


def stand_ins(error: WantedError) -> list[str]:
    """What may stand for what the program asked for."""
    if error.choices:
        return [*(f"{_TEXT}{choice}" for choice in error.choices), _TEXT]
    table = ITEM_STAND_INS if _ITEM in error.key else STAND_INS
    return list(table[error.kind])


_LAST_PART = re.compile(r"(?:\.|\[')(\w+)(?:'\])?$")
#: In patterns, the place of an item.
_ITEM = "[]"
#: Before a text that the program compares an argument with.
_TEXT = "text:"


class Made:
    """What stands for arguments in one world."""

    def __init__(self, spec: SetUp, world: World) -> None:
        self.spec = spec
        self.guesses = spec.guesses or {}
        self.world = world
        self.place = spec.place
        self.rank = self.place if spec.numbers_are_ranks else None
        """What each argument is that is a number, unless None."""

    def of(self, pattern: str, key: str) -> Any:
        """As :meth:`~.values.StandIns.of` says."""
        guess = self.guesses.get(pattern)
        if guess is None:
            # `args.world_size` is what `world_size` would be.
            part = _LAST_PART.search(pattern)
            value = UNKNOWN if part is None else self.spec.placed(part[1], self.world, self.place)
            return NOT_MADE if value is UNKNOWN else value
        if guess.startswith(_TEXT):
            return guess.removeprefix(_TEXT)
        if guess == "something":
            return Given(key, self, pattern, is_true=True)
        if guess in _SINGLE:
            is_number = guess.isdigit()
            return self.rank if is_number and self.rank is not None else _SINGLE[guess]
        if guess in _SEQUENCES:
            return _SEQUENCES[guess](self.world)
        if guess.startswith("its "):
            place = int(key.rpartition("[")[2].partition("]")[0] or 0) if "[" in key else 0
            if guess == "its share":
                return list(range(place % 2, self.world.samples, 2))
            return place % 2 if guess == "its group" else place
        if guess == "mapped groups":
            return dict(enumerate(_groups(self.world)))
        count = self.world.samples if guess.startswith("each") else 2
        items = [
            given(f"{key}[{place}]", self, f"{pattern}{_ITEM}")
            for place in BUDGET.each(range(count))
        ]
        return dict(enumerate(items)) if guess.endswith("mapped") else items


def _groups(world: World) -> list[list[int]]:
    return [list(range(first, world.samples, 2)) for first in range(2)]


_Parameters = list[tuple[ast.arg, "ast.expr | None"]]


def _parameters(
    interpreter: Interpreter, klass: Klass, init: Any
) -> tuple[_Parameters, _Parameters]:
    """What a constructor takes by keyword, and what only behind the rest, for its ``*args``.

    What it hands on with ``*args`` and ``**kwargs`` is what the other constructor takes.
    """
    if not isinstance(init, Fn):
        return [], []
    spec = init.node.args
    plain_params = [*spec.posonlyargs, *spec.args][1:]
    missing = len(plain_params) - len(spec.defaults)
    defaults: list[ast.expr | None] = [None] * max(0, missing)
    defaults += spec.defaults[-len(plain_params) :] if plain_params else []
    params: _Parameters = list(zip(plain_params, defaults, strict=True))
    params += zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    if spec.vararg is None and spec.kwarg is None:
        return params, []
    for call in ast.walk(init.node):
        if isinstance(call, ast.Call) and (inner := _handed_on(interpreter, init, call)):
            known = {param.arg for param, _ in params}
            more = [pair for pair in inner if pair[0].arg not in known]
            return ([*params, *more], []) if spec.kwarg is not None else (params, more)
    return params, []


def _handed_on(interpreter: Interpreter, init: Fn, call: ast.Call) -> _Parameters:
    """What the called constructor takes by the ``*args`` and ``**kwargs`` of this one."""
    spec = init.node.args
    starred = [
        place
        for place, arg in enumerate(call.args)
        if isinstance(arg, ast.Starred) and spec.vararg and _last_name(arg.value) == spec.vararg.arg
    ]
    doubly = any(
        keyword.arg is None and spec.kwarg and _last_name(keyword.value) == spec.kwarg.arg
        for keyword in call.keywords
    )
    if not starred and not doubly:
        return []
    skipped = starred[0] if starred else len(call.args)
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "__init__":
        if isinstance(func.value, ast.Call) and _last_name(func.value.func) == "super":
            target = interpreter.member(init.klass, "__init__", init.klass) if init.klass else None
            owner = init.klass
        else:
            owner = _class_named(interpreter, init, func.value)
            target = None if owner is None else interpreter.member(owner, "__init__")
            skipped -= 1  # the object itself
    else:
        owner = _class_named(interpreter, init, func)
        target = None if owner is None else interpreter.member(owner, "__init__")
    if owner is None or target is init:
        return []
    named = {keyword.arg for keyword in call.keywords}
    params, spread = _parameters(interpreter, owner, target)
    return [pair for pair in [*params, *spread][max(0, skipped) :] if pair[0].arg not in named]


def _class_named(interpreter: Interpreter, init: Fn, node: ast.expr) -> Klass | None:
    try:
        value = interpreter.external_class(interpreter.global_value(init, node))
    except CannotTellError:
        return None
    return value if isinstance(value, Klass) else None


def _sizes_beside_ranks(klass: Klass) -> Iterator[str]:
    """What the class holds a rank against: ``rank < size``, or ``x[rank::size]``."""
    for node in ast.walk(klass.node):
        if isinstance(node, ast.Compare) and isinstance(
            node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
        ):
            sides = node.left, node.comparators[0]
        elif isinstance(node, ast.Slice) and node.lower is not None and node.step is not None:
            sides = node.lower, node.step
        else:
            continue
        for rank, size in (sides, sides[::-1]):
            name = _last_name(size)
            if _RANK_NAMES.search(_last_name(rank)) and not _RANK_NAMES.search(name):
                yield name


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


#: For what data holds, which is 1 to 5 (see :class:`~.values.Data`): some of it is left out.
_LIMIT = 3


def _read_keywords(node: ast.AST, kwarg: str) -> Iterator[str]:
    """The keys of ``**kwargs`` that a constructor looks for and does without."""
    for call in ast.walk(node):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in {"get", "pop"}
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == kwarg
            and len(call.args) == 2
            and isinstance(call.args[0], ast.Constant)
            and isinstance(call.args[0].value, str)
            and isinstance(call.args[1], ast.Constant)
            and call.args[1].value is None
        ):
            yield call.args[0].value


def _numbers(values: list[int], note: str) -> Any:
    return list(values) if "ist" in note or "Sequence" in note else Array(values)
