"""Which versions of torch and of the frameworks a tree asks for.

Read from what stands beside the code, nearest first: ``pyproject.toml``, ``requirements*.txt``,
``setup.cfg``, ``setup.py`` (its syntax; it is never run) and conda's ``environment*.yml``. A file
is read when a rule asks about one of its packages, and a broken one says nothing.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sampler_lint import catalog
from sampler_lint.catalog import Span, release
from sampler_lint.source import SourceError

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from sampler_lint.workspace.project import Project

_Release: TypeAlias = "tuple[int, ...]"

#: A release that is still to come.
_NEXT = (9999,)
#: What asks for versions of Python itself, and those that one may ask for.
_PYTHON = "python"
_PYTHONS: set[_Release] = {(3, minor) for minor in range(6, 20)}
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(.*)", re.DOTALL)
_CONDA = re.compile(r"[ \t]*-[ \t]*['\"]?(?:[\w./-]+::)?([A-Za-z][\w.-]*)[ \t]*([^'\"#\r\n]*)")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Requirement(NamedTuple):
    """What one place asks of one distribution."""

    name: str
    """Normalised."""
    specifier: str
    """As PEP 440 writes it; empty for any version."""
    place: str
    """The file, as findings show it, or the setting."""


class Range(NamedTuple):
    """The releases of a framework that a place of the tree may run with."""

    releases: tuple[_Release, ...]
    stated: tuple[Requirement, ...] = ()
    """What says so; empty when nothing does."""

    def may_be(self, span: Span) -> bool:
        """Whether one of them is in the span."""
        return any(version in span for version in self.releases)

    @property
    def is_stated(self) -> bool:
        """Whether a requirement says which versions, rather than only that it is needed."""
        return any(requirement.specifier for requirement in self.stated)


class Requirements:
    """The version ranges of a tree.

    ``torch_version`` and ``frameworks`` are the user's own word, which replaces what the files
    say: a specifier such as ``>=2.4``, and requirements such as ``lightning>=2.2`` of all the
    frameworks that the tree trains with.

    Raises:
        ValueError: one of them cannot be read, or names no framework of the catalog.
    """

    def __init__(
        self,
        project: Project,
        torch_version: str | None = None,
        frameworks: Iterable[str] | None = None,
    ) -> None:
        self._project = project
        self._told: dict[str, Requirement] = {}
        self.frameworks: frozenset[str] | None = None
        """The frameworks that the user named; None if none was asked for."""
        if torch_version is not None:
            wanted = Requirement("torch", specifier(torch_version), "torch-version")
            self._told["torch"] = wanted
        if frameworks is not None:
            told = {text: framework_told(text) for text in frameworks}
            for text, pair in told.items():
                if pair is None:
                    raise ValueError(f"{text!r} names no framework")
                self._told.update([pair])
            self.frameworks = frozenset(pair[0] for pair in told.values() if pair is not None)
        self.range = cache(self._range)
        self._statements = cache(self._read)

    def _range(self, folder: str, framework: str, packages: frozenset[str] = frozenset()) -> Range:
        """The versions of a framework for the files of ``folder``, which import ``packages``."""
        table = catalog.framework(framework)
        told = self._told.get(framework)
        if told is not None:
            stated: tuple[Requirement, ...] = (told,)
        else:
            stated = self._nearest(folder, {_normal(name) for name in table.distributions})
        every = {release(text) for text in table.releases} | {_NEXT}
        usual = [span for package, span in table.imported_as if package in packages]
        if usual and len(usual) == len(packages & set(table.packages)):
            every = {version for version in every if any(version in span for span in usual)}
        allowed = set().union(*(_allowed(r.specifier, every) for r in stated)) if stated else every
        if told is None:
            allowed = allowed - self._too_new(folder, table, allowed)
        # What no release satisfies was not understood.
        return Range(tuple(sorted(allowed or every)), stated)

    def _too_new(
        self, folder: str, table: catalog.Framework, versions: set[_Release]
    ) -> set[_Release]:
        """The releases that need a newer Python than any that the files ask for."""
        asked = self._nearest(folder, {_PYTHON})
        newest = max((v for r in asked for v in _allowed(r.specifier, _PYTHONS)), default=_NEXT)
        spans = [span for oldest, span in table.pythons if newest < release(oldest)]
        return {version for version in versions if any(version in span for span in spans)}

    def _nearest(self, folder: str, names: set[str]) -> tuple[Requirement, ...]:
        """What is asked of packages in the folder, or in the next one above where any is named."""
        named = (
            tuple(r for r in self._statements(place) if r.name in names)
            for place in self._around(folder)
        )
        return next(filter(None, named), ())

    def _around(self, folder: str) -> Iterator[str]:
        """The folder and those around it, up to the tree's root."""
        root = self._project.root
        while True:
            yield folder
            if folder == root or not folder.startswith(root) or folder == os.path.dirname(folder):
                return
            folder = os.path.dirname(folder)

    def _read(self, folder: str) -> list[Requirement]:
        """What the files of one folder ask of the catalog's packages."""
        found: list[Requirement] = []
        for path in self._files(folder):
            place = os.path.relpath(path, self._project.root)
            try:
                text = self._project.bytes_of(path).decode("utf-8")
                pairs = list(_reader(os.path.relpath(path, folder))(text))
            except (SourceError, ValueError, SyntaxError, RecursionError):
                continue
            for each, specifier in pairs:
                if _is_asked_about(each):
                    found.append(Requirement(_normal(each), specifier, place))
        return found

    def _files(self, folder: str) -> list[str]:
        """The files of a folder that say what is needed, those of ``requirements/`` too."""
        found = []
        for below in ("", "requirements"):
            names = self._project.names_in(os.path.join(folder, below))
            found += [os.path.join(below, name) for name in names]
        return [os.path.join(folder, name) for name in found if _reader(name) is not _nothing]


def framework_told(text: str) -> tuple[str, Requirement] | None:
    """The framework and its versions that a text such as ``lightning>=2.2`` names; None if none.

    Raises:
        ValueError: what follows the name is no version.
    """
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    name = _normal(match[1])
    framework = name if name in catalog.tables() else _distributions().get(name, "")
    if framework not in catalog.FRAMEWORK_PACKAGES.values():
        return None
    wanted = specifier(match[2]) if match[2] else ""
    return framework, Requirement(name, wanted, "frameworks")


def specifier(text: str) -> str:
    """A version specifier as PEP 440 writes it; a bare version stands for the oldest.

    Raises:
        ValueError: it is none.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = text.strip()
    if _VERSION.fullmatch(text):
        text = f">={text}"
    try:
        empty = not SpecifierSet(text)
    except InvalidSpecifier:
        empty = True
    if empty:
        raise ValueError(f"{text!r} is not a version (write it like >=2.4)")
    return text


@cache
def _distributions() -> dict[str, str]:
    """Distribution, normalised → framework."""
    return {
        _normal(name): table
        for table in catalog.tables()
        for name in catalog.framework(table).distributions
    }


def _is_asked_about(name: str) -> bool:
    return _normal(name) == _PYTHON or _normal(name) in _distributions()


@cache
def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _allowed(specifier: str, every: set[_Release]) -> set[_Release]:
    """The releases that a specifier lets in: of those given, and of those it names itself."""
    if not specifier:
        return every
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    chosen: SpecifierSet = SpecifierSet(specifier)
    named = {part.version.removesuffix(".*") for part in chosen}
    out = {
        version
        for version in every
        if chosen.contains(".".join(map(str, version)), prereleases=True)
    }
    for text in named:
        version = Version(text)
        if chosen.contains(version, prereleases=True):
            out.add(release(version.base_version.rpartition("!")[2]))
    return out


# --------------------------------------------------------------------------- files

_Pairs = Iterator[tuple[str, str]]


def _reader(path: str) -> Any:
    """How a file, given with the name of its folder, is read."""
    name = os.path.basename(path)
    if name == "pyproject.toml":
        return _of_pyproject
    if name == "setup.cfg":
        return _of_setup_cfg
    if name == "setup.py":
        return _of_setup_py
    if re.fullmatch(r"(?:conda[-_]?)?env(?:ironment)?[\w.-]*\.ya?ml", name):
        return _of_conda
    if name.endswith(".txt") and "require" in path:
        return _of_lines
    return _nothing


def _nothing(text: str) -> _Pairs:
    return iter(())


def _of_lines(text: str) -> _Pairs:
    """The requirements of a pip file, or of a list in another one."""
    for line in text.splitlines():
        pair = _of_requirement(line.partition(" #")[0])
        if pair is not None:
            yield pair


def _of_requirement(text: str) -> tuple[str, str] | None:
    """Name and specifier of a PEP 508 requirement of a package of the catalog."""
    match = _NAME.match(text)
    if match is None or not _is_asked_about(match[1]):
        return None
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Parsed

    try:
        parsed = Parsed(text.strip())
    except InvalidRequirement:
        return None
    return parsed.name, str(parsed.specifier)


def _of_pyproject(text: str) -> _Pairs:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    data = tomllib.loads(text)
    project = _table(data, "project")
    lists = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    lists += _table(data, "dependency-groups").values()
    for each in lists:
        yield from _of_lines("\n".join(_strings(each)))
    yield from _of_python(project.get("requires-python"))
    poetry = _table(_table(data, "tool"), "poetry")
    tables = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
    tables += [_table(group, "dependencies") for group in _table(poetry, "group").values()]
    for table in tables:
        for name, wanted in table.items():
            for one in wanted if isinstance(wanted, list) else [wanted]:
                version = one.get("version", "") if isinstance(one, dict) else one
                if isinstance(version, str):
                    yield name, _of_poetry(version)


def _table(data: Any, key: str) -> dict[str, Any]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _of_poetry(text: str) -> str:
    """``^2.1`` and its like as PEP 440 writes them; nothing for alternatives and what is none."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if "||" in text or text.strip() == "*":
        return ""
    parts = []
    for part in re.split(r" ?, ?| (?=[<>=!~^])", " ".join(text.split())):
        match = re.fullmatch(r"([~^]?)=?\s*(\d+(?:\.\d+)*)(?:\.\*)?(?:\+[\w.]+)?", part)
        if match is None:
            parts.append(part)
            continue
        numbers = [int(number) for number in match[2].split(".")]
        if not match[1]:
            parts.append(f"=={part.lstrip('= ')}")
            continue
        # ^ keeps the first number that is not 0, ~ the second (or the only) one.
        place = min(1, len(numbers) - 1)
        if match[1] == "^":
            place = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
        end = ".".join(map(str, [*numbers[:place], numbers[place] + 1]))
        parts.append(f">={match[2]},<{end}")
    try:
        return str(SpecifierSet(",".join(parts)))
    except InvalidSpecifier:
        return ""


def _of_setup_cfg(text: str) -> _Pairs:
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    yield from _of_lines(parser.get("options", "install_requires", fallback=""))
    yield from _of_python(parser.get("options", "python_requires", fallback=None))
    if parser.has_section("options.extras_require"):
        for _, value in parser.items("options.extras_require"):
            yield from _of_lines(value)


def _of_setup_py(text: str) -> _Pairs:
    """Every string of a list, or of a text of several lines, that is a requirement."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for item in node.elts:
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    yield from _of_lines(item.value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            value = node.value.value
            yield from _of_lines(value if isinstance(value, str) and "\n" in value else "")
        elif isinstance(node, ast.keyword) and node.arg == "python_requires":
            yield from _of_python(getattr(node.value, "value", None))


def _of_python(versions: object) -> _Pairs:
    """Which Python a package says that it runs on."""
    return _of_lines(f"{_PYTHON}{versions}" if isinstance(versions, str) else "")


def _of_conda(text: str) -> _Pairs:
    """The items of ``dependencies``, pip's among them; conda's ``=2.1`` is ``==2.1.*``."""
    key = ""
    for line in text.splitlines():
        key = line.partition(":")[0] if line[:1].isalpha() else key
        match = _CONDA.match(line)
        if match is None or key != "dependencies":
            continue
        name = "torch" if match[1].lower() == "pytorch" else match[1]
        wanted = match[2].strip()
        single = re.fullmatch(r"=\s*(\d[\d.]*)(?:=.*)?", wanted)
        if single is not None:
            wanted = f"=={single[1].strip('.')}.*"
        pair = _of_requirement(name + wanted)
        if pair is not None:
            yield pair
