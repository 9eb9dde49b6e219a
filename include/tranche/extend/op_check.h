// Tests an op of the program's own: compares what its reference computes with what the
// op says of itself.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_OP_CHECK_H
#define TRANCHE_EXTEND_OP_CHECK_H

#include <tranche/extend/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_op_check_input {
    tr_tensor_desc desc; // of a concrete shape; dtype TR_NONE: left out
    const void *values;  // of the whole tensor; NULL: drawn from [-3/2, 3/2], for real
                         // numbers in f32 and f64 alone
} tr_op_check_input;

// What tr_op_check calls.
TR_API tr_status tr_op_check_built(const tr_built_op *built, const void *attr,
                                   const tr_op_check_input *in, int in_count,
                                   double tolerance, tr_error *err);

// Runs the op and the ops of its backward on these inputs, each operand with guard
// zones around it. `tolerance`: how far a gradient may be off, as a part of its largest
// element; 0: 1e-2. The inputs must have no kink nearby. TR_DIFFERENT, with a message
// that names the op and the operand:
// - A gradient is not what finite differences of the forward give, or has no rule.
// - A backward that is asked to add overwrites (tr_launch.accumulate), or the reverse.
// - A kernel writes outside of its results, or to an input.
// - A result depends on what lies outside of the operands, or is not written whole.
// - `infer` takes an input that is smaller by one in a dimension, and a kernel then
// does
//   one of these. (This is not tried with integers among the inputs.)
// TR_USAGE: the op refuses the inputs, or was compiled with headers of another version.
// TR_NUMBERS: an output is not finite on them, so that nothing can be compared.
// TR_MEMORY.
static inline tr_status tr_op_check(const tr_op *op, const void *attr,
                                    const tr_op_check_input *in, int in_count,
                                    double tolerance, tr_error *err) {
    const tr_built_op built = {op, TRANCHE_EXTEND_VERSION};
    return tr_op_check_built(&built, attr, in, in_count, tolerance, err);
}

#ifdef __cplusplus
}
#endif
#endif
