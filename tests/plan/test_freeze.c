// What a plan leaves out for parameters that are frozen.
#include "ops/nn/linear/linear.h"
#include "plan/flow/roles.h"
#include "plan/models.h"
#include "plan/proof/prove.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static tr_plan_request frozen_request(const tr_model *model,
                                      const char *const *patterns, size_t count) {
    tr_plan_request request = test_request(model, 2, 3);
    request.frozen = patterns;
    request.frozen_count = count;
    return request;
}

static int64_t bytes_of(const tr_plan *plan, tr_ledger_category category) {
    int64_t bytes = 0;
    for (int s = 0; s < TR_SPACES; s++) {
        bytes += tr_plan_ledger(plan)->bytes[s][category];
    }
    return bytes;
}

// Elements of flat buffers that are trained, or that are not, padding included.
static int64_t elements_of(const tr_plan *plan, bool frozen) {
    int64_t count = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        count += plan->flats[f].frozen == frozen ? plan->flats[f].count : 0;
    }
    return count;
}

static size_t steps_of(const tr_plan *plan, tr_verb kind) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    size_t count = 0;
    for (size_t i = 0; i < train->count; i++) {
        count += train->steps[i].label.verb == kind;
    }
    return count;
}

// The embedding and the first block of two: units that keep their one flat buffer.
static const char *const below[] = {"transformer.w*", "transformer.h.0.*"};

static void ledger_shows_the_saving(void **state) {
    tr_model *model = test_model_small_gpt2(0.1);
    tr_plan_request all = test_request(model, 2, 3);
    tr_plan_request part = frozen_request(model, below, 2);
    tr_plan *whole = test_plan(&all), *plan = test_plan(&part);
    int64_t trained = elements_of(plan, false), frozen = elements_of(plan, true);
    (void)state;
    assert_int_equal(trained + frozen, elements_of(whole, false));
    assert_int_equal(elements_of(whole, true), 0);
    assert_int_equal(bytes_of(whole, TR_LEDGER_parameters), 4 * (trained + frozen));
    assert_int_equal(bytes_of(plan, TR_LEDGER_parameters), 4 * (trained + frozen));
    assert_int_equal(bytes_of(whole, TR_LEDGER_gradients), 4 * (trained + frozen));
    assert_int_equal(bytes_of(plan, TR_LEDGER_gradients), 4 * trained);
    assert_int_equal(bytes_of(whole, TR_LEDGER_optimizer), 8 * (trained + frozen));
    assert_int_equal(bytes_of(plan, TR_LEDGER_optimizer), 8 * trained);
    assert_true(bytes_of(plan, TR_LEDGER_activations) <
                bytes_of(whole, TR_LEDGER_activations));
    assert_int_equal(tr_plan_parameters(plan), tr_plan_parameters(whole));
    assert_int_equal(tr_plan_trained(whole), tr_plan_parameters(whole));
    assert_true(tr_plan_trained(plan) < tr_plan_trained(whole));
    assert_true(tr_plan_flops(plan) < tr_plan_flops(whole));
    tr_plan_destroy(whole);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Below the lowest trained unit nothing is kept and no backward runs: with as many
// units recomputed, nothing is made again either.
static void nothing_runs_back_below(void **state) {
    tr_model *model = test_model_small_gpt2(0.1);
    (void)state;
    for (int recomputed = 0; recomputed < 2; recomputed++) {
        tr_plan_request request = frozen_request(model, below, 2);
        request.recomputed_units = recomputed ? -1 : 0;
        tr_plan *plan = test_plan(&request);
        const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
        for (size_t i = 0; i < train->count; i++) {
            const tr_plan_step *step = &train->steps[i];
            bool low = tr__step_is_of_unit(step) && step->unit < 2;
            assert_true(!low || tr__step_runs(step, TR_VARIANT_SAVES_NOTHING) ||
                        tr__step_is_of_wave(step));
            assert_true(!low || !tr__step_find(plan, step, TR_OPERAND_SAVED));
        }
        assert_int_equal(steps_of(plan, TR_VERB_backward), 2 * 3);
        assert_int_equal(steps_of(plan, TR_VERB_recompute), recomputed * 3);
        assert_int_equal(plan->units[2].program->input_grad_bytes, 0);
        assert_int_equal(steps_of(plan, TR_VERB_unload), 3);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

static size_t calls_of(const tr_plan *plan, int unit, const tr_op *op) {
    const tr_program *backward =
        tr__unit_piece(plan->units[unit].program, TR_VARIANT_BACKWARD, 0);
    size_t count = 0;
    for (size_t i = 0; i < backward->count; i++) {
        count += backward->instructions[i].desc.op == op;
    }
    return count;
}

static size_t products_of_weights(const tr_plan *plan, int unit) {
    return calls_of(plan, unit, &tr__op_linear_backward_weight);
}

// Where only the biases of a block are trained, nobody reads what its products
// multiply: what the norms and GELU give is not kept. (Attention needs its result.)
static void biases_alone_keep_no_inputs(void **state) {
    static const char *const weights[] = {"*.weight"};
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request all = test_request(model, 2, 3);
    tr_plan_request part = frozen_request(model, weights, 1);
    all.recomputed_ops = part.recomputed_ops = TR_RECOMPUTE_NOTHING;
    tr_plan *whole = test_plan(&all), *plan = test_plan(&part);
    (void)state;
    assert_int_equal(products_of_weights(plan, 2), 0);
    assert_int_equal(calls_of(plan, 2, &tr__op_linear_backward_bias), 4);
    assert_int_equal(calls_of(whole, 2, &tr__op_linear_backward_bias), 0);
    // [2, 4, 8] of each norm, and [2, 4, 32] of GELU
    assert_int_equal(whole->units[2].program->saved_bytes -
                         plan->units[2].program->saved_bytes,
                     4 * 2 * 4 * (8 + 8 + 32));
    tr_plan_destroy(whole);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Between trained units a gradient passes through, and no product is of a weight.
static void frozen_weights_have_no_products(void **state) {
    static const char *const patterns[] = {"*h.1.*"};
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = frozen_request(model, patterns, 1);
    tr_plan *plan = test_plan(&request);
    (void)state;
    assert_int_equal(products_of_weights(plan, 1), 4);
    assert_int_equal(products_of_weights(plan, 2), 0);
    assert_int_equal(steps_of(plan, TR_VERB_backward), 4 * 3);
    for (size_t i = 0; i < plan->sequences[TR_SEQUENCE_TRAIN].count; i++) {
        const tr_plan_step *step = &plan->sequences[TR_SEQUENCE_TRAIN].steps[i];
        assert_true(step->label.verb != TR_VERB_update ||
                    !plan->flats[step->unit].frozen);
    }
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Of a unit that is trained in part there are two flat buffers; a tied tensor is one
// for all its users.
static void units_have_two_flat_buffers(void **state) {
    static const char *const patterns[] = {"*.bias", "*wte*"};
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = frozen_request(model, patterns, 2);
    tr_plan *plan = test_plan(&request);
    (void)state;
    const tr_plan_unit *block = &plan->units[1];
    assert_int_equal(block->program->flat_count, 2);
    assert_false(plan->flats[block->flats[0]].frozen);
    assert_true(plan->flats[block->flats[1]].frozen);
    assert_string_equal(plan->flats[block->flats[1]].name, "h.0 (frozen)");
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        bool frozen = strstr(param->stored, "bias") || strstr(param->stored, "wte");
        assert_int_equal(plan->flats[param->flat].frozen, frozen);
    }
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void expect_refused(const tr_plan_request *request, const char *message) {
    tr_plan *plan = NULL;
    tr_error err = {0};
    assert_int_equal(tr_plan_make(request, &plan, &err), TR_USAGE);
    if (!strstr(err.message, message)) {
        fail_msg("%s", err.message);
    }
}

static void what_cannot_be_frozen_is_refused(void **state) {
    static const char *const everything[] = {"*"}, *const queries[] = {"*q_proj*"};
    tr_model *gpt2 = test_model_small_gpt2(0), *qwen3 = test_model_qwen3(0);
    tr_plan_request all = frozen_request(gpt2, everything, 1);
    tr_plan_request part = frozen_request(qwen3, queries, 1);
    (void)state;
    expect_refused(&all, "nothing would be trained");
    expect_refused(&part, "rows of one tensor");
    all.inference = true; // which trains nothing anyway
    all.train_batch_size = all.micro_batch;
    all.accumulation_steps = 1;
    tr_plan *plan = test_plan(&all);
    tr_plan_destroy(plan);
    tr_model_destroy(gpt2);
    tr_model_destroy(qwen3);
}

static void expect_found(const tr_plan *plan, const char *message) {
    tr_error err = {0};
    assert_int_equal(tr__plan_prove(plan, &err), TR_INTERNAL);
    if (!strstr(err.message, message)) {
        fail_msg("%s", err.message);
    }
}

static int32_t find_flat(const tr_plan *plan, bool frozen) {
    int32_t f = 0;
    while (plan->flats[f].frozen != frozen || plan->flats[f].count == 0) {
        f++;
    }
    return f;
}

// The proof knows from the request what is frozen: it finds a plan that trains it, or
// that freezes something else, or that changes what is frozen.
static void spoilt_plans_are_found(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = frozen_request(model, below, 2);
    tr_plan *plan = test_plan(&request);
    tr_error err = {0};
    int32_t frozen = find_flat(plan, true), trained = find_flat(plan, false);
    (void)state;
    assert_int_equal(tr__plan_prove(plan, &err), TR_OK);
    plan->flats[frozen].frozen = false;
    expect_found(plan, "is to be frozen, and lies among what is not");
    plan->flats[frozen].frozen = true;
    plan->flats[trained].frozen = true;
    expect_found(plan, "is to be trained, and lies among what is not");
    plan->flats[trained].frozen = false;
    for (size_t i = 0; i < plan->sequences[TR_SEQUENCE_TRAIN].count; i++) {
        tr_plan_step *step = &plan->sequences[TR_SEQUENCE_TRAIN].steps[i], was = *step;
        if (step->label.verb == TR_VERB_update) {
            step->unit = frozen;
            expect_found(plan, "changes what is frozen");
        }
        *step = was;
    }
    assert_int_equal(tr__plan_prove(plan, &err), TR_OK);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ledger_shows_the_saving),
        cmocka_unit_test(nothing_runs_back_below),
        cmocka_unit_test(frozen_weights_have_no_products),
        cmocka_unit_test(biases_alone_keep_no_inputs),
        cmocka_unit_test(units_have_two_flat_buffers),
        cmocka_unit_test(what_cannot_be_frozen_is_refused),
        cmocka_unit_test(spoilt_plans_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
