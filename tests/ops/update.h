// What the tests of optimizers share: buffers to update, goldens, and what must hold
// for every optimizer.
#ifndef TESTS_OPS_UPDATE_H
#define TESTS_OPS_UPDATE_H

#include "ops/guarded.h"
#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/optimizer_settings.h"

enum { TEST_BUFFERS = 2 + TR_OPTIMIZER_STATES }; // parameters, gradients, states

typedef struct test_update {
    int64_t count;
    test_memory buffer[TEST_BUFFERS]; // [count] f32 each
} test_update;

// The hyper-parameters that all optimizers have, with those of one: own: [bytes].
tr_hyper test_hyper(tr_hyper shared, const void *own, size_t bytes);
// Those that a run file says: `params` is what stands in optimizer.params.
tr_hyper test_hyper_read(const tr_optimizer_settings *of, const char *params);

// Random parameters and gradients; states as random non-negative numbers.
void test_update_open(test_update *update, int64_t count);
void test_update_close(test_update *update);
// The range [first, first + count) as update `number`, the powers of the betas to fit.
tr_update test_update_range(const test_update *update, const tr_hyper *hyper,
                            int number, int64_t first, int64_t count);

// Implementation `which` of an optimizer that this processor can run: 0 the reference,
// then the instruction sets'. NULL after the last.
tr_update_kernel *test_update_function(const tr_optimizer *optimizer, int which);

// The instruction set of implementation `which`; -1: the reference.
int test_update_isa(const tr_optimizer *optimizer, int which);
// The first phase that goes with implementation `which`; NULL: there is none.
tr_direct_kernel *test_update_direct(const tr_optimizer *optimizer, int which);
// One update of a range that is a whole tensor: both phases, where there are two.
void test_update_tensor(const tr_optimizer *optimizer, int which, const tr_hyper *hyper,
                        const tr_update *range);

// One of an optimizer's own hyper-parameters by its name in the files.
typedef struct test_field {
    const char *name;
    size_t offset; // in the optimizer's struct
    bool is_bool;  // else a double
} test_field;

typedef struct test_golden {
    const tr_optimizer_settings *of;
    const test_field *fields; // NULL after the last; NULL: the optimizer has none
    tr_hyper hyper;           // what the files do not say
    bool starts_itself;       // its states may hold anything before the first update
} test_golden;

// Follows tests/data/optimizers/<name>.txt with every implementation, with the
// gradients multiplied by 1 / grad_scale (a power of two) beforehand.
void test_update_golden(const test_golden *golden, const char *name, double grad_scale);
// The same bits however a range is cut, by however many threads, and nothing outside of
// it is touched.
void test_update_cuts(const tr_optimizer *optimizer, const tr_hyper *hyper, int number);
// Every instruction set against the reference, at odd sizes: parameters and states
// within `tolerance` of the largest of each.
void test_update_agrees(const tr_optimizer *optimizer, const tr_hyper *hyper,
                        int number, double tolerance);

#endif
