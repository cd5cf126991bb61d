"""The factories that a project declares to build samplers and loaders."""

from __future__ import annotations

from collections.abc import Sequence

from sampler_lint.analysis.values import ClassRef, Ext, FuncRef, Obj, Value
from sampler_lint.catalog.declared import LOADER, SAMPLER
from sampler_lint.limits import LONGEST_WAY_OF_IMPORTS
from sampler_lint.syntax.nodes import Class, Const, Function, Imported
from sampler_lint.workspace.project import Project


class Declared:
    """Dotted names of functions and classes, in the tree or outside, and what they build."""

    def __init__(
        self, project: Project, samplers: Sequence[str] = (), loaders: Sequence[str] = ()
    ) -> None:
        self._project = project
        self._built = {**dict.fromkeys(samplers, SAMPLER), **dict.fromkeys(loaders, LOADER)}
        self._files: dict[str, str] = {}
        self._in_tree: dict[Function | Class, str] = {}
        if self._built:
            self._files = {project.imports.dotted_name(path): path for path in project.files}
            for name, built in self._built.items():
                definition = self._definition(name)
                if definition is not None:
                    self._in_tree[definition] = built

    @property
    def names(self) -> frozenset[str]:
        """By which names they may be called, or imported under another."""
        own = {definition.name for definition in self._in_tree}
        return frozenset({*own, *(name.rpartition(".")[2] for name in self._built)})

    def built_by(self, value: Value) -> str | None:
        """The catalog's name for what calling ``value`` builds; None if it is not declared."""
        if not self._built:
            return None
        if isinstance(value, Ext):
            return self._built.get(value.dotted)
        if isinstance(value, FuncRef):
            return self._in_tree.get(value.function)
        return self._in_tree.get(value.cls) if isinstance(value, ClassRef) else None

    def _definition(self, name: str) -> Function | Class | None:
        """What a dotted name of the tree leads to, through imports of imports."""
        owner, _, last = name.rpartition(".")
        path = self._files.get(owner)
        if path is None:
            cls = self._definition(owner) if owner else None
            return cls.method(last) if isinstance(cls, Class) else None
        for _ in range(LONGEST_WAY_OF_IMPORTS):
            module = self._project.module_at(path)
            bindings = module.facts.bindings.get(last, []) if module is not None else []
            if module is None or len(bindings) != 1:
                return None
            found = bindings[0].payload
            if isinstance(found, (Function, Class)):
                return found
            if not isinstance(found, Imported) or found.attribute is None:
                return None
            last = found.attribute
            target = self._project.imports.find(found.name, module, found.level)
            if target is None:
                return None
            path = target
        return None


def shuffles(sampler: Obj) -> bool | None:
    """Whether a declared sampler, of which ``shuffle`` is not told, shuffles.

    That is what distributed samplers are for; but a ``False`` among the arguments may say no.
    """
    site = sampler.site
    if site is None or site.has_star or site.has_double_star:
        return None
    says_no = any(isinstance(arg.value, Const) and arg.value.value is False for arg in site.args)
    return None if says_no else True
