"""Colossal-AI 0.3 and later: ``booster/booster.py``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Framework, HandsBack

FRAMEWORK = Framework(
    "colossalai",
    "Colossal-AI",
    packages=("colossalai",),
    distributions=("colossalai",),
    releases=("0.3", "0.4", "0.5"),
    hands_back=(
        # Every plugin's `configure` returns the very loader that it is given.
        HandsBack(
            ("colossalai.booster.Booster().boost", "colossalai.booster.booster.Booster().boost"),
            ("model", "optimizer", "criterion", "dataloader", "lr_scheduler"),
        ),
    ),
)
