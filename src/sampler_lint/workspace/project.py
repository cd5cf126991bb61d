"""The tree as Python sees it: modules by dotted name, found and parsed when first asked for.

Files that say a sampler word are parsed up front; any other file only when an import leads to
it. Nothing is imported or run, and nothing outside the tree is read.
"""

from __future__ import annotations

import copy
import functools
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias, TypeVar

from sampler_lint import findings
from sampler_lint.findings import FileError
from sampler_lint.limits import MOST_ALIASES, NARROWED_ABOVE
from sampler_lint.roots import leads_outside, upwards
from sampler_lint.source import (
    SourceError,
    SourceFile,
    read_bytes,
    says_rank_or_data,
    setting_names,
)
from sampler_lint.syntax.lower import FactsError, check_syntax, extract, parse
from sampler_lint.syntax.nodes import (
    Attr,
    Binding,
    Call,
    Choice,
    Class,
    Expr,
    Function,
    If,
    Index,
    Map,
    ModuleFacts,
    Name,
    Node,
    PartOfFacts,
    Scope,
    Store,
    last_name,
    self_class,
    walk,
)
from sampler_lint.timings import Watch, counted
from sampler_lint.workspace.first_look import first_looks, kinds
from sampler_lint.workspace.import_scan import imports_in
from sampler_lint.workspace.places import Importer, Place
from sampler_lint.workspace.relevance import that_matter

#: Packages that are never taken from the tree: their facts are in the catalog, and a folder of
#: the same name somewhere in a repository is not them.
_ALWAYS_EXTERNAL = frozenset({"torch"})


PlacedT = TypeVar("PlacedT", Call, Store)

#: Files with their facts, which are never changed, by absolute path.
Parsed: TypeAlias = "Mapping[str, tuple[SourceFile, ModuleFacts]]"


class Module:
    """One parsed file of the tree."""

    def __init__(self, project: Project, path: str, source: SourceFile, facts: ModuleFacts) -> None:
        self.project = project
        self.path = path
        """Absolute path."""
        self.source = source
        self.facts = facts
        self.folder, file = os.path.split(path)
        self.is_package = file == "__init__.py"
        self.name = project.dotted_name(path)

    def is_library(self, scope: Scope) -> bool:
        """Whether code outside the tree may call a scope of this file.

        So it is with the functions of a package, unless they are in another function or in a
        private class.
        """
        if "." not in self.name:
            return False
        current: Scope | None = scope
        while current is not None and current.outer is not None:
            if isinstance(current, Function) and isinstance(current.outer, Function):
                return False
            if isinstance(current, Class) and current.name.startswith("_"):
                return False
            current = current.outer
        return True

    @cached_property
    def is_script(self) -> bool:
        """Whether the file is made to be started: it has a main guard, or prints on its own."""
        return (
            any(
                isinstance(stmt, If)
                and any(
                    isinstance(node, Name) and node.id == "__name__" for node in walk(stmt.test)
                )
                for stmt in self.facts.body
            )
            or "print" in self.facts.called
        )

    def says(self, word: str) -> bool:
        """Whether a word is somewhere in the file's text."""
        return word in self.source.text

    @property
    def display(self) -> str:
        """The path as findings show it."""
        return self.source.path

    def place(self, node: Node) -> findings.Place:
        """Where a node of this file stands."""
        start = self.source.position(self.source.offset(node.row, node.col))
        return findings.Place(self.source.path, start, self.source.cell_of(node.row))

    def __repr__(self) -> str:
        return f"<Module {self.name}>"


def without(modules: Iterable[Module], hidden: Collection[Node]) -> list[Module]:
    """The files with those calls, functions and classes that are not hidden, nor in what is."""

    def is_hidden(scope: Scope | None) -> bool:
        while scope is not None and scope not in hidden:
            scope = scope.outer
        return scope is not None

    parts = []
    for module in modules:
        facts = module.facts
        if facts not in hidden:
            calls = [c for c in facts.all_calls if c not in hidden and not is_hidden(c.scope)]
            functions = [function for function in facts.functions if not is_hidden(function)]
            classes = [cls for cls in facts.classes if not is_hidden(cls)]
            part = copy.copy(module)
            part.facts = PartOfFacts(facts, functions, classes, calls)
            parts.append(part)
    return parts


class Project:
    """Every Python file of one tree.

    ``files`` maps absolute paths to the paths shown to the user. ``overlay`` (by absolute path)
    replaces what is on disk. ``jobs`` is how many processes may read, ``watch`` is told how far
    reading is. ``parsed`` is taken where a file still holds the same.
    """

    def __init__(
        self,
        root: str,
        files: Mapping[str, str],
        overlay: Mapping[str, bytes] | None = None,
        digest: Callable[[bytes], str] | None = None,
        jobs: int = 1,
        watch: Watch | None = None,
        parsed: Parsed | None = None,
    ) -> None:
        self.root = root
        self._parsed_before = parsed or {}
        self.files = dict(files)
        self.overlay = overlay or {}
        self.errors: dict[str, FileError] = {}
        self._modules: dict[str, Module | None] = {}
        self._by_facts: dict[int, Module] = {}
        self.candidates: list[Module] = []
        self._to_us: set[str] = set()
        self.seeding: set[str] = set()
        """The files without a sampler word that seed, split or draw."""
        self.seconds: dict[str, float] = {}
        """How long it took to read each parsed file."""
        self.looked_into: set[str] = set()
        """The files whose bytes somebody asked for, other than for the sampler words."""
        self.consulted: dict[str, bytes | None] = {}
        """Files read and folders listed besides the Python files, and what they held."""
        self.digests: dict[str, str] = {}
        """What each file held when it was first read, if ``digest`` was given."""
        self._told_imports: dict[str, list[tuple[str, str | None, int]] | None] = {}
        self._found: dict[tuple[str, int, str], str | None] = {}
        self._everywhere: dict[str, list[tuple[str, str]]] = {}
        self._roots: dict[tuple[str, str], list[str]] = {}
        self._program_by_path: dict[str, str] = {}
        self._calls_by_program: dict[str, dict[str, list[Call]]] = {}
        self._stores_by_program: dict[str, dict[str, list[Store]]] = {}
        self._outer_by_program: dict[str, dict[str, list[Store]]] = {}
        self._stores_by_owner: dict[str, dict[Class | None, list[Store]]] = {}
        self._sort_in(digest, jobs, watch)

    # -- loading

    def bytes_of(self, path: str) -> bytes:
        """The file's content, from the overlay if it has the path.

        Raises:
            SourceError: it cannot be read.
        """
        if path in self.files:
            self.looked_into.add(path)
            return self._read(path)
        self.consulted[path] = None
        if leads_outside(path):
            raise SourceError(FileError(path, "leads out of the repository"))
        data = self.consulted[path] = self._read(path)
        return data

    def imports_told(
        self, path: str, data: bytes | None = None
    ) -> list[tuple[str, str | None, int]] | None:
        """What a file imports, told from its text, or from ``data`` that was read from it.

        As :func:`.import_scan.imports_in` says it; nothing of a file that cannot be read.
        """
        if path not in self._told_imports:
            try:
                self._told_imports[path] = imports_in(self.bytes_of(path) if data is None else data)
            except SourceError:
                self._told_imports[path] = []
        if data is None:
            self.looked_into.add(path)
        return self._told_imports[path]

    def names_in(self, folder: str) -> list[str]:
        """The names in a folder that files with settings and requirements may have, sorted.

        Whoever lists a folder does it here, or findings would outlive its changes.
        """
        names = [] if leads_outside(folder) else setting_names(folder)
        self.consulted[os.path.join(folder, "")] = "\n".join(names).encode("utf-8", "replace")
        return names

    def _read(self, path: str) -> bytes:
        data = self.overlay.get(path)
        return data if data is not None else read_bytes(path)

    def _sort_in(
        self, digest: Callable[[bytes], str] | None, jobs: int, watch: Watch | None
    ) -> None:
        """Read every file for the first time, and parse those that say a sampler word."""
        spoken: dict[str, bytes] = {}
        size = 0
        looks = first_looks(sorted(self.files), self._try_to_read, digest, jobs)
        for path, look, data in counted("reading", looks, len(self.files), watch):
            size += look.size
            if look.digest is not None:
                self.digests[path] = look.digest
            if look.is_candidate:
                spoken[path] = data
            else:
                self._set_aside(path, look.is_seeding, look.speaks_to_us)
        self.is_narrowed = size > NARROWED_ABOVE
        if self.is_narrowed:
            for path in spoken.keys() - that_matter(self, spoken):
                self._set_aside(path, *kinds(spoken.pop(path), is_candidate=True))
        for path in counted("parsing", sorted(spoken), len(spoken), watch):
            module = self._load(path, spoken[path])
            if module is not None:
                self.candidates.append(module)

    def _try_to_read(self, path: str) -> bytes | None:
        try:
            return self._read(path)
        except SourceError as error:
            self.errors[path] = error.error
            self._modules[path] = None
            return None

    def _set_aside(self, path: str, is_seeding: bool, speaks_to_us: bool) -> None:
        """Note what there is to know about a file that is not parsed up front."""
        if is_seeding:
            self.seeding.add(path)
        if speaks_to_us:
            self._to_us.add(path)

    def _load(self, path: str, data: bytes | None = None) -> Module | None:
        if path in self._modules:
            return self._modules[path]
        display = self.files.get(path, path)
        started = time.perf_counter()
        try:
            data = self._read(path) if data is None else data
            source, facts = self._parsed_before.get(path, (None, None))
            if source is None or facts is None or (source.path, source.data) != (display, data):
                source = SourceFile(display, data)
                facts = self._parse(source)
            module = Module(self, path, source, facts)
        except SourceError as error:
            self.errors[path] = FileError(display, error.error.reason, error.error.row)
            self._modules[path] = None
            return None
        self._modules[path] = module
        self._by_facts[id(module.facts)] = module
        self.seconds[path] = time.perf_counter() - started
        return module

    def _parse(self, source: SourceFile) -> ModuleFacts:
        try:
            return extract(parse(source.text))
        except FactsError as error:
            raise SourceError(source.error(error.reason, error.row)) from error

    def join(self, paths: Iterable[str]) -> bool:
        """Take files without a sampler word for candidates, too; whether there was a new one.

        What was asked of all candidates before is asked anew.
        """
        known = {module.path for module in self.candidates}
        joined = [self.module_at(path) for path in sorted(set(paths) - known)]
        new = [module for module in joined if module is not None]
        self.candidates += new
        if new:
            for name, value in vars(type(self)).items():
                if isinstance(value, cached_property) and name not in {"_parents", "_folders"}:
                    self.__dict__.pop(name, None)
            for kept in (self._calls_by_program, self._outer_by_program, self._stores_by_owner):
                kept.clear()
        return bool(new)

    def speaks_to_us(self, path: str) -> bool:
        """Whether a comment in the file may name one of our rules, or the linter itself."""
        return path in self._to_us or self._modules.get(path) is not None

    def holds(self, path: str, data: bytes) -> bool:
        """Whether ``data`` is what this project was made from."""
        module = self._modules.get(path)
        if module is not None:
            return module.source.data == data
        try:
            return path in self.files and path not in self.errors and self.bytes_of(path) == data
        except SourceError:
            return False

    def parsed_at(self, path: str) -> Module | None:
        """The module of a file that was parsed before."""
        return self._modules.get(path)

    def is_parsed(self, path: str) -> bool:
        """Whether it has been tried to parse the file."""
        return path in self._modules

    def problems(self, paths: Mapping[str, str]) -> list[FileError]:
        """What keeps the files ``paths`` from being checked, shown by the given names.

        Files that nothing led to are decoded and parsed here for the first time, so that
        a broken file is reported whatever is in it.
        """
        out = []
        for path, display in paths.items():
            error = self.errors.get(path)
            if not self.is_parsed(path):
                error = syntax_error(display, functools.partial(self._read, path))
            if error is not None:
                out.append(FileError(display, error.reason, error.row))
        return out

    def module_of(self, scope: Scope) -> Module:
        """The module a scope belongs to."""
        return self._by_facts[id(scope.module)]

    @property
    def parsed(self) -> Parsed:
        """What was parsed, for the next project of the same files."""
        return {module.path: (module.source, module.facts) for module in self.loaded}

    @property
    def loaded(self) -> Iterable[Module]:
        """Every module parsed so far."""
        return [module for module in self._modules.values() if module is not None]

    # -- names

    def dotted_name(self, path: str) -> str:
        """The import name of a file: its packages (folders with ``__init__.py``) and its stem."""
        folder, file = os.path.split(path)
        parts = [] if file == "__init__.py" else [os.path.splitext(file)[0]]
        while os.path.join(folder, "__init__.py") in self.files:
            folder, name = os.path.split(folder)
            parts.append(name)
        return ".".join(reversed(parts))

    @cached_property
    def _parents(self) -> dict[str, dict[str, None]]:
        """Top-level import name → folders that hold it as a module or package."""
        places: dict[str, dict[str, None]] = {}
        for path in self.files:
            folder, file = os.path.split(path)
            if file.endswith(".py") and file != "__init__.py":
                places.setdefault(file.removesuffix(".py"), {})[folder] = None
            while len(folder) >= len(self.root) and folder != os.path.dirname(folder):
                folder, name = os.path.split(folder)
                known = places.setdefault(name, {})
                if folder in known:
                    break
                known[folder] = None
        return places

    @cached_property
    def _folders(self) -> frozenset[str]:
        folders: set[str] = set()
        for path in self.files:
            folder = os.path.dirname(path)
            while folder not in folders and len(folder) >= len(self.root):
                folders.add(folder)
                folder = os.path.dirname(folder)
        return frozenset(folders)

    def _file_below(self, folder: str, parts: list[str]) -> str | None:
        """The file of dotted ``parts`` below ``folder``; a folder path for a namespace package."""
        base = os.path.join(folder, os.sep.join(parts))
        package = f"{base}{os.sep}__init__.py"
        if package in self.files:
            return package
        if base + ".py" in self.files:
            return base + ".py"
        return base if base in self._folders else None

    def find(self, name: str, importer: Importer, level: int = 0) -> str | None:
        """The file (or namespace folder) that ``import name`` means in ``importer``.

        As Python does: relative imports by folder; absolute ones from the import roots, which
        are guessed: the nearest folder around the importer that holds the name, else the only
        one in the tree.
        """
        key = name, level, importer.path
        if key not in self._found:
            self._found[key] = self._find(name, importer, level)
        return self._found[key]

    def _find(self, name: str, importer: Importer, level: int) -> str | None:
        parts = name.split(".") if name else []
        if level:
            folder = importer.folder
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            if not parts:
                package = os.path.join(folder, "__init__.py")
                return package if package in self.files else folder
            return self._file_below(folder, parts)
        if not parts or parts[0] in _ALWAYS_EXTERNAL:
            return None
        for parent in self._roots_around(parts[0], importer):
            found = self._file_below(parent, parts)
            if found is not None and found != importer.path:
                return found
        hits = self._elsewhere(name, importer)
        if len(hits) > 1:
            shared = [len(os.path.commonpath([hit, importer.path])) for hit in hits]
            best = max(shared)
            hits = [hit for hit, length in zip(hits, shared, strict=True) if length == best]
        return hits[0] if len(hits) == 1 else None

    def _roots_around(self, name: str, importer: Importer) -> list[str]:
        """The folders around the importer from which ``import name`` may start, nearest first.

        A package's own folder is none, except for a script that lies in it.
        """
        # All files of a folder ask the same of it.
        known = self._roots.get((name, importer.folder))
        if known is None:
            known = self._roots[name, importer.folder] = self._new_roots_around(name, importer)
        return known

    def _new_roots_around(self, name: str, importer: Importer) -> list[str]:
        places = self._parents.get(name)
        if not places:
            return []
        own = importer.folder
        around = [own] if own in places else []
        around += [
            folder
            for folder in upwards(os.path.dirname(own))
            if folder in places and not self._is_package(folder)
        ]
        if self._is_package(own) and around and around[0] == own:
            # Inside a package, "import x" means the top-level x unless only a sibling has it.
            around.append(around.pop(0))
        if name in sys.stdlib_module_names:
            around = [own] if own in places and not self._is_package(own) else []
        return around

    def _elsewhere(self, name: str, importer: Importer) -> list[str]:
        """What a dotted name means below the tree's other folders; nothing for Python's own."""
        top, *_ = parts = name.split(".")
        if top in sys.stdlib_module_names:
            return []
        known = self._everywhere.get(name)
        if known is None:
            known = self._everywhere[name] = [
                (folder, hit)
                for folder in self._parents.get(top, ())
                if not self._is_package(folder) and (hit := self._file_below(folder, parts))
            ]
        own = os.path.join(importer.folder, "")
        return [hit for folder, hit in known if not own.startswith(os.path.join(folder, ""))]

    def _is_package(self, folder: str) -> bool:
        return os.path.join(folder, "__init__.py") in self.files

    def _is_certain(self, name: str, importer: Module, level: int) -> bool:
        """Whether an import's target lies around the importer, or is the only one of its name."""
        if level:
            return True
        top = name.partition(".")[0]
        return bool(self._roots_around(top, importer)) or len(self._elsewhere(top, importer)) == 1

    def module_at(self, path: str) -> Module | None:
        """The module of a file of the tree, parsed now if need be; None for a folder."""
        if path not in self.files:
            return None
        return self._load(path)

    def imported_by(self, path: str) -> set[str]:
        """The files of the tree that a file imports, told from its text where that tells."""
        place = Place.of(path)
        told = self.imports_told(path) or ()
        return {found for imported in told for found in self._meant(imported, place)}

    def files_meant(self, module: Module, binding: Binding) -> set[str]:
        """The files of the tree that an import may bind a name from."""
        return self._meant(binding.payload, module)

    def _meant(self, imported: tuple[str, str | None, int], importer: Importer) -> set[str]:
        name, attribute, level = imported
        whole = ".".join(part for part in (name, attribute) if part)
        found = {self.find(each, importer, level) for each in {name or whole, whole}}
        return {path for path in found if path in self.files}

    def module_telling(self, path: str) -> Module | None:
        """As :meth:`module_at`, but in a very big tree None for a file that can tell little.

        There most of what files import is models and their settings. What an import brings counts
        if it may say which rank this is, seed, or be a kind of data.
        """
        if not self.is_narrowed or path in self._modules or path not in self.files:
            return self.module_at(path)
        if not (path.endswith("__init__.py") or path in self.seeding):
            try:
                told = says_rank_or_data(self.bytes_of(path))
            except SourceError:
                told = False
            if not told:
                return None
        return self.module_at(path)

    # -- calls by name

    @cached_property
    def _calls(self) -> dict[str, list[Call]]:
        calls: dict[str, list[Call]] = {}
        for module in self.candidates:
            for call in module.facts.all_calls:
                name = last_name(call.func)  # nearly always there, and quicker
                for each in (name,) if name else names_meant(call.func):
                    calls.setdefault(each, []).append(call)
        return calls

    @cached_property
    def _stores(self) -> dict[str, list[Store]]:
        stores: dict[str, list[Store]] = {}
        for module in self.candidates:
            for scope in module.facts.scopes:
                for store in scope.stores:
                    if isinstance(store.target, Attr):
                        stores.setdefault(store.target.name, []).append(store)
        return stores

    @cached_property
    def _derived(self) -> dict[str, list[Class]]:
        derived: dict[str, list[Class]] = {}
        for module in self.candidates:
            for cls in module.facts.classes:
                for base in cls.bases:
                    name = last_name(base)
                    if name:
                        derived.setdefault(name, []).append(cls)
        return derived

    def calls_named(self, name: str) -> list[Call]:
        """Every call in the candidate files whose function is spelled ``name`` or ``….name``."""
        return self._calls.get(name, [])

    @cached_property
    def _aliases(self) -> dict[str, dict[str, set[str]]]:
        """By program, name of a function or class → names that it is given to."""
        return {
            program: _aliases_in(modules) for program, modules in self._modules_by_program.items()
        }

    def aliased(self, program: str) -> Iterable[tuple[str, set[str]]]:
        """Names of functions and classes of a program with their aliases."""
        return self._aliases.get(program, {}).items()

    def aliases(self, name: str, scope: Scope) -> list[str]:
        """Names in the program of ``scope`` that a function called ``name`` may be called by, too.

        As for calls, a file that belongs to no program may be any program's helper.
        """
        program = self.program_of(self.module_of(scope))
        among = [self._aliases.get(program, {})] if program else self._aliases.values()
        found: dict[str, None] = {name: None}
        todo = [name]
        while todo and len(found) < MOST_ALIASES:
            meant = todo.pop()
            for alias in sorted({alias for each in among for alias in each.get(meant, ())}):
                if alias not in found:
                    found[alias] = None
                    todo.append(alias)
        return list(found)[1:MOST_ALIASES]

    def calls_near(self, name: str, scope: Scope) -> list[Call]:
        """:meth:`calls_named`, in the program that ``scope`` belongs to.

        A file that says no sampler word belongs to no program: it may be anybody's helper.
        """
        program = self.program_of(self.module_of(scope))
        return self.calls_in(program, name) if program else self.calls_named(name)

    def stores_near(self, attribute: str, scope: Scope) -> list[Store]:
        """Every assignment to ``….attribute`` in the program of ``scope``, as for calls."""
        program = self.program_of(self.module_of(scope))
        if not program:
            return self.stores_of(attribute)
        if attribute not in self._stores_by_program:
            self._stores_by_program[attribute] = self._by_program(self.stores_of(attribute))
        return self._stores_by_program[attribute].get(program, [])

    def outer_stores_near(self, attribute: str, scope: Scope) -> list[Store]:
        """Those of :meth:`stores_near` to what is no method's ``self``."""
        program = self.program_of(self.module_of(scope))
        stores = self._by_owner(attribute).get(None, [])
        if not program:
            return stores
        if attribute not in self._outer_by_program:
            self._outer_by_program[attribute] = self._by_program(stores)
        return self._outer_by_program[attribute].get(program, [])

    def calls_in(self, program: str, name: str) -> list[Call]:
        """:meth:`calls_named`, in one program."""
        if name not in self._calls_by_program:
            self._calls_by_program[name] = self._by_program(self.calls_named(name))
        return self._calls_by_program[name].get(program, [])

    def _by_program(self, items: Iterable[PlacedT]) -> dict[str, list[PlacedT]]:
        sorted_in: dict[str, list[PlacedT]] = {}
        for item in items:
            program = self.program_of(self.module_of(item.scope))
            sorted_in.setdefault(program, []).append(item)
        return sorted_in

    def stores_of(self, attribute: str) -> list[Store]:
        """Every assignment to ``….attribute`` in the candidate files."""
        return self._stores.get(attribute, [])

    def own_stores(self, attribute: str, cls: Class) -> list[Store]:
        """Those of :meth:`stores_of` to the ``self`` of the methods of ``cls``."""
        return self._by_owner(attribute).get(cls, [])

    def _by_owner(self, attribute: str) -> dict[Class | None, list[Store]]:
        known = self._stores_by_owner.get(attribute)
        if known is None:
            known = self._stores_by_owner[attribute] = {}
            for store in self.stores_of(attribute):
                assert isinstance(store.target, Attr)
                known.setdefault(self_class(store.target.value), []).append(store)
        return known

    def classes_deriving(self, base: str) -> list[Class]:
        """Every class in the candidate files with a base spelled ``base`` or ``….base``."""
        return self._derived.get(base, [])

    @cached_property
    def _programs(self) -> dict[str, str]:
        """Package or script folder → the program it belongs to (see :meth:`program_of`)."""
        parent: dict[str, str] = {}

        def find(item: str) -> str:
            while parent.setdefault(item, item) != item:
                parent[item] = parent[parent[item]]
                item = parent[item]
            return item

        for module in self.candidates:
            own = find(self._unit(module.path))
            for _, binding in module.facts.imports:
                name, _, level = binding.payload
                target = self.find(name, module, level)
                if target is not None and self._is_certain(name, module, level):
                    parent[find(self._unit(target))] = own = find(own)
        return {unit: find(unit) for unit in list(parent)}

    def _unit(self, path: str) -> str:
        """The topmost package around a file; its folder for a plain script."""
        folder = path if path in self._folders else os.path.dirname(path)
        unit = folder
        while os.path.join(folder, "__init__.py") in self.files:
            unit = folder
            folder = os.path.dirname(folder)
        return unit

    def home_of(self, module: Module) -> str:
        """The folder that a file's package lies in, or that of a plain script."""
        unit = self._unit(module.path)
        return os.path.dirname(unit) if self._is_package(unit) else unit

    def program_of(self, module: Module) -> str:
        """Which of the tree's programs a file belongs to.

        Packages and script folders that import one another are one program; a repository may
        hold several (examples, recipes, projects) that share nothing.
        """
        known = self._program_by_path.get(module.path)
        if known is None:
            known = self._programs.get(self._unit(module.path), "")
            self._program_by_path[module.path] = known
        return known

    def same_program(self, one: Scope, other: Scope) -> bool:
        """Whether two scopes may be part of one program: else neither has a say about the other."""
        programs = {self.program_of(self.module_of(scope)) for scope in (one, other)}
        return len(programs) == 1 or "" in programs

    def modules_in(self, program: str) -> list[Module]:
        """The candidate files of a program."""
        return self._modules_by_program.get(program, [])

    def modules_near(self, scope: Scope) -> list[Module]:
        """The candidate files of the program that ``scope`` belongs to, as for calls."""
        program = self.program_of(self.module_of(scope))
        return self.modules_in(program) if program else self.candidates

    @cached_property
    def _modules_by_program(self) -> dict[str, list[Module]]:
        sorted_in: dict[str, list[Module]] = {}
        for module in self.candidates:
            sorted_in.setdefault(self.program_of(module), []).append(module)
        return sorted_in

    @cached_property
    def _imports(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = {}
        for module in self.candidates:
            found = names.setdefault(self.program_of(module), set())
            for _, binding in module.facts.imports:
                if not binding.payload[2]:
                    found.add(binding.payload[0].split(".")[0])
        return names

    def imports_of(self, module: Module) -> frozenset[str]:
        """Top-level names that the program of ``module`` imports."""
        return frozenset(self._imports.get(self.program_of(module), ()))


def _aliases_in(modules: list[Module]) -> dict[str, set[str]]:
    """Name of a function or class → names that it is given to in the files.

    Given as it is, as a ``partial``, or as one of several in a display or choice.
    """
    # By a function's name and an argument's position: what the parameter may be called.
    functions: dict[str, dict[int, set[str]]] = {}
    for module in modules:
        for function in module.facts.functions:
            taken = functions.setdefault(function.name, {})
            bound = function.cls is not None and not function.is_static
            for position, param in enumerate(function.params[bound:]):
                taken.setdefault(position, set()).add(param.name)
    aliases: dict[str, set[str]] = {}

    def note(value: Expr | None, name: str) -> None:
        # Mostly a plain name, or none at all.
        for meant in (value.id,) if isinstance(value, Name) else names_meant(value):
            if meant != name and (meant in functions or meant.lstrip("_")[:1].isupper()):
                aliases.setdefault(meant, set()).add(name)

    for module in modules:
        for scope in module.facts.scopes:
            for name, bindings in scope.bindings.items():
                for binding in bindings:
                    if binding.how == "assign" and not binding.path:
                        note(binding.value, name)
            for store in scope.stores:
                if isinstance(store.target, Attr) and not store.path:
                    note(store.value, store.target.name)
        for call in module.facts.all_calls:
            takers = functions.get(last_name(call.func) or "") if call.args else None
            for index, arg in enumerate(call.args):
                if arg.keyword is not None:
                    note(arg.value, arg.keyword)
                elif takers is not None and isinstance(arg.value, (Name, Attr, Call)):
                    for taker in takers.get(index, ()):
                        note(arg.value, taker)
    return aliases


def syntax_error(display: str, read: Callable[[], bytes]) -> FileError | None:
    """What keeps a file from being parsed, which is thrown away again."""
    try:
        source = SourceFile(display, read())
        check_syntax(source.text)
    except SourceError as error:
        return error.error
    except FactsError as error:
        return source.error(error.reason, error.row)
    return None


def names_meant(value: Expr | None) -> Iterator[str]:
    """The names of the functions or classes that an expression may be, or be a ``partial`` of."""
    if isinstance(value, (Name, Attr)):
        yield last_name(value) or ""
    elif isinstance(value, Index):
        yield from names_meant(value.value)
    elif isinstance(value, Choice):
        for option in value.options:
            yield from names_meant(option)
    elif isinstance(value, Map):
        for _, item in value.items:
            yield from names_meant(item)
    elif isinstance(value, Call) and last_name(value.func) == "partial" and value.positional:
        yield from names_meant(value.positional[0])
    elif isinstance(value, Call) and last_name(value.func) == "dict":
        for arg in value.args:
            yield from names_meant(arg.value)
