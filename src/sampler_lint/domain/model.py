"""The linked model: the questions rules ask, answered for the whole tree.

Answers are three-valued: yes, no, or not known (None, or :class:`~.analysis.values.Unknown`). A
rule speaks on a certain answer only, so what is not known is never guessed here.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.asked import is_kept_out
from sampler_lint.analysis.declared import Declared
from sampler_lint.analysis.origins import as_passed
from sampler_lint.analysis.points_to import Flow
from sampler_lint.analysis.values import Obj, Unknown, Value
from sampler_lint.catalog import TORCH_DATA, Contract
from sampler_lint.catalog.torch import BARE_DATASETS
from sampler_lint.domain.concepts import (
    ASKS_BY_NAME,
    ITERATES,
    LOOKS,
    NAMESPACES,
    RESTORES,
    SAMPLER_CLASS,
    SETS_EPOCH,
)
from sampler_lint.domain.passed import passed_for
from sampler_lint.domain.tried import Tried
from sampler_lint.findings import Place
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import built_by_itself, on_super, self_class, self_stores
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Node,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.workspace.aliases import names_meant
from sampler_lint.workspace.hidden import without
from sampler_lint.workspace.project import Module, Project
from sampler_lint.workspace.requirements import Range, Requirements

if TYPE_CHECKING:
    from sampler_lint.execution.choices import Unset
    from sampler_lint.execution.epochs import Around, EpochTrial, Texts
    from sampler_lint.execution.hollow import Measured
    from sampler_lint.execution.interpreter import Interpreter
    from sampler_lint.execution.outcomes import Trial, Trials
    from sampler_lint.execution.sharing import Sharing

SAMPLER = TORCH_DATA + "Sampler"
BATCH_SAMPLER = TORCH_DATA + "BatchSampler"
DISTRIBUTED_SAMPLER = TORCH_DATA + "DistributedSampler"
DATA_LOADER = TORCH_DATA + "DataLoader"
STATEFUL_LOADER = "torchdata.stateful_dataloader.StatefulDataLoader"


_CONSTRUCTION_WORDS = re.compile(r"[Ll]oader|[Ss]ampler")


@functools.lru_cache(1 << 14)  # a tree calls the same few thousand names again and again
def _speaks_of_construction(name: str) -> bool:
    return _CONSTRUCTION_WORDS.search(name) is not None


class Attributes(NamedTuple):
    """The attributes that instances of a class have."""

    names: frozenset[str]
    open: str | None
    """Why there may be others (an unknown base, ``setattr``…); None if these are all."""


class Silence(NamedTuple):
    """Why a rule looked at a place and said nothing; kept only when somebody asks."""

    code: str
    scope: Scope
    node: Node
    reason: str


class Model:
    """One tree, linked."""

    silences: list[Silence] | None = None
    """Filled by rules while it is a list (``sampler-lint explain``)."""

    def __init__(
        self,
        project: Project,
        requirements: Requirements | None = None,
        declared: Declared | None = None,
        hidden: Collection[Node] = (),
        tried: Tried | None = None,
    ) -> None:
        """Link the files of ``project``; what is ``tried`` already is not tried again.

        Calls, functions, classes and files that are ``hidden`` are not among those to look at,
        though what they do is known as before.
        """
        self.project = project
        self._modules = without(project.candidates, hidden) if hidden else project.candidates
        self.requirements = requirements or Requirements(project)
        self.flow = Flow(project, declared)
        self.memo: dict[object, Any] = {}
        """Answers that query modules keep for the next rule that asks."""
        self._tried = tried or Tried()
        self._tried.serve(
            project, lambda cls: passed_for(self.flow, self.role, cls, self.built.get(cls))
        )
        for module in project.candidates:
            for cls in module.facts.classes:
                self.flow.mro(cls)

    def silent(self, code: str, scope: Scope, node: Node, reason: str) -> None:
        """Note why a rule says nothing about ``node``."""
        if self.silences is not None:
            self.silences.append(Silence(code, scope, node, reason))

    def forget_places(self, path: str) -> None:
        """Keep nothing that may say in which row of a file something stands."""
        self.memo.clear()
        self._tried.forget(path)

    def tries(self, module: Module) -> bool:
        """Whether a class was tried with what a file says."""
        return self._tried.rests_on(module.path)

    @property
    def modules(self) -> list[Module]:
        """The files that say a sampler word."""
        return self._modules

    def module_of(self, scope: Scope) -> Module:
        """The file a scope is in."""
        return self.project.module_of(scope)

    def folders_of(self, module: Module) -> list[str]:
        """The folders from the tree's root down to a file, and the file's stem."""
        relative = os.path.relpath(module.path, self.project.root)
        return relative.removesuffix(".py").split(os.sep)

    def place(self, scope: Scope, node: Node) -> Place:
        """Where a node stands; ``data.py:40`` as text."""
        return self.module_of(scope).place(node)

    def place_of(self, obj: Obj) -> Place | str:
        """Where an object was built, or its class defined; a library's class by its name."""
        if obj.site is not None:
            return self.place(obj.site.scope, obj.site)
        if isinstance(obj.cls, Class):
            return self.place(obj.cls, obj.cls)
        return obj.cls

    # -- the program

    def frameworks(self, module: Module) -> frozenset[str]:
        """The training frameworks that the program of ``module`` imports.

        The user's own list stands instead of it, if there is one.
        """
        if self.requirements.frameworks is not None:
            return self.requirements.frameworks
        return frozenset(
            catalog.FRAMEWORK_PACKAGES[name]
            for name in self.project.imports_of(module)
            if name in catalog.FRAMEWORK_PACKAGES
        )

    def versions(self, module: Module, framework: str, package: str | None = None) -> Range:
        """The versions of a framework (or of ``torch``) that a file may run with.

        ``package`` is the name it was imported by, where that is known.
        """
        imported = {package} if package is not None else self.project.imports_of(module)
        packages = frozenset(catalog.framework(framework).packages) & imported
        return self.requirements.range(module.folder, framework, packages)

    def contracts(
        self, module: Module, framework: str, does: str, part: str | None = None
    ) -> list[Contract]:
        """What the framework may do to that part of a loader, in the file's versions of it."""
        versions = self.versions(module, framework)
        found = catalog.contracts(framework, does, part)
        return [contract for contract in found if versions.may_be(contract.versions)]

    # -- classes

    def classes(self) -> Iterator[tuple[Module, Class]]:
        """Every class of the candidate files."""
        for module in self.modules:
            for cls in module.facts.classes:
                yield module, cls

    def properties(self, name: str) -> Iterator[Function]:
        """The properties of that name."""
        yield from self._properties.get(name, ())

    @cached_property
    def _properties(self) -> dict[str, list[Function]]:
        out: dict[str, list[Function]] = {}
        for _, cls in self.classes():
            for name in cls.bindings:
                method = cls.method(name)
                if method is not None and method.is_property:
                    out.setdefault(name, []).append(method)
        return out

    def is_a(self, value: Value | Class | str, name: str) -> bool | None:
        """Whether an object (or class) is one of the known class ``name``."""
        if isinstance(value, Obj):
            return self.flow.is_a(value.cls, name)
        if isinstance(value, (Class, str)):
            return self.flow.is_a(value, name)
        return None if isinstance(value, Unknown) else False

    def is_sampler_class(self, cls: Class) -> bool:
        """Whether the class is certainly a torch sampler, or is used as one by a loader."""
        return self.flow.is_a(cls, SAMPLER) is True or cls in self.used_as_sampler

    def is_meant_as_sampler(self, cls: Class) -> bool:
        """Whether the class is a sampler, or is called one and can be iterated."""
        return self.is_sampler_class(cls) or (
            SAMPLER_CLASS.says(cls.name) and cls.method("__iter__") is not None
        )

    @cached_property
    def used_as_sampler(self) -> dict[Class, Obj]:
        """Classes of the tree passed as ``sampler=`` or ``batch_sampler=``, with the loader."""
        out: dict[Class, Obj] = {}
        for loader in self.loaders:
            for name in ("sampler", "batch_sampler"):
                for value in self.passed_to(loader, name):
                    if isinstance(value, Obj) and isinstance(value.cls, Class):
                        out.setdefault(value.cls, loader)
        return out

    @cached_property
    def used_as_batch_sampler(self) -> dict[Class, Obj]:
        """Classes of the tree passed as ``batch_sampler=``, with the loader.

        A registry may hold both kinds, and what a loader gets as either is not known to be one.
        """
        out: dict[Class, Obj] = {}
        for loader in self.loaders:
            given = self.passed_to(loader, "sampler")
            single = {value.cls for value in given if isinstance(value, Obj)}
            for value in self.passed_to(loader, "batch_sampler"):
                cls = value.cls if isinstance(value, Obj) else None
                if isinstance(cls, Class) and cls not in single:
                    out.setdefault(cls, loader)
        return out

    def attributes(self, cls: Class) -> Attributes:
        """What instances have: from the class, its bases, its methods and from outside."""
        names: set[str] = set(_EVERY_OBJECT)
        reason: str | None = None
        for base in self.flow.mro(cls):
            if isinstance(base, Unknown):
                reason = reason or base.reason
            elif isinstance(base, str):
                entry = catalog.known(base)
                if base in BARE_DATASETS:
                    names.add("__iter__")
                elif entry is None:
                    reason = reason or f"its base {base} is outside the tree"
                else:
                    names |= entry.methods
                    if self._runs_init_of(base, cls):
                        names |= entry.attributes
            else:
                names |= base.bindings.keys()
                names |= self._stored_names(base)
                names.update(self.flow.fields(base) if base.decorators else ())
                reason = reason or _dynamic(base)
        return Attributes(frozenset(names), reason)

    def _runs_init_of(self, outside: str, cls: Class) -> bool:
        """Whether building an instance runs the ``__init__`` of a base outside the tree."""
        for base in self.flow.mro(cls):
            if base == outside:
                break
            if isinstance(base, Class) and base.method("__init__") is not None:
                calls = self.flow.base_init_calls(base)
                if not calls:
                    return False
                if not all(on_super(call.func) for call in calls):
                    return True  # one that is named may be any of those above
        return True

    def _stored_names(self, cls: Class) -> set[str]:
        stores = self_stores(scopes_inside(cls), cls)
        # `self.x += 1` reads it first.
        return {target.name for target, store in stores if store.how != "aug"}

    @cached_property
    def built(self) -> dict[Class, list[Obj]]:
        """The constructions of each class of the tree."""
        out: dict[Class, list[Obj]] = {}
        for obj in self.constructions():
            if isinstance(obj.cls, Class):
                out.setdefault(obj.cls, []).append(obj)
        return out

    def trials(self, cls: Class, *, around_shard: bool = False) -> Trials:
        """What a sampler class does in a few small worlds (see :mod:`.running`).

        ``around_shard``: when the sampler it is given is a DistributedSampler.
        """

        def run(interpreter: Interpreter) -> Trials:
            from sampler_lint.execution.trials import try_out

            return try_out(interpreter, cls, around_shard=around_shard)

        return self._tried.ask((Model.trials, cls, around_shard), (cls,), run)

    def sharing(self, cls: Class) -> Sharing:
        """How the ranks and workers divide a dataset (see :mod:`.sharing`)."""

        def run(interpreter: Interpreter) -> Sharing:
            from sampler_lint.execution.sharing import try_sharing

            return try_sharing(interpreter, cls)

        return self._tried.ask((Model.sharing, cls), (cls,), run)

    def measured(self, cls: Class) -> Measured | None:
        """How the length of a class is wrong whatever its constructor does (see :mod:`.hollow`)."""

        def run(interpreter: Interpreter) -> Measured | None:
            from sampler_lint.execution.hollow import measured

            return measured(interpreter, cls)

        return self._tried.ask((Model.measured, cls), (cls,), run)

    def unset(self, cls: Class) -> tuple[Unset, ...]:
        """What a class reads before anything has set it, by a choice (see :mod:`.choices`)."""

        def run(interpreter: Interpreter) -> tuple[Unset, ...]:
            from sampler_lint.execution.choices import unset

            return unset(interpreter, cls)

        return self._tried.ask((Model.unset, cls), (cls,), run)

    def trials_around(self, cls: Class, parameter: str, inner: Class) -> tuple[Trial, ...]:
        """What a sampler class does with objects of another class of the tree as a parameter."""

        def run(interpreter: Interpreter) -> tuple[Trial, ...]:
            from sampler_lint.execution.trials import try_around

            return try_around(interpreter, cls, parameter, inner)

        return self._tried.ask((Model.trials_around, cls, parameter, inner), (cls, inner), run)

    def epoch_trial(
        self, cls: Class, *, around: Around = None, texts: Texts = None, **how: Any
    ) -> EpochTrial | None:
        """What setting the epoch of an object does (see :mod:`.epochs`), maybe in fixed files."""

        def run(interpreter: Interpreter) -> EpochTrial | None:
            from sampler_lint.execution.epochs import try_epochs

            asked = {"tells_errors": texts is not None, **how}
            return try_epochs(interpreter, cls, around=around, **asked)

        if texts is not None:
            return self._tried.ask_of(texts, run)
        classes = (cls, around[1]) if around is not None and around[1] is not None else (cls,)
        key = (Model.epoch_trial, cls, around, *(each for each in sorted(how.items()) if each[1]))
        return self._tried.ask(key, classes, run)

    def uses_seed(self, cls: Class) -> bool | None:
        """Whether the seed that a class is given changes what it draws its order by, if known."""

        def run(interpreter: Interpreter) -> bool | None:
            from sampler_lint.execution.epochs import uses_seed

            return uses_seed(interpreter, cls)

        return self._tried.ask((Model.uses_seed, cls), (cls,), run)

    def true_length(self, cls: Class, returned: Expr, candidates: list[str]) -> str | None:
        """The first of several codes that is the length of ``cls``, returned in that place."""

        def run(interpreter: Interpreter) -> str | None:
            from sampler_lint.execution.candidates import first_true

            return first_true(interpreter, cls, self.module_of(cls), returned, candidates)

        return self._tried.ask((Model.true_length, cls, returned, *candidates), (cls,), run)

    def other_attribute(self, cls: Class, reads: tuple[Attr, ...]) -> tuple[Attr, str] | None:
        """The one read, and what read instead lets the ranks of a class share out all there is."""

        def run(interpreter: Interpreter) -> tuple[Attr, str] | None:
            from sampler_lint.execution.candidates import other_attribute

            return other_attribute(interpreter, cls, self.module_of(cls), reads)

        return self._tried.ask((Model.other_attribute, cls), (cls,), run)

    def start_of_share(self, cls: Class, sliced: Index, candidates: list[str]) -> str | None:
        """The one of several slices that, taken instead, gives each rank a share of its own."""

        def run(interpreter: Interpreter) -> str | None:
            from sampler_lint.execution.candidates import start_of_share

            return start_of_share(interpreter, cls, self.module_of(cls), sliced, candidates)

        key = (Model.start_of_share, cls, sliced, *candidates)
        return self._tried.ask(key, (cls,), run)

    def evened_out(
        self,
        cls: Class,
        after: Stmt,
        candidates: list[tuple[str, str | None]],
        returned: Expr | None,
    ) -> tuple[str, str | None] | None:
        """The first of several codes that, run after a statement, makes all ranks equally long.

        Each may come with what ``__len__`` is to say instead of what is ``returned`` there.
        """

        def run(interpreter: Interpreter) -> tuple[str, str | None] | None:
            from sampler_lint.execution.candidates import evened_out

            module = self.module_of(after.scope)
            return evened_out(interpreter, cls, module, after, candidates, returned)

        return self._tried.ask((Model.evened_out, cls, after, *candidates), (cls,), run)

    # -- samplers and loaders

    def constructions(self) -> Iterator[Obj]:
        """Every sampler and loader built in the candidate files."""
        yield from self._constructions

    @cached_property
    def _constructions(self) -> list[Obj]:
        out: list[Obj] = []
        known = self.flow.declared.names | {
            cls.name
            for _, cls in self.classes()
            if self.flow.is_a(cls, SAMPLER) or self.flow.is_a(cls, DATA_LOADER)
        }
        partials = {
            program: self.project.aliased(
                program, lambda name: name in known or _speaks_of_construction(name)
            )
            for program in {self.project.program_of(module) for module in self.modules}
        }
        seen: set[Obj] = set()
        for module in self.modules:
            names = (
                known
                | partials[self.project.program_of(module)]
                | {
                    name
                    for name, (_, imported, _) in module.facts.imports
                    if imported in known or _speaks_of_construction(imported or "")
                }
            )
            for call in module.facts.all_calls:
                name = last_name(call.func)
                if not (
                    (name is not None and (name in names or _speaks_of_construction(name)))
                    or any(
                        each in names or _speaks_of_construction(each)
                        for each in (() if name else names_meant(call.func))
                    )
                    or call.keyword("sampler") is not None
                    or call.keyword("batch_sampler") is not None
                    or ((own := built_by_itself(call)) is not None and own.name in known)
                ):
                    continue
                for value in self.flow.built_at(call):
                    if value not in seen and self.role(value):
                        seen.add(value)
                        out.append(value)
        return out

    def role(self, value: Value) -> str | None:
        """``loader``, ``batch_sampler`` or ``sampler`` if the object certainly is one."""
        if not isinstance(value, Obj):
            return None
        for name, role in (
            (DATA_LOADER, "loader"),
            (BATCH_SAMPLER, "batch_sampler"),
            (SAMPLER, "sampler"),
        ):
            if self.flow.is_a(value.cls, name):
                return role
        return None

    @cached_property
    def loaders(self) -> list[Obj]:
        """Every ``DataLoader`` (or subclass) built in the candidate files.

        What a factory builds is another loader for each of its calls.
        """
        return [
            each
            for obj in self._constructions
            if self.role(obj) == "loader"
            for each in self._by_call(obj)
        ]

    def _by_call(self, obj: Obj) -> list[Obj]:
        """An object as each call of the function that returns it gets it.

        As it is, too, where others may call the function, or a call is not seen to give it.
        """
        scope = obj.site.scope if obj.site is not None else None
        if not isinstance(scope, Function):
            return [obj]
        by_call = [
            [
                value
                for value in self.flow.values(call)
                if isinstance(value, Obj) and value.site is obj.site and value.through is not None
            ]
            for call in self.flow.callers(scope)
        ]
        found = dict.fromkeys(value for values in by_call for value in values)
        if not all(by_call) or not found or self.module_of(scope).is_library(scope):
            found[obj] = None
        return list(found)

    def argument(self, obj: Obj, name: str) -> Expr | None:
        """The expression passed for a constructor parameter; None where none is seen.

        A factory passes on what it got by the call through which the object came. None also
        where ``*args`` or ``**kwargs`` may carry it: see :meth:`Flow.may_be_passed`.
        """
        given = self.flow.argument(obj, name)
        return None if given is None else as_passed(self.flow, given, obj.through)

    def passed_to(self, obj: Obj, name: str) -> frozenset[Value]:
        """What was passed for a constructor parameter: empty if nothing was.

        Contains :class:`~.analysis.values.Unknown` when ``*args``/``**kwargs`` may carry it. What
        a test of its class keeps away from the call was not passed.
        """
        given = self.argument(obj, name)
        if given is None:
            return self.flow.given(obj, name) if self.flow.may_be_passed(obj, name) else frozenset()
        values = self.flow.values(self.flow.chosen(given, obj.through))
        site, here = obj.site, self.flow.argument(obj, name)
        if site is None or here is None:
            return values
        out = {value for value in values if is_kept_out(self.flow, site, here, value)}
        return values - out if out else values

    def option(self, obj: Obj, name: str, default: Any) -> set[Any] | None:
        """The literal values that a constructor parameter may have; None if one is not known.

        ``default`` is the value where nothing is passed.
        """
        given = self.flow.argument(obj, name)
        if given is None:
            return None if self.flow.may_be_passed(obj, name) else {default}
        return self.flow.constants(given, obj.through)

    def samplers_of(self, loader: Obj) -> Iterator[Obj]:
        """The known samplers and batch samplers that a loader is given.

        Beside a batch sampler torch takes no sampler: no loader reads by that.
        """
        batches = self.passed_to(loader, "batch_sampler")
        is_alone = bool(batches) and all(isinstance(value, Obj) for value in batches)
        for value in batches if is_alone else chain(self.passed_to(loader, "sampler"), batches):
            if isinstance(value, Obj):
                yield value

    def samplers_behind(self, loader: Obj) -> Iterator[Obj]:
        """Those, and the samplers that they take their samples from, the nearest first."""
        return closure(self.samplers_of(loader), self.samplers_within)

    def samplers_within(self, sampler: Obj) -> Iterator[Obj]:
        """The known samplers that a sampler takes its samples from."""
        return (v for v in self.flow.ask_field(sampler, "sampler") if isinstance(v, Obj))

    @cached_property
    def loaded(self) -> dict[Class, list[tuple[Obj, Obj]]]:
        """The samplers of each class, and of those derived from it, each with a loader it is
        given to."""
        out: dict[Class, list[tuple[Obj, Obj]]] = {}
        for loader in self.loaders:
            for sampler in self.samplers_of(loader):
                for cls in self.flow.own_mro(sampler.cls) if isinstance(sampler.cls, Class) else ():
                    out.setdefault(cls, []).append((sampler, loader))
        return out

    # -- epochs

    @cached_property
    def epoch_setters(self) -> list[Call]:
        """Every call whose name says ``set_epoch`` in the candidate files."""
        return [
            call
            for module in self.modules
            if module.says("set_epoch")
            for call in module.facts.all_calls
            if isinstance(call.func, Attr) and SETS_EPOCH.names(call.func)
        ]

    def epoch_setters_near(self, scope: Scope) -> list[Call]:
        """Those in the program that a scope belongs to."""
        return [call for call in self.epoch_setters if self.project.same_program(call.scope, scope)]

    @cached_property
    def epoch_setters_kept(self) -> list[tuple[Scope, Expr, Expr]]:
        """Where a ``set_epoch`` is taken for a later call, and of what it is taken.

        ``begin = sampler.set_epoch``, ``hooks.append(sampler.set_epoch)``,
        ``getattr(sampler, "set_epoch", None)``.
        """
        called = {id(call.func) for call in self.epoch_setters}
        kept: list[tuple[Scope, Expr, Expr]] = []
        for module in self.modules:
            if not module.says("set_epoch"):
                continue
            for scope in module.facts.scopes:
                kept += [
                    (scope, read, read.value)
                    for read in scope.reads
                    if SETS_EPOCH.names(read) and id(read) not in called
                ]
            for call in module.facts.all_calls:
                given = call.positional if last_name(call.func) == "getattr" else []
                name = given[1] if len(given) > 1 else None
                if isinstance(name, Const) and SETS_EPOCH.says(str(name.value)):
                    kept.append((call.scope, call, given[0]))
        return kept


_EVERY_OBJECT = frozenset(
    {*dir(object), "__dict__", "__weakref__", "__module__", "__annotations__", "__slots__"}
)


def scopes_inside(cls: Class) -> Iterator[Scope]:
    """The class body and every function in it, nested ones too."""
    yield cls
    yield from cls.module.inside(cls)


def own_scopes(model: Model, cls: Class) -> list[Scope]:
    """The scopes in a class and in its bases of the tree."""
    return [scope for each in model.flow.own_mro(cls) for scope in scopes_inside(each)]


def calls_inside(cls: Class) -> Iterator[Call]:
    """Every call in a class, nested functions too."""
    for scope in scopes_inside(cls):
        yield from scope.calls


def _dynamic(cls: Class) -> str | None:
    """Why a class may have attributes that no assignment shows."""
    made_up = made_up_by(cls)
    handed = next(handing_itself(cls), None) if made_up is None else None
    return f"{cls.name} passes itself to `{last_name(handed.func)}`" if handed else made_up


def handing_itself(cls: Class) -> Iterator[Call]:
    """The calls in a class that get the object itself, but for those that only look at it."""
    for scope in scopes_inside(cls):
        if _restores(cls, scope):
            continue
        for call in scope.calls:
            if LOOKS.is_call(call) or ITERATES.is_call(call) or ASKS_BY_NAME.is_call(call):
                continue
            is_handed = any(self_class(arg.value) is cls for arg in call.args)
            if is_handed and not _is_unbound_init(call):
                yield call


def made_up_by(cls: Class) -> str | None:
    """What in a class may give it attributes by names that are not written."""
    if cls.makes_up_attributes:
        return f"{cls.name} defines __getattr__"
    if any(
        arg.keyword == "metaclass" and last_name(arg.value) != "ABCMeta" for arg in cls.keywords
    ):
        return f"{cls.name} has a metaclass"
    if not all(_is_plain(decorator) for decorator in cls.decorators):
        return f"{cls.name} is decorated"
    for scope in scopes_inside(cls):
        if not _restores(cls, scope) and (by := sets_by_name(scope)) is not None:
            return f"{cls.name} {by}"
    return None


def sets_by_name(scope: Scope) -> str | None:
    """In what way a scope may set attributes of some object by their names."""
    for call in scope.calls:
        name = (last_name(call.func) or "").strip("_")
        # `eval` takes an expression, which assigns nothing.
        by_name = isinstance(call.func, Name) and NAMESPACES.is_call(call) and name != "eval"
        if by_name or name == "setattr":
            return "sets attributes by name"
    stored = (store.target for store in scope.stores)
    if any(isinstance(each, Attr) and each.name == "__dict__" for each in (*scope.reads, *stored)):
        return "uses __dict__"
    return None


def _restores(cls: Class, scope: Scope) -> bool:
    """Whether a method only puts back what another instance had: not every run calls it.

    ``__setstate__`` is pickle's, ``load_state_dict`` the ``Stateful`` protocol's of torch.
    """
    return (
        scope.outer is cls
        and RESTORES.says(scope.name)
        and not any(
            last_name(call.func) == scope.name
            and isinstance(call.func, Attr)
            and self_class(call.func.value) is cls
            for call in calls_inside(cls)
        )
    )


def is_registered(cls: Class) -> bool:
    """Whether a decorator puts the class where it is looked up by its name, to be built."""
    return any(_is_called(decorator, "register") for decorator in cls.decorators)


def _is_plain(decorator: Expr) -> bool:
    """Whether a class decorator adds no attributes: registries give the class back as it is."""
    return _is_called(decorator, "register", "dataclass")


def _is_called(decorator: Expr, *words: str) -> bool:
    name = last_name(decorator.func if isinstance(decorator, Call) else decorator) or ""
    return name.lstrip("_").startswith(words)


def _is_unbound_init(call: Call) -> bool:
    return isinstance(call.func, Attr) and call.func.name.startswith("__")


__all__ = [
    "BATCH_SAMPLER",
    "DATA_LOADER",
    "DISTRIBUTED_SAMPLER",
    "SAMPLER",
    "Attributes",
    "Model",
]
