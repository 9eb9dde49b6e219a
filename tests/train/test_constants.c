// Constants of the caller's in a model: what a forward gives is what was reckoned here
// with the same values; tr_check_run finds gradients right and cuts alike; and what
// does not fit is the graph's error.
#include <tranche.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FEATURES = 4, CLASSES = 3, ROWS = 5 };

static const float scale[FEATURES] = {2, -1, 0.5f, 3};
static const float table[FEATURES] = {0.25f, 0.5f, -0.25f, 1};
static const float weight[CLASSES * FEATURES] = {1, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1};
static const int32_t order[FEATURES] = {3, 2, 1, 0};

// ---- y[i] = scale[i] * x[order[i]]. The constants come before x.

static bool shuffle(void *user, const tr_function_call *call) {
    const float *s = call->input[0], *x = call->input[2];
    const int32_t *at = call->input[1];
    float *y = call->output;
    (void)user;
    for (int64_t i = 0; i < tr_shape_count(call->output_desc.shape); i++) {
        int64_t column = i % FEATURES;
        y[i] = s[column] * x[i - column + at[column]];
    }
    return call->input_gradient[0] == NULL;
}

static bool shuffle_backward(void *user, const tr_function_call *call) {
    const float *s = call->input[0], *dy = call->output_gradient;
    const int32_t *at = call->input[1];
    float *dx = call->input_gradient[2];
    (void)user;
    for (int64_t i = 0; dx && i < tr_shape_count(call->output_desc.shape); i++) {
        int64_t column = i % FEATURES, to = i - column + at[column];
        dx[to] = (call->adds >> 2 & 1 ? dx[to] : 0) + s[column] * dy[i];
    }
    // Nobody wants a gradient of a constant.
    return !call->input_gradient[0] && !call->input_gradient[1];
}

static const tr_function shuffled = {
    .size = sizeof(tr_function),
    .name = "shuffled",
    .output = {TR_F32, TR_SHAPE2_INIT(TR_BATCH, FEATURES)},
    .forward = shuffle,
    .backward = shuffle_backward};

// ---- two units: y = shuffled(x W^T) + table, and y V^T, V being a constant

static tr_value constant(tr_graph *g, tr_dtype dtype, tr_shape shape,
                         const void *values) {
    return tr_graph_constant(g, (tr_tensor_desc){dtype, shape}, values);
}

static void build_hidden(tr_graph *g, const void *config) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(FEATURES, FEATURES), draw);
    tr_value x = tr_graph_data(g, "features");
    (void)config;
    x = tr_graph_call(g, "linear", NULL, (tr_value[]){x, w}, 2, NULL, 0);
    tr_value inputs[] = {constant(g, TR_F32, TR_SHAPE1(FEATURES), scale),
                         constant(g, TR_I32, TR_SHAPE1(FEATURES), order), x};
    x = tr_graph_function(g, &shuffled, inputs, 3);
    tr_value t = constant(g, TR_F32, TR_SHAPE2(TR_BATCH, FEATURES), table);
    tr_graph_output(g,
                    tr_graph_call(g, "residual", NULL, (tr_value[]){x, t}, 2, NULL, 0));
}

static tr_value product(tr_graph *g) {
    tr_value v = constant(g, TR_F32, TR_SHAPE2(CLASSES, FEATURES), weight);
    return tr_graph_call(g, "linear", NULL, (tr_value[]){tr_graph_input(g, 0), v}, 2,
                         NULL, 0);
}

static void build_outputs(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, product(g));
}

static void build_loss(tr_graph *g, const void *config) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(CLASSES, CLASSES), draw);
    tr_value labels = tr_graph_data(g, "labels");
    (void)config;
    tr_graph_call(g, "linear_cross_entropy", NULL, (tr_value[]){product(g), w, labels},
                  3, NULL, 0);
}

static void build_bad_type(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, constant(g, TR_F64, TR_SHAPE1(FEATURES), scale));
}

static void build_bad_shape(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, constant(g, TR_F32, TR_SHAPE2(FEATURES, 0), scale));
}

static void build_null(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, constant(g, TR_F32, TR_SHAPE1(FEATURES), NULL));
}

typedef struct trial {
    tr_model_unit units[2];
    tr_model model;
    tr_dataset *data; // NULL: the run file's
    tr_run *run;
} trial;

static float features[ROWS * FEATURES];

static void make_features(trial *t) {
    const tr_batch_tensors tensors = {1, {tr_batch_features(FEATURES).tensor[0]}};
    const void *arrays[] = {features};
    tr_error err = {0};
    for (int i = 0; i < ROWS * FEATURES; i++) {
        features[i] = (float)(i % 7) - 3;
    }
    assert_int_equal(tr_dataset_create_arrays(&tensors, ROWS, arrays, &t->data, &err),
                     TR_OK);
}

static void open_trial(trial *t, void (*last)(tr_graph *, const void *),
                       const char *set) {
    static const char text[] =
        "{\"data\": {\"format\": \"random\", \"samples\": 40, \"features\": 4,"
        " \"classes\": 3}, \"steps\": 4, \"train_batch_size\": 10, \"out\": \"out\","
        " \"train_micro_batch_size_per_gpu\": 5, \"execution\": {\"threads\": 2}}";
    tr_error err = {0};
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    t->units[0] = (tr_model_unit){
        .name = "hidden", .kind = "hidden", .prefix = "hidden.", .build = build_hidden};
    t->units[1] = (tr_model_unit){
        .name = "head", .kind = "head", .prefix = "head.", .build = last};
    t->model = (tr_model)TR_MODEL_INIT;
    t->model.type = "constants";
    t->model.unit_count = 2;
    t->model.units = t->units;
    t->model.batch = tr_batch_features(FEATURES);
    t->model.batch.count = last == build_outputs ? 1 : t->model.batch.count;
    t->model.classes = last == build_outputs ? 0 : CLASSES;
    parts.model = &t->model;
    parts.train = t->data;
    assert_int_equal(tr_run_create(&t->run, &err), TR_OK);
    assert_int_equal(tr_run_load_text(t->run, text, &err), TR_OK);
    assert_int_equal(tr_run_set(t->run, "resume", "never", &err), TR_OK);
    if (set) {
        assert_int_equal(tr_run_set(t->run, set, "true", &err), TR_OK);
    }
    assert_int_equal(tr_run_give(t->run, &parts, &err), TR_OK);
}

// ---- tests

static void reckon(const float *w, const float *x, float *out) {
    float h[FEATURES], y[FEATURES];
    for (int i = 0; i < FEATURES; i++) {
        h[i] = 0;
        for (int k = 0; k < FEATURES; k++) {
            h[i] += w[i * FEATURES + k] * x[k];
        }
    }
    for (int i = 0; i < FEATURES; i++) {
        y[i] = scale[i] * h[order[i]] + table[i];
    }
    for (int i = 0; i < CLASSES; i++) {
        out[i] = 0;
        for (int k = 0; k < FEATURES; k++) {
            out[i] += weight[i * FEATURES + k] * y[k];
        }
    }
}

static void a_forward_reads_the_callers_values(void **state) {
    trial t = {.data = NULL};
    tr_error err = {0};
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    float w[FEATURES * FEATURES], expected[CLASSES];
    const void *inputs[] = {features};
    (void)state;
    make_features(&t);
    open_trial(&t, build_outputs, NULL);
    options.inputs = inputs;
    options.rows = ROWS;
    options.evaluate = true;
    assert_int_equal(tr_run_resolve(t.run, &err), TR_OK);
    assert_int_equal(tr_run_make_plan(t.run, &plan, &err), TR_OK);
    assert_int_equal(tr_engine_create(t.run, plan, &engine, &err), TR_OK);
    assert_int_equal(tr_engine_read(engine, "hidden.weight", "values", 0,
                                    FEATURES * FEATURES, w, &err),
                     TR_OK);
    assert_int_equal(tr_engine_forward(engine, &options, &outputs, &err), TR_OK);
    assert_int_equal(outputs.rows, ROWS);
    for (int row = 0; row < ROWS; row++) {
        const float *y = (const float *)outputs.output[0].data + row * CLASSES;
        reckon(w, features + row * FEATURES, expected);
        for (int i = 0; i < CLASSES; i++) {
            assert_float_equal(y[i], expected[i], 1e-3f);
        }
    }
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(t.run);
    tr_dataset_destroy(t.data);
}

static bool print_piece(void *user, const char *piece, size_t bytes) {
    (void)user;
    return fwrite(piece, 1, bytes, stdout) == bytes;
}

static void check(const char *set) {
    trial t = {.data = NULL};
    tr_error err = {0};
    tr_check *checked = NULL;
    open_trial(&t, build_loss, set);
    if (tr_check_run(t.run, 0, &checked, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    if (!checked->passed) {
        tr_check_print(checked, true, &(tr_sink){print_piece, NULL}, &err);
    }
    assert_true(checked->passed);
    assert_true(checked->cut_count > 4);
    tr_check_destroy(checked);
    tr_run_destroy(t.run);
}

static void gradients_are_right_in_every_cut(void **state) {
    (void)state;
    check(NULL);
    check("bf16.enabled");
}

static void refuse(void (*build)(tr_graph *, const void *), const char *words) {
    trial t = {.data = NULL};
    tr_error err = {0};
    tr_plan *plan = NULL;
    open_trial(&t, build, NULL);
    tr_status status = tr_run_resolve(t.run, &err);
    status = status == TR_OK ? tr_run_make_plan(t.run, &plan, &err) : status;
    assert_int_equal(status, TR_USAGE);
    if (!strstr(err.message, words)) {
        fail_msg("\"%s\" is not in: %s", words, err.message);
    }
    tr_run_destroy(t.run);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    refuse(build_bad_type, "neither F32 nor I32");
    refuse(build_bad_shape, "below 1");
    refuse(build_null, "NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forward_reads_the_callers_values),
        cmocka_unit_test(gradients_are_right_in_every_cut),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
