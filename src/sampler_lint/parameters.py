"""What a constructor's parameter wants, by its name and annotation.

The contract builds samplers for real, the interpreter works them through: both make up the
arguments that anyone would who tries a class by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, auto
from functools import lru_cache


class Role(Enum):
    """What a parameter wants."""

    WORLD_SIZE = auto()
    RANK = auto()
    TOTAL_BATCH = auto()
    """The samples of a step of all ranks."""
    MAX_BATCH = auto()
    BATCH_SIZE = auto()
    DATASET = auto()
    PART_SIZES = auto()
    """How many samples each part of the data has."""
    SIZE = auto()
    """How many samples there are."""
    LENGTHS = auto()
    """How long each sample is."""
    LABELS = auto()
    GROUPS = auto()
    """The group of each sample, or the samples of each group."""
    WEIGHTS = auto()
    INDICES = auto()
    SEED = auto()
    START = auto()
    """Where to begin: an epoch, a step or an index."""
    SHUFFLE = auto()
    REPLACEMENT = auto()
    """Whether a sample may be drawn again."""
    DROP_LAST = auto()
    DISTRIBUTED = auto()
    GENERATOR = auto()
    BATCH_SAMPLER = auto()
    SAMPLER = auto()
    BOUNDARIES = auto()
    """Where one bucket of lengths ends and the next begins."""
    CLASSES = auto()
    """How many classes a batch is of."""
    COLUMN = auto()
    FUNCTION = auto()
    MOST = auto()
    """A limit from above."""
    NUMBER = auto()
    """Some other number."""

    __hash__ = object.__hash__  # each use of an argument asks which sets its role is in


#: What they are, whatever they are for.
FLAGS = frozenset({Role.SHUFFLE, Role.DROP_LAST, Role.DISTRIBUTED, Role.REPLACEMENT})
OBJECTS = frozenset({Role.DATASET, Role.SAMPLER, Role.BATCH_SAMPLER, Role.GENERATOR})
NUMBERS = frozenset(
    {Role.WORLD_SIZE, Role.RANK, Role.BATCH_SIZE, Role.SIZE, Role.SEED, Role.NUMBER}
)
#: Those that a name tells for certain: two names of one are two words for the same.
MEANINGS = FLAGS | OBJECTS | NUMBERS - {Role.NUMBER}


#: How each is spelled, the first that fits; a space stands for an underscore that may be left out.
_SPELLED = {
    Role.WORLD_SIZE: "((num|n|total|local|dp|data parallel) )?(replicas?|world( size| sz)?|ranks"
    "|shards|gpus|processes|procs)|(num|n|total) nodes|(num|n) devices"
    "|(dp|data parallel|local) size|shard count|size of world",
    Role.RANK: "(.*_(?<!per_)|global|local|world|dp|dataparallel|shard|replica)?rank( id)?"
    "|(process|shard|replica|device) (id|idx|index)",
    Role.TOTAL_BATCH: "(total|global|effective|all) batch( size)?",
    Role.MAX_BATCH: "max batch size",
    Role.BATCH_SIZE: "((mini|micro|local|per (device|gpu)) )?batch size( per gpu)?|batch|bsz?"
    "|(samples|imgs) per gpu|images per batch|n samples per batch",
    Role.DATASET: "(train )?data set|train set|data( source)?|ds|source|iterable|samples",
    Role.PART_SIZES: "(data|set|subset|data ?set)_(sizes|lens|lengths)|.*_sizes?_per_epoch",
    Role.SIZE: "size|length|n|(n|num) ((data )?samples|data|examples)|total (samples|size)"
    "|data( set)? (size|length|len)|epoch size",
    Role.LENGTHS: "((sample|seq|sequence) )?(lengths|lens)|sizes|durations|num tokens vec",
    Role.LABELS: "labels|targets|classes|y|label list|(class|group|cluster|domain) ids",
    Role.GROUPS: "groups|clusters|domains",
    Role.WEIGHTS: "(sample )?weights|probabilities",
    Role.INDICES: "indices|indexes|idxs|ids",
    Role.SEED: "((random|data|shuffle|base|rng) )?seed|random state",
    Role.START: "epoch|(start|last|initial)( global)? (epoch|index|iter|step)"
    "|consumed samples|offset",
    Role.SHUFFLE: "shuffle",
    Role.REPLACEMENT: "replacement",
    Role.DROP_LAST: "drop last",
    Role.DISTRIBUTED: "distributed",
    Role.GENERATOR: "generator|rng|g",
    Role.BATCH_SAMPLER: "(base )?batch samplers?",
    Role.SAMPLER: "((base|inner|sub|index) )?samplers?",
    Role.BOUNDARIES: "(bucket )?boundaries",
    Role.CLASSES: "(n|num)_(classes|labels)",
    Role.COLUMN: ".*column.*",
    Role.FUNCTION: ".*_fn",
    Role.MOST: "max.+",
    Role.NUMBER: "(n|num|number_of|min)_.+|.*_(size|per_.+|num|count|threshold)",
}
_NAMES = re.compile(
    "|".join(
        f"(?P<{role.name}>{re.sub(r'[(](?![?])', '(?:', spelled).replace(' ', '_?')})"
        for role, spelled in _SPELLED.items()
    ),
    re.IGNORECASE,
)
#: What a parameter is for tells of nothing but when its value counts: `seed_for_all_ranks`.
_WHAT_FOR = re.compile("_(for|before)_.+")
_INT = re.compile(r"\bint\b")
#: What an annotation says where the name tells nothing, the first that fits.
_ANNOTATED = {
    re.compile(r"\bDataset\b"): Role.DATASET,
    re.compile("Generator"): Role.GENERATOR,
    re.compile("Callable"): Role.FUNCTION,
    _INT: Role.NUMBER,
}
_SAMPLER = re.compile(r"Sampler\b")  # and no `SamplerConfig`
_BATCHES = re.compile(r"BatchSampler|(Sampler|Itera(ble|tor))\[\s*[Ll]ist\b")
_SEVERAL = re.compile(
    r"([\w.]*(Optional|Union)\[\s*)?([\w.]*\.)?([Ll]ist|Sequence|[Tt]uple|[Dd]ict|Mapping)\b"
)


#: In names of groups whose ranks hold parts of one model, and so read the same data.
_OF_MODEL = re.compile(
    "(?:^|_)(?:tensor|pipe(?:line)?|model|expert|sequence|context|[tpmecs]p)(?:_|$)", re.IGNORECASE
)


#: Calls that give the same on all ranks: what one of them, or each, has told the others.
AGREES = re.compile(
    "broadcast(?!_(?:to|tensors|arrays))|all_?reduce|all_?gather|gather_object|sync|shared",
    re.IGNORECASE,
)


def is_of_model(name: str) -> bool:
    """Whether a rank or group is one of tensor, pipeline or expert parallelism, by its name."""
    return _OF_MODEL.search(name) is not None


@lru_cache(1 << 14)
def role_of(name: str, annotation: str = "") -> Role | None:
    """What a parameter wants; None when neither its name nor its annotation tells."""
    found = _NAMES.fullmatch(_WHAT_FOR.sub("", name.strip("_")))
    role = None if found is None or found.lastgroup is None else Role[found.lastgroup]
    if _SAMPLER.search(annotation) and role is not Role.BATCH_SAMPLER:
        role = Role.SAMPLER
    if role is Role.SAMPLER and _BATCHES.search(annotation):
        return Role.BATCH_SAMPLER
    is_list = several(annotation)
    if role is Role.SIZE:
        return None if is_list else role
    if role in {Role.MOST, Role.NUMBER} and annotation and not _INT.search(annotation):
        return None
    if role is None and not is_list:
        return next((role for says, role in _ANNOTATED.items() if says.search(annotation)), None)
    return role


def several(annotation: str) -> bool:
    """Whether an annotation wants a list of what the name says."""
    return _SEVERAL.match(annotation) is not None


def same_role(name: str, names: Iterable[str]) -> str | None:
    """The only one of the names that wants what this one is for, too."""
    role = role_of(name)
    found = [other for other in names if role in MEANINGS and role_of(other) is role]
    return found[0] if len(found) == 1 else None
