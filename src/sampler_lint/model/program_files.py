"""The files of each program that seed or draw, those without a sampler word too."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from sampler_lint.model.facts import If, Name, last_name, walk
from sampler_lint.model.linked import Model
from sampler_lint.model.project import Module

_TEST_PATH = re.compile(r"(?:^|/)(?:tests?/|testing/|test_[^/]*$|conftest\.py$|[^/]*_test\.py$)")


class ProgramFiles:
    """Every file that says a sampler word, and those its program seeds or draws in."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._importers: dict[str, set[str]] = {}
        self._leading: dict[str, set[str]] = {}
        self.files = [(program, m) for program, m in self._find() if not is_test(m)]
        """Each file with its program; a script may start several."""

    def _find(self) -> Iterator[tuple[str, Module]]:
        project = self.model.project
        todo = [(project.program_of(module), module) for module in self.model.modules]
        programs = {module.path: program for program, module in todo}
        while todo:
            program, module = todo.pop(0)
            yield program, module
            for path in self._imports(module):
                if path not in programs:
                    programs[path] = program
                    other = self._module(path)
                    if other is not None:
                        todo.append((program, other))
        # A script that says no sampler word itself, but starts what does.
        for path in project.files:
            if path not in programs:
                script = self._module(path)
                if script is not None and not is_test(script):
                    started = {programs[found] for found in self._imports(script, programs)}
                    for program in sorted(started):
                        yield program, script

    def _imports(self, module: Module, among: Container[str] | None = None) -> list[str]:
        paths = [
            path for path in _imported_paths(self.model, module) if among is None or path in among
        ]
        for path in paths:
            self._importers.setdefault(path, set()).add(module.path)
        return paths

    def _module(self, path: str) -> Module | None:
        """The file, if it is a package's own or seeds or draws something."""
        project = self.model.project
        if path.endswith("__init__.py") or path in project.seeding:
            return project.module_at(path)
        return None

    def of(self, program: str) -> list[Module]:
        """The files of one program."""
        return [module for found, module in self.files if found == program]

    def run_together(self, one: Module, other: Module) -> bool:
        """Whether some file leads to both by its imports, or they are in one library."""
        library = not (is_script(one) or is_script(other))
        if library and "." in one.name and one.name.split(".")[0] == other.name.split(".")[0]:
            return True
        return self.share_importer(one, other)

    def share_importer(self, one: Module, other: Module) -> bool:
        """Whether some file leads to both by its imports."""
        return not self.leading_to(one.path).isdisjoint(self.leading_to(other.path))

    def run_apart(self, one: Module, other: Module) -> bool:
        """Whether scripts lead to each, and nothing to both.

        What no script leads to may be found by its name, from a configuration.
        """
        return not self.run_together(one, other) and all(
            any(
                script is not None and is_script(script)
                for script in map(self.model.project.module_at, self.leading_to(module.path))
            )
            for module in (one, other)
        )

    def leading_to(self, path: str) -> set[str]:
        """The file itself, and those whose imports lead to it."""
        known = self._leading.get(path)
        if known is None:
            known = self._leading[path] = {path}
            todo = [path]
            while todo:
                for importer in self._importers.get(todo.pop(), ()):
                    if importer not in known:
                        known.add(importer)
                        todo.append(importer)
        return known


def program_files(model: Model) -> ProgramFiles:
    """The files of the tree's programs; found once."""
    known: ProgramFiles | None = model.memo.get(program_files)
    if known is None:
        known = model.memo[program_files] = ProgramFiles(model)
    return known


def files_around(model: Model, module: Module) -> list[Module]:
    """The files of the programs that a file belongs to."""
    known = program_files(model)
    programs = {program for program, found in known.files if found is module}
    return [found for program, found in known.files if program in programs] or [module]


def is_script(module: Module) -> bool:
    """Whether the file is made to be started: it has a main guard, or prints on its own."""
    return any(
        isinstance(stmt, If)
        and any(isinstance(node, Name) and node.id == "__name__" for node in walk(stmt.test))
        for stmt in module.facts.body
    ) or any(last_name(call.func) == "print" for call in module.facts.calls)


def is_test(module: Module) -> bool:
    """Whether the file holds tests, where fixed seeds are meant."""
    return _TEST_PATH.search(module.display.replace("\\", "/")) is not None


def is_imported(model: Model, module: Module, name: str) -> bool:
    """Whether some other file, tests aside, imports ``name`` from the file, or the whole file."""
    return any(
        attribute in {None, name}
        for other in model.modules
        if other is not module and not is_test(other)
        for path, attribute in _imports(model, other)
        if path == module.path
    )


def _imported_paths(model: Model, module: Module) -> Iterator[str]:
    """The files of the tree that a file imports."""
    yield from (path for path, _ in _imports(model, module))


def _imports(model: Model, module: Module) -> Iterator[tuple[str, str | None]]:
    """The files of the tree that a file imports, and what from each; None for all of it."""
    project = model.project
    wanted: list[tuple[str, int, str | None]] = [
        (name, level, None) for name, level in module.facts.star_imports
    ]
    for scope in module.facts.scopes:
        for bindings in scope.bindings.values():
            for binding in bindings:
                if binding.how == "import":
                    name, attribute, level = binding.payload
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
        path = project.find(name or "", module, level)
        if path is not None and path in project.files:
            yield path, attribute


def _packages_around(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name
