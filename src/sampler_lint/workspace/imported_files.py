"""Which files the imports of others lead to."""

from __future__ import annotations

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
            todo, seen = list(files), set(files)
            while todo and path not in seen:
                more = self._imported_by(todo.pop()) - seen
                todo += more
                seen |= more
            self._leading[key] = path in seen
        return self._leading[key]

    def _imported_by(self, path: str) -> set[str]:
        if path not in self._of:
            self._of[path] = self._project.imported_by(path)
        return self._of[path]
