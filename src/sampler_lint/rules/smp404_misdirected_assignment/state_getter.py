"""A ``state_dict`` that moves the sampler whose state it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.concepts import GIVES_STATE, PROTOCOL, RESTORES
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import nodes_in, same, self_class, statements, walk
from sampler_lint.syntax.nodes import Attr, Call, Class, Function, Map, Name, Store
from sampler_lint.workspace.project import Module


def moving_getters(module: Module, cls: Class) -> Iterator[Suspect]:
    """A getter of state that moves the sampler to where its caller says it is."""
    loads = {
        store.target.name
        for method in cls.methods
        if RESTORES.says(method.name)
        for store in method.stores
        if isinstance(store.target, Attr)
    }
    used = {
        read.name
        for method in cls.methods
        if method.name in PROTOCOL
        for scope in (method, *module.facts.inside(method))
        for read in scope.reads
        if self_class(read.value) is cls
    }
    for method in cls.methods:
        if not GIVES_STATE.says(method.name) or len(method.params) < 2:
            continue
        if not any(isinstance(r.value, (Map, Name, Call)) for r in method.returns):
            continue
        params = {param.name for param in method.params[1:]}
        for store in method.stores:
            target = store.target
            if (
                isinstance(target, Attr)
                and self_class(target.value) is cls
                and target.name in loads & used
                and store.value is not None
                and any(isinstance(n, Name) and n.id in params for n in walk(store.value))
            ):
                yield _moving_getter(module, cls, method, store, target)


def _moving_getter(
    module: Module, cls: Class, method: Function, store: Store, target: Attr
) -> Suspect:
    shown = text_of(module.source, target)

    def fix(editor: Editor) -> Fix | None:
        reads = [r for r in method.reads if same(r, target)]
        bound = method.bindings.get(target.name, [])
        if any(b.how != "param" for b in bound) or any(r.stmt is None for r in reads):
            return None
        later = [
            node
            for stmt in statements(method.body)
            if stmt.order > store.stmt.order
            for node in nodes_in([stmt])
            if isinstance(node, Name) and node.id == target.name
        ]
        if (bound and later) or any(r.stmt and r.stmt.order <= store.stmt.order for r in reads):
            return None
        for node in (target, *reads):
            editor.replace(node, target.name)
        return editor.fix(f"Use a local `{target.name}`", Applicability.UNSAFE)

    return Suspect(
        module,
        target,
        f"`{cls.name}.{method.name}` changes `{shown}`, which `__iter__` or `__len__` reads",
        fix=fix,
        effect="saving a checkpoint changes what the sampler yields next, on the saving ranks only",
        advice="use a local variable",
    )
