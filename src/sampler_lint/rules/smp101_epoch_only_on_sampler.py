"""SMP101: ``set_epoch`` reaches ``loader.sampler`` while the batch sampler carries the epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sampler_lint.analysis.points_to import Lit, Obj, Unknown, Value
from sampler_lint.analysis.values import TOO_MANY, TOO_MUCH
from sampler_lint.domain.concepts import ASKS_BY_NAME, ASKS_KIND, SAMPLER, SAMPLER_ARGUMENTS
from sampler_lint.domain.epoch_calls import EpochSet, epoch_calls
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import in_test_function, is_test
from sampler_lint.domain.samplers import epoch_path
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import (
    fresh_name,
    future_annotations,
    imported_as,
    reads_within,
    text_of,
)
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.limits import DEEPEST_ORIGIN
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Choice,
    Class,
    Const,
    Expr,
    Function,
    If,
    Index,
    Map,
    Name,
    Scope,
    Seq,
    Stmt,
    last_name,
    same,
    self_class,
    unparse,
    walk,
)
from sampler_lint.workspace.import_scan import without_prose
from sampler_lint.workspace.project import Module

_ASIDE = re.compile(r"tests?$|test_|examples?|benchmarks?$|docs?$|tutorials?$")


class EpochOnlyOnSampler(Rule):
    """`set_epoch` is called on `loader.sampler`, but the batch sampler carries the epoch.

    What it does:
        Reports `loader.sampler.set_epoch(...)` where `loader` was built with `batch_sampler=`
        and that batch sampler (or the sampler inside it) is what shuffles by epoch. In library
        code that takes anybody's loader, reports a guarded call that looks at `loader.sampler`
        only; not in tests, and not where the program builds its own loaders and none with a
        batch sampler. Likely where what the loader gets as `batch_sampler=` is not known.

    Why is this bad?
        With `DataLoader(batch_sampler=...)` torch sets `loader.sampler` to a default
        `SequentialSampler` that nothing reads. A guard such as
        `isinstance(loader.sampler, DistributedSampler)` is then false, the epoch is never set,
        and every epoch repeats the first one's order. Nothing raises.

    Fix safety:
        Safe where every loader that reaches the call is known and they agree: the call and its
        guard are pointed at `loader.batch_sampler` or `loader.batch_sampler.sampler`. Unsafe in
        library code: a helper that finds the distributed sampler of any loader is added to the
        file and used.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs of the training loader have one
        order before the fix and different orders after it.

    References:
        - torch/utils/data/dataloader.py, `DataLoader.__init__` (`sampler` with `batch_sampler`)
        - https://github.com/mosaicml/composer/issues/3123
        - https://github.com/Lightning-AI/pytorch-lightning/issues/13316
    """

    code = "SMP101"
    name = "epoch-only-on-sampler"
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every ``set_epoch`` call whose receiver is some loader's ``.sampler``."""
        for module in model.modules:
            for scope in module.facts.scopes if module.says("set_epoch") else ():
                reached = _Reached(scope)
                for call in reached.calls:
                    suspect = self._call(model, module, call, reached)
                    if suspect is not None:
                        yield suspect

    def _call(self, model: Model, module: Module, call: Call, reached: _Reached) -> Suspect | None:
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
        values = model.flow.values(loader)
        loaders = [
            v
            for v in values
            if isinstance(v, Obj) and model.role(v) == "loader" and not _in_tests(model, v)
        ]
        # A package's private classes take its users' loaders too.
        library = (
            "." in module.name
            and not (is_test(module) or in_test_function(call.scope))
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
                and _answers_itself(model, value)
                and not _in_tests(model, value)
            ):
                reason = f"{value.name}, which may be the loader, has a `sampler` of its own"
                model.silent(self.code, call.scope, call, reason)
                return None
        paths_to = [(obj, _missed(model, obj)) for obj in loaders]
        missed = [
            (obj, path)
            for obj, path in paths_to
            if isinstance(path, tuple) and ("batch_sampler", *path) not in reached
        ]
        spelled = unparse(loader)
        if missed:
            obj, path = missed[0]
            target = ".".join((spelled, "batch_sampler", *path))
            batch_sampler = next(
                v for v in model.passed_to(obj, "batch_sampler") if isinstance(v, Obj)
            )
            message = (
                f"`{spelled}.sampler.set_epoch()` does not reach the sampler that carries the "
                f"epoch: the loader is built with `batch_sampler={batch_sampler.name}`, so its "
                f"`.sampler` is a SequentialSampler that nothing reads and every epoch repeats "
                f"one order; set the epoch of `{target}`"
            )
            why = (Related(model.place_of(obj), "loader built here with `batch_sampler=`"),)
            certain = not any(isinstance(v, Unknown) for v in values)
            paths = {found for _, found in missed}
            only = len(missed) == len(loaders) and len(paths) == 1
            direct = only and certain and not library and not _is_handed_in(loader, loaders)

            def fix(editor: Editor) -> Fix | None:
                if direct and isinstance(receiver, Attr):
                    attributes = ".".join(("batch_sampler", *path))
                    return _retarget(call, receiver, attributes, editor)
                return _use_helper(call, receiver, editor)

            return Suspect(module, call, message, why=why, fix=fix)
        of_a_sampler = SAMPLER.names(loader)
        closed = _is_closed(model, call, values, loaders)
        if closed or not library or of_a_sampler or not _is_guarded(call, origin):
            unknown = next((obj for obj, path in paths_to if isinstance(path, Unknown)), None)
            given = None if unknown is None else model.flow.argument(unknown, "batch_sampler")
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
                f"`{spelled}.sampler.set_epoch()` may not reach the sampler that carries the "
                f"epoch: for a loader built with `batch_sampler=`, `.sampler` is a "
                f"SequentialSampler that nothing reads, this guard is false and every epoch "
                f"repeats one order; look at `{spelled}.batch_sampler` too"
            )
        else:
            message = (
                f"`set_epoch` may not reach the batch sampler that carries the epoch: "
                f"`{spelled}.sampler` and `{spelled}.batch_sampler.sampler` are asked, but not "
                f"`{spelled}.batch_sampler`, so a batch sampler with a `set_epoch` of its own "
                f"repeats one order; look at it too"
            )
        return Suspect(module, call, message, fix=partial(_use_helper, call, receiver))


def _unknown_missed(model: Model, call: Call, loader: Expr, built: Obj, given: Expr) -> Suspect:
    """A loader gets a batch sampler, and only whether that carries the epoch is not known."""
    spelled = unparse(loader)
    message = (
        f"`{spelled}.sampler.set_epoch()` does not reach the batch sampler: the loader is built "
        f"with `batch_sampler={unparse(given)}`, so its `.sampler` is a SequentialSampler that "
        f"nothing reads; set the epoch of `{spelled}.batch_sampler` (but whether that carries it "
        f"is not known)"
    )
    why = (Related(model.place_of(built), "loader built here with `batch_sampler=`"),)
    return Suspect(model.module_of(call.scope), call, message, why=why, grade=Grade.LIKELY)


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
    builds_its_own = any(
        obj.site is not None
        and model.project.same_program(obj.site.scope, call.scope)
        and not _in_tests(model, obj)
        for obj in model.loaders
    )
    if builds_its_own and not _knows_batch_samplers(model, call.scope):
        return "the program builds its loaders itself, and none with a batch sampler"
    return None


def _knows_batch_samplers(model: Model, near: Scope) -> bool:
    """Whether the program says ``batch_sampler`` outside its prose."""
    programs: dict[str, bool] = model.memo.setdefault(_knows_batch_samplers, {})
    program = model.project.program_of(model.module_of(near))
    if program not in programs:
        programs[program] = any(
            module.says("batch_sampler") and b"batch_sampler" in without_prose(module.source.data)
            for module in model.project.modules_near(near)
        )
    return programs[program]


class Origin(NamedTuple):
    """``loader.<path>`` as a function gets hold of it; ``node`` is where it does."""

    loader: Expr
    path: tuple[str, ...]
    node: Expr
    by_default: bool = False
    """Whether it came by ``getattr`` with a default, which is a guard of its own."""


def _receiver_of(call: Call) -> Expr | None:
    """The object of ``x.set_epoch(…)``, also by ``f = getattr(x, "set_epoch", …); f(…)``."""
    func = call.func
    if isinstance(func, Attr):
        return func.value if func.name == "set_epoch" else None
    if isinstance(func, Name):
        for binding in func.scope.bindings.get(func.id, ()):
            got = _getattr(binding.value)
            if got is not None and got[1] == "set_epoch":
                return got[0]
    return None


def _getattr(expr: Expr | None) -> tuple[Expr, str] | None:
    if isinstance(expr, Call) and last_name(expr.func) == "getattr" and len(expr.positional) > 1:
        name = expr.positional[1]
        if isinstance(name, Const) and isinstance(name.value, str):
            return expr.positional[0], name.value
    return None


class _Reached:
    """What the ``set_epoch`` calls of a scope reach of which loader."""

    def __init__(self, scope: Scope) -> None:
        self._known: dict[object, list[Origin]] = {}
        self._paths: dict[str, list[tuple[Expr, set[tuple[str, ...]]]]] = {}
        """By how a loader is spelled: the loaders, as :func:`.same` tells them apart."""
        self._of_receiver: dict[object, Origin | None] = {}
        self.calls: dict[Call, object] = {}
        """The calls, each with what its receiver is known by."""
        for call in scope.calls:
            receiver = _receiver_of(call)
            if receiver is None:
                continue
            key = self.calls[call] = _variable(receiver) or receiver
            if key not in self._of_receiver:
                found = origins(receiver, self._known)
                own = (origin for origin in found if origin.path == ("sampler",))
                self._of_receiver[key] = next(own, None)
                for origin in found:
                    self._paths_for(origin.loader).add(origin.path)

    def _paths_for(self, loader: Expr) -> set[tuple[str, ...]]:
        alike = self._paths.setdefault(unparse(loader), [])
        for other, paths in alike:
            if same(other, loader):
                return paths
        alike.append((loader, set()))
        return alike[-1][1]

    def sampler_of_loader(self, call: Call) -> Origin | None:
        """The ``loader.sampler`` that the call is made of, if it is."""
        return self._of_receiver[self.calls[call]]

    def paths_of(self, loader: Expr) -> set[tuple[str, ...]]:
        """What the scope's calls reach of a loader."""
        return self._paths_for(loader)


def _variable(expr: Expr) -> tuple[Scope, str] | None:
    return (expr.scope, expr.id) if isinstance(expr, Name) else None


def origins(expr: Expr | None, known: dict[object, list[Origin]], depth: int = 0) -> list[Origin]:
    """The parts of a loader that ``expr`` may be, followed within its own function.

    Through local names, ``getattr``, and containers filled in the same function. ``known`` keeps
    what was found of names.
    """
    if expr is None or depth > DEEPEST_ORIGIN:
        return []
    got = (expr.value, expr.name) if isinstance(expr, Attr) else _getattr(expr)
    if got is not None:
        base, name = got
        if name not in SAMPLER_ARGUMENTS:
            return []
        default = isinstance(expr, Call) and len(expr.positional) > 2
        inner = [o for o in origins(base, known, depth + 1) if o.path[-1] == "batch_sampler"]
        if inner:
            return [Origin(o.loader, (*o.path, name), expr, default) for o in inner]
        return [Origin(base, (name,), expr, default)]
    if isinstance(expr, Choice):
        return [found for option in expr.options for found in origins(option, known, depth + 1)]
    if isinstance(expr, Name):
        key = _variable(expr), depth
        if key not in known:
            known[key] = list(dict.fromkeys(_origins_of_name(expr, known, depth + 1)))
        return known[key]
    return []


def _origins_of_name(name: Name, known: dict[object, list[Origin]], depth: int) -> Iterator[Origin]:
    for binding in name.scope.bindings.get(name.id, ()):
        if binding.how == "assign" and not binding.path:
            yield from origins(binding.value, known, depth)
        elif binding.how == "element" and not binding.path:
            for item in _items(name.scope, binding.value):
                yield from origins(item, known, depth)


def _items(scope: Scope, container: Expr | None) -> list[Expr]:
    """What a container holds: its display, and what the function stores into it."""
    if isinstance(container, Call) and last_name(container.func) in {"values", "copy"}:
        container = container.func.value if isinstance(container.func, Attr) else None
    if isinstance(container, Seq):
        return container.items
    if not isinstance(container, Name):
        return []
    out: list[Expr] = []
    for binding in scope.bindings.get(container.id, ()):
        if isinstance(binding.value, Seq):
            out += binding.value.items
        elif isinstance(binding.value, Map):
            out += [value for _, value in binding.value.items]
    out += [
        store.value
        for store in scope.stores
        if isinstance(store.target, Index)
        and same(store.target.value, container)
        and store.value is not None
    ]
    for call in scope.calls:
        func = call.func
        if (
            isinstance(func, Attr)
            and func.name in {"append", "add"}
            and same(func.value, container)
        ):
            out += call.positional[:1]
    return out


def _is_handed_in(loader: Expr, loaders: list[Obj]) -> bool:
    """Whether other files build the loader and hand it to this function: others may too."""
    root: Expr = loader
    while isinstance(root, Attr):
        root = root.value
    if not isinstance(root, Name) or not isinstance(root.scope, Function):
        return False
    facts = root.scope.module
    return root.scope.param(root.id) is not None and all(
        obj.site is not None and obj.site.scope.module is not facts for obj in loaders
    )


def _in_tests(model: Model, loader: Obj) -> bool:
    """Whether the tree's own tests or examples build the loader: its users' may be others."""
    if loader.site is None:
        return False
    folders = model.folders_of(model.module_of(loader.site.scope))
    return any(_ASIDE.match(folder) for folder in folders)


def _answers_itself(model: Model, value: Obj) -> bool:
    """Whether a class of the tree says what its ``.sampler`` is, as wrappers of loaders do.

    One that hands on the ``.sampler`` of the loaders inside and nothing else is as good as none.
    """
    if not isinstance(value.cls, Class):
        return False
    for base in model.flow.mro(value.cls):
        if isinstance(base, Class) and "sampler" in base.bindings:
            method = base.method("sampler")
            return method is None or not _hands_on_samplers(method)
    return False


def _hands_on_samplers(method: Function) -> bool:
    names = [read.name for read in method.reads]
    names += [
        str(arg.value.value)
        for call in method.calls
        for arg in call.args
        if isinstance(arg.value, Const)
    ]
    return "sampler" in names and "batch_sampler" not in names


def _missed(model: Model, loader: Obj) -> tuple[str, ...] | Unknown | None:
    """The path from ``loader.batch_sampler`` to what carries the epoch; None if there is none."""
    batch_samplers = model.passed_to(loader, "batch_sampler")
    paths = set()
    for value in batch_samplers:
        if isinstance(value, Lit) and value.value is None:
            continue
        path = epoch_path(model, value)
        if not isinstance(path, tuple):
            return path if len(batch_samplers) == 1 else None
        paths.add(path)
    return paths.pop() if len(paths) == 1 else None


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
        if other.node is call:
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


def _guards(call: Call) -> list[If]:
    return [] if call.stmt is None else [s for s in call.stmt.ancestors() if isinstance(s, If)]


def _guard(call: Call, receiver: Expr) -> tuple[If, Call] | None:
    """The ``if`` around the call that asks what ``X.sampler`` is, and the asking call in it."""
    asked = [receiver]
    if isinstance(call.func, Attr):
        asked.append(call.func.value)
    for stmt in _guards(call):
        for node in walk(stmt.test):
            if (
                isinstance(node, Call)
                and (ASKS_KIND.is_call(node) or ASKS_BY_NAME.is_call(node))
                and node.positional
                and any(same(node.positional[0], expr) for expr in asked)
            ):
                return stmt, node
    return None


def _is_guarded(call: Call, origin: Origin) -> bool:
    """Whether the code asks first what the sampler is, so that a wrong answer is silent."""
    return origin.by_default or _guard(call, origin.node) is not None


def _retarget(call: Call, receiver: Attr, attributes: str, editor: Editor) -> Fix | None:
    """Point the call, its guards and its local name at the batch sampler."""
    owner: Stmt | None = call.stmt
    for stmt in _guards(call):
        owner = stmt
    if owner is None:
        return None
    spelled = f"{text_of(editor.source, receiver.value)}.{attributes}"
    for read in reads_within(call.scope, owner, receiver.value, "sampler"):
        editor.replace(read, spelled)
    if receiver.stmt is not None and not owner.encloses(receiver.stmt):
        editor.replace(receiver, spelled)
    return editor.fix(f"Call `set_epoch` on `{spelled}`", Applicability.SAFE)


def _use_helper(call: Call, receiver: Expr, editor: Editor) -> Fix | None:
    """Ask a helper for the sampler of any loader, where the guard asks about ``.sampler``."""
    found = _guard(call, receiver)
    if found is None or not isinstance(receiver, Attr) or not isinstance(call.func, Attr):
        return None  # what was got by its name stays the method of the sampler that was asked
    stmt, asking = found
    if last_name(asking.func) == "getattr" or not same(asking.positional[0], receiver):
        return None
    module, source = editor.module, editor.source
    by_class = last_name(asking.func) == "isinstance"
    if by_class and len(asking.positional) != 2:
        return None
    kind = text_of(source, asking.positional[1]) if by_class else ""
    if by_class and _is_any_as_good(call, stmt, receiver, kind):
        kind = ""
    name = "_get_distributed_sampler" if kind else "_get_epoch_sampler"
    if name not in module.facts.bindings:
        editor.define(*_helper_lines(module, name, kind))
    local, line = _alias(stmt, receiver) or (None, None)
    if line is not None:
        editor.delete(line)
    local = local or fresh_name(call.scope, "sampler", "epoch_sampler")
    loader = text_of(source, receiver.value)
    editor.replace(asking, f"({local} := {name}({loader})) is not None")
    asked = set(walk(asking))
    for read in reads_within(call.scope, stmt, receiver.value, "sampler"):
        if read not in asked and read.stmt is not line:
            editor.replace(read, local)
    return editor.fix(f"Find the sampler with `{name}`", Applicability.UNSAFE)


def _is_any_as_good(call: Call, guard: If, receiver: Attr, kind: str) -> bool:
    """Whether the guard may ask for ``set_epoch`` itself, as nothing else of the class is used.

    A sampler of one's own need not derive from torch's. An imported class stays: its import
    would be left without a use.
    """
    alias = _alias(guard, receiver)
    uses = {
        read.name
        for read in call.scope.reads
        if read.stmt is not None
        and guard.encloses(read.stmt)
        and (
            same(read.value, receiver)
            or (alias is not None and isinstance(read.value, Name) and read.value.id == alias[0])
        )
    }
    return "." in kind and uses == {"set_epoch"}


def _alias(guard: If, receiver: Attr) -> tuple[str, Assign] | None:
    """``name = X.sampler`` right below the guard: the name can be set in the guard instead."""
    stmt = receiver.stmt
    if isinstance(stmt, Assign) and stmt.value is receiver and stmt.block is guard.body:
        target = stmt.targets[0]
        others = [s for s in guard.body if s is not stmt and s.row <= stmt.row <= s.end_row]
        if len(stmt.targets) == 1 and isinstance(target, Name) and not others:
            return target.id, stmt
    return None


def _helper_lines(module: Module, name: str, kind: str) -> list[str]:
    loader_class = imported_as(module, "DataLoader")
    parameter = f"dataloader: {loader_class}" if loader_class else "dataloader"
    returns = ""
    optional = imported_as(module, "Optional")
    if kind.isidentifier() and loader_class:
        if optional:
            returns = f" -> {optional}[{kind}]"
        elif future_annotations(module):
            returns = f" -> {kind} | None"
    indent, quote = module.source.indent, module.source.quote
    inner = f"getattr(batch_sampler, {quote}sampler{quote}, None)"
    test = f"isinstance(sampler, {kind})" if kind else f"hasattr(sampler, {quote}set_epoch{quote})"
    return [
        f"def {name}({parameter}){returns}:",
        f'{indent}"""The sampler of `dataloader` that carries the epoch, if it has one."""',
        f"{indent}batch_sampler = dataloader.batch_sampler",
        f"{indent}for sampler in (batch_sampler, {inner}, dataloader.sampler):",
        f"{indent * 2}if {test}:",
        f"{indent * 3}return sampler",
        f"{indent}return None",
    ]
