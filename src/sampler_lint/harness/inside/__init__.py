"""What runs inside the programs under test, which know nothing of it.

Standard library only, and no import from the package above: it is loaded by path as
``_sampler_lint``, by the interpreter that has torch, and must not shadow what a user imports.
"""
