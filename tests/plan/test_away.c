// Activations that wait on the host between forward and backward: inputs of recomputed
// units, and what other units save. What is there, and what moves.
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static tr_plan *make(const tr_model *model, tr_space home, int64_t g, int64_t wave) {
    tr_plan_request request = test_request(model, 3, g);
    request.wave = wave;
    request.recomputed_units = -1;
    request.boundary_placement = home;
    return test_plan(&request);
}

static int count(const tr_plan *plan, tr_verb kind) {
    int steps = 0;
    for (size_t i = 0; i < plan->sequences[TR_SEQUENCE_TRAIN].count; i++) {
        steps += plan->sequences[TR_SEQUENCE_TRAIN].steps[i].label.verb == kind;
    }
    return steps;
}

// Both blocks' inputs leave and come back, for every micro-batch.
static void inputs_wait_on_the_host(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    for (int64_t wave = 2; wave <= 6; wave += 2) {
        tr_plan *here = make(model, TR_SPACE_DEVICE, 6, wave);
        tr_plan *there = make(model, TR_SPACE_HOST, 6, wave);
        int64_t bytes = here->units[1].program->input_bytes;
        assert_int_equal(bytes, 3 * 4 * 8 * 4); // [3, 4, 8] f32
        int moved = count(there, TR_VERB_evict);
        assert_int_equal(count(there, TR_VERB_fetch), moved);
        // The last of a wave may be needed again too soon.
        assert_true(moved <= 6 * 2 && moved >= 6 * 2 - 6 / wave);
        assert_int_equal(there->traffic.device_host, 2 * moved * bytes);
        assert_int_equal(count(here, TR_VERB_evict) + here->traffic.device_host, 0);
        const tr_ledger *a = tr_plan_ledger(here), *b = tr_plan_ledger(there);
        assert_int_equal(a->total[TR_SPACE_HOST], 0);
        assert_int_equal(b->total[TR_SPACE_HOST],
                         b->bytes[TR_SPACE_HOST][TR_LEDGER_boundary] +
                             b->bytes[TR_SPACE_HOST][TR_LEDGER_unused]);
        assert_true(b->bytes[TR_SPACE_HOST][TR_LEDGER_boundary] >=
                    (2 * wave - 1) * bytes);
        assert_true(wave < 4 || b->total[TR_SPACE_DEVICE] < a->total[TR_SPACE_DEVICE]);
        tr_plan_destroy(here);
        tr_plan_destroy(there);
    }
    tr_model_destroy(model);
}

static void nothing_waits_where_nothing_is_recomputed(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 2);
    request.boundary_placement = TR_SPACE_HOST;
    tr_plan *plan = test_plan(&request);
    assert_int_equal(plan->traffic.device_host, 0);
    assert_int_equal(tr_plan_ledger(plan)->total[TR_SPACE_HOST], 0);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// What each block saves leaves and comes back, for every micro-batch.
static void saved_activations_wait_on_the_host(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    for (int64_t wave = 2; wave <= 6; wave += 2) {
        tr_plan_request request = test_request(model, 3, 6);
        request.wave = wave;
        tr_plan *here = test_plan(&request);
        request.saved_placement = TR_SPACE_HOST;
        tr_plan *there = test_plan(&request);
        int64_t bytes = here->units[1].program->saved_bytes;
        int moved = count(there, TR_VERB_evict);
        assert_true(bytes > 0 && count(there, TR_VERB_fetch) == moved);
        assert_true(moved <= 6 * 2 && moved >= 6 * 2 - 6 / wave);
        assert_int_equal(there->traffic.device_host, 2 * moved * bytes);
        assert_int_equal(count(here, TR_VERB_evict) + here->traffic.device_host, 0);
        const tr_ledger *a = tr_plan_ledger(here), *b = tr_plan_ledger(there);
        assert_int_equal(a->total[TR_SPACE_HOST], 0);
        assert_true(b->bytes[TR_SPACE_HOST][TR_LEDGER_activations] >=
                    (2 * wave - 1) * bytes);
        assert_true(wave < 4 || b->total[TR_SPACE_DEVICE] < a->total[TR_SPACE_DEVICE]);
        tr_plan_destroy(here);
        tr_plan_destroy(there);
    }
    tr_model_destroy(model);
}

// Some units are recomputed, whose inputs leave; what the others save leaves, too.
static void both_wait(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 3, 6);
    request.wave = 6;
    request.recomputed_units = 2; // the embedding and the first block
    request.boundary_placement = request.saved_placement = TR_SPACE_HOST;
    tr_plan *plan = test_plan(&request);
    const tr_ledger *ledger = tr_plan_ledger(plan);
    assert_true(ledger->bytes[TR_SPACE_HOST][TR_LEDGER_activations] > 0);
    assert_true(ledger->bytes[TR_SPACE_HOST][TR_LEDGER_boundary] > 0);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void what_is_not_built_is_refused(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 1, 2);
    tr_error err = {0};
    tr_plan *plan = NULL;
    request.boundary_placement = TR_SPACE_NVME;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    request.boundary_placement = TR_SPACE_DEVICE;
    request.saved_placement = TR_SPACE_NVME;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_wait_on_the_host),
        cmocka_unit_test(nothing_waits_where_nothing_is_recomputed),
        cmocka_unit_test(saved_activations_wait_on_the_host),
        cmocka_unit_test(both_wait),
        cmocka_unit_test(what_is_not_built_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
