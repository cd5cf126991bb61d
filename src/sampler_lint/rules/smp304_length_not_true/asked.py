"""``len()`` of a sampler that has none, or of a loader that is given such a one."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Obj, Value
from sampler_lint.domain.concepts import SAMPLER_ARGUMENTS
from sampler_lint.domain.model import Model
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.rules._foreign_reads import is_asked_first
from sampler_lint.syntax.nodes import Class, Name


def length_missing(model: Model) -> Iterator[Suspect]:
    """Where a program asks for a length that no class defines.

    ``DataLoader.__len__`` asks its batch sampler, which asks its sampler; torch's ``Sampler`` has
    no ``__len__`` (torch/utils/data/sampler.py, the notes above the class).
    """
    if not any(
        model.is_sampler_class(cls) and _has_no_length(model, cls) for _, cls in model.classes()
    ):
        return
    for module in model.modules:
        for call in module.facts.all_calls:
            if not (isinstance(call.func, Name) and call.func.id == "len" and call.positional):
                continue
            of = call.positional[0]
            lacking = [_lacking(model, value) for value in model.flow.values(of)]
            if (
                not lacking
                or None in lacking
                or is_expected(model, call, TypeError)
                or is_asked_first(call.stmt, of, "__len__")
            ):
                continue
            sampler = next(each for each in lacking if each is not None)
            assert isinstance(sampler.cls, Class)
            shown = text_of(module.source, call)
            yield Suspect(
                module,
                call,
                f"`{shown}` fails: `{sampler.cls.name}` has no `__len__`",
                why=(Related(model.place_of(sampler), "sampler built here"),),
                effect="TypeError when the line runs",
                advice=f"give `{sampler.cls.name}` a `__len__` that counts what `__iter__` yields",
                hides=True,
            )


def _has_no_length(model: Model, cls: Class) -> bool:
    return model.attributes(cls).open is None and model.flow.method(cls, "__len__") is None


def _lacking(model: Model, value: Value) -> Obj | None:
    """The sampler by which asking the value for its length certainly fails."""
    if not isinstance(value, Obj):
        return None
    if isinstance(value.cls, Class):
        own = model.is_sampler_class(value.cls) and _has_no_length(model, value.cls)
        return value if own else None
    if model.role(value) is None or model.flow.method(value.cls, "__len__") != value.cls:
        return None
    for name in SAMPLER_ARGUMENTS:
        given = [_lacking(model, each) for each in model.passed_to(value, name)]
        if given and None not in given:
            return given[0]
    return None
