// NVIDIA's runtime.
#include "backend/cuda/driver.h"

#include "backend/cuda/driver_cublas.h"

#include <cuda_runtime_api.h>
#include <string.h>

// ---- the device

static const char *missing(void) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        return cudaGetErrorString(error);
    }
    return count > 0 ? NULL : "the driver finds no device";
}

static int properties(tr_cuda_properties *out) {
    struct cudaDeviceProp p;
    int device = 0, error = cudaGetDevice(&device);
    error = error == 0 ? (int)cudaGetDeviceProperties(&p, device) : error;
    if (error == 0) {
        *out = (tr_cuda_properties){.major = p.major,
                                    .minor = p.minor,
                                    .multiprocessors = p.multiProcessorCount,
                                    .memory = p.totalGlobalMem};
        memcpy(out->name, p.name, sizeof out->name);
        out->name[sizeof out->name - 1] = '\0';
    }
    return error;
}

static const char *error_text(int error) {
    return error >= TR_CUBLAS_ERROR
               ? "cuBLASLt failed in a product, or cannot be opened"
               : cudaGetErrorString((cudaError_t)error);
}

static int last_error(void) {
    return cudaGetLastError();
}

// ---- memory

static int take(size_t bytes, void **out) {
    return cudaMalloc(out, bytes);
}

static int give_back(void *memory) {
    return cudaFree(memory);
}

static int pin(void *memory, size_t bytes) {
    return cudaHostRegister(memory, bytes, cudaHostRegisterMapped);
}

static int unpin(void *memory) {
    return cudaHostUnregister(memory);
}

// ---- streams and events

static int stream_create(void **out) {
    return cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking);
}

static int stream_destroy(void *stream) {
    return cudaStreamDestroy(stream);
}

static int stream_wait(void *stream) {
    return cudaStreamSynchronize(stream);
}

static int copy(void *to, const void *from, size_t bytes, void *stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

static int clear(void *to, size_t bytes, void *stream) {
    return cudaMemsetAsync(to, 0, bytes, stream);
}

static int event_create(void **out) {
    return cudaEventCreate((cudaEvent_t *)out);
}

static int event_destroy(void *event) {
    return cudaEventDestroy(event);
}

static int event_record(void *event, void *stream) {
    return cudaEventRecord(event, stream);
}

static int event_wait(void *event) {
    return cudaEventSynchronize(event);
}

static int event_follow(void *event, void *stream) {
    return cudaStreamWaitEvent(stream, event, 0);
}

static int event_seconds(void *from, void *to, double *seconds) {
    float milliseconds = 0;
    int error = cudaEventElapsedTime(&milliseconds, from, to);
    *seconds = milliseconds * 1e-3;
    return error;
}

const tr_cuda_driver *tr__cuda_driver(void) {
    static const tr_cuda_driver driver = {
        .missing = missing,
        .properties = properties,
        .error_text = error_text,
        .last_error = last_error,
        .take = take,
        .give_back = give_back,
        .pin = pin,
        .unpin = unpin,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .stream_wait = stream_wait,
        .copy = copy,
        .clear = clear,
        .multiply = tr__cublas_multiply,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_wait = event_wait,
        .event_follow = event_follow,
        .event_seconds = event_seconds,
    };
    return &driver;
}
