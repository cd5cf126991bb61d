"""Who asks how long a loader is."""

from __future__ import annotations

from sampler_lint import catalog
from sampler_lint.analysis.values import Ext, ExtObj, Obj
from sampler_lint.domain.concepts import MEASURED, MEASURES
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import program_files
from sampler_lint.syntax.nodes import Call, Class, Function


def is_asked_for(model: Model, cls: Class) -> bool:
    """Whether somebody asks how long it is: it is for others, or a framework gets its loader.

    Or the program itself asks the loader, the sampler, or something that is called so and not
    followed.
    """
    pairs = model.loaded.get(cls, ())
    if not pairs or any(loader.site is None or _is_hooked(model, loader) for _, loader in pairs):
        return True
    held = {each for pair in pairs for each in pair}
    files, own = program_files(model), model.module_of(cls)
    for module in model.project.modules_near(cls):
        for call in module.facts.all_calls if files.share_importer(own, module) else ():
            asks = MEASURES.is_call(call)
            for arg in call.args if asks or _is_of_framework(model, call) else ():
                values = model.flow.values(arg.value)
                known = {value for value in values if isinstance(value, Obj)}
                if known & held or (asks and not known and MEASURED.names(arg.value)):
                    return True
    return False


def _is_hooked(model: Model, loader: Obj) -> bool:
    """Whether a method makes a loader that a framework which the program uses calls by name."""
    scope = loader.site.scope if loader.site is not None else None
    return isinstance(scope, Function) and any(
        scope.name in (table.train_hooks | table.evaluation_hooks)
        for table in map(catalog.framework, model.frameworks(model.module_of(scope)))
    )


def _is_of_framework(model: Model, call: Call) -> bool:
    return any(
        value.dotted.partition(".")[0] in catalog.FRAMEWORK_PACKAGES
        for value in model.flow.values(call.func)
        if isinstance(value, (Ext, ExtObj))
    )
