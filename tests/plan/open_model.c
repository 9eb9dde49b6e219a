#include "plan/models.h"

// One that hands a trained tensor on, and, in a segment of its own, another; and one
// that nothing trained leads to.
static tr_value dense(tr_graph *g, const char *name, tr_value x, int64_t in,
                      int64_t out) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    return tr_linear(g, TR_LINEAR_OUT_IN, x,
                     tr_graph_param(g, name, TR_SHAPE2(out, in), draw), TR_NO_VALUE);
}

static void build_first(tr_graph *g, const void *config) {
    (void)config;
    tr_value x = tr_graph_data(g, "features");
    tr_graph_output(g, tr_relu(g, dense(g, "a", x, 6, 7)));
    tr_graph_output(g, tr_relu(g, x));
}

static void build_last(tr_graph *g, const void *config) {
    const int *segments = config;
    tr_value x = tr_graph_input(g, 0);
    tr_value h = tr_relu(g, dense(g, "b", x, 7, 5));
    if (*segments > 1) {
        tr_graph_segment(g);
    }
    tr_graph_output(g, tr_relu(g, tr_graph_input(g, 1)));
    tr_graph_output(g, tr_residual(g, x, dense(g, "c", h, 5, 7), 0));
    tr_graph_output(g, h);
}

static void build_deep_first(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, tr_relu(g, dense(g, "a", tr_graph_data(g, "features"), 6, 7)));
}

static void build_plain(tr_graph *g, const void *config) {
    (void)config;
    tr_value x = tr_graph_input(g, 0);
    tr_graph_output(g, tr_residual(g, x, tr_relu(g, dense(g, "b", x, 7, 7)), 0));
}

static void build_deep_last(tr_graph *g, const void *config) {
    (void)config;
    tr_graph_output(g, dense(g, "c", tr_graph_input(g, 0), 7, 5));
}

static const int one = 1, two = 2;

static const tr_model_unit whole_units[] = {
    {"first", "first", "first.", build_first, NULL},
    {"last", "last", "last.", build_last, &one},
};

static const tr_model_unit cut_units[] = {
    {"first", "first", "first.", build_first, NULL},
    {"last", "last", "last.", build_last, &two},
};

#define PLAIN(name)                                                                    \
    { name, "plain", name ".", build_plain, NULL }

static const tr_model_unit deep_units[TEST_OPEN_UNITS] = {
    {"first", "first", "first.", build_deep_first, NULL},
    PLAIN("p1"),
    PLAIN("p2"),
    PLAIN("p3"),
    PLAIN("p4"),
    PLAIN("p5"),
    PLAIN("p6"),
    PLAIN("p7"),
    PLAIN("p8"),
    PLAIN("p9"),
    PLAIN("p10"),
    {"last", "last", "last.", build_deep_last, NULL},
};

#define BATCH                                                                          \
    {                                                                                  \
        1, {                                                                           \
            {                                                                          \
                "features", TR_ROLE_INPUT, {                                           \
                    TR_F32, TR_SHAPE1_INIT(6)                                          \
                }                                                                      \
            }                                                                          \
        }                                                                              \
    }

const tr_model test_model_open = {.size = sizeof(tr_model),
                                  .type = "open",
                                  .unit_count = 2,
                                  .units = whole_units,
                                  .batch = BATCH};
const tr_model test_model_open_cut = {.size = sizeof(tr_model),
                                      .type = "open",
                                      .unit_count = 2,
                                      .units = cut_units,
                                      .batch = BATCH};
const tr_model test_model_open_deep = {.size = sizeof(tr_model),
                                       .type = "open",
                                       .unit_count = TEST_OPEN_UNITS,
                                       .units = deep_units,
                                       .batch = BATCH};
