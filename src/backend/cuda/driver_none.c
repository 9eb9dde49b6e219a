// A build without TRANCHE_CUDA: there is no device.
#include "backend/cuda/driver.h"

static const char *missing(void) {
    return "this program was built without CUDA: build it with -DTRANCHE_CUDA=ON";
}

const tr_cuda_driver *tr__cuda_driver(void) {
    static const tr_cuda_driver none = {.missing = missing};
    return &none;
}
