"""SMP501: a loader is given arguments that torch refuses together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.arguments import given_as
from sampler_lint.analysis.fillings import taken_from_dicts
from sampler_lint.analysis.reaching import is_apart, surely_runs_before
from sampler_lint.analysis.values import ClassRef, Ext, Lit, Obj, Partial, Table
from sampler_lint.domain.conditions import excludes
from sampler_lint.domain.datasets import is_iterable
from sampler_lint.domain.model import BATCH_SAMPLER, DATA_LOADER, Model
from sampler_lint.domain.paths import Sym, Way, literal, ways, ways_by_caller
from sampler_lint.domain.programs import built_outside_tests
from sampler_lint.domain.ranks import built_classes
from sampler_lint.domain.signatures import is_changed, stored_in
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import quoted, text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import same, statements, stmt_of, unparse, walk
from sampler_lint.syntax.nodes import (
    UNEQUAL,
    Attr,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    Index,
    Name,
    Raise,
    Return,
    Stmt,
    Store,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module


class LoaderArgumentConflict(Rule):
    """A `DataLoader` is given arguments that it refuses together.

    What it does:
        Finds the values that `sampler`, `batch_sampler`, `shuffle`, `batch_size` and `drop_last`
        have together in each call that builds a loader, also through the callers of a helper, and
        reports a pair that torch refuses: `sampler` with a true `shuffle`; `batch_sampler` with a
        `batch_size` other than 1, a true `shuffle`, a `sampler` or a true `drop_last`;
        `batch_size=None` with a true `drop_last`; an `IterableDataset` with a true `shuffle`, a
        `sampler` or a `batch_sampler`. Also what is put into a dict, or handed to a factory, that
        the loader gets by `**`, and an argument that can only be false or refused, such as
        `shuffle=shuffle if sampler is not None else False`. Reports a `BatchSampler` that is given
        as `sampler`, too, where `batch_size` makes batches of its batches (`likely` where the
        size is not known).

    Why is this bad?
        Building the loader raises `ValueError`, often only in the branch that runs with several
        processes, or when a user first sets the option.

    Fix safety:
        Safe where the program could only raise before: the refused literal is removed where a
        sampler is always given, and `shuffle=True` becomes `shuffle=sampler is None` where there
        may be none. If a setting decides (an option, a dictionary entry or attribute, a
        constant), it is assumed that a user may change it, whatever its default is. Unsafe where
        a user's option would then be ignored, as a `drop_last` that the batch sampler does not
        have, or a condition is inverted.

    How it is proved:
        Invariant `runs`: on two gloo ranks the program stops with the `ValueError` before the fix
        and finishes after it.

    References:
        - torch/utils/data/dataloader.py, `DataLoader.__init__` (torch 2.13): "sampler option is
          mutually exclusive with shuffle", "batch_sampler option is mutually exclusive with
          batch_size, shuffle, sampler, and drop_last", "batch_size=None option disables
          auto-batching and is mutually exclusive with drop_last". `shuffle=False` and `None`,
          `batch_size=1` and `drop_last=False` pass silently
        - https://github.com/ultralytics/yolov3/issues/231
        - met in https://github.com/ultralytics/yolov3 (train.py)
    """

    code = "SMP501"
    name = "loader-argument-conflict"
    symptoms = (
        "ValueError: batch_sampler option is mutually exclusive with batch_size, shuffle, "
        "sampler, and drop_last",
        "ValueError: sampler option is mutually exclusive with shuffle",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each call that builds a loader with a sampler, and at each pair it gives."""
        told: set[object] = set()
        for module in model.modules:
            for call in module.facts.all_calls:
                if _chooses(call) and _builds_loader(model, made := _made(model, call)):
                    given = _arguments(model, made)
                    found = (_check(model, module, call, given, pair) for pair in _PAIRS)
                    suspect = next(filter(None, found), None)
                    suspect = suspect or _check_iterable(model, module, call, given)
                    suspect = suspect or _put_beside(model, call)
                    if suspect is None or suspect.start in told:
                        continue  # a dict is unpacked for several loaders
                    if not is_expected(model, call, ValueError):
                        told.add(suspect.start)
                        yield suspect
        for loader, site, _ in built_outside_tests(model, model.loaders):
            wrong = _handed_on(model, loader, site) or _batches_again(model, loader, site)
            if wrong is not None and wrong.start not in told:
                told.add(wrong.start)
                yield wrong


class _Pair(NamedTuple):
    """Two arguments that exclude each other."""

    first: str
    first_given: Callable[[Sym], bool | None]
    second: str
    second_given: Callable[[Sym], bool | None]
    second_when: str
    """When the second one is refused, for messages."""


def _is_something(sym: Sym) -> bool | None:
    return None if sym.none is None else not sym.none


def _is_true(sym: Sym) -> bool | None:
    return sym.truth


def _is_absent(sym: Sym) -> bool | None:
    return sym.none


def _is_not_one(sym: Sym) -> bool | None:
    # A size that is no literal is one that somebody chose; that it is 1 would be luck.
    return sym.literal[0] != 1 if sym.literal else True


_PAIRS = (
    _Pair("sampler", _is_something, "shuffle", _is_true, "is true"),
    _Pair("batch_sampler", _is_something, "shuffle", _is_true, "is true"),
    _Pair("batch_sampler", _is_something, "drop_last", _is_true, "is true"),
    _Pair("batch_sampler", _is_something, "batch_size", _is_not_one, "is not 1"),
    _Pair("batch_sampler", _is_something, "sampler", _is_something, "is not None"),
    _Pair("batch_size", _is_absent, "drop_last", _is_true, "is true"),
)
_NAMES = ("dataset", *dict.fromkeys(name for pair in _PAIRS for name in (pair.first, pair.second)))


# --------------------------------------------------------------------------- calls


def _chooses(call: Call) -> bool:
    """Whether the call may pass a loader what chooses its samples."""
    gives = any(arg.stars == 2 or arg.keyword in _NAMES[1:] for arg in call.args)
    return gives or len(call.positional) > _loader().params.index("sampler")


def _made(model: Model, call: Call) -> Call:
    """The call with what a ``partial`` of the same file adds to it."""
    made = model.flow.as_made(call)
    partials = (value for value in model.flow.values(call.func) if isinstance(value, Partial))
    return made if all(each.site.scope.module is call.scope.module for each in partials) else call


def _builds_loader(model: Model, call: Call) -> bool:
    """Whether the call certainly runs torch's ``DataLoader.__init__`` with its arguments."""
    if len(call.args) < 2:
        return False
    if last_name(call.func) == "__init__" and isinstance(call.func, Attr):
        values = model.flow.values(call.func)
        return bool(values) and all(
            isinstance(value, Ext) and _is_loader(value.dotted.removesuffix(".__init__"))
            for value in values
        )
    values = model.flow.values(call.func)
    return bool(values) and all(
        (isinstance(value, Ext) and _is_loader(value.dotted))
        or (
            isinstance(value, ClassRef)
            and model.flow.is_a(value.cls, DATA_LOADER) is True
            and isinstance(model.flow.method(value.cls, "__init__"), str | None)
            and model.flow.method(value.cls, "__new__") is None
            and not value.cls.keywords
        )
        for value in values
    )


def _loader() -> catalog.KnownClass:
    entry = catalog.known(DATA_LOADER)
    assert entry is not None
    return entry


def _is_loader(dotted_name: str) -> bool:
    return any(entry.name == DATA_LOADER for entry in catalog.known_mro(dotted_name))


def _arguments(model: Model, call: Call) -> dict[str, Expr]:
    """What the call passes for the parameters that can exclude each other."""
    out = {name: given_as(call, _loader().params, name) for name in _NAMES}
    for arg in call.args:
        if arg.stars == 2:
            out.update(_unpacked(model, arg.value))
    return {name: value for name, value in out.items() if value is not None and name in _NAMES}


def _unpacked(model: Model, value: Expr) -> dict[str, Expr]:
    """The entries of ``**value`` where it is a dict display that nobody changes."""
    table, name = _table(model, value) if isinstance(value, Name) else (None, None)
    return {} if table is None or name is None or is_changed(name) else _entries(table)


def _table(model: Model, value: Expr) -> tuple[Table | None, Name | None]:
    """The one dict display that ``**value`` unpacks, and the variable that is given it."""
    if isinstance(value, Call):
        value = _returned(model, value) or value
    tables = model.flow.values(value)
    table = next(iter(tables)) if len(tables) == 1 else None
    if not isinstance(table, Table) or not isinstance(value, Name):
        return None, None
    bindings = value.scope.bindings.get(value.id, [])
    is_it = len(bindings) == 1 and bindings[0].value is table.node
    return (table, value) if is_it else (None, None)


def _returned(model: Model, call: Call) -> Expr | None:
    """What the one function that a call runs returns, at its one place that does."""
    functions = model.flow.callees(call)
    returns = functions[0].returns if len(functions) == 1 else []
    return returns[0].value if len(returns) == 1 else None


def _entries(table: Table) -> dict[str, Expr]:
    return {key: item for key, item in table.entries if isinstance(key, str)}


class _Held(NamedTuple):
    """What a dict holds under a key."""

    value: Expr
    stmt: Stmt | None
    """Where it is put there; None where the dict is made with it."""


def _put_beside(model: Model, call: Call) -> Suspect | None:
    """A sampler that is put into the ``**kwargs`` of the call, which hold what refuses it."""
    for arg in call.args:
        tables = model.flow.values(arg.value) if arg.stars == 2 else frozenset()
        table = next(iter(tables)) if len(tables) == 1 else None
        for pair in _PAIRS if isinstance(table, Table) else ():
            assert isinstance(table, Table)
            firsts, seconds = (_held(model, table, call, key) for key in (pair.first, pair.second))
            for first, second in product(firsts, seconds):
                value = second.value
                given = literal(value) if isinstance(value, Const) else Sym("")
                if (
                    first.stmt is not None
                    and pair.second_given(given)
                    and _goes_along(first.stmt, second.stmt)
                    and all(_excludes(first, each) for each in firsts if each is not first)
                    and all(_excludes(first, each) for each in seconds if each is not second)
                    and built_classes(model, first.value)
                ):
                    return _beside(model, call, first, second, pair)
    return None


def _held(model: Model, table: Table, call: Call, key: str) -> list[_Held]:
    """All that a dict may hold under a key at a call; nothing where that is not known."""
    put = model.flow.entries(table, key, call)
    made_with = [_Held(value, None) for name, value in table.entries if name in {key, ...}]
    files = {table.node.scope.module, call.scope.module}
    if put is None or any(taken for each in files for taken in taken_from_dicts(each, key)):
        return []
    if any(path for *_, path in put) or any(name is ... for name, _ in table.entries):
        return []
    found = made_with + [_Held(value, stmt_of(owner)) for owner, value, _ in put]
    places = {each.stmt.scope if each.stmt else table.node.scope for each in found}
    return found if len(places) == 1 and all(_comes_first(each, call) for each in found) else []


def _comes_first(held: _Held, call: Call) -> bool:
    """Whether what is put there is there at the call; a function returns it whole."""
    if held.stmt is None or held.stmt.scope is not call.scope:
        return True
    return call.stmt is not None and held.stmt.order < call.stmt.order


def _goes_along(first: Stmt, second: Stmt | None) -> bool:
    """Whether every way through a statement leads through another, before or after."""
    if second is None or surely_runs_before(second, first):
        return True
    between = [each for each in second.block if first.order < each.order < second.order]
    return (
        first.scope is second.scope
        and first.order < second.order
        and any(each in second.block for each in (first, *first.ancestors()))
        and not any(isinstance(each, (Raise, Return)) for each in statements(between))
    )


def _excludes(first: _Held, other: _Held) -> bool:
    """Whether what is put there is not there together with something else."""
    return other.stmt is not None and first.stmt is not None and is_apart(first.stmt, other.stmt)


def _beside(model: Model, call: Call, first: _Held, second: _Held, pair: _Pair) -> Suspect | None:
    assert first.stmt is not None
    scope = first.stmt.scope
    store = next((each for each in scope.stores if each.value is first.value), None)
    module, table = model.module_of(scope), store.target.value if store is not None else None
    is_own = isinstance(table, Name) and stored_in(table) is not None and second.stmt is None
    other = f"{pair.second}={quoted(module.source, second.value)}"
    return Suspect(
        module,
        store.target if store is not None else first.value,
        f"torch refuses the `{pair.first}` that is put beside `{other}`",
        why=(
            Related(model.place(scope, second.value), _PUT[second.stmt is None]),
            Related(model.place(call.scope, call), "unpacked here"),
        ),
        fix=partial(_put_no, store, pair) if is_own and store is not None else None,
        effect="building the loader raises `ValueError` where both are there",
        advice=f"put `False` for `{pair.second}` there, too"
        if pair.second in _SWITCHES
        else "put one of them there",
        hides=True,
    )


#: What is said of an entry, by whether the dict is made with it.
_PUT = {True: "put there first", False: "put there, too"}
#: Which arguments torch takes beside a sampler where they are false.
_SWITCHES = frozenset({"shuffle", "drop_last"})


def _put_no(store: Store, pair: _Pair, editor: Editor) -> Fix | None:
    """Put ``shuffle=False`` beside the sampler that is put into the dict."""
    if pair.second not in _SWITCHES or not isinstance(store.target, Index):
        return None
    editor.insert_after(store.stmt, f'{unparse(store.target.value)}["{pair.second}"] = False')
    return editor.fix(f"Put `{pair.second}=False` there, too", Applicability.SAFE)


# --------------------------------------------------------------------------- objects


def _handed_on(model: Model, loader: Obj, site: Call) -> Suspect | None:
    """What the call of a factory passes on by its ``**kwargs``, and torch refuses together."""
    through = loader.through
    if through is None or not site.has_double_star or excludes(model, through, site):
        return None
    for pair in _PAIRS:
        given = [site.keyword(pair.first), site.keyword(pair.second)]
        firsts = model.passed_to(loader, pair.first)
        literals = model.option(loader, pair.second, None)
        if (
            None in given
            and firsts
            and all(isinstance(value, Obj) for value in firsts)
            and model.argument(loader, pair.second) is not None
            and literals
            and all(pair.second_given(_literal(value)) for value in literals)
        ):
            return Suspect(
                model.module_of(through.scope),
                through.func,
                f"torch refuses the `{pair.second}` that is passed on together with `{pair.first}`",
                why=(Related(model.place(site.scope, site), "the loader gets both here"),),
                effect="building the loader raises `ValueError`",
                advice=f"pass `{pair.second}` only where there is no `{pair.first}`",
                hides=True,
            )
    return None


def _is_batching(model: Model, sampler: Obj) -> bool:
    return isinstance(sampler.cls, Class) and model.flow.is_a(sampler.cls, BATCH_SAMPLER) is True


def _batches_again(model: Model, loader: Obj, site: Call) -> Suspect | None:
    """A batch sampler that is given as ``sampler``, of whose batches torch makes batches."""
    given, size = (model.flow.argument(loader, name) for name in ("sampler", "batch_size"))
    samplers = model.passed_to(loader, "sampler") if given is not None and size is not None else ()
    batching = [value for value in samplers if isinstance(value, Obj)]
    if not batching or len(batching) < len(samplers) or given is None:
        return None
    if not all(each.cls == BATCH_SAMPLER or _is_batching(model, each) for each in batching):
        return None
    sizes = model.option(loader, "batch_size", 1)
    if sizes is not None and not all(type(each) is int and each > 1 for each in sizes):
        return None  # None and 1 leave the batches as they are
    return Suspect(
        model.module_of(site.scope),
        site.func,
        f"this `{loader.name}` makes batches of the batches of its `{batching[0].name}`",
        why=(Related(model.place_of(batching[0]), "it is built here"),),
        grade=Grade.CERTAIN if sizes is not None else Grade.LIKELY,
        effect="each item of a batch is asked for by a list of numbers",
        advice="pass it as `batch_sampler`, without `batch_size`",
    )


# --------------------------------------------------------------------------- deciding


class _Verdict(NamedTuple):
    """How a pair is in conflict."""

    kind: str
    """``always``, ``sometimes`` (the first one may be absent), ``pointless`` or ``parameter``."""
    through: Call | None = None
    is_falsy: bool = False
    """Whether the first one may be false without being None, so that torch still takes it."""
    varies: bool = False
    """Whether it is the second one that makes the difference."""


def _check(
    model: Model, module: Module, call: Call, given: dict[str, Expr], pair: _Pair
) -> Suspect | None:
    first, second = given.get(pair.first), given.get(pair.second)
    if first is None or second is None or _never(second, pair):
        return None
    found = ways(model, call, [first, second])
    verdict = _judge(found, pair, second) if found else None
    if found is None and built_classes(model, first) and isinstance(second, Const):
        verdict = _Verdict("always") if pair.second_given(literal(second)) else None
    elif verdict is not None and (verdict.kind == "always" or verdict.varies):
        # What is set in one place is easily set to something else: then the first one is absent.
        found = ways(model, call, [first], settled=False)
        if not (found and all(pair.first_given(way.values[0]) for way in found)):
            verdict = _Verdict("sometimes", is_falsy=_may_be_falsy(found))
    if verdict is None:
        for caller, of_caller in ways_by_caller(model, call, [first, second]):
            if _meet(of_caller, pair):
                verdict = _Verdict("sometimes", caller)
                break
    return _suspect(model, module, call, first, second, pair, verdict) if verdict else None


def _never(second: Expr, pair: _Pair) -> bool:
    """Whether the second argument is a literal that torch accepts."""
    if not isinstance(second, Const) or second.value is ...:
        return False
    return pair.second_given(_literal(second.value)) is False


def _literal(value: object) -> Sym:
    return Sym("", value is None, bool(value), (value,))


def _judge(found: Sequence[Way], pair: _Pair, second: Expr) -> _Verdict | None:
    states = [(pair.first_given(way.values[0]), pair.second_given(way.values[1])) for way in found]
    if _meet(found, pair):
        certain = all(state == (True, True) for state in states)
        varies = all(state[0] for state in states)
        kind = "always" if certain else "sometimes"
        return _Verdict(kind, is_falsy=_may_be_falsy(found), varies=varies)
    if isinstance(second, Const):
        if pair.first == "batch_size":
            return None
        optional = [way.values[0].param is not None for way in found]
        if all(optional) and all(state == (None, True) for state in states):
            return _Verdict("parameter")
        return None
    refused = [state for state in states if state[0] is True and state[1] is not False]
    accepted = [state for state in states if state[1] is False]
    if refused and len(refused) + len(accepted) == len(states):
        return _Verdict("pointless")
    return None


def _may_be_falsy(found: Iterable[Way] | None) -> bool:
    """Whether the first argument may be false on some way without being None."""
    firsts = [way.values[0] for way in found or ()]
    return any(first.truth is False and not first.none for first in firsts)


def _meet(found: Sequence[Way], pair: _Pair) -> bool:
    """Whether some value of the first argument always meets a second one that it excludes."""
    by_origin: dict[object, list[bool]] = {}
    for way in found:
        first, second = way.values
        if pair.first_given(first) is True:
            key = (first.key, way.through)
            by_origin.setdefault(key, []).append(pair.second_given(second) is True)
    return any(all(refused) for refused in by_origin.values())


def _check_iterable(
    model: Model, module: Module, call: Call, given: dict[str, Expr]
) -> Suspect | None:
    """Whether an iterable dataset is given with what chooses samples by index."""
    dataset = given.get("dataset")
    if dataset is None or not is_iterable(model, dataset):
        return None
    for name, is_given in (
        ("shuffle", _is_true),
        ("sampler", _is_something),
        ("batch_sampler", _is_something),
    ):
        value = given.get(name)
        found = (ways(model, call, [value]) or []) if value is not None else []
        met = [way for way in found if is_given(way.values[0])]
        if value is not None and any(not _asks_for(way, dataset) for way in met):
            where = f" where `{name}` {_WHEN[is_given]}" if len(met) < len(found) else ""
            return Suspect(
                module,
                value,
                f"torch refuses `{name}={quoted(module.source, value)}` for the iterable dataset "
                f"`{quoted(module.source, dataset)}`",
                effect=f"building the loader raises `ValueError`{where}",
                advice="drop it: an iterable dataset chooses the order itself",
            )
    return None


#: When an argument is refused, by how it is given.
_WHEN = {_is_true: "is true", _is_something: "is not None"}


def _asks_for(way: Way, dataset: Expr) -> bool:
    """Whether a test on the way is about the dataset: it may be none that is iterated there."""
    return any(same(node, dataset) for test, _ in way.decided for node in walk(test))


# --------------------------------------------------------------------------- finding and fix


def _suspect(
    model: Model,
    module: Module,
    call: Call,
    first: Expr,
    second: Expr,
    pair: _Pair,
    verdict: _Verdict,
) -> Suspect:
    one = f"{pair.first}={quoted(module.source, first)}"
    other = f"{pair.second}={quoted(module.source, second)}"
    turned = _turned(first, second)
    if verdict.kind == "pointless":
        message = f"with `{one}`, `{other}` can only raise an error"
        effect = (
            f"wherever it {pair.second_when}, torch raises `ValueError`; elsewhere it changes "
            f"nothing"
        )
    else:
        effect = {
            "always": "building the loader raises `ValueError`",
            "sometimes": f"building the loader raises `ValueError` {_when(pair, verdict)}",
            "parameter": f"any `{unparse(first)}` that is passed raises `ValueError`",
        }[verdict.kind]
        message = f"torch refuses `{other}` together with `{one}`"
    why = []
    if verdict.through is not None:
        why.append(
            Related(model.place(verdict.through.scope, verdict.through), "called with both here")
        )
    return Suspect(
        module,
        second,
        message,
        why=tuple(why),
        fix=partial(_resolve, model, call, first, second, pair, verdict),
        effect=effect,
        advice=_advice(first, second, pair, verdict, turned is not None),
        hides=True,
    )


def _when(pair: _Pair, verdict: _Verdict) -> str:
    if verdict.varies:
        return f"where `{pair.second}` {pair.second_when}"
    if pair.first == "batch_size":
        return "where `batch_size` is None"
    return f"where `{pair.first}` is not None"


def _advice(first: Expr, second: Expr, pair: _Pair, verdict: _Verdict, is_turned: bool) -> str:
    if is_turned:
        return f"invert the test: `{pair.second}` is for loaders without `{pair.first}`"
    if pair.first == "sampler" and verdict.kind != "always" and not verdict.varies:
        return f"pass `shuffle` only where `{unparse(first)}` is None"
    if pair.first == "batch_sampler" and pair.second != "sampler":
        return f"let the batch sampler decide, and drop `{pair.second}`"
    if pair.second == "shuffle":
        return "drop `shuffle`, as the sampler decides the order"
    return "drop one of them"


def _turned(first: Expr, second: Expr) -> Compare | None:
    """The test ``first is not None`` in ``x if first is not None else False``, or alone."""
    test = second.test if isinstance(second, Choice) and second.kind == "if" else second
    if isinstance(test, Compare) and len(test.ops) == 1 and test.ops[0] in UNEQUAL:
        right = test.rights[0]
        if isinstance(right, Const) and right.value is None and same(test.left, first):
            return test
    return None


def _resolve(
    model: Model,
    call: Call,
    first: Expr,
    second: Expr,
    pair: _Pair,
    verdict: _Verdict,
    editor: Editor,
) -> Fix | None:
    if pair.second == "sampler" or pair.first == "batch_size" or verdict.is_falsy:
        return None  # which of the two was meant is for a person to say
    arg = next((arg for arg in call.args if arg.value is second), None)
    if arg is None or verdict.through is not None:
        return None
    turned = _turned(first, second)
    if turned is not None:
        text = text_of(editor.source, turned)
        for old, new in (("is not", "is"), ("!=", "==")):
            if text.count(old) == 1:
                editor.replace(turned, text.replace(old, new))
                why = f"`{pair.second}` may be too much, whatever is asked"
                return editor.fix("Invert the test", Applicability.UNSAFE, why)
        return None
    if verdict.kind in {"always", "pointless"} or verdict.varies:
        if arg.keyword is None:
            return None  # the arguments after it would move
        why = ""
        if verdict.kind != "always" and pair.second != "batch_size":
            why = f"it counts where there is no `{pair.first}`"
        elif pair.second == "drop_last" and not _drops_last(model, first):
            why = "the batch sampler may keep the last batch"
        elif any(isinstance(node, Call) for node in walk(second)):
            why = "it may have an effect"
        safe = Applicability.UNSAFE if why else Applicability.SAFE
        return editor.drop_argument(call, second).fix(f"Drop `{pair.second}`", safe, why)
    if pair.first == "sampler" and isinstance(second, Const) and dotted(first) is not None:
        text = f"{text_of(editor.source, first)} is None"
        return editor.replace(second, text).fix(f"Pass `shuffle={text}`", Applicability.SAFE)
    return None


def _drops_last(model: Model, batches: Expr) -> bool:
    """Whether each batch sampler that a loader may get is told to leave out the last batch."""
    built = [value for value in model.flow.values(batches) if isinstance(value, Obj)]
    told = [model.flow.argument(each, "drop_last") for each in built]
    return bool(told) and all(
        each is not None and model.flow.values(each) == {Lit(True, "bool")} for each in told
    )
