"""Fixes of what a loader is given: who divides its samples among the processes."""

from __future__ import annotations

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import imported_as, imported_module, text_of, visible
from sampler_lint.findings import Applicability, Fix
from sampler_lint.syntax.nodes import Attr, Call, Const, Expr, Imported, Name, dotted


def named_beside(editor: Editor, known: Expr, new: str) -> str | None:
    """How a file can name ``new`` of the module that ``known`` is from; it is imported, if need be.

    None where the file does not say where it has ``known`` from.
    """
    if isinstance(known, Attr):
        return f"{text_of(editor.source, known.value)}.{new}"
    if not isinstance(known, Name):
        return None
    facts = editor.module.facts
    name = imported_as(editor.module, new)
    if name is not None or visible(facts, new):
        return name or new
    for binding in facts.bindings.get(known.id, ()):
        imported = binding.payload
        if isinstance(imported, Imported) and imported.attribute and binding.stmt is not None:
            editor.import_beside(binding.stmt, imported.attribute, new)
            return new
    return None


def named_in(editor: Editor, package: str, name: str) -> str | None:
    """How a file can name what a package has; the package is imported, if need be."""
    module = editor.module
    known = imported_as(module, name)
    if known is not None:
        return known
    spelled = imported_module(module, package)
    if spelled is not None:
        return f"{spelled}.{name}"
    if visible(module.facts, name):
        return None
    for bindings in module.facts.bindings.values():
        for binding in bindings:
            imported = binding.payload
            if isinstance(imported, Imported) and imported.name == package and binding.stmt:
                assert imported.attribute is not None
                editor.import_beside(binding.stmt, imported.attribute, name)
                return name
    if visible(module.facts, package):
        return None
    editor.add_import(package)
    return f"{package}.{name}"


def pass_shuffle(
    editor: Editor,
    site: Call,
    shuffle: Expr | None,
    text: str,
    applicability: Applicability,
    why: str = "",
) -> Fix | None:
    """Pass ``shuffle`` in a call, in the place of what is passed there now."""
    if shuffle is None:
        editor.add_argument(site, "shuffle", text)
    else:
        editor.replace(shuffle, text)
    return editor.fix(f"Pass `shuffle={text}`", applicability, why)


def shuffle_without(
    editor: Editor,
    site: Call,
    sampler: Expr,
    shuffle: Expr | None,
    applicability: Applicability,
    why: str = "",
) -> Fix | None:
    """Let a loader shuffle where it gets no sampler."""
    if dotted(sampler) is None:
        return None
    text = f"{text_of(editor.source, sampler)} is None"
    return pass_shuffle(editor, site, shuffle, text, applicability, why)


def divide(model: Model, loader: Obj, editor: Editor) -> Fix | None:
    """Give a loader of torch a ``DistributedSampler`` in the place of its own literal order.

    The processes have to be joined before; who calls ``set_epoch`` is another rule's question.
    """
    site, dataset = loader.site, model.flow.argument(loader, "dataset")
    if site is None or not isinstance(dataset, (Name, Attr)) or site.has_star:
        return None
    shuffle = site.keyword("shuffle")
    if shuffle is None and model.flow.argument(loader, "shuffle") is not None:
        return None  # by its place among the others
    if shuffle is not None and not (isinstance(shuffle, Const) and type(shuffle.value) is bool):
        return None  # who chooses it may choose for what evaluates, too
    there = editor.at(model.module_of(site.scope))
    maker = named_beside(there, site.func, "DistributedSampler")
    if maker is None:
        return None
    ordered = "" if shuffle is not None and shuffle.value else ", shuffle=False"
    sampler = f"{maker}({text_of(there.source, dataset)}{ordered})"
    if shuffle is not None:
        there.replace_argument(site, shuffle, "sampler", sampler)
    else:
        there.add_argument(site, "sampler", sampler)
    why = "an epoch has fewer steps then"
    return editor.fix("Give it a `DistributedSampler`", Applicability.UNSAFE, why)


def start_workers_anew(model: Model, loader: Obj, editor: Editor) -> Fix | None:
    """Let a loader start its workers in each epoch: they then copy the dataset as it is by now."""
    site = loader.site
    kept = site.keyword("persistent_workers") if site is not None else None
    if site is None or kept is None:
        return None
    editor.at(model.module_of(site.scope)).drop_argument(site, kept)
    why = "starting workers takes time in each epoch"
    return editor.fix("Drop `persistent_workers`", Applicability.UNSAFE, why)
