"""``python -m sampler_lint.dev new SMP107 its-name``: the two places of a new rule, begun.

What is written imports and runs, so that the suite can say what is still missing: the rule finds
nothing yet and its docstring has gaps, and the test of each fixture program says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

#: The case that a new fixture folder begins with; a person names it after what it shows.
FIRST_CASE = "first-case"

_RULE = '''\
"""{code}: (what is wrong, in half a sentence)."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model
from sampler_lint.rules._base import Rule, Suspect


class {class_name}(Rule):
    """(What is wrong, in one sentence).

    What it does:

    Why is this bad?

    Fix safety:

    How it is proved:

    References:
    """

    code = "{code}"
    name = "{name}"
    symptoms = ()  # what a user sees, such as "every epoch has the same order"
    invariant = "reshuffles"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """(Which places of the model are looked at)."""
        yield from ()
'''

_PROGRAM = """\
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    dataset = TensorDataset(torch.randn(96, 8), torch.randint(0, 2, (96,)))
    sampler = DistributedSampler(dataset, shuffle=True, seed=args.seed)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for features, labels in loader:
            loss = F.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""


class NewRuleError(Exception):
    """The rule cannot be begun; the text says why."""


def files(code: str, name: str) -> dict[str, str]:
    """What a new rule begins with: content by path in the repository.

    Args:
        code: ``SMP`` and three digits.
        name: kebab-case, at least two words; reads well after "allow".

    Raises:
        NewRuleError: the code or the name is not of that form.
    """
    if not re.fullmatch(r"SMP[0-9]{3}", code):
        raise NewRuleError(f"{code!r} is not a code: SMP and three digits")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name):
        raise NewRuleError(f"{name!r} is not a name: two words or more, as in epoch-never-set")
    stem = f"{code}_{name}".lower().replace("-", "_")
    class_name = "".join(word.capitalize() for word in name.split("-"))
    case = f"fixtures/{code}/{FIRST_CASE}"
    return {
        f"src/sampler_lint/rules/{stem}.py": _RULE.format(
            code=code, name=name, class_name=class_name
        ),
        f"{case}/bad/train.py": _PROGRAM,
        f"{case}/good/train.py": _PROGRAM,
        f"{case}/expected.txt": "",
    }


def write(repository: Path, code: str, name: str) -> list[str]:
    """Begin a rule in ``repository``; the paths that were written.

    Raises:
        NewRuleError: as :func:`files`; or a rule has that code or that name.
        OSError: a file cannot be written.
    """
    begun: Mapping[str, str] = files(code, name)
    suffix = name.replace("-", "_")
    for taken in sorted((repository / "src/sampler_lint/rules").glob("smp[0-9]*_*")):
        own_code, _, own_suffix = taken.stem.partition("_")
        if own_code == code.lower() or own_suffix == suffix:
            raise NewRuleError(f"{taken.relative_to(repository)} is there already")
    if (repository / "fixtures" / code).exists():
        raise NewRuleError(f"fixtures/{code} is there already")
    for path, text in begun.items():
        target = repository / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    return list(begun)
