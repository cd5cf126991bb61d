"""mmcv 1.x, whose runners mmengine took over in 2.0: ``runner/``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Contract, Framework, Span, words

_HOOK = "mmcv.runner.hooks.sampler_seed:DistSamplerSeedHook.before_epoch"
_RUNNERS = Span(before="2.0")

FRAMEWORK = Framework(
    "mmcv",
    "mmcv",
    packages=("mmcv", "mmcv"),
    distributions=("mmcv", "mmcv-full"),
    releases=("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "2.0", "2.1", "2.2"),
    trainers=words("EpochBasedRunner IterBasedRunner build_runner"),
    contracts=(
        Contract(
            "calls", "sampler", ("set_epoch",), _RUNNERS,
            when="at each epoch",
            source=_HOOK,
            code=("runner.data_loader.sampler.set_epoch(runner.epoch)",),
        ),
        Contract(
            "calls", "batch_sampler.sampler", ("set_epoch",), _RUNNERS,
            when="at each epoch, unless `loader.sampler` has a `set_epoch`",
            source=_HOOK,
            code=("runner.data_loader.batch_sampler.sampler.set_epoch(runner.epoch)",),
        ),
    ),
)  # fmt: skip
