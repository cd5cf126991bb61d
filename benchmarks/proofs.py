"""What the table of fixture proofs costs, against running each program through torchrun.

The whole table is proved as `sampler-lint verify fixtures --jobs 2` does it. Then every n-th
fixture is run before and after its fix through a torchrun of its own, two at a time as well,
each judged alike; a run of the table in between keeps the comparison fair when the machine is
busy. The total for torchrun is the sample's, times the number of fixtures.

    python benchmarks/proofs.py [--sample 8]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sampler_lint.harness import verify
from sampler_lint.harness.world import run_command

FIXTURES = Path(__file__).parent.parent / "fixtures"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONDONTWRITEBYTECODE": "1"}
LAUNCHER = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


def table() -> tuple[float, dict[str, verify.Proof]]:
    began = time.monotonic()
    proofs = verify.verify_fixtures([FIXTURES], jobs=2)
    return time.monotonic() - began, {proof.fixture: proof for proof in proofs}


def through_torchrun(fixture: verify.Fixture) -> tuple[int, list]:
    """The runs it took, and the verdicts before and after."""
    launch = [*LAUNCHER, str(fixture.world_size), "train.py", *fixture.args]
    verdicts, count = [], 0
    with verify.prepared(fixture) as programs:
        for program in programs[:2]:
            runs = []
            for arguments in fixture.invariant.runs:
                _, run = run_command(
                    [*launch, *arguments],
                    cwd=program,
                    env=ENVIRONMENT,
                    timeout=fixture.timeout + 60,
                )
                runs.append(run)
                count += 1
            verdicts.append(fixture.invariant.judge(runs))
    return count, verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=8, help="fixtures to run (0: all)")
    arguments = parser.parse_args()
    fixtures = verify.find_fixtures([FIXTURES])
    size = arguments.sample or len(fixtures)
    sample = [fixtures[index * len(fixtures) // size] for index in range(size)]
    first, proofs = table()
    print(
        f"table: {first:.1f} s, {len(proofs)} fixtures, load {os.getloadavg()[0]:.1f}", flush=True
    )
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(through_torchrun, sample))
    real = time.monotonic() - began
    runs = sum(count for count, _ in results)
    print(f"torchrun: {real:.1f} s for {size} fixtures ({runs} runs), two at a time", flush=True)
    second, _ = table()
    print(f"table again: {second:.1f} s, load {os.getloadavg()[0]:.1f}")
    same = 0
    for fixture, (_, verdicts) in zip(sample, results, strict=True):
        proof = proofs[fixture.name]
        expected = [(one.holds, one.conclusive) for one in (proof.before, proof.after)]
        got = [(one.holds, one.conclusive) for one in verdicts]
        same += got == expected
        if got != expected:
            print(f"  {fixture.name}: {got} through torchrun, {expected} in the table")
            print(*(f"    {one.evidence}" for one in verdicts), sep="\n")
    total = real * len(fixtures) / size
    ours = (first + second) / 2
    kind = "measured" if size == len(fixtures) else "extrapolated"
    print(f"verdicts: {same} of {size} the same")
    print(f"ratio: {ours:.1f} s against {total:.0f} s ({kind}): 1/{total / ours:.0f}")


if __name__ == "__main__":
    main()
