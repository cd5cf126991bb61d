"""sampler-lint: find, mend and prove data-sampler bugs in distributed PyTorch training.

Importing this package imports neither libcst nor torch: both are loaded by the stages
that need them (rules with a suspect; the harness when asked to run code).
"""

__version__ = "0.1.0"
