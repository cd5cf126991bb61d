"""The test matrix: ``nox`` runs the suite on each Python that is installed (``nox -s tests-3.12``).

What CI runs beside it stands in ``.ci/run``. Where pip would bring torch with CUDA (5 GB for each
Python), ``PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu`` gets the smaller build.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.10", "3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """The default tests; arguments after ``--`` go to pytest."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11")
def docs(session: nox.Session) -> None:
    """Build the documentation site, strictly, into ``site``."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
