// Labels: guard
// What is kept and what is made again decides about no bit: random plans against one
// that keeps everything.
#include "base/rng.h"
#include "exec/rig.h"
#include "graph/centered_model.h"
#include "models/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PLANS = 7, STREAM = 31 };

typedef struct draws {
    uint64_t next;
} draws;

static int64_t draw(draws *d, int64_t count) {
    return (int64_t)tr__draw_below((uint64_t)count, d->next++, TEST_SEED, STREAM);
}

static void describe(const tr_plan_request *r, char what[160]) {
    snprintf(what, 160,
             "%s, m %d, wave %d: %d units recomputed; classes %x in %d units; "
             "boundaries in %s",
             r->model->type, (int)r->micro_batch, (int)r->wave,
             (int)r->recomputed_units, (unsigned)r->recomputed_ops,
             (int)r->recomputed_ops_units, tr_space_name(r->boundary_placement));
}

// The same bits in every gradient, loss and norm; and the memory that was planned.
static void compare(const test_rig *rig, const test_rig *plain, const char *what) {
    for (int i = 0; i < (int)rig->plan->param_count; i++) {
        size_t bytes = (size_t)test_rig_count(rig, i) * sizeof(float);
        if (memcmp(test_rig_grad(rig, i), test_rig_grad(plain, i), bytes) != 0) {
            fail_msg("%s: the gradient of %s is another", what, test_rig_name(rig, i));
        }
    }
    tr_step_statistics got = test_rig_statistics(rig),
                       want = test_rig_statistics(plain);
    assert_memory_equal(got.sums, want.sums, sizeof got.sums);
    assert_true(got.norm_squares == want.norm_squares);
    for (int space = 0; space < TR_SPACE_NVME; space++) {
        int64_t total = tr_plan_ledger(rig->plan)->total[space];
        const tr_arena *arena = rig->arenas[space];
        assert_int_equal(arena ? (int64_t)tr__arena_high_water(arena) : 0, total);
    }
}

static void try_plan(const tr_plan_request *request, const test_rig *plain) {
    char what[160];
    test_rig rig;
    describe(request, what);
    test_rig_begin(&rig, request);
    test_rig_train(&rig);
    compare(&rig, plain, what);
    test_rig_end(&rig);
}

static void try_model(const tr_model *model, bool reference, draws *d) {
    for (int i = 0; i < PLANS; i++) {
        bool centered = model == &test_model_centered;
        tr_plan_request request = test_rig_request(model, 1 + draw(d, 6));
        test_rig plain;
        request.reference_kernels = reference;
        request.wave = centered ? 0 : 1 + draw(d, request.accumulation_steps);
        request.recomputed_ops = TR_RECOMPUTE_NOTHING;
        test_rig_begin(&plain, &request);
        test_rig_train(&plain);
        for (int k = 0; k < 4; k++) {
            request.recomputed_ops = (uint32_t)draw(d, TR_RECOMPUTE_ALL + 1);
            request.recomputed_ops_units = draw(d, model->unit_count + 1);
            request.recomputed_units = draw(d, 2) ? draw(d, model->unit_count) : 0;
            request.boundary_placement = draw(d, 2) ? TR_SPACE_HOST : TR_SPACE_DEVICE;
            request.saved_placement = draw(d, 2) ? TR_SPACE_HOST : TR_SPACE_DEVICE;
            request.no_overlap = draw(d, 4) == 0;
            try_plan(&request, &plain);
        }
        test_rig_end(&plain);
    }
}

static void nothing_made_again_changes_a_bit(void **state) {
    (void)state;
    draws d = {0};
    tr_error err = {0};
    tr_model *mlp = NULL, *gpt2 = test_rig_gpt2(3, 0.25);
    tr_mlp_config config = {.size = {6, 7, 9, 5, 3}, .layers = 4};
    assert_int_equal(tr__model_mlp(&config, &mlp, &err), TR_OK);
    for (int reference = 0; reference < 2; reference++) {
        try_model(gpt2, reference, &d);
        try_model(mlp, reference, &d);
        try_model(&test_model_centered, reference, &d);
    }
    tr_model_destroy(gpt2);
    tr_model_destroy(mlp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_made_again_changes_a_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
