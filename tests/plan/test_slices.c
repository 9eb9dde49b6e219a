// Plans of a model with its vocabulary in slices.
#include "base/checked.h"
#include "models/models.h"
#include "plan/models.h"
#include "plan/ordered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The segments of a unit, for all micro-batches of a wave one after the other, and the
// next wave after it: no barrier between them, and no wave that must be.
static void assert_segments(const tr_plan *plan, tr_verb kind, int u) {
    int64_t g = plan->request.accumulation_steps, wave = plan->request.wave;
    int segments = plan->units[u].program->segments;
    int64_t first = 0, micro = 0;
    int done = 0;
    for (size_t i = 0; i < test_training(plan)->count; i++) {
        const tr_plan_step *step = &test_training(plan)->steps[i];
        if (step->label.verb != kind || step->unit != u) {
            continue;
        }
        int64_t end = tr__min_i64(first + wave, g);
        bool backward = kind == TR_VERB_backward;
        assert_int_equal(step->segment, backward ? segments - 1 - done : done);
        assert_int_equal(step->micro, micro);
        if (++micro == end) {
            micro = first;
            if (++done == segments) {
                done = 0;
                first = micro = end;
            }
        }
    }
    assert_int_equal(first, g);
}

static void slices_are_cut_without_a_barrier(void **state) {
    (void)state;
    static const int slices[] = {2, 3, 11};
    for (int i = 0; i < 3 * TEST_CASES; i++) {
        int count = slices[i / TEST_CASES];
        tr_model *model = test_model_sliced_gpt2(i % 2 ? 0.1 : 0, count);
        tr_plan *plan = test_plan_case(model, &test_cases[i % TEST_CASES]);
        int units[] = {0, plan->unit_count - 1};
        for (int k = 0; k < 2; k++) {
            assert_int_equal(plan->units[units[k]].program->segments, count);
            assert_segments(plan, TR_VERB_forward, units[k]);
            assert_segments(plan, TR_VERB_backward, units[k]);
        }
        assert_int_equal(test_count_steps(plan, TR_VERB_merge), 0);
        assert_int_equal(plan->request.wave, test_cases[i % TEST_CASES].wave);
        assert_int_equal(tr__plan_slices(plan), count);
        test_assert_written_once(plan);
        test_assert_data(plan);
        test_assert_end(plan);
        test_assert_recomputed(plan);
        tr_plan_destroy(plan);
        tr_model_destroy(model);
    }
}

static uint32_t flats(const tr_unit_program *unit, tr_variant role, int piece,
                      tr_place place) {
    const tr_program *program = tr__unit_piece(unit, role, piece);
    assert_non_null(program);
    assert_int_equal(program->variant, role);
    assert_int_equal(program->piece, piece);
    return tr__program_flats(program, place);
}

// Each segment needs its own slice, and the unit's own parameters in the first alone.
// What passes through the slices of the embedding lies in what it hands on; the head's
// workspace is that of one slice.
static void a_slice_is_all_that_a_segment_needs(void **state) {
    (void)state;
    enum { SLICES = 8 };
    for (int dropped = 0; dropped < 2; dropped++) {
        tr_model *model = test_model_sliced_gpt2(dropped ? 0.1 : 0, SLICES);
        tr_plan_request request = test_request(model, 2, 3);
        tr_plan *plan = test_plan(&request);
        for (int u = 0; u < plan->unit_count; u += plan->unit_count - 1) {
            const tr_unit_program *unit = plan->units[u].program;
            assert_int_equal(unit->flat_count, 1 + SLICES);
            for (int s = 0; s < SLICES; s++) {
                uint32_t want = UINT32_C(1) << (1 + s) | (s == 0);
                assert_int_equal(flats(unit, TR_VARIANT_FORWARD, s, TR_PLACE_PARAM),
                                 want);
                assert_int_equal(flats(unit, TR_VARIANT_EVALUATE, s, TR_PLACE_PARAM),
                                 want);
                assert_int_equal(
                    flats(unit, TR_VARIANT_BACKWARD, s, TR_PLACE_PARAM_GRAD), want);
            }
        }
        assert_int_equal(plan->units[0].program->saved_bytes, 0);
        tr_plan_destroy(plan);
        tr_model_destroy(model);
    }
}

// The most bytes of a category that pass, in flat-sized buffers, at one step.
static int64_t most_passing(const tr_plan *plan, tr_ledger_category category) {
    size_t steps = test_training(plan)->count;
    int64_t most = 0;
    for (size_t i = 0; i < steps; i++) {
        int64_t live = 0;
        for (size_t b = 0; b < plan->buffer_count; b++) {
            const tr_buffer *buffer = &plan->buffers[b];
            bool there = buffer->sequence == TR_SEQUENCE_TRAIN &&
                         buffer->category == category && buffer->first <= (int32_t)i &&
                         (int32_t)i <= buffer->last;
            live += there ? buffer->bytes : 0;
        }
        most = tr__max_i64(most, live);
    }
    return most;
}

static int64_t count_reductions(const tr_plan *plan, bool slice) {
    int64_t count = 0;
    for (size_t i = 0; i < test_training(plan)->count; i++) {
        const tr_plan_step *step = &test_training(plan)->steps[i];
        count += step->label.verb == TR_VERB_reduce &&
                 plan->flats[step->unit].slice == slice;
    }
    return count;
}

// Where ranks share parameters out, no more of a tensor in slices is there at a time
// than of a block's: what is at work, what was gathered for the next, what is being
// reduced. Each of its two users' gradients are reduced, each wave.
static void ranks_hold_few_slices_at_a_time(void **state) {
    (void)state;
    enum { SLICES = 16 };
    tr_model *model = test_model_gpt2();
    tr_error err = {0};
    assert_int_equal(tr__model_slice(model, SLICES, &err), TR_OK);
    for (int wave = 1; wave <= 4; wave *= 2) {
        tr_plan_request request = test_request(model, 1, 4);
        request.train_batch_size = 8;
        request.mesh = tr_mesh_of_data(2, 0);
        request.stage = 3;
        request.wave = wave;
        tr_plan *plan = test_plan(&request);
        int64_t block = 0;
        for (size_t f = 0; f < plan->flat_count; f++) {
            block = tr__max_i64(block, plan->flats[f].count * (int64_t)sizeof(float));
        }
        assert_true(block < 30 << 20);
        assert_true(most_passing(plan, TR_LEDGER_parameters) <= 2 * block);
        assert_true(most_passing(plan, TR_LEDGER_gradients) <= 3 * block);
        assert_int_equal(count_reductions(plan, true), 2 * SLICES * (4 / wave));
        assert_int_equal(count_reductions(plan, false), 14 * (4 / wave));
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// A slice is a parameter and a flat buffer of its own, and rows of the one tensor that
// files have.
static void slices_make_up_the_tensor(void **state) {
    (void)state;
    tr_model *model = test_model_sliced_gpt2(0, 3), *whole = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 2, 3);
    tr_plan_request whole_request = test_request(whole, 2, 3);
    tr_plan *plan = test_plan(&request), *other = test_plan(&whole_request);
    int64_t at = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (strcmp(param->stored, "transformer.wte.weight") == 0) {
            assert_true(tr_shape_equal(param->stored_shape, TR_SHAPE2(11, 8)));
            assert_int_equal(param->lies.first, at);
            assert_int_equal(param->count, tr_shape_count(param->shape));
            assert_string_not_equal(param->name, param->stored);
            assert_true(plan->flats[param->flat].tied);
            at += param->count;
        } else {
            assert_string_equal(param->name, param->stored);
        }
    }
    assert_int_equal(at, 11 * 8);
    assert_int_equal(plan->param_count, other->param_count + 2);
    assert_int_equal(plan->flat_count, other->flat_count + 2);
    assert_int_equal(tr_plan_parameters(plan), tr_plan_parameters(other));
    tr_plan_destroy(plan);
    tr_plan_destroy(other);
    tr_model_destroy(model);
    tr_model_destroy(whole);
}

// The logits of a chunk are those of one slice.
static void the_published_model_in_slices(void **state) {
    (void)state;
    tr_model *model = test_model_gpt2();
    tr_plan_request request = test_request(model, 1, 4);
    tr_error err = {0};
    tr_plan *plan = test_plan(&request);
    int64_t whole =
        tr__unit_piece(plan->units[13].program, TR_VARIANT_BACKWARD, 0)->temp_bytes;
    double flops = tr_plan_flops(plan);
    tr_plan_destroy(plan);
    assert_int_equal(tr__model_slice(model, 8, &err), TR_OK);
    plan = test_plan(&request);
    const tr_unit_program *head = plan->units[13].program;
    for (int s = 0; s < 8; s++) {
        const tr_program *slice = tr__unit_piece(head, TR_VARIANT_BACKWARD, s);
        assert_true(slice->temp_bytes < whole / 5);
    }
    // x normalized, its gradient, and 24 bytes of sums and guesses for each row and
    // slice; the gradients of the sums.
    assert_in_range(head->saved_bytes, 2 * 1024 * 768 * 4, 2 * 1024 * 768 * 4 + 400000);
    // Each logit is multiplied out once more.
    double again = 4 * 2.0 * 1024 * 768 * 50257;
    double more = tr_plan_flops(plan) - flops;
    assert_true(more > 0.99 * again && more < 1.02 * again);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void models_that_cannot_be_sliced_are_refused(void **state) {
    (void)state;
    tr_model *mlp = test_model_mlp(), *gpt2 = test_model_small_gpt2(0);
    tr_error err = {0};
    assert_int_equal(tr__model_slice(mlp, 1, &err), TR_OK);
    assert_int_equal(tr__model_slice(mlp, 2, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "type mlp has no vocabulary"));
    err = (tr_error){0};
    assert_int_equal(tr__model_slice(gpt2, 12, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "more than the model's vocabulary of 11"));
    assert_int_equal(tr__model_slice(gpt2, 11, &err), TR_OK);
    tr_model_destroy(mlp);
    tr_model_destroy(gpt2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_cut_without_a_barrier),
        cmocka_unit_test(a_slice_is_all_that_a_segment_needs),
        cmocka_unit_test(ranks_hold_few_slices_at_a_time),
        cmocka_unit_test(slices_make_up_the_tensor),
        cmocka_unit_test(the_published_model_in_slices),
        cmocka_unit_test(models_that_cannot_be_sliced_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
