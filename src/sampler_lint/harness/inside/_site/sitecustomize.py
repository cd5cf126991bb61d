"""First on ``PYTHONPATH`` of a recorded program: arms the recorder, then makes way.

Python imports one ``sitecustomize`` at start-up; the one this file shadows is run as well.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys


def _run(spec: "importlib.machinery.ModuleSpec | None", name: str) -> None:
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)


def _main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    directory = os.environ.get("SAMPLER_LINT_RECORD")
    if directory:
        package = os.path.join(os.path.dirname(here), "__init__.py")
        _run(importlib.util.spec_from_file_location("_sampler_lint", package), "_sampler_lint")
        importlib.import_module("_sampler_lint.recorder").arm(directory)
        importlib.import_module("_sampler_lint.heirs").keep(directory)
    rest = [path for path in sys.path if os.path.abspath(path) != here]
    _run(importlib.machinery.PathFinder.find_spec("sitecustomize", rest), "sitecustomize")


_main()
