// A build without nvcc: there is no device.
#include "backend/cuda/driver.h"

static const char *missing(void) {
    return "this build was made without CUDA: install NVIDIA's toolkit and build again";
}

const tr_cuda_driver *tr__cuda_driver(void) {
    static const tr_cuda_driver none = {.missing = missing};
    return &none;
}
