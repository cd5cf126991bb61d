"""Which files the imports of others lead to."""

from __future__ import annotations

from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import binder_of
from sampler_lint.syntax.nodes import Call, Function, Imported, dotted
from sampler_lint.workspace.project import Project


class ImportedFiles:
    """What the files of a project import, each asked once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._of: dict[str, set[str]] = {}
        self._leading: dict[tuple[frozenset[str], str], bool] = {}

    def lead_to(self, files: set[str], path: str) -> bool:
        """Whether one of the files is one, or imports it, which may hand on what is in it."""
        key = frozenset(files), path
        if key not in self._leading:
            self._leading[key] = path in closure(files, self._imported_by)
        return self._leading[key]

    def may_mean(self, call: Call, function: Function) -> bool:
        """Whether a call that spells a function's name may call it, by the rules of scopes.

        In a tree of scripts that each define a `train`, these tell nearly all of them apart.
        """
        root = dotted(call.func)
        if root is None:
            return True
        first, _, rest = root.partition(".")
        owner = binder_of(call.scope, first)
        if owner is None or (rest and function.cls is not None):
            return True
        if rest and self._project.stores_near(function.name, function):
            return True  # an object may have it as an attribute
        for binding in owner.bindings[first]:
            if isinstance(binding.payload, Imported):
                module = self._project.module_of(call.scope)
                found = self._project.files_meant(binding.payload, module)
                if self.lead_to(found, self._project.module_of(function).path):
                    return True
            elif not rest and (binding.how != "def" or binding.payload is function):
                return True
        return False

    def _imported_by(self, path: str) -> set[str]:
        if path not in self._of:
            self._of[path] = self._project.imported_by(path)
        return self._of[path]
