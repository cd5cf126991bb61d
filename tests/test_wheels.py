"""The samplers that published packages ship: no false alarm, judged finding by finding."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cases import write_tree
from sampler_lint import engine
from sampler_lint.engine import Options

WILD = Path(__file__).parent.parent / "benchmarks" / "wild"
ROWS = [
    json.loads(line)
    for line in (WILD / "judged" / "wheels.jsonl").read_text(encoding="utf-8").splitlines()
]
PACKAGES = (WILD / "judged" / "wheels.txt").read_text(encoding="utf-8").split()


def test_every_judged_finding_is_right_and_says_why() -> None:
    for row in ROWS:
        assert row["verdict"] == "right", row
        assert len(row["reason"].split()) >= 5, row
        assert f"{row['package']}=={row['version']}" in PACKAGES


@pytest.mark.network
# `benchmarks/wild/wheels.py` looks at all of them.
@pytest.mark.parametrize("package", [name.partition("==")[0] for name in PACKAGES[1::6]])
def test_nothing_wrong_is_found_in_published_samplers(package: str, tmp_path: Path) -> None:
    command = [sys.executable, str(WILD / "wheels.py"), "--list", "--keep", str(tmp_path)]
    command += ["--tool", f"{sys.executable} -m sampler_lint", "--only", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in ROWS if row["package"] == package]
    assert f"{len(rows)} of {len(rows)} findings" in done.stdout


# what was wrong there, in our own words


def codes(folder: Path, *select: str) -> list[str]:
    report = engine.check([str(folder)], Options(select=select))
    assert not report.errors
    return [finding.code for finding in report.findings]


SKIPPING = b"""\
from torch.utils.data import BatchSampler


class SkippingBatchSampler(BatchSampler):
    def __init__(self, batch_sampler, skipped=0):
        self.batch_sampler = batch_sampler
        self.skipped = skipped

    def __iter__(self):
        for index, batch in enumerate(self.batch_sampler):
            if index >= self.skipped:
                yield batch

    def __len__(self):
        return len(self.batch_sampler) - self.skipped
"""


@pytest.mark.parametrize(("package", "found"), [("accelerate", []), ("mylib", ["SMP301"])])
def test_a_framework_does_not_train_with_itself(tmp_path, package: str, found: list[str]) -> None:
    files = {
        f"{package}/__init__.py": b"from .main import Accelerator\n",
        f"{package}/main.py": b"class Accelerator:\n    pass\n",
        f"{package}/data_loader.py": SKIPPING,
        f"{package}/check.py": b"from accelerate import Accelerator\n\nfrom .data_loader import "
        b"SkippingBatchSampler\n\nACCELERATOR = Accelerator()\nSAMPLER = SkippingBatchSampler\n",
    }
    assert codes(write_tree(tmp_path, files), "SMP3") == found


REPEATED = b"""\
class Repeat{kind}:
    def __init__(self, {name}):
        self.{name} = {name}

    def __iter__(self):
        epoch = 0
        while True:
            if hasattr(self.{name}.sampler, "set_epoch"):
                self.{name}.sampler.set_epoch(epoch)
            epoch += 1
            yield from self.{name}
"""


@pytest.mark.parametrize(("name", "found"), [("sampler", []), ("loader", ["SMP101"])])
def test_the_sampler_of_a_sampler_is_no_loaders(tmp_path, name: str, found: list[str]) -> None:
    text = REPEATED.replace(b"{name}", name.encode()).replace(b"{kind}", name.title().encode())
    files = {"mylib/__init__.py": b"", "mylib/loader.py": text}
    assert codes(write_tree(tmp_path, files), "SMP101") == found


PADDED = b"""\
from torch.utils.data.distributed import DistributedSampler


class FullBatches(DistributedSampler):
    def __init__(self, dataset, batch_size, **kwargs):
        super().__init__(dataset, **kwargs)
        self.batch_size = batch_size

    def __iter__(self):
        indices = list(super().__iter__())
        missing = -len(indices) % self.batch_size
        indices += indices[:missing{more}]
        return iter(indices)
"""


@pytest.mark.parametrize(("more", "found"), [(b"", []), (b" + self.batch_size", ["SMP304"])])
def test_a_last_batch_made_full_changes_no_count_of_batches(tmp_path, more, found) -> None:
    files = {"samplers.py": PADDED.replace(b"{more}", more)}
    assert codes(write_tree(tmp_path, files), "SMP304") == found
