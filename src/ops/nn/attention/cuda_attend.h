// The launch of attention's forward on a GPU, for ops that have their keys elsewhere.
#ifndef TR_OPS_NN_ATTENTION_CUDA_ATTEND_H
#define TR_OPS_NN_ATTENTION_CUDA_ATTEND_H

#include "ops/nn/attention/cuda.h"

// Input 0 is qkv and result 0 y; there are no positions, and no lse is asked for.
tr_cuda_attend_args tr__cuda_attend_args(const tr_op_desc *desc,
                                         const tr_launch *launch);
// The queries of input 0, by arguments that may say otherwise where keys are.
void tr__cuda_attend(const tr_op_desc *desc, const tr_launch *launch,
                     const tr_cuda_attend_args *args);

#endif
