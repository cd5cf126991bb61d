"""Names that a sampler sets only after one choice of its caller, and reads after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampler_lint import catalog
from sampler_lint.analysis.asked import tests
from sampler_lint.domain.model import Model
from sampler_lint.domain.stored_outside import is_stored_outside
from sampler_lint.edits.names import text_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import nodes_in, self_class, statements, walk
from sampler_lint.syntax.nodes import Attr, Class, Function, Name, Stmt, Store
from sampler_lint.workspace.project import Module


def on_some_paths(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """Reads that fail once a flag of the constructor, or a text, is another than by default."""
    reads = {**_attributes(model, cls), **_variables(model, cls)}
    if not reads:
        return
    told: set[str] = set()
    for found in model.unset(cls):
        key = (found.name, found.row, found.col)
        if key not in reads or found.name in told:
            continue
        read, method, setting = reads[key]
        asked = {name for stmt in setting for name in _asked(model, stmt)}
        if asked != {found.choice.name.strip("_")}:
            continue  # what else decides may not be as it was tried
        told.add(found.name)
        shown = text_of(module.source, read)
        yield Suspect(
            module,
            read,
            f"`{cls.name}` reads `{shown}`, which it does not set with `{found.choice.story}`",
            effect=f"{'AttributeError' if isinstance(read, Attr) else 'UnboundLocalError'} in "
            f"`{method.name}` with that argument",
            advice=f"set `{shown}` on every path",
        )


def unset_when_built(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """A read in the constructor, or in what it runs, of what only other methods set.

    Building the class in a small world fails there. Where a subclass sets it first, the class
    itself has to be built somewhere.
    """
    trials = model.trials(cls)
    found = None if trials.unbuilt is None or trials.guessed else trials.unbuilt.unset
    if found is None or model.attributes(cls).open is not None:
        return
    name, row, col = found
    for method in cls.methods:
        for read in method.reads:
            if (
                (read.name, read.row, read.col) == (name, row, col)
                and self_class(read.value) is cls
                and not _is_set_somewhere(model, cls, name)
                and not is_expected(model, read, AttributeError)
            ):
                shown = text_of(module.source, read)
                yield Suspect(
                    module,
                    read,
                    f"`{cls.name}` reads `{shown}` before anything sets it",
                    effect="AttributeError when the object is built",
                    advice=f"set `{shown}` first",
                )


def _is_set_somewhere(model: Model, cls: Class, name: str) -> bool:
    """Whether a constructor sets it, or nothing does: other questions tell of these."""
    stores = model.flow.family_stores(cls, name)
    known = model.flow.subclasses(cls)
    by_subclass = any(store.scope.outer in known for store in stores)
    is_built = cls in model.built
    return (
        not stores
        or (by_subclass and not is_built)
        or any(store.scope.name == "__init__" and store.scope.outer is cls for store in stores)
    )


_Reads = dict[tuple[str, int, int], tuple[Attr | Name, Function, list[Stmt]]]


def _attributes(model: Model, cls: Class) -> _Reads:
    """Reads of attributes that only constructors set, each time under a condition."""
    out: _Reads = {}
    related = model.flow.family(cls)
    setting: dict[str, list[Stmt] | None] = {}
    for method in cls.methods:
        for read in method.reads:
            if self_class(read.value) is not cls:
                continue
            if read.name not in setting:
                setting[read.name] = _setting(model, cls, read, related)
            stores = setting[read.name]
            if stores and not is_expected(model, read, AttributeError):
                out[read.name, read.row, read.col] = read, method, stores
    classes = [owner for owner in related if isinstance(owner, Class)] if out else []
    is_open = any(model.attributes(owner).open is not None for owner in classes)
    return {} if is_open else out


def _setting(model: Model, cls: Class, read: Attr, related: Sequence[object]) -> list[Stmt] | None:
    """The statements that set an attribute, if each is conditional, and of a constructor."""
    stores = only_stores(model, cls, read.name, related)
    for store in stores or ():
        if store.scope.name != "__init__" or not any(tests(store.stmt)):
            return None
    return None if stores is None else [store.stmt for store in stores]


def only_stores(
    model: Model, cls: Class, name: str, related: Sequence[object]
) -> list[Store] | None:
    """The stores of ``self.name`` in a hierarchy; None if anything else may give the attribute."""
    stores: list[Store] = []
    for owner in related:
        if isinstance(owner, Class):
            if name in owner.bindings:
                return None
            stores += model.project.own_stores(name, owner)
        elif isinstance(owner, str):
            entry = catalog.known(owner)
            if entry is None or name in entry.attributes | entry.methods:
                return None
    return None if is_stored_outside(model, cls, name) else stores


def _variables(model: Model, cls: Class) -> _Reads:
    """Reads of variables that a method sets under a condition only."""
    out: _Reads = {}
    for method in cls.methods:
        setting = {
            name: [binding.stmt for binding in bindings if binding.stmt is not None]
            for name, bindings in method.bindings.items()
            if all(b.stmt is not None and any(tests(b.stmt)) for b in bindings)
        }
        for node in nodes_in(statements(method.body)) if any(setting.values()) else ():
            if isinstance(node, Name) and (stores := setting.get(node.id)):
                out[node.id, node.row, node.col] = node, method, stores
    return out


def _asked(model: Model, stmt: Stmt) -> Iterator[str]:
    """What the conditions of a statement ask for, by name."""
    for test, _ in tests(stmt):
        for node in walk(test):
            if isinstance(node, Attr):
                yield node.name.strip("_")
            elif isinstance(node, Name) and node.id != "self":
                yield node.id.strip("_")
