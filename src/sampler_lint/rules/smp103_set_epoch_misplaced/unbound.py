"""An epoch that no code gives a value: NameError, in the distributed run alone."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.editor import replacing
from sampler_lint.findings import Applicability
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import unbound_names, unparse, walk
from sampler_lint.syntax.nodes import For, Name, Scope, Stmt, While


def unbound(model: Model) -> Iterator[Suspect]:
    """``set_epoch(epoch)`` where nothing is called ``epoch``."""
    unknown: dict[Scope, list[Name]] = {}
    for call in model.epoch_setters:
        module = model.module_of(call.scope)
        if not call.args or module.facts.star_imports or is_test(module):
            continue
        given = {node for arg in call.args for node in walk(arg.value) if isinstance(node, Name)}
        if given and call.scope not in unknown:
            unknown[call.scope] = [*unbound_names(call.scope)]
        missing = given.intersection(unknown.get(call.scope, ()))
        for name in sorted(missing, key=lambda each: (each.row, each.col)):
            if is_expected(model, name, NameError, by_name=True):
                continue
            counter = counter_around(call.stmt)
            fix = None
            if counter is not None:
                title = f"Pass `{counter}`"
                fix = replacing(name, counter, title, Applicability.UNSAFE)
            yield Suspect(
                module,
                name,
                f"`{unparse(call.func)}` is given `{name.id}`, which is not defined",
                fix=fix,
                effect="NameError when it runs",
                hides=True,
                advice="" if counter is None else f"pass `{counter}`, which counts the epochs",
            )


def counter_around(stmt: Stmt | None) -> str | None:
    """What counts the turns of the loop around a statement, by a plain name."""
    for loop in stmt.ancestors() if stmt is not None else ():
        if isinstance(loop, (For, While)):
            epoch = epoch_expression(loop)
            if isinstance(epoch, Name):
                return epoch.id
    return None
