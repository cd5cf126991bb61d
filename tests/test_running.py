"""The interpreter that tries samplers in small worlds: what it knows, and what it does not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sampler_lint.discovery import find_files
from sampler_lint.domain.model import Model
from sampler_lint.execution import prelude
from sampler_lint.execution.errors import RaisedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.trials import Trial, Trials, World
from sampler_lint.execution.values import Data, Source
from sampler_lint.syntax.nodes import Class
from sampler_lint.workspace.project import Project

HEAD = "import math, random\nimport torch\nfrom torch.utils.data import *\n"


def model_of(tmp_path: Path, text: str, **more: str) -> Model:
    for name, content in {"samplers": text, **more}.items():
        (tmp_path / f"{name}.py").write_text(content)
    files = {str(tmp_path / name): name for name in ["samplers.py", *(f"{m}.py" for m in more)]}
    assert set(files) <= {str(Path(p)) for p in find_files([str(tmp_path)], ()).files}
    return Model(Project(str(tmp_path), files))


def class_of(model: Model, name: str = "S") -> Class:
    return next(cls for _, cls in model.classes() if cls.name == name)


def tried(tmp_path: Path, body: str, **more: str) -> Trials:
    """Trials of a sampler class ``S`` with this body."""
    head = "import math, random\nimport numpy as np\nimport torch\n"
    head += "import torch.distributed as dist\nfrom torch.utils.data import Sampler\n"
    model = model_of(tmp_path, f"{head}\nclass S(Sampler):\n{body}", **more)
    return model.trials(class_of(model))


def handed_out(trials: Trials, world: World) -> list[tuple[int, ...] | None]:
    trial = next(trial for trial in trials.usual if trial.world == world)
    return [turn.indices for turn in trial.turns]


# what it computes


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[i for i in range(10) if i % 3][1:-1]", [2, 4, 5, 7]),
        ("[a + b for a, b in zip([1, 2], (3, 4))]", [4, 6]),
        ("sorted([3, 1, 2], key=lambda x: -x)", [3, 2, 1]),
        ("math.ceil(7 / 2) + -(-7 // 2) + int(2.9)", 10),
        ("list(dict.fromkeys([2, 2, 1]))", [2, 1]),
        ("sum(len(part) for part in np.array_split(range(7), 3))", 7),
        ("(np.arange(6)[np.arange(6) % 2 == 0]).tolist()", [0, 2, 4]),
        ("[*range(2), *[5]] * 2", [0, 1, 5, 0, 1, 5]),
        ("max([(1, 2), (1, 3)])[1] if not [] else 0", 3),
        ("torch.randperm(3).tolist() + torch.cat([torch.arange(2)]).tolist()", [0, 1, 2, 0, 1]),
        ("list(map(lambda x, y=1: x + y, [1, 2]))", [2, 3]),
        ("[x for row in [[1], [2, 3]] for x in row][::-1]", [3, 2, 1]),
    ],
)
def test_expressions_have_pythons_value(tmp_path: Path, expression: str, value: object) -> None:
    model = model_of(
        tmp_path, f"import math\nimport numpy as np\nimport torch\nsampler = 0\nX = {expression}\n"
    )
    run = Interpreter(model.project)
    assert run.names_of(model.modules[0]).get("X") == value


def test_generators_run_only_as_far_as_they_are_asked(tmp_path: Path) -> None:
    body = """
    def __init__(self, size):
        self.size, self.count = size, 0
    def numbers(self):
        while True:
            self.count += 1
            yield self.count
    def __iter__(self):
        for number in self.numbers():
            if number > self.size:
                return
            yield number - 1
    def __len__(self):
        return self.size
"""
    assert handed_out(tried(tmp_path, body), World(7, 2, 2))[0] == tuple(range(7))


def test_a_generator_that_lets_stop_iteration_out_dies(tmp_path: Path) -> None:
    body = """
    def __init__(self, size):
        self.size = size
    def __iter__(self):
        inner = iter(range(8))
        for _ in range(self.size):
            yield next(inner)
"""
    trials = tried(tmp_path, body)
    kinds = {t.world.samples: t.raised and t.raised.kind for t in trials.usual}
    assert kinds[8] is None
    assert kinds[13] == "RuntimeError"


def test_bases_and_helpers_of_other_files_are_followed(tmp_path: Path) -> None:
    body = """
    def __init__(self, dataset):
        import parts
        self.mine = parts.share(dataset)
    def __iter__(self):
        return iter(self.mine)
    def __len__(self):
        return len(self.mine)
"""
    helper = """
import torch.distributed as dist
def share(dataset):
    # sampler
    return list(range(len(dataset)))[dist.get_rank() :: dist.get_world_size()]
"""
    assert handed_out(tried(tmp_path, body, parts=helper), World(7, 2, 2)) == [
        (0, 2, 4, 6),
        (1, 3, 5),
    ]


# what it does not know


@pytest.mark.parametrize(
    "body",
    [
        "    def __iter__(self):\n        while True:\n            yield 0\n",
        "    def __iter__(self):\n        yield from open('indices')\n",
        "    def __init__(self, config):\n        self.n = config.n\n"
        "    def __iter__(self):\n        return iter(range(self.n))\n",
        "    def __iter__(self):\n        exec('x = 1')\n        yield from unheard_of([1])\n",
        "    def __init__(self, dataset):\n        dist.all_reduce(torch.zeros(1))\n"
        "    def __iter__(self):\n        yield 0\n",
        "    def __iter__(self):\n        return iter([0] * 10 ** 9)\n",
        "    def __iter__(self):\n        yield (2 ** 10 ** 9) % 7\n",
        "    def __iter__(self):\n        return self.__iter__()\n",
    ],
    ids=["endless", "file", "config", "exec", "collective", "memory", "power", "recursion"],
)
def test_what_is_not_known_is_not_judged(tmp_path: Path, body: str) -> None:
    trials = tried(tmp_path, body)
    assert trials.usual == ()
    assert trials.unknown


def test_nothing_of_the_program_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    body = f"""
    def __init__(self, dataset):
        open({str(mark)!r}, "w").write("x")
        __import__("os").system("touch {mark}")
    def __iter__(self):
        yield 0
"""
    tried(tmp_path, body)
    assert not mark.exists()


def test_data_is_the_same_whenever_it_is_asked_for() -> None:
    source = Source(5)
    assert source.attribute("lengths").items() == Source(5).attribute("lengths").items()
    assert all(0 < Data(f"x[{index}]").number < 10 for index in range(50))


def test_a_refused_world_is_told_from_a_failing_sampler(tmp_path: Path) -> None:
    body = """
    def __init__(self, size, num_replicas, rank):
        if size % num_replicas:
            raise ValueError(size)
        self.size = size
    def __iter__(self):
        return iter(range(self.size))
    def __len__(self):
        return self.size
"""
    trials = tried(tmp_path, body)
    refused = {t.world.samples for t in trials.usual if t.refused is not None}
    assert refused == {7, 9, 13, 11, 21}
    assert all(isinstance(t.refused, RaisedError) for t in trials.usual if t.refused)


# what torch does


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 13])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_preludes_samplers_are_torchs(tmp_path: Path, n: int, drop_last: bool) -> None:
    data = pytest.importorskip("torch.utils.data")
    model = model_of(tmp_path, "sampler = None\n")
    run = Interpreter(model.project)
    base = run.build(run.known_class("SequentialSampler"), [Source(n)], {})
    batches = run.build(run.known_class("BatchSampler"), [base, 3, drop_last], {})
    real = data.BatchSampler(data.SequentialSampler(range(n)), 3, drop_last)
    assert run.listed(batches) == list(real)
    assert run.length(batches) == len(real)
    for world in (1, 2, 3, 5):
        for rank in range(world):
            if drop_last and n < world:
                continue
            ours = run.build(
                run.known_class("DistributedSampler"),
                [Source(n), world, rank],
                {"shuffle": False, "drop_last": drop_last},
            )
            real = data.DistributedSampler(
                range(n), world, rank, shuffle=False, drop_last=drop_last
            )
            if n:
                assert run.listed(ours) == list(real)
            assert run.length(ours) == len(real)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 13])
def test_the_prelude_is_torchs_also_for_python(n: int) -> None:
    """As code, so that a slip in it is not hidden by one of the interpreter."""
    theirs = pytest.importorskip("torch.utils.data")
    data, weights = list(range(n)), [1.0] * n
    generator = None
    for name, arguments in {
        "SequentialSampler": (data,),
        "RandomSampler": (data,),
        "SubsetRandomSampler": (data, generator),
        "WeightedRandomSampler": (weights, 5),
    }.items():
        ours = getattr(prelude, name)(*arguments)
        real = getattr(theirs, name)(*arguments)
        assert len(ours) == len(real) == len(list(ours)) == len(list(real))
        assert set(ours) <= set(data)
    assert [*prelude.Subset(data, [0, n - 1])][:2] == [*theirs.Subset(data, [0, n - 1])][:2]
    for size, drop_last in ((1, False), (3, False), (3, True)):
        ours = prelude.DataLoader(data, size, drop_last=drop_last)
        loader = theirs.DataLoader(data, size, drop_last=drop_last)
        assert len(ours) == len(loader) == len(list(ours)) == len(list(loader))
    assert [*prelude.DataLoader(data)] == [int(one) for one in theirs.DataLoader(data)]
    some = prelude.RandomSampler(data, True, 3)
    assert len(list(some)) == len(some) == 3
    for size in (1, 3):
        for drop_last in (False, True):
            order = prelude.SequentialSampler(data)
            ours = prelude.BatchSampler(order, size, drop_last)
            real = theirs.BatchSampler(theirs.SequentialSampler(data), size, drop_last)
            assert (list(ours), len(ours)) == (list(real), len(real))
    for world in (1, 2, 3, 5):
        for drop_last in (False, True) if world <= n else (False,):
            for rank in range(world):
                settings = {"shuffle": False, "drop_last": drop_last}
                ours = prelude.DistributedSampler(data, world, rank, **settings)
                real = theirs.DistributedSampler(data, world, rank, **settings)
                assert (list(ours), len(ours)) == (list(real), len(real))
                ours.set_epoch(3)
                assert ours.epoch == 3


def test_the_prelude_asks_torch_for_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prelude.dist, "get_world_size", lambda: 3)
    monkeypatch.setattr(prelude.dist, "get_rank", lambda: 2)
    sampler = prelude.DistributedSampler(list(range(7)))
    assert (sampler.num_replicas, sampler.rank, len(list(sampler))) == (3, 2, 3)
    assert isinstance(prelude.Dataset(), prelude.Dataset)


# what a constructor is given


@pytest.mark.parametrize(
    ("params", "given", "expected"),
    [
        ("dataset", "[len(dataset)]", (7,)),
        ("data_source: Sampler", "[len(data_source)]", (7,)),
        ("data: BatchSampler", "[len(data)]", (4,)),
        ("sampler", "[len(sampler)]", (7,)),
        ("sampler: Sampler[List[int]]", "[len(sampler)]", (4,)),
        ("batch_sampler", "[len(batch_sampler)]", (4,)),
        ("samplers", "[len(one) for one in samplers]", (4, 3)),
        ("batch_samplers", "[len(one) for one in batch_samplers]", (2, 2)),
        ("parts: List[Sampler]", "[len(one) for one in parts]", (4, 3)),
        ("parts: List[BatchSampler]", "[len(one) for one in parts]", (2, 2)),
        ("world_size, rank", "[world_size, rank]", (2, 0)),
        ("batch_size, drop_last", "[batch_size, int(drop_last)]", (2, 0)),
        ("dataset, text_column=None", "[len(text_column)]", (1,)),
        ("num_samples: int", "[num_samples]", (7,)),
        ("dataset_sizes", "dataset_sizes", (4, 3)),
        ("bucket_boundaries", "bucket_boundaries", (0, 2, 4, 6)),
        ("labels, num_classes, num_labels", "[num_classes, num_labels]", (2, 2)),
        ("labels", "list(labels)", (0, 1, 0, 1, 0, 1, 0)),
        ("labels: List[int]", "labels + []", (0, 1, 0, 1, 0, 1, 0)),
        ("lengths", "[len(lengths)]", (7,)),
        ("lengths: List[int]", "[len(lengths + [])]", (7,)),
        ("seed", "[seed]", (0,)),
        ("shuffle", "[int(shuffle)]", (1,)),
        ("max_tokens", "[max_tokens]", (6,)),
        ("num_things", "[num_things]", (2,)),
        ("k: int", "[k]", (2,)),
        ("flag: bool", "[int(flag)]", (0,)),
        ("score_fn", "[int(score_fn(3)) * 0]", (0,)),
        ("*, dataset, start=2", "[len(dataset) + start]", (9,)),
        ("dataset: List[Dataset]", "[1]", None),
        ("data_source: List[int]", "[len(data_source)]", (7,)),
        ("total_samples, consumed_samples", "[total_samples - consumed_samples]", (7,)),
        ("batch_size, num_replicas, global_batch_size", "[global_batch_size]", (4,)),
        ("parts: list[Sampler[int]]", "[len(parts), len(parts[0])]", (2, 4)),
    ],
)
def test_arguments_say_by_their_names_what_they_are(
    tmp_path: Path, params: str, given: str, expected: tuple[int, ...] | None
) -> None:
    body = f"""
    def __init__(self, {params}):
        self.given = {given}
    def __iter__(self):
        return iter(self.given)
    def __len__(self):
        return len(self.given)
"""
    trials = tried(tmp_path, body)
    if expected is None:
        assert (trials.usual, bool(trials.unknown)) == ((), True)
    else:
        assert handed_out(trials, World(7, 2, 2))[0] == expected


SHARE = """
    def __iter__(self):
        mine = [i for i in range(len(self.data)) if i % self.world == self.rank]
        return iter(mine[: self.most] if self.most else mine)
    def __len__(self):
        return len(list(iter(self)))
"""


def test_limits_that_a_constructor_looks_for_in_its_keywords_are_tried(tmp_path: Path) -> None:
    body = (
        """
    def __init__(self, data, world_size, rank, **more):
        self.data, self.world, self.rank = data, world_size, rank
        self.most = more.get("max_frames", None)
        self.seed = more.get("seed_limit", None)
        self.other = more.get("other", 3)
"""
        + SHARE
    )
    said = {trial.also for trial in tried(tmp_path, body).varied}
    assert said == {"max_frames=3"}


def test_an_option_that_is_not_understood_leaves_the_others(tmp_path: Path) -> None:
    body = (
        """
    def __init__(self, data, world_size, rank, odd=False, cut=False):
        self.data, self.world, self.rank = data, world_size, rank
        self.most = open("limit").read() if odd else 3 if cut else None
        if odd: open([1])
"""
        + SHARE
    )
    assert {trial.also for trial in tried(tmp_path, body).varied} == {"cut=True"}


def test_a_class_without_constructor_or_base_is_tried_too(tmp_path: Path) -> None:
    model = model_of(tmp_path, "# sampler\nclass S:\n    def __iter__(self): return iter([3, 4])\n")
    trials = model.trials(class_of(model))
    assert handed_out(trials, World(7, 2, 2)) == [(3, 4), (3, 4)]
    assert trials.usual[0].story == "8 samples, 2 ranks"


@pytest.mark.parametrize(
    ("params", "resumed"),
    [
        ("", True),
        ("step, batch_size", True),
        ("iteration=0", True),
        ("how_far", True),
        ("dataset", False),
    ],
)
def test_what_a_checkpoint_is_told(tmp_path: Path, params: str, resumed: bool) -> None:
    body = (
        f"""
    def __init__(self, data, world_size, rank):
        self.data, self.world, self.rank, self.most = data, world_size, rank, None
    def state_dict(self{", " if params else ""}{params}):
        return {{"at": 3 % 7}}
    def load_state_dict(self, state):
        pass
"""
        + SHARE
    )
    trials = tried(tmp_path, body)
    assert bool(trials.resumed) is resumed
    # More steps than an epoch has can only be told, not counted.
    assert bool(trials.overrun) is ("step" in params)


def test_a_world_is_told_in_words(tmp_path: Path) -> None:
    body = """
    def __init__(self, data, shuffle=False):
        self.data, self.shuffle = data, shuffle
    def __iter__(self):
        left = list(range(len(self.data)))
        while len(left) % 2 and not self.shuffle:
            pass
        return iter(left)
"""
    (stuck,) = {trial.story for trial in tried(tmp_path, body).stuck}
    assert stuck == "13 samples, 2 ranks"
    single = body.replace("len(left) % 2 and not self.shuffle", "len(left) == 7")
    assert [trial.story for trial in tried(tmp_path, single).stuck] == [
        "7 samples, 2 ranks, batches of one sample",
        "7 samples, 2 ranks, shuffle=True, batches of one sample",
    ]
    alone = Trial(World(1, 1, 4), (), takes_batch_size=True, takes_drop_last=False)
    assert alone.story == "1 sample, batch_size=4"


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("@wrapped\nclass S(Sampler):", "a decorated class"),
        ("class S(Sampler, strict=True):", "a class with keywords"),
        ("def f(iter):\n  class S(Sampler):", "a nested class"),
    ],
)
def test_classes_that_are_not_tried(tmp_path: Path, head: str, reason: str) -> None:
    text = (
        f"from torch.utils.data import Sampler\n{head}\n    def __iter__(self): return iter([])\n"
    )
    model = model_of(tmp_path, text)
    trials = model.trials(class_of(model))
    assert trials.usual == ()
    assert reason in trials.unknown


def test_classes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    text = "from torch.utils.data import Sampler\n"
    text += "if 1:\n    class S(Sampler): pass\nelse:\n    class S(Sampler): pass\n"
    model = model_of(tmp_path, text)
    run = Interpreter(model.project)
    assert [run.class_of(cls).node.lineno for _, cls in model.classes()] == [3, 5]


def test_a_file_that_the_interpreter_cannot_parse_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(tmp_path, "from torch.utils.data import Sampler\nclass S(Sampler): pass\n")

    def parse(text: str) -> ast.Module:
        raise RecursionError

    monkeypatch.setattr(ast, "parse", parse)
    assert "the file" in model.trials(class_of(model)).unknown


# what setting the epoch changes

PLAIN = "import torch\nfrom torch.utils.data import Sampler\n\n\n"
ORDER = "torch.randperm(len(self.data), generator=g).tolist()"
PASSES = {
    "seeded with the epoch": ("g = torch.Generator().manual_seed(self.epoch)", (True, True, True)),
    "seeded without it": ("g = torch.Generator().manual_seed(3)", (False, False, True)),
    "never seeded": ("g = torch.Generator()", (False, False, True)),
    "multiplied by the seed": (
        "g = torch.Generator().manual_seed(self.seed * self.epoch)",
        (True, True, True),
    ),
    "seeded with who knows what": (
        "import clock\n        g = torch.Generator().manual_seed(clock.now())",
        (False, False, False),
    ),
    "the process's own generator": ("g = None", (False, False, False)),
    "the process's own, of another library": (
        "import random\n        random.seed(self.epoch)\n        g = None",
        (True, True, False),
    ),
    "the process's own, seeded here": (
        "torch.manual_seed(self.epoch)\n        g = None",
        (True, True, True),
    ),
    "one that runs on": ("g = self.own", (False, True, True)),
    "something else is told": (
        "import clock\n        clock.start(self.epoch)\n        g = torch.Generator()",
        (True, True, True),
    ),
    "its state is put back": (
        "import random\n        before = random.getstate()\n        random.seed(self.epoch)\n"
        "        g = torch.Generator()\n        random.setstate(before)",
        (True, True, True),
    ),
    "an unknown state is put into it": (
        "import random\n        random.seed(1)\n        random.setstate(self.data[0])\n"
        "        random.shuffle(self.data)\n        g = torch.Generator()",
        None,
    ),
    "something else is done to it": (
        "import random\n        g = None\n        random.seed(1)\n        random.setstate(self)",
        None,
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_what_setting_the_epoch_changes(tmp_path: Path, name: str) -> None:
    """Whether it does for new objects, for one object, and whether all draws are known."""
    code, expected = PASSES[name]
    text = (
        f"{PLAIN}class S(Sampler):\n"
        "    def __init__(self, data, seed=0):\n"
        "        self.data, self.seed, self.epoch = data, seed, 0\n"
        "        self.own = torch.Generator().manual_seed(seed)\n"
        "    def set_epoch(self, epoch):\n        self.epoch = epoch\n"
        f"    def __iter__(self):\n        {code}\n        return iter({ORDER})\n"
    )
    model = model_of(tmp_path, text)
    trial = model.epoch_trial(class_of(model))
    assert (None if trial is None else (trial.uses, trial.changes, trial.draws)) == expected


def test_an_epoch_that_an_option_gives_a_meaning_has_one(tmp_path: Path) -> None:
    text = (
        f"{PLAIN}class S(Sampler):\n"
        "    def __init__(self, data, fresh=False):\n"
        "        self.data, self.fresh, self.epoch = data, fresh, 0\n"
        "    def set_epoch(self, epoch):\n        self.epoch = epoch\n"
        "    def __iter__(self):\n"
        "        g = torch.Generator().manual_seed(self.epoch if self.fresh else 0)\n"
        f"        return iter({ORDER})\n"
    )
    model = model_of(tmp_path, text)
    trial = model.epoch_trial(class_of(model))
    assert trial is not None
    assert trial.uses
