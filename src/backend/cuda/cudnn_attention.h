// Attention as graphs of cuDNN's operations.
#ifndef TR_BACKEND_CUDA_CUDNN_ATTENTION_H
#define TR_BACKEND_CUDA_CUDNN_ATTENTION_H

#include "backend/cuda/attend.h"
#include "backend/cuda/cudnn_graph.h"

// Numbers of the tensors that are in memory, and of the values.
enum {
    TR_CUDNN_ID_Q = 1,
    TR_CUDNN_ID_K,
    TR_CUDNN_ID_V,
    TR_CUDNN_ID_Y,
    TR_CUDNN_ID_LSE,
    TR_CUDNN_ID_SCALE,
    TR_CUDNN_ID_UNSEEN, // the score of a key that is not seen: minus infinity
    TR_CUDNN_ID_ONE,
    TR_CUDNN_ID_DY,
    TR_CUDNN_ID_DELTA,
    TR_CUDNN_ID_DQ,
    TR_CUDNN_ID_DK,
    TR_CUDNN_ID_DV,
    TR_CUDNN_IDS,
};

void tr__cudnn_forward(tr_cudnn_graph *g, const tr_cuda_attend_shape *shape);
// The gradients of all scores are summed into dq's rows in one order.
void tr__cudnn_backward(tr_cudnn_graph *g, const tr_cuda_attend_shape *shape);

#endif
