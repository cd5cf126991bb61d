"""Build a sampler from its signature: what each parameter wants, by its name and annotation."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sampler_lint.harness.ranks import Case, made_up
from sampler_lint.parameters import Role, role_of, several

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
    Role.PART_SIZES: lambda case: [part for part in _parts(case) if part],
}

#: What a name that is taken for the one may also mean, if no data comes with it.
_OTHERWISE = {Role.LENGTHS: Role.PART_SIZES}


#: How Python says that a parameter is already filled, or is not there.
_REFUSED = re.compile(
    r"(multiple values for (keyword )?|unexpected keyword )argument '(?P<name>\w+)'"
)


class CannotGuessError(ValueError):
    """A parameter without default whose meaning neither name nor annotation tells."""

    def __init__(self, factory: str, parameter: str) -> None:
        self.parameter = parameter
        how = f"give it, with kw={{{parameter!r}: …}} or --kw {parameter}=…"
        if parameter.startswith("*"):
            how = "write a function that builds it"
        super().__init__(f"cannot guess what {factory} takes as `{parameter}`: {how}")


def name_of(factory: Callable[..., Any]) -> str:
    """The factory's name, as its user knows it."""
    return getattr(factory, "__name__", None) or type(factory).__name__


def readings(
    factory: Callable[..., Any], given: Mapping[str, Any] | None = None
) -> Iterator[Callable[[Case], Any]]:
    """A :func:`builder` for each meaning that the parameters' names may have, the likelier first.

    Raises:
        CannotGuessError: a parameter without default means nothing known.
        TypeError: ``given`` has a name that the factory does not take.
    """
    yield builder(factory, given)
    parameters = _parameters(factory).items()
    roles = {
        role_of(name, _annotation(one)) for name, one in parameters if name not in (given or {})
    }
    if roles & _OTHERWISE.keys() and not roles & {Role.DATASET, Role.SIZE, Role.INDICES}:
        yield builder(factory, given, otherwise=True)


def builder(
    factory: Callable[..., Any],
    given: Mapping[str, Any] | None = None,
    *,
    otherwise: bool = False,
) -> Callable[[Case], Any]:
    """A function that calls ``factory`` with what its parameters want in a case.

    ``factory`` is a class or a function. ``given`` are values for parameters, the same in all
    cases; a callable among them whose one parameter is called ``case`` makes the value.
    ``otherwise``: the names that may mean something else do.

    Raises:
        CannotGuessError: a parameter without default means nothing known.
        TypeError: ``given`` has a name that the factory does not take.
    """
    given = dict(given or {})
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
    plan: dict[str, Callable[[Case], Any]] = {}
    roles = {name: role_of(name, _annotation(one)) for name, one in named.items()}
    if otherwise:
        roles = {name: _OTHERWISE.get(role, role) for name, role in roles.items() if role}
    knows_rank = not {Role.RANK, Role.WORLD_SIZE}.isdisjoint(roles.values())
    types = _types(factory)
    for name, one in named.items():
        if name not in given:
            value = _wanted(one, roles.get(name), knows_rank=knows_rank)
            if value is None and one.default is one.empty:
                value = _of_type(types.get(name))
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


def _parts(case: Case) -> list[int]:
    """The samples in two uneven parts."""
    return [case.size - case.size // 3, case.size // 3]


def _concatenated(case: Case) -> Any:
    """The dataset as two datasets, one after the other."""
    from torch.utils.data import ConcatDataset, Subset

    first, _ = _parts(case)
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
