"""Each rule's fix as a LibCST codemod: ``libcst.tool codemod -x sampler_lint.codemods.CODE``.

A class for each rule that has a fix, under the rule's code. Loads libcst and all rules.
"""

from sampler_lint.codemods.rules import *  # noqa: F403
