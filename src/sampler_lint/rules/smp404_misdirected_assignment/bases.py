"""An abstract method of the first base that hides the real one of a later base."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.concepts import PROTOCOL
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.nodes import Call, Class, Expr, Function, Raise, last_name
from sampler_lint.workspace.project import Module


def hidden_methods(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``class C(AbstractSampler, torch.…Sampler)``: the abstract ``__iter__`` comes first."""
    if len(cls.bases) < 2:
        return
    heads = [_only_class(model, base) for base in cls.bases]
    for method in PROTOCOL:
        if method in cls.bindings:
            continue
        for index, head in enumerate(heads):
            found = model.flow.method(head, method) if head is not None else None
            if head is None or not (found is None or isinstance(found, (Function, str))):
                break
            if found is None:
                continue
            if not isinstance(found, Function) or not _is_abstract(found):
                break
            real = next(
                (
                    later
                    for later in range(index + 1, len(heads))
                    if _implements(model, heads[later], method, found)
                ),
                None,
            )
            if real is not None:
                yield _shadow(module, cls, found, method, index, real)
                return
            break


def _only_class(model: Model, base: Expr) -> Class | str | None:
    """The one class that a base expression means."""
    probe = list(model.flow.values(base))
    if len(probe) != 1:
        return None
    value = probe[0]
    return getattr(value, "cls", None) or getattr(value, "dotted", None)


def _is_abstract(method: Function) -> bool:
    """Whether the body does nothing but raise NotImplementedError."""
    if len(method.body) != 1 or not isinstance(method.body[0], Raise):
        return False
    raised = method.body[0].value
    if isinstance(raised, Call):
        raised = raised.func
    return raised is not None and last_name(raised) == "NotImplementedError"


def _implements(model: Model, head: Class | str | None, method: str, abstract: Function) -> bool:
    if head is None:
        return False
    if isinstance(head, Class) and abstract.cls in model.flow.mro(head):
        return False
    found = model.flow.method(head, method)
    if isinstance(found, Function):
        return not _is_abstract(found)
    return isinstance(found, str) and not found.endswith(".Sampler")


def _shadow(
    module: Module, cls: Class, abstract: Function, method: str, first: int, real: int
) -> Suspect:
    source = module.source
    hiding, hidden = text_of(source, cls.bases[first]), text_of(source, cls.bases[real])
    message = (
        f"`{cls.name}` inherits the abstract `{method}` of `{hiding}`, which comes before "
        f"`{hidden}` in its bases"
    )

    def fix(editor: Editor) -> Fix:
        editor.replace(cls.bases[first], hidden).replace(cls.bases[real], hiding)
        return editor.fix(f"Name `{hidden}` first", Applicability.UNSAFE)

    here = Related(module.place(abstract), f"abstract `{method}`")
    why = (here,) if abstract.module is cls.module else ()
    return Suspect(
        module,
        name_of(module, cls),
        message,
        why=why,
        fix=fix,
        effect="NotImplementedError when the sampler is used",
        advice=f"name `{hidden}` first",
        hides=True,
    )
