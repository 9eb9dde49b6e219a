// A model of the program's own from C++, with an op of its own: 100 -> 64, squared, ->
// 10.
#include "handle.hpp"

#include <tranche/extend/graph.h>
#include <tranche/extend/op_check.h>

#include <cstdio>

// ---- the op: y = x * x, dx = 2 * x * dy. A kernel may be asked to add to its output.

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *count,
                       tr_error *) {
    out[0] = node->in[0];
    *count = 1;
    return TR_OK;
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

// in: x, or dy and x
template <int Operands>
static void launch(const tr_op_desc *desc, void *, const tr_launch *launch) {
    const float *first = static_cast<const float *>(launch->in[0]);
    const float *x = static_cast<const float *>(launch->in[Operands - 1]);
    float *out = static_cast<float *>(launch->out[0]);
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        float value = Operands == 1 ? x[i] * x[i] : 2 * x[i] * first[i];
        out[i] = (launch->accumulate & 1 ? out[i] : 0) + value;
    }
}

struct square {
    tr_kernel kernel = tr_kernel(), backward_kernel = tr_kernel();
    tr_op op = tr_op(), backward = tr_op();
    square();
};
static square &ops() {
    static square all;
    return all;
}

static int rules(const tr_op_node *, tr_rule out[TR_OP_RULES_MAX]) {
    out[0] = tr_rule();
    out[0].op = &ops().backward;
    out[0].in[0] = tr_ref TR_GRAD_OUT(0);
    out[0].in[1] = tr_ref TR_IN(0);
    out[0].out[0] = tr_ref TR_GRAD_IN(0);
    return 1;
}

square::square() {
    kernel.name = backward_kernel.name = "plain";
    kernel.supports = backward_kernel.supports = is_f32;
    kernel.launch = launch<1>;
    backward_kernel.launch = launch<2>;
    op.name = "square";
    backward.name = "square_backward";
    op.infer = backward.infer = infer;
    op.backward = rules;
    op.reference = &kernel;
    backward.reference = &backward_kernel;
}

// ---- the model: two units

static tr_value weight(tr_graph *g, int64_t out, int64_t in) {
    const tr_shape shape = {2, {out, in, 0, 0}};
    return tr_graph_param(g, "weight", shape, {TR_INIT_UNIFORM, -0.1f, 0.1f});
}

static void hidden(tr_graph *g, const void *) {
    tr_value x = tr_graph_data(g, "features"); // [B, 100]
    tr_value h = tr_linear(g, TR_LINEAR_OUT_IN, x, weight(g, 64, 100), TR_NO_VALUE);
    tr_graph_output(g, tr_graph_op(g, &ops().op, nullptr, &h, 1, nullptr));
}

static void head(tr_graph *g, const void *) {
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, tr_graph_input(g, 0),
                            weight(g, 10, 64), TR_NO_VALUE, tr_graph_data(g, "labels"));
}

static void print_line(void *, const char *line) {
    std::puts(line);
}

int main() try {
    const tr_model_unit units[] = {{"hidden", "hidden", "hidden.", hidden, nullptr},
                                   {"head", "head", "head.", head, nullptr}};
    tr_model model = TR_MODEL_INIT;
    model.type = "squares";
    model.unit_count = 2;
    model.units = units;
    model.batch = tr_batch_features(100);
    model.classes = 10;
    model.classifier = true;
    // Is the op what it says?  In a larger program this is one of its tests.
    const tr_op_check_input x = {{TR_F32, {2, {5, 3, 0, 0}}}, nullptr};
    call(tr_op_check, &ops().op, nullptr, &x, 1, 0.0);
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    parts.model = &model;
    const char *text = R"({
        "data": {"format": "random", "samples": 1000, "features": 100, "classes": 10},
        "epochs": 20, "train_batch_size": 50})";
    const char *const settings[] = {"resume=never", nullptr};
    auto run = make(tr_run_destroy, tr_run_open, text, settings, &parts);
    auto engine = make(tr_engine_destroy, tr_engine_create, run.get(), nullptr);
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    options.no_files = true;
    options.screen.line = print_line;
    call(tr_engine_train, engine.get(), &options);
    return 0;
} catch (const failure &error) {
    std::fprintf(stderr, "own_model: %s\n", error.what());
    return tr_status_exit(error.status);
}
