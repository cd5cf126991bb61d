"""What recording costs a loop that does nothing but read data.

Two long-lived processes, one recorded and one not, read the same loader pass by pass in turns,
so that whatever else the machine does hits both alike. Printed are the least CPU time of a pass,
which a busy machine disturbs least, and the medians of CPU time and wall clock.

    python benchmarks/recorder.py [--rounds 25] [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from sampler_lint.harness.command import recorded_environment

#: What is read: samples, and the loader's arguments.
CASES = {
    "images, batches of 64": ("Images(6_400)", "batch_size=64, sampler=shard"),
    "images, two workers": ("Images(6_400)", "batch_size=64, sampler=shard, num_workers=2"),
    "tokens, batches of 16": ("Tokens(4_000)", "batch_size=16, sampler=shard"),
    "big data, a sample kept": ("Images(64_000)", "batch_size=64, sampler=part"),
    "tensors, batches of 32 (worst case)": ("Tensors(32_000)", "batch_size=32, sampler=shard"),
}

READER = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data.distributed import DistributedSampler
torch.set_num_threads(1)

class Tensors(Dataset):
    def __init__(self, size):
        self.size, self.x = size, torch.arange(float(size))
    def __len__(self):
        return self.size
    def __getitem__(self, index):
        return self.x[index]

class Images(Tensors):
    pixels = torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8)
    def __getitem__(self, index):
        image = self.pixels[index % 64].float().div_(255)
        return image.sub_(0.5).div_(0.25).flip(2), index % 10

class Tokens(Tensors):
    words = torch.randint(0, 50_000, (4096,))
    def __getitem__(self, index):
        begin = index % 3584
        return {{"input": self.words[begin : begin + 512], "label": self.words[begin + 1 :][:512]}}

data = {data}
shard = DistributedSampler(data, 1, 0)
part = DistributedSampler(data, 10, 0)
loader = DataLoader(data, {arguments})
for epoch, line in enumerate(sys.stdin):
    shard.set_epoch(epoch)
    part.set_epoch(epoch)
    begin, used = time.perf_counter(), time.process_time()
    for batch in loader:
        pass
    used = time.process_time() - used
    print(used, time.perf_counter() - begin, len(loader), flush=True)
"""


class Reader:
    def __init__(self, name: str, environment: dict[str, str]) -> None:
        data, arguments = CASES[name]
        self.process = subprocess.Popen(
            [sys.executable, "-c", READER.format(data=data, arguments=arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def read(self) -> tuple[float, float, int]:
        """CPU seconds and seconds of one pass, and its batches."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        used, seconds, batches = self.process.stdout.readline().split()
        return float(used), float(seconds), int(batches)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(name: str, rounds: int) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RANK": "0"}
    with tempfile.TemporaryDirectory() as directory:
        plain = Reader(name, environment)
        recorded = Reader(name, recorded_environment(directory, environment))
        for reader in (plain, recorded):
            reader.read()
        pairs = []
        for number in range(rounds):
            first, second = (plain, recorded) if number % 2 else (recorded, plain)
            one, other = first.read(), second.read()
            pairs.append((one, other) if number % 2 else (other, one))
        plain.close()
        recorded.close()
        size = sum(entry.stat().st_size for entry in os.scandir(directory))
    batches = pairs[0][0][2]
    told = [f"{name:36}"]
    for clock, column, middle in (
        ("least CPU", 0, min),
        ("CPU", 0, statistics.median),
        ("wall", 1, statistics.median),
    ):
        without = middle(one[column] for one, _ in pairs)
        with_it = middle(other[column] for _, other in pairs)
        more = with_it - without
        told.append(
            f"{clock} {1e6 * without / batches:7.1f} {1e6 * more / batches:+6.1f} us, "
            f"{100 * more / without:+5.1f} %"
        )
    print(*told, f"{size / 1024:.0f} KiB", sep="  ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings of the cases to measure")
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    began = time.monotonic()
    for name in CASES:
        if not arguments.names or name.startswith(tuple(arguments.names)):
            measure(name, arguments.rounds)
    print(f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
