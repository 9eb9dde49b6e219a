#include "cuda/trained.h"

#include <math.h>

void trained_make(trial *t, int steps, trained *out) {
    assert_true(steps <= TRAINED_STEPS_MOST);
    out->count = steps;
    snapshot_take(&out->start, t);
    trial_steps(t, steps, out->steps);
    snapshot_take(&out->end, t);
}

void trained_free(trained *t) {
    snapshot_free(&t->start);
    snapshot_free(&t->end);
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
    }
    snapshot_assert_close(&cpu->start, &cpu->end, &cuda->end, 1e-4, what);
}
