#include "plan/models.h"

// One that uses a tensor in its first unit, its sixth and its last: on four stages of
// two units each, or eight of one, it is on three that are not evenly apart.
enum {
    UNITS = 8,
    FEATURES = TEST_TIED_FEATURES,
    CLASSES = TEST_TIED_CLASSES,
    WIDE = 16
};

static const tr_init draw = {TR_INIT_UNIFORM, -0.4f, 0.4f};

static tr_value product(tr_graph *graph, tr_value x, tr_value weight) {
    return tr_linear(graph, TR_LINEAR_OUT_IN, x, weight, TR_NO_VALUE);
}

static tr_value own(tr_graph *graph, tr_value x, int64_t in, int64_t out) {
    return product(graph, x, tr_graph_param(graph, "weight", TR_SHAPE2(out, in), draw));
}

static tr_value shared(tr_graph *graph, tr_value x) {
    tr_value weight =
        tr_graph_shared(graph, "shared.weight", TR_SHAPE2(WIDE, WIDE), draw);
    return tr_relu(graph, product(graph, x, weight));
}

static void build_first(tr_graph *graph, const void *config) {
    (void)config;
    tr_value x = own(graph, tr_graph_data(graph, "features"), FEATURES, WIDE);
    tr_graph_output(graph, shared(graph, x));
}

static void build_plain(tr_graph *graph, const void *config) {
    (void)config;
    tr_value x = tr_graph_input(graph, 0);
    tr_value h = tr_relu(graph, own(graph, x, WIDE, WIDE));
    tr_graph_output(graph, tr_residual(graph, x, h, 0));
}

static void build_user(tr_graph *graph, const void *config) {
    (void)config;
    tr_value x = tr_graph_input(graph, 0);
    tr_graph_output(graph, tr_residual(graph, x, shared(graph, x), 0));
}

static void build_head(tr_graph *graph, const void *config) {
    (void)config;
    tr_value x = shared(graph, tr_graph_input(graph, 0));
    tr_value w = tr_graph_param(graph, "weight", TR_SHAPE2(CLASSES, WIDE), draw);
    tr_linear_cross_entropy(graph, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE,
                            tr_graph_data(graph, "labels"));
}

static const tr_model_unit units[UNITS] = {
    {"first", "first", "first.", build_first, NULL},
    {"a", "plain", "a.", build_plain, NULL},
    {"b", "plain", "b.", build_plain, NULL},
    {"c", "plain", "c.", build_plain, NULL},
    {"d", "plain", "d.", build_plain, NULL},
    {"user", "user", "user.", build_user, NULL},
    {"e", "plain", "e.", build_plain, NULL},
    {"head", "head", "head.", build_head, NULL},
};

const tr_model test_model_tied = {
    .size = sizeof(tr_model),
    .type = "tied",
    .unit_count = UNITS,
    .units = units,
    .batch = {2,
              {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(FEATURES)}},
               {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}},
    .classes = CLASSES,
    .classifier = true};
