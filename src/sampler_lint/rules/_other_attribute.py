"""A fix of a class that goes wrong in small worlds: another one of its numbers is read."""

from __future__ import annotations

from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.syntax.navigation import self_class
from sampler_lint.syntax.nodes import Class


def read_other(model: Model, cls: Class, editor: Editor) -> Fix | None:
    """Read the one other attribute with which all worlds come out right, if there is just one."""
    reads = tuple(
        read for method in cls.methods for read in method.reads if self_class(read.value) is cls
    )
    found = model.other_attribute(cls, reads)
    if found is None:
        return None
    read, name = found
    module = model.module_of(cls)
    code = f"{text_of(module.source, read.value)}.{name}"
    editor.at(module).replace(read, code)
    title = f"Read `{code}`, with which the ranks share out all samples"
    return editor.fix(title, Applicability.UNSAFE, "something else may be what is wrong")
