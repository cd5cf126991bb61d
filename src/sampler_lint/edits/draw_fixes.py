"""Drawing from a generator that all ranks seed alike, in place of the process's own."""

from __future__ import annotations

from sampler_lint.analysis.points_to import Ext
from sampler_lint.domain.model import Model
from sampler_lint.domain.seed_names import in_scope
from sampler_lint.domain.shards import GlobalDraw
from sampler_lint.edits.fixes import (
    add_keyword,
    define_helper,
    fix,
    fresh_name,
    imported_module,
    text_of,
)
from sampler_lint.edits.region import Planned, line_indent, offsets
from sampler_lint.edits.seed_fixes import spelled
from sampler_lint.findings import Applicability, Edit, Fix
from sampler_lint.syntax.nodes import Attr, Function, Name, Store
from sampler_lint.workspace.project import Module

#: What makes a generator with the functions that the library's own module has.
_MAKERS = {"numpy": "RandomState", "random": "Random"}


def draw_alike(model: Model, draws: list[GlobalDraw]) -> Fix | None:
    """Give every draw a generator of its own, seeded with the program's seed."""
    edits: list[Edit | Planned] = []
    for draw in draws:
        seed = in_scope(model, draw.module, draw.call.scope, draw.call)
        edit = _edit(model, draw, spelled(seed)) if seed is not None else None
        if edit is None:
            return None
        edits.append(edit)
    message = "Draw from a generator that all ranks seed alike"
    return fix(message, Applicability.UNSAFE, edits, draws[0].module.source)


def _edit(model: Model, draw: GlobalDraw, seed: str) -> Edit | Planned | None:
    call, module = draw.call, draw.module
    names = {value.dotted for value in model.flow.values(call.func) if isinstance(value, Ext)}
    if len(names) != 1:
        return None
    name = names.pop()
    if name.startswith("sklearn."):
        return add_keyword(module, call, "random_state", seed)
    if name.startswith("torch."):
        torch = imported_module(module, "torch")
        if torch is None:
            return None
        return add_keyword(module, call, "generator", f"{torch}.Generator().manual_seed({seed})")
    maker = _MAKERS.get(draw.library)
    owner = call.func.value if isinstance(call.func, Attr) else None
    if maker is None or not isinstance(owner, (Name, Attr)):
        return None
    # `np.random.permutation(n)` becomes `np.random.RandomState(seed).permutation(n)`.
    made = f"{text_of(module.source, owner)}.{maker}({seed})"
    return Edit(module.source.path, *offsets(module.source, owner), made)


def sync_seed(module: Module, keeps: Store) -> Fix | None:
    """Let every rank keep the seed of rank 0, by a helper before the file's first definition."""
    if keeps.value is None:
        return None
    distributed = imported_module(module, "torch.distributed")
    if distributed is None:
        return None
    name = fresh_name(module.facts, "_sync_seed", "_sync_random_seed")
    source = module.source
    init = keeps.scope
    typed = isinstance(init, Function) and any(
        param.annotation is not None for param in init.params
    )
    indent = "\t" if line_indent(source, keeps.stmt.row).startswith("\t") else "    "
    helper = define_helper(
        module,
        [
            f"def {name}(seed: int) -> int:" if typed else f"def {name}(seed):",
            f'{indent}"""The seed of rank 0, for all ranks. Every rank has to call this."""',
            f"{indent}if not ({distributed}.is_available() and {distributed}.is_initialized()):",
            f"{indent * 2}return seed",
            f"{indent}seeds = [seed]",
            f"{indent}{distributed}.broadcast_object_list(seeds, src=0)",
            f"{indent}return seeds[0]",
        ],
    )
    if helper is None:
        return None
    start, end = offsets(source, keeps.value)
    value = Edit(source.path, start, end, f"{name}({source.text[start:end]})")
    return fix("Keep the seed of rank 0", Applicability.UNSAFE, [helper, value], source)
