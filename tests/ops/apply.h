// One launch of one op on guarded tensors.
#ifndef TESTS_OPS_APPLY_H
#define TESTS_OPS_APPLY_H

#include "ops/tensor.h"

#include <tranche/extend/op.h>

// How kernels are chosen and launched.
typedef struct test_way {
    // Whose kernels run, at the level `isa`; where it has none for a description, the
    // reference does.
    tr_backend_id backend;
    int isa;     // -1: the reference; else the best kernel up to this instruction set
    int threads; // 0: 1
    bool both;   // prepared for fresh and for accumulating launches alike, and to keep
                 // what it packs
    bool accumulate;       // gradients of inputs start from a random base, not from
                           // nothing
    bool given;            // gradients of outputs that a rule adds to have a value too
    bool in_place;         // output 0 on top of the input that the op says
    uint32_t unwanted_in;  // bit i: the gradient of input i is left out
    uint32_t unwanted_out; // bit i: output i is left out
} test_way;

typedef struct test_operands {
    const tr_op *op;
    const void *attr; // [op->attr_bytes]
    int in_count, out_count;
    test_tensor *in[TR_OP_IN_MAX], *out[TR_OP_OUT_MAX]; // NULL: absent, not wanted
} test_operands;

// Prepares, launches and releases. A result that is `there` is added to, any other is
// written fresh. Returns NULL, or what the launch did that it must not ("wrote outside
// of its operands"). Fails the test when no kernel supports it.
const char *test_apply(const test_operands *operands, const test_way *way);

// The same for every launch of the conformance tests.
extern const tr_run_context test_context;

// The version of the library that attention is taken from where it can be, as at first
// 0: from none (tr_target.attention).
extern int test_apply_attention;

// How many kernels of each backend have been launched so far.
extern int64_t test_apply_launches[TR_BACKEND_COUNT];

#endif
