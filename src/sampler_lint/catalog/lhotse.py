"""lhotse 1.24 and later: the samplers of ``dataset/sampling/``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Constructor, Framework, KnownClass, Span, words
from sampler_lint.catalog.torch import TORCH_DATA

_DATASET = "lhotse.dataset."
_SAMPLING = _DATASET + "sampling."

_SHARE = ("world_size", "rank", "seed")
_OWN = words("__iter__ _next_batch load_state_dict state_dict")
_LEFT = words("num_cuts remaining_cuts remaining_duration")

_DYNAMIC = frozenset(
    {
        *("max_duration", "max_cuts", "constraint", "shuffle", "drop_last", "consistent_ids"),
        *("shuffle_buffer_size", "quadratic_duration", *_SHARE, "strict"),
    }
)
_BUCKETING = _DYNAMIC | {
    *("num_buckets", "duration_bins", "num_cuts_for_bins_estimate", "buffer_size"),
    "sync_buckets",
}


def _exported(cls: str) -> tuple[str, ...]:
    """The other names of a class: the packages above its module export it."""
    return (f"{_DATASET}{cls}", f"{_SAMPLING}{cls}")


FRAMEWORK = Framework(
    "lhotse",
    "lhotse",
    packages=("lhotse",),
    distributions=("lhotse",),
    releases=("1.24", "1.26", "1.33"),
    classes=(
        KnownClass(
            _SAMPLING + "base.CutSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("shuffle", "drop_last", *_SHARE),
            attributes=words(
                "_diagnostics _filter_fn _just_restored_state _transforms drop_last epoch seed "
                "shuffle"
            ),
            methods=words(
                "__next__ _log_diagnostics _maybe_init_distributed diagnostics "
                "allow_iter_to_reset_state filter get_report map set_epoch"
            )
            | _OWN
            | _LEFT,
            distributed=True,
            shuffles="shuffle",
            shuffles_unasked=False,
        ),
        KnownClass(
            _SAMPLING + "simple.SimpleCutSampler",
            "sampler",
            base=_SAMPLING + "base.CutSampler",
            params=(
                *("cuts", "max_duration", "max_cuts", "shuffle", "drop_last", "concatenate_cuts"),
                *_SHARE,
            ),
            required=1,
            attributes=words("data_source time_constraint"),
            methods=_OWN | _LEFT,
            distributed=True,
            shuffles="shuffle",
            shuffles_unasked=False,
            earlier=(
                Constructor(
                    Span(before="1.33"),
                    params=("cuts", "max_duration", "max_cuts", "shuffle", "drop_last", *_SHARE),
                    required=1,
                ),
            ),
            aliases=_exported("SimpleCutSampler"),
        ),
        KnownClass(
            _SAMPLING + "bucketing.BucketingSampler",
            "sampler",
            base=_SAMPLING + "base.CutSampler",
            # What else it is given, the samplers of its buckets are.
            keywords=words("sampler_type num_buckets drop_last seed"),
            open=True,
            attributes=words(
                "bucket_rng bucket_samplers buckets cut_sets depleted num_buckets sampler_kwargs "
                "sampler_type"
            ),
            methods=_OWN
            | _LEFT
            | {
                *("_log_diagnostics", "_nondepleted_samplers_with_idxs", "_select_bucket_with_idx"),
                *("allow_iter_to_reset_state", "diagnostics", "filter", "get_report"),
                *("is_depleted", "set_epoch"),
            },
            distributed=True,
            shuffles="shuffle",
            shuffles_unasked=False,
            aliases=_exported("BucketingSampler"),
        ),
        KnownClass(
            _SAMPLING + "dynamic.DynamicCutSampler",
            "sampler",
            base=_SAMPLING + "base.CutSampler",
            keywords=_DYNAMIC,
            open=True,
            attributes=_DYNAMIC - {*_SHARE, "drop_last", "strict"} | {"cuts"},
            methods=_OWN | _LEFT | {"_fast_forward"},
            distributed=True,
            shuffles="shuffle",
            shuffles_unasked=False,
            aliases=_exported("DynamicCutSampler"),
        ),
        KnownClass(
            _SAMPLING + "dynamic_bucketing.DynamicBucketingSampler",
            "sampler",
            base=_SAMPLING + "base.CutSampler",
            keywords=_BUCKETING | {"concurrent"},
            open=True,
            attributes=_BUCKETING - {*_SHARE, "drop_last", "strict", "shuffle_buffer_size"}
            | {"cuts", "rng", "concurrent"},
            methods=_OWN | _LEFT | {"_fast_forward"},
            distributed=True,
            shuffles="shuffle",
            shuffles_unasked=False,
            earlier=(Constructor(Span(before="1.26"), keywords=_BUCKETING),),
            aliases=_exported("DynamicBucketingSampler"),
        ),
    ),
)
