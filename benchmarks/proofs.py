"""What the table of fixture proofs costs, against running each program through torchrun.

The whole table is proved as `sampler-lint verify fixtures` does it: each fixture as it is, with its
fix, and its right twin, if that is another program. Then the same programs are run through a
torchrun of their own, two at a time, which keeps both cores busy, and the first two of each
fixture judged alike; then the table is proved again, which keeps the comparison fair while the load
changes. CPU time is what a busy machine disturbs least. With
--sample only every n-th fixture is run so; the total for torchrun is then the sample's, times the
number of runs that all fixtures ask for.

    python benchmarks/proofs.py [--sample 8]
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF

from sampler_lint.cli.verify import programs_at_a_time
from sampler_lint.harness import verify
from sampler_lint.harness.command import run_command

FIXTURES = Path(__file__).parent.parent / "fixtures"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONDONTWRITEBYTECODE": "1"}
LAUNCHER = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


class Clock:
    """Seconds by the wall, and of CPU time with that of ended children, since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = 0.0, 0.0
        self.wall, self.cpu = self.read()

    def read(self) -> tuple[float, float]:
        own, children = (resource.getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
        used = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
        return time.monotonic() - self.wall, used - self.cpu


def table() -> tuple[float, float, dict[str, verify.Proof]]:
    clock = Clock()
    proofs = verify.verify_fixtures([FIXTURES], jobs=programs_at_a_time())
    return *clock.read(), {proof.fixture: proof for proof in proofs}


def unlike(programs: list[Path]) -> list[Path]:
    """The programs without a right twin that is what the fix makes: the table runs it once."""
    return [*{verify.content_of(program): program for program in reversed(programs)}.values()][::-1]


def through_torchrun(fixture: verify.Fixture) -> tuple[int, list]:
    """The runs it took, and the verdicts before and after."""
    launch = [*LAUNCHER, str(fixture.world_size), "train.py", *fixture.args]
    verdicts, count = [], 0
    with verify.prepared(fixture) as programs:
        for program in unlike(programs):
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
    parser.add_argument("--sample", type=int, default=0, help="fixtures to run (default: all)")
    arguments = parser.parse_args()
    fixtures = verify.find_fixtures([FIXTURES])
    size = arguments.sample or len(fixtures)
    sample = [fixtures[index * len(fixtures) // size] for index in range(size)]
    wall, cpu, proofs = table()
    proved = sum(proof.proved for proof in proofs.values())
    print(f"table: {wall:.1f} s, CPU {cpu:.1f} s, {proved} of {len(proofs)} proved", flush=True)
    clock = Clock()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(through_torchrun, sample))
    real, real_cpu = clock.read()
    runs = sum(count for count, _ in results)
    told = f"{size} fixtures ({runs} runs), two at a time"
    print(f"torchrun: {real:.1f} s, CPU {real_cpu:.1f} s for {told}", flush=True)
    again, cpu_again, _ = table()
    print(f"table again: {again:.1f} s, CPU {cpu_again:.1f} s, load {os.getloadavg()[0]:.1f}")
    same = 0
    for fixture, (_, verdicts) in zip(sample, results, strict=True):
        proof = proofs[fixture.name]
        expected = [(one.holds, one.conclusive) for one in (proof.before, proof.after)]
        got = [(one.holds, one.conclusive) for one in verdicts[:2]]
        same += got == expected
        if got != expected:
            print(f"  {fixture.name}: {got} through torchrun, {expected} in the table")
            print(*(f"    {one.evidence}" for one in verdicts), sep="\n")
    print(f"verdicts: {same} of {size} the same")
    kind = "measured" if size == len(fixtures) else "extrapolated"
    every = 0
    for fixture in fixtures:
        with verify.prepared(fixture) as programs:
            every += len(fixture.invariant.runs) * len(unlike(programs))
    print(f"torchrun would run {every} programs")
    for name, ours, theirs in (
        ("wall", (wall + again) / 2, real * every / runs),
        ("CPU time", (cpu + cpu_again) / 2, real_cpu * every / runs),
    ):
        print(f"{name}: {ours:.1f} s against {theirs:.0f} s ({kind}): 1/{theirs / ours:.0f}")


if __name__ == "__main__":
    main()
