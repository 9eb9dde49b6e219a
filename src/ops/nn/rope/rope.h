// Rotary position embedding (Su et al., RoFormer, arXiv 2104.09864), in the halves that
// Llama's checkpoints have: elements j and j + D/2 of a head are turned by the angle
// position * frequency(j), frequency(j) = theta^(-2 j / D).
//
// Contexts beyond the original one change the frequencies: by one factor (linear; Chen
// et al., arXiv 2306.15595), by a factor for the long waves alone (llama3, as
// Llama 3.1's configuration defines it), or by NTK by parts (YaRN; Peng et al., arXiv
// 2309.00071).
#ifndef TR_OPS_NN_ROPE_ROPE_H
#define TR_OPS_NN_ROPE_ROPE_H

#include <tranche/extend/op.h>
#include <tranche/extend/rope.h>

typedef struct tr_rope_attr {
    int32_t depth;    // D, of a head, even
    int32_t heads;    // that are turned: the first of a row
    int32_t keys;     // of these, the last: ranks share them apart from the others
    int32_t zero;     // no padding is here: attributes are compared as bytes
    double theta;     // base of the frequencies
    double attention; // yarn: what turned elements are multiplied with
    tr_rope_scaling scaling; // what follows: where it is not the default
    float factor;            // of the context
    // llama3: waves longer than original / low are slower by the factor, those shorter
    // than original / high stay. yarn: likewise the turns in the original context:
    // below `low` (beta_slow) and above `high` (beta_fast).
    float low, high;
    int32_t original; // positions of the original context
    int32_t whole;    // yarn: the limits between these are whole numbers of j
} tr_rope_attr;

// Radians by position of pair j of D/2.
double tr__rope_frequency(const tr_rope_attr *attr, int64_t j);

// in:  x [B, S, W], f32, bf16 or f16: heads side by side; those after the first `heads`
//      pass unchanged. Row s is at position run->position + s
// out: y [B, S, W], may lie on x
extern const tr_op tr__op_rope;
// in:  dy [B, S, W]    out: dx [B, S, W], turned back
extern const tr_op tr__op_rope_backward;

#endif
