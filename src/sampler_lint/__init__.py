"""sampler-lint: find, fix and prove data-sampler bugs in distributed PyTorch training.

Importing this package imports neither libcst nor torch: both are loaded by the stages
that need them (rules with a suspect; the harness when asked to run code).
"""

TYPE_CHECKING = False  # typing itself would take longer to import than all of this
if TYPE_CHECKING:
    from sampler_lint.harness.contract import check_sampler

__all__ = ["__version__", "check_sampler"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load what is public when it is first used."""
    if name == "check_sampler":
        from sampler_lint.harness.contract import check_sampler

        return check_sampler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
