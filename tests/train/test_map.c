// tr_graph_map: the same numbers as the library's own op of that function; the check
// finds a derivative that is none; what does not fit is refused. On runs of one call
// (tr_run_open), with engines that make their own plans.
#include <tranche.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FEATURES = 5, WIDTH = 4, CLASSES = 3, STEPS = 4 };

static float relu(float x) {
    return x > 0 ? x : 0;
}

static float relu_slope(float x) {
    return x > 0 ? 1 : 0;
}

static float square(float x) {
    return x * x;
}

static float square_slope(float x) {
    return 2 * x;
}

static float wrong_slope(float x) {
    return 1.5f * x;
}

// What a test puts between the two layers; no value: the op "relu".
typedef struct mapped {
    float (*value)(float x);
    float (*slope)(float x);
    bool of_labels;
} mapped;

static const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};

static void build_hidden(tr_graph *g, const void *config) {
    const mapped *m = config;
    tr_value in[] = {tr_graph_data(g, "features"),
                     tr_graph_param(g, "weight", TR_SHAPE2(WIDTH, FEATURES), draw)};
    tr_value h = tr_graph_call(g, "linear", NULL, in, 2, NULL, 0);
    if (!m->value && m->slope == relu_slope) {
        tr_graph_output(g, tr_graph_call(g, "relu", NULL, &h, 1, NULL, 0));
        return;
    }
    tr_value x = m->of_labels ? tr_graph_data(g, "labels") : h;
    tr_graph_output(g, tr_graph_map(g, x, m->value, m->slope));
}

static void build_head(tr_graph *g, const void *config) {
    (void)config;
    tr_value in[] = {tr_graph_input(g, 0),
                     tr_graph_param(g, "weight", TR_SHAPE2(CLASSES, WIDTH), draw),
                     tr_graph_data(g, "labels")};
    tr_graph_call(g, "linear_cross_entropy", NULL, in, 3, NULL, 0);
}

static const char text[] =
    "{\"data\": {\"format\": \"random\", \"samples\": 40, \"features\": 5,"
    " \"classes\": 3}, \"train_batch_size\": 7, \"out\": \"out\", \"seed\": 3,"
    " \"train_micro_batch_size_per_gpu\": 3, \"execution\": {\"threads\": 2}}";

typedef struct opened {
    tr_model_unit units[2];
    tr_model model;
    tr_run_parts parts;
} opened;

static void fill(opened *o, const mapped *m) {
    o->units[0] = (tr_model_unit){"hidden", "hidden", "hidden.", build_hidden, m};
    o->units[1] = (tr_model_unit){"head", "head", "head.", build_head, NULL};
    o->model = (tr_model)TR_MODEL_INIT;
    o->model.type = "mapped";
    o->model.unit_count = 2;
    o->model.units = o->units;
    o->model.batch = tr_batch_features(FEATURES);
    o->model.classes = CLASSES;
    o->parts = (tr_run_parts)TR_RUN_PARTS_INIT;
    o->parts.model = &o->model;
}

static const char *const settings[] = {"resume=never", "steps=4", NULL};

static void train(const mapped *m, const char *more, double loss[STEPS]) {
    const char *const all[] = {settings[0], settings[1], more, NULL};
    opened o;
    tr_error err = {0};
    tr_run *run = NULL;
    tr_engine *engine = NULL;
    tr_step_result result = TR_STEP_RESULT_INIT;
    fill(&o, m);
    if (tr_run_open(text, all, &o.parts, &run, &err) != TR_OK ||
        tr_engine_create(run, NULL, &engine, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(tr_run_steps(run), STEPS);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(tr_engine_step(engine, &result, &err), TR_OK);
        loss[i] = result.loss;
    }
    tr_engine_destroy(engine);
    tr_run_destroy(run);
}

static void it_gives_what_the_op_gives(void **state) {
    const mapped own = {NULL, relu_slope, false}, mine = {relu, relu_slope, false};
    double a[STEPS], b[STEPS];
    (void)state;
    train(&own, NULL, a);
    train(&mine, NULL, b);
    assert_memory_equal(a, b, sizeof a);
    assert_true(a[3] != a[0]);
    train(&own, "bf16.enabled=true", a);
    train(&mine, "bf16.enabled=true", b);
    for (int i = 0; i < STEPS; i++) {
        assert_true(a[i] - b[i] < 0.02 && b[i] - a[i] < 0.02);
    }
}

// How the check of a run with it ends, and how many ops it has tried.
static bool passes(const mapped *m, int ops) {
    opened o;
    tr_error err = {0};
    tr_run *run = NULL;
    tr_check *check = NULL;
    fill(&o, m);
    assert_int_equal(tr_run_create(&run, &err), TR_OK);
    assert_int_equal(tr_run_load_text(run, text, &err), TR_OK);
    assert_int_equal(tr_run_set(run, "steps", "4", &err), TR_OK);
    assert_int_equal(tr_run_give(run, &o.parts, &err), TR_OK);
    if (tr_check_run(run, 0, &check, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(check->op_count, ops);
    bool passed = check->passed;
    tr_check_destroy(check);
    tr_run_destroy(run);
    return passed;
}

static void the_check_compares_value_and_slope(void **state) {
    (void)state;
    assert_true(passes(&(mapped){square, square_slope, false}, 1));
    assert_false(passes(&(mapped){square, wrong_slope, false}, 1));
}

static void what_does_not_fit_is_refused(void **state) {
    const mapped wrong[] = {{NULL, square_slope, false},
                            {square, NULL, false},
                            {square, square_slope, true}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        opened o;
        tr_error err = {0};
        tr_run *run = NULL;
        tr_engine *engine = NULL;
        fill(&o, &wrong[i]);
        tr_status status = tr_run_open(text, settings, &o.parts, &run, &err);
        if (status == TR_OK) {
            status = tr_engine_create(run, NULL, &engine, &err);
        }
        assert_int_equal(status, TR_USAGE);
        if (!strstr(err.message, "map")) {
            fail_msg("not of tr_graph_map: %s", err.message);
        }
        assert_null(engine);
        tr_run_destroy(run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_what_the_op_gives),
        cmocka_unit_test(the_check_compares_value_and_slope),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
