// A model of the program's own, with an op of its own: 100 -> 64, squared, -> 10.
#include "ok.h"

// y = x * x, and its vector-Jacobian product 2 * x * dy.
static bool square(void *user, const tr_function_call *call) {
    const float *x = call->input[0]; // [rows, 64]
    float *y = call->output;
    int64_t count = tr_shape_count(call->output_desc.shape);
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * x[i];
    }
    return true;
}

static bool square_backward(void *user, const tr_function_call *call) {
    const float *x = call->input[0], *dy = call->output_gradient;
    float *dx = call->input_gradient[0]; // NULL: nobody wants it
    int64_t count = dx ? tr_shape_count(call->output_desc.shape) : 0;
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        dx[i] = (call->adds & 1 ? dx[i] : 0) + 2 * x[i] * dy[i];
    }
    return true;
}

static const tr_function squares = {.size = sizeof(tr_function),
                                    .name = "square",
                                    .output = {TR_F32, TR_SHAPE2_INIT(TR_BATCH, 64)},
                                    .forward = square,
                                    .backward = square_backward};

static tr_value linear(tr_graph *g, tr_value x, int64_t in, int64_t out) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.1f, 0.1f};
    const tr_value operands[] = {x,
                                 tr_graph_param(g, "weight", TR_SHAPE2(out, in), draw),
                                 tr_graph_param(g, "bias", TR_SHAPE1(out), draw)};
    return tr_graph_call(g, "linear", NULL, operands, 3, NULL, 0);
}

static void hidden(tr_graph *g, const void *config) {
    tr_value h = linear(g, tr_graph_data(g, "features"), 100, 64); // [B, 64]
    (void)config;
    tr_graph_output(g, tr_graph_function(g, &squares, &h, 1));
}

static void head(tr_graph *g, const void *config) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.125f, 0.125f};
    const tr_value operands[] = {
        tr_graph_input(g, 0), tr_graph_param(g, "weight", TR_SHAPE2(10, 64), draw),
        tr_graph_data(g, "labels"), tr_graph_param(g, "bias", TR_SHAPE1(10), draw)};
    (void)config;
    tr_graph_call(g, "linear_cross_entropy", NULL, operands, 4, NULL, 0); // the loss
}

static const tr_model_unit units[] = {
    {.name = "hidden", .kind = "hidden", .prefix = "hidden.", .build = hidden},
    {.name = "head", .kind = "head", .prefix = "head.", .build = head},
};

static const char run_text[] =
    "{\"data\": {\"format\": \"random\", \"samples\": 1000, \"features\": 100,"
    "           \"classes\": 10},"
    " \"epochs\": 20, \"train_batch_size\": 50, \"out\": \"out/own-model\"}";

static void print_line(void *user, const char *line) {
    (void)user;
    puts(line);
}

int main(void) {
    tr_error err = {0};
    tr_run *run = NULL;
    tr_engine *engine = NULL;
    tr_plan *plan = NULL;
    tr_model model = TR_MODEL_INIT;
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    model.type = "squares";
    model.unit_count = 2;
    model.units = units;
    model.batch = tr_batch_features(100);
    model.classes = 10;
    model.classifier = true;
    parts.model = &model;
    options.screen.line = print_line;
    ok(tr_run_create(&run, &err), &err);
    ok(tr_run_load_text(run, run_text, &err), &err);
    ok(tr_run_set(run, "resume", "never", &err), &err);
    ok(tr_run_give(run, &parts, &err), &err);
    ok(tr_run_resolve(run, &err), &err);
    ok(tr_run_make_plan(run, &plan, &err), &err);
    ok(tr_run_begin(run, plan, &err), &err);
    ok(tr_engine_create(run, plan, &engine, &err), &err);
    ok(tr_engine_train(engine, &options, &err), &err);
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return 0;
}
