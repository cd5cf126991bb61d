"""The page about the frameworks, made from the catalog."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.catalog import Constructor, Contract, Framework, KnownClass

PATH = "docs/frameworks.md"

_INTRODUCTION = """\
torch's DataLoader calls only `iter()` and `len()` of a batch sampler. Training frameworks read,
call, wrap and rebuild more, and differ by version. This page lists what sampler-lint knows about
them; rules that depend on it name it in their messages. Each line comes from the package's source,
and a test compares it with the source: `pytest tests/test_catalog_published.py` for installed
packages, and with `-m network` for the newest version of each and for the versions before and
after each change.

## Which versions a repository uses

Frameworks are those that the program imports. Versions come from the nearest of `pyproject.toml`
(PEP 621, dependency groups, Poetry), `requirements*.txt`, `setup.cfg`, `setup.py` (parsed, never
run) and `environment*.yml` that names the package, in the file's folder or above it; several files
in one folder are combined. Without any, every version is possible. A rule reports nothing if no
possible version has the bug: with `torch<2.10`, SMP305 does not report the argument that torch
2.10 rejects.
"""

_VERBS = {
    "reads": "reads",
    "demands": "demands that it is a",
    "calls": "calls",
    "rebuilds": "rebuilds it, with a sampler and",
    "wraps": "wraps it in",
    "replaces": "replaces it by",
    "seeds": "seeds the generators of",
}


def page(begin: str) -> str:
    """The whole page, below the line that says how it was made."""
    tables = [catalog.framework(name) for name in catalog.tables()]
    return "\n".join(
        [
            f"{begin}\n# What torch and the frameworks do to samplers\n",
            _INTRODUCTION,
            "## Who calls `set_epoch`, and on what\n",
            *_epochs([table for table in tables if table.trainers or table.name == "torch"]),
            *(line for table in tables for line in _section(table)),
        ]
    )


def _epochs(tables: list[Framework]) -> Iterator[str]:
    yield "| framework | versions | part of the loader |"
    yield "|---|---|---|"
    for table in tables:
        told: dict[str, list[str]] = {}
        for contract in table.contracts:
            if contract.does == "calls" and "set_epoch" in contract.names:
                told.setdefault(str(contract.versions), []).append(f"`{contract.part}`")
        for versions, parts in told.items():
            yield f"| {table.title} | {versions} | {', '.join(parts)} |"
        if not told:
            yield f"| {table.title} | all versions | none |"
    yield ""


def _section(table: Framework) -> Iterator[str]:
    yield f"## {table.title}\n"
    packages = ", ".join(f"`{package}`" for package in dict.fromkeys(table.packages))
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(table.distributions))
    yield f"Imported as {packages}, published as {names}."
    if table.trainers:
        trainers = ", ".join(f"`{name}`" for name in sorted(table.trainers))
        yield f"A program trains with it when it imports {trainers}."
    for name, span in table.switches:
        yield f"`{name}=False` ({span}) keeps it from touching the sampler."
    yield ""
    if table.contracts:
        yield "| versions | part of the loader | what it does | when |"
        yield "|---|---|---|---|"
        yield from map(_row, table.contracts)
        yield ""
    if table.classes:
        yield "| class | constructor | gives each rank its share |"
        yield "|---|---|---|"
        yield from map(_class_row, table.classes)
        yield ""
    for made in table.factories:
        asked = " and ".join(f"`{name}`" for name in made.asked)
        sampler = made.sampler.rpartition(".")[2]
        yield f"`{made.names[-1]}` gives its loader a `{sampler}` where {asked} are true.\n"
    for entry in table.hands_back:
        if entry.params == ("self",):
            names = ", ".join(f"`{name.replace('()', '')}`" for name in entry.names)
            yield f"These give back the object they are called of: {names}.\n"
            continue
        given = ", ".join(f"`{name}`" for name in entry.params)
        yield f"`{entry.names[0].replace('()', '')}` gives back what it is given: {given}.\n"


def _row(contract: Contract) -> str:
    names = ", ".join(f"`{name}`" for name in contract.names)
    effect = f"{_VERBS[contract.does]} {names}"
    return f"| {contract.versions} | `{contract.part}` | {effect} | {contract.when} |"


def _parameters(taken: KnownClass | Constructor) -> list[str]:
    """What a constructor takes, as a signature has it."""
    required, optional = taken.params[: taken.required], taken.params[taken.required :]
    return [*required, *(f"{name}=…" for name in (*optional, *sorted(taken.keywords)))]


def _class_row(entry: KnownClass) -> str:
    params = _parameters(entry) + (["…"] if entry.open else [])
    older = "".join(f"; {old.versions}: `({', '.join(_parameters(old))})`" for old in entry.earlier)
    name = f"`{entry.name}`" + ("" if entry.versions == catalog.ALL else f" ({entry.versions})")
    return f"| {name} | `({', '.join(params)})`{older} | {'yes' if entry.distributed else 'no'} |"
