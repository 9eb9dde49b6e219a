// Functions of the caller's as ops: tr_check_run finds their gradients right, and the
// same in every cut; one that fails ends the step, which changes nothing; what does not
// fit is the graph's error.
#include <tranche.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FEATURES = 5, WIDTH = 4, CLASSES = 3 };

// ---- y = x * x * w, w [WIDTH] being a parameter

typedef struct square {
    bool fails;
    int calls;
} square;

static bool square_forward(void *user, const tr_function_call *call) {
    square *s = user;
    const float *x = call->input[0], *w = call->input[1]; // [B, WIDTH], [WIDTH]
    float *y = call->output;                              // [B, WIDTH]
    int64_t count = tr_shape_count(call->output_desc.shape);
    s->calls++;
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * x[i] * w[i % WIDTH];
    }
    return !s->fails;
}

static void put(float *to, float value, bool add) {
    *to = add ? *to + value : value;
}

static bool square_backward(void *user, const tr_function_call *call) {
    const float *x = call->input[0], *w = call->input[1], *dy = call->output_gradient;
    float *dx = call->input_gradient[0], *dw = call->input_gradient[1];
    int64_t count = tr_shape_count(call->output_desc.shape);
    (void)user;
    for (int64_t i = 0; dx && i < count; i++) {
        put(&dx[i], 2 * x[i] * w[i % WIDTH] * dy[i], call->adds & 1);
    }
    for (int64_t i = 0; dw && i < count; i++) {
        put(&dw[i % WIDTH], x[i] * x[i] * dy[i], call->adds >> 1 & 1 || i >= WIDTH);
    }
    return true;
}

// ---- the loss: half the squares of what is off from the label, one for each sample

static bool add_losses(const tr_function_call *call, float *dx) {
    const float *x = call->input[0];        // [B, 1]
    const int32_t *labels = call->input[1]; // [B]
    double *sums = call->output;
    for (int64_t i = 0; i < call->input_desc[0].shape.dim[0]; i++) {
        bool there = labels[i] >= 0;
        double off = there ? x[i] - (double)labels[i] : 0;
        sums[0] += off * off / 2;
        sums[1] += there;
        if (dx) {
            put(&dx[i], (float)off * call->loss_seed, call->adds & 1);
        }
    }
    return true;
}

static bool loss_forward(void *user, const tr_function_call *call) {
    (void)user;
    return add_losses(call, NULL);
}

static bool loss_backward(void *user, const tr_function_call *call) {
    (void)user;
    return add_losses(call, call->input_gradient[0]);
}

// ---- the model

static square of_square;
static tr_function square_function, loss_function;

static void make_functions(void) {
    of_square = (square){false, 0};
    square_function = (tr_function)TR_FUNCTION_INIT;
    square_function.name = "square";
    square_function.output = (tr_tensor_desc){TR_F32, TR_SHAPE2(TR_BATCH, WIDTH)};
    square_function.forward = square_forward;
    square_function.backward = square_backward;
    square_function.user = &of_square;
    loss_function = (tr_function)TR_FUNCTION_INIT;
    loss_function.loss = true;
    loss_function.forward = loss_forward;
    loss_function.backward = loss_backward;
}

static const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};

static tr_value linear(tr_graph *g, tr_value x, int64_t out, int64_t in) {
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(out, in), draw);
    return tr_graph_call(g, "linear", NULL, (tr_value[]){x, w}, 2, NULL, 0);
}

static void build_hidden(tr_graph *g, const void *config) {
    (void)config;
    tr_value h = linear(g, tr_graph_data(g, "features"), WIDTH, FEATURES);
    tr_value scale = tr_graph_param(g, "scale", TR_SHAPE1(WIDTH), draw);
    tr_graph_output(g,
                    tr_graph_function(g, &square_function, (tr_value[]){h, scale}, 2));
}

static void build_head(tr_graph *g, const void *config) {
    (void)config;
    tr_value y = linear(g, tr_graph_input(g, 0), 1, WIDTH);
    tr_value labels = tr_graph_data(g, "labels");
    tr_graph_function(g, &loss_function, (tr_value[]){y, labels}, 2);
}

static const tr_model_unit units[] = {
    {.name = "hidden", .kind = "hidden", .prefix = "hidden.", .build = build_hidden},
    {.name = "head", .kind = "head", .prefix = "head.", .build = build_head},
};

static const char text[] =
    "{\"data\": {\"format\": \"random\", \"samples\": 40, \"features\": 5,"
    " \"classes\": 3}, \"steps\": 4, \"train_batch_size\": 7, \"out\": \"out\","
    " \"train_micro_batch_size_per_gpu\": 3, \"execution\": {\"threads\": 2}}";

typedef struct made {
    tr_model model;
    tr_run *run;
} made;

static void open_run(made *m) {
    tr_error err = {0};
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    make_functions();
    m->model = (tr_model)TR_MODEL_INIT;
    m->model.type = "functions";
    m->model.unit_count = 2;
    m->model.units = units;
    m->model.batch = tr_batch_features(FEATURES);
    m->model.classes = CLASSES;
    parts.model = &m->model;
    assert_int_equal(tr_run_create(&m->run, &err), TR_OK);
    assert_int_equal(tr_run_load_text(m->run, text, &err), TR_OK);
    assert_int_equal(tr_run_set(m->run, "resume", "never", &err), TR_OK);
    assert_int_equal(tr_run_give(m->run, &parts, &err), TR_OK);
}

static bool print_piece(void *user, const char *piece, size_t bytes) {
    (void)user;
    return fwrite(piece, 1, bytes, stdout) == bytes;
}

// ---- tests

static void gradients_are_right_in_every_cut(void **state) {
    made m;
    tr_error err = {0};
    tr_check *check = NULL;
    (void)state;
    open_run(&m);
    if (tr_check_run(m.run, 0, &check, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    if (!check->passed) {
        tr_check_print(check, true, &(tr_sink){print_piece, NULL}, &err);
    }
    assert_true(check->passed);
    assert_true(check->cut_count > 4);
    assert_int_equal(check->op_count, 2);
    assert_true(of_square.calls > 0);
    tr_check_destroy(check);
    tr_run_destroy(m.run);
}

static void one_that_fails_ends_the_step(void **state) {
    made m;
    tr_error err = {0};
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_step_result result = TR_STEP_RESULT_INIT;
    float before[WIDTH], after[WIDTH];
    (void)state;
    open_run(&m);
    assert_int_equal(tr_run_resolve(m.run, &err), TR_OK);
    assert_int_equal(tr_run_make_plan(m.run, &plan, &err), TR_OK);
    assert_int_equal(tr_engine_create(m.run, plan, &engine, &err), TR_OK);
    assert_int_equal(
        tr_engine_read(engine, "hidden.scale", "values", 0, WIDTH, before, &err),
        TR_OK);
    of_square.fails = true;
    assert_int_equal(tr_engine_step(engine, &result, &err), TR_DATA);
    assert_non_null(strstr(err.message, "function"));
    err = (tr_error){0};
    assert_int_equal(
        tr_engine_read(engine, "hidden.scale", "values", 0, WIDTH, after, &err), TR_OK);
    assert_memory_equal(before, after, sizeof before);
    of_square.fails = false;
    assert_int_equal(tr_engine_step(engine, &result, &err), TR_OK);
    assert_int_equal(result.step, 1);
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(m.run);
}

typedef struct printed {
    char text[16384];
    size_t bytes;
} printed;

static bool keep_piece(void *user, const char *piece, size_t bytes) {
    printed *p = user;
    size_t room = sizeof p->text - 1 - p->bytes;
    size_t taken = bytes < room ? bytes : room;
    memcpy(p->text + p->bytes, piece, taken);
    p->bytes += taken;
    return true;
}

static void the_plan_names_them(void **state) {
    static printed shown, json;
    made m;
    tr_error err = {0};
    tr_plan *plan = NULL;
    (void)state;
    open_run(&m);
    square_function.outside_bytes = 3 << 20;
    // As the first version of the struct had it: what is behind its end is not read.
    loss_function.name = "a loss";
    loss_function.size = offsetof(tr_function, outside_bytes);
    loss_function.outside_bytes = 1 << 20;
    assert_int_equal(tr_run_resolve(m.run, &err), TR_OK);
    assert_int_equal(tr_run_make_plan(m.run, &plan, &err), TR_OK);
    assert_int_equal(
        tr_run_print_plan(m.run, plan, &(tr_sink){keep_piece, &shown}, &err), TR_OK);
    assert_non_null(strstr(shown.text, "3.00 MiB  in 1 unit  square\n"));
    assert_non_null(strstr(shown.text, "not known  in 1 unit  a loss\n"));
    assert_int_equal(
        tr_run_print_plan_json(m.run, plan, &(tr_sink){keep_piece, &json}, &err),
        TR_OK);
    assert_non_null(strstr(json.text, "\"functions\": ["));
    assert_non_null(strstr(json.text, "\"outside_bytes\": 3145728"));
    assert_non_null(strstr(json.text, "\"outside_bytes\": 0"));
    tr_plan_destroy(plan);
    tr_run_destroy(m.run);
}

static void refuse(const tr_function *function, const char *words) {
    made m;
    tr_error err = {0};
    open_run(&m);
    square_function = *function;
    tr_plan *plan = NULL;
    tr_status status = tr_run_resolve(m.run, &err);
    status = status == TR_OK ? tr_run_make_plan(m.run, &plan, &err) : status;
    assert_int_equal(status, TR_USAGE);
    if (!strstr(err.message, words)) {
        fail_msg("\"%s\" is not in: %s", words, err.message);
    }
    tr_run_destroy(m.run);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    make_functions();
    tr_function f = square_function;
    f.size = 3;
    refuse(&f, "unknown size");
    make_functions();
    f = square_function;
    f.backward = NULL;
    refuse(&f, "forward and backward");
    make_functions();
    f = square_function;
    f.output.shape.dim[0] = 7;
    refuse(&f, "TR_BATCH is its first dimension");
    make_functions();
    f = square_function;
    f.output.dtype = TR_I32;
    refuse(&f, "its output is F32");
    make_functions();
    f = square_function;
    f.outside_bytes = -1;
    refuse(&f, "outside_bytes is below 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_right_in_every_cut),
        cmocka_unit_test(one_that_fails_ends_the_step),
        cmocka_unit_test(the_plan_names_them),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
