// A mistake inside of the library, or of an op that a program brings, is told with its
// place in the source, and the engine then answers nothing else.
#include "samples.h"
#include "snapshot.h"

#include <tranche/extend/graph.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 6, CLASSES = 3, TEXT_MAX = 1024 };

// ---- an op that fails when it is told to

static bool fails;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    (void)err;
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static int rules(const tr_op_node *node, tr_rule out[TR_OP_RULES_MAX]) {
    (void)node;
    out[0] = (tr_rule){.op = NULL, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

static void launch_pass(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    memcpy(launch->out[0], launch->in[0], (size_t)tr_tensor_bytes(desc->in[0]));
    if (fails && launch->failed) {
        *launch->failed = TR_INTERNAL;
    }
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static const tr_kernel pass_kernel = {
    .name = "pass", .supports = is_f32, .launch = launch_pass};
static const tr_op op_pass = {
    .name = "pass", .infer = infer, .backward = rules, .reference = &pass_kernel};

static void build(tr_graph *g, const void *config) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5F, 0.5F};
    (void)config;
    tr_value x = tr_graph_data(g, "features");
    tr_value y = tr_graph_op(g, &op_pass, NULL, &x, 1, NULL);
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(CLASSES, FEATURES), draw);
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, y, w, TR_NO_VALUE,
                            tr_graph_data(g, "labels"));
}

static const tr_model_unit units[] = {{"only", "only", "", build, NULL}};
static const tr_model model = {
    .size = sizeof(tr_model),
    .type = "passes",
    .unit_count = 1,
    .units = units,
    .batch = {2,
              {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(FEATURES)}},
               {"labels", TR_ROLE_TARGET, {TR_I32, {0, {0}}}}}},
    .classes = CLASSES,
    .classifier = true,
};

static void same_error(tr_status status, const tr_error *err, const tr_error *first) {
    assert_int_equal(status, TR_INTERNAL);
    assert_string_equal(err->message, first->message);
}

static void an_engine_that_has_failed_answers_nothing_else(void **state) {
    samples data;
    trial t;
    tr_error first = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    tr_save_options save = TR_SAVE_OPTIONS_INIT;
    float value = 0;
    int64_t to = 0;
    (void)state;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    run_options options = {.text = "{\"train_batch_size\": 8, \"steps\": 5, \"out\": "
                                   "\"unused\"}",
                           .own_model = &model,
                           .own_train = data.dataset,
                           .own_validation = data.dataset,
                           .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, 1, NULL);
    fails = true;
    assert_int_equal(tr_engine_step(t.engine, &result, &first), TR_INTERNAL);
    fails = false;
    const char *place = strstr(first.message, "[src/"); // whose line that is
    assert_non_null(place);
    assert_non_null(strstr(place, ".c:"));
    assert_null(strstr(place + 1, "[src/"));
    save.folder = "not-there";
#define REFUSED(call)                                                                  \
    do {                                                                               \
        tr_error err = {0};                                                            \
        tr_status status = (call);                                                     \
        same_error(status, &err, &first);                                              \
    } while (0)
    REFUSED(tr_engine_step(t.engine, &result, &err));
    REFUSED(tr_engine_evaluate(t.engine, 0, &evaluation, &err));
    REFUSED(tr_engine_read(t.engine, "weight", "values", 0, 1, &value, &err));
    REFUSED(tr_engine_write(t.engine, "weight", "values", 0, 1, &value, &err));
    REFUSED(tr_engine_save(t.engine, &err));
    REFUSED(tr_engine_save_as(t.engine, &save, &err));
    REFUSED(tr_engine_refresh(t.engine, &err));
    REFUSED(tr_engine_rollback(t.engine, &to, &err));
    REFUSED(tr_engine_watch(t.engine, &err));
    REFUSED(tr_engine_write_trace(t.engine, "not-there.json", &err));
    REFUSED(tr_engine_set_rate(t.engine, 0, 1, &err));
    REFUSED(tr_engine_train(t.engine, NULL, &err));
    assert_int_equal(tr_engine_steps_done(t.engine), 1);
    trial_close(&t);
    samples_free(&data);
}

static void places_are_short_and_said_once(void **state) {
    tr_error a = {0}, b = {0}, c = {0}, d = {0};
    (void)state;
    tr_fail_at(&a, TR_INTERNAL, "/home/a/src/b/src/exec/walk.c", 12, "it is %d", 3);
    assert_string_equal(a.message, "it is 3 [src/exec/walk.c:12]");
    tr_fail_at(&b, TR_INTERNAL, "/home/program.c", 7, "step 5: %s", a.message);
    assert_string_equal(b.message, "step 5: it is 3 [src/exec/walk.c:12]");
    tr_fail_at(&c, TR_DATA, "/home/program.c", 7, "no row");
    assert_string_equal(c.message, "no row");
    tr_fail_at(&d, TR_INTERNAL, "/home/program.c", 7, "no row");
    assert_string_equal(d.message, "no row [program.c:7]");
    assert_int_equal(tr_fail_at(NULL, TR_INTERNAL, "x.c", 1, "x"), TR_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_that_has_failed_answers_nothing_else),
        cmocka_unit_test(places_are_short_and_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
