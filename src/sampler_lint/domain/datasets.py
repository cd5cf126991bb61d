"""What a dataset is: whether it is iterated, orders its samples itself, or is another one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVar

from sampler_lint.analysis.origins import (
    HANDED_ON,
    Hop,
    depends_on,
    ends,
    given_by,
    only,
    parameter_of,
    part_of,
)
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import Ext, ExtObj, Lit, Obj
from sampler_lint.catalog import TORCH_DATA
from sampler_lint.catalog.torch import SPLITS
from sampler_lint.domain.concepts import EVALUATES, ORDERS, TRAINS
from sampler_lint.domain.model import Model, own_scopes
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import owner_of, same, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Binding,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Other,
    Stmt,
)

#: What gives a name its dataset: a call, or an assignment.
_Made = TypeVar("_Made", bound=Expr | Binding)


def is_dataset(base: object, *, iterable: bool = False) -> bool:
    """Whether a base outside the tree is a dataset of torch, which neither sets nor reads an epoch.

    ``iterable``: whether it is one that gives its own order.
    """
    if not isinstance(base, str) or not base.startswith(TORCH_DATA):
        return False
    name = base.rpartition(".")[2]
    return name.startswith("Iter") if iterable else name.endswith(("Dataset", "DataPipe"))


def is_iterable(model: Model, dataset: Expr) -> bool:
    """Whether the dataset certainly is of a class derived from torch's ``IterableDataset``."""
    values = model.flow.values(dataset)
    return bool(values) and all(isinstance(v, Obj) and is_iterated(model, v.cls) for v in values)


def refuses_samplers(model: Model, loader: Obj) -> bool:
    """Whether torch builds a loader with no sampler: what is iterated chooses its own order."""
    data = model.argument(loader, "dataset")
    return data is not None and is_iterable(model, data)


def is_iterated(model: Model, cls: Class | str) -> bool:
    """Whether it is a class of the tree whose objects are iterated, as a dataset."""
    return isinstance(cls, Class) and any(
        isinstance(base, str)
        and base.startswith(TORCH_DATA)
        and base.rpartition(".")[2] == "IterableDataset"
        for base in model.flow.mro(cls)
    )


def may_be_iterable(model: Model, dataset: Expr) -> bool:
    """Whether something is known to reach the dataset that no loader may be able to shuffle."""
    return any(
        isinstance(value, Obj)
        and isinstance(value.cls, Class)
        and any(
            not isinstance(base, Class)
            and (not is_dataset(base) or is_dataset(base, iterable=True))
            for base in model.flow.mro(value.cls)
        )
        for value in model.flow.values(dataset)
    )


def orders_itself(model: Model, dataset: Expr) -> bool:
    """Whether the dataset is iterated, or is of a class that shuffles or samples its own data."""
    return is_iterable(model, dataset) or any(
        any(ORDERS.calls_in(scope.calls))
        for value in model.flow.values(dataset)
        if isinstance(value, Obj) and isinstance(value.cls, Class)
        for scope in own_scopes(model, value.cls)
    )


def wholes(model: Model, dataset: Expr) -> Iterator[Expr]:
    """What a loader reads, or what torch makes that a part of: of a subset, of a split.

    But for what is None until it is set: nobody reads that.
    """
    for data in closure([dataset], lambda each: _parted(model, each)):
        for end in ends(model.flow, data, HANDED_ON):
            is_unset = isinstance(end, Const) and end.value is None
            if not is_unset and whole_of(model, end) is None:
                yield end


def _parted(model: Model, data: Expr) -> Iterator[Expr]:
    found = (whole_of(model, end) for end in ends(model.flow, data, HANDED_ON))
    return (whole for whole in found if whole is not None)


def whole_of(model: Model, made: Expr) -> Expr | None:
    """The dataset that a call of torch makes a part of, or several, of which a name may get one."""
    made = _taken_apart(made) or made
    if not isinstance(made, Call) or not (is_subset(model, made) or _is_split(model, made)):
        return None
    return made.positional[0] if made.positional else made.keyword("dataset")


def _taken_apart(part: Expr) -> Expr | None:
    """What a name certainly gets a part of: the call in ``train, held_out = call(…)``."""
    owner = owner_of(part) if isinstance(part, Name) else None
    found = definitions(owner, part) if owner is not None and isinstance(part, Name) else ()
    made = next(iter(found)) if len(found) == 1 else None
    return made.value if made is not None and made.how == "assign" and made.path else None


def _is_split(model: Model, call: Call) -> bool:
    """Whether torch makes several parts of a dataset there."""
    return any(
        isinstance(value, Ext) and value.dotted in SPLITS and value.dotted.startswith(TORCH_DATA)
        for value in model.flow.values(call.func)
    )


def sampled(model: Model, sampler: Obj) -> Expr | None:
    """The dataset that a sampler of torch, or one derived from it, is built over."""
    names = ("dataset", "data_source")
    return next(filter(None, (model.argument(sampler, name) for name in names)), None)


def are_apart(model: Model, one: Expr, other: Expr) -> bool:
    """Whether two datasets certainly hold other samples: built from other sources, and neither
    made of the other; or other slices of one. Of two parameters, in some call.
    """
    return any(_are_built_apart(model, *pair) for pair in _as_given(model, one, other))


def are_named_apart(model: Model, one: Expr, other: Expr) -> bool:
    """Whether a function calls two variables its data to train on and to evaluate on.

    Each must be built by calls of its own, and neither made of the other.
    """
    if not isinstance(one, Name) or not isinstance(other, Name):
        return False
    evaluated, trained = (one, other) if EVALUATES.says(one.id) else (other, one)
    return (
        owner_of(one) is owner_of(other)
        and EVALUATES.says(evaluated.id)
        and TRAINS.says(trained.id)
        and not EVALUATES.says(trained.id)
        and not TRAINS.says(evaluated.id)
        and any(
            ((bool(here and there) and here.isdisjoint(there)) or _are_asked_apart(model, *pair))
            and _are_independent(model, *pair)
            for pair in _as_given(model, one, other)
            for here, there in [(_built(model, pair[0]), _built(model, pair[1]))]
        )
    )


def _are_asked_apart(model: Model, one: Expr, other: Expr) -> bool:
    """Whether two variables each get what calls of their own return, of one factory or several.

    Or parts of their own of what one call returns, or of one table. Neither may be made of what
    only the other gets.
    """
    here, there = (
        [*each.scope.bindings.get(each.id, ())] if isinstance(each, Name) else []
        for each in (one, other)
    )
    mine, others = ({made.value for made in each if made.value} for each in (here, there))
    return (
        bool(here and there)
        and all(_are_told_apart(*pair) for pair in _met(here, there))
        and depends_on(model.flow, one, (others - mine).__contains__) is None
        and depends_on(model.flow, other, (mine - others).__contains__) is None
    )


def _are_told_apart(one: Binding, other: Binding) -> bool:
    """Whether two assignments are of different calls, or of different parts of one value."""
    if one.how != "assign" or other.how != "assign":
        return False
    if one.value is other.value and part_of(one.value, one.path) is None:
        return one.path != other.path and isinstance(one.value, Call)
    here, there = part_of(one.value, one.path), part_of(other.value, other.path)
    if isinstance(here, Index) and isinstance(there, Index) and same(here.value, there.value):
        return not same(here.key, there.key)
    return isinstance(here, Call) and isinstance(there, Call) and not same(here, there)


def _as_given(model: Model, one: Expr, other: Expr) -> list[tuple[Expr, Expr]]:
    """Two datasets as each call gives them for parameters of its function, or as they stand."""
    function, _ = parameter_of(one) or (None, None)
    if function is None:
        return [(one, other)]
    pairs = (
        (given_by(model.flow, call, one), given_by(model.flow, call, other))
        for call in model.flow.callers(function)
    )
    return [(here, there) for here, there in pairs if here is not None and there is not None]


def _are_built_apart(model: Model, one: Expr, other: Expr) -> bool:
    if _are_slices(*(only(model.flow, each, Hop.ASSIGNED) for each in (one, other))):
        return True
    here, there = _built(model, one), _built(model, other)
    return (
        bool(here and there)
        and all(_from_other_source(model, a, b) for a, b in _met(here, there))
        and _are_independent(model, one, other)
    )


def _are_independent(model: Model, one: Expr, other: Expr) -> bool:
    """Whether neither of two datasets is made of what only the other is built by."""
    here, there = _built(model, one), _built(model, other)
    # An entry of a dict does not depend on the others.
    return not any(
        depends_on(model.flow, made, others.__contains__) is not None
        for mine, others in ((here or {one}, there - here), (there or {other}, here - there))
        for made in mine
    )


def _are_slices(one: Expr, other: Expr) -> bool:
    """Whether two expressions are different slices of one object."""
    return (
        isinstance(one, Index)
        and isinstance(other, Index)
        and isinstance(one.key, Other)
        and isinstance(other.key, Other)
        and same(one.value, other.value)
        and not (
            len(one.key.parts) == len(other.key.parts)
            and all(map(same, one.key.parts, other.key.parts))
        )
    )


def _built(model: Model, dataset: Expr) -> set[Expr]:
    """The calls that build what a dataset may be; none if some of it is not known."""
    calls = {call for call in _making(model, dataset) if not _is_none(call)}
    if all(isinstance(call, Call) for call in calls):
        return calls
    values = [value for value in model.flow.values(dataset) if not isinstance(value, Lit)]
    sites = {value.site for value in values if isinstance(value, (Obj, ExtObj))}
    is_known = all(isinstance(value, (Obj, ExtObj)) and value.site for value in values)
    return {site for site in sites if site is not None} if is_known else set()


def _met(here: Collection[_Made], there: Collection[_Made]) -> list[tuple[_Made, _Made]]:
    """The constructions of two datasets that meet in one run, as far as blocks tell.

    Where each branch builds both, what one branch builds does not meet what another does.
    """
    pairs = [(one, other) for one in here for other in there]
    beside = [pair for pair in pairs if _block(pair[0]) is _block(pair[1])]
    if {one for one, _ in beside} == {*here} and {other for _, other in beside} == {*there}:
        apart = [(one, other) for one, other in beside if one is not other]
        shared = {one for one, other in beside if one is other}
        if apart and not any(one in shared or other in shared for one, other in apart):
            return apart
    return pairs


def _block(made: Expr | Binding) -> list[Stmt] | None:
    stmt = made.stmt if isinstance(made, (Call, Binding)) else None
    return stmt.block if stmt is not None else None


def _is_none(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value is None


def _making(model: Model, dataset: Expr, within: tuple[Function, ...] = ()) -> Iterator[Expr]:
    """What makes a dataset, alone or as a part of what it returns (``data, classes = build()``).

    ``within`` are the functions that were gone into.
    """
    for end in ends(model.flow, dataset, Hop.ASSIGNED):
        owner = owner_of(end) if isinstance(end, Name) else None
        found = definitions(owner, end) if owner is not None and isinstance(end, Name) else ()
        if found and all(each.how == "assign" for each in found):
            # The slice goes on from the others.
            for each in found:
                if each.value is not None and part_of(each.value, each.path) is None:
                    yield from _returning(model, each.value, each.path, within)
        else:
            yield end


def _returning(
    model: Model, made: Expr, path: tuple[int, ...], within: tuple[Function, ...]
) -> Iterator[Expr]:
    """What makes one part of what a call returns; the call, where that is not seen."""
    functions = model.flow.callees(made) if isinstance(made, Call) else []
    given = [(each, stmt.value) for each in functions for stmt in each.returns]
    parts = [(function, part_of(value, path)) for function, value in given]
    if not parts or any(part is None or function in within for function, part in parts):
        yield made
        return
    for function, part in parts:
        assert part is not None
        yield from _making(model, part, (*within, function))


def _from_other_source(model: Model, one: Expr, other: Expr) -> bool:
    """Whether two constructions read different data, as far as their arguments tell.

    By the first argument, a text, what is said of training, or the indices of a part: not by a
    transform.
    """
    if not isinstance(one, Call) or not isinstance(other, Call) or one is other:
        return False
    given = [
        {arg.keyword or str(place): arg.value for place, arg in enumerate(call.args)}
        for call in (one, other)
    ]
    return any(
        not same(value, given[1][name])
        and (
            name == "0"
            or TRAINS.says(name)
            or _is_text(value, given[1][name])
            or (name in {"1", "indices"} and is_subset(model, one))
        )
        for name, value in given[0].items()
        if name in given[1] and (same(one.func, other.func) or not _overlap(value, given[1][name]))
    )


def is_subset(model: Model, call: Call) -> bool:
    """Whether it builds torch's part of a dataset, ``Subset(dataset, indices)``."""
    return any(
        isinstance(value, Ext)
        and value.dotted.startswith("torch.utils.data.")
        and value.dotted.endswith(".Subset")
        for value in model.flow.values(call.func)
    )


def is_part(model: Model, dataset: Expr) -> bool:
    """Whether what is set for a dataset certainly is torch's part of one, which looks samples up.

    Of what it is a part may not be known.
    """
    if isinstance(made := _taken_apart(dataset), Call) and _is_split(model, made):
        return True
    values = model.flow.values(dataset) - {Lit(None, "NoneType")}
    return bool(values) and all(
        isinstance(value, ExtObj)
        and value.dotted.startswith(TORCH_DATA)
        and value.dotted.endswith(".Subset")
        for value in values
    )


def _overlap(one: Expr, other: Expr) -> bool:
    """Whether two arguments name the same thing and no text tells them apart.

    As where one call wraps the samples that another lists.
    """
    parts = [*walk(one)], [*walk(other)]
    if _texts(parts[0]) != _texts(parts[1]):
        return False
    named = [part for part in parts[0] if isinstance(part, (Name, Attr))]
    return any(same(part, there) for part in named for there in parts[1])


def _texts(parts: list[Expr]) -> set[object]:
    return {part.value for part in parts if isinstance(part, Const) and isinstance(part.value, str)}


def _is_text(*values: Expr) -> bool:
    return all(isinstance(value, Const) and isinstance(value.value, str) for value in values)
