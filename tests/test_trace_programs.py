"""What a record shows of programs as people write them: some of ``benchmarks/runs``.

Right ones that look wrong from outside are silent; each of their neighbours has a bug.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sampler_lint.harness import invariants
from sampler_lint.harness.diagnosis import diagnose
from sampler_lint.harness.world import World

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))
from runs import FRAMEWORKS, IMPORTS, PLAIN, Program, programs

# ruff: noqa: SIM905
CHOSEN = """
ddp/set_epoch_inner_only ddp/weighted_alike ddp/shuffled_the_wrong_one ddp/own_sharding_twice
local/right_local_sgd_uneven local/right_sweep tp/right_mesh_tp tp/different_data
tp/right_teacher_student_both_learn fsdp/unsharded hand/flat_allreduce_unsharded
passes/right_ppo passes/right_adversarial passes/right_multi_epoch_loader
two18/unlabelled_batches_cycled_from_memory
mesh/right_dp_tp mesh/dp_tp_sharded_over_world mesh/hsdp_sharded_over_one_dim
more/right_context_parallel_with_dp stream/right_workers_split stream/workers_not_split
stream/iterable_not_split stream/persistent_workers_epoch_not_heard stream/right_offset_function
stream/dataset_offset_wrong workers/numpy_worker_id_only workers/generator_in_dataset
workers/right_seeded_but_no_draws workers/epoch_dataset_persistent more/pipeline_same_shards_order
resume/right_epoch resume/epoch_counter_zero resume/right_sampler_start_index
more/adam_resume_epoch_zero more/right_adam_resume more/right_repeated_augmentation
more/right_batch_sampler_stateful_mid_epoch more/right_random_crops more/simclr_unsharded
ddp2/eval_padded_counts_twice
ddp2/much_lost_batch_too_big ddp/val_shuffled
ddp2/accumulation_remainder_zeroed
ddp2/never_shuffled_sorted_by_class ddp2/weights_alike_numpy
stream2/buffer_shuffle_one_seed
resume2/mid_epoch_restarts_the_epoch resume2/skips_an_epoch
mesh2/pipeline_dp_unsharded
one2/order_drawn_in_init several/train_val_overlap
contrastive/balanced_batches_alike_on_ranks contrastive/right_balanced_batches_by_rank
own/stream_stride_of_rank_and_worker_wrong own/right_workers_draw_for_themselves
own/right_batch_cut_by_hand own/unsharded_micro_batches rl/right_replay_buffer
phases/right_active_learning folds/two_permutations_split
resume/skips_samples_instead_of_batches resume/right_skips_batches
repeat/endless_workers_without_epoch repeat/right_endless_workers_with_epoch
contrast2/p_by_k_batches_seeded_once
workers4/cutout_from_a_module_generator
fifth/batches_of_the_first_epoch_kept_on_device more/right_cached_on_device
hand/averages_bucketed_unsharded hand/right_averages_every_fourth
endless6/training_sampler_of_its_own_seed
windows6/random_windows_of_one_seed
epochitr6/fairseq_style_seed_alone
megatron6/consumed_samples_not_restored
shards6/shard_list_shuffled_before_its_split
resume6/skips_in_every_epoch
resume6/position_counted_by_the_prefetching_sampler
gan6/critic_round_given_as_the_epoch
skip22/right_every_rank_skips_others_batches_of_one_order mb22/every_rank_trains_on_the_first_part
ov23/validation_drawn_from_the_training_samples ca23/augmentation_kept_in_a_dict
res23/data_state_loaded_on_rank_zero_only
back24/right_best_weights_again_and_on
mixed6/second_source_out_of_reach
cache6/crops_cached_per_index
eval6/validation_drops_its_tail
reader7/leader_sends_all_the_same
workers7/rng_of_the_transform_seeded_by_worker_alone epochs4/number_by_two_passes
hand7/loader_by_hand_over_permutation_of_the_rank
hand7/permutation_made_once_per_training
tp8/hand_made_column_parallel_shuffled_apart
pipe8/two_stages_of_unlike_orders local/right_federated_overlap
windows8/workers_draw_alike_on_ranks
resume8/skips_by_optimizer_steps
concat8/sampler_of_the_first_part
sched9/epoch_begins_anew_in_each_cycle
sched9/right_warm_restarts_of_the_loader files9/right_made_up_samples_without_a_seed
local10/right_averages_before_a_batch
files9/right_file_of_the_rank files9/right_dataset_that_knows_its_rank
early8/one_rank_stops_at_its_patience
mixture12/right_weighted_mixture_of_datasets clip12/gathered_features_of_one_batch
clip12/right_drop_last_that_divides tasks12/task_chosen_by_each_rank
prefetch12/right_a_look_on_rank_zero dedup12/padded_counts_by_gather_object
gather12/right_sizes_gathered_then_predictions gather12/counts_gathered_to_rank_zero
midway12/fast_forward_by_global_samples midway12/rest_begins_too_early
midway12/right_rest_with_a_step_of_two_batches collate12/masks_of_a_seeded_generator
collate12/generator_of_the_module collate12/right_mask_generator_of_the_worker
schedule12/epoch_zero_with_the_schedule_of_the_third
schedule12/epoch_zero_with_the_schedule_of_many_steps schedule12/right_epoch_with_its_schedule
schedule12/right_first_epoch_after_a_few_steps
schedule12/right_first_epoch_of_two_models_with_schedules
schedule12/right_fine_tuning_with_a_schedule_of_its_own
plateau13/epoch_zero_with_a_schedule_that_watches_the_loss
plateau13/epoch_zero_after_a_warmup_and_a_decay
loop13/epoch_told_to_a_batch_sampler_that_wraps
rounds14/endless_stream_shuffled_by_one_seed rounds14/right_endless_stream_shuffled_by_round
list14/files_listed_by_each_process_in_its_order list14/right_files_sorted
resume15/mid_epoch_batch_counted_over_all_epochs resume15/right_mid_epoch_by_a_subset_of_the_rest
rest15/batch_list_cut_by_samples rest15/right_batch_list_cut
rest16/order_of_the_global_generator_in_the_middle rest16/right_checkpoint_at_each_end
rest16/checkpoint_each_half_epoch_resumed_at_the_epoch
pipe18/stages_exchange_without_waiting_and_read_apart two18/right_unlabelled_loader_begun_again
cache18/augmented_samples_kept_in_lasting_workers
eval18/predictions_of_padding_gathered_too eval18/right_predictions_of_padding_cut
""".split()

KNOWN = {one.name: one for file in PLAIN for one in programs(file)}


def check(program: Program, folder: Path, gloo_session) -> None:
    script = folder / "train.py"
    script.write_text(program.text, "utf-8")
    run = gloo_session.run(script, world_size=program.ranks, timeout=25.0)
    found = diagnose(run)
    codes = {one.code for one in found}
    assert not any(rank.log.failures for rank in run.ranks)
    assert codes & program.codes if program.codes else not codes, (found, run.trouble)


@pytest.mark.parametrize("name", CHOSEN[::4])
def test_programs(name, tmp_path, gloo_session):
    check(KNOWN[name], tmp_path, gloo_session)


@pytest.fixture(scope="module")
def frameworks_session():
    with World(imports=IMPORTS) as world:
        yield world


# `benchmarks/runs.py` runs them all.
@pytest.mark.frameworks
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(one, id=one.name)
        for one in [one for file in FRAMEWORKS for one in programs(file)][::40]
    ],
)
def test_frameworks(program, tmp_path, frameworks_session):
    check(program, tmp_path, frameworks_session)


@pytest.mark.slow
def test_ranks_that_part_are_told_where_they_wait(tmp_path, gloo_session):
    check(KNOWN["ddp/eval_rank0_forward_hang"], tmp_path, gloo_session)


def test_a_rank_that_leaves_early_is_judged(tmp_path, gloo_session):
    body = """
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch in loader:
        if rank == 1:
            sys.exit()
"""
    script = tmp_path / "train.py"
    script.write_text(next(iter(KNOWN.values())).text.partition("sampler =")[0] + body)
    run = gloo_session.run(script, world_size=2, timeout=25.0)
    for one in invariants.INVARIANTS.values():
        one.judge([run] * len(one.runs))


def test_a_rank_that_ends_with_a_batch_it_does_not_learn_from_is_named(tmp_path, gloo_session):
    """It has taken as many batches as the others, which wait for its gradients."""
    body = """
model, opt = make()
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=5, sampler=sampler)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        if rank == 1 and epoch == 1:
            sys.exit()
        step(model, opt, x, y)
"""
    script = tmp_path / "train.py"
    script.write_text(next(iter(KNOWN.values())).text.partition("sampler =")[0] + body)
    run = gloo_session.run(script, world_size=2, timeout=25.0)
    assert {one.code for one in diagnose(run)} == {"SMP306"}


@pytest.mark.parametrize("left", [0, 3])
def test_epochs_that_a_rank_left_early_are_not_compared(left, tmp_path, gloo_session):
    """Its next epoch is another one than the next that the others have read to the end."""
    body = """
model, opt = make()
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=5, sampler=sampler)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for number, (x, y) in enumerate(loader):
        step(model, opt, x, y)
        if rank == 1 and epoch == 1 and number == LEFT:
            break
"""
    script = tmp_path / "train.py"
    script.write_text(
        next(iter(KNOWN.values())).text.partition("sampler =")[0] + body.replace("LEFT", str(left))
    )
    run = gloo_session.run(script, world_size=2, timeout=25.0)
    assert {one.code for one in diagnose(run)} == {"SMP306"}
