// Numbers of a checkpoint beside its counters: the batch, the noise scale, the guard.
#include "train/engine.h"
#include "train/state/data_identity.h"

#include <math.h>

typedef struct slot {
    const char *name;
    double *real;
    int64_t *integer; // or this
} slot;

enum {
    SLOTS = 18,
    OTHERS =
        9, // of an epoch, the optimizer and its states, fixed-point sums: checkpoint.c
};

_Static_assert(SLOTS + OTHERS + TR_DATA_NUMBERS + TR_DIMENSIONS <= TR_STATE_NUMBERS_MAX,
               "a checkpoint has no room for all its numbers");

static void list(tr_engine *engine, slot slots[SLOTS]) {
    tr_noise *noise = &engine->noise;
    tr_guard *guard = &engine->guard;
    const slot all[SLOTS] = {
        {"batch", .integer = &engine->wanted_batch},
        {"learned_samples", .integer = &engine->count.learned},
        {"skipped_in_row", .integer = &engine->count.in_row},
        {"noise_trace", .real = &noise->trace},
        {"noise_gradient", .real = &noise->gradient},
        {"noise_weight", .real = &noise->weight},
        {"noise_steps", .integer = &noise->steps},
        {"guard_steps", .integer = &guard->steps},
        {"guard_loss_mean", .real = &guard->loss.mean},
        {"guard_loss_variance", .real = &guard->loss.variance},
        {"guard_norm_mean", .real = &guard->norm.mean},
        {"guard_norm_variance", .real = &guard->norm.variance},
        {"guard_pressure", .real = &guard->pressure},
        {"guard_rate", .real = &guard->rate},
        {"guard_warm", .integer = &guard->warm},
        {"guard_target", .integer = &guard->target},
        {"guard_since", .integer = &guard->since},
        {"guard_spikes", .integer = &guard->spikes},
    };
    for (int i = 0; i < SLOTS; i++) {
        slots[i] = all[i];
    }
}

void tr__engine_put_numbers(const tr_engine *engine, tr_state_numbers *numbers) {
    tr_engine copy = *engine;
    slot slots[SLOTS];
    list(&copy, slots);
    for (int i = 0; i < SLOTS; i++) {
        double value = slots[i].real ? *slots[i].real : (double)*slots[i].integer;
        tr__state_numbers_set(numbers, slots[i].name, value);
    }
}

void tr__engine_get_numbers(tr_engine *engine, const tr_state_numbers *numbers) {
    slot slots[SLOTS];
    double value;
    list(engine, slots);
    for (int i = 0; i < SLOTS; i++) {
        if (!tr__state_numbers_get(numbers, slots[i].name, &value)) {
            continue;
        }
        if (slots[i].real) {
            *slots[i].real = value;
        } else {
            *slots[i].integer = (int64_t)value;
        }
    }
}

int64_t tr__engine_learned(const tr_state *state) {
    double learned = (double)state->cursor;
    tr__state_numbers_get(&state->numbers, "learned_samples", &learned);
    return (int64_t)learned;
}

void tr__engine_count_updates(tr_engine *engine, int64_t updates) {
    engine->count.update = updates;
    engine->count.step = updates + engine->count.skipped;
    for (size_t g = 0; g < engine->settings->group_count; g++) {
        const tr_hyper *hyper = &engine->settings->groups[g].hyper;
        engine->power[g][0] = pow(hyper->beta1, (double)updates);
        engine->power[g][1] = pow(hyper->beta2, (double)updates);
    }
}
