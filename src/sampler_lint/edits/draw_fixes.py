"""Drawing from a generator that all ranks seed alike, in place of the process's own."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.values import Ext
from sampler_lint.domain.concepts import EPOCH
from sampler_lint.domain.draws import shuffled_by
from sampler_lint.domain.model import Model
from sampler_lint.domain.seed_names import in_scope
from sampler_lint.domain.shards import GlobalDraw
from sampler_lint.domain.workers import Seeding
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import fresh_name, imported_module, means_the_same, text_of
from sampler_lint.edits.region import offsets
from sampler_lint.edits.seed_fixes import spelled, summed
from sampler_lint.findings import Applicability, Fix
from sampler_lint.source import SourceFile
from sampler_lint.syntax.navigation import nodes_in, same, self_class, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    Name,
    Scope,
    Stmt,
    While,
)


def draw_alike(
    model: Model, draws: list[GlobalDraw], editor: Editor, *, otherwise: str | None = None
) -> Fix | None:
    """Give every draw a generator of its own, seeded with the program's seed.

    ``otherwise``: the seed where the program has none that can be named there.
    """
    for draw in draws:
        found = in_scope(model, draw.module, draw.call.scope, draw.call)
        seed = otherwise if found is None else spelled(found)
        if seed is None or not _draw(model, draw, editor.at(draw.module), seed):
            return None
    message = "Draw from a generator with the same seed on all ranks"
    return editor.fix(message, Applicability.UNSAFE, "it draws other numbers than before")


def _draw(model: Model, draw: GlobalDraw, editor: Editor, seed: str) -> bool:
    """Write the generator of one draw, if it can be told how."""
    call = draw.call
    names = {value.dotted for value in model.flow.values(call.func) if isinstance(value, Ext)}
    if len(names) != 1:
        return False
    name = names.pop()
    torch = imported_module(draw.module, "torch")
    maker = catalog.GENERATOR_MAKERS.get(draw.library)
    owner = call.func.value if isinstance(call.func, Attr) else None
    if name.startswith("sklearn."):
        editor.add_argument(call, "random_state", seed)
    elif name.startswith("torch.") and torch is not None:
        editor.add_argument(call, "generator", f"{torch}.Generator().manual_seed({seed})")
    elif not name.startswith("torch.") and maker and isinstance(owner, (Name, Attr)):
        # `np.random.permutation(n)` becomes `np.random.RandomState(seed).permutation(n)`.
        editor.wrap(owner, "", f".{maker}({seed})")
    else:
        return False
    return True


def seed_by_worker(model: Model, seedings: list[Seeding], editor: Editor) -> Fix | None:
    """Seed with what torch gives each worker in each pass.

    Not in a function that others call, too: it may be what seeds the program.
    """
    scope, torch = seedings[0].call.scope, imported_module(editor.module, "torch")
    if torch is None or not isinstance(scope, Function) or model.flow.callers(scope):
        return None
    seeded: dict[Expr, set[str]] = {}
    for seeding in seedings:
        seeded.setdefault(seeding.seed, set()).add(seeding.library)
    for seed, libraries in seeded.items():
        # Python and torch take a seed of 64 bits.
        limit = "" if libraries <= {"random", "torch"} else " % 2**32"
        editor.replace(seed, f"{torch}.initial_seed(){limit}")
    why = "the workers draw other numbers than before"
    return editor.fix("Seed with what torch gives each worker", Applicability.UNSAFE, why)


def sync_seed(value: Expr, scope: Scope, verb: str, editor: Editor) -> Fix | None:
    """Let every rank keep or pass the seed of rank 0, by a helper before the first definition."""
    module = editor.module
    distributed = imported_module(module, "torch.distributed")
    if distributed is None:
        return None
    name = fresh_name(module.facts, "_sync_seed", "_sync_random_seed")
    typed = isinstance(scope, Function) and any(
        param.annotation is not None for param in scope.params
    )
    indent = module.source.indent
    editor.define(
        f"def {name}(seed: int) -> int:" if typed else f"def {name}(seed):",
        f'{indent}"""The seed of rank 0, for all ranks. Every rank has to call this."""',
        f"{indent}if not ({distributed}.is_available() and {distributed}.is_initialized()):",
        f"{indent * 2}return seed",
        f"{indent}seeds = [seed]",
        f"{indent}{distributed}.broadcast_object_list(seeds, src=0)",
        f"{indent}return seeds[0]",
    )
    editor.wrap(value, f"{name}(", ")")
    why = "every rank has to build one, or the others wait"
    return editor.fix(f"{verb} the seed of rank 0", Applicability.UNSAFE, why)


def draw_in_each_pass(
    iterate: Function, draw: Call, attribute: str, taken: Collection[str], editor: Editor
) -> Fix | None:
    """Draw what an attribute keeps again at the start of each pass, as the constructor does.

    With what is kept or global: a generator that is made for the draw would draw the same again,
    so the object keeps it, in an attribute that is not ``taken``.
    """
    built, stmt, source = draw.scope, draw.stmt, editor.source
    if (
        not isinstance(built, Function)
        or built.name != "__init__"
        or stmt is None
        or stmt.parent is not None  # it is not always drawn
        or built.outer is not iterate.outer
        or built.self_name is None
        or built.self_name != iterate.self_name
    ):
        return None
    made = _made_for(draw, built)
    if len(made) > 1 or (made and "generator" in taken):
        return None
    others = dict.fromkeys(made, f"{built.self_name}.generator")
    kept = f"{built.self_name}.{attribute}"
    stores = [s for s in built.stores if unparse(s.target) == kept]
    shuffled = shuffled_by(draw)
    if shuffled is not None:
        if not isinstance(stmt, ExprStmt) or not (
            unparse(shuffled) == kept or any(s.value and same(s.value, shuffled) for s in stores)
        ):
            return None
        again = _with_kept(source, stmt, iterate, {**others, shuffled: kept})
    else:
        is_set = isinstance(stmt, Assign) and [unparse(one) for one in stmt.targets] == [kept]
        again = _with_kept(source, stmt, iterate, others) if is_set else None
    if again is None or again.kept & {*taken}:
        return None
    keeps = [f"{built.self_name}.{name} = {name}" for name in sorted(again.kept)]
    keeps += [f"{name} = {text_of(source, one)}" for one, name in others.items()]
    if keeps:
        editor.insert_before(stmt, *keeps)
    for one, name in others.items():
        editor.replace(one, name)
    editor.insert_first(iterate, again.code)
    return editor.fix("Draw it anew in each pass", Applicability.UNSAFE, "a run may rely on it")


def count_passes(
    model: Model, seeding: Call, seed: Expr, taken: Collection[str], editor: Editor
) -> Fix | None:
    """Let a sampler count its passes, and add their number to the one seed of all.

    Ranks that make as many passes have the same seed, as before.
    """
    iterate, stmt = seeding.scope, seeding.stmt
    cls = iterate.outer if isinstance(iterate, Function) else None
    init = cls.method("__init__") if isinstance(cls, Class) else None
    if (
        not isinstance(iterate, Function)
        or init is None
        or stmt is None
        or any(isinstance(around, (For, While)) for around in stmt.ancestors())
        or iterate.self_name is None
        or iterate.self_name != init.self_name
        or _PASSES in taken
        or EPOCH.is_mentioned(seed)
    ):
        return None
    counter, code = f"{iterate.self_name}.{_PASSES}", text_of(editor.source, seed)
    plain = code if isinstance(seed, (Attr, Call, Const, Name)) else f"({code})"
    editor.replace(seed, summed(model, seeding, plain, counter))
    editor.insert_after(stmt, f"{counter} += 1").append(init, f"{counter} = 0")
    why = "a run may rely on the order"
    return editor.fix("Seed each pass by its number, too", Applicability.UNSAFE, why)


#: The attribute that counts.
_PASSES = "passes"


def _made_for(draw: Call, built: Function) -> list[Expr]:
    """What a draw takes its numbers from, where that is made in the draw, or for it."""
    used = [one.value for one in draw.args if one.keyword]
    if isinstance(draw.func, Attr):
        used.append(draw.func.value)
    return [
        one
        for one in used
        if any(isinstance(node, Call) for node in walk(one))
        or (isinstance(one, Name) and one.id in built.bindings and built.param(one.id) is None)
    ]


class _Again(NamedTuple):
    """A constructor's statement as another method can say it, with attributes for parameters."""

    code: str
    kept: set[str]
    """Parameters that the constructor has yet to keep, each in an attribute of its name."""


def _with_kept(
    source: SourceFile, stmt: Stmt, method: Function, others: dict[Expr, str]
) -> _Again | None:
    built = stmt.scope
    assert isinstance(built, Function)
    code, others = text_of(source, stmt), dict(others)
    kept = set[str]()
    replaced = {node for one in others for node in walk(one)}
    for node in nodes_in([stmt]):
        if not isinstance(node, Name) or node in replaced or node.id == built.self_name:
            continue
        if not means_the_same(node, method):
            as_name = [s.target for s in built.stores if s.value and same(s.value, node)]
            held = [one for one in as_name if isinstance(one, Attr) and self_class(one.value)]
            if built.param(node.id) is None or len(held) > 1:
                return None
            if not held:
                kept.add(node.id)
            name = held[0].name if held else node.id
            others[node] = f"{built.self_name}.{name}"
    begin = offsets(source, stmt)[0]
    places = {offsets(source, node): text for node, text in others.items()}
    for (start, end), text in sorted(places.items(), reverse=True):
        code = code[: start - begin] + text + code[end - begin :]
    return None if "\n" in code else _Again(code, kept)
