#include "plan/models.h"

#include "comm/mesh.h"

// One whose ranks on the tensor axis sum activations in the middle of a unit and at its
// end, gradients, and a gradient to which two sums contribute.
static tr_value dense(tr_graph *g, const char *name, tr_value x, int64_t in,
                      int64_t out) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    return tr_linear(g, TR_LINEAR_OUT_IN, x,
                     tr_graph_param(g, name, TR_SHAPE2(out, in), draw), TR_NO_VALUE);
}

static void build_first(tr_graph *g, const void *config) {
    (void)config;
    tr_value h = tr_relu(g, dense(g, "a", tr_graph_data(g, "features"), 6, 7));
    tr_graph_output(g, tr_all_reduce(g, h, TR_ON_TENSOR));
}

static void build_middle(tr_graph *g, const void *config) {
    (void)config;
    tr_value x = tr_graph_input(g, 0);
    tr_value one = tr_all_reduce_gradient(g, x, TR_ON_TENSOR);
    tr_value two = tr_all_reduce_gradient(g, x, TR_ON_TENSOR);
    tr_value h = tr_relu(g, dense(g, "b", one, 7, 5));
    h = tr_all_reduce(g, dense(g, "c", h, 5, 7), TR_ON_TENSOR);
    tr_graph_output(g, tr_relu(g, tr_residual(g, h, dense(g, "d", two, 7, 7), 0)));
}

static void build_head(tr_graph *g, const void *config) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    (void)config;
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, tr_graph_input(g, 0),
                            tr_graph_param(g, "w", TR_SHAPE2(3, 7), draw), TR_NO_VALUE,
                            tr_graph_data(g, "labels"));
}

static const tr_model_unit units[] = {
    {"first", "first", "first.", build_first, NULL},
    {"middle", "middle", "middle.", build_middle, NULL},
    {"head", "head", "head.", build_head, NULL},
};

tr_model test_model_summed(void) {
    return (tr_model){.size = sizeof(tr_model),
                      .type = "summed",
                      .unit_count = 3,
                      .units = units,
                      .batch = tr_batch_features(6),
                      .classes = 3};
}
