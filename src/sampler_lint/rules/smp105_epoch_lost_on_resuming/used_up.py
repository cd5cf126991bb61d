"""Where a pass begins, and who forgets it: an iterator that is made and never read."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import LOCAL, Hop, depends_on
from sampler_lint.domain.batches import is_batch_sampler
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import looked_up
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.stale import has_workers
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import self_class
from sampler_lint.syntax.nodes import Attr, Class, Const, Expr, Function, Name, Store


def used_up(model: Model) -> Iterator[Suspect]:
    """The batch samplers whose ``__iter__`` sets back at once where it begins.

    A loader with workers calls ``iter()`` of what gives it batches twice before it reads: in
    ``_BaseDataLoaderIter.__init__``, and again in ``_reset``. A generator has done nothing then.
    """
    for module, cls in model.classes():
        iterate = cls.method("__iter__")
        if iterate is None or iterate.yields or is_test(module):
            continue
        for reset in iterate.stores:
            read = _read_before(iterate, reset)
            if read is None or not _is_given(model, cls, reset):
                continue
            loader = model.used_as_batch_sampler.get(cls)
            if loader is None and not is_batch_sampler(model, cls):
                continue
            if loader is not None and not has_workers(model, loader):
                continue
            yield Suspect(
                module,
                reset.stmt,
                f"`{cls.name}.__iter__` resets `{read.name}` when the iterator is created, "
                "before it is read",
                effect="a loader with workers calls `iter()` twice and reads the second: what was "
                "to be skipped is read again",
                advice="make `__iter__` a generator (`yield from`), so that it does so at the "
                "first `next()`",
                why=(Related(model.place(iterate, read), "where the pass begins is read here"),),
                grade=Grade.LIKELY if loader is None else Grade.CERTAIN,
            )
            break


def _read_before(iterate: Function, reset: Store) -> Attr | None:
    """The read of an attribute that a literal then takes the place of."""
    target, value = reset.target, reset.value
    if not isinstance(target, Attr) or self_class(target.value) is None:
        return None
    if not isinstance(value, Const) or value.value not in {0, None}:  # or False
        return None
    return next(
        (
            read
            for read in iterate.reads
            if read.name == target.name
            and self_class(read.value) is not None
            and read.stmt is not None
            and read.stmt.order < reset.stmt.order
        ),
        None,
    )


def _is_given(model: Model, cls: Class, reset: Store) -> bool:
    """Whether who builds or restores the object says what the attribute is."""
    assert isinstance(reset.target, Attr)
    return any(
        store.scope is not reset.scope
        and store.value is not None
        and isinstance(store.scope, Function)
        and depends_on(model.flow, store.value, _is_told, LOCAL | Hop.ATTRIBUTE) is not None
        for base in model.flow.mro(cls)
        if isinstance(base, Class)
        for method in base.methods
        for store in method.stores
        if isinstance(store.target, Attr) and store.target.name == reset.target.name
    )


def _is_told(expr: Expr) -> bool:
    """Whether it is a parameter, or an entry of one (``state["step"]``)."""
    owner, _ = looked_up(expr) or (expr, None)
    if not isinstance(owner, Name) or not isinstance(owner.scope, Function):
        return False
    return owner.scope.param(owner.id) is not None and owner.id != owner.scope.self_name
