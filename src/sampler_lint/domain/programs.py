"""The files of each program that seed or draw, those without a sampler word too."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.model import Model
from sampler_lint.limits import LONGEST_TEST
from sampler_lint.remembered import remembered
from sampler_lint.source import NOTEBOOK, SourceError, starts_training
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import leftmost, self_class
from sampler_lint.syntax.nodes import (
    Call,
    Class,
    Const,
    Expr,
    Function,
    Imported,
    Scope,
    Store,
    last_name,
)
from sampler_lint.workspace.import_paths import Importer, Place
from sampler_lint.workspace.project import Module, Project
from sampler_lint.workspace.relevance import is_of_tests

T = TypeVar("T")

_TEST_PATH = re.compile(r"(?:^|/)(?:tests?/|testing/|test_[^/]*$|conftest\.py$|[^/]*_test\.py$)")

_ASKS = re.compile(rb"^if\b(?:[^\n]{0,400}|[^:]{0,400})\Z", re.MULTILINE)
#: What finds all modules of a package.
_WALKS = frozenset({"walk_packages", "iter_modules"})
_WRITTEN = re.compile(r"[\w.]+")
#: An import by a name that begins as it is written, and goes on: ``f"tasks.{name}"``.
_COMPUTES = re.compile(
    rb"import_module\s*\((?:[\s(]|#[^\n]{0,200}\n)*(?:[rR]?[fF]|\w?(['\"])[^'\"\n]*\1\s*[^\s,)])"
)
_SEEDS = (b"seed", b"enable_full_determinism")
_SEEDS_FROM = re.compile(
    rb"(?:seed\w{0,40}|enable_full_determinism)[ \t]*\((?![ \t]*(?:-?[0-9][0-9_]*[ \t]*)?\))"
)


class ProgramFiles:
    """Every file that says a sampler word, and those its program seeds or draws in."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._direct: dict[str, set[str]] = {}
        """The files that import each by its name."""
        self._leading: dict[str, set[str]] = {}
        self._contents: dict[str, bytes] = {}
        self._holding: dict[Callable[[bytes], object], dict[str, list[Module]]] = {}
        self._seeding: dict[str, list[str]] | None = None
        self._files = [(program, path) for program, path in self._find() if not self._is_test(path)]
        """Each file with its program; a script may start several."""
        self._programs: dict[str, set[str]] = {}
        self._paths: dict[str, dict[str, None]] = {}
        """The paths of each program."""
        for program, path in self._files:
            self._programs.setdefault(path, set()).add(program)
            self._paths.setdefault(program, {})[path] = None

    @functools.cached_property
    def _importers(self) -> dict[str, set[str]]:
        """The files that lead to each by an import.

        One that imports by a computed name leads to the whole package that it names; where
        nothing of the name is written, to its own if it looks for the modules of a package.
        """
        importers = {path: set(importing) for path, importing in self._direct.items()}
        project = self.model.project
        for path in self._programs:
            may = self.says(path, "import_module") and (
                self.says(path, *_WALKS) or self.tells(path, _computes)
            )
            module = project.module_at(path) if may else None
            for package in filter(None, _computed_packages(module) if module else ()):
                for other in self._programs:
                    if f"{project.imports.dotted_name(other)}.".startswith(f"{package}."):
                        importers.setdefault(other, set()).add(path)
        return importers

    def _find(self) -> Iterator[tuple[str, str]]:
        project = self.model.project
        todo = [(project.program_of(module), module.path) for module in self.model.modules]
        programs = {path: program for program, path in todo}
        for program, path in todo:
            yield program, path
            for imported in self._imports(path):
                if imported not in programs:
                    programs[imported] = program
                    if self._matters(imported) or project.may_tell(imported):
                        todo.append((program, imported))
        # A script that says no sampler word itself, but starts what does, or a package's own file
        # that does.
        started = {path: {program} for path, program in programs.items()}
        importing = {
            path: [*self._imported(path)]
            for path in project.files
            if path not in programs and self._matters(path) and not self._is_test(path)
        }
        size = 0
        while size < (size := sum(map(len, started.values()))):
            for path, paths in importing.items():
                led_to = {each for found in paths for each in started.get(found, ())}
                if led_to:
                    started.setdefault(path, set()).update(led_to)
        for path, paths in importing.items():
            for found in started.keys() & paths:
                self._direct.setdefault(found, set()).add(path)
            for program in sorted(started.get(path, ())):
                yield program, path

    def _imports(self, path: str) -> list[str]:
        paths = [*self._imported(path)]
        for found in paths:
            self._direct.setdefault(found, set()).add(path)
        return paths

    def _imported(self, path: str) -> Iterator[str]:
        """The files of the tree that a file imports; it is parsed only where it must be."""
        project = self.model.project
        if not project.is_parsed(path):
            imports = None if path.endswith(NOTEBOOK) else project.imports_told(path)
            if imports is not None:
                yield from (found for found, _ in _resolved(project, Place.of(path), imports))
                return
        module = project.module_at(path)
        if module is not None:
            yield from (found for found, _ in imported_files(self.model, module))

    def _content(self, path: str) -> bytes:
        known = self._contents.get(path)
        if known is None:
            try:
                known = self.model.project.bytes_of(path)
            except SourceError:
                known = b""
            self._contents[path] = known
        return known

    def _matters(self, path: str) -> bool:
        """Whether the file is a package's own, seeds or draws something, or starts a training."""
        return path.endswith("__init__.py") or path in self.model.project.seeding

    def _is_test(self, path: str) -> bool:
        return is_of_tests(self.model.project.files[path])

    def module(self, path: str, word: str = "") -> Module | None:
        """One of the files; None if it is not among them, lacks the word or cannot be parsed."""
        if path not in self._programs or not self.says(path, word):
            return None
        return self.model.project.module_at(path)

    def says(self, path: str, *words: str) -> bool:
        """Whether the text of a file has one of some words, or a longer one around it."""
        for word in words:  # noqa: SIM110 - a generator takes longer
            if self.tells(path, operator.contains, word.encode()):
                return True
        return False

    def beside(self, path: str) -> set[str]:
        """The files of the programs that a file is part of; all where it is part of none."""
        programs = self._programs.get(path)
        if programs is None:
            return set(self._programs)
        return {other for program in programs for other in self._paths[program]}

    def is_led_to(self, path: str, *, inside: str = "") -> bool:
        """Whether an import of another file leads to the file, if given, from outside a folder."""
        return any(
            other != path and not (inside and other.startswith(inside))
            for other in self._importers.get(path, ())
        )

    def asks_whether_started(self, path: str) -> bool:
        """Whether the file may have an ``if __name__ …`` at its top level."""
        if path.endswith(NOTEBOOK):
            return self.says(path, "__name__")
        return self.tells(path, _asks_whether_started)

    def tells(self, path: str, question: Callable[..., object], *more: object) -> bool:
        """Whether one of the files, parsed or not, answers a question with yes.

        One that cannot be read holds nothing.
        """
        module = self.model.project.parsed_at(path)
        if module is None:
            return bool(question(self._content(path), *more))
        return module.source.tells(question, *more)

    def size(self, path: str) -> int:
        """How long the content of one of the files is; for an order in which no answer rests."""
        module = self.model.project.parsed_at(path)
        return len(self._content(path)) if module is None else len(module.source.data)

    def holding(self, program: str, is_wanted: Callable[[bytes], object]) -> list[Module]:
        """The files of a program whose text is wanted; the others are not parsed for it."""
        known = self._holding.get(is_wanted)
        if known is None:
            known = self._holding[is_wanted] = {}
            for each, path in self._files:
                wanted = self.tells(path, is_wanted)
                module = self.model.project.module_at(path) if wanted else None
                if module is not None:
                    known.setdefault(each, []).append(module)
        return known.get(program, [])

    def seeding(self, program: str) -> list[str]:
        """The files of a program that may seed a generator; most are not parsed for it yet.

        A file without a sampler word is one only if it may seed from more than a number.
        """
        if self._seeding is None:
            self._seeding = {}
            candidates = {module.path for module in self.model.modules}
            for each, path in self._files:
                if self.tells(path, _seeds) and (
                    path in candidates or self.tells(path, _SEEDS_FROM.search)
                ):
                    self._seeding.setdefault(each, []).append(path)
        return self._seeding.get(program, [])

    def saying_seed(self, program: str) -> Iterator[str]:
        """The files of a program that say ``seed``, somehow spelled."""
        for path in self._paths.get(program, ()):
            if self.says(path, "seed", "SEED", "Seed"):
                yield path

    @property
    def programs(self) -> list[str]:
        """The tree's programs."""
        return list(dict.fromkeys(program for program, _ in self._files))

    def programs_of(self, path: str) -> set[str]:
        """The programs that a file belongs to."""
        return self._programs.get(path, set())

    def run_together(self, one: Module, other: Module) -> bool:
        """Whether some file leads to both by its imports, or they are in one library."""
        library = not (one.is_script or other.is_script)
        if library and one.in_package and one.name.split(".")[0] == other.name.split(".")[0]:
            return True
        return self.share_importer(one, other)

    def share_importer(self, one: Module, other: Module) -> bool:
        """Whether some file leads to both by its imports."""
        return not self.leading_to(one.path).isdisjoint(self.leading_to(other.path))

    def run_apart(self, one: Module, other: Module) -> bool:
        """Whether scripts lead to each, and nothing to both.

        What no script leads to may be found by its name, from a configuration.
        """
        return not self.run_together(one, other) and all(map(self.has_script, (one, other)))

    def running_with(self, module: Module) -> list[Module]:
        """The files of a file's program that may run with it, itself among them."""
        others = self.training(self.model.project.program_of(module))
        return [other for other in others if not self.run_apart(module, other)]

    def training(self, program: str) -> list[Module]:
        """The files of a program that say a sampler word, or may start a training."""
        found = (*self.model.project.modules_in(program), *self.holding(program, starts_training))
        return [*dict.fromkeys(found)]

    def has_script(self, module: Module) -> bool:
        """Whether some script leads to a file by its imports, or is it."""
        return any(map(self._is_script, self.leading_to(module.path)))

    def _is_script(self, path: str) -> bool:
        if not self.says(path, "__name__", "print"):
            return False
        module = self.model.project.module_at(path)
        return module is not None and module.is_script

    def leading_to(self, path: str) -> set[str]:
        """The file itself, and those whose imports lead to it."""
        known = self._leading.get(path)
        if known is None:
            above = closure([path], lambda each: self._importers.get(each, ()))
            known = self._leading[path] = set(above)
        return known


def once_a_program(answer: Callable[[Model, Scope], T]) -> Callable[[Model, Scope], T]:
    """Have what is asked about the program of a scope, whichever it is, found out once."""

    @functools.wraps(answer)
    def asking(model: Model, near: Scope) -> T:
        known: dict[str, T] = model.memo.setdefault(answer, {})
        program = model.project.program_of(model.module_of(near))
        if program not in known:
            known[program] = answer(model, near)
        return known[program]

    return asking


@remembered
def program_files(model: Model) -> ProgramFiles:
    """The files of the tree's programs; found once."""
    return ProgramFiles(model)


def files_storing(model: Model, module: Module, name: str) -> list[Module]:
    """The files, of the programs that a file belongs to, that may assign to such an attribute."""
    files = program_files(model)
    programs = sorted(files.programs_of(module.path))
    found = [each for program in programs for each in files.holding(program, _storing(name))]
    return found or [module]


def stores_beside(model: Model, name: str, cls: Class) -> Iterator[Store]:
    """The stores to ``….name`` that may run with a class, whatever else their files say."""
    yield from model.project.stores_near(name, cls)
    known = set(model.modules)
    for module in files_storing(model, model.module_of(cls), name):
        if module not in known:
            yield from module.facts.stores_by_name.get(name, ())


def outer_stores_beside(model: Model, name: str, cls: Class) -> Iterator[Store]:
    """Those of :func:`stores_beside` to what is no method's ``self``."""
    for store in stores_beside(model, name, cls):
        if self_class(store.target.value) is None:
            yield store


def _seeds(data: bytes) -> bool:
    return any(word in data for word in _SEEDS)


def _computes(data: bytes) -> bool:
    return _COMPUTES.search(data) is not None


def _asks_whether_started(data: bytes) -> bool:
    at = data.find(b"__name__")
    while at >= 0:
        if _ASKS.search(data, max(0, at - LONGEST_TEST), at):
            return True
        at = data.find(b"__name__", at + 1)
    return False


@functools.cache
def _storing(name: str) -> Callable[[bytes], bool]:
    """Whether a text may assign to an attribute of that name."""
    word = name.encode()
    # ``x.name = …``, ``x.name += …``, ``(a, x.name) = …``, ``for x.name in …``, …
    stored = re.compile(rb"\.\s*%b\s*(?:=(?!=)|[-+*/%%&|^@<>]+=|[],:)]|in\b)" % word)
    # A search for fixed bytes is ten times as fast as one for a pattern.
    return lambda data: word in data and stored.search(data) is not None


def is_test(module: Module) -> bool:
    """Whether the file holds tests, where fixed seeds are meant."""
    return module.is_test


def built_outside_tests(model: Model, objects: Iterable[Obj]) -> Iterator[tuple[Obj, Call, Module]]:
    """The objects that the program itself builds, tests aside: each, the call, and its file."""
    for obj in objects:
        if obj.site is not None:
            module = model.module_of(obj.site.scope)
            if not is_test(module):
                yield obj, obj.site, module


def in_test_function(model: Model, scope: Scope) -> bool:
    """Whether a scope is (part of) a test function, or of a test case.

    A function that the program itself passes something evaluates: ``test_epoch(model, loader)``.
    """
    return any(
        not any(
            call.args and not _is_in_test(call.scope) and not is_test(model.module_of(call.scope))
            for call in model.flow.callers(each)
        )
        for each in scope.outward()
        if isinstance(each, Function) and _is_in_test(each)
    )


def _is_in_test(scope: Scope) -> bool:
    """Whether a scope lies in what is called as a test function is, or in a test case."""
    return any(
        isinstance(each, Function)
        and (
            each.name.startswith("test_")
            or (each.cls is not None and any(map(_is_test_case, each.cls.bases)))
        )
        for each in scope.outward()
    )


def _is_test_case(base: Expr) -> bool:
    return (last_name(base) or "").endswith("TestCase")


def _computed_packages(module: Module) -> Iterator[str]:
    """The packages of which a file imports something by a computed name."""
    for call in module.facts.all_calls:
        given = call.positional[0] if call.positional else None
        if last_name(call.func) == "import_module" and given and not isinstance(given, Const):
            first = leftmost(given)
            begin = first.value if isinstance(first, Const) else None
            written = _WRITTEN.match(begin) if isinstance(begin, str) else None
            if written:
                yield written[0].rpartition(".")[0]
            elif not _WALKS.isdisjoint(call.scope.called):
                yield module.name if module.is_package else module.name.rpartition(".")[0]


def is_imported(model: Model, module: Module, name: str) -> bool:
    """Whether some other file, tests aside, imports ``name`` from the file, or the whole file."""
    importers = _importers(model)
    return any(
        other is not module
        for attribute in (None, name)
        for other in importers.get((module.path, attribute), ())
    )


@remembered
def _importers(model: Model) -> dict[tuple[str, str | None], list[Module]]:
    """The files, tests aside, that import something of a file, or all of it: by file and name."""
    known: dict[tuple[str, str | None], list[Module]] = {}
    for other in model.modules:
        if not is_test(other):
            for imported in imported_files(model, other):
                known.setdefault(imported, []).append(other)
    return known


def imported_files(model: Model, module: Module) -> Iterator[tuple[str, str | None]]:
    """The files of the tree that a file imports, and what from each; None for all of it."""
    imports = [Imported(name, None, level) for name, level in module.facts.star_imports]
    imports += [imported for _, imported in module.facts.imports]
    yield from _resolved(model.project, module, imports)


def _resolved(
    project: Project, importer: Importer, imports: Iterable[Imported]
) -> Iterator[tuple[str, str | None]]:
    wanted: list[tuple[str, int, str | None]] = []
    for name, attribute, level in imports:
        wanted.append((name, level, attribute))
        if attribute is not None:
            wanted.append((f"{name}.{attribute}".lstrip("."), level, None))
    # Importing ``a.b`` runs the package ``a`` first.
    wanted += dict.fromkeys(
        (package, level, "")
        for name, level, _ in wanted
        for package in _packages_around(name or "")
    )
    for name, level, attribute in wanted:
        path = project.imports.find(name or "", importer, level)
        if path is not None and path in project.files:
            yield path, attribute


def _packages_around(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name
