// Frozen parameters: what is trained takes the same bits as in a run that computes all
// gradients and gives the others a rate of 0; what is frozen keeps its bits, and has no
// gradients and no states.
#include "frozen.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ways[] = {
    "\"execution\": {\"wave\": 1}",
    "\"execution\": {\"wave\": 2, \"recompute\": \"none\"}",
    "\"execution\": {\"recompute\": \"unit\"}",
    "\"activation_checkpointing\": {\"number_checkpoints\": 2, "
    "\"cpu_checkpointing\": true}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\", "
    "\"ratio\": 0.5}}",
    "\"zero_optimization\": {\"offload_param\": {\"device\": \"cpu\"}}",
    "\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}, "
    "\"offload_param\": {\"device\": \"cpu\"}}",
#define NVME "\"memory\": {\"nvme\": {\"path\": \"/tmp\"}}"
    NVME ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}}",
    NVME ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}, "
         "\"offload_param\": {\"device\": \"nvme\"}}",
    NVME ", \"zero_optimization\": {\"offload_param\": {\"device\": \"nvme\"}}",
};
enum { WAYS = sizeof ways / sizeof *ways };

static const char *const precisions[] = {
    "", ", \"bf16\": {\"enabled\": true}",
    ", \"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": "
    "\"bf16\"}",
    ", \"fp16\": {\"enabled\": true, \"initial_scale_power\": 10, "
    "\"loss_scale_window\": 1}"};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

// Each world in every way, in one precision after the other.
static void trained_part_is_as_at_rate_zero(void **state) {
    (void)state;
    for (int w = 0; w < FROZEN_WORLDS; w++) {
        for (int i = 0; i < WAYS; i++) {
            char keys[512];
            snprintf(keys, sizeof keys, "%s%s", ways[i],
                     precisions[(w + i) % PRECISIONS]);
            frozen_way way = {7, 2, keys, i % 2};
            frozen_compare(&frozen_worlds[w], &way, NULL);
        }
    }
}

// ---- kept in 16 bits alone

// Nothing that would be rounded becomes the value of a frozen parameter.
static void refuse_rounding(trial *t) {
    tr_error err = {0};
    size_t i = 0;
    while (!t->plan->flats[t->plan->params[i].flat].frozen) {
        i++;
    }
    const tr_plan_param *param = &t->plan->params[i];
    float *values = calloc((size_t)param->count, sizeof *values);
    assert_non_null(values);
    values[param->count - 1] = -0.5f;
    trial_ok(tr_engine_write(t->engine, param->stored, "values", 0, param->count,
                             values, &err),
             &err);
    values[param->count - 1] = 0.1f;
    assert_int_equal(tr_engine_write(t->engine, param->stored, "values", 0,
                                     param->count, values, &err),
                     TR_IO);
    assert_non_null(strstr(err.message, "kept in bf16 alone"));
    free(values);
}

static void check_bytes(const frozen_world *w) {
    char text[2048];
    int64_t bytes = 0, expected = 0;
    samples data;
    trial t;
    samples_tokens(&data, 21, 9, 61, 17);
    snprintf(text, sizeof text,
             "{\"model\": %s, \"freeze\": %s, \"steps\": 1, \"train_batch_size\": 7, "
             "\"bf16\": {\"enabled\": true}, \"out\": \"unused\"}",
             w->model, w->frozen);
    trial_open_text(&t, text, data.dataset, NULL);
    assert_true(tr_run_plan_request(t.run)->frozen_half);
    for (int s = 0; s < TR_SPACES; s++) {
        bytes += tr_plan_ledger(t.plan)->bytes[s][TR_LEDGER_parameters];
    }
    for (size_t f = 0; f < t.plan->flat_count; f++) {
        const tr_flat *flat = &t.plan->flats[f];
        int64_t two = (flat->count * 2 + 63) / 64 * 64;
        expected += two + (flat->frozen ? 0 : 4 * flat->count);
    }
    assert_int_equal(bytes, expected);
    refuse_rounding(&t);
    trial_close(&t);
    samples_free(&data);
}

// What a file has in bf16 is kept in bf16, where the run computes in it: wherever it
// lives, it comes out as it came in, and everything else is as with masters of it.
static void weights_of_16_bits_are_kept_in_them(void **state) {
    char model[512], keys[512];
    const char *out = scratch_path(state, "out");
    frozen_folder(out);
    snprintf(model, sizeof model, "\"%s/checkpoints/latest\"", out);
    for (int w = 0; w < 5; w++) {
        frozen_world world = {model, frozen_worlds[w].frozen, true};
        check_bytes(&world);
        for (int i = w % 2; i < WAYS; i += 2) {
            snprintf(keys, sizeof keys, "%s%s", ways[i],
                     precisions[1 + i / 2 % (PRECISIONS - 1)]);
            frozen_way way = {7, 2, keys, i % 2};
            frozen_compare(&world, &way, NULL);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trained_part_is_as_at_rate_zero),
        cmocka_unit_test_setup_teardown(weights_of_16_bits_are_kept_in_them,
                                        scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
