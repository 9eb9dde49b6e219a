#include "samples.h"

#include "trial.h"

#include <stdlib.h>
#include <string.h>

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
uint64_t test_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t test_between(uint64_t *state, int64_t low, int64_t high) {
    return low + (int64_t)(test_random(state) % (uint64_t)(high - low + 1));
}

static tr_status read_samples(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const samples *s = user;
    const void *from = s->features ? (const void *)s->features : s->tokens;
    size_t width = (size_t)s->width * 4, targets = (size_t)s->targets * 4;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        memcpy((char *)rows[0] + (size_t)i * width,
               (const char *)from + (size_t)index[i] * width, width);
        memcpy((char *)rows[1] + (size_t)i * targets,
               (const char *)s->target + (size_t)index[i] * targets, targets);
    }
    return TR_OK;
}

static tr_batch_tensors features_of(tr_shape shape) {
    return shape.rank == 3 ? tr_batch_images(shape.dim[0], shape.dim[1], shape.dim[2])
                           : tr_batch_features(shape.dim[0]);
}

static void finish(samples *s, tr_shape shape, int64_t classes) {
    tr_error err = {0};
    tr_dataset_source source = {
        .size = sizeof(tr_dataset_source),
        .samples = s->count,
        .tensors = s->tokens ? tr_batch_tokens(s->targets) : features_of(shape),
        .vocabulary = s->tokens ? classes : 0,
        .classes = classes,
        .hash = (uint64_t)s->count,
        .read = read_samples,
        .user = s,
    };
    trial_ok(tr_dataset_create_callback(&source, &s->dataset, &err), &err);
}

void samples_tokens(samples *s, int64_t count, int64_t length, int64_t vocabulary,
                    uint64_t seed) {
    *s = (samples){.count = count, .width = length, .targets = length};
    s->tokens = malloc((size_t)(count * length) * sizeof *s->tokens);
    s->target = malloc((size_t)(count * length) * sizeof *s->target);
    assert_true(s->tokens && s->target);
    for (int64_t i = 0; i < count; i++) {
        int64_t token = test_between(&seed, 0, vocabulary - 1);
        for (int64_t k = 0; k < length; k++) {
            s->tokens[i * length + k] = (int32_t)token;
            token = test_between(&seed, 0, 3) ? (3 * token + 1) % vocabulary
                                              : test_between(&seed, 0, vocabulary - 1);
            s->target[i * length + k] = (int32_t)token;
        }
    }
    finish(s, TR_SHAPE1(length), vocabulary);
}

void samples_masked(samples *s, int64_t count, int64_t length, int64_t vocabulary,
                    uint64_t seed) {
    const tr_batch_tensors tensors = tr_batch_masked(length);
    tr_error err = {0};
    samples_tokens(s, count, length, vocabulary, seed);
    s->types = malloc((size_t)(count * length) * sizeof *s->types);
    s->places = malloc((size_t)(count * length) * sizeof *s->places);
    assert_true(s->types && s->places);
    for (int64_t i = 0; i < count * length; i++) {
        bool asked = test_between(&seed, 0, 2) == 0;
        s->types[i] = i % length >= length / 2;
        s->places[i] = (int32_t)(i % length);
        s->target[i] = asked ? s->tokens[i] : TR_NO_TARGET;
        s->tokens[i] = asked ? 0 : s->tokens[i];
    }
    tr_dataset_destroy(s->dataset);
    const void *arrays[] = {s->tokens, s->types, s->places, s->target};
    trial_ok(tr_dataset_create_arrays(&tensors, count, arrays, &s->dataset, &err),
             &err);
}

static void make_features(samples *s, int64_t count, int64_t features, int64_t classes,
                          uint64_t seed) {
    *s = (samples){.count = count, .width = features, .targets = 1};
    s->features = malloc((size_t)(count * features) * sizeof *s->features);
    s->target = malloc((size_t)count * sizeof *s->target);
    assert_true(s->features && s->target);
    for (int64_t i = 0; i < count; i++) {
        s->target[i] = (int32_t)test_between(&seed, 0, classes - 1);
        for (int64_t f = 0; f < features; f++) {
            s->features[i * features + f] =
                (float)test_between(&seed, -1000, 1000) / 1000 +
                (f % classes == s->target[i] ? 1.0f : 0.0f);
        }
    }
}

void samples_features(samples *s, int64_t count, int64_t features, int64_t classes,
                      uint64_t seed) {
    make_features(s, count, features, classes, seed);
    finish(s, TR_SHAPE1(features), classes);
}

void samples_images(samples *s, int64_t count, int64_t side, int64_t channels,
                    int64_t classes, uint64_t seed) {
    make_features(s, count, side * side * channels, classes, seed);
    finish(s, TR_SHAPE3(side, side, channels), classes);
}

void samples_mask(samples *s, int64_t begin, int64_t end) {
    for (int64_t i = begin * s->targets; i < end * s->targets; i++) {
        s->target[i] = TR_NO_TARGET;
    }
}

void samples_mask_some(samples *s, int64_t one_in, uint64_t seed) {
    for (int64_t i = 0; i < s->count * s->targets; i++) {
        if (test_between(&seed, 1, one_in) == 1) {
            s->target[i] = TR_NO_TARGET;
        }
    }
}

void samples_free(samples *s) {
    tr_dataset_destroy(s->dataset);
    free(s->features);
    free(s->tokens);
    free(s->target);
    free(s->types);
    free(s->places);
    *s = (samples){0};
}
