// bench/sharpness on a linear classifier, whose Hessian is known: with p the
// probabilities of a sample and x its features and a 1, the mean of
// (diag(p) - p p') (x) x x'. And what it is made of: weights set, gradients got.
#include "command.h"
#include "train/opening.h"

#include <tranche/engine.h>
#include <tranche/extend/planner.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 20, FEATURES = 3, CLASSES = 3, INPUTS = FEATURES + 1 };
enum { WEIGHTS = CLASSES * INPUTS, TEXT_MAX = 1024 };

static const char tool[] = TR_BENCH "/sharpness";

typedef struct problem {
    double x[SAMPLES][INPUTS]; // the last one is 1
    int label[SAMPLES];
    double w[CLASSES][INPUTS]; // the last one is the bias
    double p[SAMPLES][CLASSES];
    double loss, gradient[CLASSES][INPUTS];
} problem;

static void make_samples(void *const *state, problem *q) {
    char text[TEXT_MAX] = "a,b,c,label\n";
    uint32_t random = 7;
    for (int n = 0; n < SAMPLES; n++) {
        for (int i = 0; i < FEATURES; i++) {
            random = random * 1664525u + 1013904223u; // Numerical Recipes' generator
            q->x[n][i] = (double)(random >> 24) / 64 - 2;
        }
        q->x[n][FEATURES] = 1;
        q->label[n] = n % CLASSES;
        size_t length = strlen(text);
        snprintf(text + length, TEXT_MAX - length, "%.6f,%.6f,%.6f,%d\n", q->x[n][0],
                 q->x[n][1], q->x[n][2], q->label[n]);
    }
    file_text(state, "data.csv", text);
}

static void print_run(void *const *state, char *text) {
    snprintf(text, TEXT_MAX,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [%d, %d]}, "
             "\"data\": {\"format\": \"csv\", \"train\": [\"%s\"], "
             "\"label_column\": \"label\"}, \"steps\": 1, \"seed\": 3, "
             "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 7, "
             "\"gradient_clipping\": 0, \"optimizer\": {\"type\": \"SGD\", "
             "\"params\": {\"lr\": 0}}, \"out\": \"out\"}",
             FEATURES, CLASSES, file_path(state, "data.csv"), SAMPLES);
    file_text(state, "run.json", text);
}

// ---- by hand

static void solve(problem *q) {
    q->loss = 0;
    memset(q->gradient, 0, sizeof q->gradient);
    for (int n = 0; n < SAMPLES; n++) {
        double logit[CLASSES] = {0}, sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            for (int i = 0; i < INPUTS; i++) {
                logit[c] += q->w[c][i] * q->x[n][i];
            }
            sum += exp(logit[c]);
        }
        q->loss += (log(sum) - logit[q->label[n]]) / SAMPLES;
        for (int c = 0; c < CLASSES; c++) {
            q->p[n][c] = exp(logit[c]) / sum;
            double wrong = q->p[n][c] - (c == q->label[n]);
            for (int i = 0; i < INPUTS; i++) {
                q->gradient[c][i] += wrong * q->x[n][i] / SAMPLES;
            }
        }
    }
}

static double hessian(const problem *q, int a, int b) {
    int c = a / INPUTS, d = b / INPUTS;
    double sum = 0;
    for (int n = 0; n < SAMPLES; n++) {
        double curvature = q->p[n][c] * ((c == d) - q->p[n][d]);
        sum += curvature * q->x[n][a % INPUTS] * q->x[n][b % INPUTS];
    }
    return sum / SAMPLES;
}

static double largest_eigenvalue(const problem *q) {
    double v[WEIGHTS], value = 0;
    for (int a = 0; a < WEIGHTS; a++) {
        v[a] = 1 + a % 5;
    }
    for (int k = 0; k < 500; k++) {
        double next[WEIGHTS] = {0}, squares = 0;
        for (int a = 0; a < WEIGHTS; a++) {
            for (int b = 0; b < WEIGHTS; b++) {
                next[a] += hessian(q, a, b) * v[b];
            }
            squares += next[a] * next[a];
        }
        value = sqrt(squares);
        for (int a = 0; a < WEIGHTS; a++) {
            v[a] = next[a] / value;
        }
    }
    return value;
}

// ---- by the library

static void ok(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fail_msg("%s", err->message);
    }
}

typedef struct session {
    tr_run *run;
    tr_plan *plan;
    tr_engine *engine;
} session;

static void session_open(session *s, const char *text) {
    tr_error err = {0};
    run_options options = {.text = text, .resume = "never"};
    ok(run_open(&options, &s->run, &err), &err);
    ok(tr_plan_make(tr_run_plan_request(s->run), &s->plan, &err), &err);
    ok(tr_engine_create(s->run, s->plan, &s->engine, &err), &err);
}

static void session_close(session *s) {
    tr_engine_destroy(s->engine);
    tr_plan_destroy(s->plan);
    tr_run_destroy(s->run);
}

static tr_tensor_info tensor_at(const session *s, size_t i) {
    tr_tensor_info info = TR_TENSOR_INFO_INIT;
    tr_error err = {0};
    ok(tr_engine_tensor(s->engine, i, &info, &err), &err);
    return info;
}

// The tensors are the weights [CLASSES, FEATURES] and the biases.
static void check_names(const session *s) {
    assert_int_equal(tr_engine_tensors(s->engine), 2);
    assert_true(tr_shape_equal(tensor_at(s, 0).shape, TR_SHAPE2(CLASSES, FEATURES)));
    assert_true(tr_shape_equal(tensor_at(s, 1).shape, TR_SHAPE1(CLASSES)));
}

// Returns how many elements a row of tensor `t` has.
static int get_part(const session *s, int t, const char *part,
                    float values[CLASSES * FEATURES]) {
    tr_error err = {0};
    int width = t == 0 ? FEATURES : 1;
    ok(tr_engine_read(s->engine, tensor_at(s, (size_t)t).name, part, 0, CLASSES * width,
                      values, &err),
       &err);
    return width;
}

static void get_weights(const session *s, problem *q) {
    for (int t = 0; t < 2; t++) {
        float values[CLASSES * FEATURES];
        int width = get_part(s, t, "values", values);
        for (int k = 0; k < CLASSES * width; k++) {
            q->w[k / width][t == 0 ? k % width : FEATURES] = values[k];
        }
    }
}

static void check_gradient(const session *s, const problem *q) {
    for (int t = 0; t < 2; t++) {
        float values[CLASSES * FEATURES];
        int width = get_part(s, t, "gradient", values);
        for (int k = 0; k < CLASSES * width; k++) {
            int at = t == 0 ? k % width : FEATURES;
            assert_float_equal(values[k], q->gradient[k / width][at], 1e-6);
        }
    }
}

static void weights_and_gradients(void **state) {
    static const float moved[CLASSES] = {0.5f, -1, 2};
    char text[TEXT_MAX];
    problem q;
    session s;
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    make_samples(state, &q);
    print_run(state, text);
    session_open(&s, text);
    check_names(&s);
    for (int again = 0; again < 2; again++) {
        get_weights(&s, &q);
        solve(&q);
        ok(tr_engine_step(s.engine, &result, &err), &err);
        assert_float_equal(result.loss, q.loss, 1e-6);
        check_gradient(&s, &q);
        ok(tr_engine_write(s.engine, tensor_at(&s, 1).name, "values", 0, CLASSES, moved,
                           &err),
           &err);
    }
    assert_true(q.w[2][FEATURES] == 2);
    session_close(&s);
}

static void curvature_of_a_linear_classifier(void **state) {
    static const setting program = {.program = tool};
    char text[TEXT_MAX];
    problem q;
    session s;
    make_samples(state, &q);
    print_run(state, text);
    session_open(&s, text);
    get_weights(&s, &q);
    session_close(&s);
    solve(&q);
    outcome o = run_with(state, &program, LIST("run.json", "--samples", "20"));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    json_t *found = json_loads(o.out, 0, NULL);
    double curvature = json_number_value(json_object_get(found, "curvature"));
    double loss = json_number_value(json_object_get(found, "loss"));
    double want = largest_eigenvalue(&q);
    if (!(fabs(curvature - want) <= 0.01 * want) || !(fabs(loss - q.loss) <= 1e-5)) {
        fail_msg("curvature %g for %g, loss %g for %g", curvature, want, loss, q.loss);
    }
    json_decref(found);
    outcome_free(&o);
    o = run_with(state, &program, LIST("run.json", "--samples", "19"));
    assert_int_equal(o.status, 4);
    assert_says(o.err, "--samples 19 is not how many");
    outcome_free(&o);
    outcome none = run_with(state, &program, LIST("run.json"));
    assert_int_equal(none.status, 2);
    assert_says(none.err, "usage: sharpness");
    outcome_free(&none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(weights_and_gradients),
        TEST(curvature_of_a_linear_classifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
