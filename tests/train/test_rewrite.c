// A model whose own rows of rewrites put adapters beside a linear layer: several nodes
// and new parameters, trained, evaluated, and cut like any other.
// Labels: check
#include "adapter.h"
#include "own_model.h"
#include "samples.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 24, TEXT_MAX = 512 };

static void open_model(trial *t, const own_model *own, const samples *data,
                       const char *settings) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"train_batch_size\": %d, \"steps\": 40, \"seed\": 3, "
             "\"gradient_clipping\": 0, \"out\": \"unused\", %s}",
             SAMPLES, settings);
    const run_options options = {.text = text,
                                 .own_model = &own->model,
                                 .own_train = data->dataset,
                                 .own_validation = data->dataset,
                                 .resume = "never"};
    trial_open(t, &options);
}

static void give_rows(own_model *own, const tr_rewrite *rows) {
    own->model.rewrites = rows;
    own->model.rewrites_version = TRANCHE_EXTEND_VERSION;
}

#define NO_RATE "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0}}"
#define ADAM    "\"optimizer\": {\"params\": {\"lr\": 0.01}}"

// ---- gradients

static double loss_at(trial *t, const char *name, int64_t element, float value) {
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    tr_error err = {0};
    trial_ok(tr_engine_write(t->engine, name, "values", element, 1, &value, &err),
             &err);
    trial_ok(tr_engine_evaluate(t->engine, 0, &evaluation, &err), &err);
    return evaluation.loss;
}

static double slope(trial *t, const char *name, int64_t element) {
    const float step = 0x1p-10f;
    float value;
    tr_error err = {0};
    trial_ok(tr_engine_read(t->engine, name, "values", element, 1, &value, &err), &err);
    double above = loss_at(t, name, element, value + step);
    double below = loss_at(t, name, element, value - step);
    loss_at(t, name, element, value);
    return (above - below) / (2 * (double)step);
}

static void check_tensor(trial *t, const tr_tensor_info *info) {
    int64_t count = tr_shape_count(info->shape);
    double wrong = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        float gradient;
        tr_error err = {0};
        trial_ok(
            tr_engine_read(t->engine, info->name, "gradient", i, 1, &gradient, &err),
            &err);
        wrong = hypot(wrong, slope(t, info->name, i) - (double)gradient);
        size = hypot(size, (double)gradient);
    }
    if (!(size > 0.01 && wrong < 0.01 * size)) {
        fail_msg("%s: the gradient has norm %g and is %g off", info->name, size, wrong);
    }
}

static void gradients_are_slopes(void **state) {
    own_model own;
    samples data;
    trial t;
    int adapters = 0;
    tr_error err = {0};
    (void)state;
    own_model_make(&own, false, 0);
    give_rows(&own, adapter_rows_drawn);
    samples_features(&data, SAMPLES, OWN_FEATURES, OWN_CLASSES, 1);
    open_model(&t, &own, &data, NO_RATE ", \"train_micro_batch_size_per_gpu\": 8");
    trial_steps(&t, 1, NULL);
    for (size_t i = 0; i < tr_engine_tensors(t.engine); i++) {
        tr_tensor_info info = TR_TENSOR_INFO_INIT;
        trial_ok(tr_engine_tensor(t.engine, i, &info, &err), &err);
        adapters += strstr(info.name, ".lora_") != NULL;
        check_tensor(&t, &info);
    }
    assert_int_equal(adapters, 2); // of one unit of two that are of one kind
    trial_close(&t);
    samples_free(&data);
}

// ---- draws

// B is 0, so adapters change nothing in the first step, if all draws are the same.
static void other_ops_draw_the_same(void **state) {
    own_model own;
    samples data;
    snapshot gradients[2];
    double loss[2];
    (void)state;
    samples_features(&data, SAMPLES, OWN_FEATURES, OWN_CLASSES, 1);
    for (int adapted = 0; adapted < 2; adapted++) {
        trial t;
        tr_step_result result = TR_STEP_RESULT_INIT;
        own_model_make(&own, false, 0.3f);
        give_rows(&own, adapted ? adapter_rows : NULL);
        open_model(&t, &own, &data, NO_RATE);
        trial_steps(&t, 1, &result);
        snapshot_take_gradients(&gradients[adapted], &t);
        loss[adapted] = result.loss;
        trial_close(&t);
    }
    assert_true(loss[0] == loss[1]);
    assert_int_equal(gradients[1].count, gradients[0].count + 2);
    for (size_t i = 0; i < gradients[0].count; i++) {
        const snapshot_tensor *plain = &gradients[0].tensors[i];
        const snapshot_tensor *same = snapshot_find(&gradients[1], plain->name);
        for (int64_t k = 0; k < plain->count; k++) {
            assert_true(same->part[0][k] == plain->part[0][k]);
        }
    }
    snapshot_free(&gradients[0]);
    snapshot_free(&gradients[1]);
    samples_free(&data);
}

// ---- training

static double length(const snapshot *s, const char *name) {
    const snapshot_tensor *tensor = snapshot_find(s, name);
    double sum = 0;
    for (int64_t i = 0; i < tensor->count; i++) {
        sum += (double)tensor->part[0][i] * (double)tensor->part[0][i];
    }
    return sqrt(sum);
}

static void train(const char *settings, snapshot *end, tr_step_result results[40]) {
    own_model own;
    samples data;
    trial t;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    tr_error err = {0};
    own_model_make(&own, true, 0.1f);
    give_rows(&own, adapter_rows);
    samples_features(&data, SAMPLES, OWN_FEATURES, OWN_CLASSES, 1);
    open_model(&t, &own, &data, settings);
    trial_steps(&t, 40, results);
    trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
    assert_true(evaluation.loss < results[0].loss);
    snapshot_take(end, &t);
    trial_close(&t);
    samples_free(&data);
}

static void adapters_are_trained_however_the_batch_is_cut(void **state) {
    snapshot ends[2];
    tr_step_result results[2][40];
    (void)state;
    train(ADAM, &ends[0], results[0]);
    assert_true(results[0][39].loss < 0.7 * results[0][0].loss);
    assert_true(length(&ends[0], ADAPTER_UP) > 0.1);
    train(ADAM ", \"train_micro_batch_size_per_gpu\": 5, "
               "\"activation_checkpointing\": {\"number_checkpoints\": 2}",
          &ends[1], results[1]);
    for (int s = 0; s < 40; s++) {
        assert_true(fabs(results[1][s].loss / results[0][s].loss - 1) < 1e-3);
    }
    snapshot_free(&ends[0]);
    snapshot_free(&ends[1]);
}

// ---- an evaluation

enum { HIDDEN = 8 };

static tr_value layer(tr_graph *graph, tr_value x, const char *name, int64_t in,
                      int64_t out) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    tr_value w = tr_graph_param(graph, name, TR_SHAPE2(out, in), draw);
    return tr_linear(graph, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE);
}

// The dropout lies over the first layer's result, which nothing else reads.
static void build_dropping(tr_graph *graph, const void *config) {
    (void)config;
    tr_value x = tr_graph_data(graph, "features");
    x = tr_dropout(graph, layer(graph, x, "first", OWN_FEATURES, HIDDEN), 0.5f);
    tr_graph_output(graph, layer(graph, x, "second", HIDDEN, HIDDEN));
}

static void build_classes(tr_graph *graph, const void *config) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    (void)config;
    tr_value w = tr_graph_param(graph, "weight", TR_SHAPE2(OWN_CLASSES, HIDDEN), draw);
    tr_linear_cross_entropy(graph, TR_LINEAR_OUT_IN, tr_graph_input(graph, 0), w,
                            TR_NO_VALUE, tr_graph_data(graph, "labels"));
}

// 4 x, of nodes that read x when what would lie over it is written.
static bool give_four(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    tr_value sum = tr_residual(graph, node->in[0], node->in[0], 0);
    sum = tr_residual(graph, sum, node->in[0], 0);
    results[0] = tr_residual(graph, sum, node->in[0], 0);
    return true;
}

static const tr_rewrite four_rows[] = {
    {TR_REWRITE_ASKED, NULL, "dropout", give_four},
    {0},
};

static double evaluated(const own_model *own, const samples *data, double factor) {
    trial t;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    tr_error err = {0};
    float values[HIDDEN * HIDDEN];
    open_model(&t, own, data, NO_RATE);
    trial_ok(tr_engine_read(t.engine, "low.second", "values", 0, HIDDEN * HIDDEN,
                            values, &err),
             &err);
    for (int i = 0; i < HIDDEN * HIDDEN; i++) {
        values[i] = (float)factor * values[i];
    }
    trial_ok(tr_engine_write(t.engine, "low.second", "values", 0, HIDDEN * HIDDEN,
                             values, &err),
             &err);
    trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
    trial_steps(&t, 1, NULL);
    trial_close(&t);
    return evaluation.loss;
}

static void an_evaluation_has_nodes_of_its_own(void **state) {
    static const tr_model_unit units[] = {
        {"low", "low", "low.", build_dropping, NULL},
        {"high", "high", "high.", build_classes, NULL},
    };
    own_model own;
    samples data;
    (void)state;
    own_model_make(&own, false, 0);
    own.model.units = units;
    own.model.unit_count = 2;
    samples_features(&data, SAMPLES, OWN_FEATURES, OWN_CLASSES, 1);
    double plain = evaluated(&own, &data, 1), four = evaluated(&own, &data, 4);
    give_rows(&own, four_rows);
    assert_true(plain != four);
    assert_true(evaluated(&own, &data, 1) == four);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(other_ops_draw_the_same),
        cmocka_unit_test(adapters_are_trained_however_the_batch_is_cut),
        cmocka_unit_test(an_evaluation_has_nodes_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
