// A program's data with several targets, numbers among them, and ids of 64 bits, under
// a loss of its own: the weights are those that are computed here by hand, however the
// batch is cut.
#include "base/memory.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <tranche/extend/graph.h>
#include <tranche/sample.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 20, INPUTS = 5, OUTPUTS = 2, STEPS = 9, T = 8, TEXT_MAX = 1024 };

// ---- the samples

typedef struct table {
    double x[SAMPLES][INPUTS], y[SAMPLES][OUTPUTS]; // y NAN: no target
    int64_t gate[SAMPLES];                          // TR_NO_TARGET: not of the loss
    int reads_most;                                 // samples of one call
} table;

static void table_fill(table *t) {
    uint64_t seed = 11;
    *t = (table){.reads_most = 0};
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < INPUTS; i++) {
            t->x[s][i] = (double)test_between(&seed, -64, 64) / 64;
        }
        for (int o = 0; o < OUTPUTS; o++) {
            t->y[s][o] =
                (s + o) % 7 == 3 ? NAN : (double)test_between(&seed, -64, 64) / 32;
        }
        t->gate[s] = s % 6 == 5 ? TR_NO_TARGET : s % 3;
    }
}

static tr_status read_table(void *user, const int64_t *index, int64_t count,
                            void *const *rows, tr_error *err) {
    table *t = user;
    (void)err;
    t->reads_most = count > t->reads_most ? (int)count : t->reads_most;
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < INPUTS; k++) {
            ((float *)rows[0])[i * INPUTS + k] = (float)t->x[index[i]][k];
        }
        for (int o = 0; o < OUTPUTS; o++) {
            ((float *)rows[1])[i * OUTPUTS + o] = (float)t->y[index[i]][o];
        }
        ((int64_t *)rows[2])[i] = t->gate[index[i]];
    }
    return TR_OK;
}

static tr_dataset_source source_of(table *t) {
    tr_dataset_source source = TR_DATASET_SOURCE_INIT;
    const tr_batch_tensors tensors = {
        3,
        {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(INPUTS)}},
         {"value", TR_ROLE_TARGET, {TR_F32, TR_SHAPE1_INIT(OUTPUTS)}},
         {"gate", TR_ROLE_TARGET, {TR_I64, {0, {0}}}}}};
    source.samples = SAMPLES;
    source.tensors = tensors;
    source.classes = 3;
    source.read = read_table;
    source.user = t;
    return source;
}

// ---- the loss: half the squares of what is off, of values that are there, where a
// gate is open

static tr_status infer_loss(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    (void)node, (void)err;
    out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    *out_count = 1;
    return TR_OK;
}

static tr_status infer_backward(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    (void)err;
    out[0] = node->in[0];
    out[1] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    *out_count = 2;
    return TR_OK;
}

// off: [rows, OUTPUTS], 0 where there is no target; may be NULL.
static void add_sums(const tr_launch *launch, int64_t rows, double *sums, double *off) {
    const float *p = launch->in[0], *y = launch->in[1];
    const int32_t *gate = launch->in[2];
    for (int64_t i = 0; i < rows * OUTPUTS; i++) {
        bool there = gate[i / OUTPUTS] >= 0 && !isnan(y[i]);
        double away = there ? (double)p[i] - y[i] : 0;
        sums[TR_SUM_LOSS] += away * away / 2;
        sums[TR_SUM_COUNT] += there;
        if (off) {
            off[i] = away;
        }
    }
}

static void launch_loss(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    add_sums(launch, desc->in[0].shape.dim[0], launch->out[0], NULL);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    int64_t rows = desc->in[0].shape.dim[0];
    double off[SAMPLES * OUTPUTS];
    float *grad = launch->out[0];
    (void)state;
    add_sums(launch, rows, launch->out[1], off);
    for (int64_t i = 0; i < rows * OUTPUTS; i++) {
        grad[i] = (launch->accumulate & 1 ? grad[i] : 0) +
                  (float)(off[i] * launch->run->loss_seed);
    }
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32 && desc->in[1].dtype == TR_F32;
}

static const tr_kernel loss_kernel = {
    .name = "squares", .supports = is_f32, .launch = launch_loss};
static const tr_kernel backward_kernel = {
    .name = "squares_backward", .supports = is_f32, .launch = launch_backward};
static const tr_op op_backward = {
    .name = "squares_backward", .infer = infer_backward, .reference = &backward_kernel};

static int rules(const tr_op_node *node, tr_rule out[TR_OP_RULES_MAX]) {
    (void)node;
    out[0] = (tr_rule){.op = &op_backward,
                       .in = {TR_IN(0), TR_IN(1), TR_IN(2)},
                       .out = {TR_GRAD_IN(0), TR_OUT(0)}};
    return 1;
}

static const tr_op op_loss = {.name = "squares",
                              .flags = TR_OP_LOSS,
                              .no_gradient = 1 << 1 | 1 << 2,
                              .infer = infer_loss,
                              .backward = rules,
                              .reference = &loss_kernel};

static void build(tr_graph *g, const void *config) {
    const tr_init zero = {TR_INIT_CONSTANT, 0, 0};
    (void)config;
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(OUTPUTS, INPUTS), zero);
    tr_value x = tr_graph_data(g, "features");
    tr_value in[] = {tr_linear(g, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE),
                     tr_graph_data(g, "value"), tr_graph_data(g, "gate")};
    tr_graph_op(g, &op_loss, NULL, in, 3, NULL);
}

static const tr_model_unit units[] = {{"only", "only", "", build, NULL}};

static const tr_model model = {
    .size = sizeof(tr_model),
    .type = "regression",
    .unit_count = 1,
    .units = units,
    .batch = {3,
              {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(INPUTS)}},
               {"value", TR_ROLE_TARGET, {TR_F32, TR_SHAPE1_INIT(OUTPUTS)}},
               {"gate", TR_ROLE_TARGET, {TR_I32, {0, {0}}}}}},
    .classes = 3,
};

// ---- by hand

static const double rate = 0.25;

static void step_by_hand(const table *t, int64_t first, int64_t count,
                         double w[OUTPUTS][INPUTS], double *loss) {
    double grad[OUTPUTS][INPUTS] = {{0}}, targets = 0;
    *loss = 0;
    for (int64_t s = first; s < first + count; s++) {
        for (int o = 0; o < OUTPUTS && t->gate[s] >= 0; o++) {
            double p = 0;
            for (int i = 0; i < INPUTS && !isnan(t->y[s][o]); i++) {
                p += w[o][i] * t->x[s][i];
            }
            double off = isnan(t->y[s][o]) ? 0 : p - t->y[s][o];
            *loss += off * off / 2;
            targets += !isnan(t->y[s][o]);
            for (int i = 0; i < INPUTS; i++) {
                grad[o][i] += off * t->x[s][i];
            }
        }
    }
    *loss /= targets;
    for (int o = 0; o < OUTPUTS; o++) {
        for (int i = 0; i < INPUTS; i++) {
            w[o][i] -= rate * grad[o][i] / targets;
        }
    }
}

static void open_cut(trial *t, tr_dataset *data, int micro, const char *more) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": %d, "
             "\"steps\": %d, \"gradient_clipping\": 0, \"data\": {\"order\": "
             "\"sequential\"}, \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": "
             "%g, \"momentum\": 0}}, \"out\": \"unused\"%s}",
             T, micro, STEPS, rate, more);
    run_options options = {.text = text,
                           .own_model = &model,
                           .own_train = data,
                           .own_validation = data,
                           .resume = "never"};
    trial_open(t, &options);
}

static void weights_are_those_by_hand(void **state) {
    static const int micros[] = {8, 4, 3, 1}; // an epoch ends with a batch of 4
    (void)state;
    for (size_t m = 0; m < sizeof micros / sizeof *micros; m++) {
        table t;
        trial run;
        tr_dataset *data = NULL;
        tr_error err = {0};
        double w[OUTPUTS][INPUTS] = {{0}};
        float got[OUTPUTS * INPUTS];
        table_fill(&t);
        const tr_dataset_source source = source_of(&t);
        trial_ok(tr_dataset_create_callback(&source, &data, &err), &err);
        assert_int_equal(tr_dataset_tensors(data)->tensor[2].desc.dtype, TR_I32);
        open_cut(&run, data, micros[m], "");
        for (int s = 0; s < STEPS; s++) {
            tr_step_result result = TR_STEP_RESULT_INIT;
            double loss = 0;
            int64_t first = s % 3 * T;
            step_by_hand(&t, first, first + T > SAMPLES ? SAMPLES - first : T, w,
                         &loss);
            trial_steps(&run, 1, &result);
            assert_true(fabs(result.loss - loss) < 1e-5 * loss);
        }
        trial_ok(tr_engine_read(run.engine, "weight", "values", 0, OUTPUTS * INPUTS,
                                got, &err),
                 &err);
        for (int i = 0; i < OUTPUTS * INPUTS; i++) {
            assert_true(fabs(got[i] - w[i / INPUTS][i % INPUTS]) < 1e-5);
        }
        assert_true(t.reads_most <= 16);
        trial_close(&run);
        tr_dataset_destroy(data);
    }
}

// The check, too, knows what a number of a target is.
static void the_check_takes_them(void **state) {
    table t;
    tr_dataset *data = NULL;
    tr_check *check = NULL;
    tr_error err = {0};
    char text[TEXT_MAX];
    (void)state;
    table_fill(&t);
    const tr_dataset_source source = source_of(&t);
    trial_ok(tr_dataset_create_callback(&source, &data, &err), &err);
    snprintf(text, sizeof text,
             "{\"train_batch_size\": %d, \"steps\": 2, \"out\": \"unused\"}", T);
    run_options options = {
        .text = text, .own_model = &model, .own_train = data, .resume = "never"};
    trial_ok(trial_check(&options, 0, &check, &err), &err);
    assert_true(check->passed);
    tr_check_destroy(check);
    tr_dataset_destroy(data);
}

// ---- ids of 64 bits

static void values_that_do_not_fit_are_named(void **state) {
    static const struct {
        int64_t value;
        const char *words;
    } bad[] = {
        {INT64_C(1) << 31, "sample 7: gate: 2147483648 at element 0 does not fit"},
        {INT64_MIN, "sample 7: gate: -9223372036854775808 at element 0"},
        {(INT64_C(1) << 32) + 1, "sample 7: gate: 4294967297 at element 0"},
        {3, "sample 7: gate: 3 at element 0 is not in [0, 3)"},
        {-1, "sample 7: gate: -1 at element 0 is not in [0, 3)"}};
    float x[SAMPLES * INPUTS], y[SAMPLES * OUTPUTS];
    int32_t gate[SAMPLES];
    void *rows[] = {x, y, gate};
    int64_t index[SAMPLES];
    table t;
    tr_dataset *data = NULL;
    tr_error good = {0};
    (void)state;
    table_fill(&t);
    const tr_dataset_source source = source_of(&t);
    trial_ok(tr_dataset_create_callback(&source, &data, &good), &good);
    for (int i = 0; i < SAMPLES; i++) {
        index[i] = SAMPLES - 1 - i;
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tr_error err = {0};
        int64_t kept = t.gate[7];
        t.gate[7] = bad[i].value;
        assert_int_equal(tr_dataset_read(data, index, SAMPLES, rows, &err), TR_DATA);
        if (!strstr(err.message, bad[i].words)) {
            fail_msg("\"%s\" does not say \"%s\"", err.message, bad[i].words);
        }
        t.gate[7] = kept;
    }
    trial_ok(tr_dataset_read(data, index, SAMPLES, rows, &good), &good);
    for (int i = 0; i < SAMPLES; i++) {
        assert_int_equal(gate[i], t.gate[SAMPLES - 1 - i]);
    }
    tr_dataset_destroy(data);
}

// A source that does not know its bounds is held to the model's.
static void values_beyond_the_model_are_named(void **state) {
    table t;
    trial run;
    tr_dataset *data = NULL;
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    (void)state;
    table_fill(&t);
    tr_dataset_source source = source_of(&t);
    source.classes = 0;
    t.gate[1] = 3;
    trial_ok(tr_dataset_create_callback(&source, &data, &err), &err);
    open_cut(&run, data, 4, "");
    assert_int_equal(tr_engine_step(run.engine, &result, &err), TR_DATA);
    if (!strstr(err.message, "sample 1: gate: 3 at element 0 is not in [0, 3)")) {
        fail_msg("%s", err.message);
    }
    trial_close(&run);
    tr_dataset_destroy(data);
}

static void memory_that_fails_is_told(void **state) {
    tr_status status = TR_MEMORY;
    int nth = 1;
    (void)state;
    for (; status != TR_OK; nth++) {
        table t;
        tr_dataset *data = NULL;
        table_fill(&t);
        const tr_dataset_source source = source_of(&t);
        tr__memory_fail_at(nth);
        status = tr_dataset_create_callback(&source, &data, NULL);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || (status == TR_MEMORY && !data));
        tr_dataset_destroy(data);
    }
    assert_int_equal(nth, 6); // the table, what is widened, the dataset, its line
}

// ---- what is not there says so

static void an_evaluator_asks_for_one_target_of_classes(void **state) {
    const char *out = scratch_path(state, "out");
    char more[PATH_MAX + 64];
    table t;
    trial run;
    tr_dataset *data = NULL;
    tr_evaluator *evaluator = NULL;
    tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
    tr_error err = {0};
    table_fill(&t);
    const tr_dataset_source source = source_of(&t);
    trial_ok(tr_dataset_create_callback(&source, &data, &err), &err);
    open_cut(&run, data, T, "");
    snprintf(more, sizeof more, "%s/saved", out);
    tr_save_options save = TR_SAVE_OPTIONS_INIT;
    save.folder = more;
    trial_ok(tr_engine_save_as(run.engine, &save, &err), &err);
    options.path = more;
    options.own_model = &model;
    options.own_data = data;
    assert_int_equal(tr_evaluator_create(&options, &evaluator, &err), TR_USAGE);
    if (!strstr(err.message, "one target of classes")) {
        fail_msg("\"%s\"", err.message);
    }
    trial_close(&run);
    tr_dataset_destroy(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_by_hand),
        cmocka_unit_test(the_check_takes_them),
        cmocka_unit_test(values_that_do_not_fit_are_named),
        cmocka_unit_test(values_beyond_the_model_are_named),
        cmocka_unit_test(memory_that_fails_is_told),
        cmocka_unit_test_setup_teardown(an_evaluator_asks_for_one_target_of_classes,
                                        scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
