// A driver of NVIDIA's without a device: all that is asked of it succeeds, and does
// nothing. cuDNN makes its plans beside it for a device that it is told of.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Those that cuDNN looks for by their names.
#define NOTHING(function)                                                              \
    int function(void);                                                                \
    int function(void) {                                                               \
        return 0;                                                                      \
    }
// The same, with something for a handle, that nobody looks into.
#define HANDLE(function)                                                               \
    int function(void **out);                                                          \
    int function(void **out) {                                                         \
        static void *something;                                                        \
        *out = &something;                                                             \
        return 0;                                                                      \
    }
NOTHING(cuGetErrorName)
NOTHING(cuGetErrorString)
NOTHING(cuCtxGetCurrent)
NOTHING(cuCtxGetLimit)
NOTHING(cuCtxPopCurrent)
NOTHING(cuCtxPushCurrent)
NOTHING(cuStreamGetCtx)
NOTHING(cuLinkCreate)
NOTHING(cuLinkAddData)
NOTHING(cuLinkComplete)
NOTHING(cuLinkDestroy)
NOTHING(cuLaunchKernel)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuDeviceGet)
HANDLE(cuLibraryLoadData)
HANDLE(cuLibraryLoadFromFile)
HANDLE(cuLibraryGetKernel)
HANDLE(cuKernelGetFunction)
HANDLE(cuModuleLoadData)
HANDLE(cuModuleGetFunction)
NOTHING(cuModuleUnload)
NOTHING(cuTensorMapEncodeIm2col)
NOTHING(cuTensorMapEncodeTiled)
NOTHING(cuLibraryUnload)
NOTHING(cuKernelSetAttribute)
NOTHING(cuKernelGetAttribute)
NOTHING(cuOccupancyMaxPotentialClusterSize)
NOTHING(cuLaunchKernelEx)

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDriverGetVersion(int *out);
int cuGetProcAddress(const char *name, void **out, int asked, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **out, int asked, uint64_t flags,
                        int *status);

// NVRTC, which cuDNN compiles by, looks for a driver by this name, and does without
// one.
int cuInit(unsigned flags) {
    enum { NO_DEVICE = 100 };
    (void)flags;
    return NO_DEVICE;
}

static int succeed(void) {
    return 0;
}

int cuDeviceGetCount(int *count) {
    *count = 1;
    return 0;
}

int cuDriverGetVersion(int *out) {
    *out = 13000;
    return 0;
}

// CUDA's runtime, which is in the library, looks for all others here.
int cuGetProcAddress(const char *name, void **out, int asked, uint64_t flags) {
    (void)asked;
    (void)flags;
    *out = strcmp(name, "cuDeviceGetCount") == 0     ? (void *)cuDeviceGetCount
           : strcmp(name, "cuDriverGetVersion") == 0 ? (void *)cuDriverGetVersion
           : strncmp(name, "cuLibrary", strlen("cuLibrary")) == 0 ||
                   strncmp(name, "cuModule", strlen("cuModule")) == 0
               ? (void *)cuLibraryGetKernel
           : strcmp(name, "cuGetProcAddress") == 0 ? (void *)cuGetProcAddress_v2
                                                   : (void *)succeed;
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **out, int asked, uint64_t flags,
                        int *status) {
    if (status) {
        *status = 0;
    }
    return cuGetProcAddress(name, out, asked, flags);
}
