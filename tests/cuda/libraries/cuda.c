// A stand-in for NVIDIA's driver (libcuda.so.1), on the host's memory: it does what it
// is asked at once, and notes what the documentation of its functions (cuda.h) forbids.
#include <cuda.h>

#include "cuda/libraries/cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MANY = 16, SHARED_USUAL = 48 << 10, SHARED_MOST = 227 << 10 };
static const size_t memory = (size_t)CUDA_MEMORY_MIB << 20;

static cuda_seen seen;
static bool initialized, broken;
static double slow; // seconds
static _Thread_local CUcontext current;
static char context, module, function_of_module;
static int shared_allowed = SHARED_USUAL;

const cuda_seen *cuda_look(void) {
    return &seen;
}

void cuda_set_slow(double seconds) {
    slow = seconds;
}

void cuda_break(bool now) {
    broken = now;
}

static CUresult forbid(const char *what, CUresult error) {
    seen.fault = seen.fault ? seen.fault : what;
    return error;
}

// What all calls ask for that work on the device.
static CUresult enter(void) {
    if (!initialized) {
        return forbid("a call before cuInit", CUDA_ERROR_NOT_INITIALIZED);
    }
    if (current != (CUcontext)(void *)&context) {
        return forbid("a call without a current context", CUDA_ERROR_INVALID_CONTEXT);
    }
    return broken ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

// ---- the device

CUresult cuInit(unsigned flags) {
    initialized = flags == 0;
    return initialized ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY   ? "out of memory"
            : error == CUDA_ERROR_LAUNCH_FAILED ? "unspecified launch failure"
                                                : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *device, int number) {
    *device = number;
    return number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    static const char own[] = "a stand-in";
    if (device != 0 || size < (int)sizeof own) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(name, own, sizeof own);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    *bytes = memory;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    memset(uuid->bytes, 7, sizeof uuid->bytes);
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice device) {
    *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR              ? 9
             : what == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                ? 132
             : what == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ? 1
                                                                               : 0;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    *out = (CUcontext)(void *)&context;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxSetCurrent(CUcontext given) {
    current = given;
    return CUDA_SUCCESS;
}

// ---- kernels

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    CUresult error = enter();
    *out = (CUmodule)(void *)&module;
    return image ? error : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule of, const char *name) {
    CUresult error = enter();
    *out = (CUfunction)(void *)&function_of_module;
    return of != (CUmodule)(void *)&module     ? CUDA_ERROR_INVALID_HANDLE
           : strncmp(name, "tr_cuda_", 8) != 0 ? CUDA_ERROR_NOT_FOUND
                                               : error;
}

CUresult cuFuncSetAttribute(CUfunction of, CUfunction_attribute what, int value) {
    CUresult error = enter();
    if (of != (CUfunction)(void *)&function_of_module ||
        what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
        value > SHARED_MOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    shared_allowed = value;
    return error;
}

// Finds the one buffer of all parameters among what a launch is given beside.
static bool take_args(void **extra, cuda_launch *to) {
    const void *args = NULL;
    const size_t *bytes = NULL;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        args = *extra == CU_LAUNCH_PARAM_BUFFER_POINTER ? extra[1] : args;
        bytes = *extra == CU_LAUNCH_PARAM_BUFFER_SIZE ? extra[1] : bytes;
    }
    if (!args || !bytes || *bytes > sizeof to->args) {
        return false;
    }
    to->bytes = *bytes;
    memcpy(to->args, args, *bytes);
    return true;
}

CUresult cuLaunchKernel(CUfunction f, unsigned bx, unsigned by, unsigned bz,
                        unsigned tx, unsigned ty, unsigned tz, unsigned shared,
                        CUstream stream, void **params, void **extra) {
    CUresult error = enter();
    cuda_launch launch = {.blocks = {bx, by, bz}, .threads = {tx, ty, tz}, shared};
    (void)stream;
    bool fits = bx > 0 && by > 0 && bz > 0 && bx <= INT32_MAX && by <= UINT16_MAX &&
                bz <= UINT16_MAX && tx * ty * tz > 0 && tx * ty * tz <= 1024;
    if (f != (CUfunction)(void *)&function_of_module || !fits || params ||
        shared > (unsigned)shared_allowed || !take_args(extra, &launch)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    seen.launch = launch;
    return error;
}

// ---- memory

CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes) {
    CUresult error = enter();
    if (bytes == 0 || bytes > memory) {
        return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return error;
}

CUresult cuMemFree(CUdeviceptr given) {
    free((void *)(uintptr_t)given); // NOLINT(performance-no-int-to-ptr): CUDA's
    return enter();
}

// Ranges of addresses, [0, bytes) from `at`.
typedef struct range {
    char *at;
    size_t bytes;
    CUmemGenericAllocationHandle pages; // 0: none; of what is mapped
    bool open;                          // access has been set
} range;

static range reserved[MANY], mapped[MANY], registered[MANY];
// Pages, by handle - 1: bytes, and who counts on them (a handle, a mapping).
static struct {
    size_t bytes;
    int users;
} pages[MANY];

static range *find(range *ranges, const void *at) {
    for (int i = 0; i < MANY; i++) {
        if (ranges[i].bytes > 0 && ranges[i].at == at) {
            return &ranges[i];
        }
    }
    return NULL;
}

// One that has a byte of these.
static range *touches(range *ranges, const char *at, size_t bytes) {
    for (int i = 0; i < MANY; i++) {
        range *r = &ranges[i];
        if (r->bytes > 0 && at < r->at + r->bytes && r->at < at + bytes) {
            return r;
        }
    }
    return NULL;
}

static range *spare(range *ranges) {
    for (int i = 0; i < MANY; i++) {
        if (ranges[i].bytes == 0) {
            return &ranges[i];
        }
    }
    abort();
}

static bool is_within(const range *r, const char *at, size_t bytes) {
    return r && at >= r->at && at + bytes <= r->at + r->bytes;
}

static char *pointer(CUdeviceptr given) {
    return (char *)(uintptr_t)given; // NOLINT(performance-no-int-to-ptr): CUDA's
}

static bool is_whole(size_t bytes) {
    return bytes > 0 && bytes % CUDA_PAGE == 0;
}

static bool is_of_device(const CUmemAllocationProp *p) {
    return p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && p->location.id == 0;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *p,
                                       CUmemAllocationGranularity_flags how) {
    (void)how;
    *bytes = CUDA_PAGE;
    return is_of_device(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment,
                             CUdeviceptr at, unsigned long long flags) {
    CUresult error = enter();
    if (!is_whole(bytes) || alignment != 0 || at != 0 || flags != 0) {
        return forbid("a reservation of parts of pages", CUDA_ERROR_INVALID_VALUE);
    }
    char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *spare(reserved) = (range){.at = base, .bytes = bytes};
    *out = (CUdeviceptr)(uintptr_t)base;
    seen.reserved++;
    return error;
}

CUresult cuMemAddressFree(CUdeviceptr given, size_t bytes) {
    range *r = find(reserved, pointer(given));
    if (!r || r->bytes != bytes || touches(mapped, r->at, bytes)) {
        return forbid("addresses are freed in parts, or while they are mapped",
                      CUDA_ERROR_INVALID_VALUE);
    }
    munmap(r->at, r->bytes);
    *r = (range){.bytes = 0};
    seen.reserved--;
    return enter();
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                     const CUmemAllocationProp *p, unsigned long long flags) {
    CUresult error = enter();
    int i = 0;
    if (!is_whole(bytes) || !is_of_device(p) || flags != 0) {
        return forbid("pages of no device, or parts of some", CUDA_ERROR_INVALID_VALUE);
    }
    if (seen.physical + bytes > memory) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    while (pages[i].users > 0) {
        i++;
    }
    pages[i].bytes = bytes;
    pages[i].users = 1;
    seen.physical += bytes;
    *out = (CUmemGenericAllocationHandle)(i + 1);
    return error;
}

static CUresult let_go(CUmemGenericAllocationHandle handle) {
    size_t i = (size_t)handle - 1;
    if (handle == 0 || i >= MANY || pages[i].users == 0) {
        return forbid("pages are released twice", CUDA_ERROR_INVALID_VALUE);
    }
    seen.physical -= --pages[i].users == 0 ? pages[i].bytes : 0;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    CUresult error = enter();
    CUresult let = let_go(handle);
    return error ? error : let;
}

CUresult cuMemMap(CUdeviceptr given, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    CUresult error = enter();
    char *at = pointer(given);
    bool free_there = is_within(touches(reserved, at, bytes), at, bytes) &&
                      !touches(mapped, at, bytes);
    if (!free_there || offset != 0 || flags != 0 || handle == 0 || handle > MANY ||
        pages[handle - 1].bytes != bytes || (uintptr_t)at % 4096 != 0) {
        return forbid("pages are mapped where they cannot be",
                      CUDA_ERROR_INVALID_VALUE);
    }
    *spare(mapped) = (range){.at = at, .bytes = bytes, .pages = handle};
    pages[handle - 1].users++;
    return error;
}

CUresult cuMemSetAccess(CUdeviceptr given, size_t bytes, const CUmemAccessDesc *how,
                        size_t count) {
    range *m = find(mapped, pointer(given));
    CUresult error = enter();
    if (!m || m->bytes != bytes || count != 1 ||
        how->location.type != CU_MEM_LOCATION_TYPE_DEVICE || how->location.id != 0 ||
        how->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return forbid("access to what is not mapped", CUDA_ERROR_INVALID_VALUE);
    }
    m->open = true;
    mprotect(m->at, bytes, PROT_READ | PROT_WRITE);
    memset(m->at, 0xA5, bytes); // new pages hold anything
    return error;
}

CUresult cuMemUnmap(CUdeviceptr given, size_t bytes) {
    range *m = find(mapped, pointer(given));
    CUresult error = enter();
    if (!m || m->bytes != bytes) {
        return forbid("a part of what was mapped is unmapped",
                      CUDA_ERROR_INVALID_VALUE);
    }
    mprotect(m->at, bytes, PROT_NONE);
    let_go(m->pages);
    *m = (range){.bytes = 0};
    return error;
}

CUresult cuMemHostRegister(void *given, size_t bytes, unsigned flags) {
    CUresult error = enter();
    if (bytes == 0 ||
        flags != (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)) {
        return forbid("nothing is registered, or not for the device",
                      CUDA_ERROR_INVALID_VALUE);
    }
    if (touches(registered, given, bytes)) {
        return forbid("memory is registered twice",
                      CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    *spare(registered) = (range){.at = given, .bytes = bytes};
    seen.registered++;
    return error;
}

CUresult cuMemHostUnregister(void *given) {
    range *r = find(registered, given);
    CUresult error = enter();
    if (!r) {
        return forbid("what was not registered is unregistered",
                      CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    }
    *r = (range){.bytes = 0};
    seen.registered--;
    return error;
}

// Of addresses that are reserved, only those that are open are memory.
static CUresult check(CUdeviceptr given, size_t bytes) {
    char *at = pointer(given);
    range *m = touches(mapped, at, bytes);
    return touches(reserved, at, bytes) && !(is_within(m, at, bytes) && m->open)
               ? forbid("memory that is not there is used", CUDA_ERROR_INVALID_VALUE)
               : enter();
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream) {
    CUresult error = check(to, bytes);
    error = error ? error : check(from, bytes);
    (void)stream;
    if (error == CUDA_SUCCESS) {
        memcpy(pointer(to), pointer(from), bytes);
    }
    return error;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                         CUstream stream) {
    CUresult error = check(to, bytes);
    (void)stream;
    if (error == CUDA_SUCCESS) {
        memset(pointer(to), value, bytes);
    }
    return error;
}

// ---- streams and events

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    CUresult error = enter();
    if (flags != CU_STREAM_NON_BLOCKING) {
        return forbid("a stream that waits for the usual one",
                      CUDA_ERROR_INVALID_VALUE);
    }
    *out = malloc(1);
    seen.streams++;
    return error;
}

CUresult cuStreamDestroy(CUstream stream) {
    free(stream);
    seen.streams--;
    return enter();
}

CUresult cuStreamSynchronize(CUstream stream) {
    (void)stream;
    return enter();
}

struct CUevent_st {
    unsigned flags;
    bool recorded;
    double passes; // when
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

CUresult cuEventCreate(CUevent *out, unsigned flags) {
    CUresult error = enter();
    *out = calloc(1, sizeof **out);
    (*out)->flags = flags;
    seen.events++;
    return error;
}

CUresult cuEventDestroy(CUevent event) {
    free(event);
    seen.events--;
    return enter();
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    (void)stream;
    event->recorded = true;
    event->passes = now() + slow;
    return enter();
}

CUresult cuEventQuery(CUevent event) {
    CUresult error = enter();
    return error ? error : event->passes > now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

// "busy-wait", but with CU_EVENT_BLOCKING_SYNC.
CUresult cuEventSynchronize(CUevent event) {
    CUresult state = CUDA_ERROR_NOT_READY;
    while (state == CUDA_ERROR_NOT_READY) {
        state = cuEventQuery(event);
    }
    return state;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    (void)stream;
    (void)event;
    return flags == CU_EVENT_WAIT_DEFAULT ? enter() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    *milliseconds = 1.5F;
    if (!from->recorded || !to->recorded || from->flags & CU_EVENT_DISABLE_TIMING ||
        to->flags & CU_EVENT_DISABLE_TIMING) {
        return forbid("events without a time", CUDA_ERROR_INVALID_HANDLE);
    }
    return from->passes > now() || to->passes > now() ? CUDA_ERROR_NOT_READY : enter();
}
