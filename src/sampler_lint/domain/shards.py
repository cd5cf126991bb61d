"""What the ranks draw before each takes its share: by their own generators and the process's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.fillings import put_in_list
from sampler_lint.analysis.origins import LOCAL, Hop, depends_on, given_by, parameter_of
from sampler_lint.analysis.reaching import definitions, may_run_before, surely_runs_before
from sampler_lint.analysis.values import Ext, FuncRef
from sampler_lint.catalog.torch import SPLITS
from sampler_lint.domain.agreement import agrees
from sampler_lint.domain.concepts import (
    ORDERS,
    RANGES,
    SEEDS_ALL,
    SEEDS_ONE,
    WORLD_SIZE,
    library_of,
)
from sampler_lint.domain.conditions import excludes
from sampler_lint.domain.datasets import is_dataset
from sampler_lint.domain.draws import Seeded, has_own_generator, seeded, shuffled_by
from sampler_lint.domain.epoch_calls import begins_in
from sampler_lint.domain.launches import launches
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.rank_terms import RankTerm, differs, drawn_apart, is_rank
from sampler_lint.domain.ranks import chains, is_about_processes, is_guarded, reached
from sampler_lint.domain.seeds import global_seed, seed_given
from sampler_lint.domain.workers import WORKED
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import (
    binder_of,
    nodes_in,
    self_class,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Bin,
    Call,
    Choice,
    Class,
    Compare,
    Expr,
    For,
    Function,
    Index,
    Name,
    Node,
    Other,
    Scope,
    Stmt,
    Unary,
    With,
    last_name,
)
from sampler_lint.workspace.project import Module

#: Where a rank's part is taken: a slice, a call, or the test that each item has to pass.
Share = Index | Call | Compare


class OwnShuffle(NamedTuple):
    """A generator that differs between ranks and orders what is divided among them."""

    seeded: Seeded
    term: RankTerm
    share: Share | None
    """The slice that takes the rank's share; None where only running the class shows it."""
    taker: Scope
    """The function that takes it."""


def own_shuffles(model: Model, module: Module) -> Iterator[OwnShuffle]:
    """The shuffles of a file that each rank makes differently before it takes its slice."""
    for scope in module.facts.scopes:
        if not isinstance(scope, Function):
            continue
        for found in seeded(model, scope):
            term = differs(model, found.seed, scope)
            if term is None or any(
                orders_own_part(model, call, term)
                for call in scope.calls
                if _draws_by(model, call, found=found)
            ):
                continue
            taken = _taken_after(model, scope, found)
            if taken is not None:
                yield OwnShuffle(found, term, *taken)
            elif scope.cls is not None and _reads_the_same(model, scope.cls):
                yield OwnShuffle(found, term, None, scope)


def orders_own_part(model: Model, draw: Call, term: RankTerm) -> bool:
    """Whether what is ordered was cut before by what the seed differs by, as a node's part is.

    All that have that number then order the same part alike.
    """
    spelled = unparse(term.term)
    cut = {
        target.id
        for stmt in statements(draw.scope.body)
        if isinstance(stmt, Assign) and surely_runs_before(stmt, draw.stmt)
        if isinstance(stmt.value, Index) and isinstance(stmt.value.key, Other)
        if any(
            depends_on(model.flow, part, lambda one: unparse(one) == spelled, LOCAL) is not None
            for part in stmt.value.key.parts
        )
        for target in stmt.targets
        if isinstance(target, Name)
    }
    return any(isinstance(node, Name) and node.id in cut for node in walk(draw))


def _reads_the_same(model: Model, cls: Class) -> bool:
    """Whether the ranks of a sampler read the same where each draws by a seed of its own."""
    return model.is_meant_as_sampler(cls) and model.trials(cls).reordered is not None


def slices_own_shuffle(model: Model, cls: Class) -> bool:
    """Whether a sampler of the tree takes the rank's share of what it has shuffled itself."""
    return any(
        _taken_after(model, scope, found) is not None
        for scope in scopes_inside(cls)
        if isinstance(scope, Function)
        for found in seeded(model, scope)
    )


def _taken_after(model: Model, scope: Scope, found: Seeded) -> tuple[Share, Scope] | None:
    """The share that is taken of what a function orders by a generator that it has seeded.

    By itself, or by who calls it for what it orders.
    """
    return _taken(model, scope, found.call, partial(_draws_by, model, found=found))


def _taken(
    model: Model, scope: Scope, first: Call, draws: Callable[[Call], bool]
) -> tuple[Share, Scope] | None:
    """The share that is taken of what a function orders, and who takes it."""
    share = _share_of(model, scope, first, draws)
    if share is not None:
        return share, scope
    if isinstance(scope, Function) and _gives_ordered(scope, draws):
        for call in model.flow.callers(scope):
            share = _share_of(model, call.scope, call, partial(operator.is_, call))
            if share is not None:
                return share, call.scope
    return _taken_of_kept(model, scope, draws)


def _taken_of_kept(
    model: Model, scope: Scope, draws: Callable[[Call], bool]
) -> tuple[Share, Scope] | None:
    """The share that another method takes of what one has ordered and kept in an attribute."""
    cls = scope.cls if isinstance(scope, Function) else None
    if cls is None:
        return None
    ordered: set[str] = set()
    for stmt in statements(scope.body):
        _note_ordered(stmt, ordered, draws)
    kept = {
        node.name
        for node in nodes_in(statements(scope.body))
        if isinstance(node, Attr) and node.name in ordered and self_class(node.value) is not None
    }
    for method in cls.methods if kept else ():
        if method is not scope and not agrees(method):
            share = _share_of(model, method, None, draws, kept)
            if share is not None:
                return share, method
    return None


def is_shared(model: Model, draw: Call) -> bool:
    """Whether a rank takes its share of what a draw has ordered."""
    return _taken(model, draw.scope, draw, partial(operator.is_, draw)) is not None


def _gives_ordered(function: Function, draws: Callable[[Call], bool]) -> bool:
    """Whether what a function hands out was ordered by a draw."""
    ordered: set[str] = set()
    for stmt in statements(function.body):
        _note_ordered(stmt, ordered, draws)
    given = [stmt.value for stmt in function.returns if stmt.value is not None]
    return any(_is_ordered(value, ordered, draws) for value in (*given, *function.yields))


def shared_by_items(model: Model, cls: Class) -> Iterator[Expr]:
    """The attributes of an object that its methods take the rank's share of."""
    for method in cls.methods if cls.method("__iter__") is not None else ():
        if method.name != "__init__" and not agrees(method):
            for share, whole in chain.from_iterable(_shares_in(model, method).values()):
                is_kept = isinstance(whole, Attr) and self_class(whole.value) is cls
                if is_kept and _is_partition(model, share):
                    yield whole


def shared_while_built(model: Model, cls: Class) -> Iterator[Expr]:
    """What the constructor of a class, or a function that it calls, takes the rank's share of."""
    init = model.flow.method(cls, "__init__")
    if not isinstance(init, Function) or agrees(init):
        return
    called = ((each, call) for call in init.calls for each in model.flow.callees(call))
    for scope, call in ((init, None), *called):
        for share, whole in chain.from_iterable(_shares_in(model, scope).values()):
            if _is_partition(model, share):
                given = None if call is None else given_by(model.flow, call, whole)
                yield given or whole


@remembered
def shared_draws(model: Model, program: str) -> list[GlobalDraw]:
    """The draws from a generator of the process that order what each rank takes its share of."""
    return [
        draw
        for module in dict.fromkeys(
            (
                *model.project.modules_in(program),
                *program_files(model).holding(program, _says_order_and_rank),
            )
        )
        if not is_test(module)
        for scope in module.facts.scopes
        if isinstance(scope, Function)
        for draw in _shared_draws(model, module, scope)
    ]


def _says_order_and_rank(data: bytes) -> bool:
    return b"rank" in data and any(word in data for word in _SAYS_ORDER)


def _shared_draws(model: Model, module: Module, scope: Function) -> Iterator[GlobalDraw]:
    for call in ORDERS.calls_in(scope.calls):
        library = library_drawn_from(model, call)
        share = _taken(model, scope, call, partial(operator.is_, call)) if library else None
        if library is None or share is None or is_guarded(call) or agrees(scope, call):
            continue
        if _is_partition(model, share[0]) and not any(map(_seeds_itself, (scope, share[1]))):
            who = scope.name if scope.cls is None else scope.cls.name
            what = f"the order of `{who}`"
            yield GlobalDraw(module, call, library, what, shared_by=share[1])


def _seeds_itself(scope: Scope) -> bool:
    """Whether the function, or the class that it is a method of, seeds a generator itself."""
    cls = scope.cls if isinstance(scope, Function) else None
    scopes = [scope] if cls is None else scopes_inside(cls)
    calls = chain.from_iterable(each.calls for each in scopes)
    return any(SEEDS_ALL.names(call.func) or SEEDS_ONE.is_call(call) for call in calls)


def _is_world_size(expr: Expr) -> bool:
    return WORLD_SIZE.names(expr.func if isinstance(expr, Call) else expr)


def _is_partition(model: Model, share: Share) -> bool:
    """Whether a share begins at the rank and has an end or a step: ``[:rank]`` is no share.

    Or it is one of the parts for that many ranks: ``array_split(files, world_size)[rank]``.
    """
    if not isinstance(share, Index):
        return True
    if not isinstance(share.key, Other):
        return depends_on(model.flow, share.value, _is_world_size, LOCAL | Hop.PART) is not None
    parts = share.key.parts
    return len(parts) > 1 and depends_on(model.flow, parts[0], is_rank, LOCAL) is not None


def _share_of(
    model: Model,
    scope: Scope,
    first: Call | None,
    draws: Callable[[Call], bool],
    kept: Collection[str] = (),
) -> Share | None:
    """The first slice by rank of something that was ordered by a draw, from a call on.

    Or of what was ordered before, by the names of what keeps it.
    """
    shares = _shares_in(model, scope)
    ordered = set(kept)
    after = first.stmt.order if first is not None and first.stmt is not None else 0
    for stmt in statements(scope.body) if shares else ():
        if stmt.order < after:
            continue
        for share, whole in shares.get(stmt, ()):
            if _is_ordered(whole, ordered, draws):
                return share
        _note_ordered(stmt, ordered, draws)
    return None


@remembered
def _shares_in(model: Model, scope: Scope) -> dict[Stmt, list[tuple[Share, Expr]]]:
    """The parts by rank that each statement of a scope takes, and of what."""
    found: dict[Stmt, list[tuple[Share, Expr]]] = {}
    for stmt in statements(scope.body):
        for node in nodes_in([stmt]):
            whole = _shared(model, node)
            if whole is not None and isinstance(node, (Index, Call, Compare)):
                found.setdefault(stmt, []).append((node, whole))
    return found


def _shared(model: Model, node: Node) -> Expr | None:
    """What a rank takes its part of: ``x[rank:total:size]``, or ``islice(x, rank, None, size)``.

    Or what it goes through, and keeps each ``number % size == rank`` of.
    """
    part: Expr
    whole: Expr | None
    if isinstance(node, Index):
        whole, part = node.value, node.key
    elif isinstance(node, Call) and last_name(node.func) == "islice" and len(node.positional) > 2:
        whole, part = node.positional[:2]
    elif isinstance(node, Compare) and node.ops in (["Eq"], ["NotEq"]):
        whole, part = _numbered(node), node
    else:
        return None
    is_part = whole is not None and depends_on(model.flow, part, is_rank, LOCAL) is not None
    return whole if is_part else None


def _numbered(test: Compare) -> Expr | None:
    """What ``i % size == …`` counts: ``x``, as in ``for i, item in enumerate(x)``."""
    for side in (test.left, *test.rights):
        for node in walk(side) if isinstance(side, Bin) and side.op == "Mod" else ():
            owner = binder_of(node.scope, node.id) if isinstance(node, Name) else None
            for binding in definitions(owner, node) if owner and isinstance(node, Name) else ():
                counts = binding.value if binding.how == "element" else None
                if isinstance(counts, Call) and counts.positional:
                    if binding.path == (0,) and last_name(counts.func) == "enumerate":
                        return counts.positional[0]
                    if not binding.path and RANGES.is_call(counts):
                        return counts.positional[:2][-1]  # `len(x)`
    return None


def _is_ordered(expr: Expr, ordered: set[str], draws: Callable[[Call], bool]) -> bool:
    return any(
        (isinstance(node, (Name, Attr)) and last_name(node) in ordered)
        or (isinstance(node, Call) and draws(node))
        for node in walk(expr)
    )


def _note_ordered(stmt: Stmt, ordered: set[str], draws: Callable[[Call], bool]) -> None:
    for node in nodes_in([stmt]):
        if not isinstance(node, Call):
            continue
        if draws(node) and (given := shuffled_by(node)) is not None:
            ordered.add(last_name(given) or "")
        elif (filling := put_in_list(node)) is not None and _is_ordered(filling[1], ordered, draws):
            ordered.add(last_name(filling[0]) or "")
    if isinstance(stmt, For) and _is_ordered(stmt.iter, ordered, draws):
        ordered |= {last_name(node) or "" for node in walk(stmt.target)}
    if isinstance(stmt, Assign):
        names = {last_name(target) or "" for target in stmt.targets}
        if _is_ordered(stmt.value, ordered, draws):
            ordered |= names
        else:
            ordered -= names
    ordered.discard("")


def _draws_by(model: Model, call: Call, found: Seeded) -> bool:
    """Whether the call orders something with the generator."""
    if not ORDERS.is_call(call) or not isinstance(call.func, Attr):
        return False
    given = call.keyword("generator")
    if found.generator is not None:
        maker = given if given is not None else call.func.value
        return last_name(maker) == found.generator
    if any(node is found.call for node in walk(call)):
        return True
    if not SEEDS_ALL.is_made(found.call, model.flow.values):
        return False  # a generator that has no name draws where it is made
    return given is None and any(
        isinstance(value, Ext) and library_of(value.dotted) == library_drawn_from(model, found.call)
        for value in model.flow.values(call.func)
    )


def library_drawn_from(model: Model, call: Call) -> str | None:
    """The library whose global generator a call seeds, or draws from; None if it may be several.

    None, too, for a call that is given a generator of its own (or a seed for one).
    """
    if has_own_generator(call):
        return None
    found = {library_of(v.dotted) for v in model.flow.values(call.func) if isinstance(v, Ext)}
    return found.pop() if len(found) == 1 else None


def orders_globally(model: Model, cls: Class) -> bool:
    """Whether a pass draws an order by a global generator, which the class itself never seeds."""
    iterate = model.flow.method(cls, "__iter__")
    own = {scope for base in model.flow.own_mro(cls) for scope in scopes_inside(base)}
    if not isinstance(iterate, Function) or any(
        global_seed(model, call) is not None for scope in own for call in scope.calls
    ):
        return False
    return any(
        library_drawn_from(model, call) is not None and not _is_inside_one(scope, call)
        for scope in own & reached(model, iterate)
        for call in ORDERS.calls_in(scope.calls)
    )


def _is_inside_one(scope: Scope, draw: Call) -> bool:
    """Whether a draw orders the inside of a batch: ``shuffle(batch)``, then ``yield batch``."""
    shuffled = shuffled_by(draw)
    return (
        isinstance(scope, Function)
        and isinstance(shuffled, Name)
        and any(
            isinstance(given.value, Name) and given.value.id == shuffled.id and not given.delegates
            for given in scope.yields
        )
    )


# --------------------------------------------------------------------------- the process's own


class RankSeeding(NamedTuple):
    """A place where each rank seeds a global generator differently."""

    program: str
    module: Module
    call: Call
    term: RankTerm
    library: str | None
    """Whose generator; None for those of all libraries."""
    at: Call
    """The call that says with what: of the function that seeds, where that is told."""
    is_second: bool = False
    """Whether the ranks seed it alike before: what is drawn in between is the same on all."""


class GlobalDraw(NamedTuple):
    """A draw from a global generator that decides which data there is, or its order."""

    module: Module
    call: Call
    library: str
    what: str
    """What is drawn, for messages."""
    of: Class | None = None
    """The dataset whose items it orders; none where it divides one."""
    shared_by: Scope | None = None
    """The function that takes the rank's share of it."""

    def is_by_workers(self, model: Model) -> bool:
        """Whether a loader's workers may draw it, whose generators torch seeds by its own."""
        drawn_by = self.drawn_by(model)
        return "worker" in drawn_by or "process" not in drawn_by

    def drawn_by(self, model: Model) -> set[str]:
        """Who is seen to draw it: the ``process``, and the ``worker`` of a loader."""
        if self.shared_by is None or self.call.scope.name == "__init__":
            return {"process"}
        return {_runs_it(model, scope) for scope, _ in chains(model, self.call.scope)} - {""}


def _runs_it(model: Model, scope: Scope) -> str:
    """``process`` or ``worker`` for what a program, or a loader's worker, certainly begins with."""
    cls = scope.cls if isinstance(scope, Function) else None
    if scope.outer is None or (cls is not None and model.is_meant_as_sampler(cls)):
        return "process"
    return "worker" if cls is not None and scope.name in WORKED else ""


def rank_seedings(model: Model) -> list[RankSeeding]:
    """Every seeding of a global generator that differs between ranks, and is the last one."""
    found, same = _seedings(model)
    return [
        item._replace(is_second=bool(alike))
        for item in found
        for alike in [_also_alike(model, item, same)]
        if not any(_may_follow(model, call, item.at) for call in alike)
    ]


@remembered
def _seedings(model: Model) -> _Seedings:
    """The seedings that differ between ranks; where the others are, and of whose generators."""
    same: list[tuple[Module, Call, str | None]] = []
    found: list[RankSeeding] = []
    files = program_files(model)
    parts = [(program, path) for program in files.programs for path in files.seeding(program)]
    for program, path in parts:
        module = model.project.module_at(path)
        if module is None:
            continue
        for call in module.facts.all_calls:
            given = seed_given(model, call)
            if given is None or any(isinstance(v, FuncRef) for v in model.flow.values(call.func)):
                continue  # what a function of the tree seeds is looked at there
            library = library_drawn_from(model, call)
            for at, told in _told_by(model, call, given):
                term = differs(model, told, at.scope)
                apart = drawn_apart(model, told) if term is None else None
                if apart is not None:
                    term = RankTerm(apart[0].scope, apart[0].expr, apart[0].expr)
                if term is None:
                    same.append((model.module_of(at.scope), at, library))
                else:
                    found.append(RankSeeding(program, module, call, term, library, at))
    return _Seedings(found, same)


def _told_by(model: Model, call: Call, given: Expr) -> list[tuple[Call, Expr]]:
    """The calls that say which seed a call gets, and what they say: those of its function."""
    function, _ = parameter_of(given) or (None, None)
    callers = model.flow.callers(function) if function is not None else []
    told = [(each, given_by(model.flow, each, given)) for each in callers]
    known = [(each, seed) for each, seed in told if seed is not None]
    return known if known and len(known) == len(told) else [(call, given)]


class _Seedings(NamedTuple):
    apart: list[RankSeeding]
    alike: list[tuple[Module, Call, str | None]]


def _also_alike(
    model: Model, item: RankSeeding, same: list[tuple[Module, Call, str | None]]
) -> list[Call]:
    """Where the files about a seeding seed the same generator alike."""
    about = {item.module, *(model.module_of(each) for each in (item.term.scope, item.at.scope))}
    if item.at is item.call and isinstance(item.call.scope, Function):
        about |= {model.module_of(call.scope) for call in model.flow.callers(item.call.scope)}
    return [
        call
        for module, call, library in same
        if module in about and library in {item.library, None}
    ]


def _may_follow(model: Model, call: Call, first: Call) -> bool:
    """Whether a call, or one that leads to it from the scope of the first, may run after that."""
    if call.scope is first.scope:
        return may_run_before(first.stmt, call.stmt)
    led = model.flow.callers(call.scope)
    return not led or any(
        each.scope is not first.scope or may_run_before(first.stmt, each.stmt) for each in led
    )


def drawn_by(
    model: Model, seeding: RankSeeding, drawn: Iterable[GlobalDraw]
) -> Iterator[GlobalDraw]:
    """Those of the draws that may be from that generator, as it is seeded there."""
    files = program_files(model)
    origin = model.module_of(seeding.term.scope)
    begun = begins_in(model, seeding.call.scope)
    for draw in drawn:
        if (
            seeding.library in {draw.library, None}
            and all(files.share_importer(draw.module, each) for each in (seeding.module, origin))
            and (begun is None or not begun.isdisjoint(files.leading_to(draw.module.path)))
            and (draw.shared_by is None or _is_drawn_apart(model, seeding.program, draw))
            and (not seeding.is_second or _surely_follows(model, draw.call, seeding.at))
            and not _is_seeded_alike(model, seeding, draw)
            and not _comes_after(model, seeding.at, draw.call)
            and launches(model).together(seeding.at, draw.call) is not False
        ):
            yield draw


def _comes_after(model: Model, call: Call, other: Call) -> bool:
    """Whether one call is only made after another, wherever a function leads to both."""
    here, there = (
        {scope: calls[0] if calls else each for scope, calls in chains(model, each.scope)}
        for each in (call, other)
    )
    both = [scope for scope in here if scope in there and here[scope] is not there[scope]]
    return bool(both) and not any(
        may_run_before(here[scope].stmt, there[scope].stmt) for scope in both
    )


def _is_seeded_alike(model: Model, seeding: RankSeeding, draw: GlobalDraw) -> bool:
    """Whether the function that draws seeds the generator anew before, alike on all ranks."""
    scope = draw.call.scope
    return seeding.at.scope is not scope and (
        _is_seeded_here(model, draw)
        or any(
            place.scope is scope
            and library in {draw.library, None}
            and (
                _is_within(draw.call, place)
                or (
                    surely_runs_before(place.stmt, draw.call.stmt)
                    and (place is at or not at.scope.yields)
                )
            )
            for _, at, library in _seedings(model).alike
            for place in _led_to(model, at)
        )
    )


def _is_seeded_here(model: Model, draw: GlobalDraw) -> bool:
    """Whether the function does so itself: a sampler, whose seeding is no other's."""
    return any(
        surely_runs_before(call.stmt, draw.call.stmt)
        and (given := global_seed(model, call)) is not None
        and not any(isinstance(v, FuncRef) for v in model.flow.values(call.func))
        and library_drawn_from(model, call) in {draw.library, None}
        and not any(differs(model, told, at.scope) for at, told in _told_by(model, call, given))
        for call in draw.call.scope.calls
    )


def _led_to(model: Model, seeding: Call) -> Iterator[Call]:
    """A seeding, and the calls of the function that it is in, where they give what is alike."""
    yield seeding
    for call in model.flow.callers(seeding.scope):
        if not any(differs(model, arg.value, call.scope) for arg in call.args):
            yield call


def _is_within(call: Call, entered: Call) -> bool:
    """Whether a call stands in the block of a ``with`` that enters what another one gives."""
    return isinstance(entered.stmt, With) and call.stmt in {*statements(entered.stmt.body)}


def _surely_follows(model: Model, call: Call, first: Call) -> bool:
    """Whether a call, or each that leads to it, stands below the first in the scope of that."""
    if call.scope is first.scope:
        return surely_runs_before(first.stmt, call.stmt)
    led = model.flow.callers(call.scope)
    return bool(led) and all(
        each.scope is first.scope and surely_runs_before(first.stmt, each.stmt) for each in led
    )


def _is_drawn_apart(model: Model, program: str, draw: GlobalDraw) -> bool:
    """Whether nothing seeds the generator alike near a draw, be it of a worker or not."""
    apart, same = _seedings(model)
    scope = draw.call.scope
    callers = model.flow.callers(scope)
    near = {draw.module, *(model.module_of(call.scope) for call in callers)}
    if any(module in near and library in {draw.library, None} for module, _, library in same):
        return False
    return not draw.is_by_workers(model) or any(
        item.program == program and item.library in {"torch", None} for item in apart
    )


@remembered
def draws(model: Model, program: str) -> list[GlobalDraw]:
    """Every draw of a program that divides or orders its data with a global generator."""
    known: list[GlobalDraw] = []
    for module in program_files(model).holding(program, _may_draw):
        for call, library in _splits(model, module):
            known.append(GlobalDraw(module, call, library, f"`{last_name(call.func)}`"))
        for cls in module.facts.classes:
            known += _dataset_draws(model, module, cls)
    return known


def _may_draw(data: bytes) -> bool:
    return any(name in data for name in _SAYS_SPLIT) or (
        b"__getitem__" in data and any(name in data for name in _SAYS_ORDER)
    )


def _splits(model: Model, module: Module) -> Iterator[tuple[Call, str]]:
    """The calls of a file that divide data by a global generator, and whose it is."""
    names = _SPLIT_NAMES | {
        name for name, (_, imported, _) in module.facts.imports if imported in _SPLIT_NAMES
    }
    for call in module.facts.all_calls:
        library = _split(model, call, names)
        if library is not None:
            yield call, library


def _split(model: Model, call: Call, names: frozenset[str]) -> str | None:
    """The library whose global generator divides the data in the call."""
    for value in model.flow.values(call.func) if last_name(call.func) in names else ():
        if isinstance(value, Ext) and value.dotted in SPLITS:
            library, keyword, position = SPLITS[value.dotted]
            given = call.keyword(keyword) is not None or len(call.positional) > position
            if not given and not call.has_star and not call.has_double_star:
                return library
    return None


_SPLIT_NAMES = frozenset(name.rpartition(".")[2] for name in SPLITS)
_SAYS_SPLIT = [name.encode() for name in sorted(_SPLIT_NAMES)]
_SAYS_ORDER = [f"{name}(".encode() for name in sorted(ORDERS.called)]


def _dataset_draws(model: Model, module: Module, cls: Class) -> Iterator[GlobalDraw]:
    """Draws in a map-style dataset's ``__init__`` that its items are then read by."""
    init, getter = cls.method("__init__"), cls.method("__getitem__")
    if init is None or getter is None:
        return
    if not any(map(is_dataset, model.flow.mro(cls))):
        return
    if any(map(is_rank, nodes_in(statements(init.body)))):
        return
    used = {read.name for read in getter.reads if self_class(read.value) is cls}
    for call in ORDERS.calls_in(init.calls):
        library = library_drawn_from(model, call)
        if (
            library is not None
            and _decides(init, call, used)
            and not _is_for_one_process(model, init, call)
        ):
            yield GlobalDraw(module, call, library, f"the order of `{cls.name}`", cls)


def _is_for_one_process(model: Model, init: Function, call: Call) -> bool:
    """Whether each object is told not to draw, or ``not distributed``: by how many there are."""
    asked = [test for test, _ in tests(call) if isinstance(test, Name) and init.param(test.id)]
    made = model.flow.callers(init)
    return bool(asked and made) and all(
        excludes(model, each, call)
        or any(
            isinstance(given, (Choice, Compare, Unary)) and is_about_processes(model, given)
            for given in (given_by(model.flow, each, test) for test in asked)
        )
        for each in made
    )


def _decides(init: Function, call: Call, used: set[str]) -> bool:
    """Whether what is drawn ends in an attribute that items are read by."""
    stmt = call.stmt
    if isinstance(stmt, Assign):
        targets: list[Expr] = list(stmt.targets)
    else:
        targets = call.positional[:1]
    kept = {target.name for target in targets if isinstance(target, Attr)}
    names = {target.id for target in targets if isinstance(target, Name)}
    for store in init.stores if names else ():
        if (
            isinstance(store.target, Attr)
            and store.value is not None
            and store.stmt.row > call.row
            and any(isinstance(n, Name) and n.id in names for n in walk(store.value))
        ):
            kept.add(store.target.name)
    return not kept.isdisjoint(used)
