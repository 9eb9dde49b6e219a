// Small data sets in memory, with targets that may be masked.
#ifndef TESTS_TRAIN_SAMPLES_H
#define TESTS_TRAIN_SAMPLES_H

#include <tranche/data.h>

#include <stdint.h>

typedef struct samples {
    int64_t count, width, targets; // per sample: input elements, targets
    float *features;               // [count, width], NULL: tokens
    int32_t *tokens;               // [count, width], NULL: features
    int32_t *target;               // [count, targets]
    int32_t *types, *places;       // [count, width], of texts for encoders; else NULL
    tr_dataset *dataset;
} samples;

// A generator for tests: the same on every machine. *state: any value.
uint64_t test_random(uint64_t *state);
// In [low, high].
int64_t test_between(uint64_t *state, int64_t low, int64_t high);

// Sequences in which the next token mostly follows from the one before.
void samples_tokens(samples *s, int64_t count, int64_t length, int64_t vocabulary,
                    uint64_t seed);
// The same sequences as texts for encoders, some of whose tokens are to be found again.
void samples_masked(samples *s, int64_t count, int64_t length, int64_t vocabulary,
                    uint64_t seed);
// Points around one centre for each class.
void samples_features(samples *s, int64_t count, int64_t features, int64_t classes,
                      uint64_t seed);
// The same as images [side, side, channels].
void samples_images(samples *s, int64_t count, int64_t side, int64_t channels,
                    int64_t classes, uint64_t seed);
// The samples [begin, end) have no target.
void samples_mask(samples *s, int64_t begin, int64_t end);
// Every target is none with the chance 1 / `one_in`.
void samples_mask_some(samples *s, int64_t one_in, uint64_t seed);
void samples_free(samples *s);

#endif
