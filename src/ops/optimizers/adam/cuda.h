#ifndef TR_OPS_OPTIMIZERS_ADAM_CUDA_H
#define TR_OPS_OPTIMIZERS_ADAM_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/packed_state/cuda.h"

// tr_adam_numbers, rounded.
typedef struct tr_cuda_adam {
    float grad_scale, l2, keep, m_rate, beta2, v_rate, step, over_root_bias2, eps;
} tr_cuda_adam;

// p, g, m, v: [count]
typedef struct tr_cuda_adam_args {
    tr_cuda_adam k;
    float *p;
    tr_cuda_gradients g;
    float *m, *v;
    int64_t count;
} tr_cuda_adam_args;

// The same where m and v are not all f32.
typedef struct tr_cuda_adam_packed_args {
    tr_cuda_adam k;
    float *p;
    tr_cuda_gradients g;
    tr_cuda_packed_state m, v;
    tr_cuda_state_maps maps;
    int64_t count;
} tr_cuda_adam_packed_args;

#endif
