"""The catalog's entries, held against the source of a package, which is read and never imported."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from sampler_lint.catalog import Contract, Factory, Framework, KnownClass, Runner, release

#: Lightning's parts are packages of their own, too.
MOVED = {
    "lightning.pytorch": "pytorch_lightning",
    "lightning.fabric": "lightning_fabric",
}


def download(distribution: str, version: str, folder: Path) -> Path:
    """The unpacked wheel (or source archive) of a version; of the newest where none is given.

    Not by pip, which refuses old releases whose metadata would not be valid today.
    """
    with urllib.request.urlopen(_asking_for_json(distribution)) as answer:
        offered = [*_archives(json.load(answer)["files"])]
    wanted = (
        Version(version)
        if version
        else max(v for v, _, each in offered if not (v.is_prerelease or each.get("yanked")))
    )
    _, _, file = max((one for one in offered if one[0] == wanted), key=lambda one: one[1])
    archive = folder / file["filename"]
    urllib.request.urlretrieve(file["url"], archive)
    tree = folder / "tree"
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(tree)
        return tree
    with tarfile.open(archive) as sources:
        sources.extractall(tree, filter="data")
    return next(tree.iterdir())


def _asking_for_json(distribution: str) -> urllib.request.Request:
    """What asks the package index that pip uses for all files of a distribution (PEP 691)."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    index = os.environ.get("PIP_INDEX_URL") or said or "https://pypi.org/simple"
    kind = "application/vnd.pypi.simple.v1+json"
    return urllib.request.Request(f"{index.rstrip('/')}/{distribution}/", headers={"Accept": kind})


def _archives(files: list[dict[str, Any]]) -> Iterator[tuple[Version, bool, dict[str, Any]]]:
    """Version, whether it is a wheel, and what else is told, of the archives that are read here."""
    for file in files:
        name = file["filename"]
        with contextlib.suppress(InvalidSdistFilename, InvalidWheelFilename, InvalidVersion):
            if name.endswith(".whl"):
                yield parse_wheel_filename(name)[1], True, file
            elif name.endswith(".tar.gz"):
                yield parse_sdist_filename(name)[1], False, file


def version_of(tree: Path) -> str:
    """The version that the unpacked package says it is."""
    metadata = next(tree.glob("*.dist-info/METADATA"), tree / "PKG-INFO")
    if metadata.exists():
        lines = metadata.read_text(encoding="utf-8").splitlines()
        return next(line.partition(": ")[2] for line in lines if line.startswith("Version: "))
    return tree.name.rpartition("-")[2]


class Package:
    """The sources of a package at one version.

    ``searched``: whether a function that is not where the catalog has it is looked for elsewhere,
    as older versions ask for.
    """

    def __init__(self, folder: Path, version: str, *, searched: bool = False) -> None:
        self.folder = folder
        self._searched = searched
        self.version = release(version.partition("+")[0].partition(".post")[0])
        self._parsed: dict[Path, ast.Module] = {}

    def _parse(self, path: Path) -> ast.Module:
        if path not in self._parsed:
            self._parsed[path] = ast.parse(path.read_text(encoding="utf-8"))
        return self._parsed[path]

    def module(self, name: str) -> ast.Module | None:
        """The syntax of a module, wherever this version keeps it."""
        names = [name]
        names += [
            new + name.removeprefix(old)
            for old, new in MOVED.items()
            if name.startswith(old + ".") or name == old
        ]
        for each in names:
            base = self.folder.joinpath(*each.split("."))
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                if path.is_file():
                    return self._parse(path)
        return None

    def names_in(self, module: str) -> set[str]:
        """The functions and classes that a module defines or imports."""
        nodes = ast.walk(self.module(module) or ast.Module([], []))
        found: set[str] = set()
        for node in nodes:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                found |= {alias.asname or alias.name for alias in node.names}
        return found

    def _functions(self, name: str) -> Iterator[ast.AST]:
        """The functions of a name, anywhere in the package; what does not say it is not parsed."""
        for path in sorted(self.folder.rglob("*.py")):
            if f"def {name}".encode() not in path.read_bytes():
                continue
            try:
                tree = self._parse(path)
            except SyntaxError:  # a template
                continue
            yield from (
                node
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef) and node.name == name
            )

    def function(self, source: str) -> list[ast.AST]:
        """``module:Class.method``; by its last name, where this version has it elsewhere."""
        module, _, qualified = source.partition(":")
        node: ast.AST | None = self.module(module)
        for part in qualified.split("."):
            node = _member(node, part) if node is not None else None
        if node is not None:
            return [node]
        last = qualified.rpartition(".")[2]
        searched = self._searched and last != "__init__"
        return [*self._functions(last)] if searched else []


def _member(node: ast.AST, name: str) -> ast.AST | None:
    found = None
    for child in ast.walk(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef)) and child.name == name:
            found = found or child
    return found


# --------------------------------------------------------------------------- contracts


def contract_problems(package: Package, contract: Contract) -> Iterator[str]:
    """What the source says otherwise: not there, or there in a version that should not have it."""
    functions = package.function(contract.source)
    texts = [ast.unparse(function) for function in functions]
    holds = any(
        all(code in text for code in contract.code)
        and not any(code in text for code in contract.absent)
        for text in texts
    )
    expected = package.version in contract.versions
    if expected and not functions:
        yield f"{contract.source} is not there"
    elif expected != holds:
        word = "does not say" if expected else f"says, although not {contract.versions},"
        yield f"{contract.source} {word} {' and '.join(contract.code)}"


# --------------------------------------------------------------------------- classes


def class_problems(package: Package, entry: KnownClass) -> Iterator[str]:
    """Where the class is otherwise than its entry."""
    if entry.built_by:
        yield from _builder_problems(package, entry)
        return
    where, _, name = entry.name.rpartition(".")
    own = package.module(where)
    cls = _member(own, name) if own is not None else None
    if own is not None and cls is None:
        cls = next(
            (found for module in _exporters(package, own, where, name) for found in [module]), None
        )
    if not isinstance(cls, ast.ClassDef):
        yield f"{entry.name} is not there"
        return
    for alias in entry.aliases:
        module = package.module(alias.rpartition(".")[0])
        if module is not None and not _binds(module, name):
            yield f"{alias} is not there"
    if entry.base is not None:
        named = _imported_as(own) if own is not None else {}
        names = (ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in cls.bases)
        bases = {named.get(name, name) for name in names}
        if entry.base.rpartition(".")[2] not in bases:
            yield f"{entry.name} derives from {bases}"
    yield from _constructor_problems(cls, entry)
    yield from _body_problems(cls, entry)


def _builder_problems(package: Package, entry: KnownClass) -> Iterator[str]:
    """Where the function is not there, builds something else, or takes something else itself."""
    found = package.function(entry.built_by)
    if not found:
        yield f"{entry.built_by} is not there"
    for node in found:
        assert isinstance(node, ast.FunctionDef)
        assert entry.base is not None
        names = {
            part.attr if isinstance(part, ast.Attribute) else part.id
            for part in ast.walk(node)
            if isinstance(part, (ast.Attribute, ast.Name))
        }
        if entry.base.rpartition(".")[2] not in names:
            yield f"{entry.built_by} builds no {entry.base}"
        takes = dict(_defaults(node.args))
        if isinstance(entry.shuffles, str) and takes.get(entry.shuffles) != "False":
            yield f"{entry.built_by} shuffles unasked, or cannot be asked"
        if node.name == entry.name.rpartition(".")[2] and {*takes} != {
            *entry.params,
            *entry.keywords,
        }:
            yield f"{entry.built_by} takes {sorted(takes)}"


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    """The parameters of a function with their defaults, empty where they have none."""
    missing = len(arguments.args) - len(arguments.defaults)
    defaults = [*[None] * missing, *arguments.defaults, *arguments.kw_defaults]
    for one, default in zip((*arguments.args, *arguments.kwonlyargs), defaults, strict=True):
        yield one.arg, "" if default is None else ast.unparse(default)


def _imported_as(module: ast.Module) -> dict[str, str]:
    """The own names of what a module imports under others."""
    return {
        alias.asname: alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }


def _exporters(package: Package, module: ast.Module, where: str, name: str) -> Iterator[ast.AST]:
    """The class that a package's ``__init__`` imports from one of its modules."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            # import and from-import of a sibling, or by the full name
            target = f"{where}.{node.module}" if node.level else node.module or ""
            source = package.module(target)
            found = _member(source, name) if source is not None else None
            if found is not None:
                yield found


def _binds(module: ast.Module, name: str) -> bool:
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.ImportFrom) and any(
            (alias.asname or alias.name) in {name, "*"} for alias in node.names
        ):
            return True
    return False


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((n for n in _methods(cls) if n.name == name), None)


def _methods(cls: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and not any(
            ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list
        ):
            yield node


def _constructor_problems(cls: ast.ClassDef, entry: KnownClass) -> Iterator[str]:
    init = _method(cls, "__init__")
    if init is None:
        real: tuple[object, ...] = ((), frozenset(), 0, False)
    else:
        arguments = init.args
        params = tuple(each.arg for each in arguments.args[1:])
        required = len(params) - len(arguments.defaults)
        required += sum(default is None for default in arguments.kw_defaults)
        keywords = frozenset(each.arg for each in arguments.kwonlyargs)
        real = (params, keywords, required, bool(arguments.vararg or arguments.kwarg))
    told = (entry.params, entry.keywords, entry.required, entry.open)
    if real != told:
        yield f"{entry.name} takes {real}, not {told}"
    if isinstance(entry.shuffles, str) and entry.shuffles not in entry.params and not entry.open:
        yield f"{entry.name} takes no {entry.shuffles}"


def _body_problems(cls: ast.ClassDef, entry: KnownClass) -> Iterator[str]:
    init = _method(cls, "__init__")
    stored = _of_self(init, ast.Store) if init is not None else set()
    for node in cls.body:
        if isinstance(node, ast.Assign):
            stored |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            assert isinstance(node.target, ast.Name)
            stored.add(node.target.id)
    methods = {each.name for each in _methods(cls)} - {"__init__"}
    for kind, told, real in (
        ("attributes", entry.attributes, stored),
        ("methods", entry.methods, methods),
    ):
        # Of a loader's many only those are told that matter here.
        if not (told <= real if entry.kind == "loader" else told == real):
            yield f"{entry.name} has the {kind} {sorted(real)}, not {sorted(told)}"
    for name, attributes in entry.reads:
        method = _method(cls, name)
        read = _of_self(method, ast.Load) if method is not None else set()
        if read != attributes:
            yield f"{entry.name}.{name} reads {sorted(read)}, not {sorted(attributes)}"


def _of_self(function: ast.FunctionDef, context: type[ast.expr_context]) -> set[str]:
    """The attributes of ``self`` that a method stores or reads."""
    return {
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, context)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def runner_problems(package: Package, runner: Runner) -> Iterator[str]:
    """Where the method is not there, takes something else, or does set the epoch."""
    makers = dict.fromkeys(name.partition("().") for name in runner.names)
    found = False
    for made, _, method in makers:
        module, _, maker = made.rpartition(".")
        for node in package.function(f"{module}:{maker}"):
            found = True
            if not isinstance(node, ast.ClassDef):
                continue  # a function that gives an instance
            takes = {
                name: [one.arg for one in function.args.args]
                for name in ("__init__", method)
                if isinstance(function := _member(node, name), ast.FunctionDef)
            }
            if not set(runner.params) <= {*takes.get(method, ())}:
                yield f"{made}.{method} takes {takes.get(method)}"
            if runner.step and runner.step not in takes.get("__init__", ()):
                yield f"{made} takes {takes.get('__init__')}"
            if "set_epoch" in ast.unparse(node):
                yield f"{made} sets the epoch"
    if not found:
        yield f"none of {', '.join(runner.names)} is there"


def factory_problems(package: Package, made: Factory) -> Iterator[str]:
    """Where the function is not there, takes something else, or builds no such sampler."""
    for name in made.names:
        module, _, last = name.partition("()")[0].rpartition(".")
        if last not in package.names_in(module):
            yield f"{name} is not there"
    first = made.names[0]
    owner, _, method = first.partition("()")
    for node in package.function(":".join(owner.rsplit(".", 1)) + method):
        assert isinstance(node, ast.FunctionDef)
        takes = [one.arg for one in (*node.args.args, *node.args.kwonlyargs)]
        takes = takes[1:] if method else takes
        if takes[: len(made.params)] != [*made.params]:
            yield f"{first} takes {takes}"
        named = {*made.hands_on, *made.asked, *made.to_sampler, made.chosen_by} - {""}
        if not named <= {*takes}:
            yield f"{first} takes {takes}"
        if made.asked and not any(
            isinstance(test, ast.If)
            and any(flag in ast.unparse(test.test) for flag in made.asked)
            and f"{made.sampler.rpartition('.')[2]}(" in ast.unparse(test)
            for test in ast.walk(node)
        ):
            yield f"{first} builds no {made.sampler}"


def problems(package: Package, table: Framework, *, newest: bool) -> list[str]:
    """All that a table says wrongly of a package; its classes are those of the newest version."""
    found = [p for contract in table.contracts for p in contract_problems(package, contract)]
    found += [p for runner in table.runners for p in runner_problems(package, runner)]
    found += [p for made in table.factories for p in factory_problems(package, made)]
    if newest:
        found += [p for entry in table.classes for p in class_problems(package, entry)]
    return found
