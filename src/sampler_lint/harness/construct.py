"""Build a sampler from its signature: what each parameter wants, by its name and annotation."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from sampler_lint.harness.ranks import Case

#: Names of parameters, without underscores, and what they want.
_NAMES: dict[str, tuple[str, ...]] = {
    "dataset": ("dataset", "datasource", "data", "ds", "source", "samples", "traindataset"),
    "world_size": (
        *("numreplicas", "worldsize", "replicas", "nreplicas", "numshards", "numranks", "nranks"),
        *("numprocesses", "nprocesses", "dpsize", "dpworldsize", "dataparallelsize", "numgpus"),
        *("dataparallelworldsize", "numdevices", "worldsz", "shardcount", "ngpus", "nshards"),
    ),
    "rank": (
        *("rank", "processindex", "shardid", "shardindex", "shardrank", "dprank", "replicaid"),
        *("dataparallelrank", "globalrank", "processid", "replicarank", "rankid", "localrank"),
        *("deviceid", "worldrank"),
    ),
    "seed": ("seed", "randomseed", "dataseed", "shuffleseed", "baseseed", "randomstate", "rngseed"),
    "batch_size": (
        *("batchsize", "bs", "microbatchsize", "minibatchsize", "perdevicebatchsize", "bsz"),
        *("samplespergpu", "imgspergpu", "imagesperbatch", "maxbatchsize", "batchsizepergpu"),
        *("localbatchsize", "nsamplesperbatch"),
    ),
    "total_batch": ("totalbatchsize", "globalbatchsize", "effectivebatchsize", "allbatchsize"),
    "lengths": ("lengths", "samplelengths", "seqlengths", "sequencelengths", "lens", "seqlens"),
    "labels": (
        *("labels", "targets", "classes", "classids", "labellist", "y", "groups", "groupids"),
        *("clusters", "clusterids", "domains", "domainids"),
    ),
    "weights": ("weights", "sampleweights", "probabilities"),
    "indices": ("indices", "indexes", "idxs", "ids"),
    "size": (
        *("numsamples", "size", "length", "n", "totalsamples", "totalsize", "epochsize"),
        *("datasetsize", "lengthbeforenewiter", "numexamples", "datalen", "datasetlen", "datasize"),
    ),
    "zero": (
        *("epoch", "startepoch", "startindex", "startiter", "consumedsamples", "offset"),
        *("lastepoch", "initialepoch", "startstep"),
    ),
    "generator": ("generator", "rng", "g"),
    "sampler": ("sampler", "basesampler", "innersampler", "subsampler", "indexsampler"),
    "batch_sampler": ("batchsampler", "basebatchsampler"),
}
_MEANING = {name: meaning for meaning, names in _NAMES.items() for name in names}

#: Meanings that an optional parameter gets too; others keep their default.
_ALWAYS = {"dataset", "world_size", "rank", "seed", "batch_size", "lengths", "labels", "indices"}

_PLAIN = re.compile("[^a-z]")


class CannotGuessError(ValueError):
    """A parameter without default whose meaning neither name nor annotation tells."""

    def __init__(self, factory: str, parameter: str) -> None:
        self.parameter = parameter
        super().__init__(
            f"cannot guess what {factory} takes as `{parameter}`: "
            f"give it, with kw={{{parameter!r}: …}} or --kw {parameter}=…"
        )


def name_of(factory: Callable[..., Any]) -> str:
    """The factory's name, as its user knows it."""
    return getattr(factory, "__name__", None) or type(factory).__name__


def builder(
    factory: Callable[..., Any], given: Mapping[str, Any] | None = None
) -> Callable[[Case], Any]:
    """A function that calls ``factory`` with what its parameters want in a case.

    ``factory`` is a class or a function. ``given`` are values for parameters, the same in all
    cases; a callable among them whose one parameter is called ``case`` makes the value.

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
    meanings = {name: _meaning(one) for name, one in named.items()}
    knows_rank = "rank" in meanings.values() or "world_size" in meanings.values()
    for name, one in named.items():
        if name not in given:
            value = _wanted(one, meanings[name], knows_rank=knows_rank)
            if value is not None:
                plan[name] = value
            elif one.default is one.empty:
                raise CannotGuessError(name_of(factory), name)
    for name, value in given.items():
        plan[name] = value if _makes(value) else functools.partial(_same, value)
    first = [name for name, one in named.items() if one.kind is one.POSITIONAL_ONLY]

    def build(case: Case) -> Any:
        values = {name: value(case) for name, value in plan.items()}
        return factory(*(values.pop(name) for name in first if name in values), **values)

    return build


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


def _meaning(parameter: inspect.Parameter) -> str:
    """What a parameter wants; its own name when that tells nothing."""
    plain = _PLAIN.sub("", parameter.name.lower())
    annotation = _annotation(parameter)
    if plain in {"case", "shuffle", "droplast"}:
        return plain
    if plain in _MEANING:
        meaning = _MEANING[plain]
        if meaning == "sampler" and "BatchSampler" in annotation:
            return "batch_sampler"
        return meaning
    if "BatchSampler" in annotation:
        return "batch_sampler"
    if "Sampler" in annotation:
        return "sampler"
    if re.search(r"\bDataset\b", annotation) and "list" not in annotation.lower():
        return "dataset"
    if "Generator" in annotation:
        return "generator"
    return plain


def _wanted(
    parameter: inspect.Parameter, meaning: str, *, knows_rank: bool
) -> Callable[[Case], Any] | None:
    """How the value is made; None to leave the default."""
    required = parameter.default is parameter.empty
    simple: dict[str, Callable[[Case], Any]] = {
        "case": lambda case: case,
        "shuffle": lambda case: case.shuffle,
        "dataset": lambda case: case.dataset,
        "world_size": lambda case: case.world_size,
        "rank": lambda case: case.rank,
        "seed": lambda case: case.seed,
        "batch_size": lambda case: case.batch_size,
        "total_batch": lambda case: case.batch_size * case.world_size,
        "lengths": lambda case: case.lengths,
        "labels": lambda case: case.labels,
        "weights": lambda case: case.weights,
        "indices": lambda case: case.indices,
        "size": lambda case: case.size,
        "zero": lambda _: 0,
        "generator": functools.partial(_generator, _annotation(parameter)),
        "sampler": functools.partial(_sampler, knows_rank),
        "batch_sampler": functools.partial(_batch_sampler, knows_rank),
    }
    if meaning in simple:
        if required or meaning in _ALWAYS or meaning in {"case", "shuffle"}:
            return simple[meaning]
        return None
    if required and (meaning == "droplast" or _annotation(parameter) in {"bool", str(bool)}):
        return lambda _: False
    return None


def _generator(annotation: str, case: Case) -> Any:
    if "numpy" in annotation or "np." in annotation:
        numpy: Any = sys.modules["numpy"]
        return numpy.random.default_rng(case.seed)
    if "random.Random" in annotation:
        import random

        return random.Random(case.seed)
    return case.generator


def _sampler(knows_rank: bool, case: Case) -> Any:
    """A sampler to wrap: torch's own, which follows seed and epoch.

    What shards by itself wraps one that does not shard; anything else wraps one that does.
    """
    from torch.utils.data.distributed import DistributedSampler

    replicas, rank = (1, 0) if knows_rank else (case.world_size, case.rank)
    return DistributedSampler(case.dataset, num_replicas=replicas, rank=rank, seed=case.seed)


def _batch_sampler(knows_rank: bool, case: Case) -> Any:
    from torch.utils.data import BatchSampler

    return BatchSampler(_sampler(knows_rank, case), case.batch_size, False)
