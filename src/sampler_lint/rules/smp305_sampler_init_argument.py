"""SMP305: ``Sampler.__init__`` is given an argument that torch no longer takes."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.findings import Applicability, Edit, Fix
from sampler_lint.model import catalog
from sampler_lint.model.facts import Arg, Attr, Call, Class, Name, last_name, unparse
from sampler_lint.model.flow import ClassRef, Ext
from sampler_lint.model.linked import SAMPLER, Model
from sampler_lint.model.project import Module
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._mend import fix
from sampler_lint.rules._region import Region


class SamplerInitArgument(Rule):
    """`super().__init__(data_source)` reaches `torch.utils.data.Sampler`, which takes nothing.

    What it does:
        Reports a call of `Sampler.__init__` with an argument, in any spelling
        (`super().__init__(x)`, `super(C, self).__init__(x)`, `Sampler.__init__(self, x)`), in a
        class where no base between it and `torch.utils.data.Sampler` defines `__init__`.

    Why is this bad?
        `Sampler.__init__(data_source)` was deprecated in torch 2.1 and removed in torch 2.10:
        `Sampler` has no `__init__` any more, the call reaches `object.__init__`, and building
        the sampler raises `TypeError: object.__init__() takes exactly one argument`.

    Fix safety:
        Safe: the argument is dropped. torch never stored it. `super().__init__()` works from
        torch 2.1 on. If the argument is itself a call, which may be wanted for its effect, the
        fix is unsafe.

    How it is proved:
        Invariant `runs`: before the fix the script dies with the TypeError on every rank, after
        it the script finishes.

    References:
        - torch/utils/data/sampler.py, class `Sampler` (2.0, 2.1 and 2.10)
        - https://github.com/pytorch/pytorch/pull/97338
        - https://github.com/pytorch/pytorch/pull/163134
    """

    code = "SMP305"
    name = "sampler-init-argument"
    invariant = "runs"
    fixable = "always"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at the ``__init__`` calls in every class that is certainly a sampler."""
        for module, cls in model.classes():
            if model.is_a(cls, SAMPLER) is not True:
                continue
            for call in model.flow.base_init_calls(cls):
                extra = _arguments(call)
                if extra and _reaches_sampler(model, cls, call):
                    yield _suspect(module, cls, call, extra)


def _arguments(call: Call) -> list[Arg]:
    """What the call passes beside ``self``."""
    assert isinstance(call.func, Attr)
    through_super = isinstance(call.func.value, Call) and last_name(call.func.value.func) == "super"
    if through_super:
        return call.args
    if isinstance(call.func.value, (Name, Attr)):
        return call.args[1:]
    return []


def _reaches_sampler(model: Model, cls: Class, call: Call) -> bool:
    """Whether the called ``__init__`` is torch's ``Sampler``'s own."""
    assert isinstance(call.func, Attr)
    owner = call.func.value
    if isinstance(owner, Call):  # super()
        above = model.flow.mro(cls)[1:]
        start = owner.positional[0] if owner.positional else None
        if start is not None and last_name(start) != cls.name:
            return False
    else:
        values = model.flow.values(owner)
        if len(values) != 1:
            return False
        value = next(iter(values))
        if isinstance(value, Ext):
            return value.dotted == SAMPLER
        if not isinstance(value, ClassRef):
            return False
        above = model.flow.mro(value.cls)
    for base in above:
        if isinstance(base, Class):
            if "__init__" in base.bindings:
                return False
        elif isinstance(base, str):
            entry = catalog.known(base)
            return entry is not None and entry.name == SAMPLER
        else:
            return False
    return False


def _suspect(module: Module, cls: Class, call: Call, extra: list[Arg]) -> Suspect:
    given = ", ".join(
        ("*" * arg.stars) + (f"{arg.keyword}=" if arg.keyword else "") + unparse(arg.value)
        for arg in extra
    )
    message = (
        f"`{cls.name}` passes `{given}` to `torch.utils.data.Sampler.__init__`, which torch 2.10 "
        f"removed: building the sampler raises `TypeError: object.__init__() takes exactly one "
        f"argument`; call it without arguments"
    )
    return Suspect(module, call, message, mend=lambda: _mend(module, call, extra))


def _mend(module: Module, call: Call, extra: list[Arg]) -> Fix | None:
    """Drop the arguments, keeping ``self`` of an unbound call."""
    import libcst as cst

    region = Region(module, call.stmt or call.scope)
    node = region.find(call, cst.Call)
    kept = len(node.args) - len(extra)
    source = module.source
    if kept:
        start = region.span(node.args[kept - 1].value)[1]
    else:
        start = source.text.index("(", region.span(node.func)[1]) + 1
    end = region.span(node)[1] - 1
    effect = any(isinstance(arg.value, Call) for arg in extra)
    applicability = Applicability.UNSAFE if effect else Applicability.SAFE
    edits = [Edit(source.path, start, end, "")]
    return fix("Drop the argument", applicability, edits, source)
