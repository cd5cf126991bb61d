"""SMP301: a batch sampler lacks the attributes that a framework or the tree reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sized
from functools import partial
from typing import TypeGuard

from sampler_lint.analysis.origins import part_of
from sampler_lint.domain.batches import is_abstract, is_batch_sampler
from sampler_lint.domain.concepts import BATCH_SIZE, DEVICES, PROCESSES, WORKERS
from sampler_lint.domain.injection import Injection, injections
from sampler_lint.domain.model import BATCH_SAMPLER, SAMPLER, Model, scopes_inside
from sampler_lint.domain.programs import built_outside_tests, in_test_function, is_test
from sampler_lint.domain.stored_outside import is_stored_outside
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._foreign_reads import reads_of_batch_samplers
from sampler_lint.rules._trials import graded
from sampler_lint.syntax.navigation import nodes_in, self_class, self_stores, statements, walk
from sampler_lint.syntax.nodes import (
    SUMS,
    Assign,
    Attr,
    Bin,
    Class,
    Compare,
    Expr,
    Function,
    Name,
    Return,
)
from sampler_lint.workspace.project import Module


class BatchSamplerWithoutBatchSize(Rule):
    """A batch sampler has no `batch_size`, but a framework used in this repository reads it.

    What it does:
        Reports a class that is passed as `batch_sampler=`, derives from `BatchSampler`, or is a
        torch `Sampler` that yields lists, where nothing in its hierarchy defines `batch_size` and
        the program trains with a framework that reads it (Lightning, which needs `drop_last` too,
        since 1.5; catalyst; mmengine's FlexibleRunner; Ignite's batch-size scheduler; Accelerate
        before 1.14 when both are missing). Also where the repository's own code reads
        `batch_size`, `drop_last` or `sampler` of a batch sampler that has none. Not reported where
        Lightning's Trainer gets `use_distributed_sampler=False` (`replace_sampler_ddp` before 2.0),
        and where the repository's requirements allow no version that reads it
        (docs/frameworks.md).

        Likely, with the word "would", where the program uses none of these frameworks: of batch
        samplers that nothing in the repository builds, as in libraries, whose users may use one,
        and of those that are told the one size of their batches and keep it under another name.

    Why is this bad?
        torch itself never reads the attribute, so single-GPU training works. Lightning reads
        `batch_sampler.batch_size` when it shards the loader or runs under DeepSpeed, and fails
        with `AttributeError: ... object has no attribute 'batch_size'`, or refuses to shard.

    Fix safety:
        Safe when the size is one constructor parameter or the sum of several: the attributes are
        set at the end of the assignments in `__init__`, and nothing else reads them. Unsafe when
        the size is derived from a product in `__len__`, it is changed later, or the batches have
        several sizes in a simulation: Accelerate leaves out those of another size.

    How it is proved:
        Invariant `runs`: a trainer that reads `loader.batch_sampler.batch_size` as the framework
        does fails before the fix and finishes after it.

    References:
        - https://github.com/Lightning-AI/pytorch-lightning/issues/19371
        - lightning/pytorch/utilities/data.py, `_dataloader_init_kwargs_resolve_sampler`
        - lightning/pytorch/strategies/deepspeed.py, `_auto_select_batch_size`
        - met in https://github.com/HiLab-git/SSL4MIS (code/dataloaders/dataset.py, at 06df604, line
          206): the class of https://github.com/Lightning-AI/pytorch-lightning/issues/19371
    """

    code = "SMP301"
    name = "batch-sampler-without-batch-size"
    symptoms = (
        "it runs on one GPU and fails on several",
        "AttributeError: object has no attribute 'batch_size'",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Compare what each batch sampler defines with what the tree's frameworks read."""
        found = {cls: suspect for suspect, cls in self._of_frameworks(model, injections(model))}
        for module, read, owner in reads_of_batch_samplers(model):
            kind = owner.cls
            if not isinstance(kind, Class) or not is_batch_sampler(model, kind):
                continue
            if kind not in found or found[kind].grade is Grade.LIKELY:
                found[kind] = _read_here(model, module, read, kind)
        for kind, suspect in found.items():
            yield from graded(model, kind, self.code, suspect)

    def _of_frameworks(self, model: Model, injection: Injection) -> Iterator[tuple[Suspect, Class]]:
        for module, cls in model.classes():
            if is_test(module) or not is_batch_sampler(model, cls) or is_abstract(cls):
                continue  # no Trainer gets what a test makes up
            trainers = injection.trainers(module)
            attributes = model.attributes(cls)
            missing = [n for n in ("batch_size", "drop_last") if n not in attributes.names]
            if attributes.open is not None or not missing:
                continue
            assumes = (
                _is_for_others(model, cls) or ("batch_size" in missing and _hides_its_size(cls))
            ) and injection.may_rebuild(module, cls)
            if not (assumes or trainers):
                continue
            failure = next(
                (
                    contract.without
                    for trainer in sorted(trainers)
                    for contract in model.contracts(module, trainer, "reads", "batch_sampler")
                    if contract.without
                    and not set(missing).isdisjoint(contract.names)
                    and _needs_missing(injection, module, cls, trainer, missing)
                ),
                None,
            )
            if failure is not None:
                yield self._suspect(model, module, cls, missing, failure), cls
            elif assumes and model.is_a(cls, SAMPLER) is True and _would_miss(trainers, missing):
                yield self._suspect(model, module, cls, missing, None), cls

    def _suspect(
        self, model: Model, module: Module, cls: Class, missing: list[str], failure: str | None
    ) -> Suspect:
        size = _batch_size(model, cls) if "batch_size" in missing else ("", Applicability.SAFE)
        lacks = " and no ".join(f"`{name}`" for name in missing)
        reader = "frameworks read" if failure is None else "the framework used here reads"
        sets = size is not None and size[0]
        loader = model.used_as_batch_sampler.get(cls)
        why = (
            ()
            if loader is None
            else (Related(model.place_of(loader), "used as `batch_sampler=` here"),)
        )
        grade = Grade.LIKELY if failure is None else Grade.CERTAIN
        fix = None if size is None else partial(_set_missing, model, cls, missing, *size)
        return Suspect(
            module,
            name_of(module, cls),
            f"batch sampler `{cls.name}` has no {lacks}, which {reader}",
            why=why,
            fix=fix,
            grade=grade,
            effect=failure
            or "Lightning or Accelerate, which shard by `batch_size` and `drop_last`, would refuse "
            "it or fail with AttributeError",
            advice=f"set `self.batch_size = {size[0]}`" if size is not None and sets else "",
            hides=True,
        )


def _read_here(model: Model, module: Module, read: Attr, cls: Class) -> Suspect:
    where = model.module_of(cls)
    missing = [read.name]
    size = _batch_size(model, cls) if read.name == "batch_size" else ("", Applicability.SAFE)
    can_set = size is not None and read.name != "sampler"
    fix = partial(_set_missing, model, cls, missing, *size) if size and can_set else None
    return Suspect(
        where,
        name_of(where, cls),
        f"batch sampler `{cls.name}` has no `{read.name}`, which this repository reads",
        why=(Related(module.place(read), "read here"),),
        fix=fix,
        effect=f"`{text_of(module.source, read)}` raises AttributeError when the line runs",
        advice=f"set `self.{read.name}` in `__init__`",
        hides=True,
    )


def _is_for_others(model: Model, cls: Class) -> bool:
    """Whether the tree itself, a test or registry in it too, makes no use of the class."""
    return cls not in model.used_as_batch_sampler and not (
        in_test_function(model, cls)
        or cls.decorators
        or any(built_outside_tests(model, model.built.get(cls, ())))
    )


def _hides_its_size(cls: Class) -> bool:
    """Whether the batches have one size, which the class is told and keeps under another name."""
    init = cls.method("__init__")
    size = _named_size(cls, init) if init is not None else None
    if init is None or size is None or size[1] is not Applicability.SAFE:
        return False
    params = {param.name for param in init.params}
    kept = {
        name
        for name, value in _stored(cls, init).items()
        if size[0] in (_linear(value, params) or ())
    }
    return bool(kept) and not any(_is_budget(cls, name) for name in kept)


def _is_budget(cls: Class, name: str) -> bool:
    """Whether an attribute bounds a product, as samples times their length: no number of samples.

    ``if longest * (len(batch) + 1) > self.most: yield batch``
    """
    return any(
        isinstance(side, Attr) and side.name == name and self_class(side.value) is cls
        for method in cls.methods
        for compared in nodes_in(statements(method.body))
        if isinstance(compared, Compare)
        and any(
            isinstance(side, Bin) and side.op == "Mult"
            for side in (compared.left, *compared.rights)
        )
        for side in (compared.left, *compared.rights)
    )


def _would_miss(trainers: frozenset[str], missing: list[str]) -> bool:
    """Whether a framework that the tree does not show would miss what is missing.

    Many torch programs give a batch sampler no ``drop_last``, which Lightning alone insists on.
    """
    return "batch_size" in missing or "lightning" in trainers


def _needs_missing(
    injection: Injection, module: Module, cls: Class, trainer: str, missing: list[str]
) -> bool:
    """Whether what the framework reads of this class's objects does not go well without."""
    if trainer == "lightning":
        # A BatchSampler with a `sampler` parameter is rebuilt from its own arguments.
        init = cls.method("__init__")
        replayed = (
            injection.model.is_a(cls, BATCH_SAMPLER) is True
            and init is not None
            and init.param("sampler") is not None
        )
        if "batch_size" not in missing and (replayed or not injection.in_hook(cls)):
            return False  # may be made for a loop of one's own
        return injection.lightning(module, cls)
    # Accelerate takes a batch sampler without drop_last for one that has drop_last=False. Told
    # `even_batches=False` it does without `batch_size`; the rest is SMP306's.
    return trainer != "accelerate" or (len(missing) == 2 and not injection.even_batches_off(module))


# --------------------------------------------------------------------------- the size


def _batch_size(model: Model, cls: Class) -> tuple[str, Applicability] | None:
    """The code that gives the number of samples in a batch from ``__init__``'s own names.

    Of the names that say it, or of those that hold it wherever the class is tried.
    """
    init = cls.method("__init__")
    if init is None:
        return None
    size, stored = _named_size(cls, init), _stored(cls, init)
    if size is not None:
        return size if size[0] else None
    shown = _shown_by_trials(model, cls) & set(stored)
    if shown:
        name = min(shown, key=list(stored).index)
        is_kept = name not in _changed_later(cls, init)
        return f"self.{name}", Applicability.SAFE if is_kept else Applicability.UNSAFE
    params = {param.name for param in init.params[1:] if not param.is_star}
    return _product(cls, init, params, stored)


def _named_size(cls: Class, init: Function) -> tuple[str, Applicability] | None:
    """The same by the names alone; empty where they contradict one another, None if none says."""
    params = {param.name for param in init.params[1:] if not param.is_star}
    wrapped = next((p for p in ("batch_sampler", "base_batch_sampler") if p in params), None)
    if wrapped is not None:
        return f"{wrapped}.batch_size", Applicability.SAFE
    stored = _stored(cls, init)
    used = _read_in(cls, "__iter__") & {name for name in stored if BATCH_SIZE.says(name)}
    total: Counter[str] = Counter()
    for name in sorted(used, key=list(stored).index):
        linear = _linear(stored[name], params)
        if linear is None:
            total[f"self.{name}"] += 1
        else:
            total.update(linear)
    if not used:
        for name in [p.name for p in init.params if p.name in params and BATCH_SIZE.says(p.name)]:
            total[name] += 1
    # Counter.update adds signed counts: (batch - secondary) + secondary is batch.
    terms = [(name, count) for name, count in total.items() if count]
    if terms and all(count == 1 for _, count in terms):
        is_kept = not used & _changed_later(cls, init)
        applicability = Applicability.SAFE if is_kept else Applicability.UNSAFE
        return " + ".join(name for name, _ in terms), applicability
    return ("", Applicability.UNSAFE) if terms else None


def _shown_by_trials(model: Model, cls: Class) -> set[str]:
    """The attributes that hold the size of the batches wherever the class is tried."""
    shown: set[str] | None = None
    sizes = set()
    trials = model.trials(cls)
    for trial in trials.usual or trials.guessed:
        for turn in trial.turns:
            size = max((len(batch) for batch in turn.yielded or () if _is_batch(batch)), default=0)
            if size:
                names = {name for name, number in turn.numbers if number == size}
                shown = names if shown is None else shown & names
                sizes.add(size)
    # Of several, one may be the same by chance, where all worlds have one size.
    return shown if shown and (len(sizes) > 1 or len(shown) == 1) else set()


def _varies(model: Model, cls: Class) -> bool:
    """Whether batches but the last one of a pass have several sizes, or another than is asked for.

    They do, too, where the size is changed from outside. Accelerate leaves out each that has
    another size than ``batch_size`` says.
    """
    init = cls.method("__init__")
    kept = _stored(cls, init) if init is not None else ()
    if any(BATCH_SIZE.says(name) and is_stored_outside(model, cls, name) for name in kept):
        return True
    trials = model.trials(cls)
    for trial in (*trials.usual, *trials.guessed):
        for turn in trial.turns:
            sizes = {len(batch) for batch in (turn.yielded or ())[:-1] if _is_batch(batch)}
            told = {trial.world.batch_size} if trial.takes_batch_size else sizes
            if len(sizes) > 1 or not sizes <= told:
                return True
    return False


def _is_batch(item: object) -> TypeGuard[Sized]:
    return isinstance(item, (list, tuple))


def _stored(cls: Class, init: Function) -> dict[str, Expr]:
    """The attributes that ``__init__`` sets once, with their values."""
    out: dict[str, Expr] = {}
    several = set()
    for target, store in self_stores([init], cls):
        value = part_of(store.value, store.path)
        if target.name in out or value is None or store.how != "assign":
            several.add(target.name)
        else:
            out[target.name] = value
    return {name: value for name, value in out.items() if name not in several}


def _changed_later(cls: Class, init: Function) -> set[str]:
    """The attributes that other methods store."""
    others = (method for method in cls.methods if method is not init)
    return {target.name for target, _ in self_stores(others, cls)}


def _read_in(cls: Class, method_name: str) -> set[str]:
    method = cls.method(method_name)
    if method is None:
        return set()
    scopes = [s for s in scopes_inside(cls) if s is method or s.outer is method]
    return {r.name for s in scopes for r in s.reads if self_class(r.value) is cls}


def _linear(expr: Expr, params: set[str]) -> Counter[str] | None:
    """``a + b - c`` over parameters as signed counts."""
    if isinstance(expr, Name) and expr.id in params:
        return Counter({expr.id: 1})
    if isinstance(expr, Bin) and expr.op in SUMS:
        left, right = _linear(expr.left, params), _linear(expr.right, params)
        if left is None or right is None:
            return None
        if expr.op == "Add":
            left.update(right)
        else:
            left.subtract(right)
        return left
    return None


def _product(
    cls: Class, init: Function, params: set[str], stored: dict[str, Expr]
) -> tuple[str, Applicability] | None:
    """``a * b`` when a length is ``… // (a * b)``, the number of ranks left out."""
    methods = [method for method in (init, cls.method("__len__"), cls.method("__iter__")) if method]
    for method in methods:
        for node in nodes_in(statements(method.body)):
            if isinstance(node, Bin) and node.op == "FloorDiv":
                factors = _factors(node.right, cls, params, stored)
                if factors is not None and len(factors) > 1:
                    return " * ".join(factors), Applicability.UNSAFE
    return None


def _factors(expr: Expr, cls: Class, params: set[str], stored: dict[str, Expr]) -> list[str] | None:
    if isinstance(expr, Bin) and expr.op == "Mult":
        left = _factors(expr.left, cls, params, stored)
        right = _factors(expr.right, cls, params, stored)
        return None if left is None or right is None else left + right
    name = None
    if isinstance(expr, Name) and expr.id in params:
        name = expr.id
    elif isinstance(expr, Attr) and self_class(expr.value) is cls and expr.name in stored:
        value = stored[expr.name]
        name = value.id if isinstance(value, Name) and value.id in params else f"self.{expr.name}"
    if name is None:
        return None
    counts = any(concept.says(name) for concept in (PROCESSES, DEVICES, WORKERS))
    return [] if counts else [name]


# --------------------------------------------------------------------------- the fix


def _set_missing(
    model: Model,
    cls: Class,
    missing: list[str],
    size: str,
    applicability: Applicability,
    editor: Editor,
) -> Fix | None:
    """Set the attributes after the last attribute that ``__init__`` sets in any case."""
    init = cls.method("__init__")
    assert init is not None
    last = None
    for stmt in init.body:
        if any(isinstance(inner, Return) for inner in statements([stmt])):
            break
        if isinstance(stmt, Assign) and any(
            isinstance(node, Attr) and self_class(node.value) is cls
            for target in stmt.targets
            for node in walk(target)
        ):
            last = stmt
    if last is None:
        return None
    receiver = init.params[0].name
    values = {"batch_size": size, "drop_last": _drop_last(cls, init, size)}
    editor.insert_after(last, *(f"{receiver}.{name} = {values[name]}" for name in missing))
    named = " and ".join(f"`{name}`" for name in missing)
    if size and _varies(model, cls):
        applicability = Applicability.UNSAFE
    why = "the batches may have another size"
    return editor.fix(f"Set {named} in `__init__`", applicability, why)


def _drop_last(cls: Class, init: Function, size: str) -> str:
    if size.endswith(".batch_size"):
        return f"{size.removesuffix('.batch_size')}.drop_last"
    if init.param("drop_last") is not None:
        return "drop_last"
    return str(_floors(cls))


def _floors(cls: Class) -> bool:
    """Whether the length rounds down, so that an incomplete last batch is not yielded."""
    method = cls.method("__len__")
    if method is None or len(method.returns) != 1 or method.returns[0].value is None:
        return False
    value = method.returns[0].value
    if isinstance(value, Attr) and self_class(value.value) is cls:
        init = cls.method("__init__")
        value = _stored(cls, init).get(value.name, value) if init is not None else value
    return (
        isinstance(value, Bin)
        and value.op == "FloorDiv"
        and not (isinstance(value.left, Bin) and value.left.op in SUMS)
    )
