// Labels: guard
// tr_engine_read and tr_engine_write by hand: every place of one process, slices,
// states of the model, what a training makes of what was written, and what is refused.
// (On ranks: ranks/residency.)
#include "reading.h"
#include "samples.h"

#include <stdio.h>
#include <string.h>

enum { POSITIONS = 9, VOCABULARY = 53, TEXT_MAX = 1024 };

typedef struct place {
    const char *optimizer, *params;
    bool gradients; // on NVMe
    int slices;
    const char *more; // keys
    double tolerance;
} place;

static void open_place(const place *p, samples *data, trial *t) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 24, "
             "\"n_head\": 2, \"n_positions\": %d, \"vocab_size\": %d}, \"steps\": 4, "
             "\"train_batch_size\": 5, \"train_micro_batch_size_per_gpu\": 2, "
             "\"execution\": {\"vocabulary_slices\": %d, \"threads\": 1, "
             "\"reproducible\": %s}, \"zero_optimization\": {\"stage\": %d, "
             "\"offload_optimizer\": {\"device\": \"%s\"}, \"offload_param\": "
             "{\"device\": \"%s\"}}, \"memory\": {\"nvme\": {\"path\": \"/tmp\", "
             "\"gradients\": %s}}, %s \"out\": \"unused\"}",
             POSITIONS, VOCABULARY, p->slices,
             strcmp(p->more, "reproducible") == 0 ? "true" : "false",
             strcmp(p->params, "none") == 0 ? 2 : 3, p->optimizer, p->params,
             p->gradients ? "true" : "false",
             strcmp(p->more, "reproducible") == 0 ? "" : p->more);
    trial_open_text(t, text, data->dataset, NULL);
}

static void every_place(void **state) {
    static const place places[] = {
        {"none", "none", false, 1, "", 1e-5},
        {"none", "none", false, 2, "", 1e-5},
        {"cpu", "none", false, 1, "", 1e-5},
        {"nvme", "none", true, 1, "", 1e-5},
        {"nvme", "nvme", true, 1, "", 1e-5},
        {"none", "none", false, 1, "reproducible", 1e-5},
        {"nvme", "none", true, 1, "reproducible", 1e-5},
        {"cpu", "cpu", false, 1, "\"bf16\": {\"enabled\": true},", 1e-5},
        {"none", "none", false, 1, "\"fp16\": {\"enabled\": true},", 1e-5},
        {"none", "none", false, 1, "\"data_types\": {\"grad_accum_dtype\": \"bf16\"},",
         1e-2},
        {"none", "none", false, 1, "\"freeze\": [\"*wpe*\", \"*.ln_1.*\"],", 1e-5},
        {"none", "none", false, 1,
         "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.1}},", 1e-5},
    };
    samples data;
    (void)state;
    samples_tokens(&data, 17, POSITIONS, VOCABULARY, 3);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        trial t;
        tr_step_result result = TR_STEP_RESULT_INIT;
        open_place(&places[i], &data, &t);
        do { // fp16 begins with steps that overflow
            trial_steps(&t, 1, &result);
        } while (result.skipped);
        reading_check(&t, result.grad_norm, places[i].tolerance);
        trial_close(&t);
    }
    samples_free(&data);
}

static void where_tensors_live(void **state) {
    static const place p = {
        "nvme", "none", true, 1, "\"freeze\": [\"transformer.wpe.weight\"],", 0};
    samples data;
    trial t;
    tr_error err = {0};
    int frozen = 0;
    (void)state;
    samples_tokens(&data, 17, POSITIONS, VOCABULARY, 3);
    open_place(&p, &data, &t);
    assert_string_equal(tr_engine_part(t.engine, 0), "values");
    assert_string_equal(tr_engine_part(t.engine, 1), "gradient");
    assert_string_equal(tr_engine_part(t.engine, 2), "exp_avg");
    assert_string_equal(tr_engine_part(t.engine, 3), "exp_avg_sq");
    assert_null(tr_engine_part(t.engine, 4));
    for (size_t i = 0; i < tr_engine_tensors(t.engine); i++) {
        tr_tensor_info info = TR_TENSOR_INFO_INIT;
        trial_ok(tr_engine_tensor(t.engine, i, &info, &err), &err);
        assert_int_equal(info.dtype, TR_F32);
        assert_false(info.of_model);
        if (strcmp(info.name, "transformer.wpe.weight") == 0) {
            assert_false(info.trained);
            assert_true(tr_shape_equal(info.shape, TR_SHAPE2(POSITIONS, 24)));
            frozen++;
            continue;
        }
        assert_true(info.trained);
        assert_int_equal(info.optimizer_space, TR_SPACE_NVME);
        assert_int_equal(info.gradient_space, TR_SPACE_NVME);
    }
    assert_int_equal(frozen, 1);
    trial_close(&t);
    samples_free(&data);
}

// A training goes on from what was written as from what it had come to itself: all of
// one engine's tensors, copied to another.
static void a_copy_trains_the_same(void **state) {
    static const place here = {"cpu", "cpu", false, 1, "", 0};
    static const place there = {"nvme", "nvme", false, 1, "", 0};
    enum { MOST = VOCABULARY * 24 };
    samples data;
    trial a, b;
    tr_error err = {0};
    tr_step_result of_a[2], of_b[2];
    static float values[MOST * 4];
    (void)state;
    samples_tokens(&data, 17, POSITIONS, VOCABULARY, 3);
    open_place(&here, &data, &a);
    open_place(&there, &data, &b);
    trial_steps(&a, 1, NULL);
    tr_step_result first = TR_STEP_RESULT_INIT;
    trial_steps(&b, 1, &first);
    for (size_t i = 0; i < tr_engine_tensors(a.engine); i++) {
        tr_tensor_info info = TR_TENSOR_INFO_INIT;
        trial_ok(tr_engine_tensor(a.engine, i, &info, &err), &err);
        int64_t count = tr_shape_count(info.shape);
        assert_true(count <= MOST * 4);
        for (size_t p = 0; p < 4; p++) {
            const char *part = tr_engine_part(a.engine, p);
            // What b has come to is overwritten in between.
            memset(values, 1, sizeof values);
            trial_ok(tr_engine_write(b.engine, info.name, part, 0, count, values, &err),
                     &err);
            trial_ok(tr_engine_read(a.engine, info.name, part, 0, count, values, &err),
                     &err);
            trial_ok(tr_engine_write(b.engine, info.name, part, 0, count, values, &err),
                     &err);
        }
    }
    trial_steps(&a, 2, of_a);
    trial_steps(&b, 2, of_b);
    for (int i = 0; i < 2; i++) {
        assert_true(of_a[i].loss == of_b[i].loss);
        assert_true(of_a[i].grad_norm == of_b[i].grad_norm);
    }
    trial_close(&a);
    trial_close(&b);
    samples_free(&data);
}

// Running statistics: the same on all ranks, in their own types.
static void states_of_a_model(void **state) {
    samples data;
    trial t;
    tr_error err = {0};
    int counters = 0, states = 0;
    (void)state;
    samples_images(&data, 12, 8, 3, 3, 5);
    trial_open_text(
        &t,
        "{\"model\": {\"model_type\": \"resnet\", \"depth\": 8, "
        "\"width\": 4, \"image_size\": 8, \"num_labels\": 3}, \"train_batch_size\": 6, "
        "\"steps\": 3, \"out\": \"unused\"}",
        data.dataset, NULL);
    trial_steps(&t, 2, NULL);
    for (size_t i = 0; i < tr_engine_tensors(t.engine); i++) {
        tr_tensor_info info = TR_TENSOR_INFO_INIT;
        trial_ok(tr_engine_tensor(t.engine, i, &info, &err), &err);
        assert_int_equal(info.of_model, !info.trained);
        states += info.of_model;
        if (info.dtype == TR_I64) {
            int64_t number = 0, more = INT64_C(1) << 40;
            trial_ok(tr_engine_read(t.engine, info.name, "values", 0, 1, &number, &err),
                     &err);
            assert_int_equal(number, 2); // updates
            trial_ok(tr_engine_write(t.engine, info.name, "values", 0, 1, &more, &err),
                     &err);
            trial_ok(tr_engine_read(t.engine, info.name, "values", 0, 1, &number, &err),
                     &err);
            assert_int_equal(number, more);
            tr_error refused = {0};
            assert_int_equal(tr_engine_read(t.engine, info.name, "gradient", 0, 1,
                                            &number, &refused),
                             TR_USAGE);
            assert_non_null(strstr(refused.message, "has values alone"));
            counters++;
        }
    }
    assert_true(counters > 0 && states == 3 * counters);
    trial_close(&t);
    samples_free(&data);
}

// ---- what is refused

#define REFUSED(call, words)                                                           \
    do {                                                                               \
        tr_error refused = {0};                                                        \
        assert_int_equal((call), TR_USAGE);                                            \
        if (!strstr(refused.message, words)) {                                         \
            fail_msg("\"%s\" does not say \"%s\"", refused.message, words);            \
        }                                                                              \
    } while (0)

static void bad_calls_change_nothing(void **state) {
    static const place p = {
        "none", "none", false, 1, "\"freeze\": [\"transformer.wpe.weight\"],", 0};
    static const char name[] = "transformer.wte.weight";
    samples data;
    trial t;
    float v[4] = {0};
    tr_error err = {0};
    tr_tensor_info info = TR_TENSOR_INFO_INIT;
    (void)state;
    samples_tokens(&data, 17, POSITIONS, VOCABULARY, 3);
    open_place(&p, &data, &t);
    tr_engine *e = t.engine;
    REFUSED(tr_engine_read(NULL, name, "values", 0, 1, v, &refused), "\"engine\"");
    REFUSED(tr_engine_read(e, NULL, "values", 0, 1, v, &refused), "\"name\" is NULL");
    REFUSED(tr_engine_read(e, name, NULL, 0, 1, v, &refused), "\"part\" is NULL");
    REFUSED(tr_engine_write(e, name, "values", 0, 1, NULL, &refused), "\"values\"");
    REFUSED(tr_engine_read(e, "transformer.wte.wieght", "values", 0, 1, v, &refused),
            "did you mean transformer.wte.weight?");
    REFUSED(tr_engine_read(e, name, "exp_agv", 0, 1, v, &refused),
            "did you mean \"exp_avg\"?");
    REFUSED(tr_engine_read(e, name, "gradient", 0, 1, v, &refused),
            "before the first step");
    REFUSED(tr_engine_read(e, name, "values", VOCABULARY * 24 - 1, 2, v, &refused),
            "has 1272 elements");
    REFUSED(tr_engine_read(e, name, "values", INT64_MAX, 2, v, &refused), "elements");
    REFUSED(tr_engine_read(e, name, "values", -1, 2, v, &refused), "elements");
    REFUSED(tr_engine_write(e, name, "values", 0, -1, v, &refused), "elements");
    REFUSED(tr_engine_read(e, "transformer.wpe.weight", "exp_avg", 0, 1, v, &refused),
            "is frozen");
    REFUSED(tr_engine_tensor(e, 10000, &info, &refused), "there is no tensor 10000");
    REFUSED(tr_engine_tensor(e, 0, NULL, &refused), "tr_tensor_info");
    info.size = 3;
    REFUSED(tr_engine_tensor(e, 0, &info, &refused), "begin with TR_TENSOR_INFO_INIT");
    assert_int_equal(tr_engine_tensors(NULL), 0);
    assert_null(tr_engine_part(NULL, 0));
    trial_ok(tr_engine_read(e, name, "values", VOCABULARY * 24, 0, v, &err), &err);
    trial_steps(&t, 1, NULL);
    trial_ok(tr_engine_read(e, name, "gradient", 0, 4, v, &err), &err);
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place),
        cmocka_unit_test(where_tensors_live),
        cmocka_unit_test(a_copy_trains_the_same),
        cmocka_unit_test(states_of_a_model),
        cmocka_unit_test(bad_calls_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
