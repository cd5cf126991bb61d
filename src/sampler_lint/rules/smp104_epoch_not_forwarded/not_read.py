"""An epoch that is stored, and not read by what makes the order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sampler_lint import catalog
from sampler_lint.analysis.asked import apart
from sampler_lint.domain.concepts import EPOCH, RANGES
from sampler_lint.domain.epoch_state import (
    EpochState,
    Setter,
    changed_elsewhere,
    draws_of,
    is_fixed,
    is_kept_literal,
    read_elsewhere,
    seed_argument,
    seed_parts,
    seedings_of,
)
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, own_scopes
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.edits.seed_fixes import draw_from, summed
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.parameters import Role, role_of
from sampler_lint.properties import coverage
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp104_epoch_not_forwarded.setter import (
    epoch_parameter,
    own_setter,
    self_name,
)
from sampler_lint.syntax.navigation import (
    method_around,
    nodes_in,
    self_class,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import Attr, Call, Comp, Const, For, Function, Name
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.epochs import EpochTrial

_ONE_ORDER = "every epoch repeats one order"
_OF_THE_PROCESS = (
    "the order hangs on what else the process has drawn: ranks may draw different orders, and a "
    "resumed run reads another than the whole one"
)


def unread(model: Model, module: Module, state: EpochState) -> Suspect | None:
    """An epoch that the pass does not read, or that changes nothing in it."""
    setter = state.setter
    trial = model.epoch_trial(state.cls) if setter is not None else None
    if trial is not None and trial.uses and not trial.frozen:
        return _lost_by_default(model, module, state) if trial.idle_by_default else None
    found = _unread(model, module, state)
    if found is not None and setter is not None and model.trials(state.cls).endless:
        if not setter.stored:
            return None  # a pass that never ends holds all epochs: there is only the interface
        found.grade = Grade.LIKELY
    if found is not None or setter is None or trial is None:
        return found
    if changed_elsewhere(model, state):
        return None
    if trial.idle and not trial.changes:
        return _drawn_elsewhere(model, module, state, setter, trial)
    if not trial.draws or trial.changes:
        return None
    return _changes_nothing(model, module, state, setter, trial)


def _lost_by_default(model: Model, module: Module, state: EpochState) -> Suspect | None:
    """An epoch that does nothing while a seed is what it is by default: a product with 0."""
    names = [name for name in model.flow.params(state.cls) or () if role_of(name) is Role.SEED]
    built = model.built.get(state.cls, ())
    given = [any(model.argument(obj, name) is not None for name in names) for obj in built]
    if not names or (given and all(given)):
        return None
    found = seedings_of(state.iteration)
    return Suspect(
        module,
        name_of(module, state.cls),
        f"`{state.cls.name}.set_epoch` does not change the order while `{names[0]}` is the default",
        why=tuple(Related(model.place(call.scope, call), "seeded here") for call in found),
        effect=_ONE_ORDER,
        advice="add the epoch to the seed",
    )


def _orders_as_base(state: EpochState) -> bool:
    """Whether a class neither has a pass of its own nor seeds or draws in what its base's runs."""
    found = (*seedings_of(state.iteration), *draws_of(state.iteration))
    methods = (method_around(call.scope) for call in found)
    return state.cls.method("__iter__") is None and not any(
        method is not None and method.cls is state.cls for method in methods
    )


def _drawn_elsewhere(
    model: Model, module: Module, state: EpochState, setter: Setter, trial: EpochTrial
) -> Suspect | None:
    """A generator seeded with the epoch, and an order drawn before that, or from another."""
    own = own_setter(state.cls, setter.functions)
    if own is None and _orders_as_base(state):
        return None  # what its base does is told there
    from sampler_lint.execution.epochs import Idle

    seeds = f"`{state.cls.name}` seeds a generator with the epoch"
    if trial.idle is Idle.LATE:
        message, advice = f"{seeds} after it has drawn the order", "seed it before the draw"
    elif trial.idle is Idle.UNUSED:
        message, advice = f"{seeds}, and draws nothing from it", "shuffle with it"
    else:
        message = f"{seeds}, and draws the order from another"
        advice = "draw from that one (in torch, with `generator=`)"
    seedings, draws = seedings_of(state.iteration), draws_of(state.iteration)
    fix: Fixer | None = None
    if trial.idle is Idle.APART and len(seedings) == len(draws) == 1:
        fix = partial(draw_from, model, seedings[0], draws[0])
    seeded = [Related(model.place(call.scope, call), "seeded here") for call in seedings]
    drawn = [Related(model.place(call.scope, call), "drawn here") for call in draws]
    return Suspect(
        module,
        name_of(module, own if own is not None else state.cls),
        message,
        why=(*seeded, *(drawn if trial.idle is not Idle.UNUSED else ())),
        fix=fix,
        effect=_OF_THE_PROCESS if trial.idle is Idle.APART and not trial.draws else _ONE_ORDER,
        advice=advice,
    )


def _changes_nothing(
    model: Model, module: Module, state: EpochState, setter: Setter, trial: EpochTrial
) -> Suspect | None:
    """What a run shows where the code alone does not."""
    own = own_setter(state.cls, setter.functions)
    if own is None and _orders_as_base(state):
        return None  # what its base does is told there
    if trial.built and (own is None or setter.inert):
        return None  # an order that may be meant to stay
    found = seedings_of(state.iteration)
    by_epoch = [call for call in found if _seeds_with_epoch(model, state, call)]
    if apart(by_epoch, (call for call in found if call not in by_epoch)):
        return None  # the run took the branch of an object that has a seed
    why = tuple(Related(model.place(call.scope, call), "seeded here") for call in found)
    if trial.frozen:
        when = "when it is built" if trial.built else "in the first pass"
        message = f"`{state.cls.name}` draws its order {when} and keeps it, whatever the epoch"
        advice = "draw it again in `set_epoch`"
    else:
        message = (
            f"`{state.cls.name}.set_epoch` does not change the order: each epoch uses the "
            f"same random seed"
        )
        advice = "seed them with the epoch"
    fix = None if trial.frozen else partial(_seed_with_epoch, model, state, found)
    start = name_of(module, own if own is not None else state.cls)
    return Suspect(module, start, message, why=why, fix=fix, effect=_ONE_ORDER, advice=advice)


def _unread(model: Model, module: Module, state: EpochState) -> Suspect | None:
    """An epoch that nothing reads, by the code."""
    setter = state.setter
    if setter is None:
        return None
    own = own_setter(state.cls, setter.functions)
    if not setter.inert or state.reads(state.iteration):
        return None if own is None else _sets_others(model, module, state, own)
    if own is None and setter.functions and _orders_as_base(state):
        return None  # what its base does is told there
    found = seedings_of(state.iteration)
    bases = [base for base, name in state.iteration.outside if name == "__iter__"]
    if bases and not all(_draws_from_kept(base, found) for base in bases):
        return None if own is None else _hides_base(model, module, state, own)
    if read_elsewhere(model, state, (state.iteration, state.construction)):
        return None
    attributes = ", ".join(f"`self.{name}`" for name in sorted(setter.stored)) or "nothing"
    start = name_of(module, own if own is not None else state.cls)
    stores = (
        f"`{state.cls.name}.set_epoch` only stores {attributes}"
        if own is not None
        else f"`{state.cls.name}` inherits `set_epoch`, which stores {attributes}"
    )
    if not setter.stored:
        stores = f"`{(own or setter.functions[0]).qualname}` keeps no epoch"
    other = other_attribute(model, state)
    if other is not None and (own is not None or setter.functions):
        message = f"{stores}, but `__iter__` reads `self.{other.name}`, which nothing changes"
        fix = partial(_rename_store, model, own, setter.stored, other)
        advice = f"store `self.{other.name}`"
        return Suspect(module, start, message, fix=fix, effect=_ONE_ORDER, advice=advice)
    if found and (bases or draws_of(state.iteration)):
        arguments = [argument for call in found if (argument := seed_argument(call)) is not None]
        if all(is_fixed(model, state, argument) for argument in arguments):
            spelled = unparse(arguments[0])
            why = tuple(Related(model.place(call.scope, call), "seeded here") for call in found)
            if any(EPOCH.is_mentioned(argument) for argument in arguments):
                message = f"{stores}, but the order is seeded with `{spelled}`, which never changes"
                advice = "store the epoch there"
                return Suspect(module, start, message, why=why, effect=_ONE_ORDER, advice=advice)
            return Suspect(
                module,
                start,
                f"{stores}, but the order is seeded with `{spelled}` alone",
                why=why,
                fix=partial(_seed_with_epoch, model, state, found),
                effect=_ONE_ORDER,
                advice=f"seed it with `{spelled} + self.epoch`",
            )
        return None
    if draws_of(state.iteration):
        if (
            own is not None
            and seedings_of(state.construction)
            and all(_draws_own(c) for c in draws_of(state.iteration))
        ):
            return Suspect(
                module,
                start,
                f"{stores}, which nothing reads: the order follows a generator made in `__init__`",
                effect="a run resumed at a later epoch repeats the first epoch's order",
                advice="seed the generator with the epoch in `__iter__`",
            )
        return None
    draws = draws_of(state.construction)
    if state.reads(state.construction) and draws and not all(map(_is_for_many_passes, draws)):
        message = f"{stores}, which only `__init__` reads"
        why = tuple(
            Related(model.place(read.scope, read), "read here, before any `set_epoch`")
            for read in state.reads(state.construction)[:2]
        )
        return Suspect(
            module,
            start,
            message,
            why=why,
            effect="the order is drawn once, and every epoch repeats it",
            advice="draw it in `__iter__`, or again in `set_epoch`",
        )
    return None


def _is_for_many_passes(draw: Call) -> bool:
    """Whether a number of orders are drawn, one behind the other: ``for _ in range(1000)``."""
    stmt = draw.stmt
    if stmt is None:
        return False
    sources = [each.iter for each in stmt.ancestors() if isinstance(each, For)]
    for node in nodes_in([stmt]):
        if isinstance(node, Comp) and any(part is draw for part in walk(node)):
            sources += (each for each in node.iters if all(part is not draw for part in walk(each)))
    return any(
        isinstance(source, Call)
        and RANGES.is_call(source)
        and all(isinstance(x, Const) or EPOCH.is_mentioned(x) for x in source.positional)
        for source in sources
    )


def _sets_others(model: Model, module: Module, state: EpochState, own: Function) -> Suspect | None:
    """A ``set_epoch`` that sets whatever else, and not the epoch that the pass seeds with.

    Not one that hands out the object itself, or reaches attributes without naming them.
    """
    functions = state.setter.functions if state.setter is not None else ()
    if any(
        any(self_class(arg.value) is not None for call in function.calls for arg in call.args)
        or any(read.name == "__dict__" for read in function.reads)
        for function in functions
    ):
        return None
    other = other_attribute(model, state)
    seedings = seedings_of(state.iteration)
    if other is None or any(_seeds_with_epoch(model, state, call) for call in seedings):
        return None
    message = f"`{own.qualname}` does not set `self.{other.name}`, which seeds the order"
    why = (Related(model.place(other.scope, other), "seeded here"),)
    advice = f"store `self.{other.name}`"
    start = name_of(module, own)
    return Suspect(module, start, message, why=why, effect=_ONE_ORDER, advice=advice)


def _seeds_with_epoch(model: Model, state: EpochState, call: Call) -> bool:
    """Whether a call seeds with what ``set_epoch`` stores."""
    seed = seed_argument(call)
    return seed is not None and any(
        isinstance(part, Attr) and part.name in state.stored for part in seed_parts(model, seed)
    )


def _draws_from_kept(base: str, seeded: list[Call]) -> bool:
    """Whether a torch base draws its order from a ``self.generator``, which the class seeds."""
    draws_from = {
        name
        for entry in catalog.known_mro(base)
        for method, names in entry.reads
        if method == "__iter__"
        for name in names
    }
    return "generator" in draws_from and any(
        isinstance(call.func, Attr)
        and isinstance(call.func.value, Attr)
        and call.func.value.name == "generator"
        and self_class(call.func.value.value) is not None
        for call in seeded
    )


def _hides_base(model: Model, module: Module, state: EpochState, own: Function) -> Suspect | None:
    """A ``set_epoch`` that overrides torch's, whose ``__iter__`` reads another attribute."""
    if (DISTRIBUTED_SAMPLER, "__iter__") not in state.iteration.outside or "epoch" in state.stored:
        return None
    family = model.flow.own_mro(state.cls)
    if any("epoch" in cls.bindings for cls in family) or any(
        isinstance(store.target, Attr)
        and (self_class(store.target.value) in family or self_class(store.target.value) is None)
        for store in model.project.stores_near("epoch", state.cls)
    ):
        return None
    taken = epoch_parameter(own)
    if taken is None:
        return None
    _, param = taken
    functions = state.setter.functions if state.setter is not None else ()
    hands_on = any(each.name == own.name and each is not own for each in functions)
    message = (
        f"`{state.cls.name}.set_epoch` never sets the `self.epoch` by which "
        f"`DistributedSampler.__iter__` shuffles"
    )

    def fix(editor: Editor) -> Fix | None:
        if len(own.bindings[param]) > 1:
            return None  # it is changed on the way, to be stored: SMP404's
        editor.append(own, f"super().set_epoch({param})")
        return editor.fix("Set the base's epoch too", Applicability.SAFE)

    return Suspect(
        module,
        name_of(module, own),
        message,
        fix=None if hands_on else fix,  # the one that it hands the epoch on to is changed
        effect=_ONE_ORDER,
        advice=f"call `super().set_epoch({param})`",
    )


def _draws_own(call: Call) -> bool:
    """Whether a draw uses a generator that the object holds."""
    generator = call.keyword("generator")
    if generator is not None:
        return isinstance(generator, Attr) and self_class(generator.value) is not None
    owner = call.func.value if isinstance(call.func, Attr) else None
    return isinstance(owner, Attr) and self_class(owner.value) is not None


def other_attribute(model: Model, state: EpochState) -> Attr | None:
    """An epoch that the pass seeds with and that stays what ``__init__`` made it."""
    if any("setattr" in scope.called for scope in own_scopes(model, state.cls)):
        return None
    for call in seedings_of(state.iteration):
        argument = seed_argument(call)
        if argument is None:
            continue
        for node in seed_parts(model, argument):
            if (
                isinstance(node, Attr)
                and EPOCH.names(node)
                and node.name not in state.stored
                and self_class(node.value) is not None
                and is_kept_literal(model, state.cls, node.name)
            ):
                return node
    return None


def _rename_store(
    model: Model, setter: Function | None, stored: frozenset[str], other: Attr, editor: Editor
) -> Fix | None:
    """Store the epoch in the attribute that the pass reads."""
    if setter is None or setter.cls is None:
        return None
    targets = [
        store.target
        for store in setter.stores
        if isinstance(store.target, Attr) and store.target.name in stored
    ]
    if len(targets) != 1:
        return None
    spelled = f"{text_of(editor.source, targets[0].value)}.{other.name}"
    read = (read for scope in own_scopes(model, setter.cls) for read in scope.reads)
    if any(each.name == targets[0].name for each in read):  # such as by its `__repr__`
        editor.append(setter, f"{spelled} = {text_of(editor.source, targets[0])}")
    else:
        editor.replace(targets[0], spelled)
    return editor.fix(f"Store the epoch in `{spelled}`", Applicability.SAFE)


def _seed_with_epoch(
    model: Model, state: EpochState, found: list[Call], editor: Editor
) -> Fix | None:
    """Add the epoch to the one seed of the pass."""
    setter = state.setter
    if len(found) != 1 or setter is None or len(setter.stored) != 1:
        return None
    argument = seed_argument(found[0])
    if isinstance(argument, Name) and [
        b.how for b in argument.scope.bindings.get(argument.id, [])
    ] != ["assign"]:
        return None
    if not isinstance(argument, (Attr, Name, Const)) or (
        isinstance(argument, Const) and not (isinstance(argument.value, int))
    ):
        return None
    attribute = next(iter(setter.stored))
    if setter.inherited is None and not _starts_constant_or_param(model, state, attribute):
        return None
    function = found[0].scope
    this = self_name(function)
    if this is None:
        return None
    module = model.module_of(function)
    kept = text_of(module.source, argument)
    text = summed(model, found[0], kept, f"{this}.{attribute}")
    editor.at(module).replace(argument, text)
    takes_part = any(
        trial.raised is None and trial.world.is_even and coverage(trial.observed) is not None
        for trial in model.trials(state.cls).usual
    )
    safe = Applicability.UNSAFE if takes_part else Applicability.SAFE
    return editor.fix(f"Seed with `{text}`", safe, "each epoch would read another part of the data")


def _starts_constant_or_param(model: Model, state: EpochState, name: str) -> bool:
    """Whether the attribute exists before the first ``set_epoch``."""
    return any(
        name in cls.bindings
        or any(
            isinstance(store.scope, Function) and store.scope.name == "__init__"
            for store in model.project.own_stores(name, cls)
        )
        for cls in model.flow.own_mro(state.cls)
    )
