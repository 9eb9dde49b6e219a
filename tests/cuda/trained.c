#include "cuda/trained.h"

#include <math.h>

void trained_make(trial *t, int steps, trained *out) {
    assert_true(steps <= TRAINED_STEPS_MOST);
    out->count = steps;
    snapshot_gather(&out->start, t);
    trial_steps(t, steps, out->steps);
    snapshot_gather(&out->end, t);
}

void trained_check_arenas(const trial *t) {
    for (int space = 0; space < TR_SPACE_NVME; space++) {
        const tr_arena *arena = t->engine->arenas[space];
        size_t bytes = (size_t)t->plan->arena_bytes[space];
        assert_int_equal(arena ? tr__arena_high_water(arena) : 0, bytes);
    }
}

void trained_free(trained *t) {
    snapshot_free(&t->start);
    snapshot_free(&t->end);
}

// Of two runs that measure it, or of none.
static void assert_same_noise(const tr_step_result *a, const tr_step_result *b,
                              const char *what) {
    bool neither = isnan(a->noise_trace) && isnan(b->noise_trace);
    if (!neither && !(fabs(b->noise_trace / a->noise_trace - 1) <= 1e-4)) {
        fail_msg("%s, step %d: the noise's trace is %.9g for %.9g", what, (int)a->step,
                 b->noise_trace, a->noise_trace);
    }
}

void trained_assert_close(const trained *cpu, const trained *cuda, const char *what) {
    for (int s = 0; s < cpu->count; s++) {
        const tr_step_result *a = &cpu->steps[s], *b = &cuda->steps[s];
        if (!(fabs(a->loss - b->loss) <= 1e-5) ||
            !(fabs(b->grad_norm / a->grad_norm - 1) <= 1e-5)) {
            fail_msg("%s, step %d: loss %.9g for %.9g, gradient norm %.9g for %.9g",
                     what, s + 1, b->loss, a->loss, b->grad_norm, a->grad_norm);
        }
        assert_true(a->targets == b->targets && a->accuracy == b->accuracy);
        assert_same_noise(a, b, what);
    }
    snapshot_assert_close(&cpu->start, &cpu->end, &cuda->end, 1e-4, what);
}
