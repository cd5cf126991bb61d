"""What a class body defines under a name that the constructor of its base stores."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.signatures import base_inits
from sampler_lint.edits.names import name_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp404_misdirected_assignment.before_super import DEFAULTS, given_for
from sampler_lint.rules.smp404_misdirected_assignment.hiding import is_read_only
from sampler_lint.syntax.navigation import self_class
from sampler_lint.syntax.nodes import Assign, Attr, Class, Const, Function
from sampler_lint.workspace.project import Module


def stored_by_base(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """Attributes, methods and properties of a class body that an object has otherwise.

    Its base's constructor stores something else in the object, and that is found first.
    """
    base = next(iter(model.flow.mro(cls)[1:]), None)
    entry = catalog.known(base) if isinstance(base, str) else None
    if entry is None or not (cls.method("__init__") is None or any(base_inits(model, cls))):
        return
    for name in sorted(entry.attributes & cls.bindings.keys()):
        if len(cls.bindings[name]) > 1:
            continue
        binding = cls.bindings[name][0]
        found = cls.method(name)
        if isinstance(binding.value, Const) and isinstance(binding.stmt, Assign):
            if _is_default_stored(model, cls, name, binding.value):
                stored = f"stores its default, {DEFAULTS[name]}, in each object"
                yield Suspect(
                    module,
                    binding.stmt,
                    f"`{entry.name.rpartition('.')[2]}.__init__` overwrites the `{name}` of "
                    f"`{cls.name}`",
                    effect=f"it {stored}: what the class says is never read",
                    advice=f"pass `{name}={binding.value.value}` to `super().__init__()`",
                )
        elif found is not None and (
            is_read_only(found, name) or (not found.decorators and _is_called(cls, found))
        ):
            is_method = not found.decorators
            effect = f"`self.{name}(…)` raises TypeError: what is stored is no function"
            yield Suspect(
                module,
                name_of(module, found),
                f"`{entry.name.rpartition('.')[2]}.__init__` stores a `{name}`, which `{cls.name}` "
                f"has as a {'method' if is_method else 'property'}",
                effect=effect if is_method else "AttributeError when the object is built",
                advice="give it another name",
            )


def _is_default_stored(model: Model, cls: Class, name: str, value: Const) -> bool:
    """Whether the base's constructor is never told what the class says, and stores another."""
    if name not in DEFAULTS or value.value == DEFAULTS[name]:
        return False
    if any(
        isinstance(store.target, Attr) and store.target.name == name
        for scope in scopes_inside(cls)
        for store in scope.stores
    ):
        return False
    inits = [*base_inits(model, cls)]
    if cls.method("__init__") is not None:
        return bool(inits) and all(
            not any(arg.stars for arg in made.args) and given_for(made, name) is None
            for made in inits
        )
    built = model.built.get(cls, ())
    return bool(built) and all(model.argument(obj, name) is None for obj in built)


def _is_called(cls: Class, method: Function) -> bool:
    return any(
        isinstance(call.func, Attr)
        and call.func.name == method.name
        and self_class(call.func.value) is cls
        for scope in scopes_inside(cls)
        for call in scope.calls
    )
