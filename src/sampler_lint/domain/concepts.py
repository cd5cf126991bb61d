"""The vocabulary: what is a draw, a seed, a rank, a step of training, said once for every rule.

What a value is decides first (a concept's :meth:`Concept.makes` asks points-to what is called);
how it is spelled decides where that is not known. A word that is missing here is missing for all.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from sampler_lint.analysis.arguments import ORDERS_OF_LOADER
from sampler_lint.analysis.values import Ext, Value
from sampler_lint.limits import LONGEST_STRING
from sampler_lint.parameters import AGREES
from sampler_lint.syntax.navigation import owner_of, walk
from sampler_lint.syntax.nodes import Attr, Call, Const, Expr, Imported, Index, Name, last_name


@functools.lru_cache(1 << 15)  # the same few thousand names are asked about again and again
def _is_found(pattern: str, flags: int, name: str) -> bool:  # a compiled one hashes all its code
    return re.compile(pattern, flags).search(name) is not None


@dataclass(frozen=True, slots=True)
class Concept:
    """What a piece of code may be about."""

    made_by: frozenset[str] = frozenset()
    """The functions and classes of libraries that are it or give it, by canonical name."""
    called: frozenset[str] = frozenset()
    """What a function is called that is it or gives it, whosever it is."""
    variables: frozenset[str] = frozenset()
    """The variables of the environment that launchers give it in."""
    spelled: re.Pattern[str] | None = None
    """What is in the name of a variable, an attribute or a function that is about it."""

    def is_made(self, call: Call, values: Callable[[Expr], Iterable[Value]]) -> bool:
        """Whether what is called is a library's function of this kind, by its ``values``."""
        return called_name(call) in _last_names(self.made_by) and any(
            isinstance(value, Ext) and value.dotted in self.made_by for value in values(call.func)
        )

    def is_call(self, expr: Expr) -> bool:
        """Whether an expression calls one, by the name of what is called."""
        return isinstance(expr, Call) and called_name(expr) in self.called

    def calls_in(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Those of the calls that call one, by name."""
        return filter(self.is_call, calls)

    def says(self, name: str | None) -> bool:
        """Whether a name, or a text, is about it."""
        if not name or self.spelled is None:
            return False
        if len(name) > LONGEST_STRING:  # the code of a class: not to be kept
            return self.spelled.search(name) is not None
        return _is_found(self.spelled.pattern, self.spelled.flags, name)

    def names(self, expr: Expr) -> bool:
        """Whether the (last) name of a variable, an attribute or a class is about it."""
        return self.says(last_name(expr))

    def is_mentioned(self, expr: Expr) -> bool:
        """Whether any name or key (``loaders["train"]``) in the expression is about it."""
        return any(
            (isinstance(node, (Name, Attr)) and self.names(node))
            or (
                isinstance(node, Index)
                and isinstance(node.key, Const)
                and self.says(str(node.key.value))
            )
            for node in walk(expr)
        )


@cache
def _last_names(dotted: frozenset[str]) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in dotted)


def called_name(call: Call) -> str | None:
    """The name of what is called, as its module calls it: ``from random import shuffle as mix``."""
    func = call.func
    if isinstance(func, Name):
        scope = owner_of(func)
        bindings = scope.bindings[func.id] if scope is not None else ()
        if len(bindings) == 1 and isinstance(bindings[0].payload, Imported):
            return bindings[0].payload.attribute or func.id
    return last_name(func)


# --------------------------------------------------------------------------- processes

#: What differs between processes of one node, and says nothing about those of others.
LOCAL_RANK = Concept(
    made_by=frozenset(
        {
            *("torch.distributed.get_node_local_rank", "horovod.torch.local_rank"),
            *("deepspeed.comm.get_local_rank", "torch_xla.core.xla_model.get_local_ordinal"),
            "torch_xla.runtime.local_ordinal",
        }
    ),
    variables=frozenset({"LOCAL_RANK"}),
)
LOCAL_SIZE = Concept(
    made_by=frozenset({"horovod.torch.local_size"}), variables=frozenset({"LOCAL_WORLD_SIZE"})
)
#: The number of this process, also that on its node. The ranks of tensor, pipeline or expert
#: parallelism share their data, so they are not meant.
RANK = Concept(
    made_by=frozenset(
        {
            *("torch.distributed.get_rank", "horovod.torch.rank"),
            *("torch_xla.core.xla_model.get_ordinal", "torch_xla.runtime.global_ordinal"),
        }
    ),
    called=frozenset(
        {"get_rank", "get_local_rank", "get_global_rank", "local_rank", "global_rank", "rank"}
    ),
    variables=frozenset(
        {
            *("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID"),
            *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_RANK", "PMI_RANK"),
        }
    ),
    spelled=re.compile(
        r"^_?(?:(?:global|local|world|node|dist|ddp|dp|fsdp|data_parallel|process|proc|gpu|my|cur"
        r"|current|cuda|self|worker|trainer|distributed|shard)_?)*rank(?:_id|_idx)?$"
        r"|^(?:process|proc|replica|shard)_?(?:index|idx|id)$",
        re.IGNORECASE,
    ),
)
WORLD_SIZE = Concept(
    made_by=frozenset(
        {
            *("torch.distributed.get_world_size", "horovod.torch.size"),
            *("torch_xla.core.xla_model.xrt_world_size", "torch_xla.runtime.world_size"),
        }
    ),
    called=frozenset({"get_world_size"}),
    variables=frozenset({"WORLD_SIZE"}),
    spelled=re.compile(r"world_?size|num_(?:replicas|shards|gpus)"),
)
#: Whether this process is the one that writes and talks.
FIRST_RANK = Concept(
    spelled=re.compile(
        r"^_?is_(?:local_|world_|global_)*"
        r"(?:(?:main|master|first|chief)(?:_process|_proc|_rank)?|(?:rank_|process_)?(?:zero|0))$"
    )
)
#: Where code knows of other processes.
PROCESSES = Concept(
    spelled=re.compile(
        r"rank|world_?size|shard|replica|split_by|is_?dist|distributed|process_index"
        r"|num_processes|\bddp|hvd|\bdp_",
        re.IGNORECASE,
    )
)
_SHARING = (
    r"accelerator|local_sgd|^mpi$|^scatter$|broadcast_object|device_?mesh"
    r"|(?:tensor|pipeline|sequence|context)_?parallel"
)
#: What shares batches, or the model, among the ranks after they are loaded.
SHARES = Concept(spelled=re.compile(_SHARING, re.IGNORECASE))
#: What gives the ranks different samples, in that way too.
SHARDS = Concept(
    spelled=re.compile(
        r"distributed\w{0,40}sampler|num_replicas|num_shards|split_(?:dataset_)?by_node|^shard$|"
        + _SHARING,
        re.IGNORECASE,
    )
)
DEVICES = Concept(spelled=re.compile(r"gpu|device", re.IGNORECASE))
#: The processes of a loader.
WORKERS = Concept(spelled=re.compile(r"worker", re.IGNORECASE))
#: Calls in which the ranks talk, so that what they give is, or may be, the same on each.
COLLECTIVE = Concept(spelled=re.compile(f"{AGREES.pattern}|scatter(?!_$)", re.IGNORECASE))

# --------------------------------------------------------------------------- random numbers

#: The modules whose own functions draw from the one generator that a process has of each.
GENERATORS_OF_PROCESS = frozenset({"random", "numpy.random", "torch"})


def library_of(dotted: str) -> str | None:
    """The library whose generator of the process a function draws from, or seeds."""
    owners = (name for name in GENERATORS_OF_PROCESS if dotted.startswith(f"{name}."))
    return None if "()" in dotted else next((name.partition(".")[0] for name in owners), None)


#: What opens a stream of samples, of which each process gets all unless it is told otherwise.
STREAMS = Concept(made_by=frozenset({"datasets.load_dataset"}), called=frozenset({"load_dataset"}))

#: Draws without replacement: what orders or divides data.
ORDERS = Concept(called=frozenset({"randperm", "shuffle", "permutation", "permuted", "sample"}))
DRAW = Concept(
    called=ORDERS.called
    | {
        *("choice", "choices", "integers", "multinomial", "rand", "randint", "random", "random_"),
        *("randrange",),
    },
    spelled=re.compile(r"rand|shuffle|permut"),
)
#: What draws a seed instead of taking one, and what differs between processes started alike.
ENTROPY = Concept(
    made_by=frozenset(
        {
            *("datetime.datetime.now", "os.getpid", "os.urandom", "secrets.randbelow"),
            *("secrets.randbits", "time.time", "time.monotonic_ns", "time.perf_counter_ns"),
            *("time.monotonic", "time.perf_counter", "time.time_ns", "torch.seed", "uuid.uuid4"),
        }
    ),
    called=frozenset({"seed", "initial_seed", "random_", "urandom", "time", "getrandbits"}),
)

# --------------------------------------------------------------------------- seeds

SEED = Concept(spelled=re.compile(r"seed", re.IGNORECASE))
#: What is made with a seed and then draws by it.
GENERATORS = Concept(
    made_by=frozenset(
        {
            *("random.Random", "random.SystemRandom", "numpy.random.RandomState"),
            "numpy.random.default_rng",
            *("numpy.random.Generator", "numpy.random.PCG64", "numpy.random.SeedSequence"),
        }
    ),
    called=frozenset({"Random", "RandomState", "default_rng", "PCG64", "SeedSequence"}),
)
#: Methods that seed the generator they are called on, or a module's own.
SEEDS_ONE = Concept(called=frozenset({"manual_seed", "manual_seed_all", "seed"}))
#: What seeds the generators of the whole process: those of libraries, and helpers by their names.
SEEDS_ALL = Concept(
    made_by=frozenset(
        {"random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed"}
    ),
    spelled=re.compile(
        r"^_*(?:(?:manual|set|setup|init|fix|same)_)?(?:(?:random|global|all|rng)_)?"
        r"seeds?(?:_all|_everything|_torch)?$|^enable_full_determinism$"
    ),
)

# --------------------------------------------------------------------------- training

TRAINS = Concept(
    called=frozenset({"backward", "step", "zero_grad", "training_step", "train_step"}),
    spelled=re.compile(r"train", re.IGNORECASE),
)
#: A flag that says whether something is for training.
FOR_TRAINING = Concept(
    spelled=re.compile(
        r"^_*(?:(?:is|for|in|do)_*)?train(?:ing)?(?:_*(?:mode|phase|split))?$", re.IGNORECASE
    )
)
#: What a step of training is called by those who hide it in a method of their own.
STEPS = Concept(
    spelled=re.compile(
        r"^_*(?:do_|run_)?(?:optimi[sz]e(?:_(?:parameters|params|weights|model|step|network))?"
        r"|train(?:ing)?_(?:step|batch|on_batch|one_step|one_batch|iter|iteration)"
        r"|(?:backward|update)_(?:parameters|params|weights|and_step|step))$"
    )
)
_WORD = (r"(?:^|[_.]|(?<=[a-z])(?=[A-Z]))(?i:", r")(?:[_.\d]|(?i:set)|$|(?=[A-Z]))")
#: What says that a model is only tested: no gradients are made, or it is named so.
WITHOUT_GRADIENTS = frozenset({"no_grad", "inference_mode"})
EVALUATES = Concept(
    called=WITHOUT_GRADIENTS | {"eval"},
    spelled=re.compile(r"val|valid[a-z]*|eval[a-z]*|test[a-z]*|dev|metric[a-z]*".join(_WORD)),
)
#: What a model is used for besides, so that the order of the data matters to nobody.
INFERS = Concept(
    spelled=re.compile(
        r"infer|inference|predict|prediction|extract|bench|benchmark|calib|calibration|query"
        r"|gallery".join(_WORD)
    ),
)
#: A script that does not train, by how its name begins; one that evaluates may train a probe.
INFERRING_SCRIPT = Concept(
    spelled=re.compile(r"^(?:bench|infer|predict|extract|generat|precompute)", re.IGNORECASE)
)
EPOCH = Concept(spelled=re.compile(r"epoch", re.IGNORECASE))
SETS_EPOCH = Concept(called=frozenset({"set_epoch"}), spelled=re.compile(r"(?:\b|_)set_epoch"))

# --------------------------------------------------------------------------- the language

#: Calls that tell a reader something and do nothing else.
LOGS = Concept(
    called=frozenset(
        {
            *("print", "log", "debug", "info", "warning", "warn", "error", "critical"),
            "exception",
        }
    )
)
#: Calls that write what they are given to a file.
WRITES = Concept(
    called=frozenset(
        {
            *("dump", "save", "save_file", "savetxt", "savez", "savez_compressed", "to_csv"),
            *("to_parquet", "tofile", "write", "write_text", "writelines", "writerow"),
            "writerows",
        }
    )
)
#: Calls that ask what an object is, or for an attribute by its name.
ASKS_KIND = Concept(called=frozenset({"isinstance", "issubclass", "hasattr", "callable", "type"}))
ASKS_BY_NAME = Concept(called=frozenset({"getattr", "hasattr", "setattr", "delattr", "attrgetter"}))
#: Calls by which code reaches variables without naming them.
NAMESPACES = Concept(called=frozenset({"locals", "globals", "vars", "eval", "exec"}))
#: Calls that look at an object and let go of it again.
LOOKS = Concept(
    called=ASKS_KIND.called
    | {"bool", "format", "hash", "id", "len", "print", "repr", "str", "super"}
)
#: Calls that show how far a loop has come.
PROGRESS = Concept(called=frozenset({"tqdm", "track", "trange"}))
#: What has a length that comes from a sampler.
MEASURED = Concept(spelled=re.compile(r"loader|sampler", re.IGNORECASE))
#: Calls that iterate what they are given.
ITERATES = Concept(
    called=frozenset(
        {
            *("iter", "next", "list", "tuple", "set", "enumerate", "zip", "cycle", "chain"),
            *("islice", "sorted", "reversed", "map", "reduce", "tqdm", "from_iterable"),
        }
    )
)
#: What a loop counts over: up to an end, or for ever.
RANGES = Concept(called=frozenset({"range", "trange"}))
COUNTS = Concept(called=RANGES.called | {"count"})

#: The environment, its getters, and what looks up a key like them.
ENVIRONMENT = Concept(
    made_by=frozenset({"os.environ", "environ", "os.getenv", "os.environ.get"}),
    called=frozenset({"get", "getenv"}),
)
#: What holds the options of a program.
CONFIG = Concept(
    spelled=re.compile(
        r"^_?(args?|cfg|conf(ig)?|opts?|flags|h?params|settings)$|_(args|config|cfg)$",
        re.IGNORECASE,
    )
)

# --------------------------------------------------------------------------- names of torch

#: Methods that run before a pass begins.
BEFORE_PASS = frozenset({"set_epoch", "__init__"})
#: What others call of a sampler.
PROTOCOL = ("__iter__", "__len__", "set_epoch")
#: Methods that write an object's state down (``state_dict``, pickle's), and that put it back.
GIVES_STATE = Concept(spelled=re.compile(r"^_*(?:get_?)?state(?:_dict)?_*$"))
RESTORES = Concept(spelled=re.compile(r"^_*(?:load_|set_?)state(?:_dict)?_*$"))
#: The arguments of a loader that are samplers, and its attributes.
SAMPLER_ARGUMENTS = ORDERS_OF_LOADER

SAMPLER = Concept(spelled=re.compile(r"sampler", re.IGNORECASE))
BATCH_SIZE = Concept(spelled=re.compile(r"batch_?size(?!s)|(^|_)bs$|^_?bsz?$", re.IGNORECASE))
#: What a pass goes over.
ITERATED = Concept(spelled=re.compile(r"sampler|data_?set|subset|loader|pipe", re.IGNORECASE))
#: What reads a checkpoint.
LOADS = Concept(made_by=frozenset({"torch.load"}))
#: A class that is meant to be a sampler, whatever it derives from.
SAMPLER_CLASS = Concept(spelled=re.compile(r"Sampler"))


def awaits_error(name: str) -> bool:
    """Whether a test that calls this wants an error: pytest's ``raises``, unittest's."""
    return name.lower().endswith(("raises", "raisesregex"))


def spelled_as(expr: Expr) -> str | None:
    """How a value is called, one of a table by its key: that of some split by the table's name."""
    key = expr.key.value if isinstance(expr, Index) and isinstance(expr.key, Const) else None
    is_split = not isinstance(key, str) or TRAINS.says(key) or EVALUATES.says(key)
    return last_name(expr) if is_split else str(key)
