// How cuDNN computes an attention: one of its engines, compiled.
#ifndef TR_BACKEND_CUDA_CUDNN_PLAN_H
#define TR_BACKEND_CUDA_CUDNN_PLAN_H

#include "backend/cuda/attend.h"
#include "backend/cuda/cudnn_graph.h"

// For what it is compiled: the handle's device, or, where there is none, one of these
// properties (a descriptor).
typedef struct tr_cudnn_device {
    void *handle, *properties;
} tr_cudnn_device;

typedef struct tr_cudnn_plan {
    tr_cudnn_graph graph; // owns all descriptors
    void *plan;
    int64_t engine, workspace; // which engine it is; the bytes that it works in
} tr_cudnn_plan;

// The first of the engines that cuDNN recommends whose results do not change from one
// launch to the next, and which works in as many bytes as the shape allows. TR_USAGE
// says why there is none; nothing is to be closed then.
tr_status tr__cudnn_choose(tr_cudnn_plan *plan, const tr_cudnn_library *by,
                           const tr_cudnn_device *device,
                           const tr_cuda_attend_shape *shape, tr_error *err);
// cuDNN's status.
int tr__cudnn_execute(tr_cudnn_plan *plan, void *handle, const tr_cuda_attend *attend);
void tr__cudnn_plan_close(tr_cudnn_plan *plan);

#endif
