// The small classifier (100-500-10, ReLU, cross-entropy, Adam) on the library: the run
// of classifier.json, a step at a time, on samples of the program's own.
#include <tranche/data.h>
#include <tranche/engine.h>

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1000, FEATURES = 100, CLASSES = 10 };

static const char run_text[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [100, 500, 10]},"
    " \"epochs\": 5, \"seed\": 1, \"train_batch_size\": 64, \"gradient_clipping\": 0,"
    " \"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 1e-3}},"
    " \"out\": \"out/classifier-c\"}";

typedef struct samples {
    float features[SAMPLES][FEATURES];
    int32_t labels[SAMPLES];
} samples;

// Random features in [-1, 1); the label is the largest of the first ten: learnable.
static void make_samples(samples *s) {
    uint32_t state = 1;
    for (int i = 0; i < SAMPLES; i++) {
        for (int f = 0; f < FEATURES; f++) {
            state = state * 1664525u + 1013904223u; // Numerical Recipes' generator
            s->features[i][f] = (float)(int32_t)state / 2147483648.0f;
        }
        s->labels[i] = 0;
        for (int c = 1; c < CLASSES; c++) {
            if (s->features[i][c] > s->features[i][s->labels[i]]) {
                s->labels[i] = c;
            }
        }
    }
}

// Called from the reading thread with the numbers of the samples that are wanted.
static tr_status read_samples(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const samples *s = user;
    float(*features)[FEATURES] = rows[0]; // [count, FEATURES]
    int32_t *labels = rows[1];            // [count]
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        for (int f = 0; f < FEATURES; f++) {
            features[i][f] = s->features[index[i]][f];
        }
        labels[i] = s->labels[index[i]];
    }
    return TR_OK;
}

// The run of the text above, on data of its own.
static tr_status make_run(tr_dataset *data, tr_run **run, tr_error *err) {
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    parts.train = data;
    tr_status status = tr_run_create(run, err);
    if (status == TR_OK) {
        status = tr_run_load_text(*run, run_text, err);
    }
    if (status == TR_OK) {
        status = tr_run_set(*run, "resume", "never", err);
    }
    if (status == TR_OK) {
        status = tr_run_give(*run, &parts, err);
    }
    return status == TR_OK ? tr_run_resolve(*run, err) : status;
}

static tr_status train(samples *s, tr_error *err) {
    tr_dataset_source source = {
        .about = "samples made in memory",
        .samples = SAMPLES,
        .tensors = tr_batch_features(FEATURES),
        .classes = CLASSES,
        .hash = 1,
        .read = read_samples,
        .user = s,
    };
    tr_dataset *data = NULL;
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_step_result result = {0};
    tr_status status = tr_dataset_create_callback(&source, &data, err);
    if (status == TR_OK) {
        status = make_run(data, &run, err);
    }
    if (status == TR_OK) {
        status = tr_run_make_plan(run, &plan, err);
    }
    if (status == TR_OK) {
        status = tr_engine_create(run, plan, &engine, err);
    }
    while (status == TR_OK && result.step < tr_run_steps(run)) {
        status = tr_engine_step(engine, &result, err);
        if (status == TR_OK && result.step % 16 == 0) {
            printf("step %2d  loss %.4f  accuracy %.0f%%\n", (int)result.step,
                   result.loss, 100 * result.accuracy);
        }
    }
    if (status == TR_OK) {
        status = tr_engine_save(engine, err);
    }
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    tr_dataset_destroy(data);
    return status;
}

int main(void) {
    tr_error err = {0};
    samples *s = calloc(1, sizeof *s);
    if (!s) {
        return tr_status_exit(TR_MEMORY);
    }
    make_samples(s);
    tr_status status = train(s, &err);
    if (status != TR_OK) {
        fprintf(stderr, "classifier: %s\n", err.message);
    }
    free(s);
    return tr_status_exit(status);
}
