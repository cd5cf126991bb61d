"""Right code that was taken for wrong in public repositories, beside its wrong twin."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.engine import Options

SAMPLER = """\
from torch.utils.data import DataLoader

class Batches:
    def __init__(self, total, size):
        self.total = total
        self.size = size

    def __iter__(self):
        for start in range(0, self.total, self.size):
            yield list(range(start, start + self.size))

def loader(data):
    return DataLoader(data, batch_sampler=Batches(len(data), 4))
"""
OWN_LOOP = """\
from data.build import loader

if __name__ == "__main__":
    for batch in loader(range(8)):
        print(batch)
"""
LIGHTNING = """\
import lightning as L
from torch.utils.data import DataLoader
import shared

if __name__ == "__main__":
    L.Trainer(devices=2).fit(model, DataLoader(range(8)))
"""


def found(folder: Path, code: str, files: dict[str, str]) -> list[str]:
    """What a code's findings in a project say."""
    (folder / "pyproject.toml").touch()
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    findings = engine.check([str(folder)], Options(select=(code,))).findings
    return [finding.whole for finding in findings]


@pytest.mark.parametrize("extra", ["", "from data.build import loader\n"])
def test_another_program_trains_with_the_framework(tmp_path: Path, extra: str) -> None:
    files = {
        "own/data/__init__": "from torch.utils.data import DataLoader\n",
        "own/data/build": SAMPLER,
        "own/train": "import shared\n" + OWN_LOOP,
        "other/fit": LIGHTNING,
        "shared": "from torch.utils.data import DataLoader\nimport torch\ntorch.manual_seed(1)\n",
    }
    if extra:
        files["own/fit"] = extra + LIGHTNING
    assert bool(found(tmp_path, "SMP301", files)) == bool(extra)


@pytest.mark.parametrize(("index", "reports"), [("self.image", False), ("self.images[i]", True)])
def test_samples_that_are_all_alike_have_no_order(
    tmp_path: Path, index: str, reports: bool
) -> None:
    text = f"""
        import argparse
        import torch
        from torch.utils.data import DataLoader, Dataset, DistributedSampler

        class Images(Dataset):
            def __len__(self):
                return 100

            def __getitem__(self, i):
                return {index}

        args = argparse.ArgumentParser().parse_args()
        torch.manual_seed(args.seed)
        sampler = DistributedSampler(Images())
    """
    assert bool(found(tmp_path, "SMP201", {"main": text})) is reports


SEEDED = """
    import torch

    class Device:
        def {name}(self, seed):
            torch.cuda.manual_seed(seed)
"""
USER = """
    from torch.utils.data import DistributedSampler
    from lib.device import Device

    def build(data):
        return DistributedSampler(data, seed=42)
"""


@pytest.mark.parametrize(
    ("name", "package", "reports"),
    [("set_seed", "lib", True), ("manual_seed", "lib", False), ("set_seed", "app", False)],
)
def test_what_a_library_offers_to_its_users_seeds_no_program(
    tmp_path: Path, name: str, package: str, reports: bool
) -> None:
    files = {"lib/__init__": "", "lib/device": SEEDED.format(name=name)}
    files |= {f"{package}/__init__": "", f"{package}/data": USER}
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "lib"\n')  # others install it
    assert bool(found(tmp_path, "SMP201", files)) is reports


@pytest.mark.parametrize("is_installed", [True, False])
def test_what_is_installed_is_a_library(tmp_path: Path, is_installed: bool) -> None:
    files = {"lib/__init__": "", "lib/device": SEEDED.format(name="set_seed"), "lib/data": USER}
    if is_installed:
        (tmp_path / "lib-1.0.dist-info").mkdir()
        (tmp_path / "lib-1.0.dist-info" / "RECORD").touch()
    assert bool(found(tmp_path, "SMP201", files)) is is_installed


def test_the_seed_of_the_builder_stands_nearest(tmp_path: Path) -> None:
    builder = """
        from torch.utils.data import DistributedSampler
        from lib.device import Device

        def build(data, seed=1024):
            return DistributedSampler(data)
    """
    files = {"lib/__init__": "", "lib/device": SEEDED.format(name="set_seed"), "lib/data": builder}
    (message,) = found(tmp_path, "SMP201", files)
    assert "`build` takes a seed and does not pass it on" in message


@pytest.mark.parametrize(("folder", "reports"), [("tests", True), ("lib", False)])
def test_a_wrapper_of_the_tests_says_nothing_of_the_users_loaders(
    tmp_path: Path, folder: str, reports: bool
) -> None:
    files = {
        "lib/__init__": "",
        "lib/loop": """
            from torch.utils.data import DistributedSampler

            class Loop:
                def __init__(self, loader):
                    self.loader = loader

                def run(self, epochs):
                    for epoch in range(epochs):
                        if isinstance(self.loader.sampler, DistributedSampler):
                            self.loader.sampler.set_epoch(epoch)
                        for batch in self.loader:
                            self.step(batch)
        """,
        f"{folder}/made": """
            from torch.utils.data import DataLoader
            from lib.loop import Loop

            class Wrapper:
                sampler = None

            def go():
                Loop(Wrapper()).run(2)
        """,
    }
    assert bool(found(tmp_path, "SMP101", files)) is reports
