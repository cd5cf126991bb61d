"""What parameters want, by their names and annotations."""

from __future__ import annotations

import pytest

from sampler_lint.parameters import Role, role_of, several

#: Names that public samplers use.
NAMES = {
    Role.WORLD_SIZE: "num_replicas numReplicas world_size world n_gpus num_nodes total_ranks "
    "dp_size data_parallel_size data_parallel_world_size num_devices shard_count nprocs",
    Role.RANK: "rank dp_rank node_rank data_parallel_rank localRank rank_id process_index shard_id "
    "replica_idx device_id process_id",
    Role.TOTAL_BATCH: "global_batch_size total_batch_size effectiveBatchSize",
    Role.MAX_BATCH: "max_batch_size maxBatchSize",
    Role.BATCH_SIZE: "batch_size bs bsz batch samples_per_gpu imgs_per_gpu per_device_batch_size "
    "micro_batch_size minibatch_size images_per_batch n_samples_per_batch",
    Role.DATASET: "dataset data_source ds data iterable train_set train_dataset source samples",
    Role.PART_SIZES: "dataset_sizes set_lens data_lengths samples_size_per_epoch",
    Role.SIZE: "size length n n_samples num_samples total_size dataset_len data_length num_data "
    "num_examples epoch_size length_before_new_iter",
    Role.LENGTHS: "lengths sizes lens durations seq_lens sequence_lengths num_tokens_vec",
    Role.LABELS: "labels targets classes group_ids class_ids y label_list",
    Role.GROUPS: "groups clusters domains",
    Role.WEIGHTS: "weights sample_weights probabilities",
    Role.INDICES: "indices indexes idxs ids",
    Role.SEED: "seed random_seed data_seed random_state rng_seed seed_for_all_ranks",
    Role.START: "epoch start_epoch start_iter last_epoch consumed_samples offset start_index",
    Role.SHUFFLE: "shuffle",
    Role.DROP_LAST: "drop_last dropLast",
    Role.GENERATOR: "generator rng g",
    Role.SAMPLER: "sampler base_sampler inner_sampler samplers",
    Role.BATCH_SAMPLER: "batch_sampler base_batch_sampler batch_samplers",
    Role.BOUNDARIES: "boundaries bucket_boundaries",
    Role.CLASSES: "n_classes num_classes n_labels",
    Role.COLUMN: "text_column",
    Role.FUNCTION: "key_fn",
    Role.MOST: "max_tokens",
    Role.NUMBER: "num_instances n_max_per_class min_len bucket_size number_of_groups views_count",
}


@pytest.mark.parametrize("role", NAMES)
def test_a_name_tells_the_role(role: Role) -> None:
    assert {name: role_of(name) for name in NAMES[role].split()} == dict.fromkeys(
        NAMES[role].split(), role
    )


@pytest.mark.parametrize(
    "name",
    [
        "frank",
        "num_samples_per_rank",
        "timeout_before_rank",
        "secondary_batch_size",
        "pad_samples_to_batch_size_of",
    ],
)
def test_a_name_that_only_holds_another_tells_nothing_of_it(name: str) -> None:
    assert role_of(name) not in {Role.RANK, Role.BATCH_SIZE}


@pytest.mark.parametrize(
    ("name", "annotation", "role"),
    [
        ("source", "Sampler", Role.SAMPLER),
        ("sampler", "Union[Sampler[List[int]], Iterable[List[int]]]", Role.BATCH_SAMPLER),
        ("inner", "Sampler[int]", Role.SAMPLER),
        ("inner", "torch.utils.data.BatchSampler", Role.BATCH_SAMPLER),
        ("train", "Dataset", Role.DATASET),
        ("trains", "list[Dataset]", None),
        ("noise", "torch.Generator", Role.GENERATOR),
        ("key", "Callable[[int], int]", Role.FUNCTION),
        ("k", "int", Role.NUMBER),
        ("num_kept", "float", None),
        ("size", "tuple[int, int]", None),
        ("size", "Optional[int]", Role.SIZE),
        ("colour", "str", None),
    ],
)
def test_an_annotation_tells_what_the_name_does_not(
    name: str, annotation: str, role: Role | None
) -> None:
    assert role_of(name, annotation) is role


@pytest.mark.parametrize("annotation", ["list[int]", "typing.List[int]", "Optional[Sequence[int]]"])
def test_a_list_of_them_is_wanted(annotation: str) -> None:
    assert several(annotation)
    assert not several(f"Sampler[{annotation}]")
