// A model of the program's own, with an op of its own: 100 -> 64, squared, -> 10.
#include "ok.h"

static float square(float x) {
    return x * x;
}

static float slope(float x) {
    return 2 * x;
}

static const tr_init draw = {TR_INIT_UNIFORM, -0.1f, 0.1f};

static void hidden(tr_graph *g, const void *config) {
    const tr_value in[] = {tr_graph_data(g, "features"),
                           tr_graph_param(g, "weight", TR_SHAPE2(64, 100), draw)};
    tr_value h = tr_graph_call(g, "linear", NULL, in, 2, NULL, 0); // [B, 64]
    (void)config;
    tr_graph_output(g, tr_graph_map(g, h, square, slope));
}

static void head(tr_graph *g, const void *config) {
    const tr_value in[] = {tr_graph_input(g, 0),
                           tr_graph_param(g, "weight", TR_SHAPE2(10, 64), draw),
                           tr_graph_data(g, "labels")};
    (void)config;
    tr_graph_call(g, "linear_cross_entropy", NULL, in, 3, NULL, 0); // the loss
}

static const tr_model_unit units[] = {{"hidden", "hidden", "hidden.", hidden, NULL},
                                      {"head", "head", "head.", head, NULL}};

static const char run_text[] =
    "{\"data\": {\"format\": \"random\", \"samples\": 1000, \"features\": 100,"
    "           \"classes\": 10},"
    " \"epochs\": 20, \"train_batch_size\": 50, \"out\": \"out/own-model\"}";

int main(void) {
    const tr_model model = {.size = sizeof model,
                            .type = "squares",
                            .unit_count = 2,
                            .units = units,
                            .batch = tr_batch_features(100),
                            .classes = 10};
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_run *run = NULL;
    tr_engine *engine = NULL;
    tr_error err = {0};
    parts.model = &model;
    ok(tr_run_open(run_text, NULL, &parts, &run, &err), &err);
    ok(tr_engine_create(run, NULL, &engine, &err), &err);
    while (result.step < tr_run_steps(run)) {
        ok(tr_engine_step(engine, &result, &err), &err);
    }
    printf("step %d  loss %.4f\n", (int)result.step, result.loss);
    tr_engine_destroy(engine);
    tr_run_destroy(run);
    return 0;
}
