// The compiled kernels. nvcc compiles a file src/ops/<kind>/<op>/cuda*.cu into a
// module, which the program has as read-only data and CUDA's driver loads. The build
// writes the list of all modules and, for each kernel tr_cuda_<name>, the variable
// tr__cuda_function_<name> (cmake/cuda_modules.cmake).
#ifndef TR_BACKEND_CUDA_MODULES_H
#define TR_BACKEND_CUDA_MODULES_H

#include <tranche/status.h>

#include <stdbool.h>

typedef struct tr_cuda_function {
    const char *name; // of the kernel
    void *loaded;     // what the driver launches; NULL: it is not loaded yet
} tr_cuda_function;

typedef struct tr_cuda_module {
    const char *file;  // "src/ops/nn/gelu/cuda.cu"
    const void *image; // for all GPUs that the build is for; NULL: built without nvcc
    tr_cuda_function *const *functions; // the last one is NULL
} tr_cuda_module;

// The last one has no file.
extern const tr_cuda_module tr__cuda_modules[];

// The architectures that they are for, as nvcc calls them: "80+ 90a". With a "+" they
// are there as PTX, too, which the driver of a later GPU compiles when it loads them.
extern const char tr__cuda_architectures[];

// Do modules for these architectures run on a device of that compute capability? Those
// for 80 run on 8.0 and later ones of 8; those for 80+ on all from 8.0 on; those for
// 90a on 9.0 alone.
bool tr__cuda_runs_on(const char *architectures, int major, int minor);

// Opens the device and loads all kernels, so that no step has to. Later calls for the
// same device change nothing. TR_USAGE: this process works on another one, or CUDA
// refuses it.
tr_status tr__cuda_open(int number, tr_error *err);

#endif
