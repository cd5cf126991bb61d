"""Fixes: the program's seed is passed to the sampler, through its factories."""

from __future__ import annotations

from collections.abc import Sequence

from sampler_lint.domain.model import Model
from sampler_lint.domain.seed_names import KeptSeed, Seed
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.edits.seed_fixes import (
    MAY_BE_NO_INT,
    NOT_PASSED_EVERYWHERE,
    called,
    is_spelled,
    pass_in,
    pass_seed,
    seed_generators,
    spelled,
    take_seed,
)
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules.smp201_seed_not_passed.fixed import Fixed, Unpassed
from sampler_lint.syntax.nodes import Call, Function


def pass_to_sampler(site: Call, fixed: Fixed, seed: Seed, editor: Editor) -> Fix:
    """Pass the seed in the call that builds the sampler."""
    value = _as_taken(seed, fixed, seed.code)
    pass_seed(editor, site, fixed.parameter, fixed.given, value)
    applicability = Applicability.UNSAFE if seed.is_number is None else Applicability.SAFE
    return editor.fix(f"Pass `{fixed.parameter}={value}`", applicability, MAY_BE_NO_INT)


def keep_seed(site: Call, fixed: Fixed, kept: KeptSeed, editor: Editor) -> Fix:
    """Keep the seed where the constructor can name it, and pass what is kept."""
    code = f"{kept.init.params[0].name}.{kept.attribute}"
    editor.insert_before(kept.before, f"{code} = {kept.seed.code}")
    pass_seed(editor, site, fixed.parameter, fixed.given, _as_taken(kept.seed, fixed, code))
    applicability = Applicability.UNSAFE if kept.seed.is_number is None else Applicability.SAFE
    return editor.fix(f"Keep the seed as `{code}`, and pass it", applicability, MAY_BE_NO_INT)


def _as_taken(seed: Seed, fixed: Fixed, code: str) -> str:
    """The seed's spelling as the sampler takes it: a None only where it has one of its own."""
    return code if fixed.takes_none else spelled(Seed(code, seed.is_number))


def add_parameter(
    model: Model, function: Function, site: Call, fixed: Fixed, editor: Editor
) -> Fix:
    """Add ``seed`` to the factory, use it, document it, and pass it in every call of the tree."""
    default = "0" if fixed.given is None else text_of(editor.source, fixed.given)
    pass_seed(editor, site, fixed.parameter, fixed.given, "seed")
    take_seed(editor, function, default)
    if default == "0":
        seed_generators(model, editor, function)
    calls = [
        call
        for call in model.flow.callers(function)
        if is_spelled(call, function) and _shuffles_through(model, site, call)
    ]
    passed, everywhere = pass_in(model, editor, calls, "seed", untyped=True)
    if not passed:
        applicability = Applicability.DISPLAY  # as long as nobody passes it, nothing changes
    elif everywhere and not editor.module.is_library(function):
        applicability = Applicability.SAFE
    else:
        applicability = Applicability.UNSAFE
    title = f"Give `{called(function)}` a `seed` parameter"
    return editor.fix(title, applicability, NOT_PASSED_EVERYWHERE)


def pass_where_missing(model: Model, unpassed: Sequence[Unpassed], editor: Editor) -> Fix | None:
    """Pass the program's seed in every call of factories that take one."""
    anywhere, everywhere = False, True
    for one in unpassed:
        some, every = pass_in(model, editor, one.calls, one.parameter, untyped=True)
        anywhere, everywhere = anywhere or some, everywhere and every
    if not anywhere:
        return None
    applicability = Applicability.SAFE if everywhere else Applicability.UNSAFE
    names = ", ".join(f"`{called(one.function)}`" for one in unpassed)
    return editor.fix(f"Pass the seed to {names}", applicability)


def _shuffles_through(model: Model, site: Call, call: Call) -> bool:
    """Whether the sampler built at ``site`` may shuffle when its factory is called by ``call``."""
    given = site.keyword("shuffle")
    constants = {True} if given is None else model.flow.constants(given, call)
    return constants is None or any(constants)
