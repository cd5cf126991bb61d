"""Small trees to ask the model about: ``probe_loader("label", expression)`` marks a question."""

from __future__ import annotations

import textwrap
from pathlib import Path

from sampler_lint.analysis.values import ClassRef, Ext, FuncRef, Lit, ModRef, Obj, Unknown, Value
from sampler_lint.domain.model import Model
from sampler_lint.syntax.nodes import Call, Class, Const, Expr, Function, last_name
from sampler_lint.workspace.project import Module, Project

#: Stands before each file that does not begin with a line of its own imports.
TORCH = """\
from torch.utils.data import (
    BatchSampler, DataLoader, DistributedSampler, RandomSampler, Sampler, SequentialSampler,
)
"""

#: A sampler's word, so that the file is looked at; the name means nothing to the model.
PROBE = "probe_loader"


class Tree:
    """A project written to disk, and its model."""

    def __init__(self, folder: Path, files: dict[str, str] | str) -> None:
        if isinstance(files, str):
            files = {"main.py": TORCH + textwrap.dedent(files)}
        self.folder = folder
        shown = {}
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
            shown[str(path)] = name
        self.project = Project(str(folder), shown)
        assert not self.project.errors
        self.model = Model(self.project)

    def module(self, name: str) -> Module:
        module = self.project.module_at(str(self.folder / name))
        assert module is not None
        return module

    def probe(self, label: str) -> Call:
        """The call that asks the question."""
        (call,) = (
            call
            for call in self.project.calls_named(PROBE)
            if isinstance(call.positional[0], Const) and call.positional[0].value == label
        )
        return call

    def asked(self, label: str) -> Expr:
        """The expression that is asked about."""
        return self.probe(label).positional[1]

    def values(self, label: str = "x") -> set[str]:
        """What the expression may be, in words."""
        return {self.words(value) for value in self.model.flow.values(self.asked(label))}

    def obj(self, label: str = "x") -> Obj:
        """The one object the expression is."""
        (value,) = self.model.flow.values(self.asked(label))
        assert isinstance(value, Obj)
        return value

    def words(self, value: Value) -> str:
        """An object by the call that built it, anything else by its name or content."""
        if isinstance(value, Obj):
            return self.text(value.site) if value.site is not None else f"self: {value.name}"
        if isinstance(value, Lit):
            return repr(value.value)
        if isinstance(value, Unknown):
            return "?"
        if isinstance(value, Ext):
            return value.dotted
        if isinstance(value, ClassRef):
            return f"class {value.cls.name}"
        if isinstance(value, FuncRef):
            return f"def {value.function.qualname}"
        if isinstance(value, ModRef):
            return f"module {Path(value.path).relative_to(self.folder).as_posix()}"
        return type(value).__name__

    def text(self, call: Call) -> str:
        """The call as it is written."""
        source = self.project.module_of(call.scope).source
        start = source.offset(call.row, call.col)
        end = source.offset(call.end_row, call.end_col)
        return " ".join(source.text[start:end].split())

    def cls(self, name: str) -> Class:
        (found,) = (cls for _, cls in self.model.classes() if cls.name == name)
        return found

    def function(self, qualname: str) -> Function:
        (found,) = (
            function
            for module in self.project.candidates
            for function in module.facts.functions
            if function.qualname == qualname
        )
        return found

    def call(self, name: str) -> Call:
        """The only call spelled so."""
        (found,) = (
            call
            for module in self.project.candidates
            for call in module.facts.all_calls
            if last_name(call.func) == name
        )
        return found
