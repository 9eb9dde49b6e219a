// Four updates of GPT-2, Qwen3, a classifier and a residual network in bf16 and in
// fp16, against PyTorch's pure and autocast runs (tools/goldens/halves.py). All have
// float32 weights and sums; what is rounded to 16 bits, and so the yardstick, is in
// tests/data/halves/README.md.
#include "backend/cpu/isa.h"
#include "files/safetensors/tensor_set.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETTINGS = 5, ALL_KERNELS = 0 };

typedef struct format {
    const char *name, *enabled;
} format;

static const format formats[] = {{"bf16", "bf16.enabled=true"},
                                 {"fp16", "fp16.enabled=true"}};

typedef struct model {
    char *name;
    // How far a run may be from PyTorch's pure one, by share of how far that one is
    // from float64: 0.37 and 0.42 were measured for GPT-2, 0.10 and 0.03 for the
    // classifier, whose own distance is mostly that of ReLUs that flip, the same ones
    // in both. The residual network's is 0.83 to 1.00: ReLUs flip there, too, and which
    // ones depends on the last roundings of each normalization. Qwen3's is 0.85 in
    // bf16: PyTorch also rounds the cosines and sines that turn its heads.
    double from_pure;
} model;

static model models[] = {{"gpt2", 0.5}, {"qwen3", 1}, {"mlp", 0.2}, {"resnet", 1.1}};

// All weights, one tensor after the other.
typedef struct weights {
    double *value;
    int64_t count;
} weights;

static weights weights_make(const snapshot *like) {
    weights w = {NULL, 0};
    for (size_t i = 0; i < like->count; i++) {
        w.count += like->tensors[i].count;
    }
    w.value = calloc((size_t)w.count, sizeof *w.value);
    assert_non_null(w.value);
    return w;
}

static weights of_snapshot(const snapshot *s) {
    weights w = weights_make(s);
    double *to = w.value;
    for (size_t i = 0; i < s->count; i++) {
        for (int64_t k = 0; k < s->tensors[i].count; k++) {
            *to++ = s->tensors[i].part[0][k];
        }
    }
    return w;
}

// What a run of PyTorch's ended with; tensors in the order of `like`.
static weights of_pytorch(const snapshot *like, const char *run) {
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    weights w = weights_make(like);
    double *to = w.value;
    trial_ok(tr__tensor_set_open("ends.safetensors", &set, &err), &err);
    for (size_t i = 0; i < like->count; i++) {
        char name[256];
        int64_t count = like->tensors[i].count;
        snprintf(name, sizeof name, "%s/%s", run, like->tensors[i].name);
        const tr_stored_tensor *tensor = tr__tensor_set_find(set, name);
        float *raw = malloc((size_t)count * sizeof *raw);
        assert_true(raw && tensor && tensor->count == count);
        trial_ok(tr__tensor_read_f32(set, tensor, 0, count, raw, &err), &err);
        for (int64_t k = 0; k < count; k++) {
            *to++ = raw[k];
        }
        free(raw);
    }
    tr__tensor_set_close(set);
    return w;
}

static double distance(weights a, weights b) {
    double sum = 0;
    assert_int_equal(a.count, b.count);
    for (int64_t i = 0; i < a.count; i++) {
        sum += pow(a.value[i] - b.value[i], 2);
    }
    return sqrt(sum);
}

// How far a run is from each of PyTorch's, and those of the format from float64's.
typedef struct distances {
    double wide, pure, autocast;
    double pure_wide, autocast_wide;
} distances;

static distances measure(const snapshot *end, const char *format_name) {
    char pure_name[32], autocast_name[32];
    snprintf(pure_name, sizeof pure_name, "%s.pure", format_name);
    snprintf(autocast_name, sizeof autocast_name, "%s.autocast", format_name);
    weights own = of_snapshot(end), wide = of_pytorch(end, "f64");
    weights pure = of_pytorch(end, pure_name);
    weights autocast = of_pytorch(end, autocast_name);
    distances d = {
        .wide = distance(own, wide),
        .pure = distance(own, pure),
        .autocast = distance(own, autocast),
        .pure_wide = distance(pure, wide),
        .autocast_wide = distance(autocast, wide),
    };
    free(own.value);
    free(wide.value);
    free(pure.value);
    free(autocast.value);
    return d;
}

static distances run(const format *f, const char *sums, const char *micro,
                     int isa_limit, bool reference) {
    char accumulated[64], size[64];
    snprintf(accumulated, sizeof accumulated, "data_types.grad_accum_dtype=%s", sums);
    snprintf(size, sizeof size, "train_micro_batch_size_per_gpu=%s", micro);
    const char *settings[SETTINGS] = {f->enabled, "fp16.loss_scale=1024", accumulated,
                                      size, "execution.threads=1"};
    run_options options = {
        .file = "run.json", .set = settings, .set_count = SETTINGS, .resume = "never"};
    snapshot end;
    trial t;
    trial_open_kernels(&t, &options, isa_limit, reference);
    trial_steps(&t, tr_run_steps(t.run), NULL);
    snapshot_take(&end, &t);
    trial_close(&t);
    distances d = measure(&end, f->name);
    snapshot_free(&end);
    return d;
}

static void check(const model *m, const format *f, const char *micro, int isa_limit,
                  bool reference) {
    distances d = run(f, "fp32", micro, isa_limit, reference);
    // No further from float64 than PyTorch; from PyTorch's pure run, by the model's
    // share of that; from its autocast run no further than independent roundings are.
    if (!(d.wide <= 1.1 * d.pure_wide && d.pure <= m->from_pure * d.pure_wide &&
          d.autocast <= hypot(d.pure_wide, d.autocast_wide))) {
        fail_msg("%s in %s, micro-batch %s, kernels %d%s: %.3g from float64, %.3g from "
                 "PyTorch's pure run, %.3g from its autocast; these are %.3g and %.3g "
                 "from float64",
                 m->name, f->name, micro, isa_limit, reference ? ", references" : "",
                 d.wide, d.pure, d.autocast, d.pure_wide, d.autocast_wide);
    }
}

// Every kind of kernels, and cuts into 256, 8 and 1 micro-batches.
static void as_pytorch(void **state) {
    const model *m = *state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        check(m, &formats[f], "1", ALL_KERNELS, false);
        check(m, &formats[f], "256", ALL_KERNELS, false);
        check(m, &formats[f], "32", ALL_KERNELS, true);
        for (int limit = 1; limit <= TR_ISA_COUNT; limit++) {
            check(m, &formats[f], "32", limit, false);
        }
    }
}

// These distances tell float32 sums of 256 micro-batches from sums in 16 bits.
static void sums_in_16_bits_are_further(void **state) {
    const model *m = *state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        distances d = run(&formats[f], formats[f].name, "1", ALL_KERNELS, false);
        assert_true(d.pure > 1.2 * m->from_pure * d.pure_wide);
    }
}

static int go_to(void **state) {
    const model *m = *state;
    char path[1024];
    snprintf(path, sizeof path, "%s/halves/%s", TR_TEST_DATA, m->name);
    return chdir(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        {"gpt2 as PyTorch", as_pytorch, go_to, NULL, &models[0]},
        {"mlp as PyTorch", as_pytorch, go_to, NULL, &models[1]},
        {"resnet as PyTorch", as_pytorch, go_to, NULL, &models[2]},
        {"gpt2: sums", sums_in_16_bits_are_further, go_to, NULL, &models[0]},
        {"mlp: sums", sums_in_16_bits_are_further, go_to, NULL, &models[1]},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
