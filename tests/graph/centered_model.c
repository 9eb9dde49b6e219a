#include "graph/centered_model.h"

#include "graph/batch_center.h"

static const tr_init uniform = {TR_INIT_UNIFORM, -0.5f, 0.5f};

static tr_value tied(tr_graph *g) {
    return tr_graph_shared(g, "tied", TR_SHAPE2(TEST_FEATURES, TEST_FEATURES), uniform);
}

static tr_value vector(tr_graph *g, const char *name) {
    return tr_graph_param(g, name, TR_SHAPE1(TEST_FEATURES), uniform);
}

static void build_first(tr_graph *g, const void *config) {
    (void)config;
    tr_value x = tr_graph_data(g, "features"); // [B, F]
    tr_value w = tied(g), b = vector(g, "bias");
    tr_value h = tr_linear(g, TR_LINEAR_OUT_IN, x, w, b);
    tr_graph_output(g, tr_relu(g, test_batch_center(g, h)));
}

static void build_second(tr_graph *g, const void *config) {
    (void)config;
    tr_value x = tr_graph_input(g, 0); // [B, F]
    tr_value a = vector(g, "norm.weight"), b = vector(g, "norm.bias");
    tr_value n = tr_layer_norm(g, x, a, b, 0.01f);
    tr_value w =
        tr_graph_param(g, "weight", TR_SHAPE2(TEST_FEATURES, TEST_FEATURES), uniform);
    tr_value h = tr_linear(g, TR_LINEAR_IN_OUT, n, w, TR_NO_VALUE);
    h = tr_gelu(g, test_batch_center(g, h), true);
    h = tr_linear(g, TR_LINEAR_OUT_IN, h, tied(g), TR_NO_VALUE);
    tr_graph_output(g, tr_residual(g, x, h, 0.25f));
}

static void build_last(tr_graph *g, const void *config) {
    (void)config;
    tr_value w =
        tr_graph_param(g, "weight", TR_SHAPE2(TEST_CLASSES, TEST_FEATURES), uniform);
    tr_value b = tr_graph_param(g, "bias", TR_SHAPE1(TEST_CLASSES), uniform);
    tr_value x = tr_graph_input(g, 0), targets = tr_graph_data(g, "labels");
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x, w, b, targets);
}

static const tr_model_unit units[] = {
    {"first", "first", "first.", build_first, NULL},
    {"second", "second", "second.", build_second, NULL},
    {"last", "last", "last.", build_last, NULL},
};

const tr_model test_model_centered = {
    .size = sizeof(tr_model),
    .type = "centered",
    .unit_count = 3,
    .units = units,
    .batch = {2,
              {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(TEST_FEATURES)}},
               {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}},
    .classes = TEST_CLASSES,
    .classifier = true,
    .config_json = "{}",
};
