// A build without CUDA: there is no device.
#include "backend/cuda/driver.h"

static const char *missing(void) {
    return "Tranche was built without CUDA, which needs nvcc, cuda.h and cublasLt.h";
}

const tr_cuda_driver *tr__cuda_driver(void) {
    static const tr_cuda_driver none = {.missing = missing};
    return &none;
}
