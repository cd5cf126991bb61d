"""``sampler-lint trace diff``: where two recorded runs part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, FINDINGS, Parser, UsageError, add_output_format, reason

if TYPE_CHECKING:
    from sampler_lint.harness.differences import Comparison, Difference

#: Differences of one kind that are told.
_FEW = 3


def main(argv: Sequence[str]) -> int:
    """Compare the two records in ``argv`` and return the exit code."""
    parser = Parser(
        prog="sampler-lint trace diff",
        description="Say where two runs, recorded with `trace --keep DIR`, part.",
        epilog="Exit codes: 0 both read the same; 1 they differ; 2 a record cannot be read.",
    )
    parser.add_argument("first", metavar="DIR", help="the record of one run")
    parser.add_argument("second", metavar="DIR", help="the record of the other")
    add_output_format(parser)
    arguments = parser.parse_args(argv)

    from sampler_lint.harness import HarnessError
    from sampler_lint.harness.differences import compare
    from sampler_lint.harness.trace import read

    try:
        runs = [read([one]).run for one in (arguments.first, arguments.second)]
    except (HarnessError, OSError) as error:
        raise UsageError(reason(error)) from error
    found = compare(*runs)
    if arguments.output_format == "json":
        parting = found.parting.to_dict() if found.parting else None
        others = [one.to_dict() for one in found.others]
        print(json.dumps({"same": found.same, "parting": parting, "others": others}, indent=2))
    else:
        from sampler_lint.reporters.text import visible

        print("\n".join(map(visible, _lines(found))))
    return CLEAN if found.same else FINDINGS


def _lines(found: Comparison) -> Iterator[str]:
    if found.parting is not None:
        yield f"The runs first differ here: {_told(found.parting)}"
    elif found.others:
        yield f"What was read is the same in both runs ({found.batches} batches)."
    else:
        yield f"Both runs read the same ({found.batches} batches), and nothing else differs."
    kinds: dict[str, list[Difference]] = {}
    for one in found.others:
        kinds.setdefault(one.kind, []).append(one)
    if found.others:
        yield "Also different:"
    for several in kinds.values():
        yield from (f"  {_told(one)}" for one in several[:_FEW])
        if len(several) > _FEW:
            yield f"  … and {len(several) - _FEW} more like this"


def _told(one: Difference) -> str:
    place = [f"{one.loader}:"] if one.loader else []
    where = [
        f"{word} {number}"
        for word, number in (
            ("rank", one.rank),
            ("epoch", one.epoch),
            ("batch", one.batch),
            ("place", one.sample),
        )
        if number is not None
    ]
    return " ".join([*place, *([", ".join(where) + ":"] if where else []), one.message])
