"""Files of a tree without what a rule failed at."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable

from sampler_lint.syntax.navigation import walk
from sampler_lint.syntax.nodes import Expr, Name, Node, PartOfFacts, Scope
from sampler_lint.workspace.project import Module


def without(modules: Iterable[Module], hidden: Collection[Node]) -> list[Module]:
    """The files with those calls, functions and classes that are not hidden, nor in what is."""

    def is_hidden(scope: Scope) -> bool:
        return any(each in hidden for each in scope.outward())

    parts = []
    for module in modules:
        facts = module.facts
        if facts not in hidden:
            calls = [c for c in facts.all_calls if c not in hidden and not is_hidden(c.scope)]
            functions = [function for function in facts.functions if not is_hidden(function)]
            classes = [cls for cls in facts.classes if not is_hidden(cls)]
            slices = [cut for cut in facts.slices if not is_hidden(_scope(cut, facts))]
            part = copy.copy(module)
            part.facts = PartOfFacts(facts, functions, classes, calls, slices)
            parts.append(part)
    return parts


def _scope(expr: Expr, outermost: Scope) -> Scope:
    """Where an expression stands, by the first name in it."""
    return next((node.scope for node in walk(expr) if isinstance(node, Name)), outermost)
