"""Colossal-AI 0.3 and later: ``booster/booster.py`` and ``booster/plugin``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Factory, Framework, HandsBack, KnownClass, words
from sampler_lint.catalog.torch import DISTRIBUTED_PARAMS, TORCH_DATA

_PLUGIN = "colossalai.booster.plugin."
_SAMPLER = _PLUGIN + "dp_plugin_base.DistributedSampler"
_PREPARES = "{}Plugin().prepare_dataloader"

FRAMEWORK = Framework(
    "colossalai",
    "Colossal-AI",
    packages=("colossalai",),
    distributions=("colossalai",),
    releases=("0.3", "0.4", "0.5"),
    classes=(
        KnownClass(
            _SAMPLER,
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=DISTRIBUTED_PARAMS,
            required=1,
            distributed=True,
            shuffles="shuffle",
            shuffles_unasked=False,
            built_by=_PLUGIN + "dp_plugin_base:DPPluginBase.prepare_dataloader",
        ),
    ),
    factories=(
        Factory(
            (
                _PLUGIN + "dp_plugin_base.DPPluginBase().prepare_dataloader",
                *(
                    _PLUGIN + home + _PREPARES.format(plugin)
                    for plugin, module in (
                        ("TorchDDP", "torch_ddp"),
                        ("TorchFSDP", "torch_fsdp"),
                        ("LowLevelZero", "low_level_zero"),
                        ("Gemini", "gemini"),
                        ("HybridParallel", "hybrid_parallel"),
                        ("MoeHybridParallel", "moe_hybrid_parallel"),
                    )
                    for home in ("", module + "_plugin.")
                ),
            ),
            ("dataset", "batch_size"),
            sampler=_SAMPLER,
            asked=(),
            to_sampler=("dataset", "shuffle"),
            chosen_by="distributed_sampler_cls",
            hands_on=words("dataset batch_size drop_last num_workers"),
        ),
    ),
    hands_back=(
        # Every plugin's `configure` returns the very loader that it is given.
        HandsBack(
            ("colossalai.booster.Booster().boost", "colossalai.booster.booster.Booster().boost"),
            ("model", "optimizer", "criterion", "dataloader", "lr_scheduler"),
        ),
    ),
)
