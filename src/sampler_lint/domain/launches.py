"""Which parts of a program may start which others, by the names that they mention.

A name stands for what it is imported from; calls are not followed: what mentions a function may
run it, or hand it to what does. Parts are the functions, classes and variables of a file's top
level, and the rest of its code.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import ProgramFiles, imported_files, program_files
from sampler_lint.limits import MOST_FOLDERS
from sampler_lint.remembered import remembered
from sampler_lint.source import TELLING, SourceError
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import (
    asked_for,
    blocks,
    children,
    expressions,
    is_main_guard,
    nodes_in,
    statements,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Declare,
    Define,
    Expr,
    Function,
    If,
    Import,
    Imported,
    Index,
    ModuleFacts,
    Name,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.syntax.unread import word_of
from sampler_lint.workspace.project import Module, Project

#: The part that runs when a file is started, and the one that runs when it is imported, too.
_STARTED, _LOADED = "if __name__", ""
#: A program in a command, by a relative path.
_PROGRAM = re.compile(rb"(?<![\w./-])\w[\w./-]*\.(?:py|sh)\b")
_PACKAGING = re.compile(rb"^\[(?:project|build-system|tool\.poetry)\]", re.MULTILINE)
#: Folders beside the packages that they are records of, which have been installed.
_RECORDS = (f".dist-info{os.sep}", f".egg-info{os.sep}")

Placed: TypeAlias = "Name | Attr | Call | Scope"


class Part(NamedTuple):
    """A part of a file."""

    path: str
    name: str
    """The top-level name; see above for the code that has none."""


class Launches:
    """The parts of the tree's files and who mentions whom."""

    def __init__(self, model: Model) -> None:
        self._files: ProgramFiles = program_files(model)
        self._project = model.project
        self._modules = model.modules
        self._imports: dict[str, list[tuple[str, str | None, str]]] = {}
        self._known: dict[Part, frozenset[Part]] = {}
        self._looking_up: dict[str, bool] = {}
        self._idle: dict[Part, bool] = {}
        self._unspoken: dict[tuple[Part, bool], bool] = {}
        self._among_programs: dict[str, bool] = {}
        self._libraries: dict[str, bool] = {}

    def together(self, one: Placed, other: Placed) -> bool | None:
        """Whether something may start both places; None if it is not seen what starts one."""
        first, second = (self._starters(self._part(place)) for place in (one, other))
        if not first.isdisjoint(second) or self._loads(first, second) or self._loads(second, first):
            return True
        seen = [self._is_all_seen(starters) for starters in (first, second)]
        if all(seen):
            return False
        # What starts the one has to lead to the file of the other, whoever starts that there.
        if (seen[0] and not self._lead_to(first, self._part(other).path)) or (
            seen[1] and not self._lead_to(second, self._part(one).path)
        ):
            return False
        return None

    def _lead_to(self, starters: frozenset[Part], path: str) -> bool:
        """Whether a file that starts one of them leads to a file by its imports."""
        leading = self._files.leading_to(path)
        return any(each.path in leading for each in starters if self._is_started({each}))

    def _is_all_seen(self, starters: frozenset[Part]) -> bool:
        """Whether it is seen what starts them; what a decorator registers is looked up by name."""
        return self._is_started(starters) and not any(
            self._is_registered(part) and not any(self._users(part)) for part in starters
        )

    def _is_registered(self, part: Part) -> bool:
        module = self._project.module_at(part.path)
        define = _definition(module, part.name) if module is not None else None
        return define is not None and bool(define.decorators)

    def is_dead(self, scope: Scope) -> bool:
        """Whether an application holds the scope in a part that nothing uses.

        What only such parts use is dead with them. In a package that can be installed it may be
        there for others, and a file of settings may name it.
        """
        module = self._project.module_of(scope)
        return not is_installable(self._project, module) and self.is_idle(scope)

    def is_idle_at(self, module: Module, row: int) -> bool:
        """Whether what stands in a row of a file is in a part that is idle."""
        return any(
            self.is_idle(define.what)
            for define in _definitions(module.facts).values()
            if define.row <= row <= define.end_row
        )

    def is_idle(self, scope: Scope) -> bool:
        """Whether an application holds the scope in a part that it never uses, whoever else may."""
        part = self._part(scope)
        if part not in self._idle:
            self._idle[part] = self._is_idle(part, frozenset())
        return self._idle[part]

    def _is_idle(self, part: Part, above: frozenset[Part]) -> bool:
        if part in above:
            return True  # They use each other, and nothing else uses them.
        module = self._project.module_at(part.path)
        define = _definition(module, part.name) if module is not None else None
        if module is None or define is None or define.decorators or module.is_suite:
            return False  # pytest finds what tests hold
        users = list(self._users(part))
        leading = self._files.leading_to(part.path)
        is_left_behind = leading == {part.path} and self._is_left_behind(module, part)
        return (
            (is_left_behind or self._is_of_started(part.path, leading))
            and all(self._is_idle(user, above | {part}) for user in users)
            and not self._is_offered(part, module, users)
        )

    def is_left_over(self, cls: Class) -> bool:
        """Whether no program in sight ever builds a class: it is dead, or nothing speaks of it.

        That is, there are programs beside it, and no file mentions or imports it.
        """
        return self.is_dead(cls) or self.is_named_by_nobody(cls, looked_up=True)

    def is_named_by_nobody(self, cls: Class, *, looked_up: bool = False) -> bool:
        """Whether no file of the tree says its name; one may look names up from outside.

        ``looked_up``: nor may one that leads to it look up any name.
        """
        about = self._part(cls), looked_up
        known = self._unspoken.get(about)
        if known is None:
            known = self._unspoken[about] = self._is_unspoken(*about)
        return known

    def _is_unspoken(self, part: Part, looked_up: bool) -> bool:
        module = self._project.module_at(part.path)
        define = _definition(module, part.name) if module is not None else None
        return (
            module is not None
            and define is not None
            and not define.decorators
            and self._is_among_programs(module)
            and next(self._users(part), None) is None
            and len(self._called(part, self._files.leading_to(part.path))) == 1
            and not self._is_offered(part, module, (), looked_up=looked_up)
        )

    def _is_offered(
        self, part: Part, module: Module, users: Sequence[Part], *, looked_up: bool = True
    ) -> bool:
        """Whether its name may find it: in a table, by a look-up, in settings or elsewhere."""
        leading = self._files.leading_to(part.path)
        if part.name in _literals(module.facts) and leading != {part.path}:
            return True  # A name in ``__all__`` or a table.
        using = {path for path, _ in users}
        others = (path for path in self._project.files if path not in using)
        return (
            (looked_up and any(self._looks_up_names(path) for path in leading))
            or any(self._evaluates(path) for path in self._called(part, leading))
            or any(self._names(path, part) for path in others)
            or self._is_configured(part)
        )

    def _is_of_started(self, path: str, leading: set[str]) -> bool:
        """Whether something starts what leads to a file, or the file itself that none imports."""
        others = leading - {path}
        if not others:
            module = self._files.module(path)
            return module is not None and _STARTED in _mentioned(module)
        return any(self._is_started(self._parts(each)) for each in self._may_start(others))

    def _is_left_behind(self, module: Module, part: Part) -> bool:
        """Whether no file says the name of what none imports, and nothing starts its own."""
        word = part.name.encode()
        return (
            not module.is_script
            and self._is_among_programs(module)
            and not any(
                path != part.path
                and self._project.says(path, word)
                and not self._defines(path, part)
                for path in self._project.files
            )
        )

    def _is_among_programs(self, module: Module) -> bool:
        """Whether programs that load data begin where a file's imports do, or in a folder above."""
        known = self._among_programs.get(module.folder)
        if known is None:
            root = os.path.join(_import_root(module), "")
            known = self._among_programs[module.folder] = any(
                (each.path.startswith(root) or root.startswith(os.path.join(each.folder, "")))
                and self._files.asks_whether_started(each.path)
                for each in self._modules
            )
        return known

    def _defines(self, path: str, part: Part) -> bool:
        """Whether a file has something of its own of that name."""
        module = self._project.module_at(path)
        return module is not None and _definition(module, part.name) is not None

    def _may_start(self, paths: Iterable[str]) -> list[str]:
        """Those of the files that something may start: likely ones first."""
        files = self._files
        # What is short is told soon.
        found = sorted(paths, key=lambda path: (files.size(path), path))
        return [
            *(path for path in found if not files.is_led_to(path)),
            *(path for path in found if files.is_led_to(path) and files.asks_whether_started(path)),
        ]

    def _looks_up_names(self, path: str) -> bool:
        known = self._looking_up.get(path)
        if known is None:
            module = self._files.module(path)
            known = module is not None and _looks_up_names(self._project, module)
            self._looking_up[path] = known
        return known

    def _evaluates(self, path: str) -> bool:
        """Whether a file makes something of a text that may name whatever it has imported."""
        module = self._files.module(path)
        return module is not None and any(
            isinstance(call.func, Name)
            and call.func.id == "eval"
            and not all(isinstance(arg.value, Const) for arg in call.args)
            for call in module.facts.all_calls
        )

    def _is_configured(self, part: Part) -> bool:
        """Whether a file of settings says the name: hydra and others build what that names."""
        word = re.compile(rb"\b%b\b" % part.name.encode())
        return self._settings is None or any(map(word.search, self._settings))

    @functools.cached_property
    def _settings(self) -> list[bytes] | None:
        """What the tree's files of settings hold; None where there are too many folders."""
        told = self._telling((".yaml", ".yml", ".toml"))
        return None if told is None else [*told.values()]

    def _telling(self, endings: tuple[str, ...]) -> dict[str, bytes] | None:
        """What the tree's files of some kinds hold; None where there are too many folders."""
        found: dict[str, bytes] = {}
        folders = [self._project.root]
        for folder in folders:
            if len(folders) > MOST_FOLDERS:
                return None
            for name in self._project.names_in(folder):
                path = os.path.join(folder, name)
                if name.endswith(os.sep):
                    folders.append(path.rstrip(os.sep))
                elif name.endswith(endings):
                    try:
                        found[path] = self._project.bytes_of(path)
                    except SourceError:
                        continue
        return found

    def is_beside_library(self, module: Module) -> bool:
        """Whether it is for another project in the tree, of which the rest imports a package alone.

        As the examples of a vendored library are, which has its own ``setup.py``: nothing outside
        of that leads to them, and no script or text there says to run anything in it.
        """
        home = self._inner_home(module.folder)
        return (
            home is not None
            and self._is_library(home)
            and all(path.startswith(home) for path in self._files.leading_to(module.path))
        )

    def _is_library(self, home: str) -> bool:
        """Whether a file outside of a folder imports one in it, and nothing is to be run there."""
        if home not in self._libraries:
            self._libraries[home] = any(
                self._files.is_led_to(path, inside=home)
                for path in self._project.files
                if path.startswith(home)
            ) and not self._is_told_to_run(home)
        return self._libraries[home]

    def _inner_home(self, folder: str) -> str | None:
        """The nearest folder below the tree's own that says how what it holds is installed."""
        while folder not in {self._project.root, os.path.dirname(folder)}:
            if _is_packaged(self._project, folder):
                return os.path.join(folder, "")
            folder = os.path.dirname(folder)
        return None

    def _is_told_to_run(self, home: str) -> bool:
        """Whether a text outside of a folder names a program in it, as it is found from there.

        But for the one that installs it. Nobody can tell where there are too many folders.
        """
        told = self._telling(TELLING)
        if told is None:
            return True
        said = {
            (os.path.dirname(path), word.decode())
            for path, text in told.items()
            if not path.startswith(home)
            for word in _PROGRAM.findall(text)
        }
        return any(
            self._found(word, folder, self._project.root, home).startswith(home)
            for folder, word in said
            if os.path.basename(word) != "setup.py"
        )

    def _found(self, word: str, *folders: str) -> str:
        """The first file there is that a relative path may mean, seen from some folders."""
        places = (os.path.normpath(os.path.join(folder, word)) for folder in folders)
        return next(
            (
                place
                for place in places
                if os.path.basename(place) in self._project.names_in(os.path.dirname(place))
            ),
            "",
        )

    def _parts(self, path: str) -> frozenset[Part]:
        module = self._files.module(path)
        names = _mentioned(module) if module is not None else ()
        return frozenset(Part(path, name) for name in names)

    def _names(self, path: str, part: Part) -> bool:
        """Whether another file, a test or one without a sampler word too, may name the part."""
        word = part.name.encode()
        if path == part.path or not self._project.says(path, word):
            return False
        module = self._project.module_at(path)
        if module is None or _definition(module, part.name) is not None:
            return False
        # An import alone uses nothing; a list of names may be what others are offered.
        if part.name in _literals(module.facts) and self._may_reach(module, part):
            return True
        imported = {
            part.name if local == "*" else local: self._gives(target, part)
            for target, attribute, local in self._imported(module)
            if attribute in {part.name, "*"}
        }
        spelled = {name for name, gives in imported.items() if gives}
        if not spelled and (imported or _is_imported(module, part.name)):
            return False  # Something else of that name.
        if not spelled and not self._may_reach(module, part):
            return False
        spelled = {*(spelled or {part.name}), f".{part.name}"}
        self._project.look_up(spelled)
        return not spelled.isdisjoint(_mentioning(module))

    def _may_reach(self, module: Module, part: Part) -> bool:
        """Whether the imports of a file lead to the part's, or may: by a name not found, or made.

        Else what it says of that name is another's: ``model.train()``.
        """
        leading = {part.path, *self._files.leading_to(part.path)}
        if module.path in leading or self._project.says(module.path, b"import_module"):
            return True
        if any(path in leading for path, _ in imported_files(self._files.model, module)):
            return True
        stem = os.path.splitext(os.path.basename(part.path))[0]
        return any(
            (name or "").rpartition(".")[2] == stem
            and self._project.imports.find(name or "", module, level) is None
            for name, level in asked_for(module.facts)
        )

    def _gives(self, path: str, part: Part) -> bool:
        """Whether the name is that of the part, imported from the file ``path``."""
        module = self._project.module_at(path) if path != part.path else None
        return module is None or _definition(module, part.name) is None

    def _part(self, place: Placed) -> Part:
        scope = place if isinstance(place, Scope) else place.scope
        path = self._project.module_of(scope).path
        if isinstance(place, Scope) or scope.outer is not None or place.stmt is None:
            return Part(path, _part_of(scope))
        stmt = place.stmt
        while stmt.parent is not None:
            stmt = stmt.parent
        return Part(path, _part_at_top(stmt)[-1])

    def _loads(self, loaded: frozenset[Part], others: frozenset[Part]) -> bool:
        """Whether a file of ``others`` runs one of ``loaded`` by importing it."""
        paths = {path for path, _ in others}
        return any(
            name == _LOADED and not paths.isdisjoint(self._files.leading_to(path))
            for path, name in loaded
        )

    def _is_started(self, parts: Iterable[Part]) -> bool:
        return any(
            name == _STARTED or (name == _LOADED and self._files.leading_to(path) == {path})
            for path, name in parts
        )

    def _starters(self, part: Part) -> frozenset[Part]:
        """The part, what mentions it, and so on upwards."""
        known = self._known.get(part)
        if known is None:
            known = self._known[part] = frozenset(closure([part], self._users))
        return known

    def _users(self, part: Part) -> Iterator[Part]:
        if part.name in {_STARTED, _LOADED}:
            return
        leading = self._files.leading_to(part.path)
        called = self._called(part, leading)
        names = {name for local in called.values() for name in local}
        for path in leading:
            spelled = called.get(path, set())
            if path != part.path:
                spelled = spelled | {f".{name}" for name in names if self._files.says(path, name)}
            module = self._files.module(path) if spelled else None
            if module is None:
                continue
            self._project.look_up(spelled)
            mentioning = _mentioning(module)
            for name in dict.fromkeys(n for w in sorted(spelled) for n in mentioning.get(w, ())):
                if (user := Part(path, name)) != part:
                    yield user

    def _called(self, part: Part, leading: Iterable[str]) -> dict[str, set[str]]:
        """What a part is called in which file: an import may rename it, and another that again."""
        called = {part.path: {part.name}}
        todo, names = [part.name], {part.name}
        for name in todo:
            for path in leading:
                module = self._files.module(path, name) if path != part.path else None
                for target, attribute, local in self._imported(module) if module else ():
                    if attribute in {name, "*"} and target in leading:
                        here = name if local == "*" else local
                        called.setdefault(path, set()).add(here)
                        if here not in names:
                            names.add(here)
                            todo.append(here)
        return called

    def _imported(self, module: Module) -> list[tuple[str, str | None, str]]:
        """What a file imports from where: the file, the name there, the name here."""
        known = self._imports.get(module.path)
        if known is None:
            known = self._imports[module.path] = []
            found = self._project.imports.find
            for name, level in module.facts.star_imports:
                target = found(name or "", module, level)
                if target is not None:
                    known.append((target, "*", "*"))
            for local, (name, attribute, level) in module.facts.imports:
                target = found(name or "", module, level)
                if target is not None and attribute is not None:
                    known.append((target, attribute, local))
        return known


def _mentioned(module: Module) -> dict[str, set[str]]:
    """By part, the names in it; an attribute with a dot."""
    known: dict[str, set[str]] | None = module.facts.memo.get(_mentioned)
    if known is None:
        known = module.facts.memo[_mentioned] = {}
        for name, expr in _expressions(module):
            words = known.setdefault(name, set())
            stack = [expr]  # quicker than a generator, and this is most of a file
            while stack:
                node = stack.pop()
                if isinstance(node, Name):
                    words.add(word_of(node))
                    continue
                if isinstance(node, Attr):
                    words.add(f".{node.name}")
                stack += children(node)
    return known


def _mentioning(module: Module) -> dict[str, list[str]]:
    """By name, the parts that it is in; an attribute with a dot."""
    # Kept with the facts and not by the module: these outlive it in a session.
    known: dict[str, list[str]] | None = module.facts.memo.get(_mentioning)
    if known is None:
        known = module.facts.memo[_mentioning] = {}
        for part, words in _mentioned(module).items():
            for word in words:
                known.setdefault(word, []).append(part)
    return known


@remembered
def launches(model: Model) -> Launches:
    """The parts of the tree's files; found once."""
    return Launches(model)


def _part_of(scope: Scope) -> str:
    """The name of the part that a scope is in."""
    *_, part = (_LOADED, *(each.name for each in scope.outward() if each.outer is not None))
    return part


def _expressions(module: Module) -> Iterator[tuple[str, Expr]]:
    """Every expression of a file, with its part."""
    for scope in module.facts.scopes:
        if scope is module.facts:
            for stmt in scope.body:
                yield from _at_top(stmt)
            continue
        name = _part_of(scope)
        if isinstance(scope, Class):
            for expr in (*scope.bases, *(arg.value for arg in scope.keywords)):
                yield name, expr
        elif isinstance(scope, Function):
            for param in scope.params:
                if param.default is not None:
                    yield name, param.default
        for stmt in statements(scope.body):
            for expr in expressions(stmt):
                yield name, expr


def _at_top(stmt: Stmt) -> Iterator[tuple[str, Expr]]:
    if not isinstance(stmt, (Define, Import)):
        names = _part_at_top(stmt)
        for inner in (stmt, *(inner for block in blocks(stmt) for inner in statements(block))):
            for expr in expressions(inner):
                for name in names:
                    yield name, expr


def _part_at_top(stmt: Stmt) -> list[str]:
    """The parts that a statement of a file's top level belongs to."""
    if isinstance(stmt, If) and is_main_guard(stmt):
        return [_STARTED]
    targets = stmt.targets if isinstance(stmt, Assign) else ()
    if isinstance(stmt, Declare):
        targets = [stmt.target]
    names = [target.id for target in targets if isinstance(target, Name)]
    runs = not names or any(isinstance(node, Call) for node in nodes_in([stmt]))
    return [*names, _LOADED] if runs else names


def _is_imported(module: Module, name: str) -> bool:
    """Whether a file's name comes from an import alone."""
    bindings = module.facts.bindings.get(name, ())
    return bool(bindings) and all(binding.how == "import" for binding in bindings)


def _definition(module: Module, name: str) -> Define | None:
    """The statement of a file's top level that defines the name."""
    return _definitions(module.facts).get(name)


@remembered
def _definitions(facts: ModuleFacts) -> dict[str, Define]:
    found: dict[str, Define] = {}
    for stmt in statements(facts.body):
        if isinstance(stmt, Define):
            found.setdefault(stmt.what.name, stmt)
    return found


@remembered
def _literals(facts: ModuleFacts) -> frozenset[str]:
    """The texts in the statements of a file's top level themselves."""
    nodes = nodes_in(facts.body)
    values = (node.value for node in nodes if isinstance(node, Const))
    return frozenset(value for value in values if isinstance(value, str))


def _looks_up_names(project: Project, module: Module) -> bool:
    """Whether a file may find what is in a module by a name that is made when it runs."""
    for call in module.facts.all_calls:
        name = last_name(call.func)
        if name in {"globals", "import_module", "__subclasses__"}:
            return True
        owner = call.positional[0] if name in {"getattr", "vars"} and call.positional else None
        if isinstance(owner, Index) and last_name(owner.value) == "modules":
            return True  # ``sys.modules[__name__]``
        if isinstance(owner, Name) and any(
            isinstance(binding.payload, Imported)
            and project.imports.find(binding.payload.whole, module, binding.payload.level)
            for scope in (call.scope, module.facts)
            for binding in scope.bindings.get(owner.id, ())
        ):
            return True
    return False


def is_left_over(model: Model, cls: Class) -> bool:
    """Whether no program in sight builds a class, or speaks of it at all."""
    return launches(model).is_left_over(cls)


def _import_root(module: Module) -> str:
    """The folder in which the name that a file is imported by begins."""
    folder = module.folder
    for _ in range(module.name.count(".") + module.is_package):
        folder = os.path.dirname(folder)
    return folder


def is_installable(project: Project, module: Module) -> bool:
    """Whether a file belongs to a package that is made to be installed, or is installed.

    Such a package lies beside what says so, or in one folder beside it: ``src``.
    """
    top, folder = _import_root(module), module.folder
    while True:
        if any(name.endswith(_RECORDS) for name in project.names_in(folder)):
            return True
        if folder in {top, os.path.dirname(top)} and _is_packaged(project, folder):
            return True
        if folder == project.root or folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)


def _is_packaged(project: Project, folder: str) -> bool:
    """Whether a folder says how to install what it holds."""
    for name in ("setup.py", "pyproject.toml"):
        try:
            data = project.bytes_of(os.path.join(folder, name))
        except SourceError:
            continue
        if name == "setup.py" or _PACKAGING.search(data):
            return True
    return False
