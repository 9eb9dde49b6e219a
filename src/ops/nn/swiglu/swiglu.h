// The gated activation of Llama's MLP (Shazeer, "GLU variants improve transformer",
// arXiv 2002.05202): y = silu(gate) * up, with silu(x) = x / (1 + e^-x) (Elfwing et
// al., arXiv 1702.03118).
#ifndef TR_OPS_NN_SWIGLU_SWIGLU_H
#define TR_OPS_NN_SWIGLU_SWIGLU_H

#include <tranche/extend/op.h>

// in:  h [..., 2 I], f32, bf16 or f16: gate, then up, side by side in each row
// out: y [..., I]   (cheap)
extern const tr_op tr__op_swiglu;
// in:  dy [..., I], h [..., 2 I]   out: dh [..., 2 I]
extern const tr_op tr__op_swiglu_backward;

#endif
