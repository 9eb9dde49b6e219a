// The gradients of language models against transformers' in float64
// (tools/goldens/make.py), tensor by tensor. The first moment of SGD, without decay and
// clipping, is the gradient of the mean loss as an update sees it.
// Labels: check
#include "files/safetensors/tensor_set.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of a tensor's norm; where that is small (some gradients are zero but for rounding),
// of this share of the norm of all.
static const double tolerance = 1e-4, floor_share = 1e-3;

enum { CUT = 3, SETTINGS = CUT + 3 };

static const char *const cuts[][CUT] = {
    {"train_micro_batch_size_per_gpu=2", "execution.wave=1",
     "execution.recompute=none"},
    {"train_micro_batch_size_per_gpu=1", "execution.wave=6",
     "execution.recompute=unit"},
    {"train_micro_batch_size_per_gpu=4", "execution.wave=1",
     "execution.vocabulary_slices=3"},
};

// Square roots of sums of squares.
static double norm(const float *values, const float *less, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = (double)values[i] - (less ? (double)less[i] : 0);
        sum += value * value;
    }
    return sqrt(sum);
}

static float *read_gradient(const tr_tensor_set *set, const snapshot_tensor *as) {
    tr_error err = {0};
    const tr_stored_tensor *from = tr__tensor_set_find(set, as->name);
    if (!from || from->count != as->count) {
        fail_msg("no gradient of %s", as->name);
    }
    float *values = malloc((size_t)as->count * sizeof *values);
    assert_non_null(values);
    trial_ok(tr__tensor_read_f32(set, from, 0, as->count, values, &err), &err);
    return values;
}

static void check_all(const char *golden, const snapshot *got,
                      const tr_tensor_set *set) {
    double all = 0;
    float **wanted = calloc(got->count, sizeof *wanted);
    assert_non_null(wanted);
    for (size_t i = 0; i < got->count; i++) {
        wanted[i] = read_gradient(set, &got->tensors[i]);
        all = hypot(all, norm(wanted[i], NULL, got->tensors[i].count));
    }
    assert_true(all > 0.1);
    for (size_t i = 0; i < got->count; i++) {
        const snapshot_tensor *t = &got->tensors[i];
        double far = norm(t->part[1], wanted[i], t->count);
        double size = norm(wanted[i], NULL, t->count);
        if (!(far <= tolerance * fmax(size, floor_share * all))) {
            fail_msg("%s: %s: %.2e away; its norm is %.2e, that of all %.2e", golden,
                     t->name, far, size, all);
        }
        free(wanted[i]);
    }
    free(wanted);
}

static void check_cut(const char *golden, const char *const *cut,
                      const tr_tensor_set *set) {
    const char *settings[SETTINGS] = {
        cut[0],
        cut[1],
        cut[2],
        "optimizer={\"type\": \"SGD\", \"params\": {\"lr\": 0, \"momentum\": 0.9}}",
        "gradient_clipping=0",
        "scheduler=null"};
    run_options options = {
        .file = "run.json", .set = settings, .set_count = SETTINGS, .resume = "never"};
    tr_step_result result;
    snapshot got;
    trial t;
    trial_open(&t, &options);
    trial_steps(&t, 1, &result);
    snapshot_take(&got, &t);
    trial_close(&t);
    check_all(golden, &got, set);
    snapshot_free(&got);
}

static void gradients(void **state) {
    const char *golden = *state;
    char path[1024];
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    snprintf(path, sizeof path, "%s/goldens/%s", TR_TEST_DATA, golden);
    assert_int_equal(chdir(path), 0);
    trial_ok(tr__tensor_set_open("gradients.safetensors", &set, &err), &err);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        check_cut(golden, cuts[i], set);
    }
    tr__tensor_set_close(set);
}

#define GRADIENTS(folder)                                                              \
    { folder, gradients, NULL, NULL, folder }

int main(void) {
    const struct CMUnitTest tests[] = {
        GRADIENTS("gpt2"),        GRADIENTS("gpt2-odd"),
        GRADIENTS("llama"),       GRADIENTS("llama-grouped"),
        GRADIENTS("llama3"),      GRADIENTS("llama-linear"),
        GRADIENTS("llama-yarn"),  GRADIENTS("mistral"),
        GRADIENTS("qwen2"),       GRADIENTS("qwen3"),
        GRADIENTS("gpt2-packed"), GRADIENTS("mistral-packed"),
    };
    void *cache = NULL;
    if (scratch_cache(&cache) != 0) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return scratch_remove(&cache) == 0 ? failed : 1;
}
