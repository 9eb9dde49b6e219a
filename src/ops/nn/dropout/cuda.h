#ifndef TR_OPS_NN_DROPOUT_CUDA_H
#define TR_OPS_NN_DROPOUT_CUDA_H

#include <tranche/extend/op.h>

// The draws of a launch: of elements of samples that have `per_sample` each, from
// element `first` of the micro-batch on.
typedef struct tr_cuda_dropout {
    tr_run_context run;
    uint32_t draw_id;
    float probability; // 0: everything is kept
    int64_t per_sample, first;
} tr_cuda_dropout;

// y = r + x * multipliers; r: [count], or NULL: nothing. x, y: [count]
typedef struct tr_cuda_dropout_args {
    const void *r, *x;
    void *y;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    tr_cuda_dropout dropout;
    int32_t add; // to y
} tr_cuda_dropout_args;

#endif
