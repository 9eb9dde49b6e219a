// Attention of some size, forward and backward, by any kernel.
#ifndef TESTS_OPS_ATTENTION_RUN_H
#define TESTS_OPS_ATTENTION_RUN_H

#include "ops/tensor.h"

typedef struct test_attention {
    int64_t batch, context, heads, depth;
    float dropout;
    int threads;
    tr_dtype type;            // of the real tensors; TR_NONE: f32
    const int32_t *positions; // [batch, context] in documents; NULL: each is one
} test_attention;

enum { TEST_ATTENTION_DRAW = 5 }; // its draw_id

extern const tr_run_context test_attention_context;

tr_op_desc test_attention_describe(const test_attention *s, bool backward);

// Filled as test_tensor_fill does.
typedef struct test_attention_inputs {
    test_tensor qkv, dy;
} test_attention_inputs;

test_attention_inputs test_attention_inputs_take(const test_attention *s);
void test_attention_inputs_give(test_attention_inputs *inputs);

typedef struct test_attention_results {
    test_tensor y, lse, dqkv;
} test_attention_results;

// Is there a kernel `which` for tensors of this type? 0 is the reference.
bool test_attention_has(const test_attention *s, int which);

// The forward, then the backward from the forward's own results, by kernel `which`.
// add: dqkv is added to what is there.
test_attention_results test_attention_run(const test_attention *s, int which,
                                          const test_attention_inputs *inputs,
                                          bool add);
// Fails the test where a kernel wrote outside of its results.
void test_attention_results_give(test_attention_results *results);

#endif
