#ifndef TR_BACKEND_CUDA_DRIVER_CUBLAS_H
#define TR_BACKEND_CUDA_DRIVER_CUBLAS_H

#include "backend/cuda/driver.h"

enum {
    TR_CUBLAS_ERROR = 100000, // above CUDA's own errors: cuBLASLt's status is added
    TR_CUBLAS_MISSING = 200000,
};

// Finds the library, and readies it for the device of the calling thread.
int tr__cublas_open(void);
const char *tr__cublas_error_text(int error);
// tr_cuda_driver.multiply, by cuBLASLt.
int tr__cublas_multiply(const tr_cuda_product *product, void *stream);
// tr_cuda_driver.say_product. The library gives its kernels no names, but numbers.
void tr__cublas_say(char *dst, size_t size);

#endif
