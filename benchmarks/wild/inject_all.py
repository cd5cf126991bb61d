#!/usr/bin/env python3
"""Put one bug of any kind at a time into public programs: one table of all scripts beside this.

    python benchmarks/wild/inject_all.py TREES [--part read|blind] [--per 2] [--kinds K …]

As inject_loaders.py, inject_today.py and inject_state.py, reading each repository once.
"""

from __future__ import annotations

from pathlib import Path

import inject_loaders
import inject_state
import inject_today
from inject_loaders import Edit, main

CODES = {**inject_loaders.CODES, **inject_today.CODES, **inject_state.CODES}


def places(tree: Path, per: int, kinds: set[str]) -> list[Edit]:
    """Some places of each kind of each script."""
    return [
        *inject_loaders.places(tree, per, kinds),
        *inject_loaders.places(tree, per, kinds, inject_today.Today),
        *inject_state.places(tree, per, kinds),
    ]


if __name__ == "__main__":
    main(CODES, places)
