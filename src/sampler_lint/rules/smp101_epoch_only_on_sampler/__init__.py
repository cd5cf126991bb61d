"""SMP101: ``set_epoch`` reaches ``loader.sampler`` while the batch sampler carries the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import Hop, ends, handed_on, parameter_of, scope_of
from sampler_lint.analysis.values import (
    NONE,
    TOO_MANY,
    TOO_MUCH,
    ExtObj,
    Obj,
    Pack,
    Unknown,
    Value,
    Why,
)
from sampler_lint.domain.concepts import SAMPLER, SAMPLER_ARGUMENTS, SETS_EPOCH
from sampler_lint.domain.epoch_calls import EpochSet, epoch_calls
from sampler_lint.domain.model import DATA_LOADER, Model
from sampler_lint.domain.model import SAMPLER as SAMPLER_BASE
from sampler_lint.domain.programs import in_test_function, is_test, once_a_program
from sampler_lint.domain.samplers import epoch_path
from sampler_lint.edits.editor import Editor
from sampler_lint.findings import Fix, Grade, Related
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules.smp101_epoch_only_on_sampler.parts import (
    Origin,
    Reached,
    answers_itself,
    in_tests,
    is_handed_in,
)
from sampler_lint.rules.smp101_epoch_only_on_sampler.retarget import (
    is_guarded,
    retarget,
    use_helper,
)
from sampler_lint.rules.smp101_epoch_only_on_sampler.shapes import Shape, may_be, shapes, untold
from sampler_lint.syntax.navigation import same, self_class, unparse, walk
from sampler_lint.syntax.nodes import Attr, Call, Class, Expr, Function, Scope, last_name
from sampler_lint.workspace.import_scan import without_prose
from sampler_lint.workspace.project import Module

_NOT_READ = (
    "with `batch_sampler=`, the loader's `.sampler` is a SequentialSampler that nothing reads"
)


class EpochOnlyOnSampler(Rule):
    """`set_epoch` is called on `loader.sampler`, but the batch sampler carries the epoch.

    What it does:
        Reports `loader.sampler.set_epoch(...)` where `loader` was built with `batch_sampler=` and
        that batch sampler (or the sampler inside it) is what shuffles by epoch. In library code
        that takes loaders from its users, it reports a guarded call that looks at
        `loader.sampler` only; not in tests, and not in a program that builds its own loaders,
        none of them with a batch sampler. Likely where the loader's `batch_sampler=` is not
        known.

        A loader built with `sampler=`, with `batch_sampler=BatchSampler(…)` or with a batch sampler
        that has its own `set_epoch` holds the epoch in different places. Library code is reported
        where none of its guards is true for one of the first two; the `set_epoch` of a loader class
        also for the third, and for a wrapper of batch samplers that the repository puts into it.

    Why is this bad?
        With `DataLoader(batch_sampler=...)` torch sets `loader.sampler` to a default
        `SequentialSampler` that nothing reads. A guard such as `isinstance(loader.sampler,
        DistributedSampler)` is then false, the epoch is never set, and every epoch repeats the
        first one's order. No error is raised.

    Fix safety:
        Safe where every loader that reaches the call is known, and all need the same call: the call
        and its guard are changed to use `loader.batch_sampler` or `loader.batch_sampler.sampler`.
        Unsafe where the guard decides about other lines, or is kept elsewhere: a flag that goes on
        asking about `loader.sampler` stays false. Unsafe in library code: a helper that
        finds the distributed sampler of any loader is added to the file and used.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs of the training loader have one
        order before the fix and different orders after it.

    References:
        - torch/utils/data/dataloader.py, `DataLoader.__init__` (`sampler` with `batch_sampler`)
        - https://github.com/mosaicml/composer/issues/3123
        - https://github.com/Lightning-AI/pytorch-lightning/issues/13316
        - https://github.com/huggingface/transformers/issues/8952
        - https://github.com/huggingface/accelerate/pull/3246
        - met in https://github.com/mosaicml/composer (composer/trainer/trainer.py)
    """

    code = "SMP101"
    name = "epoch-only-on-sampler"
    symptoms = ("every epoch has the same order",)
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every ``set_epoch`` call whose receiver is some loader's ``.sampler``."""
        for module in model.modules:
            for scope in module.facts.scopes if module.says("set_epoch") else ():
                reached = Reached(model, scope)
                found = [self._call(model, module, call, reached) for call in reached.calls]
                told = [suspect for suspect in found if suspect is not None]
                yield from told or _by_shape(model, module, reached)

    def _call(self, model: Model, module: Module, call: Call, reached: Reached) -> Suspect | None:
        own = reached.sampler_of_loader(call)
        if own is None or self_class(own.loader) is not None:
            return None
        paths = reached.paths_of(own.loader)
        if ("batch_sampler",) in paths:
            model.silent(self.code, call.scope, call, "the batch sampler's epoch is set here too")
            return None
        return self._judge(model, module, call, own, paths)

    def _judge(
        self,
        model: Model,
        module: Module,
        call: Call,
        origin: Origin,
        reached: set[tuple[str, ...]],
    ) -> Suspect | None:
        loader = origin.loader
        receiver = origin.node
        # A function that gives the sampler may be asked for other loaders, too.
        is_fixable = scope_of(receiver) is call.scope
        values = handed_on(model.flow, loader)
        loaders = [
            v
            for v in values
            if isinstance(v, Obj) and model.role(v) == "loader" and not in_tests(model, v)
        ]
        # A package's private classes take its users' loaders too.
        library = (
            module.in_package
            and not (is_test(module) or in_test_function(model, call.scope))
            and not any(
                obj.site is not None and obj.site.scope.module is call.scope.module
                for obj in loaders
            )
        )
        other = _set_on_batch_sampler(model, call, loader)
        if other is not None:
            place = model.place(other.scope, other.node)
            model.silent(self.code, call.scope, call, f"{place} sets the batch sampler's epoch")
            return None
        for value in values:
            if (
                isinstance(value, Obj)
                and answers_itself(model, value)
                and not in_tests(model, value)
            ):
                reason = f"{value.name}, which may be the loader, has a `sampler` of its own"
                model.silent(self.code, call.scope, call, reason)
                return None
        paths_to = [
            (obj, path) for obj in loaders for path in sorted(_missed(model, obj), key=repr)
        ]
        missed = [
            (obj, path)
            for obj, path in paths_to
            if isinstance(path, tuple) and ("batch_sampler", *path) not in reached
        ]
        spelled = unparse(loader)
        if missed:
            obj, path = missed[0]
            target = ".".join((spelled, "batch_sampler", *path))
            batch_sampler = min(
                v.name
                for v in model.passed_to(obj, "batch_sampler")
                if isinstance(v, Obj) and epoch_path(model, v) == path
            )
            message = (
                f"`{spelled}.sampler.set_epoch()` does not reach the loader's "
                f"`batch_sampler={batch_sampler}`, which carries the epoch"
            )
            why = (Related(model.place_of(obj), "loader built here with `batch_sampler=`"),)
            certain = not any(isinstance(v, Unknown) for v in values)
            paths = {found for _, found in missed}
            only = len(missed) == len(loaders) and len(paths) == 1
            # A guard says that others may come, where other files hand the loader in.
            others = is_handed_in(loader, loaders) and is_guarded(call, origin)
            direct = only and certain and not library and not others

            def fix(editor: Editor) -> Fix | None:
                if direct:
                    attributes = ".".join(("batch_sampler", *path))
                    return retarget(call, receiver, loader, attributes, editor)
                return use_helper(call, receiver, loader, editor)

            return Suspect(
                module,
                call,
                message,
                why=why,
                fix=fix if is_fixable else None,
                effect=f"{_NOT_READ}, so every epoch repeats one order",
                advice=f"call `{target}.set_epoch`",
            )
        of_a_sampler = SAMPLER.names(loader)
        closed = _is_closed(model, call, values, loaders)
        if closed or not library or of_a_sampler or not is_guarded(call, origin):
            unknown = next((obj for obj, path in paths_to if isinstance(path, Unknown)), None)
            given = None if unknown is None else model.argument(unknown, "batch_sampler")
            if unknown is not None and given is not None:
                return _unknown_missed(model, call, loader, unknown, given)
            if closed is not None:
                reason = closed
            elif of_a_sampler:
                reason = f"`{unparse(loader)}` is a sampler around another, and no loader"
            elif not library:
                reason = "the loader is not known, and this is no library code for anybody's loader"
            else:
                reason = "without a guard, a loader with a batch sampler raises: nothing is silent"
            model.silent(self.code, call.scope, call, reason)
            return None
        if reached == {("sampler",)}:
            if any(read.name == "batch_sampler" for read in call.scope.reads):
                return None
            message = (
                f"`{spelled}.sampler.set_epoch()` does nothing for a loader built with "
                f"`batch_sampler=`"
            )
            effect = f"{_NOT_READ}, this guard is false, and every epoch repeats one order"
        else:
            effect = (
                "a batch sampler that shuffles by its own epoch repeats one order in every epoch"
            )
            message = (
                f"`set_epoch` does not reach a batch sampler with its own `set_epoch`: "
                f"`{spelled}.batch_sampler` is not checked"
            )
        return Suspect(
            module,
            call,
            message,
            fix=partial(use_helper, call, receiver, loader) if is_fixable else None,
            effect=effect,
            advice=f"look at `{spelled}.batch_sampler` too",
        )


def _by_shape(model: Model, module: Module, reached: Reached) -> Iterator[Suspect]:
    """Library code that tells the loaders of its users, but not those of every shape."""
    for loader, calls in reached.loaders():
        call = calls[-1]
        judged = self_class(loader) is None and reached.paths_of(loader) == {("sampler",)}
        if (
            judged
            or not _is_for_users(model, module, call, loader)
            or any(not _is_dataset_of(other, loader) for other in reached.others)
            or _is_told_elsewhere(model, call, loader)
        ):
            continue
        missed = [
            shape for shape in untold(model, loader, calls) if _may_be(model, call, loader, shape)
        ]
        if not missed or len(missed) == len([*shapes(model, loader)]):
            continue
        spelled = unparse(loader)
        target = ".".join((spelled, *missed[0].carrier))
        yield Suspect(
            module,
            call,
            f"`set_epoch` does not reach a loader built with {missed[0].how}: "
            f"`{target}` is not checked",
            effect="no guard here is true for such a loader, so every epoch repeats one order",
            advice=f"look at `{target}` too",
        )


def _is_told_elsewhere(model: Model, call: Call, loader: Expr) -> bool:
    """Whether another function tells a batch sampler of what may be the same loader.

    A loader that tells its own is no other loader than itself.
    """
    owner = self_class(loader)
    return any(
        self_class(node.value) is owner
        for other in epoch_calls(model).of_batch_sampler(set(), call.scope.module)
        if other.scope is not call.scope
        for node in walk(other.receiver)
        if isinstance(node, Attr) and node.name == "batch_sampler"
    )


def _is_for_users(model: Model, module: Module, call: Call, loader: Expr) -> bool:
    """Whether users of a library may hand in (or build) the loader, in any way that torch has."""
    if not module.in_package or is_test(module) or in_test_function(model, call.scope):
        return False
    cls = self_class(loader)
    if cls is not None:
        return _takes_what_loaders_take(model, cls)
    values = model.flow.values(loader)
    loaders = [v for v in values if isinstance(v, Obj) and model.role(v) == "loader"]
    return (
        not SAMPLER.names(loader)
        and not any(
            obj.site is not None and obj.site.scope.module is call.scope.module for obj in loaders
        )
        and not any(isinstance(v, Obj) and answers_itself(model, v) for v in values)
        and _is_closed(model, call, values, loaders) is None
    )


def _takes_what_loaders_take(model: Model, cls: Class) -> bool:
    """Whether a class is a loader, or stands for one, and leaves to its users how it is built."""
    own = model.flow.own_mro(cls)
    parts = SAMPLER_ARGUMENTS
    if any(base.bindings.get(name) for base in own for name in parts) or any(
        next(iter(model.project.own_stores(name, base)), None) for base in own for name in parts
    ):
        return False
    given = [
        arg.value
        for base in own
        for method in base.methods
        if method.name == "__init__"
        for made in method.calls
        for arg in made.args
        if arg.keyword in parts
    ]
    if any(parameter_of(end) is None for value in given for end in _ends(model, value)):
        return False
    return model.is_a(cls, DATA_LOADER) is True or (
        model.is_a(cls, SAMPLER_BASE) is False and any(base.method("__getattr__") for base in own)
    )


def _ends(model: Model, value: Expr) -> Iterator[Expr]:
    return ends(model.flow, value, Hop.ASSIGNED)


def _is_dataset_of(receiver: Expr, loader: Expr) -> bool:
    """``loader.dataset``, whose epoch orders no loader with a sampler."""
    return (
        isinstance(receiver, Attr) and receiver.name == "dataset" and same(receiver.value, loader)
    )


def _may_be(model: Model, call: Call, loader: Expr, shape: Shape) -> bool:
    """Whether a loader of that shape may come: a program that builds its own has none but those.

    Whoever tells the sampler of any loader of torch's need know no batch sampler of one's own.
    """
    owner = self_class(loader)
    if owner is not None:
        return may_be(model, owner, shape)
    if shape.parts["batch_sampler",] is None:
        return False
    if shape.carrier != ("sampler",):
        return True
    built = [
        obj
        for obj in model.loaders
        if obj.site is not None
        and model.project.same_program(obj.site.scope, call.scope)
        and not in_tests(model, obj)
    ]
    given = {
        name: any(model.argument(obj, name) is not None for obj in built)
        for name in SAMPLER_ARGUMENTS
    }
    return given["sampler"] or not given["batch_sampler"]


def _unknown_missed(model: Model, call: Call, loader: Expr, built: Obj, given: Expr) -> Suspect:
    """A loader gets a batch sampler, and only whether that carries the epoch is not known."""
    spelled = unparse(loader)
    message = (
        f"`{spelled}.sampler.set_epoch()` does not reach the loader's "
        f"`batch_sampler={unparse(given)}`"
    )
    why = (Related(model.place_of(built), "loader built here with `batch_sampler=`"),)
    return Suspect(
        model.module_of(call.scope),
        call,
        message,
        why=why,
        grade=Grade.LIKELY,
        effect=f"{_NOT_READ}; whether the batch sampler carries the epoch is not known",
        advice=f"call `{spelled}.batch_sampler.set_epoch`",
    )


def _is_closed(
    model: Model, call: Call, values: frozenset[Value], loaders: list[Obj]
) -> str | None:
    """Why no user can hand in a loader with a batch sampler; None if one can.

    What is found before the analysis gives up is not all there is. Where it does not give up, a
    loader of the tree leaves room for another only if a public function takes what its callers
    outside the tree choose.
    """
    if loaders and not {TOO_MANY, TOO_MUCH} & values:
        awaited = (v.awaits for v in values if isinstance(v, Unknown) and v.awaits is not None)
        if not any(model.module_of(function).is_library(function) for function in awaited):
            return "no loader that reaches it has a batch sampler that carries an epoch"
    if values and all(isinstance(v, Unknown) and v.why is Why.FOREIGN for v in values):
        return "a library that the program derives from makes the loader"
    builds_its_own = any(map(_is_built_of_data, values)) or any(
        obj.site is not None
        and model.project.same_program(obj.site.scope, call.scope)
        and not in_tests(model, obj)
        for obj in model.loaders
    )
    if builds_its_own and not _knows_batch_samplers(model, call.scope):
        return "the program builds its loaders itself, and none with a batch sampler"
    return None


def _is_built_of_data(value: Value) -> bool:
    """Whether another library builds the loader, of a dataset that the program gives it."""
    return isinstance(value, ExtObj) and any(
        role_of(arg.keyword or last_name(arg.value) or "") is Role.DATASET
        for arg in value.site.args
    )


def _says_batch_sampler(data: bytes) -> bool:
    return b"batch_sampler" in without_prose(data)


@once_a_program
def _knows_batch_samplers(model: Model, near: Scope) -> bool:
    """Whether the program says ``batch_sampler`` outside its prose."""
    return any(
        module.says("batch_sampler") and module.source.tells(_says_batch_sampler)
        for module in model.project.modules_near(near)
    )


def _missed(model: Model, loader: Obj) -> set[tuple[str, ...] | Unknown | None]:
    """The paths from ``loader.batch_sampler`` to what carries the epoch, where all of it do."""
    given = model.passed_to(loader, "batch_sampler")
    lists = {value for value in given if isinstance(value, Pack)}  # which carry no epoch
    found = {epoch_path(model, value) for value in given - lists - {NONE}}
    return found if len(given) == 1 or all(isinstance(path, tuple) for path in found) else set()


def _is_handed_on_by(scope: Scope, batch_samplers: set[Obj]) -> bool:
    """Whether it is the batch sampler's own `set_epoch`, which somebody has to call."""
    classes = {value.cls for value in batch_samplers}
    return isinstance(scope, Function) and SETS_EPOCH.says(scope.name) and scope.cls in classes


def _set_on_batch_sampler(model: Model, call: Call, loader: Expr) -> EpochSet | None:
    """Another ``set_epoch`` call that sets the epoch of the loader's batch sampler."""
    batch_samplers = {
        value
        for obj in model.flow.values(loader)
        if isinstance(obj, Obj) and model.role(obj) == "loader"
        for value in model.passed_to(obj, "batch_sampler")
        if isinstance(value, Obj)
    }
    inner = {
        value
        for batch_sampler in batch_samplers
        for value in model.flow.ask_field(batch_sampler, "sampler")
        if isinstance(value, Obj)
    }
    objects = {(value.cls, value.site) for value in batch_samplers | inner}
    for other in epoch_calls(model).of_batch_sampler(objects, call.scope.module):
        if other.node is call or _is_handed_on_by(other.scope, batch_samplers):
            continue
        target = other.receiver
        mentions = [n for n in walk(target) if isinstance(n, Attr) and n.name == "batch_sampler"]
        if other.scope is call.scope and any(same(n.value, loader) for n in mentions):
            return other
        if batch_samplers:
            values = model.flow.values(target)
            if any(isinstance(v, Obj) and (v.cls, v.site) in objects for v in values):
                return other
        elif mentions:
            return other
    return None
