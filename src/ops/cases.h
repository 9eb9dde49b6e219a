// What the conformance runner (tests/ops) tries an op on. Each op folder has a cases.c
// with `const tr_case_list tr__cases_<op>`, which the build lists for tests/ops.
//
// For each case the runner: fills the inputs (counter-based, the same everywhere); runs
// the forward by the reference; compares the backward that the op's rules give, run by
// reference kernels, with central finite differences of a random projection of the
// outputs; then runs forward, recompute rule and backward rules by each instruction
// set's kernel, both fresh and accumulating, on memory with guard zones, and compares
// with the reference. The reference for 16-bit formats is that for f32 on the same
// numbers, its results rounded once (tr__widened). On the small cases it also puts NaN
// and infinities into each operand (tests/ops/carried.h).
#ifndef TR_OPS_CASES_H
#define TR_OPS_CASES_H

#include <tranche/extend/rewrite.h>

typedef enum tr_case_fill {
    TR_FILL_NORMAL,   // f32, normal times `scale` (0: 1)
    TR_FILL_POSITIVE, // f32, uniform in [1/2, 3/2] times `scale` (0: 1)
    TR_FILL_INDEX,    // i32, uniform in [0, bound)
    TR_FILL_TARGET,   // i32, as INDEX, every fifth -100
    TR_FILL_PLACES,   // i32 [B, S], places in documents (ops/nn/positions.h) of drawn
                      // lengths, up to `bound`
} tr_case_fill;

typedef struct tr_case_input {
    tr_tensor_desc desc; // concrete; dtype TR_NONE: left out
    tr_case_fill fill;
    int64_t bound;
    float scale;
} tr_case_input;

typedef struct tr_case {
    const char *name;
    const tr_op *op;
    const tr_rewrite *rewrites; // of the op, beside the library's; NULL: none
    _Alignas(8) unsigned char attr[TR_OP_ATTR_BYTES];
    int in_count;
    tr_case_input in[TR_OP_IN_MAX];
    // Largest |fast - reference| over the largest |reference| of the tensor.
    double tolerance;
    // The same of a device whose tensor cores sum less exactly; 0: it is the same.
    double device_tolerance;
    // The same for reference gradients against finite differences; 0: not tried.
    double gradient_tolerance;
    // The case is also tried with its f32 inputs, but those whose bit is in
    // `always_f32`, in each 16-bit format; this is then the tolerance, in distances
    // between numbers of the format near the largest element. 0: not tried.
    double half_tolerance;
    uint32_t always_f32;
    // Bit i: output i holds something before the forward, which adds to it.
    uint32_t added;
} tr_case;

// A case of an op of one input that moves elements as they are, or adds them.
static inline tr_case tr__case_of_moves(const char *name, const tr_op *op,
                                        tr_shape shape) {
    return (tr_case){
        .name = name,
        .op = op,
        .in_count = 1,
        .in = {{.desc = {TR_F32, shape}}},
        .tolerance = 0,
        .half_tolerance = 1,
        .gradient_tolerance = 1e-3,
    };
}

typedef struct tr_case_list {
    const char *op_name;
    // Writes case `index` and returns true; false after the last.
    bool (*get)(int index, tr_case *out);
} tr_case_list;

#endif
