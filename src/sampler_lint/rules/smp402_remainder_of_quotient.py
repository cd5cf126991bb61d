"""SMP402: the remainder is taken of a quotient instead of the divided count."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sampler_lint.domain.concepts import DEVICES, PROCESSES, SAMPLER_CLASS, WORKERS, Concept
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import replacing
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Related
from sampler_lint.limits import DEEPEST_CALLS
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._quotient import (
    Quotient,
    Remainder,
    hands_out_leftovers,
    quotients,
    remainders,
    spelled_as_before,
    unchanged_between,
)
from sampler_lint.syntax.navigation import nodes_in, same, statements
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Scope,
)
from sampler_lint.workspace.project import Module

_PARTS = Concept(spelled=re.compile(r"sample|epoch|batch|part|chunk", re.IGNORECASE))


class RemainderOfQuotient(Rule):
    """After `q = n // k`, the remainder is taken of `q` instead of `n`.

    What it does:
        Reports `q % k` after `q = n // k` where the remainder decides which part gets one more
        element (it is compared with a part's index, or guards `q += 1`). Not reported where a
        number is split into digits (`minutes = seconds // 60; minutes % 60`).

    Why is this bad?
        The first `n % k` parts must hold one element more than the others. `q % k` says nothing
        about that: some samples are yielded twice or never, and `__len__` differs from what
        `__iter__` yields. Both names are valid, so no error is raised.

    Fix safety:
        Safe: `q` is replaced by `n`, as named where `q` is assigned. Nothing assigns `q`, `n` or
        `k` in between. Unsafe where `n` is an expression, of which something is assigned there.

    How it is proved:
        Invariant `coverage`: before the fix the parts together miss samples (or claim a
        length they do not yield), after it they yield each sample once.

    References:
        - https://github.com/mit-han-lab/efficientvit/issues/175
        - met in https://github.com/mit-han-lab/efficientvit
          (efficientvit/samcore/data_provider/utils.py)
    """

    code = "SMP402"
    name = "remainder-of-quotient"
    symptoms = (
        "some samples are never read",
        "samples are repeated within an epoch",
        "len(loader) does not match the number of batches",
    )
    invariant = "coverage"
    fixable = "always"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look for the idiom in sampler classes and in functions that split data."""
        for function, always in _splitting(model).items():
            yield from self._scope(model.module_of(function), function, always=always)

    def _scope(self, module: Module, scope: Scope, *, always: bool) -> Iterator[Suspect]:
        found = list(quotients(scope))
        if not found:
            return
        for remainder in remainders(scope):
            for quotient in found:
                if (
                    same(remainder.operand, quotient.target)
                    and same(remainder.node.right, quotient.parts)
                    and remainder.stmt.order > quotient.stmt.order
                    and unchanged_between(scope, quotient, remainder.stmt)
                    and hands_out_leftovers(scope, remainder, quotient)
                    and (always or _splits_data(quotient))
                    and not _is_divided_again(scope, quotient)
                ):
                    is_kept = spelled_as_before(scope, quotient, remainder.stmt)
                    yield self._suspect(module, remainder, quotient, is_kept=is_kept)
                    break

    def _suspect(
        self, module: Module, remainder: Remainder, quotient: Quotient, *, is_kept: bool
    ) -> Suspect:
        source = module.source
        operand = text_of(source, remainder.operand)
        count = text_of(source, quotient.count)
        parts = text_of(source, quotient.parts)
        message = f"`{operand}` in `{operand} % {parts}` is already `{count} // {parts}`"
        why = (Related(module.place(quotient.stmt), "quotient taken here"),)

        text = count if _is_atom(quotient.count) else f"({count})"
        safe = Applicability.SAFE if is_kept else Applicability.UNSAFE
        title, why_not = f"Take the remainder of `{count}`", f"`{count}` has changed by then"
        fix = replacing(remainder.operand, text, title, safe, why_not)
        return Suspect(
            module,
            remainder.operand,
            message,
            why=why,
            fix=fix,
            effect="the remainder does not say which parts hold one more: samples are lost or "
            "repeated, and lengths are wrong",
            advice=f"take the remainder of `{count}`",
            hides=True,  # SMP304 takes it for the cause of an untrue length
        )


def _splitting(model: Model) -> dict[Function, bool]:
    """The functions to look at: True for those of samplers and those that samplers call."""
    out: dict[Function, bool] = {}
    todo: list[Function] = []
    for module in model.modules:
        for function in module.facts.functions:
            cls = _class_of(function)
            of_sampler = cls is not None and (
                SAMPLER_CLASS.says(cls.name) or model.is_sampler_class(cls)
            )
            out[function] = of_sampler
            if of_sampler:
                todo.append(function)
    for _ in range(DEEPEST_CALLS):
        reached = [callee for f in todo for call in f.calls for callee in model.flow.callees(call)]
        todo = [callee for callee in dict.fromkeys(reached) if not out.get(callee)]
        out.update(dict.fromkeys(todo, True))
    return out


def _class_of(function: Function) -> Class | None:
    return next((scope for scope in function.outward() if isinstance(scope, Class)), None)


def _splits_data(quotient: Quotient) -> bool:
    about = (_PARTS, PROCESSES, DEVICES, WORKERS)
    return any(concept.is_mentioned(quotient.parts) for concept in about)


def _is_divided_again(scope: Scope, quotient: Quotient) -> bool:
    """Whether each part is itself divided into as many: then it is the rest of a part."""
    return any(
        isinstance(node, Bin)
        and node.op == "FloorDiv"
        and same(node.left, quotient.target)
        and same(node.right, quotient.parts)
        for node in nodes_in(statements(scope.body))
    )


def _is_atom(expr: Expr) -> bool:
    return isinstance(expr, (Attr, Call, Const, Index, Name))
