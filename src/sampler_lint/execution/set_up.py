"""Small worlds to try a sampler class in, and the arguments to build it with there.

Constructor arguments are made from the names and annotations of the parameters, as anyone
would who tries the class by hand; what has a default keeps it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from sampler_lint.execution.budget import (
    LARGE_NUMBER,
    MOST_HANDED_OUT,
    SMALL_LIMIT,
    SMALL_NUMBER,
)
from sampler_lint.execution.chance import Stream
from sampler_lint.execution.errors import CannotTellError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.spoken import spoken
from sampler_lint.execution.stand_ins import Made, other
from sampler_lint.execution.values import (
    COLUMN,
    UNKNOWN,
    Array,
    Called,
    Data,
    External,
    Fn,
    Instance,
    Klass,
    Lost,
    Passed,
    Source,
    given,
    last_name,
)
from sampler_lint.execution.worlds import World
from sampler_lint.parameters import NUMBERS, Role, role_of, several
from sampler_lint.syntax.parse import all_nodes

#: What is given whether the constructor could do without it or not.
_ALWAYS = frozenset({Role.DATASET, Role.WORLD_SIZE, Role.RANK, Role.BATCH_SIZE, Role.DROP_LAST})
_PLACE = frozenset({Role.RANK, Role.WORLD_SIZE})
#: The size of anything: beside data, which knows its own, that of a window or an epoch.
_SIZES = frozenset({"size", "length", "n"})
#: Options that say themselves that ranks may differ, or that do not matter here.
_SAYS_UNEVEN = re.compile(
    r"even|pad|round|extend|fill|dup|repeat|replace|trunc|inf|endless|eval|test|val|verbose|debug"
    r"|seed|resume|start|epoch|drop|keep|distributed|sync|skip",
    re.IGNORECASE,
)
_LIMIT_NAMES = re.compile(r"^(max|min)_|_(length|len|limit|threshold|tokens|frames|max|min)$")
_PROGRESS_NAMES = re.compile(r"(^|_)(steps?|iter(ation)?s?|batch(es)?|batch_idx)$", re.IGNORECASE)


def says_uneven(option: str) -> bool:
    """Whether the name of an option says that ranks may differ with it."""
    return _SAYS_UNEVEN.search(option) is not None


def _is_limit(name: str) -> bool:
    return _LIMIT_NAMES.search(name) is not None and not says_uneven(name)


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
        self.guesses: dict[str, Any] | None = None
        """What stands for arguments of which only the use tells something, by their names; None
        while they are left unknown."""
        self.fills_none = False
        """Whether arguments that may be None are given, too."""
        self.leaves_place = False
        """Whether the rank and the number of ranks are left out where they may be None."""
        self.numbers_are_ranks = False
        """Whether each such argument that is a number is taken to be the rank."""
        self.numbers_are_sizes = False
        """Whether numbers of which only the name is known are as large as the data."""
        self.settled: tuple[str, Any] | None = None
        """An optional argument without whose other value the class refuses every world."""
        self.goes_on = False
        """Whether the class, with what is guessed, hands out more than any world has: of that only
        the first is looked at."""
        self.seed: int | None = None
        """What is given for a seed that has a number by default."""
        self.seeded = False
        """Whether it is given for every seed."""
        self.gives_batches = False
        """Whether the samplers that it takes hand out batches."""
        self.dense = False
        """Whether the data holds the numbers of two classes, and no others."""
        self.place = 0
        self.refused: dict[str, Any] = {}
        """The guesses with which the class did not let itself be built or iterated last."""
        self.refusals: dict[bool, tuple[ast.AST | None, dict[str, Any]]] = {}
        """What refused guesses, and these, by whether arguments that may be None were given."""
        self.longer = ""
        """What a sequence stands for that is twice as long as the world says."""
        self._notes: dict[ast.arg, str] = {}
        init = interpreter.member(klass, "__init__")
        self._own_init = init.node if isinstance(init, Fn) and init.klass is klass else None
        self.params, self.spread = _parameters(interpreter, klass, init)
        self.names = {param.arg for param, _ in [*self.params, *self.spread]}
        if klass not in interpreter.spoken:
            interpreter.spoken[klass] = spoken(all_nodes(klass.node))
        self.worlds, self.walked, self.divided, parts = interpreter.spoken[klass]
        self.roles = set(map(role_of, self.names))
        self.takes_rank = Role.RANK in self.roles
        if self.takes_rank and Role.WORLD_SIZE not in self.roles:
            self.worlds |= parts
        self.takes_drop_last = Role.DROP_LAST in self.roles
        self.takes_batch_size = Role.BATCH_SIZE in self.roles

    @cached_property
    def own_constructor(self) -> set[ast.AST]:
        """The code of the class's own constructor; empty where a base has it."""
        return set() if self._own_init is None else {*all_nodes(self._own_init)}

    def is_taken_over(self, lost: Lost) -> bool:
        """Whether a base's constructor has overwritten what the class's own had set."""
        return (
            lost.target in self.own_constructor
            and lost.by not in self.own_constructor
            and type(lost.value) is type(lost.other) in {bool, int, float, str}
            and lost.value != lost.other
        )

    def options(self) -> Iterator[tuple[str, Any]]:
        """Optional arguments with another value than their default: flags, limits and numbers."""
        numbers = []
        for param, default in self.params:
            if not isinstance(default, ast.Constant) or role_of(param.arg) is Role.DROP_LAST:
                continue  # that goes by the world, for what is inside as well: see `drops`
            if isinstance(default.value, bool):
                yield from self._turned(param.arg, default.value)
            elif default.value is None and _is_limit(param.arg):
                yield param.arg, SMALL_LIMIT
            elif default.value is None and self._role(param.arg) in {Role.SIZE, Role.NUMBER}:
                numbers.append(param)
        init = self.interpreter.member(self.klass, "__init__")
        if isinstance(init, Fn) and init.node.args.kwarg is not None:
            for name in _read_keywords(init.node, init.node.args.kwarg.arg):
                if _is_limit(name):
                    yield name, SMALL_LIMIT
        yield from ((p.arg, SMALL_LIMIT) for p in numbers if p not in self.klass.lent)

    def flags(self) -> Iterator[tuple[str, bool]]:
        """Every optional flag that is not always given, with the other value than its default."""
        for param, default in self.params:
            if isinstance(default, ast.Constant) and isinstance(default.value, bool):
                yield from self._turned(param.arg, default.value)

    def _turned(self, name: str, default: bool) -> Iterator[tuple[str, bool]]:
        if self._always(name) is None:
            yield name, not default

    @property
    def drops(self) -> tuple[bool, ...]:
        """The values of ``drop_last`` to be tried."""
        if self.settled is not None and self.settled[0] == "drop_last":
            return (self.settled[1],)
        defaults = {param.arg: default for param, default in self.params}
        default = getattr(defaults.get("drop_last"), "value", None)
        passed = {
            default if each.role is Role.DROP_LAST else each.value
            for each in self.klass.passed.get("drop_last", ())
        }
        if len(passed) == 1 and type(value := passed.pop()) is bool:
            return (value,)  # the program builds it with no other
        return (False, True) if self.takes_drop_last else (False,)

    def settlements(self) -> Iterator[tuple[str, Any] | None]:
        """What may let a class be built that refuses the usual arguments."""
        yield None
        if self.takes_drop_last:
            yield "drop_last", True
        for param, _ in self.params:
            if self._role(param.arg) is Role.BOUNDARIES:
                yield param.arg, (2, 4, 6)  # a limit of 0 may be none
        yield from (flag for flag in self.flags() if flag[0] != "drop_last")
        for param, default in self.params:
            value = default.value if isinstance(default, ast.Constant) else None
            if type(value) is int and value > 2 and self._role(param.arg) is Role.NUMBER:
                yield param.arg, 2  # as many as there are of classes
        for param, default in self.params:  # a class may want one of two
            is_none = isinstance(default, ast.Constant) and default.value is None
            if is_none and self._role(param.arg) is Role.BATCH_SIZE:
                yield param.arg, None

    @property
    def may_leave_rank(self) -> bool:
        """Whether the rank may be None, and no call of the program's gives another."""
        return any(
            isinstance(default, ast.Constant) and default.value is None
            for param, default in self.params
            if self._role(param.arg) is Role.RANK and not self.klass.passed.get(param.arg)
        )

    @property
    def tells_rank(self) -> bool:
        """Whether arguments may hang on the rank though nothing asks for it."""
        return self.around_shard or self.numbers_are_ranks

    @cached_property
    def has_while_loop(self) -> bool:
        """Whether a class of the tree in the hierarchy has one."""
        return any(each.has_while_loop for each in self.klass.mro if isinstance(each, Klass))

    def small_numbers(self) -> Iterator[tuple[str, int]]:
        """Optional numbers too large for small worlds, with some that are not."""
        for param, default in self.params:
            value = default.value if isinstance(default, ast.Constant) else None
            if type(value) is int and value > LARGE_NUMBER:
                yield param.arg, SMALL_NUMBER

    def progress(self, state_dict: Fn, world: World, steps: int) -> dict[str, Any]:
        """Arguments for a ``state_dict()`` that is told how far training has come."""
        spec = state_dict.node.args
        params = [*spec.posonlyargs, *spec.args][1:]
        out: dict[str, Any] = {}
        for param in params[: len(params) - len(spec.defaults)]:
            if _PROGRESS_NAMES.search(param.arg):
                out[param.arg] = steps
            elif role_of(param.arg) in {Role.BATCH_SIZE, Role.TOTAL_BATCH}:
                out[param.arg] = world.batch_size
            elif steps == 1 and role_of(param.arg) in {None, Role.NUMBER}:
                out[param.arg] = steps  # the sampler itself knows all else: one of whatever counts
            else:
                raise CannotTellError("how far it has come")
        return out

    def shortened(self, world: World) -> int | None:
        """How much of what a process hands out is looked at, unless all: less than an epoch."""
        return world.samples // (world.ranks * world.batch_size) if self.goes_on else None

    def build(self, world: World, rank: int, option: tuple[str, Any] | None = None) -> Instance:
        """An instance for one rank of a world."""
        args, keywords = self.arguments(world, rank, option)
        return self.interpreter.build(self.klass, args, keywords)

    def arguments(
        self, world: World, rank: int, option: tuple[str, Any] | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """What the constructor is given on one rank of a world."""
        self.place = rank
        Data.dense, Data.stand_ins = self.dense, self._made(world)
        keywords = dict(part for part in (self.settled, option) if part is not None)
        for name, value in keywords.items():
            keywords[name] = [*value] if isinstance(value, tuple) else value  # it may be changed
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
        return args, keywords

    def _argument(self, param: ast.arg, default: ast.expr | None, world: World, rank: int) -> Any:
        name = param.arg
        note = self._notes.get(param)
        if note is None:
            annotation = param.annotation
            note = self._notes[param] = ast.unparse(annotation) if annotation is not None else ""
        if self.given is not None and name == self.given[0]:
            return self._built(name, note, world, rank)
        role = self._role(name, note)
        may_be_none = isinstance(default, ast.Constant) and default.value is None
        is_empty = isinstance(default, (ast.List, ast.Tuple, ast.Dict)) and not _parts_of(default)
        if may_be_none and role is Role.COLUMN:
            return [COLUMN]
        is_number = isinstance(default, ast.Constant) and type(default.value) is int
        if self.seed is not None and role is Role.SEED and (is_number or self.seeded):
            return self.seed
        if default is not None and (always := self._always(name)) is not None:
            return [] if always == () else always
        is_left = default is not None and not (self.fills_none and (may_be_none or is_empty))
        inner = self.around_shard and role is Role.SAMPLER
        is_wanted = role in _ALWAYS or (role is Role.TOTAL_BATCH and _is_none(default))
        if self.leaves_place and may_be_none and role in _PLACE:
            return _KEEP
        if is_left and not inner and not is_wanted:
            return _KEEP
        value = self._wanted(role, name, note, world, rank)
        if role is None and role_of(name.removesuffix("s")) is Role.BATCH_SIZE:
            value = [world.batch_size for _ in Source(world.samples).parts()]
        for passed in self.klass.passed.get(name, ()) if value is UNKNOWN else ():
            value = self._passed(passed, note, world, rank)
            if value is not UNKNOWN:
                break
        made = self._made(world)
        return given(name, made, name) if value is UNKNOWN and made is not None else value

    def _role(self, name: str, note: str = "") -> Role | None:
        role = role_of(name, note)
        if name in self.worlds and role in {None, Role.SIZE, Role.NUMBER}:
            return Role.WORLD_SIZE
        if role is Role.NUMBER:  # some number, by its name; what is passed says which
            told = {each.role for each in self.klass.passed.get(name, ())} & {*_PLACE, Role.SIZE}
            if len(told) == 1:
                return told.pop()
        if role is Role.SIZE and not self._may_be_size(name):
            role = Role.NUMBER
        if role is Role.NUMBER and name in self.divided:
            return Role.TOTAL_BATCH
        if role is Role.SIZE and name in _SIZES and self.roles & {Role.DATASET, Role.SAMPLER}:
            return None
        if name not in self.walked:
            return role
        # `shards` may be how many, or which; `length` that of all, or of each.
        return Role.LENGTHS if role is Role.SIZE else None if role in NUMBERS else role

    def _may_be_size(self, name: str) -> bool:
        """Whether a parameter may get how many samples there are, as its name says.

        Not where the tree passes that for another one, and something else for this one.
        """
        passed = self.klass.passed
        if not any(each.role is Role.SIZE for others in passed.values() for each in others):
            return True
        return not (given := passed.get(name)) or any(
            each.role is Role.SIZE or role_of(each.name) is Role.SIZE for each in given
        )

    def placed(self, name: str, world: World, rank: int) -> Any:
        """What the world says of a name."""
        role = self._role(name)
        self.takes_drop_last |= role is Role.DROP_LAST
        is_said = role in {*_ALWAYS, Role.CLASSES} and role is not Role.DATASET
        return self._wanted(role, name, "", world, rank) if is_said else UNKNOWN

    def _wanted(self, role: Role | None, name: str, note: str, world: World, rank: int) -> Any:
        """What a parameter of that role is given; :data:`UNKNOWN` where nobody knows."""
        samples = world.samples
        match role:
            case Role.WORLD_SIZE:
                return world.ranks
            case Role.RANK:
                self.interpreter.asked_place = True
                return rank
            case Role.BATCH_SIZE:
                return world.batch_size
            case Role.TOTAL_BATCH:
                return world.batch_size * world.ranks
            case Role.DROP_LAST:
                return world.drop_last
            case Role.DATASET if several(note) and role_of("", note.partition("[")[2]) is role:
                raise CannotTellError("a list of data sets")
            case Role.DATASET:
                return Source(samples, self._made(world))
            case Role.SAMPLER | Role.BATCH_SAMPLER if several(note) or name.endswith("s"):
                parts = [Source(part.size) for part in Source(samples).parts()]
                return [self._sampler(role, world, part) for part in parts]
            case Role.SAMPLER | Role.BATCH_SAMPLER:
                return self._sampler(role, world, Source(samples, self._made(world)))
            case Role.SIZE | Role.NUMBER if Role.CLASSES in self.roles and name.startswith("n"):
                return 2
            case Role.PART_SIZES:
                return [part.size for part in Source(samples).parts()]
            case Role.BOUNDARIES:
                return _numbers([0, 2, 4, 6], note if "Tensor" in note else "list")
            case Role.SIZE:
                return samples
            case Role.SEED | Role.START:
                return 0
            case Role.SHUFFLE | Role.DISTRIBUTED:
                return True
            case Role.LABELS:
                return _numbers([index % 2 for index in range(samples)], note)
            case Role.LENGTHS:
                return _numbers([Data(f"{name}[{i}]").number for i in range(samples)], note)
            case Role.MOST | Role.MAX_BATCH:
                return 6
            case Role.NUMBER if self.numbers_are_sizes:
                return samples
            case Role.CLASSES | Role.NUMBER:
                return 2
            case Role.FUNCTION:
                return Called(name)
            case Role.GENERATOR:
                return External("numpy.random", Stream())  # it has what the others have, too
        return False if note == "bool" else UNKNOWN

    def _always(self, name: str) -> Any:
        """The flag or word that each construction chooses, or () for a list; None if none does.

        Whether it shuffles is left open: how it would is what the class says of itself.
        """
        passed = self.klass.passed.get(name, ()) if role_of(name) is not Role.SHUFFLE else ()
        ways = {each.value for each in passed if each.is_always}
        if len(passed) != len(ways) or len(ways) != 1:
            return None
        way = ways.pop()
        return way if isinstance(way, (bool, str, tuple)) else None

    def _passed(self, passed: Passed, note: str, world: World, rank: int) -> Any:
        """What the tree passes for a parameter, as this world has it."""
        if passed.role is not None or passed.name:
            role = passed.role or self._role(passed.name, note)
            return self._wanted(role, passed.name, note, world, rank)
        is_large = isinstance(passed.value, (int, float)) and passed.value > LARGE_NUMBER
        return UNKNOWN if is_large else passed.value

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
            if isinstance(guesses[name], int) and name in self.names
        ]

    def otherwise(self) -> dict[str, Any]:
        """Other numbers for the same arguments: what hangs on them is no fault of the class."""
        return {key: other(guess) for key, guess in (self.guesses or {}).items()}

    @cached_property
    def usual_sampler(self) -> Klass:
        """The sampler of torch's that has what the class reads of the samplers that it holds."""
        read = {
            node.attr
            for klass in self.klass.mro
            if isinstance(klass, Klass) and klass.names.module is not None
            for node in all_nodes(klass.node)
            if isinstance(node, ast.Attribute)
            and role_of(last_name(node.value).strip("_")) is Role.SAMPLER
        }
        plain, random = map(self.interpreter.known_class, ("SequentialSampler", "RandomSampler"))
        return random if read & (_offered(random) - _offered(plain)) else plain

    @cached_property
    def wide_worlds(self) -> tuple[World, ...]:
        """Worlds of batches that can be made of several groups on each of several ranks."""
        base, wide = self.large_worlds[0].samples, SMALL_NUMBER
        return tuple(
            World(base + more, ranks, size)
            for more, ranks, size in (
                *((0, 2, wide), (wide, 2, wide), (1, 2, wide), (wide // 2, 3, wide)),
                *((wide, 2, 2 * wide), (wide + 5, 3, wide)),
            )
        )

    @cached_property
    def filled_worlds(self) -> tuple[World, ...]:
        """For each optional number that the usual worlds stay below, one that fills it twice.

        Data comes in several groups there, each of which may end with less than a batch.
        """
        numbers = {getattr(default, "value", None) for _, default in self.params}
        return tuple(
            World(2 * number + 1, 2, 3)
            for number in sorted(number for number in numbers if type(number) is int)
            if SMALL_NUMBER < number < MOST_HANDED_OUT // 2
        )

    @cached_property
    def large_worlds(self) -> tuple[World, ...]:
        """Worlds of more samples than any number that the class itself works with."""
        own = (each.numbers for each in self.klass.mro if isinstance(each, Klass))
        named = (number for each in own for number in each if number <= MOST_HANDED_OUT)
        base = max(LARGE_NUMBER, *named, 0)
        return (
            World(base, 2, 4),
            World(3 * base // 2, 3, 2),
            World(2 * base, 2, 4),
            World(base, 4, 4),
            # Batches of whatever power of two: one is not full, and an odd number are.
            World(2 * base - 1, 2, 4),
            # Neither the samples of a rank nor its batches divide evenly.
            World(3 * base // 2 + 5, 2, 4),
        )

    def _built(self, name: str, note: str, world: World, rank: int) -> Any:
        """What :attr:`given` asks for: one object, or one for each part of the data."""
        assert self.given is not None
        inner = self.given[1]
        if several(note) or name.endswith("s"):
            sizes = [part.size for part in Source(world.samples).parts()]
            return [inner.build(world._replace(samples=size), rank) for size in sizes]
        return inner.build(world, rank)

    def _sampler(self, role: Role, world: World, data: Source) -> Instance:
        """One of torch's own, around the data."""
        build, class_of = self.interpreter.build, self.interpreter.known_class
        if self.around_shard:
            place = {"num_replicas": world.ranks, "rank": self.place}
            sampler = build(class_of("DistributedSampler"), [data], place)
        else:
            sampler = build(self.usual_sampler, [data], {})
        sampler.attributes["dataset"] = data  # as samplers of one's own call it
        if role is Role.SAMPLER and not self.gives_batches:
            return sampler
        return build(class_of("BatchSampler"), [sampler, world.batch_size, world.drop_last], {})


def _offered(klass: Klass) -> set[str]:
    """What an object of the class has by a name."""
    stored = {
        node.attr
        for node in all_nodes(klass.node)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return stored | klass.members.keys()


def _parts_of(display: ast.List | ast.Tuple | ast.Dict) -> list[Any]:
    return display.keys if isinstance(display, ast.Dict) else display.elts


_KEEP = object()

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
    for call in all_nodes(init.node):
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
        if isinstance(arg, ast.Starred) and spec.vararg and last_name(arg.value) == spec.vararg.arg
    ]
    doubly = any(
        keyword.arg is None and spec.kwarg and last_name(keyword.value) == spec.kwarg.arg
        for keyword in call.keywords
    )
    if not starred and not doubly:
        return []
    skipped = starred[0] if starred else len(call.args)
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "__init__":
        if isinstance(func.value, ast.Call) and last_name(func.value) == "super":
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


def _is_none(default: ast.expr | None) -> bool:
    """Whether a number says that none was given: less than nothing."""
    return isinstance(default, ast.UnaryOp) and isinstance(default.op, ast.USub)


def _read_keywords(node: ast.AST, kwarg: str) -> Iterator[str]:
    """The keys of ``**kwargs`` that a constructor looks for and does without."""
    for call in all_nodes(node):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and hasattr(dict, call.func.attr)  # get, pop
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
    return list(values) if several(note) else Array(values)
