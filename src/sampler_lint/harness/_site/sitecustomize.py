"""First on ``PYTHONPATH`` of a recorded program: arms the recorder, then makes way.

Python imports one ``sitecustomize`` at start-up; the one this file shadows is run as well.
"""

import importlib.machinery
import importlib.util
import os
import sys
from typing import Any


def _load(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    directory = os.environ.get("SAMPLER_LINT_RECORD")
    if directory:
        record = os.path.join(os.path.dirname(here), "record.py")
        _load("sampler_lint_record", record).arm(directory)
    rest = [path for path in sys.path if os.path.abspath(path) != here]
    shadowed = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if shadowed is not None and shadowed.loader is not None:
        module = importlib.util.module_from_spec(shadowed)
        sys.modules["sitecustomize"] = module
        shadowed.loader.exec_module(module)


_main()
