// Labels: guard
// Steps in parts: a model whose loss the caller computes trains as the same model with
// its loss inside; calls out of turn are errors that change nothing.
#include "base/half.h"
#include "outside.h"
#include "plan/models.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 3, TEXT_MAX = 1024 };

typedef struct setting {
    int64_t g, m;
    const char *more; // keys of the run file, each with a comma behind it
    double tolerance; // 0: that of f32
} setting;

static outside_data data;

static void text_of(const setting *s, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"steps\": 9, \"train_micro_batch_size_per_gpu\": %d, "
             "\"gradient_accumulation_steps\": %d, %s \"gradient_clipping\": 1.0, "
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.01, "
             "\"eps\": 1e-6}}, \"out\": \"unused\"}",
             (int)s->m, (int)s->g, s->more ? s->more : "");
}

static void open_inside(trial *t, own_model *own, tr_dataset **samples,
                        const setting *s) {
    char text[TEXT_MAX];
    static const char *const set[] = {"data.order=sequential"};
    text_of(s, text);
    own_model_make(own, false, 0);
    *samples = outside_dataset(&data);
    run_options options = {.text = text,
                           .own_model = &own->model,
                           .own_train = *samples,
                           .set = set,
                           .set_count = 1,
                           .resume = "never"};
    trial_open(t, &options);
}

static void open_outside(trial *t, own_model *own, const setting *s) {
    char text[TEXT_MAX];
    text_of(s, text);
    run_options options = {.text = text, .own_model = &own->model, .resume = "never"};
    trial_open(t, &options);
}

static void step_outside(trial *t, const setting *s, int step, tr_step_result *result) {
    tr_error err = {0};
    trial_ok(
        outside_step(t->engine, &data, step * s->g * s->m, s->g, s->m, result, &err),
        &err);
}

static void compare(const setting *s, const char *what) {
    own_model inside, outside;
    tr_dataset *samples = NULL;
    trial a, b;
    snapshot start, uncut, cut;
    open_inside(&a, &inside, &samples, s);
    own_model_make_open(&outside, 0);
    open_outside(&b, &outside, s);
    snapshot_take(&start, &a);
    for (int i = 0; i < STEPS; i++) {
        tr_step_result first = TR_STEP_RESULT_INIT, second = TR_STEP_RESULT_INIT;
        double bound = s->tolerance > 0 ? s->tolerance : 1e-5;
        trial_steps(&a, 1, &first);
        step_outside(&b, s, i, &second);
        assert_false(second.skipped);
        assert_true(fabs(first.loss - second.loss) <= bound * first.loss);
        assert_true(fabs(first.grad_norm - second.grad_norm) <=
                    bound * first.grad_norm);
        assert_int_equal(second.targets, s->g);
        assert_int_equal(second.step, i + 1);
        assert_int_equal(second.update, first.update);
    }
    snapshot_take(&uncut, &a);
    snapshot_take(&cut, &b);
    snapshot_assert_close(&start, &uncut, &cut, s->tolerance > 0 ? s->tolerance : 1e-4,
                          what);
    snapshot_free(&start);
    snapshot_free(&uncut);
    snapshot_free(&cut);
    trial_close(&a);
    trial_close(&b);
    tr_dataset_destroy(samples);
}

static void any_number_of_micro_batches_trains_as_with_the_loss_inside(void **state) {
    (void)state;
    for (int64_t g = 1; g <= 4; g++) {
        compare(&(setting){.g = g, .m = 8}, "micro-batches");
    }
}

static void placements_and_precisions_train_as_with_the_loss_inside(void **state) {
    static const char bf16[] = "\"bf16\": {\"enabled\": true},";
    static const char fp16[] = "\"fp16\": {\"enabled\": true, "
                               "\"initial_scale_power\": 8},";
    static const char host[] = "\"zero_optimization\": {\"stage\": 0, "
                               "\"offload_optimizer\": {\"device\": \"cpu\"}},";
    static const char both[] = "\"zero_optimization\": {\"stage\": 3, "
                               "\"offload_optimizer\": {\"device\": \"cpu\"}, "
                               "\"offload_param\": {\"device\": \"cpu\"}},";
    static const char recompute[] = "\"execution\": {\"recompute\": \"unit\"},";
    const setting settings[] = {
        {3, 8, host, 0},      {1, 8, host, 0},   {3, 8, both, 0},
        {3, 8, recompute, 0}, {3, 8, bf16, 0.1}, {3, 8, fp16, 0.05},
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        compare(&settings[i], settings[i].more);
    }
}

static void an_optimizer_on_nvme_trains_as_with_the_loss_inside(void **state) {
    char more[TEXT_MAX];
    snprintf(more, sizeof more,
             "\"zero_optimization\": {\"stage\": 0, \"offload_optimizer\": "
             "{\"device\": \"nvme\", \"nvme_path\": \"%s\"}},",
             scratch_path(state, ""));
    compare(&(setting){3, 8, more, 0}, "NVMe");
}

// ---- several outputs

// The loss of the model with three outputs: a sum of some of them, weighed. Returns the
// sum over the rows.
static double weighed_sum(const tr_outputs *o) {
    double sum = 0;
    for (int i = 1; i < o->count; i++) {
        const float *out = o->output[i].data;
        for (int64_t k = 0; k < tr_shape_count(o->output[i].desc.shape); k++) {
            sum += (double)out[k] * (double)(i + k % 3);
        }
    }
    return sum;
}

static double sum_at(trial *t, const char *name, float value) {
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_error err = {0};
    const void *inputs[] = {data.x[0]};
    options.inputs = inputs;
    options.rows = 5;
    options.evaluate = true;
    trial_ok(tr_engine_write(t->engine, name, "values", 3, 1, &value, &err), &err);
    trial_ok(tr_engine_forward(t->engine, &options, &outputs, &err), &err);
    return weighed_sum(&outputs);
}

static void hand_back(trial *t, tr_dtype type) {
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_backward_options back = TR_BACKWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_error err = {0};
    const void *inputs[] = {data.x[0]};
    float weight[3][8 * 7];
    uint16_t half[3][8 * 7];
    const void *const wide[] = {NULL, weight[1], weight[2]};
    const void *const narrow[] = {NULL, half[1], half[2]};
    back.gradients = type == TR_F32 ? wide : narrow;
    back.dtype = type;
    options.inputs = inputs;
    options.rows = 5;
    trial_ok(tr_engine_forward(t->engine, &options, &outputs, &err), &err);
    assert_int_equal(outputs.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(outputs.output[i].trained == (i > 0));
        for (int k = 0; k < 8 * 7; k++) {
            float value = weight[i][k] = (float)(i + k % 3);
            half[i][k] =
                type == TR_F16 ? tr__f16_of_f32(value) : tr__bf16_of_f32(value);
        }
    }
    trial_ok(tr_engine_backward_with(t->engine, &back, &err), &err);
    trial_ok(tr_engine_update(t->engine, &result, &err), &err);
    assert_false(result.skipped);
}

static void gradients_of_several_outputs_are_those_of_their_sum(void **state) {
    static const char *const names[] = {"first.a", "last.b", "last.c"};
    const tr_model *models[] = {&test_model_open, &test_model_open_cut};
    const setting s = {1, 8, NULL, 0};
    char text[TEXT_MAX];
    (void)state;
    text_of(&s, text);
    for (int m = 0; m < 2; m++) {
        run_options options = {.text = text, .own_model = models[m], .resume = "never"};
        trial t;
        tr_error err = {0};
        trial_open(&t, &options);
        hand_back(&t, TR_F32);
        float gradient[3];
        for (int i = 0; i < 3; i++) {
            trial_ok(tr_engine_read(t.engine, names[i], "gradient", 3, 1, &gradient[i],
                                    &err),
                     &err);
        }
        trial_close(&t);
        trial_open(&t, &options);
        for (int i = 0; i < 3; i++) {
            const float step = 1e-2f;
            float at;
            trial_ok(tr_engine_read(t.engine, names[i], "values", 3, 1, &at, &err),
                     &err);
            double above = sum_at(&t, names[i], at + step);
            double below = sum_at(&t, names[i], at - step);
            double slope = (above - below) / (2 * (double)step);
            if (fabs(slope - (double)gradient[i]) > 1e-2 * fmax(1, fabs(slope))) {
                fail_msg("%s: %g, and not %g", names[i], (double)gradient[i], slope);
            }
            trial_ok(tr_engine_write(t.engine, names[i], "values", 3, 1, &at, &err),
                     &err);
        }
        trial_close(&t);
    }
}

// Of numbers that all types hold, they are those of f32.
static void gradients_of_16_bits_are_taken(void **state) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16};
    const setting s = {1, 8, NULL, 0};
    char text[TEXT_MAX];
    float found[3];
    (void)state;
    text_of(&s, text);
    for (int i = 0; i < 3; i++) {
        run_options options = {
            .text = text, .own_model = &test_model_open, .resume = "never"};
        trial t;
        tr_error err = {0};
        trial_open(&t, &options);
        hand_back(&t, types[i]);
        trial_ok(tr_engine_read(t.engine, "first.a", "gradient", 3, 1, &found[i], &err),
                 &err);
        assert_true(found[i] != 0 && found[i] == found[0]);
        trial_close(&t);
    }
}

// ---- the run's own data

static tr_status read_features(void *user, const int64_t *index, int64_t count,
                               void *const *rows, tr_error *err) {
    (void)user, (void)err;
    for (int64_t i = 0; i < count; i++) {
        memcpy((float *)rows[0] + i * OWN_FEATURES, data.x[index[i]], sizeof data.x[0]);
    }
    return TR_OK;
}

static void data_of_the_run_come_by_themselves(void **state) {
    enum { SAMPLES = 20 };
    const setting s = {2, 8, NULL, 0};
    char text[TEXT_MAX];
    own_model own;
    trial t;
    tr_dataset *features = NULL;
    tr_dataset_source source = TR_DATASET_SOURCE_INIT;
    tr_error err = {0};
    const int64_t rows[] = {8, 8, 4, 0, 8, 8}; // epochs end with a short batch
    (void)state;
    text_of(&s, text);
    own_model_make_open(&own, 0);
    source.samples = SAMPLES;
    source.tensors = own.model.batch;
    source.read = read_features;
    trial_ok(tr_dataset_create_callback(&source, &features, &err), &err);
    run_options options = {.text = text,
                           .own_model = &own.model,
                           .own_train = features,
                           .resume = "never"};
    trial_open(&t, &options);
    for (int i = 0; i < 6; i++) {
        tr_outputs outputs = TR_OUTPUTS_INIT;
        tr_step_result result = TR_STEP_RESULT_INIT;
        float gradient[OUTSIDE_ROWS * OWN_CLASSES];
        const float *const gradients[] = {gradient};
        trial_ok(tr_engine_forward(t.engine, NULL, &outputs, &err), &err);
        assert_int_equal(outputs.rows, rows[i]);
        outside_loss(&outputs.output[0], data.label, gradient);
        trial_ok(tr_engine_backward(t.engine, gradients, 1, &err), &err);
        if (i % 2 == 1) {
            trial_ok(tr_engine_update(t.engine, &result, &err), &err);
            assert_int_equal(result.targets, i == 3 ? 1 : 2);
            assert_true(result.loss == 1);
            assert_int_equal(result.samples, i == 1 ? 16 : i == 3 ? 20 : 36);
        }
    }
    trial_close(&t);
    tr_dataset_destroy(features);
}

// ---- short micro-batches

// Each micro-batch counts once, however many rows it has: as a mean over means.
static void a_short_micro_batch_counts_as_a_whole_one(void **state) {
    const setting s = {2, 8, "\"zero_optimization\": {\"stage\": 0},", 0};
    own_model own;
    trial t;
    float gradient[2][OWN_CLASSES], both[OWN_CLASSES];
    tr_error err = {0};
    (void)state;
    own_model_make_open(&own, 0);
    for (int k = 0; k < 3; k++) { // the first, the second, both
        tr_step_result result = TR_STEP_RESULT_INIT;
        double loss[2] = {0};
        const int64_t first[] = {0, 8}, rows[] = {8, 3};
        open_outside(&t, &own, &s);
        for (int j = 0; j < 2; j++) {
            int which = k < 2 ? k : j; // a single one stands twice
            trial_ok(outside_micro(t.engine, &data, first[which], rows[which], &loss[j],
                                   &err),
                     &err);
        }
        trial_ok(tr_engine_update(t.engine, &result, &err), &err);
        assert_true(fabs(result.loss - (loss[0] + loss[1]) / 2) < 1e-12);
        trial_ok(tr_engine_read(t.engine, "head.bias", "gradient", 0, OWN_CLASSES,
                                k < 2 ? gradient[k] : both, &err),
                 &err);
        trial_close(&t);
    }
    for (int c = 0; c < OWN_CLASSES; c++) {
        float mean = (gradient[0][c] + gradient[1][c]) / 2;
        assert_true(fabsf(both[c] - mean) < 1e-6f);
        assert_true(fabsf(gradient[0][c] - gradient[1][c]) > 1e-4f);
    }
}

// The gradient of a step of which the second micro-batch is the first again (0), has no
// rows (1), or has none and counts (2).
static void early_gradient(int how, float *gradient) {
    const setting s = {2, 8, "\"zero_optimization\": {\"stage\": 0},", 0};
    const void *inputs[] = {data.x[0]};
    const float *const no_gradient[] = {NULL};
    double loss = 0;
    own_model own;
    trial t;
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    own_model_make_open(&own, 0);
    open_outside(&t, &own, &s);
    trial_ok(outside_micro(t.engine, &data, 8, 8, &loss, &err), &err);
    if (how == 0) {
        trial_ok(outside_micro(t.engine, &data, 8, 8, NULL, &err), &err);
    } else {
        options.inputs = inputs;
        options.counts = how == 2;
        trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
        assert_int_equal(outputs.rows, 0);
        trial_ok(tr_engine_backward(t.engine, no_gradient, 0, &err), &err);
    }
    trial_ok(tr_engine_update(t.engine, &result, &err), &err);
    assert_int_equal(result.targets, how == 1 ? 1 : 2);
    assert_true(fabs(result.loss - (how == 2 ? loss / 2 : loss)) < 1e-12);
    trial_ok(tr_engine_read(t.engine, "head.bias", "gradient", 0, OWN_CLASSES, gradient,
                            &err),
             &err);
    trial_close(&t);
}

// A step that ends early: as one of the micro-batches that it had.
static void a_micro_batch_without_rows_counts_where_it_is_asked_to(void **state) {
    float gradient[3][OWN_CLASSES];
    (void)state;
    for (int how = 0; how < 3; how++) {
        early_gradient(how, gradient[how]);
    }
    for (int c = 0; c < OWN_CLASSES; c++) {
        assert_true(fabsf(gradient[0][c] - gradient[1][c]) < 1e-6f);
        assert_true(fabsf(gradient[1][c] - 2 * gradient[2][c]) < 1e-6f);
        assert_true(fabsf(gradient[1][c]) > 1e-4f);
    }
}

// ---- evaluation

static void outputs_of_an_evaluation_need_no_backward(void **state) {
    const setting s = {2, 8, NULL, 0};
    own_model own;
    trial t;
    tr_error err = {0};
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    float trained[5 * OWN_CLASSES];
    const void *inputs[] = {data.x[20]};
    (void)state;
    own_model_make_open(&own, 0.5f); // dropout, of which an evaluation has none
    open_outside(&t, &own, &s);
    options.inputs = inputs;
    options.rows = 5;
    for (int i = 0; i < 2; i++) {
        options.evaluate = true;
        trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
        assert_int_equal(outputs.rows, 5);
        assert_int_equal(outputs.count, 1);
        assert_int_equal(outputs.output[0].desc.dtype, TR_F32);
        assert_int_equal(outputs.output[0].desc.shape.rank, 2);
        assert_int_equal(outputs.output[0].desc.shape.dim[0], 5);
        assert_int_equal(outputs.output[0].desc.shape.dim[1], OWN_CLASSES);
        if (i > 0) {
            assert_memory_equal(trained, outputs.output[0].data, sizeof trained);
        }
        memcpy(trained, outputs.output[0].data, sizeof trained);
    }
    options.evaluate = false;
    trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
    assert_true(outputs.output[0].trained);
    assert_int_equal(outputs.micro_batch, 0);
    assert_int_equal(outputs.micro_batches, 2);
    assert_memory_not_equal(trained, outputs.output[0].data, sizeof trained);
    trial_close(&t); // in the middle of a step
}

// ---- calls out of turn

static void refuse(tr_status status, tr_status expected, tr_error *err,
                   const char *words) {
    if (status != expected || !strstr(err->message, words)) {
        fail_msg("%s instead of %s: %s", tr_status_words(status), words, err->message);
    }
    *err = (tr_error){0};
}

static float zeros[OUTSIDE_ROWS * OWN_CLASSES];
static const float *const no_gradients[] = {zeros};

// Where no step is at work.
static void refuse_before(tr_engine *e) {
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    const void *inputs[] = {data.x[0]}, *const nothing[] = {NULL};
    refuse(tr_engine_step(e, &result, &err), TR_USAGE, &err, "tr_engine_forward");
    refuse(tr_engine_evaluate(e, 0, &evaluation, &err), TR_USAGE, &err, "and no loss");
    refuse(tr_engine_train(e, NULL, &err), TR_USAGE, &err, "and no loss");
    refuse(tr_engine_update(e, &result, &err), TR_USAGE, &err, "no step is at work");
    refuse(tr_engine_backward(e, no_gradients, 0, &err), TR_USAGE, &err,
           "no step is at work");
    refuse(tr_engine_forward(e, NULL, &outputs, &err), TR_USAGE, &err, "give inputs");
    options.inputs = inputs;
    options.rows = 9;
    refuse(tr_engine_forward(e, &options, &outputs, &err), TR_USAGE, &err, "0 to 8");
    options.rows = 0;
    options.evaluate = true;
    refuse(tr_engine_forward(e, &options, &outputs, &err), TR_USAGE, &err, "1 to 8");
    options.evaluate = false;
    options.rows = 8;
    options.inputs = nothing;
    refuse(tr_engine_forward(e, &options, &outputs, &err), TR_USAGE, &err,
           "\"features\", is NULL");
}

// Where a forward waits for its backward. Drops the step.
static void refuse_forwarded(tr_engine *e, tr_forward_options options) {
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    float value;
    trial_ok(tr_engine_forward(e, &options, &outputs, &err), &err);
    refuse(tr_engine_forward(e, &options, &outputs, &err), TR_USAGE, &err,
           "wait for their gradients");
    refuse(tr_engine_update(e, &result, &err), TR_USAGE, &err,
           "wait for their gradients");
    refuse(tr_engine_save(e, &err), TR_USAGE, &err, "a step is at work");
    refuse(tr_engine_step(e, &result, &err), TR_USAGE, &err, "a step is at work");
    refuse(tr_engine_refresh(e, &err), TR_USAGE, &err, "a step is at work");
    refuse(tr_engine_read(e, "head.bias", "values", 0, 1, &value, &err), TR_USAGE, &err,
           "a step is at work");
    options.evaluate = true;
    refuse(tr_engine_forward(e, &options, &outputs, &err), TR_USAGE, &err,
           "wait for their gradients");
    trial_ok(tr_engine_set_rate(e, 0, NAN, &err), &err);
    trial_ok(tr_engine_drop(e, &err), &err); // before the backward
    trial_ok(tr_engine_drop(e, &err), &err); // nothing to drop
}

// A whole step, and what is refused in the middle of it.
static tr_step_result refuse_between(tr_engine *e, const tr_forward_options *options) {
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    trial_ok(outside_micro(e, &data, 0, 8, NULL, &err), &err);
    refuse(tr_engine_backward(e, no_gradients, 0, &err), TR_USAGE, &err,
           "1 of its 2 micro-batches");
    refuse(tr_engine_update(e, &result, &err), TR_USAGE, &err,
           "1 of its 2 micro-batches");
    trial_ok(outside_micro(e, &data, 8, 8, NULL, &err), &err);
    refuse(tr_engine_forward(e, options, &outputs, &err), TR_USAGE, &err,
           "tr_engine_update");
    trial_ok(tr_engine_update(e, &result, &err), &err);
    return result;
}

static void calls_out_of_turn_change_nothing(void **state) {
    const setting s = {2, 8, NULL, 0};
    own_model own, same;
    trial t, good;
    snapshot a, b;
    tr_step_result expected = TR_STEP_RESULT_INIT;
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    const void *inputs[] = {data.x[0]};
    (void)state;
    own_model_make_open(&own, 0);
    own_model_make_open(&same, 0);
    open_outside(&t, &own, &s);
    open_outside(&good, &same, &s);
    options.inputs = inputs;
    options.rows = 8;
    refuse_before(t.engine);
    refuse_forwarded(t.engine, options);
    tr_step_result result = refuse_between(t.engine, &options);
    step_outside(&good, &s, 0, &expected);
    assert_true(result.loss == expected.loss && result.grad_norm == expected.grad_norm);
    snapshot_take(&a, &t);
    snapshot_take(&b, &good);
    snapshot_assert_same(&a, &b);
    snapshot_free(&a);
    snapshot_free(&b);
    trial_close(&t);
    trial_close(&good);
}

static void gradients_of_other_types_are_refused(void **state) {
    const setting s = {1, 8, NULL, 0};
    own_model own;
    trial t;
    tr_error err = {0};
    tr_backward_options back = TR_BACKWARD_OPTIONS_INIT;
    const void *const gradients[] = {NULL};
    (void)state;
    own_model_make_open(&own, 0);
    open_outside(&t, &own, &s);
    back.gradients = gradients;
    back.dtype = TR_I64;
    refuse(tr_engine_backward_with(t.engine, &back, &err), TR_USAGE, &err,
           "f32, bf16 or f16");
    back.dtype = TR_F32;
    refuse(tr_engine_backward_with(t.engine, &back, &err), TR_USAGE, &err,
           "tr_engine_forward first");
    back.gradients = NULL;
    refuse(tr_engine_backward_with(t.engine, &back, &err), TR_USAGE, &err, "gradients");
    back.size -= 8;
    refuse(tr_engine_backward_with(t.engine, &back, &err), TR_USAGE, &err,
           "TR_BACKWARD_OPTIONS_INIT");
    trial_close(&t);
}

static void structs_of_other_sizes_are_refused(void **state) {
    const setting s = {1, 8, NULL, 0};
    own_model own;
    trial t;
    tr_error err = {0};
    const void *inputs[] = {data.x[0]};
    (void)state;
    own_model_make_open(&own, 0);
    open_outside(&t, &own, &s);
    for (int more = -8; more <= 8; more += 16) {
        tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
        tr_outputs outputs = TR_OUTPUTS_INIT;
        tr_step_result result = TR_STEP_RESULT_INIT;
        options.inputs = inputs;
        options.rows = 8;
        options.size += (size_t)(more < 0 ? 2 * more : more); // it has grown once
        refuse(tr_engine_forward(t.engine, &options, &outputs, &err), TR_USAGE, &err,
               "TR_FORWARD_OPTIONS_INIT");
        options.size = sizeof options;
        outputs.size += (size_t)(more < 0 ? 2 * more : more); // so has this
        refuse(tr_engine_forward(t.engine, &options, &outputs, &err), TR_USAGE, &err,
               "TR_OUTPUTS_INIT");
        result.size += (size_t)more;
        refuse(tr_engine_update(t.engine, &result, &err), TR_USAGE, &err,
               "TR_STEP_RESULT_INIT");
    }
    refuse(tr_engine_forward(t.engine, NULL, NULL, &err), TR_USAGE, &err, "outputs");
    refuse(tr_engine_backward(t.engine, NULL, 0, &err), TR_USAGE, &err, "gradients");
    refuse(tr_engine_update(t.engine, NULL, &err), TR_USAGE, &err, "tr_step_result");
    refuse(tr_engine_drop(NULL, &err), TR_USAGE, &err, "is NULL");
    trial_close(&t);
}

static bool now(void *user) {
    (void)user;
    return true;
}

static void a_step_that_is_given_up_is_made_anew(void **state) {
    const setting s = {3, 8, NULL, 0};
    own_model own, same;
    trial t, good;
    snapshot a, b;
    tr_error err = {0};
    (void)state;
    own_model_make_open(&own, 0.3f); // dropout: the step draws the same again
    own_model_make_open(&same, 0.3f);
    open_outside(&t, &own, &s);
    open_outside(&good, &same, &s);
    for (int micros = 0; micros < 4; micros++) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        for (int j = 0; j < micros; j++) {
            trial_ok(outside_micro(t.engine, &data, 8 * j, 8, NULL, &err), &err);
        }
        if (micros < 3) {
            trial_ok(tr_engine_stop_when(t.engine, now, NULL, &err), &err);
            refuse(outside_micro(t.engine, &data, 0, 8, NULL, &err), TR_INTERRUPTED,
                   &err, "interrupted");
            trial_ok(tr_engine_stop_when(t.engine, NULL, NULL, &err), &err);
        } else {
            trial_ok(tr_engine_drop(t.engine, &err), &err);
        }
        step_outside(&t, &s, micros, &result);
        step_outside(&good, &s, micros, &result);
    }
    assert_int_equal(tr_engine_steps_done(t.engine), 4);
    snapshot_take(&a, &t);
    snapshot_take(&b, &good);
    snapshot_assert_same(&a, &b);
    snapshot_free(&a);
    snapshot_free(&b);
    trial_close(&t);
    trial_close(&good);
}

static void what_is_not_finite_skips_the_update(void **state) {
    const setting s = {1, 8, "\"fp16\": {\"enabled\": true},", 0};
    own_model own;
    trial t;
    snapshot a, b;
    tr_error err = {0};
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_step_result result = TR_STEP_RESULT_INIT;
    const void *inputs[] = {data.x[0]};
    float huge[OUTSIDE_ROWS * OWN_CLASSES];
    const float *const gradients[] = {huge};
    (void)state;
    own_model_make_open(&own, 0);
    open_outside(&t, &own, &s);
    snapshot_take(&a, &t);
    for (int i = 0; i < OUTSIDE_ROWS * OWN_CLASSES; i++) {
        huge[i] = 1e4f; // not in fp16 with the scale that the run begins with
    }
    options.inputs = inputs;
    options.rows = 8;
    trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
    trial_ok(tr_engine_backward(t.engine, gradients, 1, &err), &err);
    trial_ok(tr_engine_update(t.engine, &result, &err), &err);
    assert_true(result.skipped);
    trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
    trial_ok(
        tr_engine_backward(t.engine, (const float *const[]){NULL}, (double)NAN, &err),
        &err);
    trial_ok(tr_engine_update(t.engine, &result, &err), &err);
    assert_true(result.skipped);
    snapshot_take(&b, &t);
    snapshot_assert_same(&a, &b);
    snapshot_free(&a);
    snapshot_free(&b);
    trial_close(&t);
}

// ---- ids

enum { WORDS = 11, WORDS_WIDE = 4, WORDS_ROW = 3 };

static void build_words(tr_graph *g, const void *config) {
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    tr_value in[] = {tr_graph_data(g, "input_ids"),
                     tr_graph_param(g, "table", TR_SHAPE2(WORDS, WORDS_WIDE), draw)};
    (void)config;
    tr_graph_output(g, tr_graph_call(g, "embedding", NULL, in, 2, NULL, 0));
}

// Kernels index the table with them.
static void ids_without_a_row_are_refused(void **state) {
    static const tr_model_unit unit = {"words", "words", "words.", build_words, NULL};
    const setting s = {1, 2, NULL, 0};
    const tr_model model = {
        .size = sizeof(tr_model),
        .type = "words",
        .unit_count = 1,
        .units = &unit,
        .batch = {1,
                  {{"input_ids", TR_ROLE_INPUT, {TR_I32, TR_SHAPE1_INIT(WORDS_ROW)}}}},
        .classes = WORDS};
    char text[TEXT_MAX];
    int32_t ids[2][WORDS_ROW] = {{0, 1, WORDS - 1}, {4, WORDS, 5}};
    const void *inputs[] = {ids};
    trial t;
    tr_error err = {0};
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    (void)state;
    text_of(&s, text);
    run_options run = {.text = text, .own_model = &model, .resume = "never"};
    trial_open(&t, &run);
    options.inputs = inputs;
    options.rows = 2;
    refuse(tr_engine_forward(t.engine, &options, &outputs, &err), TR_DATA, &err,
           "row 1: input_ids: 11 at element 1 is not in [0, 11)");
    ids[1][1] = WORDS - 1;
    trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
    assert_int_equal(outputs.output[0].desc.shape.dim[2], WORDS_WIDE);
    trial_close(&t);
}

// ---- what cannot be

static void refuse_run(const char *more, const char *words) {
    const setting s = {2, 8, more, 0};
    char text[TEXT_MAX];
    own_model own;
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    text_of(&s, text);
    own_model_make_open(&own, 0);
    run_options options = {.text = text, .own_model = &own.model, .resume = "never"};
    tr_status status = run_open(&options, &run, &err);
    status = status == TR_OK ? tr_run_make_plan(run, &plan, &err) : status;
    refuse(status, TR_USAGE, &err, words);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
}

static void runs_that_cannot_be_in_parts_are_refused(void **state) {
    (void)state;
    refuse_run("\"execution\": {\"wave\": 2},", "set it to 1");
    refuse_run("\"execution\": {\"reproducible\": true},", "reproducible");
    refuse_run("\"scheduler\": {\"type\": \"WarmupLR\", \"unit\": \"tokens\"},",
               "takes none");
    refuse_run("\"zero_optimization\": {\"offload_optimizer\": {\"device\": "
               "\"nvme\", \"nvme_path\": \"/tmp\"}}, \"memory\": {\"nvme\": "
               "{\"gradients\": true}},",
               "keep gradients on the host");
}

static void a_model_with_a_loss_has_no_parts(void **state) {
    const setting s = {2, 8, NULL, 0};
    own_model own;
    tr_dataset *samples = NULL;
    trial t;
    tr_error err = {0};
    tr_outputs outputs = TR_OUTPUTS_INIT;
    (void)state;
    open_inside(&t, &own, &samples, &s);
    refuse(tr_engine_forward(t.engine, NULL, &outputs, &err), TR_USAGE, &err,
           "tr_engine_step");
    trial_ok(tr_engine_drop(t.engine, &err), &err);
    trial_close(&t);
    tr_dataset_destroy(samples);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_micro_batches_trains_as_with_the_loss_inside),
        cmocka_unit_test(placements_and_precisions_train_as_with_the_loss_inside),
        cmocka_unit_test_setup_teardown(
            an_optimizer_on_nvme_trains_as_with_the_loss_inside, scratch_make,
            scratch_remove),
        cmocka_unit_test(gradients_of_several_outputs_are_those_of_their_sum),
        cmocka_unit_test(gradients_of_16_bits_are_taken),
        cmocka_unit_test(gradients_of_other_types_are_refused),
        cmocka_unit_test(data_of_the_run_come_by_themselves),
        cmocka_unit_test(a_short_micro_batch_counts_as_a_whole_one),
        cmocka_unit_test(a_micro_batch_without_rows_counts_where_it_is_asked_to),
        cmocka_unit_test(outputs_of_an_evaluation_need_no_backward),
        cmocka_unit_test(calls_out_of_turn_change_nothing),
        cmocka_unit_test(structs_of_other_sizes_are_refused),
        cmocka_unit_test(a_step_that_is_given_up_is_made_anew),
        cmocka_unit_test(what_is_not_finite_skips_the_update),
        cmocka_unit_test(ids_without_a_row_are_refused),
        cmocka_unit_test(runs_that_cannot_be_in_parts_are_refused),
        cmocka_unit_test(a_model_with_a_loss_has_no_parts),
    };
    outside_fill(&data);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
