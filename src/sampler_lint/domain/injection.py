"""What the training frameworks of a program do to a batch sampler that is handed to them.

A framework that is only imported for a helper trains nothing: it counts when the program
imports the part of it that takes the loader.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache

from sampler_lint import catalog
from sampler_lint.analysis.values import Ext, Obj
from sampler_lint.catalog.lightning import ONE_PROCESS
from sampler_lint.domain.concepts import RANK, WORLD_SIZE
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import program_files
from sampler_lint.remembered import remembered
from sampler_lint.source import SourceError
from sampler_lint.syntax.navigation import walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Map,
    Name,
    Node,
    Scope,
    last_name,
)
from sampler_lint.workspace.project import Module


class Injection:
    """The frameworks that meet the batch samplers of each program of a tree."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.trainers = cache(self._trainers)
        self._users = cache(self._find_users)
        self._used_in = cache(self._find_used_in)
        self.switch = cache(self._switch)

    def program(self, module: Module) -> str:
        """The program of a file."""
        return self.model.project.program_of(module)

    def _trainers(self, module: Module) -> frozenset[str]:
        """The frameworks that may train with what the file holds.

        Another part of the repository, which other scripts start, may train with others.
        """
        asked = self.model.requirements.frameworks
        if asked is not None:
            return asked
        return frozenset(
            framework
            for framework, users in self._users(self.program(module)).items()
            if not all(program_files(self.model).run_apart(module, user) for user in users)
        )

    def _find_users(self, program: str) -> dict[str, list[Module]]:
        """By framework, the files of the program that import a name that takes its loaders.

        ``import pytorch_lightning as pl`` counts when one of those names is read of it. What the
        tree itself holds is no framework that it uses, but the framework's own code.
        """
        found: dict[str, list[Module]] = {}
        for module in program_files(self.model).training(program):
            for framework in self._used_in(module):
                found.setdefault(framework, []).append(module)
        return found

    def _find_used_in(self, module: Module) -> set[str]:
        found = set()
        whole: dict[str, str] = {}
        for name, imported in module.facts.imports:
            if imported.level:
                continue
            package = imported.name.split(".")[0]
            framework = catalog.FRAMEWORK_PACKAGES.get(package)
            if framework is None or self._is_own(imported.name, module):
                continue
            if imported.attribute in catalog.framework(framework).trainers:
                found.add(framework)
            else:
                whole[name] = framework
        for scope in module.facts.scopes if whole else ():
            for read in scope.reads:
                root = read.value
                while isinstance(root, Attr):
                    root = root.value
                framework = whole.get(root.id) if isinstance(root, Name) else None
                if framework is not None and read.name in catalog.framework(framework).trainers:
                    found.add(framework)
        return found

    def _is_own(self, name: str, module: Module) -> bool:
        """Whether an import leads to a file of the tree."""
        found = self.model.project.imports.find(name, module)
        return found is not None and found.endswith(".py")

    def _switch(self, program: str) -> str:
        """What the program's Trainers let Lightning do: see :class:`Switch`."""
        for module in program_files(self.model).training(program):
            if any(_forbids(table) for table in _tables(module)):
                return Switch.FORBIDDEN
            for call in module.facts.all_calls:
                if any(arg.keyword in _switches() for arg in call.args) or any(
                    isinstance(a, Const) and a.value in _switches() for a in call.positional
                ):
                    return Switch.FORBIDDEN  # or left to the user, who is not known
        trainers = self.calls(program)
        if not trainers or any(may_be_told_more(self.model, call) for call in trainers):
            files = {self.model.module_of(call.scope) for call in trainers}
            is_told = any(told_by_settings(self.model, file) is not None for file in files)
            return Switch.FORBIDDEN if is_told else Switch.UNKNOWN
        if all(is_one_device(self.model, call) for call in trainers):
            return Switch.SINGLE
        return Switch.OPEN

    def calls(self, program: str) -> list[Call]:
        """Where a program builds a Trainer of Lightning."""
        trainers = catalog.framework("lightning").trainers
        return [
            call
            for module in program_files(self.model).training(program)
            for call in module.facts.all_calls
            if last_name(call.func) in trainers and self.is_lightning(call)
        ]

    def lightning(self, module: Module, cls: Class) -> bool:
        """Whether Lightning certainly reads what it needs to shard the batch sampler ``cls``.

        Someone who shards by rank may have told the Trainer so in a configuration file; then
        only Trainers that stand in the code count.
        """
        return self._lightning(module, cls, {Switch.OPEN, Switch.SINGLE})

    def rebuilds(self, module: Module, cls: Class) -> bool:
        """Whether Lightning certainly builds ``cls`` anew around a DistributedSampler."""
        return self._lightning(module, cls, {Switch.OPEN})

    def may_rebuild(self, module: Module, cls: Class) -> bool:
        """Whether some Trainer may shard ``cls``, but the tree does not show that it does.

        Either its program trains with no known framework, or a Trainer of the program is told
        not to, and a hook hands over a class that does not shard by itself.
        """
        if module.name.partition(".")[0] in catalog.FRAMEWORK_PACKAGES:
            return False  # a framework's own parts are not handed to another
        trainers = self.trainers(module)
        if not any(catalog.contracts(trainer, "reads", "batch_sampler") for trainer in trainers):
            return True
        return (
            any(catalog.contracts(trainer, "rebuilds", "batch_sampler") for trainer in trainers)
            and self.switch(self.program(module)) == Switch.FORBIDDEN
            and self.in_hook(cls)
            and not shards_itself(cls)
        )

    def even_batches_off(self, module: Module) -> tuple[Scope, Node] | None:
        """Where an Accelerate program says ``even_batches=False``, and never anything else."""
        if "accelerate" not in self.trainers(module):
            return None
        found: list[tuple[Scope, Node, Expr | None]] = []
        for other in self.model.project.modules_in(self.program(module)):
            for call in other.facts.all_calls:
                given = call.keyword("even_batches")
                if given is not None:
                    found.append((call.scope, call, given))
            found += [
                (scope, store.target, store.value)
                for scope in other.facts.scopes
                for store in scope.stores
                if isinstance(store.target, Attr) and store.target.name == "even_batches"
            ]
        if not all(isinstance(value, Const) and value.value is False for _, _, value in found):
            return None
        return (found[0][0], found[0][1]) if found else None

    def is_lightning(self, call: Call) -> bool:
        """Whether a call is one of something that Lightning has."""
        return any(
            isinstance(value, Ext)
            and catalog.FRAMEWORK_PACKAGES.get(value.dotted.split(".")[0]) == "lightning"
            for value in self.model.flow.values(call.func)
        )

    def in_hook(self, cls: Class) -> bool:
        """Whether a ``train_dataloader`` (or another such hook) hands ``cls`` to Lightning."""
        loader = self.model.used_as_batch_sampler.get(cls)
        for scope in loader.site.scope.outward() if loader is not None and loader.site else ():
            if isinstance(scope, Function) and scope.name.endswith("_dataloader"):
                return scope.cls is not None
        return False

    def _lightning(self, module: Module, cls: Class, certain: set[str]) -> bool:
        if "lightning" not in self.trainers(module):
            return False
        switch = self.switch(self.program(module))
        return switch in certain or (switch == Switch.UNKNOWN and not shards_itself(cls))


@remembered
def injections(model: Model) -> Injection:
    """What frameworks do to the samplers of a tree; found once."""
    return Injection(model)


@cache
def _switches() -> frozenset[str]:
    """The Trainer's arguments that keep Lightning from sharding, in whichever version."""
    return frozenset(name for name, _ in catalog.framework("lightning").switches)


class Switch:
    """What a program's ``Trainer(...)`` calls say of ``use_distributed_sampler``."""

    OPEN = "open"
    """Left at its default, True, on what may be several devices."""
    SINGLE = "single"
    """Left at its default, on one device: nothing is sharded."""
    FORBIDDEN = "forbidden"
    """Switched off somewhere, or passed on from outside."""
    UNKNOWN = "unknown"
    """No Trainer stands in the code with all its arguments."""


def is_told_to_leave_samplers(model: Model, call: Call) -> bool:
    """Whether a Trainer is told to put no sampler of its own into loaders, also by a dict."""
    given = [_argument(model, call, name) for name in _switches()]
    return any(isinstance(value, Const) and value.value is False for value in given)


def may_be_told_more(model: Model, call: Call) -> bool:
    """Whether a Trainer may get, by ``*`` or ``**``, what says how it is to shard."""
    return any(model.flow.may_be_passed(_built(call), name) for name in _switches())


def _argument(model: Model, call: Call, name: str) -> Expr | None:
    """What a Trainer, or a Fabric, is told by a keyword, also by a dict."""
    return model.flow.argument(_built(call), name)


def _built(call: Call) -> Obj:
    return Obj(last_name(call.func) or "Trainer", call)


def told_by_settings(model: Model, module: Module) -> str | None:
    """The file beside a file's code, or above it, whose settings tell a Trainer so.

    Of YAML, as LightningCLI and hydra read it; none that asks for one device.
    """
    root = model.project.root
    folder = module.folder
    while True:
        for below in ("", "config", "configs", "conf"):
            inside = os.path.join(folder, below) if below else folder
            for path in _settings_in(model, inside, groups=below != ""):
                if _tells(model, path):
                    return os.path.relpath(path, root)
        if folder == root or not folder.startswith(root) or folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


def _settings_in(model: Model, folder: str, *, groups: bool) -> Iterator[str]:
    """The YAML files of a folder, and of the groups in it from which hydra takes one each."""
    for name in model.project.names_in(folder):
        path = os.path.join(folder, name)
        if name.endswith((".yaml", ".yml")):
            yield path
        elif groups and name.endswith(os.sep):
            yield from _settings_in(model, path, groups=False)


def _tells(model: Model, path: str) -> bool:
    try:
        text = model.project.bytes_of(path).decode("utf-8")
    except (SourceError, ValueError):
        return False
    said = {
        name: value.strip("'\"").lower() for name, value in _SETTING.findall(text) if name and value
    }
    is_off = any(said.get(name) in {"false", "no", "off"} for name in _switches())
    return is_off and said.get("devices") != "1"


#: ``name: value`` on a line of its own.
_SETTING = re.compile(r"^[ \t]*([a-z_]+):[ \t]+([^\s#]+)[ \t]*(?:#.*)?$", re.MULTILINE)


def is_one_device(model: Model, call: Call) -> bool:
    """Whether a Trainer, or a Fabric, certainly runs as one process."""
    devices = _argument(model, call, "devices")
    return isinstance(devices, Const) and devices.value in {1, "1"}


def is_several_processes(model: Model, call: Call) -> bool:
    """Whether a Trainer, or a Fabric, certainly runs as several where there are several devices."""
    if is_one_device(model, call):
        return False
    strategy, devices = (_argument(model, call, name) for name in ("strategy", "devices"))
    if isinstance(strategy, Const) and isinstance(strategy.value, str):
        return strategy.value not in ONE_PROCESS
    number = devices.value if isinstance(devices, Const) else None
    return strategy is None and type(number) is int and number > 1


def _tables(module: Module) -> Iterator[Map]:
    """Every dict display that is assigned or passed."""
    for scope in module.facts.scopes:
        values = [b.value for bindings in scope.bindings.values() for b in bindings if b.value]
        values += [arg.value for call in scope.calls for arg in call.args]
        for value in values:
            yield from (node for node in walk(value) if isinstance(node, Map))


def _forbids(table: Map) -> bool:
    return any(isinstance(key, Const) and key.value in _switches() for key, _ in table.items)


def shards_itself(cls: Class) -> bool:
    """Whether the class speaks of ranks: it hands each its own part."""
    return any(
        RANK.says(name) or WORLD_SIZE.says(name) or name in RANK.called
        for scope in scopes_inside(cls)
        for name in (
            *(param.name for param in getattr(scope, "params", ())),
            *(read.name for read in scope.reads),
            *scope.called,
        )
    )
