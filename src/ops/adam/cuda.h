#ifndef TR_OPS_ADAM_CUDA_H
#define TR_OPS_ADAM_CUDA_H

#include "backend/cuda/launchers.h"

// tr_adam_numbers, rounded.
typedef struct tr_cuda_adam {
    float grad_scale, l2, keep, m_rate, beta2, v_rate, step, over_root_bias2, eps;
} tr_cuda_adam;

// p, g, m, v: [count]
TR_CUDA_LAUNCHER void tr_cuda_adam_update(tr_cuda_adam k, float *p, const float *g,
                                          float *m, float *v, int64_t count,
                                          void *stream);

#endif
