"""Files without a sampler word that a loader goes through, or whose loops lead to one.

The words of a file decide where to begin (:mod:`.first_look`), values decide where to end: a
progress bar of one's own (``for batch in logger.log_every(loader)``) iterates loaders in a file
that names none, and a script that only calls ``trainer.train_epoch(epoch)`` holds the epoch loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Obj, Pack, Table, Unknown, Value, View
from sampler_lint.domain.concepts import ITERATED, PROCESSES
from sampler_lint.domain.conditions import function_asked
from sampler_lint.domain.copies import persists
from sampler_lint.domain.epoch_calls import Built
from sampler_lint.domain.epochs import encloses_a_pass
from sampler_lint.domain.model import Model, own_scopes
from sampler_lint.domain.passes import Pass, passes
from sampler_lint.domain.samplers import is_sharded_by, reads_in_turn, sharding_programs
from sampler_lint.limits import MOST_CALLING_BY_NAME, MOST_REGISTERED
from sampler_lint.remembered import remembered
from sampler_lint.source import SourceError
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import binder_of
from sampler_lint.syntax.nodes import Attr, Call, Class, Expr, Function, Imported, Name, Scope
from sampler_lint.workspace.import_paths import Place
from sampler_lint.workspace.project import Module
from sampler_lint.workspace.stars import BUILTINS


def files_to_join(model: Model) -> set[str]:
    """The files that should be looked at as if they said a sampler word."""
    programs = _programs_that_shard(model)
    known = {module.path for module in model.modules}
    looked_at = programs | {*_with_own_shares(model), *_copied(model), *_in_turn(model)}
    taking = set(_taking(model, known, looked_at)) - known
    wanted: set[Function] = set()
    for inner in passes(model) if programs else ():
        if any(is_sharded_by(model, each) for each in model.samplers_of(inner.loader)):
            wanted.update(_not_called(model, inner))
    wanted.update(_awaited(model, programs))
    wanted.update(_giving(model))
    wanted.update(_hooking(model, programs))
    wanted.update(_choosing(model, programs))
    registered = set(_calling(model, set(_registering(model)), known))
    if len(registered) > MOST_REGISTERED:
        registered = set()
    return taking | registered | set(_calling(model, wanted, known))


def _programs_that_shard(model: Model) -> set[str]:
    """The programs with a loader whose sampler shards: only its passes hang on an epoch."""
    return {
        model.project.program_of(model.module_of(loader.site.scope))
        for loader in _sharded(model)
        if loader.site is not None
    }


def _with_own_shares(model: Model) -> Iterator[str]:
    """The programs with a loader whose sampler is a class of the tree that says ranks itself.

    It need not have an epoch: its order may be one for all passes.
    """
    for loader in model.loaders:
        if loader.site is not None and any(
            isinstance(sampler.cls, Class) and _says_ranks(model, sampler.cls)
            for sampler in model.samplers_of(loader)
        ):
            yield model.project.program_of(model.module_of(loader.site.scope))


def _in_turn(model: Model) -> Iterator[str]:
    """The programs with a loader that shuffles nothing: what trains with it should."""
    for loader in model.loaders:
        if loader.site is not None and reads_in_turn(model, loader):
            yield model.project.program_of(model.module_of(loader.site.scope))


def _says_ranks(model: Model, cls: Class) -> bool:
    """Whether a class takes a rank, or calls what may tell it, whatever its text says beside."""
    called = (name for scope in own_scopes(model, cls) for name in scope.called)
    return any(map(PROCESSES.says, (*(model.flow.params(cls) or ()), *called)))


def _sharded(model: Model) -> Iterator[Obj]:
    """The loaders whose sampler shards."""
    for loader in model.loaders if sharding_programs(model) else ():
        if loader.site is not None and any(
            is_sharded_by(model, each) for each in model.samplers_of(loader)
        ):
            yield loader


def _taking(model: Model, known: set[str], programs: set[str]) -> Iterator[str]:
    """The files of the functions that a loader is handed to, where they are no candidates.

    Or a dataset whose workers keep their copies: who has it may change it.
    """
    for module in model.modules:
        if model.project.program_of(module) not in programs:
            continue
        outside = {
            name
            for name, imported in (*module.facts.imports, *_starred(module))
            for path in model.project.files_meant(imported, module)
            if path not in known or path.endswith("__init__.py")  # a package hands on what it has
        }
        known_names: dict[tuple[Scope, str], bool] = {}
        for call in module.facts.all_calls:
            if not call.args or not _leads_to(call.func, outside, known_names):
                continue
            # What is called is known sooner than what it is called with.
            paths = {model.module_of(function).path for function in model.flow.callees(call)}
            if not paths <= known and any(_matters(model, arg.value) for arg in call.args):
                yield from paths


def _starred(module: Module) -> Iterator[tuple[str, Imported]]:
    """The names that a file calls and does not bind, with each of its star imports."""
    stars = [Imported(name, None, level) for name, level in module.facts.star_imports]
    called = [call.func for call in module.facts.all_calls] if stars else []
    names = {
        func.id for func in called if isinstance(func, Name) and not binder_of(func.scope, func.id)
    }
    for name in names - BUILTINS:
        yield from ((name, star) for star in stars)


def _leads_to(expr: Expr, names: set[str], known: dict[tuple[Scope, str], bool]) -> bool:
    """Whether one of the names is at the root of what is called, or of what that was made by."""
    while isinstance(expr, (Attr, Call)):
        expr = expr.value if isinstance(expr, Attr) else expr.func
    if not isinstance(expr, Name):
        return False
    key = expr.scope, expr.id
    if key not in known:
        known[key] = expr.id in names  # if it is asked again on the way
        known[key] |= any(
            binding.how == "assign"
            and isinstance(binding.value, Call)
            and _leads_to(binding.value, names, known)
            for binding in expr.scope.bindings.get(expr.id, ())
        )
    return known[key]


def _matters(model: Model, expr: Expr) -> bool:
    copied = _copied(model).values()
    return isinstance(expr, (Name, Attr, Call)) and any(
        _holds_loader(model, value)
        or any((value.cls, value.site) in each for each in copied if isinstance(value, Obj))
        for value in model.flow.values(expr)
    )


@remembered
def _copied(model: Model) -> dict[str, set[Built]]:
    """The datasets whose workers keep their copies of them, by program."""
    found: dict[str, set[Built]] = {}
    for loader in model.loaders:
        if loader.site is not None and persists(model, loader):
            program = model.project.program_of(model.module_of(loader.site.scope))
            found.setdefault(program, set()).update(
                (value.cls, value.site)
                for value in model.passed_to(loader, "dataset")
                if isinstance(value, Obj) and isinstance(value.cls, Class)
            )
    return found


def _holds_loader(model: Model, value: Value) -> bool:
    """Whether it is a loader, a list or dict of some, or an object that keeps one."""
    if model.role(value) == "loader":
        return True
    if isinstance(value, Obj) and isinstance(value.cls, Class):
        return _keeps_loader(model, value.cls)
    if isinstance(value, View):
        value = value.table
    held: list[Expr] = []
    if isinstance(value, Pack):
        held = value.items
    elif isinstance(value, Table):
        held = [item for _, item in value.entries]
    return any(model.role(each) == "loader" for item in held for each in model.flow.values(item))


@remembered
def _keeps_loader(model: Model, cls: Class) -> bool:
    return any(
        model.role(value) == "loader"
        for name in model.attributes(cls).names
        for value in model.flow.ask_field(Obj(cls), name)
    )


def _not_called(model: Model, inner: Pass) -> Iterator[Function]:
    """The functions above a pass that no candidate calls, if no loop makes it again and again.

    Python calls the pass of a wrapper itself, for who gets one from what builds it.
    """
    if not isinstance(inner.scope, Function) or encloses_a_pass(model, inner):
        return
    for function in _uncalled_above(model, inner.scope):
        yield function
        cls = function.cls if function.name.startswith("__") else None
        init = model.flow.method(cls, "__init__") if cls is not None else None
        if isinstance(init, Function) and init is not function:
            yield from _uncalled_above(model, init)


def _uncalled_above(model: Model, below: Function) -> Iterator[Function]:
    """The functions that lead to one by calls, and that no candidate calls."""
    start: list[Scope] = [below]
    for scope in closure(start, model.flow.callers_of):
        if isinstance(scope, Function) and not model.flow.callers(scope):
            yield scope


def _awaited(model: Model, programs: set[str]) -> Iterator[Function]:
    """The functions whose callers say what is iterated, and that no candidate calls."""
    for module in model.modules:
        if model.project.program_of(module) in programs:
            for scope in module.facts.scopes:
                for source, _ in scope.iterated:
                    for value in model.flow.values(source) if ITERATED.is_mentioned(source) else ():
                        if isinstance(value, Unknown) and value.awaits is not None:
                            yield value.awaits


def _hooking(model: Model, programs: set[str]) -> Iterator[Function]:
    """The functions whose callers say which hooks run, where one may set an epoch.

    Whether a callback that sets it is among those of a trainer, only who builds the trainer says.
    """
    for setter in model.epoch_setters:
        hook = setter.scope
        if (
            not isinstance(hook, Function)
            or hook.cls is None
            or model.project.program_of(model.module_of(hook)) not in programs
            or model.flow.callers(hook)
        ):
            continue
        for call in model.flow.call_candidates(hook):
            if isinstance(call.func, Attr) and not model.flow.callees(call):
                for value in model.flow.values(call.func.value):
                    if isinstance(value, Unknown) and value.awaits is not None:
                        yield value.awaits


def _choosing(model: Model, programs: set[str]) -> Iterator[Function]:
    """The functions whose callers say by what they pass whether an epoch is set.

    One that starts the processes need not say a sampler word: ``mp.spawn(train, args=(count,))``.
    """
    for setter in model.epoch_setters:
        if model.project.program_of(model.module_of(setter.scope)) in programs:
            function = function_asked(model, setter)
            if function is not None:
                yield function


def _registering(model: Model) -> Iterator[Function]:
    """The functions whose callers say which datasets a sharded loader may get: decorators, mostly.

    A file that registers its dataset in such a way need not say a sampler word.
    """
    for loader in _sharded(model):
        for value in model.passed_to(loader, "dataset"):
            scope = value.awaits if isinstance(value, Unknown) else None
            for each in scope.outward() if scope is not None and scope.outer is not None else ():
                if isinstance(each, Function):
                    yield each


def _giving(model: Model) -> Iterator[Function]:
    """The functions that give a loader, or what keeps it, to nobody that is known."""
    passed = {inner.loader.site for inner in passes(model)}
    for loader in model.loaders:
        if loader.site is None or loader.site in passed:
            continue
        if isinstance(loader.site.scope, Function):
            yield from _uncalled_above(model, loader.site.scope)
            cls = loader.site.scope.cls
            for method in cls.methods if cls is not None else ():
                if not method.name.startswith("__") and not model.flow.callers(method):
                    yield method


def _calling(model: Model, functions: set[Function], known: set[str]) -> Iterator[str]:
    """Files that import from the file of one of the functions, or by a package, and spell its name.

    Or call by name a method that few files do: an object is handed to where nobody imports its
    class.
    """
    project = model.project
    words: dict[tuple[bytes, str], set[str]] = {}
    methods: dict[bytes, list[str]] = {}
    for function in functions:
        name = spelled = function.name
        if function.cls is not None and name.startswith("__"):
            name = spelled = function.cls.name  # Python calls it: what has an object spells this
        elif function.cls is not None:
            spelled = f".{name}"
            methods[f".{name}(".encode()] = []
        words.setdefault((spelled.encode(), name), set()).add(model.module_of(function).path)
    for path in project.files.keys() - known if words else ():
        try:
            data = project.bytes_of(path)
        except SourceError:
            continue
        for call, where in methods.items():
            if call in data:
                where.append(path)
        said = [(name, homes) for (word, name), homes in words.items() if word in data]
        if said:
            project.imports_told(path, data)  # what is read once need not be read again
        if any(_imports_from(model, path, name, homes) for name, homes in said):
            yield path
    for where in methods.values():
        if len(where) <= MOST_CALLING_BY_NAME:
            yield from where


def _imports_from(model: Model, path: str, name: str, homes: set[str]) -> bool:
    """Whether a file imports from one of others, or the name by way of a package from there."""
    if any(not homes.isdisjoint(found) for _, _, found in _imported(model, path)):
        return True
    seen, todo = {path}, [path]
    while todo:
        for attribute, whole, found in _imported(model, todo.pop()):
            # A package hands on what it has itself imported.
            told = found if attribute == name else found & {whole}
            if not homes.isdisjoint(told):
                return True
            packages = {each for each in told - seen if each.endswith("__init__.py")}
            seen |= packages
            todo += packages
    return False


@remembered
def _imported(model: Model, path: str) -> list[tuple[str | None, str | None, set[str]]]:
    """Of each import of a file the attribute, the file of the whole, and all that it may mean."""
    project, place = model.project, Place.of(path)
    return [
        (
            imported.attribute,
            project.imports.find(imported.whole, place, imported.level),
            project.files_meant(imported, place),
        )
        for imported in project.imports_told(path) or ()
    ]


__all__ = ["files_to_join"]
