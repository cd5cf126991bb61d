"""Bugs that real projects had: found in what they published, silent where they had fixed them.

Published packages are downloaded and unpacked, never imported. Samplers from issue threads are
our own writing of the same bug, and are run, fixed and not.
"""

from __future__ import annotations

import functools
import json
import py_compile
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from cases import check, read_tree, working_in, write_tree
from sampler_lint import engine
from sampler_lint.engine import FixReport, Options
from sampler_lint.findings import Finding

TRAINER = "composer/trainer/trainer.py"
DIST = "composer/utils/dist.py"

# -- mosaicml: https://github.com/mosaicml/composer/issues/3123 and /pull/3724


@pytest.fixture(scope="session")
def composer(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The unpacked wheel of a version."""

    @functools.cache
    def unpacked(version: str) -> Path:
        folder = tmp_path_factory.mktemp(version)
        command = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        subprocess.run([sys.executable, *command, f"mosaicml=={version}"], check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            wheel.extractall(folder / "tree")
        return folder / "tree"

    return unpacked


def rows(findings: list[Finding], path: str, code: str) -> list[int]:
    return [
        each.start.row for each in findings if (Path(each.path), each.code) == (Path(path), code)
    ]


def row_of(path: Path, text: str) -> int:
    """The only row of the file with ``text`` in it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    (row,) = (number for number, line in enumerate(lines, 1) if text in line)
    return row


def fix(folder: Path) -> FixReport:
    """What ``--fix --unsafe-fixes`` does to the tree."""
    with working_in(folder):
        return engine.fix(["."], Options(), unsafe=True)


@pytest.mark.network
def test_composer_with_both_bugs(composer):
    tree = composer("0.20.1")
    found = check(tree).findings
    # Evaluation has the same guard as the three places that the issue names.
    assert rows(found, TRAINER, "SMP101") == [2042, 2053, 2118, 2935]
    assert rows(found, DIST, "SMP201") == [row_of(tree / DIST, "DistributedSampler[int](")]
    assert len(found) == 5


@pytest.mark.network
def test_composer_with_the_epoch_fixed(composer):
    tree = composer("0.21.3")
    found = check(tree).findings
    assert rows(found, DIST, "SMP201") == [row_of(tree / DIST, "DistributedSampler[int](")]
    assert rows(found, TRAINER, "SMP101") == []


@pytest.mark.network
def test_composer_with_both_fixed(composer):
    found = check(composer("0.28.0")).findings
    for path in (TRAINER, DIST):
        assert rows(found, path, "SMP101") == rows(found, path, "SMP201") == []


@pytest.mark.network
def test_composer_is_fixed_as_a_patch_one_could_send(composer, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(composer("0.20.1"), tree)
    before, found = read_tree(tree), check(tree).findings

    result = fix(tree)
    assert result.errors == []
    # Nobody who calls `dist.get_sampler` has a seed to hand in: a parameter would change nothing.
    assert [(finding.code, finding.path) for finding, _ in result.left] == [("SMP201", DIST)]
    after = read_tree(tree)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {TRAINER}
    assert after.keys() == before.keys()
    for name in changed:
        py_compile.compile(str(tree / name), cfile=str(tmp_path / "compiled"), doraise=True)
        assert after[name].decode() == with_edits(name, before[name].decode(), found)

    again = check(tree).findings
    for path in (TRAINER, DIST):
        assert rows(again, path, "SMP101") == []
    assert fix(tree).changed == {}
    assert read_tree(tree) == after


def with_edits(path: str, text: str, findings: list[Finding]) -> str:
    """``text`` with the edits that the findings' fixes announce, and nothing else."""
    edits = {
        (edit.start, edit.end, edit.content)
        for finding in findings
        if finding.fix is not None
        for edit in finding.fix.edits
        if Path(edit.path) == Path(path)
    }
    for start, end, content in sorted(edits, reverse=True):
        text = text[:start] + content + text[end:]
    return text


# -- https://github.com/Lightning-AI/pytorch-lightning/issues/19371

TWO_STREAMS = """\
import itertools
import random

from torch.utils.data import Sampler


def iterate_once(indices):
    return iter(random.sample(indices, len(indices)))


def iterate_eternally(indices):
    def infinite_shuffles():
        while True:
            yield random.sample(indices, len(indices))

    return itertools.chain.from_iterable(infinite_shuffles())


class TwoStreamBatchSampler(Sampler):
    def __init__(self, primary_indices, secondary_indices, {size}, secondary_batch_size):
        self.primary_indices = primary_indices
        self.secondary_indices = secondary_indices
        self.primary_batch_size = {primary}
        self.secondary_batch_size = secondary_batch_size

    def __iter__(self):
        primary = iterate_once(self.primary_indices)
        secondary = iterate_eternally(self.secondary_indices)
        for _ in range(len(self)):
            yield list(itertools.islice(primary, self.primary_batch_size)) + list(
                itertools.islice(secondary, self.secondary_batch_size)
            )

    def __len__(self):
        return len(self.primary_indices) // self.primary_batch_size
"""

TWO_STREAMS_TRAINING = """\
import lightning as L
from samplers import TwoStreamBatchSampler
from torch.utils.data import DataLoader


def train(module, dataset, labelled, unlabelled):
    batch_sampler = TwoStreamBatchSampler(unlabelled, labelled, 6, 2)
    loader = DataLoader(dataset, batch_sampler=batch_sampler)
    L.Trainer(max_epochs=3, strategy="deepspeed").fit(module, loader)
"""


#: The parameter before ``secondary_batch_size``, the size of the primary part, and how long the
#: batches of a sampler with sizes 6 and 2 are.
TWO_STREAMS_FORMS = {
    "two sizes": ("primary_batch_size", "primary_batch_size", 8),
    "a whole and a part": ("batch_size", "batch_size - secondary_batch_size", 6),
}


@pytest.fixture(params=TWO_STREAMS_FORMS.values(), ids=TWO_STREAMS_FORMS)
def two_streams(request, tmp_path) -> tuple[Path, int]:
    """A program with such a sampler, and the size of its batches."""
    parameter, primary, size = request.param
    files = {
        "samplers.py": TWO_STREAMS.format(size=parameter, primary=primary).encode(),
        "train.py": TWO_STREAMS_TRAINING.encode(),
    }
    return write_tree(tmp_path / "project", files), size


def run(folder: Path, program: str) -> object:
    """What ``program`` prints as JSON, run in a process of its own in ``folder``."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_streams_get_the_sum_of_their_sizes(two_streams):
    folder, size = two_streams
    codes = [(finding.code, finding.path) for finding in check(folder).findings]
    # SMP302: the attributes alone do not let Lightning rebuild it with a sampler of its own.
    assert codes == [("SMP301", "samplers.py"), ("SMP302", "samplers.py")]
    assert [finding.code for finding in fix(folder).fixed] == ["SMP301"]
    told, given = run(
        folder,
        """
        import json
        from samplers import TwoStreamBatchSampler
        sampler = TwoStreamBatchSampler(range(30), range(30, 40), 6, 2)
        print(json.dumps([sampler.batch_size, len(next(iter(sampler)))]))
        """,
    )
    assert told == given == size
    assert [finding.code for finding in check(folder).findings] == ["SMP302"]


AS_DEEPSPEED_STRATEGY_READS_IT = """
import json
from types import SimpleNamespace as Namespace

from lightning.pytorch.strategies.deepspeed import DeepSpeedStrategy
from lightning.pytorch.trainer.connectors.data_connector import _DataLoaderSource
from samplers import TwoStreamBatchSampler
from torch.utils.data import DataLoader

sampler = TwoStreamBatchSampler(range(30), range(30, 40), 6, 2)
source = _DataLoaderSource(DataLoader(range(40), batch_sampler=sampler), "train_dataloader")
trainer = Namespace(fit_loop=Namespace(_data_source=source))
strategy = Namespace(lightning_module=Namespace(trainer=trainer))
try:
    print(json.dumps(DeepSpeedStrategy._auto_select_batch_size(strategy)))
except AttributeError as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.frameworks
def test_lightning_reads_the_size_of_two_streams(two_streams):
    folder, size = two_streams
    error = "'TwoStreamBatchSampler' object has no attribute 'batch_size'"
    assert run(folder, AS_DEEPSPEED_STRATEGY_READS_IT) == error
    fix(folder)
    assert run(folder, AS_DEEPSPEED_STRATEGY_READS_IT) == size


# -- https://github.com/mit-han-lab/efficientvit/issues/175

SUB_EPOCHS = """\
from torch.utils.data.distributed import DistributedSampler


class MyDistributedSampler(DistributedSampler):
    def __init__(self, dataset, sub_epochs, **kwargs):
        super().__init__(dataset, **kwargs)
        self.sub_epochs = sub_epochs
        self.set_sub_epoch(0, 0)

    def set_sub_epoch(self, epoch, sub_epoch):
        self.set_epoch(epoch)
        self.sub_epoch = sub_epoch
        k = self.sub_epochs
        self.sub_num_samples = self.num_samples // {parts}
        if {operand} % {parts} > self.sub_epoch:
            self.sub_num_samples += 1

    def __iter__(self):
        indices = list(super().__iter__())[self.sub_epoch :: self.sub_epochs]
        return iter(indices[: self.sub_num_samples])

    def __len__(self):
        return self.sub_num_samples
"""

ALL_SUB_EPOCHS = """
import json
from samplers import MyDistributedSampler

sampler = MyDistributedSampler(range(100), 4, num_replicas=2, rank=0)
given, told = [], []
for sub_epoch in range(4):
    sampler.set_sub_epoch(1, sub_epoch)
    given += sampler
    told.append(len(sampler))
print(json.dumps([len(set(given)), told]))
"""


@pytest.mark.parametrize("parts", ["self.sub_epochs", pytest.param("k", marks=pytest.mark.whole)])
@pytest.mark.parametrize(
    ("operand", "code"), [("self.subnum_samples", "SMP401"), ("self.sub_num_samples", "SMP402")]
)
def test_sub_epochs_add_up(tmp_path, operand, code, parts):
    source = SUB_EPOCHS.format(operand=operand, parts=parts).encode()
    folder = write_tree(tmp_path / "project", {"samplers.py": source})
    assert [each.code for each in check(folder).findings] == [code]
    if code == "SMP402":  # as near as spelling goes, and it runs: two samples are lost
        assert run(folder, ALL_SUB_EPOCHS) == [48, [12, 12, 12, 12]]
    with working_in(folder):
        engine.fix(["."])  # safe: no --unsafe-fixes
    fixed = SUB_EPOCHS.format(operand="self.num_samples", parts=parts).encode()
    assert (folder / "samplers.py").read_bytes() == fixed
    assert run(folder, ALL_SUB_EPOCHS) == [50, [13, 13, 12, 12]]
