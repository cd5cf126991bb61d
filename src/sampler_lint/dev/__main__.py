"""``python -m sampler_lint.dev``: ``docs [--check]``, ``demo`` and ``new CODE NAME``."""

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
    docs = commands.add_parser("docs", help="write the generated documentation (half a minute)")
    docs.add_argument("--check", action="store_true", help="write nothing, name stale pages")
    commands.add_parser("demo", help="show a finding, its fix and its proof; prove all fixtures")
    new = commands.add_parser("new", help="begin a rule: its file and its fixture folder")
    new.add_argument("code", metavar="CODE", help="SMP and three digits")
    new.add_argument("name", metavar="NAME", help="kebab-case; reads well after 'allow'")
    arguments = parser.parse_args()
    if not (REPOSITORY / "fixtures").is_dir():
        parser.error("this needs a checkout of sampler-lint: pip install -e .")
    if arguments.command == "demo":
        from sampler_lint.dev.demo import run

        return run(REPOSITORY)
    if arguments.command == "new":
        return _new(parser, arguments.code, arguments.name)
    return _docs(check=arguments.check)


def _docs(*, check: bool) -> int:
    from sampler_lint.dev.docs import stale, stale_pictures, write

    found = False
    # Pages tell what is seen in the pictures, so these come first.
    for make in (stale_pictures, stale):
        pages = make(REPOSITORY)
        if not check:
            write(REPOSITORY, pages)
        for path in pages:
            sys.stdout.write(f"{'stale' if check else 'written'}: {path}\n")
        found |= bool(pages)
    return int(check and found)


def _new(parser: argparse.ArgumentParser, code: str, name: str) -> int:
    from sampler_lint.dev.new import NewRuleError, write

    try:
        written = write(REPOSITORY, code, name)
    except (NewRuleError, OSError) as error:
        parser.error(str(error))
    for path in written:
        sys.stdout.write(f"written: {path}\n")
    sys.stdout.write(
        "\nNow say what is wrong in the rule's docstring, plant the bug in bad/train.py, and run\n"
        f"  pytest tests/test_fixture_tree.py tests/test_rules.py -k {code}\n"
        "which says what is missing (CONTRIBUTING.md: Add a rule).\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
