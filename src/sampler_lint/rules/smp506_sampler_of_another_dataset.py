"""SMP506: a loader reads one dataset by the indices of a sampler over another."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.datasets import are_apart, sampled
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import in_test_function
from sampler_lint.findings import Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import unparse


class SamplerOfAnotherDataset(Rule):
    """A loader's sampler was built over another dataset than the one it reads.

    What it does:
        Reports a loader whose sampler (or batch sampler) was given a dataset, where points-to
        tells this one from the loader's own: both are built in the tree, at different places, out
        of different sources, and neither is made from the other. Silent for samplers over
        indices, labels or a range, for a dataset and its subset or wrapper, and for two datasets
        that are built alike but for how samples are transformed.

    Why is this bad?
        The sampler yields indices up to the length of the other dataset. If that is longer,
        the loader raises `IndexError` some time in an epoch; if it is shorter, the rest is never
        read, and nothing says so.

    Fix safety:
        No fix is offered: which of the two datasets was meant is for a person to say.

    How it is proved:
        Invariant `runs`: the program stops with the `IndexError` on two gloo ranks; it runs to
        its end with a sampler over the loader's dataset.

    References:
        - torch/utils/data/sampler.py: samplers draw from `range(len(data_source))`
    """

    code = "SMP506"
    name = "sampler-of-another-dataset"
    invariant = "runs"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Compare each loader's dataset with those of its samplers."""
        for loader in model.loaders:
            data = model.flow.argument(loader, "dataset")
            if loader.site is None or data is None or in_test_function(loader.site.scope):
                continue
            samplers = [(each, sampled(model, each)) for each in model.samplers_of(loader)]
            if samplers and all(over and are_apart(model, data, over) for _, over in samplers):
                sampler, over = samplers[0]
                assert over is not None
                yield Suspect(
                    model.module_of(loader.site.scope),
                    data,
                    f"this `{loader.name}` reads `{unparse(data)}` by the indices of a "
                    f"`{sampler.name}` over `{unparse(over)}`",
                    why=(Related(model.place_of(sampler), "the sampler is built here"),),
                    effect="what is beyond the shorter one raises `IndexError`, or is never read",
                    advice="build a sampler over this dataset",
                )
