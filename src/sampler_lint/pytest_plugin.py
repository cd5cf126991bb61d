"""pytest plugin: run a training script or a test function on real gloo ranks.

Loaded by pytest through its entry point, so it is free until a test asks for ``gloo_world``:
torch is imported by the ranks' own process only.
"""

from __future__ import annotations
