"""Build a sampler from its signature: what each parameter wants, by its name and annotation."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from sampler_lint.harness.kinds import Kind, kinds_of, likelier_first, parts, places
from sampler_lint.harness.ranks import Case, RankTrace, Setting, Simulator, made_up
from sampler_lint.parameters import Role, role_of, several
from sampler_lint.properties import flat

_MADE: dict[Role, Callable[[Case], Any]] = {
    Role.SHUFFLE: lambda case: case.shuffle,
    Role.DATASET: lambda case: case.dataset,
    Role.WORLD_SIZE: lambda case: case.world_size,
    Role.RANK: lambda case: case.rank,
    Role.SEED: lambda case: case.seed,
    Role.BATCH_SIZE: lambda case: case.batch_size,
    Role.MAX_BATCH: lambda case: case.batch_size,
    Role.LENGTHS: lambda case: case.lengths,
    Role.LABELS: lambda case: case.labels,
    Role.GROUPS: lambda case: case.labels,
    Role.INDICES: lambda case: case.indices,
}
#: What an optional parameter is not given.
_REQUIRED: dict[Role, Callable[[Case], Any]] = {
    Role.TOTAL_BATCH: lambda case: case.batch_size * case.world_size,
    Role.WEIGHTS: lambda case: case.weights,
    Role.SIZE: lambda case: case.size,
    Role.START: lambda _: 0,
    Role.DROP_LAST: lambda _: False,
    Role.PART_SIZES: lambda case: [part for part in parts(case) if part],
}

#: How Python says that a parameter is already filled, or is not there.
_REFUSED = re.compile(
    r"(multiple values for (keyword )?|unexpected keyword )argument '(?P<name>\w+)'"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to build: what is taken to be meant."""

    build: Callable[[Case], Any]
    chosen: Mapping[str, Kind]
    """What stands for the parameters that do not say what they want."""

    @property
    def guessed(self) -> str:
        """What was chosen, in words."""
        return ", ".join(f"{name} = {one.says}" for name, one in self.chosen.items() if one.says)


class CannotGuessError(ValueError):
    """A parameter without default whose meaning neither name nor annotation tells."""

    def __init__(self, factory: str, parameter: str, tried: str = "") -> None:
        self.parameter = parameter
        how = f"give it, with kw={{{parameter!r}: …}} or --kw {parameter}=…"
        if parameter.startswith("*"):
            how = "write a function that builds it"
        super().__init__(f"cannot guess what {factory} takes as `{parameter}`{tried}: {how}")


def name_of(factory: Callable[..., Any]) -> str:
    """The factory's name, as its user knows it."""
    return getattr(factory, "__name__", None) or type(factory).__name__


def readings(
    factory: Callable[..., Any], given: Mapping[str, Any] | None = None
) -> Iterator[Reading]:
    """Ways to build for the meanings that the parameters may have, the likelier first.

    Raises:
        CannotGuessError: a parameter without default may be nothing known.
        TypeError: ``given`` has a name that the factory does not take.
    """
    given = dict(given or {})
    types, open_ = _types(factory), dict[str, list[Kind]]()
    named = {name: one for name, one in _named(factory, given).items() if name not in given}
    roles = {name: role_of(name, _annotation(one)) for name, one in named.items()}
    knows_rank = not {Role.RANK, Role.WORLD_SIZE}.isdisjoint(roles.values())
    data_comes = not {Role.DATASET, Role.SIZE, Role.INDICES}.isdisjoint(roles.values())
    for name, one in named.items():
        role = roles[name]
        if role is Role.LENGTHS and not data_comes:
            open_[name] = [Kind("", _MADE[role]), Kind("", _REQUIRED[Role.PART_SIZES])]
        elif one.default is one.empty and not _known_value(
            one, role, types.get(name), knows_rank=knows_rank
        ):
            kinds = kinds_of(factory, name, types.get(name), _annotation(one), role)
            if not kinds:
                raise CannotGuessError(name_of(factory), name)
            open_[name] = [*kinds, *(() if knows_rank else places(kinds))]
    unset = _unset(factory, given)
    for more in ({}, unset) if unset else ({},):
        for chosen in likelier_first({**open_, **more}):
            yield Reading(builder(factory, given, chosen), chosen)


def _unset(factory: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, list[Kind]]:
    """What may be given to parameters that default to None, which a constructor may refuse."""
    roles = {
        name: role_of(name, _annotation(one))
        for name, one in _named(factory, given).items()
        if one.default is None and name not in given
    }
    return {
        name: [Kind("what its name says", _REQUIRED[role])]
        for name, role in roles.items()
        if role in _REQUIRED
    }


def as_meant(
    factory: Callable[..., Any],
    given: Mapping[str, Any] | None,
    simulator: Callable[[Callable[[Case], Any]], Simulator],
    size: int,
    batch_size: int,
) -> Reading:
    """The first way to build with which nothing but indices are read, and all of them; or most.

    Raises:
        CannotGuessError: with none of the values that parameters may want anything is read.
        TypeError: ``given`` has a name that the factory does not take.
    """
    first: Reading | None = None
    best, most, stuck, problems = None, 0.0, 0, list[_Problem]()
    unset = _unset(factory, given or {})
    for one in readings(factory, given):
        if not one.chosen and not unset:
            return one
        first = first or one
        shared = any(kind.place for kind in one.chosen.values())
        ranks = simulator(one.build).world(Setting(size, 2 if shared else 1, 0, batch_size), 1)
        if not one.chosen and not ranks[0].refusal:
            return one
        stuck += any(rank.stuck for rank in ranks)
        problems.append(_problem(ranks[0]))
        read = _read(ranks, size)
        if shared and (read < 1 or any(len(rank.passes[0].items) * 2 > size + 1 for rank in ranks)):
            read = 0.0  # no share of the ranks, whatever it is
        if read > most:
            best, most = one, read
        if most == 1 or stuck > 1:
            break
    is_its_own = len({*problems}) == 1 and problems[0].is_raised  # whatever it is given
    if best is None and first is not None and first.guessed and not is_its_own:
        name, kind = next((name, kind) for name, kind in first.chosen.items() if kind.says)
        raise CannotGuessError(
            name_of(factory), name, f" (with {kind.says}, it {problems[0].says})"
        )
    found = best or first
    assert found is not None  # there is a way to build, or an error says why not
    return found


class _Problem(NamedTuple):
    """What a value came to."""

    says: str
    is_raised: bool
    """The sampler was built, and raised when it was read."""


def _problem(rank: RankTrace) -> _Problem:
    raised = next((one.error for one in rank.passes if one.error), None)
    if rank.refusal:
        return _Problem(f"raises {rank.refusal} when it is built", is_raised=False)
    return _Problem(raised or "yields no index of the dataset", is_raised=raised is not None)


def _read(ranks: Sequence[RankTrace], size: int) -> float:
    """The part of the samples that the ranks read; 0 where they raise, or yield anything else."""
    passes = [one for rank in ranks for one in rank.passes]
    items = [item for one in passes for item in flat(one.items)]
    if any(rank.refusal for rank in ranks) or any(one.error for one in passes):
        return 0.0
    known = set(range(size))
    return len(known.intersection(items)) / size if all(item in known for item in items) else 0.0


def builder(
    factory: Callable[..., Any],
    given: Mapping[str, Any] | None = None,
    chosen: Mapping[str, Kind] | None = None,
) -> Callable[[Case], Any]:
    """A function that calls ``factory`` with what its parameters want in a case.

    ``factory`` is a class or a function. ``given`` are values for parameters, the same in all
    cases; a callable among them whose one parameter is called ``case`` makes the value.
    ``chosen`` are kinds of values for parameters that do not say what they want.

    Raises:
        CannotGuessError: a parameter without default means nothing known.
        TypeError: ``given`` has a name that the factory does not take.
    """
    given = dict(given or {})
    parameters = _parameters(factory)
    named = _named(factory, given)
    plan: dict[str, Callable[[Case], Any]] = {}
    roles = {name: role_of(name, _annotation(one)) for name, one in named.items()}
    knows_rank = not {Role.RANK, Role.WORLD_SIZE}.isdisjoint(roles.values())
    types = _types(factory)
    for name, one in named.items():
        if chosen and name in chosen:
            plan[name] = chosen[name].make
        elif name not in given:
            value = _known_value(one, roles[name], types.get(name), knows_rank=knows_rank)
            if value is not None:
                plan[name] = value
            elif one.default is one.empty:
                raise CannotGuessError(name_of(factory), name)
    for name, value in given.items():
        plan[name] = value if _makes(value) else functools.partial(_same, value)
    first = [name for name, one in named.items() if one.kind is one.POSITIONAL_ONLY]
    several = _several(factory, parameters, knows_rank=knows_rank)
    own = set(_signature(factory)) | given.keys()

    def build(case: Case) -> Any:
        while True:
            values = {name: value(case) for name, value in plan.items()}
            try:
                given_first = [values.pop(name) for name in first if name in values]
                return factory(*given_first, *(value(case) for value in several), **values)
            except TypeError as error:
                refused = _REFUSED.search(str(error))
                # What a base class takes, the class may pass on by itself, or not pass on.
                if refused is None or refused["name"] in own or not plan.pop(refused["name"], None):
                    raise

    return build


def _several(
    factory: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], *, knows_rank: bool
) -> list[Callable[[Case], Any]]:
    """What to give to ``*parameters``: one of what they are; nothing where they are only passed on.

    Raises:
        CannotGuessError: they are said to be something that is not known.
    """
    for name, one in parameters.items():
        annotation = _annotation(one)
        if one.kind is one.VAR_POSITIONAL:
            single = one.replace(kind=one.POSITIONAL_ONLY)
            value = _wanted(single, role_of(name, annotation), knows_rank=knows_rank)
            if value is not None:
                return [value]
            if annotation and not annotation.endswith(("Any", "object", ".args")):
                raise CannotGuessError(name_of(factory), f"*{name}")
    return []


def takes(factory: Callable[..., Any], name: str) -> bool:
    """Whether the factory has a parameter of that name."""
    return name in _parameters(factory)


def _same(value: Any, _: Case) -> Any:
    return value


def _makes(value: Any) -> bool:
    """Whether a given value is a function of the case."""
    try:
        return callable(value) and list(inspect.signature(value).parameters) == ["case"]
    except (TypeError, ValueError):
        return False


def _signature(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters that the factory itself names."""
    return inspect.signature(factory).parameters


def _parameters(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters, with those of the base class that ``**kwargs`` passes on."""
    if not inspect.isclass(factory):
        return dict(inspect.signature(factory).parameters)
    found: dict[str, inspect.Parameter] = {}
    for cls in factory.__mro__:
        init = vars(cls).get("__init__")
        if init is None or cls is object:
            continue
        own = list(inspect.signature(init).parameters.values())[1:]
        for one in own:
            found.setdefault(one.name, one)
        if not any(one.kind is one.VAR_KEYWORD for one in own):
            for name, one in list(found.items()):
                if one.kind is one.VAR_KEYWORD:
                    del found[name]  # all that it passes on is known
            break
    return found


def _annotation(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else str(annotation)


def _wanted(
    parameter: inspect.Parameter, role: Role | None, *, knows_rank: bool
) -> Callable[[Case], Any] | None:
    """How the value is made; None to leave the default."""
    if parameter.name == "case":
        return lambda case: case
    annotation = _annotation(parameter)
    if "ConcatDataset" in annotation and not several(annotation):
        return _concatenated
    if role in _MADE:
        return _MADE[role]
    if parameter.default is not parameter.empty:
        return None
    if role is Role.GENERATOR:
        return functools.partial(_generator, annotation)
    if role in {Role.SAMPLER, Role.BATCH_SAMPLER} and not several(annotation):
        return functools.partial(_sampler if role is Role.SAMPLER else _batch_sampler, knows_rank)
    if annotation in {"bool", str(bool)}:
        return lambda _: False
    return None if role is None else _REQUIRED.get(role)


def _known_value(
    parameter: inspect.Parameter, role: Role | None, annotation: Any, *, knows_rank: bool
) -> Callable[[Case], Any] | None:
    """How the value is made where name or annotation tell; None to leave the default, if any."""
    value = _wanted(parameter, role, knows_rank=knows_rank)
    if value is None and parameter.default is parameter.empty:
        value = _of_type(annotation)
    return value


def _named(factory: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
    """The parameters that have names.

    Raises:
        TypeError: ``given`` has a name that the factory does not take.
    """
    parameters = _parameters(factory)
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    named = {
        name: one
        for name, one in parameters.items()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
    unknown = [name for name in given if name not in named]
    if unknown and not takes_any:
        raise TypeError(f"{name_of(factory)} takes no `{unknown[0]}`; it takes {', '.join(named)}")
    return named


def _types(factory: Callable[..., Any]) -> dict[str, Any]:
    """The parameters' annotations as what they name, where that can be told."""
    try:
        return get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    except Exception:  # they may name anything, or nothing
        return {}


def _of_type(annotation: Any) -> Callable[[Case], Any] | None:
    """The first of the few values that a type has; of settings, those that are known by name."""
    if get_origin(annotation) is Literal:
        return functools.partial(_same, get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return functools.partial(_same, next(iter(annotation)))
    if isinstance(annotation, type) and is_dataclass(annotation):
        needed = [one for one in fields(annotation) if one.init]
        if all((one.default, one.default_factory) != (MISSING, MISSING) for one in needed):
            named = {one.name: role_of(one.name, str(one.type)) for one in needed}
            known = {name: _MADE[role] for name, role in named.items() if role in _MADE}
            return lambda case: annotation(**{name: made(case) for name, made in known.items()})
    return None


def _concatenated(case: Case) -> Any:
    """The dataset as two datasets, one after the other."""
    from torch.utils.data import ConcatDataset, Subset

    first, _ = parts(case)
    whole = case.dataset
    return ConcatDataset([Subset(whole, range(first)), Subset(whole, range(first, case.size))])


def _generator(annotation: str, case: Case) -> Any:
    if "numpy" in annotation or "np." in annotation:
        numpy: Any = sys.modules["numpy"]
        return numpy.random.default_rng(case.seed)
    if "random.Random" in annotation:
        import random

        return random.Random(case.seed)
    return case.generator


def _sampler(knows_rank: bool, case: Case) -> Any:
    """A sampler to wrap, which follows seed and epoch.

    What shards by itself wraps one that does not shard, and may refuse one that could; anything
    else wraps torch's own, which does.
    """
    from torch.utils.data.distributed import DistributedSampler

    if knows_rank:
        return made_up(_shuffled_class()(case.dataset, case.seed))
    return made_up(DistributedSampler(case.dataset, case.world_size, case.rank, seed=case.seed))


class _Shuffled:
    """All samples in an order of seed and epoch."""

    def __init__(self, dataset: Any, seed: int) -> None:
        self.size, self.seed, self.epoch = len(dataset), seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Shuffle anew."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        torch: Any = sys.modules["torch"]
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        return iter(torch.randperm(self.size, generator=generator).tolist())


@functools.cache
def _shuffled_class() -> type:
    """:class:`_Shuffled` as a ``torch.utils.data.Sampler``, which some insist on."""
    from torch.utils.data import Sampler

    return type("ShuffledSampler", (_Shuffled, Sampler), {})


def _batch_sampler(knows_rank: bool, case: Case) -> Any:
    from torch.utils.data import BatchSampler

    return made_up(BatchSampler(_sampler(knows_rank, case), case.batch_size, False))
