#include "own_model.h"

#include "batch_mean.h"

#include <stdio.h>
#include <string.h>

enum { WIDE = 16, NARROW = 11 };

static tr_value dense(tr_graph *graph, const char *name, tr_value x, int64_t in,
                      int64_t out) {
    char weight[64], bias[64];
    tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return tr_linear(graph, TR_LINEAR_OUT_IN, x,
                     tr_graph_param(graph, weight, TR_SHAPE2(out, in), draw),
                     tr_graph_param(graph, bias, TR_SHAPE1(out), draw));
}

static void build_first(tr_graph *graph, const void *config) {
    (void)config;
    tr_value x = tr_graph_data(graph, "features");
    tr_graph_output(graph, tr_relu(graph, dense(graph, "in", x, OWN_FEATURES, WIDE)));
}

// What is centred has no bias: the mean takes it out, and its gradient would be nothing
// but rounding, which Adam amplifies.
static void build_middle(tr_graph *graph, const void *config) {
    const own_middle *m = config;
    tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    tr_value x = tr_graph_input(graph, 0);
    tr_value w = tr_graph_param(graph, "before.weight", TR_SHAPE2(NARROW, WIDE), draw);
    tr_value h = tr_linear(graph, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE);
    if (m->centered) {
        h = test_without_mean(graph, h, tr_graph_data(graph, "labels"));
    }
    h = tr_relu(graph, dense(graph, "after", h, NARROW, WIDE));
    tr_graph_output(graph, tr_residual(graph, x, h, m->dropout));
}

static void build_head(tr_graph *graph, const void *config) {
    tr_init draw = {TR_INIT_NORMAL, 0, 0.2f};
    (void)config;
    tr_value x = tr_graph_input(graph, 0);
    tr_value w = tr_graph_param(graph, "weight", TR_SHAPE2(OWN_CLASSES, WIDE), draw);
    tr_value b = tr_graph_param(graph, "bias", TR_SHAPE1(OWN_CLASSES), draw);
    tr_linear_cross_entropy(graph, TR_LINEAR_OUT_IN, x, w, b,
                            tr_graph_data(graph, "labels"));
}

void own_model_make(own_model *own, bool centered, float dropout) {
    const own_middle *m = &own->config;
    const tr_model_unit units[OWN_UNITS] = {
        {"first", "first", "first.", build_first, NULL},
        {"middle", "middle", "middle.", build_middle, m},
        {"second", "middle", "second.", build_middle, m}, // shares its program
        {"head", "head", "head.", build_head, NULL},
    };
    memcpy(own->units, units, sizeof units);
    own->config = (own_middle){centered, dropout};
    own->model = (tr_model){
        .size = sizeof(tr_model),
        .type = "own",
        .unit_count = OWN_UNITS,
        .units = own->units,
        .batch = {2,
                  {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(OWN_FEATURES)}},
                   {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}},
        .classes = OWN_CLASSES,
        .classifier = true};
}

static void build_open_head(tr_graph *graph, const void *config) {
    tr_init draw = {TR_INIT_NORMAL, 0, 0.2f};
    (void)config;
    tr_value x = tr_graph_input(graph, 0);
    tr_value w = tr_graph_param(graph, "weight", TR_SHAPE2(OWN_CLASSES, WIDE), draw);
    tr_value b = tr_graph_param(graph, "bias", TR_SHAPE1(OWN_CLASSES), draw);
    tr_graph_output(graph, tr_linear(graph, TR_LINEAR_OUT_IN, x, w, b));
}

void own_model_make_open(own_model *own, float dropout) {
    own_model_make(own, false, dropout);
    own->units[OWN_UNITS - 1].build = build_open_head;
    own->model.batch.count = 1;
}

void own_model_make_open_deep(own_model *own) {
    static const char *const names[][2] = {{"third", "third."},
                                           {"fourth", "fourth."},
                                           {"fifth", "fifth."},
                                           {"sixth", "sixth."}};
    enum { MORE = OWN_DEEP_UNITS - OWN_UNITS };
    own_model_make_open(own, 0);
    own->units[OWN_DEEP_UNITS - 1] = own->units[OWN_UNITS - 1];
    for (int i = 0; i < MORE; i++) {
        tr_model_unit *unit = &own->units[OWN_UNITS - 1 + i];
        *unit = own->units[1]; // shares its program
        unit->name = names[i][0];
        unit->prefix = names[i][1];
    }
    own->model.unit_count = OWN_DEEP_UNITS;
}
