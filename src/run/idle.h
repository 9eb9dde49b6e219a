// When a key of a run file has no effect, for the rows of the tables (tr_key.idle).
// What these functions are given is a tr_run.
#ifndef TR_RUN_IDLE_H
#define TR_RUN_IDLE_H

#include <stdbool.h>

bool tr__idle_no_evaluation(const void *run);
bool tr__idle_no_guard(const void *run);
bool tr__idle_no_rollback(const void *run);
bool tr__idle_no_scaling(const void *run);
bool tr__idle_no_noise(const void *run);
bool tr__idle_no_encoder(const void *run);
bool tr__idle_no_tensor_ranks(const void *run);
bool tr__idle_no_turns(const void *run);
bool tr__idle_on_host(const void *run);
bool tr__idle_f32_logits(const void *run);
bool tr__idle_no_embeddings(const void *run);
bool tr__idle_one_pass(const void *run);
bool tr__idle_one_stage(const void *run);
bool tr__idle_no_masks(const void *run);
bool tr__idle_no_labels(const void *run);
bool tr__idle_no_nvme(const void *run);
bool tr__idle_state_on_device(const void *run);
bool tr__idle_nothing_recomputed(const void *run);
bool tr__idle_all_recomputed(const void *run);
bool tr__idle_first_units_of_nothing(const void *run);
bool tr__idle_no_schedule(const void *run);
bool tr__idle_prints_by_steps(const void *run);
bool tr__idle_no_decay(const void *run);
bool tr__idle_no_decay_rates(const void *run);
bool tr__idle_no_betas(const void *run);
bool tr__idle_no_cycle_of_betas(const void *run);
bool tr__idle_own_attention(const void *run);
bool tr__idle_fixed_scale(const void *run);

#endif
