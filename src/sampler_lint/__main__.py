"""``python -m sampler_lint``: the same as the ``sampler-lint`` command."""

import os
import sys

# ``-m`` puts the working directory first: nothing that a checked tree calls ``libcst`` or
# ``torch`` is to be imported.
if sys.path[0] == os.getcwd() and not os.path.samefile(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), sys.path[0]
):
    del sys.path[0]

from sampler_lint.cli import run

if __name__ == "__main__":
    sys.exit(run())
