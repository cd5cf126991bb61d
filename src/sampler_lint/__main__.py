"""``python -m sampler_lint``: the same as the ``sampler-lint`` command."""

import sys

from sampler_lint.cli import run

if __name__ == "__main__":
    sys.exit(run())
