"""What users of ruff, flake8 and pyright type, and what there is for it here.

A misspelt name is corrected by its letters (:func:`~sampler_lint.config.nearest`); these are right
names of other tools. Error messages and ``docs/comparison.md`` show them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: What is set as code on a page.
_NAMED = re.compile(r"(--[\w-]+(?: FILE| json| error)?|\*\.\w+|\[[\w.-]+\]|\.gitignore)")
#: Options and configuration keys of other tools, and what to use instead.
NAMES = (
    ("--preview, preview", "new rules are off by default: extend-select turns one on"),
    ("--format", "--output-format"),
    ("--outputjson", "--output-format json"),
    ("--show-source, --no-show-source", "the text format shows the source, concise does not"),
    ("--fix-only, fix-only", "--fix, with --exit-zero to pass although findings are left"),
    ("--extend-fixable, extend-fixable, extend-unfixable", "fixable and unfixable list all codes"),
    (
        "extend-safe-fixes, extend-unsafe-fixes",
        "each fix is checked for itself; unfixable keeps a rule's fixes from being applied",
    ),
    (
        "--target-version, target-version, python-version, pythonVersion, --pythonversion",
        "code is parsed by the Python that runs sampler-lint; torch-version says which torch",
    ),
    (
        "--line-length, line-length, --max-line-length, max-line-length",
        "fixes change no other line; run your formatter after them",
    ),
    ("--verbose, -v, --stats", "--timings, or `sampler-lint explain PATH:LINE` for one line"),
    ("--silent, -s", "--quiet, or --output-file FILE"),
    ("--count", "--statistics"),
    ("--benchmark", "--timings"),
    ("--show-config", "--show-settings"),
    ("--project, -p", "--config FILE"),
    ("--append-config", "extend in a configuration file"),
    ("--threads", "--jobs"),
    ("--level", "--min-severity"),
    ("--warnings", "warnings always make the exit code 1; --min-severity error leaves them out"),
    ("--writebaseline", "--write-baseline FILE"),
    ("--baselinefile", "--baseline FILE"),
    ("--stdin-display-name", "--stdin-filename"),
    (
        "--respect-gitignore, --no-respect-gitignore, respect-gitignore",
        ".gitignore always holds; name a file to check it all the same",
    ),
    (
        "--filename, include, extend-include",
        "*.py and *.ipynb files are checked; exclude leaves some out",
    ),
    ("--pythonpath, --venvpath", "installed packages are not read, only the project"),
    ("src, extraPaths", "an import is looked for in all folders of the project"),
    ("lint", "its keys belong directly in [tool.sampler-lint]"),
    ("enable", "extend-select"),
    ("disable", "ignore"),
    (
        "fix, show-fixes, force-exclude, exit-zero, quiet, statistics, jobs, verify, related",
        "an option of the command line, not a key",
    ),
)

#: Commands of ruff that are none of ours.
COMMANDS = (
    ("clean", "--clear-cache"),
    ("config", "--show-settings"),
    ("linter", "sampler-lint rule"),
    ("format", "run your formatter"),
    ("version", "--version"),
    ("help", "--help"),
)


def instead_of(word: str) -> str:
    """What there is for an option or key of another tool, or nothing."""
    return next((f"here: {told}" for words, told in NAMES if word in words.split(", ")), "")


def rows() -> Iterator[tuple[str, str]]:
    """All of them as Markdown: what is typed elsewhere, and what to do here."""
    for words, told in (*NAMES, *((f"sampler-lint {word}", told) for word, told in COMMANDS)):
        yield ", ".join(f"`{word}`" for word in words.split(", ")), _NAMED.sub(r"`\1`", told)
