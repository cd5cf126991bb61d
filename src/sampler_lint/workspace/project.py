"""The tree as Python sees it: modules by dotted name, found and parsed when first asked for.

Files that say a sampler word are parsed up front; any other file only when an import leads to
it. Nothing is imported or run, and nothing outside the tree is read.
"""

from __future__ import annotations

import functools
import operator
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar

from sampler_lint import findings
from sampler_lint.cache import Signature, is_racy, signature
from sampler_lint.findings import FileError
from sampler_lint.limits import LARGE_TREE, MOST_ALIASES
from sampler_lint.roots import leads_outside
from sampler_lint.source import (
    NOTEBOOK,
    SourceError,
    SourceFile,
    is_candidate,
    read_bytes,
    says_rank_or_data,
    setting_names,
)
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.lower import extract
from sampler_lint.syntax.navigation import asked_for, imported_by_call, is_main_guard, self_class
from sampler_lint.syntax.nodes import (
    Call,
    Class,
    Function,
    If,
    Imported,
    ModuleFacts,
    Name,
    Node,
    Scope,
    Store,
    last_name,
)
from sampler_lint.syntax.parse import FactsError, parse
from sampler_lint.syntax.set_by_name import stores_by_name
from sampler_lint.timings import Watch, counted
from sampler_lint.workspace.aliases import aliases_in, may_be_class, names_meant
from sampler_lint.workspace.first_look import Look, first_looks, kinds
from sampler_lint.workspace.import_paths import Importer, ImportPaths, Place
from sampler_lint.workspace.import_scan import imports_in
from sampler_lint.workspace.partition import Partition
from sampler_lint.workspace.readable import syntax_error
from sampler_lint.workspace.relevance import Mattering, is_of_tests, that_matter

PlacedT = TypeVar("PlacedT", Call, Store)

#: Files with their facts, which are never changed, by absolute path.
Parsed: TypeAlias = "Mapping[str, tuple[SourceFile, ModuleFacts]]"


class Before(NamedTuple):
    """What a project found out that holds for the next one of the same tree."""

    parsed: Parsed = MappingProxyType({})
    looks: Mapping[str, tuple[Signature, Look]] = MappingProxyType({})
    """What the bytes of files on disk tell, with the signatures that these had."""
    imports: Mapping[str, list[Imported] | None] = MappingProxyType({})
    """What these files import, as far as it was told from their text."""
    mattering: Mattering | None = None
    """Which files matter, where that was asked."""
    import_paths: ImportPaths | None = None
    """What imports mean, which hangs on the names of the files only."""

    def with_file(self, path: str, source: SourceFile, facts: ModuleFacts) -> Before:
        """The same, with a file that was read again."""
        return self._replace(parsed={**self.parsed, path: (source, facts)})


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
        self.name = project.imports.dotted_name(path)
        self.in_package = "." in self.name

    def is_library(self, scope: Scope) -> bool:
        """Whether code outside the tree may call a scope of this file.

        So it is with the functions of a package, unless they are in another function or in a
        private class.
        """
        return self.in_package and not any(
            (isinstance(each, Function) and isinstance(each.outer, Function))
            or (isinstance(each, Class) and each.name.startswith("_"))
            for each in scope.outward()
        )

    @cached_property
    def is_script(self) -> bool:
        """Whether the file is made to be started: it has a main guard, or prints on its own."""
        return (
            any(isinstance(stmt, If) and is_main_guard(stmt) for stmt in self.facts.body)
            or "print" in self.facts.called
        )

    @cached_property
    def is_test(self) -> bool:
        """Whether the file holds tests."""
        return is_of_tests(self.display)

    @cached_property
    def is_suite(self) -> bool:
        """Whether it holds tests that a runner finds; a script may be called ``test_net.py``."""
        return self.is_test and any(
            each.name.startswith(("test_", "Test")) or "fixture" in map(last_name, each.decorators)
            for each in self.facts.scopes
            if isinstance(each, (Function, Class))
        )

    def says(self, word: str) -> bool:
        """Whether a word is somewhere in the file's text."""
        return self.source.says(word)

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


class Project:
    """Every Python file of one tree.

    ``files`` maps absolute paths to the paths shown to the user. ``overlay`` (by absolute path)
    replaces what is on disk. ``jobs`` is how many processes may read, ``watch`` is told how far
    reading is. What ``before`` tells is taken where a file still holds the same. With ``about``
    (absolute paths), files are left out that no import, of whatever file, connects with one of
    these. ``links`` are other paths of files, which imports may mean.
    """

    def __init__(
        self,
        root: str,
        files: Mapping[str, str],
        overlay: Mapping[str, bytes] | None = None,
        digest: Callable[[bytes], str] | None = None,
        jobs: int = 1,
        watch: Watch | None = None,
        before: Before | None = None,
        about: Collection[str] | None = None,
        links: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self._about = about
        self.is_whole = True
        """Whether no program is left out."""
        self._keeps = before is not None
        self._before = before or Before()
        self._looks: dict[str, tuple[Signature, Look]] = {}
        self._mattering: Mattering | None = None
        self.files = dict(files)
        self.imports = ImportPaths(root, self.files, links)
        if (known := self._before.import_paths) and self.imports.is_as(known):
            self.imports = known
        else:
            self._before = self._before._replace(mattering=None)
        self.overlay = overlay or {}
        self.errors: dict[str, FileError] = {}
        self._modules: dict[str, Module | None] = {}
        self._by_facts: dict[int, Module] = {}
        self.candidates: list[Module] = []
        self._to_us: set[str] = set()
        self.seeding: set[str] = set()
        """The files without a sampler word that seed, split, draw or start a training."""
        self.seconds: dict[str, float] = {}
        """How long it took to read each parsed file."""
        self.looked_into: set[str] = set()
        """The files whose bytes somebody asked for, other than for the sampler words."""
        self.consulted: dict[str, bytes | None] = {}
        """Files read and folders listed besides the Python files, and what they held."""
        self.digests: dict[str, str] = {}
        """What each file held when it was first read, if ``digest`` was given."""
        self._told_imports: dict[str, list[Imported] | None] = {}
        self._telling: dict[str, bool] = {}
        self._looked_up: set[str] = set()
        self._program_by_path: dict[str, str] = {}
        self._calls_by_program: dict[str, dict[str, list[Call]]] = {}
        self._stores_by_program: dict[str, dict[str, list[Store]]] = {}
        self._outer_by_program: dict[str, dict[str, list[Store]]] = {}
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

    def imports_told(self, path: str, data: bytes | None = None) -> list[Imported] | None:
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
        """The names in a folder that files with settings, needs and commands may have, sorted.

        Also those of the folders in it, with a slash.

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
        started = time.time_ns()
        looks = self._looks_again(digest, jobs)
        for path, look, data in counted("reading", looks, len(self.files), watch):
            size += look.size
            if look.digest is not None:
                self.digests[path] = look.digest
            if self._keeps and path not in self._looks and path not in self.overlay:
                self._note_look(path, look, started)
            if look.is_candidate:
                spoken[path] = data
            else:
                self._set_aside(path, look.is_seeding, look.speaks_to_us)
        if self._about is not None:
            apart = spoken.keys() - self._connected_with(self._about, spoken)
            self.is_whole = not apart
            for path in apart:
                self._set_aside(path, *kinds(spoken.pop(path), is_candidate=True))
        self._size = size
        self.is_narrowed = size > LARGE_TREE
        if self.is_narrowed:
            for path in spoken.keys() - self._that_matter(spoken):
                self._set_aside(path, *kinds(spoken.pop(path), is_candidate=True))
        for path in counted("parsing", sorted(spoken), len(spoken), watch):
            module = self._load(path, spoken[path])
            if module is not None:
                self.candidates.append(module)

    def would_read_alike(self, path: str, data: bytes) -> bool:
        """Whether the first look at all files leads to the same ones if a candidate holds this."""
        module = self._modules[path]
        assert module is not None
        told = self._told_imports.get(path)
        size = self._size + len(data) - len(module.source.data)
        if (
            path in self.looked_into
            or path not in self.overlay
            or not (is_candidate(module.source.data) and is_candidate(data))
            or (size > LARGE_TREE) is not self.is_narrowed
            or (path in self._told_imports and imports_in(data) != told)
        ):
            return False
        known = self._mattering
        return not self.is_narrowed or (
            known is not None and known.still(self.files.keys(), {**known.contents, path: data})
        )

    def hold(self, overlay: Mapping[str, bytes]) -> None:
        """Go on with contents that would read alike."""
        for path, data in overlay.items():
            self._size += len(data) - len(self.overlay.get(path, data))
        if self._mattering is not None:
            contents = {**self._mattering.contents}
            contents.update((path, overlay[path]) for path in contents.keys() & overlay.keys())
            self._mattering = self._mattering._replace(contents=contents)
        self.overlay = overlay

    def _that_matter(self, spoken: Mapping[str, bytes]) -> set[str]:
        """Those of the candidates that have to be parsed."""
        known = self._before.mattering
        if (
            known is None
            or self.files.keys() != self._looks.keys() | self.overlay.keys() & spoken.keys()
            or not known.still(self.files.keys(), spoken)
        ):
            known = that_matter(self.imports, self.imports_told, dict(spoken))
        self._mattering = known if self._keeps else None
        return known.found

    def _looks_again(
        self, digest: Callable[[bytes], str] | None, jobs: int
    ) -> Iterator[tuple[str, Look, bytes]]:
        """A first look at each file; at one that is as it was before, without reading it."""
        unknown = []
        for path in sorted(self.files):
            known = self._before.looks.get(path) if path not in self.overlay else None
            if known is None or (digest and not known[1].digest) or signature(path) != known[0]:
                unknown.append(path)
                continue
            held: bytes | None = b""
            if known[1].is_candidate:
                parsed = self._before.parsed.get(path)
                held = self._try_to_read(path) if parsed is None else parsed[0].data
            if held is None:
                continue
            self._looks[path] = known
            if path in self._before.imports:
                self._told_imports[path] = self._before.imports[path]
            yield path, known[1], held
        yield from first_looks(unknown, self._try_to_read, digest, jobs)

    def _note_look(self, path: str, look: Look, started: int) -> None:
        """Keep a look at a file on disk for the next project, unless it may miss a change."""
        found = signature(path)
        if look.is_readable and found and not is_racy(found, started):
            self._looks[path] = found, look

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
            source, facts = self._before.parsed.get(path, (None, None))
            if source is None or facts is None or (source.path, source.data) != (display, data):
                source = SourceFile(display, data)
                facts = self._parse(source, lists_nodes=path in self.overlay)
            module = Module(self, path, source, facts)
        except SourceError as error:
            self.errors[path] = FileError(display, error.error.reason, error.error.row)
            self._modules[path] = None
            return None
        self._modules[path] = module
        self._by_facts[id(module.facts)] = module
        self.seconds[path] = time.perf_counter() - started
        return module

    def _parse(self, source: SourceFile, *, lists_nodes: bool) -> ModuleFacts:
        try:
            return extract(parse(source.text), lists_nodes=lists_nodes)
        except FactsError as error:
            raise SourceError(source.error(error.reason, error.row)) from error

    def join(self, paths: Iterable[str]) -> bool:
        """Take files without a sampler word for candidates, too; whether there was a new one.

        What was asked of all candidates before is asked anew.
        """
        known = {module.path for module in self.candidates}
        joined = [self.module_at(path) for path in sorted(set(paths) - known)]
        new = [module for module in joined if module is not None]
        if new:
            self._look_at([*self.candidates, *new])
        return bool(new)

    def _connected_with(self, paths: Iterable[str], spoken: Mapping[str, bytes]) -> set[str]:
        """The files that may be of one program with these, whatever is joined to it later."""
        joint = Partition()
        for path in self.files:
            place, own = Place.of(path), self.imports.unit(path)
            for imported in self._imports_of_any(path, spoken):
                for name in {imported.name or imported.whole, imported.whole}:
                    target = self.imports.find(name, place, imported.level)
                    if target is not None:
                        joint.unite(self.imports.unit(target), own)
        near = {joint.find(self.imports.unit(path)) for path in paths}
        return {path for path in self.files if joint.find(self.imports.unit(path)) in near}

    def _imports_of_any(self, path: str, spoken: Mapping[str, bytes]) -> Iterable[Imported]:
        """What a file imports; it is parsed if it is a candidate whose text does not tell."""
        told = self.imports_told(path, spoken.get(path)) if not path.endswith(NOTEBOOK) else None
        if told is not None or path not in spoken:
            return told or ()
        module = self._load(path, spoken[path])
        return [imported for _, imported in module.facts.imports] if module is not None else ()

    def narrow(self) -> bool:
        """Leave out programs that no file asked ``about`` belongs to; whether there were some.

        Nothing that is said of one program rests on another.
        """
        if self._about is None:
            return False
        units = {self.imports.unit(path) for path in self._about}
        programs = {program for unit in units if (program := self._programs.get(unit))}
        kept = [module for module in self.candidates if self.program_of(module) in programs]
        is_less = len(kept) < len(self.candidates)
        if is_less:
            self.is_whole = False
            self._look_at(kept)
        return is_less

    def _look_at(self, candidates: list[Module]) -> None:
        """Take these for the candidates; what was asked of the others before is asked anew."""
        self.candidates = candidates
        for name, value in vars(type(self)).items():
            if isinstance(value, cached_property):
                self.__dict__.pop(name, None)
        for kept in (
            *(self._program_by_path, self._calls_by_program, self._stores_by_program),
            self._outer_by_program,
        ):
            kept.clear()

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

    def kept(self, path: str) -> ModuleFacts | None:
        """What a file said in the project before this one, if it still says so."""
        module = self._modules.get(path)
        if module is not None:
            return module.facts
        return self._before.parsed.get(path, (None, None))[1]

    @property
    def for_the_next(self) -> Before:
        """What the next project of the same files need not find out again."""
        parsed = {module.path: (module.source, module.facts) for module in self.loaded}
        imports = {path: told for path, told in self._told_imports.items() if path in self._looks}
        return Before(parsed, self._looks, imports, self._mattering, self.imports)

    @property
    def loaded(self) -> Iterable[Module]:
        """Every module parsed so far."""
        return [module for module in self._modules.values() if module is not None]

    # -- names

    def module_at(self, path: str) -> Module | None:
        """The module of a file of the tree, parsed now if need be; None for a folder."""
        if path not in self.files:
            return None
        return self._load(path)

    def imported_by(self, path: str) -> set[str]:
        """The files of the tree that a file imports, told from its text where that tells."""
        place = Place.of(path)
        told = self.imports_told(path) or ()
        return {found for imported in told for found in self.files_meant(imported, place)}

    def files_meant(self, imported: Imported, importer: Importer) -> set[str]:
        """The files of the tree that an import may bind a name from."""
        names = {imported.name or imported.whole, imported.whole}
        found = {self.imports.find(each, importer, imported.level) for each in names}
        return {path for path in found if path in self.files}

    def modules_that_say(self, package: str, name: str, scope: Scope) -> list[str]:
        """The files of a package, or of the program of a scope, whose bytes hold a name.

        ``package`` is as the file of the scope would import it; empty for any of the program.
        """
        importer = self.module_of(scope)
        if package:
            folder = self.imports.find(package, importer)
            if folder is None:
                return []
            folder = os.path.dirname(folder) if folder.endswith(".py") else folder
            paths = [path for path in self.files if path.startswith(folder + os.sep)]
        else:
            paths = [module.path for module in self.modules_near(scope)]
        return [path for path in paths if self.says(path, name.encode())]

    def says(self, path: str, word: bytes) -> bool:
        """Whether a word is somewhere in the bytes of a file of the tree."""
        module = self._modules.get(path)
        try:
            if module is None:
                return word in self.bytes_of(path)
            return module.source.tells(operator.contains, word)
        except SourceError:
            return False

    def module_telling(self, path: str) -> Module | None:
        """As :meth:`module_at`, but None for a file that can tell little (:meth:`may_tell`)."""
        return self.module_at(path) if self.may_tell(path) else None

    def may_tell(self, path: str) -> bool:
        """Whether a file of the tree is worth parsing for what an import brings from it.

        In a very big tree most of what files import is models and their settings. What an import
        brings there counts if it may say which rank this is, seed, or be a kind of data.
        """
        if path not in self.files:
            return False
        if not self.is_narrowed or path in self._modules or path in self.seeding:
            return True
        if path not in self._telling:
            try:
                known = path.endswith("__init__.py") or says_rank_or_data(self.bytes_of(path))
            except SourceError:
                known = False
            self._telling[path] = known
        return self._telling[path]

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
            for name, found in module.facts.stores_by_name.items():
                stores.setdefault(name, []).extend(found)
        for name, store in stores_by_name(self.calls_named):
            stores.setdefault(name, []).append(store)
        return stores

    @cached_property
    def _derived(self) -> dict[str, list[Class]]:
        derived: dict[str, list[Class]] = {}
        for module in self.candidates:
            for cls in module.facts.classes:
                for base in cls.bases:
                    bound = module.facts.bindings.get(last_name(base) or "", ())
                    meant = (one.payload for one in bound if isinstance(base, Name))
                    names = [one.attribute for one in meant if isinstance(one, Imported)]
                    for name in {last_name(base), *names} - {None}:
                        derived.setdefault(str(name), []).append(cls)
        return derived

    def calls_named(self, name: str) -> list[Call]:
        """Every call in the candidate files whose function is spelled ``name`` or ``….name``."""
        return self._calls.get(name, [])

    @cached_property
    def _aliases(self) -> dict[str, dict[str, set[str]]]:
        """By program, name of a function or class → names that it is given to."""
        self.look_up(each.name for module in self.candidates for each in module.facts.functions)
        return {
            program: aliases_in([module.facts for module in modules])
            for program, modules in self._modules_by_program.items()
        }

    def look_up(self, words: Iterable[str]) -> None:
        """Somebody looks for names spelled so, in lists of all (:mod:`..syntax.unread`)."""
        self._looked_up.update(words)

    def may_matter(self, word: str) -> bool:
        """Whether it says something to somebody that a name is spelled so, which nobody read."""
        return word in self._looked_up or may_be_class(word)

    def aliased(self, program: str, is_wanted: Callable[[str], bool]) -> set[str]:
        """The aliases of wanted functions and classes of a program, also of tables of them."""
        known = self._aliases.get(program, {})
        first = {alias for name in known if is_wanted(name) for alias in known[name]}
        return {*closure(first, lambda name: known.get(name, ()))}

    def aliases(self, name: str, scope: Scope) -> list[str]:
        """Names in the program of ``scope`` that a function called ``name`` may be called by, too.

        As for calls, a file that belongs to no program may be any program's helper.
        """
        program = self.program_of(self.module_of(scope))
        among = [self._aliases.get(program, {})] if program else self._aliases.values()

        def of(meant: str) -> list[str]:
            return sorted({alias for each in among for alias in each.get(meant, ())})

        return list(islice(closure([name], of), 1, MOST_ALIASES))

    def calls_near(self, name: str, scope: Scope) -> list[Call]:
        """:meth:`calls_named`, in the program that ``scope`` belongs to.

        A file that says no sampler word belongs to no program: it may be anybody's helper. It
        calls its own functions all the same.
        """
        module = self.module_of(scope)
        program = self.program_of(module)
        found = self.calls_in(program, name) if program else self.calls_named(name)
        if module in self._looked_at:
            return found
        return [*found, *(call for call in module.facts.all_calls if last_name(call.func) == name)]

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
        if attribute not in self._outer_by_program:
            stores = self.stores_of(attribute)
            outer = [store for store in stores if self_class(store.target.value) is None]
            self._outer_by_program[attribute] = {**self._by_program(outer), "": outer}
        program = self.program_of(self.module_of(scope))
        return self._outer_by_program[attribute].get(program, [])

    def calls_in(self, program: str, name: str) -> list[Call]:
        """:meth:`calls_named`, in one program, its tests aside if it has anything else."""
        if name not in self._calls_by_program:
            self._calls_by_program[name] = self._by_program(self.calls_named(name))
        return self._calls_by_program[name].get(program, [])

    def _by_program(self, items: Iterable[PlacedT]) -> dict[str, list[PlacedT]]:
        sorted_in: dict[str, list[PlacedT]] = {}
        for item in items:
            module = self.module_of(item.scope)
            program = self.program_of(module)
            if not module.is_suite or program not in self._untested:
                sorted_in.setdefault(program, []).append(item)
        return sorted_in

    @cached_property
    def _untested(self) -> frozenset[str]:
        """The programs with other files than tests."""
        return frozenset(self.program_of(each) for each in self.candidates if not each.is_suite)

    def stores_of(self, attribute: str) -> list[Store]:
        """Every assignment to ``….attribute`` in the candidate files."""
        return self._stores.get(attribute, [])

    def own_stores(self, attribute: str, cls: Class) -> list[Store]:
        """The assignments to ``self.attribute`` in the methods of ``cls``, in whichever file."""
        stores = cls.module.stores_by_name.get(attribute, ())
        return [store for store in stores if self_class(store.target.value) is cls]

    @cached_property
    def _looked_at(self) -> frozenset[Module]:
        return frozenset(self.candidates)

    def classes_deriving(self, base: str) -> list[Class]:
        """Every class in the candidate files with a base spelled ``base``, or imported as that."""
        return self._derived.get(base, [])

    @cached_property
    def _programs(self) -> dict[str, str]:
        """Package or script folder → the program it belongs to (see :meth:`program_of`)."""
        joint = Partition()
        for module in self.candidates:
            own = joint.find(self.imports.unit(module.path))
            for name, level in asked_for(module.facts):
                target = self.imports.find(name, module, level)
                if target is not None and self.imports.is_certain(name, module, level):
                    joint.unite(self.imports.unit(target), own)
        for call in self.calls_named("import_module"):
            module, name = self.module_of(call.scope), imported_by_call(call)
            target = self.imports.find(name, module) if name else None
            if target is not None:
                joint.unite(self.imports.unit(target), joint.find(self.imports.unit(module.path)))
        return {unit: joint.find(unit) for unit in list(joint)}

    def home_of(self, module: Module) -> str:
        """The folder that a file's package lies in, or that of a plain script."""
        unit = self.imports.unit(module.path)
        return os.path.dirname(unit) if self.imports.is_package(unit) else unit

    def program_of(self, module: Module) -> str:
        """Which of the tree's programs a file belongs to.

        Packages and script folders that import one another are one program; a repository may
        hold several (examples, recipes, projects) that share nothing.
        """
        known = self._program_by_path.get(module.path)
        if known is None:
            known = self._programs.get(self.imports.unit(module.path), "")
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
            for _, imported in module.facts.imports:
                if not imported.level:
                    found.add(imported.name.split(".")[0])
        return names

    def imports_of(self, module: Module) -> frozenset[str]:
        """Top-level names that the program of ``module`` imports."""
        return frozenset(self._imports.get(self.program_of(module), ()))
