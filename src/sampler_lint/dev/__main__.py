"""``python -m sampler_lint.dev docs [--check]`` and ``python -m sampler_lint.dev demo``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

#: The checkout that this module is in.
REPOSITORY = Path(__file__).resolve().parents[3]


def main() -> int:
    """Run the command; the exit code is 1 when a page is stale or the demo went wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m sampler_lint.dev", description="Work on sampler-lint itself."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    docs = commands.add_parser("docs", help="write the generated documentation")
    docs.add_argument("--check", action="store_true", help="write nothing, name stale pages")
    commands.add_parser("demo", help="show a finding, its fix and its proof; prove all fixtures")
    arguments = parser.parse_args()
    if not (REPOSITORY / "fixtures").is_dir():
        parser.error("this needs a checkout of sampler-lint: pip install -e .")
    if arguments.command == "demo":
        from sampler_lint.dev.demo import run

        return run(REPOSITORY)
    from sampler_lint.dev.docs import stale, write

    pages = stale(REPOSITORY)
    if not arguments.check:
        write(REPOSITORY, pages)
    for path in pages:
        sys.stdout.write(f"{'stale' if arguments.check else 'written'}: {path}\n")
    return int(arguments.check and bool(pages))


if __name__ == "__main__":
    sys.exit(main())
