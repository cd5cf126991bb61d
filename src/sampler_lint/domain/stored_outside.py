"""Attributes that the program may store on an object from outside of its methods."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.named_stores import may_spell
from sampler_lint.analysis.values import Ext, ExtObj, Obj, Unknown, Value
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import holds_options
from sampler_lint.domain.programs import outer_stores_beside
from sampler_lint.syntax.nodes import Attr, Class, Store


def is_stored_outside(model: Model, cls: Class, name: str) -> bool:
    """Whether some ``obj.name = …`` that is no method's ``self`` may set it on an instance.

    ``obj.name += …`` reads it first, and what certainly is another object has no say.
    """
    return any(store.how != "aug" for store in outside_stores(model, cls, name)) or any(
        may_spell(call.positional[1], name)
        and any(
            isinstance(value, Obj) and _may_be(model, cls, value)
            for value in model.flow.values(call.positional[0])
        )
        for call in model.project.calls_near("setattr", cls)
        if len(call.positional) == 3
    )


def outside_stores(model: Model, cls: Class, name: str) -> Iterator[Store]:
    """The stores from outside that may set it on an instance, and those that read it first."""
    for store in outer_stores_beside(model, name, cls):
        if _may_be_on(model, cls, store):
            yield store


def _may_be_on(model: Model, cls: Class, store: Store) -> bool:
    assert isinstance(store.target, Attr)
    owner = store.target.value
    if holds_options(model, owner):
        return False
    values = model.flow.values(owner)
    return not values or any(_may_be(model, cls, value) for value in values)


def _may_be(model: Model, cls: Class, value: Value) -> bool:
    """Whether a value may be an instance of the class, of a subclass, or told of as its base."""
    if isinstance(value, Ext):  # what a library's object keeps may be what the tree gave it
        return "()." in value.dotted
    if not isinstance(value, Obj):
        return isinstance(value, (Unknown, ExtObj))
    mro = model.flow.mro(cls)
    return value.cls in mro or (isinstance(value.cls, Class) and cls in model.flow.mro(value.cls))
