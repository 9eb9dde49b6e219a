#include "files/checkpoint/state_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXACT   0x1p53 // doubles hold every integer up to here
#define STEPS   0x1p40 // as the run file's keys have it
#define COUNT   0x1p31 // and this one
#define THREADS 4096.0
#define REAL    1.7976931348623157e308

#define FIELD(member) (int)offsetof(tr_state, member)
#define NAMED(name, kind, min, max)                                                    \
    { "numbers", (name), TR_STATE_##kind, (min), (max), TR_STATE_BY_NAME }

const tr_state_row tr__state_table[] = {
    {NULL, "step", TR_STATE_INTEGER, 0, STEPS, FIELD(step)},
    {NULL, "update", TR_STATE_INTEGER, 0, STEPS, FIELD(update)},
    {NULL, "skipped", TR_STATE_INTEGER, 0, STEPS, FIELD(skipped)},
    {NULL, "cursor", TR_STATE_INTEGER, 0, EXACT, FIELD(cursor)},
    {NULL, "epoch", TR_STATE_INTEGER, 0, EXACT, FIELD(epoch)},
    {NULL, "seed", TR_STATE_UNSIGNED, 0, 0, FIELD(seed)},
    {NULL, "dataset_hash", TR_STATE_HASH, 0, 0, FIELD(dataset_hash)},
    {NULL, "model_hash", TR_STATE_HASH, 0, 0, FIELD(model_hash)},
    {"loss_scale", "scale", TR_STATE_REAL, 0x1p-1074, 0x1p127, FIELD(loss_scale)},
    {"loss_scale", "good_steps", TR_STATE_INTEGER, 0, STEPS, FIELD(good_steps)},
    {"loss_scale", "hysteresis", TR_STATE_INTEGER, 0, STEPS, FIELD(hysteresis)},
    // The batch, and what was learned from.
    NAMED("batch", INTEGER, 1, COUNT),
    NAMED("learned_samples", INTEGER, 0, EXACT),
    NAMED("optimizer", INTEGER, 0, 255),
    // The epoch at work.
    NAMED("epoch", INTEGER, 0, EXACT),
    NAMED("epoch_loss", REAL, -REAL, REAL),
    NAMED("epoch_correct", REAL, 0, REAL),
    NAMED("epoch_targets", REAL, 0, REAL),
    // The gradient noise scale.
    NAMED("noise_trace", REAL, -REAL, REAL),
    NAMED("noise_gradient", REAL, -REAL, REAL),
    NAMED("noise_weight", REAL, 0, REAL),
    NAMED("noise_steps", INTEGER, 0, EXACT),
    // The spike guard.
    NAMED("guard_steps", INTEGER, 0, EXACT),
    NAMED("guard_loss_mean", REAL, -REAL, REAL),
    NAMED("guard_loss_variance", REAL, 0, REAL),
    NAMED("guard_norm_mean", REAL, -REAL, REAL),
    NAMED("guard_norm_variance", REAL, 0, REAL),
    NAMED("guard_pressure", REAL, 0, EXACT),
    NAMED("guard_rate", REAL, 0, 1),
    NAMED("guard_warm", INTEGER, -1, EXACT),
    NAMED("guard_target", INTEGER, -1, STEPS),
    NAMED("guard_since", INTEGER, 0, STEPS),
    NAMED("guard_spikes", INTEGER, 0, EXACT),
    // Fixed-point sums: the exponent of a power of two that a double holds.
    NAMED("fixed_exponent", INTEGER, -1022, 1023),
    NAMED("fixed_batch", INTEGER, 1, COUNT),
    // The data: halves of the hash of all of it, and what was set aside.
    NAMED("data_hash_low", INTEGER, 0, 4294967295.0),
    NAMED("data_hash_high", INTEGER, 0, 4294967295.0),
    NAMED("data_held", INTEGER, 0, EXACT),
    // tr_quantization of an adapter's base.
    NAMED("quantized", INTEGER, 0, 3),
    // Threads that computed, of how many cores for each rank.
    NAMED("threads", INTEGER, 1, THREADS),
    NAMED("threads_cores", INTEGER, 1, THREADS),
    // What the planner has chosen.
    NAMED("planner.micro_batch", INTEGER, 1, COUNT),
    NAMED("planner.stage", INTEGER, 0, 3),
    NAMED("planner.optimizer_placement", INTEGER, 0, 2),
    NAMED("planner.grad_placement", INTEGER, 0, 1),
    NAMED("planner.param_placement", INTEGER, 0, 2),
    NAMED("planner.vocabulary_slices", INTEGER, 1, 16),
    NAMED("planner.passes", INTEGER, 1, 2),
    NAMED("planner.wave", INTEGER, 1, COUNT),
    NAMED("planner.alternating", INTEGER, 1, 4),
    NAMED("planner.recomputed_ops", INTEGER, 0, 4294967295.0),
    NAMED("planner.boundary_placement", INTEGER, 0, 1),
    NAMED("planner.saved_placement", INTEGER, 0, 1),
    NAMED("planner.recomputed_units", INTEGER, -1, COUNT),
    // The names that earlier versions wrote for those of placements.
    NAMED("planner.optimizer_home", INTEGER, 0, 2),
    NAMED("planner.grad_home", INTEGER, 0, 1),
    NAMED("planner.param_home", INTEGER, 0, 2),
    NAMED("planner.boundary_home", INTEGER, 0, 1),
};
const size_t tr__state_rows = sizeof tr__state_table / sizeof *tr__state_table;

const tr_state_row *tr__state_row_of(const char *name) {
    for (size_t i = 0; i < tr__state_rows; i++) {
        const tr_state_row *row = &tr__state_table[i];
        if (row->offset == TR_STATE_BY_NAME && strcmp(row->name, name) == 0) {
            return row;
        }
    }
    return NULL;
}

static bool is_within(const tr_state_row *row, double value) {
    bool whole = row->kind == TR_STATE_REAL || value == floor(value);
    return whole && value >= row->min && value <= row->max; // false of NaN
}

static tr_status fail(const char *path, const tr_state_row *row, double value,
                      tr_error *err) {
    return tr_fail(err, TR_IO,
                   "%s: '%s%s%s' is %.17g, not %s from %.17g to %.17g: the file was "
                   "changed after it was written",
                   path, row->section ? row->section : "", row->section ? "." : "",
                   row->name, value,
                   row->kind == TR_STATE_INTEGER ? "an integer" : "a number", row->min,
                   row->max);
}

static tr_status check_row(const char *path, const tr_state_row *row,
                           const tr_state *state, tr_error *err) {
    double value = 0;
    if (row->kind == TR_STATE_UNSIGNED || row->kind == TR_STATE_HASH) {
        return TR_OK; // every value is one
    }
    if (row->offset == TR_STATE_BY_NAME) {
        if (!tr__state_numbers_get(&state->numbers, row->name, &value)) {
            return TR_OK;
        }
    } else {
        const void *at = (const char *)state + row->offset;
        value = row->kind == TR_STATE_INTEGER ? (double)*(const int64_t *)at
                                              : *(const double *)at;
    }
    return is_within(row, value) ? TR_OK : fail(path, row, value, err);
}

// Products of numbers from 0 to 1.
static tr_status check_betas(const char *path, const tr_state *state, tr_error *err) {
    for (int64_t i = 0; i < state->group_count * 2; i++) {
        double value = state->beta_power[i / 2][i % 2];
        if (!(value >= 0 && value <= 1)) {
            return tr_fail(err, TR_IO,
                           "%s: 'beta_powers' of group %" PRId64
                           " is %.17g, not a number from 0 to 1: the file was changed "
                           "after it was written",
                           path, i / 2, value);
        }
    }
    return TR_OK;
}

tr_status tr__state_check(const char *path, const tr_state *state, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; status == TR_OK && i < tr__state_rows; i++) {
        status = check_row(path, &tr__state_table[i], state, err);
    }
    if (status == TR_OK) {
        status = check_betas(path, state, err);
    }
    if (status == TR_OK &&
        (state->update > state->step || state->skipped > state->step)) {
        status = tr_fail(err, TR_IO,
                         "%s: 'update' is %" PRId64 " and 'skipped' %" PRId64
                         ", more than 'step' %" PRId64
                         ": the file was changed after it was written",
                         path, state->update, state->skipped, state->step);
    }
    return status;
}
