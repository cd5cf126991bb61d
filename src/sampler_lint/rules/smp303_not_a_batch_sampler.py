"""SMP303: yields batches, but is no ``BatchSampler`` where one is demanded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.values import Ext, Obj
from sampler_lint.domain.injection import Injection, injections
from sampler_lint.domain.model import BATCH_SAMPLER, SAMPLER, Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.loader_fixes import named_beside
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import statements
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Expr,
    If,
    Index,
    Name,
    Raise,
    Simple,
    Stmt,
    Unary,
    last_name,
)
from sampler_lint.workspace.project import Module


class NotABatchSampler(Rule):
    """A class is used as a batch sampler where a subclass of `BatchSampler` is required.

    What it does:
        Reports a class whose objects are passed as `batch_sampler=` and reach a check that only a
        `torch.utils.data.BatchSampler` passes: an `assert isinstance(x, BatchSampler)` or an `if
        not isinstance(x, BatchSampler): raise` in this repository, or Ignite's
        `DeterministicEngine`. A check that has a branch for other objects does not count.

    Why is this bad?
        torch's DataLoader takes anything that yields lists of indices, so the class works until
        the check is reached, where a TypeError or AssertionError stops the run.

    Fix safety:
        Safe when the class derives from `Sampler` alone, defines `__iter__` and `__len__` itself
        and calls no `__init__` of its base: the base changes to `BatchSampler`, whose methods
        are then all overridden. Unsafe where the program reads what only the constructor of that
        sets, as `batch_size`. Otherwise no fix is offered.

    How it is proved:
        Invariant `runs`: before the fix the script fails at the check, after it every rank
        finishes.

    References:
        - torch/utils/data/dataloader.py, `DataLoader.__init__`, which checks nothing
        - ignite/engine/deterministic.py, `ReproducibleBatchSampler.__init__`
        - https://github.com/Lightning-AI/pytorch-lightning/issues/19657
        - not met in public code yet
    """

    code = "SMP303"
    name = "not-a-batch-sampler"
    symptoms = (
        "it runs on one GPU and fails on several",
        "TypeError or AssertionError: a BatchSampler is expected",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Follow what is passed as ``batch_sampler=`` to the tests of the tree."""
        used = {
            cls: loader
            for cls, loader in model.used_as_batch_sampler.items()
            if model.is_a(cls, BATCH_SAMPLER) is False
        }
        if not used:
            return
        tests = dict(_demands(model))
        injection = injections(model)
        for cls, loader in used.items():
            module = model.module_of(cls)
            why = [Related(model.place_of(loader), "used as `batch_sampler=` here")]
            if cls in tests:
                demand = tests[cls]
                why.append(
                    Related(model.place(demand.scope, demand), "only a BatchSampler passes here")
                )
                who = f"`{model.place(demand.scope, demand)}` rejects it"
            else:
                refused = _refused(model, module, injection)
                if refused is None:
                    continue
                who = refused
            yield _suspect(model, module, cls, who, tuple(why))


def _refused(model: Model, module: Module, injection: Injection) -> str | None:
    """What a framework of the program does with what is no ``BatchSampler``."""
    return next(
        (
            contract.without
            for trainer in sorted(injection.trainers(module))
            for contract in model.contracts(module, trainer, "demands", "batch_sampler")
            if contract.names == ("BatchSampler",)
        ),
        None,
    )


def _demands(model: Model) -> Iterator[tuple[Class, Stmt]]:
    """The classes of the objects that a test refuses, with the test."""
    for module in model.modules:
        for scope in module.facts.scopes:
            if "isinstance" not in scope.called:
                continue
            for stmt in statements(scope.body):
                tested = _refused_unless_batch_sampler(model, stmt)
                if tested is None:
                    continue
                for value in model.flow.values(tested):
                    if isinstance(value, Obj) and isinstance(value.cls, Class):
                        yield value.cls, stmt


def _refused_unless_batch_sampler(model: Model, stmt: Stmt) -> Expr | None:
    """``x`` in ``assert isinstance(x, BatchSampler)``, ``if not isinstance(…): raise …``."""
    test: Expr | None = None
    if isinstance(stmt, Simple) and stmt.kind == "assert" and stmt.parts:
        test = stmt.parts[0]
    elif (
        isinstance(stmt, If)
        and stmt.body
        and isinstance(stmt.body[-1], Raise)
        and isinstance(stmt.test, Unary)
        and stmt.test.op == "Not"
    ):
        test = stmt.test.operand
    if not isinstance(test, Call) or last_name(test.func) != "isinstance":
        return None
    given = test.positional
    if len(given) != 2 or model.flow.values(given[1]) != frozenset({Ext(BATCH_SAMPLER)}):
        return None
    return given[0]


def _suspect(
    model: Model, module: Module, cls: Class, who: str, why: tuple[Related, ...]
) -> Suspect:
    return Suspect(
        module,
        name_of(module, cls),
        f"`{cls.name}` yields batches but is not a `torch.utils.data.BatchSampler`",
        why=why,
        fix=partial(_derive, model, cls),
        effect=who,
        advice="subclass `BatchSampler`",
    )


def _derive(model: Model, cls: Class, editor: Editor) -> Fix | None:
    """Put ``BatchSampler`` in the place of ``Sampler``, where nothing inherited is used."""
    if (
        len(cls.bases) != 1
        or tuple(model.flow.mro(cls)) != (cls, SAMPLER)
        or cls.method("__iter__") is None
        or cls.method("__len__") is None
        or model.flow.base_init_calls(cls)
        or cls.method("__init__") is None
    ):
        return None
    base = cls.bases[0]
    named = base.value if isinstance(base, Index) else base
    if isinstance(named, Attr) and named.name == "Sampler":
        new = text_of(editor.source, named).removesuffix("Sampler") + "BatchSampler"
    elif isinstance(named, Name):
        spelled = named_beside(editor, named, "BatchSampler")
        if spelled is None:
            return None
        new = spelled
    else:
        return None
    # BatchSampler is no generic class in torch 2.0: Sampler[list] loses its index.
    return editor.replace(base, new).fix("Derive it from `BatchSampler`", Applicability.SAFE)
