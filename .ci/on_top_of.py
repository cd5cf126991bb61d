"""Let this environment see what another one has.

    python .ci/on_top_of.py FOLDER_OF_THE_OTHER

What is installed here comes first. The files of the other that lead elsewhere, as for what it has
in editable mode, are followed, too.
"""

from __future__ import annotations

import os
import sys
from sysconfig import get_path

below = get_path("purelib", vars={"base": os.path.abspath(sys.argv[1])})
with open(os.path.join(get_path("purelib"), "below.pth"), "w") as file:
    file.write(f"import site; site.addsitedir({below!r})\n")
