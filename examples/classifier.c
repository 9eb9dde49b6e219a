// The small classifier (100-500-10, ReLU, cross-entropy, Adam) on the library: the run
// of classifier.json, a step at a time, on arrays of the program's own.
#include "ok.h"

enum { SAMPLES = 1000, FEATURES = 100, CLASSES = 10 };

static const char run_text[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [100, 500, 10]},"
    " \"epochs\": 5, \"seed\": 1, \"train_batch_size\": 64, \"gradient_clipping\": 0,"
    " \"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 1e-3}},"
    " \"out\": \"out/classifier-c\"}";

static float features[SAMPLES][FEATURES];
static int32_t labels[SAMPLES];

// Random features in [-1, 1); the label is the largest of the first ten: learnable.
static void make_samples(void) {
    uint32_t state = 1;
    for (int i = 0; i < SAMPLES; i++) {
        for (int f = 0; f < FEATURES; f++) {
            state = state * 1664525u + 1013904223u; // Numerical Recipes' generator
            features[i][f] = (float)(int32_t)state / 2147483648.0f;
            if (f < CLASSES && features[i][f] > features[i][labels[i]]) {
                labels[i] = f;
            }
        }
    }
}

int main(void) {
    static const char *const settings[] = {"resume=never", NULL};
    const tr_batch_tensors tensors = tr_batch_features(FEATURES);
    const void *const arrays[] = {features, labels};
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_run *run = NULL;
    tr_engine *engine = NULL;
    tr_error err = {0};
    make_samples();
    ok(tr_dataset_create_arrays(&tensors, SAMPLES, arrays, &parts.train, &err), &err);
    ok(tr_run_open(run_text, settings, &parts, &run, &err), &err);
    ok(tr_engine_create(run, NULL, &engine, &err), &err);
    while (result.step < tr_run_steps(run)) {
        ok(tr_engine_step(engine, &result, &err), &err);
        if (result.step % 16 == 0) {
            printf("step %2d  loss %.4f  accuracy %.0f%%\n", (int)result.step,
                   result.loss, 100 * result.accuracy);
        }
    }
    ok(tr_engine_save(engine, &err), &err);
    tr_engine_destroy(engine);
    tr_run_destroy(run);
    tr_dataset_destroy(parts.train);
    return 0;
}
