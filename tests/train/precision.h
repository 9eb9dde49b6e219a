// Runs of a small GPT-2 in a precision of the test's own, cut and placed as it says.
#ifndef TESTS_TRAIN_PRECISION_H
#define TESTS_TRAIN_PRECISION_H

#include "samples.h"
#include "snapshot.h"

enum {
    PRECISION_TEXT = 2048,
    PRECISION_BLOCKS = 2,  // of the model
    PRECISION_LENGTH = 16, // tokens of a sample
    PRECISION_TOKENS = 61, // vocabulary
    PRECISION_BATCH = 12,
    PRECISION_REFERENCE = -1, // as an instruction set's limit: reference kernels
};

typedef struct precision_setting {
    const char *precision; // "\"bf16\": {...}"
    int64_t micro, wave, recomputed;
    bool reproducible;
    const char *homes; // of zero_optimization
    int steps;
    const char *out;
} precision_setting;

// What a run begins and ends with.
typedef struct precision_outcome {
    snapshot start, end;
    tr_step_result last;
} precision_outcome;

// Some batches, and a part of one.
void precision_samples(samples *data);
void precision_text(const precision_setting *s, char text[PRECISION_TEXT]);
// isa_limit: tr_plan_request.level_limit, or PRECISION_REFERENCE
void precision_open(const precision_setting *s, samples *data, const char *resume,
                    int isa_limit, trial *t);
// All its steps, from the start.
void precision_run(const precision_setting *s, samples *data, int isa_limit,
                   precision_outcome *o);
void precision_outcome_free(precision_outcome *o);
// The runs of all settings end with the same bits.
void precision_assert_same(const precision_setting *settings, int count);

#endif
