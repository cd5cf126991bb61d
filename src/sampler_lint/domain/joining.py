"""Files without a sampler word that a loader goes through, or whose loops lead to one.

The words of a file decide where to begin (:mod:`.first_look`), values decide where to end: a
progress bar of one's own (``for batch in logger.log_every(loader)``) iterates loaders in a file
that names none, and a script that only calls ``trainer.train_epoch(epoch)`` holds the epoch loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.epochs import Pass, encloses_a_pass, passes
from sampler_lint.domain.model import Model
from sampler_lint.domain.samplers import is_sharded_by, sharding_programs
from sampler_lint.source import SourceError
from sampler_lint.syntax.nodes import Attr, Call, Expr, Function, Name, Scope


def files_to_join(model: Model) -> set[str]:
    """The files that should be looked at as if they said a sampler word."""
    programs = _programs_that_shard(model)
    known = {module.path for module in model.modules}
    taking = set(_taking(model, known, programs)) - known
    wanted: set[Function] = set()
    for inner in passes(model) if programs else ():
        if any(is_sharded_by(model, each) for each in model.samplers_of(inner.loader)):
            wanted.update(_not_called(model, inner))
    return taking | set(_calling(model, wanted, known))


def _programs_that_shard(model: Model) -> set[str]:
    """The programs with a loader whose sampler shards: only its passes hang on an epoch."""
    return {
        model.project.program_of(model.module_of(loader.site.scope))
        for loader in (model.loaders if sharding_programs(model) else ())
        if loader.site is not None
        and any(is_sharded_by(model, each) for each in model.samplers_of(loader))
    }


def _taking(model: Model, known: set[str], programs: set[str]) -> Iterator[str]:
    """The files of the functions that a loader is handed to, where they are no candidates."""
    for module in model.modules:
        if model.project.program_of(module) not in programs:
            continue
        outside = {
            name
            for name, imported in module.facts.imports
            if not known.issuperset(model.project.files_meant(imported, module))
        }
        known_names: dict[tuple[Scope, str], bool] = {}
        for call in module.facts.all_calls:
            if (
                call.args
                and _leads_to(call.func, outside, known_names)
                and any(_is_loader(model, arg.value) for arg in call.args)
            ):
                for function in model.flow.callees(call):
                    yield model.module_of(function).path


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


def _is_loader(model: Model, expr: Expr) -> bool:
    return isinstance(expr, (Name, Attr)) and any(
        model.role(value) == "loader" for value in model.flow.values(expr)
    )


def _not_called(model: Model, inner: Pass) -> Iterator[Function]:
    """The functions above a pass that no candidate calls, if no loop makes it again and again."""
    if not isinstance(inner.scope, Function) or encloses_a_pass(model, inner):
        return
    found, todo = {inner.scope}, [inner.scope]
    while todo:
        function = todo.pop()
        callers = model.flow.callers(function)
        if not callers:
            yield function
        new = {call.scope for call in callers if isinstance(call.scope, Function)} - found
        found |= new
        todo += new


def _calling(model: Model, functions: set[Function], known: set[str]) -> Iterator[str]:
    """Files that import from the file of one of the functions and spell its name."""
    project = model.project
    words: dict[bytes, set[str]] = {}
    for function in functions:
        words.setdefault(function.name.encode(), set()).add(model.module_of(function).path)
    for path in project.files.keys() - known if words else ():
        try:
            data = project.bytes_of(path)
        except SourceError:
            continue
        homes = {home for word, paths in words.items() if word in data for home in paths}
        if homes and not homes.isdisjoint(project.imported_by(path)):
            yield path


__all__ = ["files_to_join"]
