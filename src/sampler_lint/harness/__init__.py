"""The proof: run a program on N gloo ranks, record what each of them reads, judge the record.

Code under test never runs in this process, and torch is never imported here.
"""

from __future__ import annotations


class HarnessError(Exception):
    """The harness itself cannot work here; the message says what to do."""


class TorchMissingError(HarnessError):
    """torch is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "torch is not installed, and a proof runs real training: "
            "pip install 'sampler-lint[verify]'"
        )
