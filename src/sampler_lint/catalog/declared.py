"""What a project's own factories build, where its configuration says so.

``known-samplers`` build a ``DistributedSampler`` and ``known-loaders`` a ``DataLoader``. How they
use their arguments is not known, but for a few keywords that can hardly mean anything else.
"""

from __future__ import annotations

from sampler_lint.catalog.schema import KnownClass
from sampler_lint.catalog.torch import TORCH_DATA

#: No import can have this name.
PACKAGE = "<declared>"
SAMPLER = f"{PACKAGE}.DistributedSampler"
LOADER = f"{PACKAGE}.DataLoader"

CLASSES = {
    SAMPLER: KnownClass(
        SAMPLER, "sampler", base=f"{TORCH_DATA}DistributedSampler", open=True, distributed=True
    ),
    LOADER: KnownClass(LOADER, "loader", base=f"{TORCH_DATA}DataLoader", open=True),
}

#: Keywords that reach the constructor as they are.
PASSED_ON = {
    SAMPLER: frozenset({"shuffle"}),
    LOADER: frozenset({"sampler", "batch_sampler"}),
}
