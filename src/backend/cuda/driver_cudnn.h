#ifndef TR_BACKEND_CUDA_DRIVER_CUDNN_H
#define TR_BACKEND_CUDA_DRIVER_CUDNN_H

#include "backend/cuda/attend.h"

enum {
    TR_CUDNN_ERROR = 400000, // above other libraries' errors: cuDNN's status is added
    TR_CUDNN_UNREADY = 500000,
};

// tr_cuda_driver.attention, by cuDNN 9, for the device of the calling thread. The
// library is opened when its version is first asked for.
int tr__cudnn_version(const char **why);
tr_status tr__cudnn_ready(const tr_cuda_attend_shape *shape, tr_error *err);
int tr__cudnn_attend(const tr_cuda_attend *attend, void *stream);
const char *tr__cudnn_error_text(int error);

#endif
