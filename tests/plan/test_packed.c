// What kernels pack of parameters: once where these stay, again where they are brought
// again, and not at all where one micro-batch reads it.
#include "plan/flow/roles.h"
#include "plan/models.h"
#include "plan/proof/prove.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MICROS = 4 };

static tr_plan *plan_of(const tr_model *model, int64_t micros, int64_t wave,
                        tr_space params, bool repack) {
    tr_plan_request request = test_request(model, 2, micros);
    request.compute = TR_BF16;
    request.fp8.enabled = true;
    request.fp8.repack = repack;
    request.wave = wave;
    request.param_placement = params;
    return test_plan(&request);
}

// How many steps of the kind on the unit pack what others read, and how many read it.
static void count(const tr_plan *plan, tr_verb kind, int unit, tr_place place,
                  int *packs, int *reads) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    *packs = *reads = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        const tr_step_operand *packed = tr__step_block(plan, step, place, 0, false);
        if (step->label.verb == kind && step->unit == unit && packed) {
            ++*(packed->mode == TR_ACCESS_WRITE ? packs : reads);
        }
    }
}

static void assert_packs(const tr_plan *plan, int times) {
    int units = 0, packs, reads;
    for (int u = 0; u < plan->unit_count; u++) {
        if (!plan->units[u].fp8) {
            continue;
        }
        units++;
        count(plan, TR_VERB_forward, u, TR_PLACE_PACKED, &packs, &reads);
        assert_int_equal(packs, times);
        assert_int_equal(reads, MICROS - times);
        count(plan, TR_VERB_backward, u, TR_PLACE_PACKED_BACKWARD, &packs, &reads);
        assert_int_equal(packs, times);
        assert_int_equal(reads, MICROS - times);
    }
    assert_int_equal(units, 2);
}

static int64_t packed_of(const tr_plan *plan) {
    return tr_plan_ledger(plan)->bytes[TR_SPACE_DEVICE][TR_LEDGER_packed];
}

static void parameters_that_stay_are_packed_once(void **state) {
    tr_model *model = test_model_wide_gpt2();
    (void)state;
    for (int64_t wave = 1; wave <= MICROS; wave += MICROS - 1) {
        tr_plan *plan = plan_of(model, MICROS, wave, TR_SPACE_DEVICE, false);
        int64_t bytes = 0;
        for (int u = 0; u < plan->unit_count; u++) {
            const tr_unit_program *program = plan->units[u].program;
            bytes += program->packed_bytes[0] + program->packed_bytes[1];
        }
        assert_packs(plan, 1);
        assert_true(bytes > 0 && packed_of(plan) > 0 && packed_of(plan) <= bytes);
        if (wave == 1) { // all of it is there while the second micro-batch passes
            assert_int_equal(packed_of(plan), bytes);
        }
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

static void parameters_that_are_brought_are_packed_again(void **state) {
    tr_model *model = test_model_wide_gpt2();
    (void)state;
    for (int64_t wave = 1; wave <= MICROS; wave *= 2) {
        tr_plan *plan = plan_of(model, MICROS, wave, TR_SPACE_HOST, false);
        assert_packs(plan, (int)(MICROS / wave));
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// And neither do several, if they are told so.
// Behind the recomputation of one wave, which packs what it multiplies by, a stage of a
// pipeline takes another wave forward, which multiplies by more.
static void forwards_behind_a_recomputation_pack_again(void **state) {
    (void)state;
    tr_model *model = test_model_wide_gpt2();
    for (int order = TR_PIPELINE_1F1B; order <= TR_PIPELINE_V; order++) {
        tr_plan_request request = test_request(model, 2, MICROS);
        request.mesh = (tr_mesh){.size = {2, 1, 2}, .at = {0, 0, 1}};
        request.train_batch_size *= 2;
        request.stage = 3;
        request.compute = TR_BF16;
        request.fp8.enabled = true;
        request.recomputed_units = -1;
        request.pipeline_order = (tr_pipeline_order)order;
        request.virtual_stages =
            order == TR_PIPELINE_V || order == TR_PIPELINE_INTERLEAVED ? 2 : 1;
        tr_plan_destroy(test_plan(&request));
    }
    tr_model_destroy(model);
}

static void one_micro_batch_keeps_nothing(void **state) {
    tr_model *model = test_model_wide_gpt2();
    (void)state;
    for (int64_t micros = 1; micros <= 2; micros++) {
        tr_plan *plan = plan_of(model, micros, 1, TR_SPACE_DEVICE, micros > 1);
        assert_int_equal(packed_of(plan), 0);
        for (int u = 0; u < plan->unit_count; u++) {
            assert_int_equal(plan->units[u].program->packed_bytes[0], 0);
            assert_int_equal(plan->units[u].program->packed_bytes[1], 0);
        }
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// Who reads what nobody has packed is found by the proof, and so is who reads something
// else.
static void wrong_packing_is_found(void **state) {
    tr_model *model = test_model_wide_gpt2();
    tr_plan *plan = plan_of(model, MICROS, 1, TR_SPACE_DEVICE, false);
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_error err;
    int spoilt = 0;
    (void)state;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        tr_step_operand *packed = tr__step_block(plan, step, TR_PLACE_PACKED, 0, false);
        if (!packed) {
            continue;
        }
        tr_step_operand right = *packed;
        if (right.mode == TR_ACCESS_WRITE) {
            packed->mode = TR_ACCESS_ADD;
            assert_int_equal(tr__plan_prove(plan, &err), TR_INTERNAL);
            *packed = right;
        }
        for (size_t b = 0; b < plan->buffer_count; b++) {
            packed->buffer = (int32_t)b;
            if ((int32_t)b != right.buffer) {
                assert_int_equal(tr__plan_prove(plan, &err), TR_INTERNAL);
                spoilt++;
            }
        }
        *packed = right;
    }
    assert_true(spoilt > 0);
    assert_int_equal(tr__plan_prove(plan, &err), TR_OK);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_that_stay_are_packed_once),
        cmocka_unit_test(parameters_that_are_brought_are_packed_again),
        cmocka_unit_test(forwards_behind_a_recomputation_pack_again),
        cmocka_unit_test(one_micro_batch_keeps_nothing),
        cmocka_unit_test(wrong_packing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
