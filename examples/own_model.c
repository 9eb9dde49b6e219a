// A model of the program's own, with an op of its own: 100 -> 64, squared, -> 10.
#include "ok.h"

#include <tranche/extend/graph.h>
#include <tranche/extend/op_check.h>

// ---- the op: y = x * x, dx = 2 * x * dy. A kernel may be asked to add to its output.

static tr_status square_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    (void)err;
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void square_launch(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    const float *x = launch->in[0]; // [count]
    float *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        y[i] = (launch->accumulate & 1 ? y[i] : 0) + x[i] * x[i];
    }
}

static void square_backward_launch(const tr_op_desc *desc, void *state,
                                   const tr_launch *launch) {
    const float *dy = launch->in[0], *x = launch->in[1]; // [count]
    float *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        dx[i] = (launch->accumulate & 1 ? dx[i] : 0) + 2 * x[i] * dy[i];
    }
}

static const tr_kernel square_kernel = {
    .name = "square.plain", .supports = is_f32, .launch = square_launch};
static const tr_kernel square_backward_kernel = {.name = "square_backward.plain",
                                                 .supports = is_f32,
                                                 .launch = square_backward_launch};

static const tr_op square_backward_op = {.name = "square_backward",
                                         .infer = square_infer,
                                         .reference = &square_backward_kernel};

static int square_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &square_backward_op,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    return 1;
}

static const tr_op square_op = {.name = "square",
                                .infer = square_infer,
                                .backward = square_backward,
                                .reference = &square_kernel};

// ---- the model: two units

static void hidden(tr_graph *g, const void *config) {
    (void)config;
    tr_init draw = {TR_INIT_UNIFORM, -0.1f, 0.1f};
    tr_value x = tr_graph_data(g, "features"); // [B, 100]
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(64, 100), draw);
    tr_value b = tr_graph_param(g, "bias", TR_SHAPE1(64), draw);
    tr_value h = tr_linear(g, TR_LINEAR_OUT_IN, x, w, b); // [B, 64]
    tr_graph_output(g, tr_graph_op(g, &square_op, NULL, &h, 1, NULL));
}

static void head(tr_graph *g, const void *config) {
    (void)config;
    tr_init draw = {TR_INIT_UNIFORM, -0.125f, 0.125f};
    tr_value x = tr_graph_input(g, 0); // [B, 64]
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(10, 64), draw);
    tr_value b = tr_graph_param(g, "bias", TR_SHAPE1(10), draw);
    tr_value targets = tr_graph_data(g, "labels"); // [B]
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x, w, b, targets);
}

static const tr_model_unit units[] = {
    {.name = "hidden", .kind = "hidden", .prefix = "hidden.", .build = hidden},
    {.name = "head", .kind = "head", .prefix = "head.", .build = head},
};

static const tr_model model = {
    .size = sizeof(tr_model),
    .type = "squares",
    .unit_count = 2,
    .units = units,
    .batch = {2,
              {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(100)}},
               {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}},
    .classes = 10,
    .classifier = true,
    .config_json = "{\"model_type\": \"squares\"}",
};

static const char run_text[] =
    "{\"data\": {\"format\": \"random\", \"samples\": 1000, \"features\": 100,"
    "           \"classes\": 10},"
    " \"epochs\": 20, \"train_batch_size\": 50, \"out\": \"out/own-model\"}";

static void print_line(void *user, const char *line) {
    (void)user;
    puts(line);
}

static bool print_piece(void *user, const char *piece, size_t bytes) {
    (void)user;
    return fwrite(piece, 1, bytes, stdout) == bytes;
}

int main(void) {
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    // Is the op what it says?  In a larger program this is one of its tests.
    const tr_op_check_input x = {.desc = {TR_F32, TR_SHAPE2(5, 3)}};
    ok(tr_op_check(&square_op, NULL, &x, 1, 0, &err), &err);
    parts.model = &model;
    ok(tr_run_create(&run, &err), &err);
    ok(tr_run_load_text(run, run_text, &err), &err);
    ok(tr_run_set(run, "resume", "never", &err), &err);
    ok(tr_run_give(run, &parts, &err), &err);
    ok(tr_run_resolve(run, &err), &err);
    ok(tr_run_make_plan(run, &plan, &err), &err);
    ok(tr_plan_print(plan, &(tr_sink){print_piece, NULL}, &err), &err);
    ok(tr_run_begin(run, plan, &err), &err);
    ok(tr_engine_create(run, plan, &engine, &err), &err);
    options.screen.line = print_line;
    ok(tr_engine_train(engine, &options, &err), &err);
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return 0;
}
