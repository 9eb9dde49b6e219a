// NVIDIA's driver, by CUDA's driver API. The library is opened when it is first asked
// for: a program that computes on the CPU never does.
#include "backend/cuda/driver.h"

#include "backend/cuda/driver_cublas.h"
#include "backend/cuda/driver_cudnn.h"
#include "backend/cuda/driver_nccl.h"
#include "backend/cuda/symbol.h"
#include "base/clock.h"

#include <assert.h>
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// cuda.h gives some of them other names, of their newest version: cuMemAlloc_v2. Those
// are the names that the library knows.
#define FUNCTIONS(F)                                                                   \
    F(cuInit)                                                                          \
    F(cuGetErrorString)                                                                \
    F(cuDeviceGetCount)                                                                \
    F(cuDeviceGet)                                                                     \
    F(cuDeviceGetName)                                                                 \
    F(cuDeviceTotalMem)                                                                \
    F(cuDeviceGetUuid)                                                                 \
    F(cuDeviceGetAttribute)                                                            \
    F(cuDevicePrimaryCtxRetain)                                                        \
    F(cuCtxSetCurrent)                                                                 \
    F(cuModuleLoadData)                                                                \
    F(cuModuleGetFunction)                                                             \
    F(cuFuncSetAttribute)                                                              \
    F(cuLaunchKernel)                                                                  \
    F(cuMemAlloc)                                                                      \
    F(cuMemFree)                                                                       \
    F(cuMemGetAllocationGranularity)                                                   \
    F(cuMemAddressReserve)                                                             \
    F(cuMemAddressFree)                                                                \
    F(cuMemCreate)                                                                     \
    F(cuMemRelease)                                                                    \
    F(cuMemMap)                                                                        \
    F(cuMemUnmap)                                                                      \
    F(cuMemSetAccess)                                                                  \
    F(cuMemHostRegister)                                                               \
    F(cuMemHostUnregister)                                                             \
    F(cuMemcpyAsync)                                                                   \
    F(cuMemsetD8Async)                                                                 \
    F(cuStreamCreate)                                                                  \
    F(cuStreamDestroy)                                                                 \
    F(cuStreamSynchronize)                                                             \
    F(cuStreamWaitEvent)                                                               \
    F(cuEventCreate)                                                                   \
    F(cuEventDestroy)                                                                  \
    F(cuEventRecord)                                                                   \
    F(cuEventQuery)                                                                    \
    F(cuEventElapsedTime)

#define MEMBER(function)      __typeof__(function) *function;
#define NAMED(name, function) find(library, #name, (void *)&cu.function)
#define EXPANDED(function)    NAMED(function, function)
#define FIND(function)        EXPANDED(function);

static struct {
    FUNCTIONS(MEMBER)
    bool lacks;          // the library has not all of them
    const char *missing; // why there is no device
    CUcontext context;   // of the open device
    CUdevice device;     // that
} cu;

static pthread_once_t looked = PTHREAD_ONCE_INIT;

static void find(void *library, const char *name, void *function) {
    cu.lacks = !tr__cuda_symbol(library, name, function) || cu.lacks;
}

// ---- the device

static const char *error_text(int error) {
    const char *text = NULL;
    if (error >= TR_CUDNN_ERROR) {
        return tr__cudnn_error_text(error);
    }
    if (error >= TR_NCCL_ERROR) {
        return tr__nccl_error_text(error);
    }
    if (error >= TR_CUBLAS_ERROR) {
        return tr__cublas_error_text(error);
    }
    return cu.cuGetErrorString((CUresult)error, &text) == CUDA_SUCCESS && text
               ? text
               : "an error that its driver has no words for";
}

static void look(void) {
    int count = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        cu.missing = "NVIDIA's driver (libcuda.so.1) is not installed";
        return;
    }
    FUNCTIONS(FIND)
    if (cu.lacks) {
        cu.missing = "NVIDIA's driver is older than the CUDA that Tranche was built "
                     "with: install a newer driver";
        return;
    }
    CUresult error = cu.cuInit(0);
    error = error == CUDA_SUCCESS ? cu.cuDeviceGetCount(&count) : error;
    cu.missing = error != CUDA_SUCCESS ? error_text((int)error)
                 : count == 0          ? "NVIDIA's driver finds no device"
                                       : NULL;
}

static const char *missing(void) {
    pthread_once(&looked, look);
    return cu.missing;
}

static int count_devices(int *count) {
    return (int)cu.cuDeviceGetCount(count);
}

static int properties(int number, tr_cuda_properties *out) {
    static const CUdevice_attribute asked[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT};
    tr_cuda_properties p = {.name = ""};
    int *values[] = {&p.major, &p.minor, &p.multiprocessors};
    CUuuid uuid = {{0}};
    CUdevice device = 0;
    CUresult error = cu.cuDeviceGet(&device, number);
    if (error == CUDA_SUCCESS) {
        error = cu.cuDeviceGetName(p.name, (int)sizeof p.name, device);
    }
    if (error == CUDA_SUCCESS) {
        error = cu.cuDeviceTotalMem(&p.memory, device);
    }
    if (error == CUDA_SUCCESS) {
        error = cu.cuDeviceGetUuid(&uuid, device);
        memcpy(p.uuid, uuid.bytes, sizeof p.uuid);
    }
    for (int i = 0; i < 3 && error == CUDA_SUCCESS; i++) {
        error = cu.cuDeviceGetAttribute(values[i], asked[i], device);
    }
    if (error == CUDA_SUCCESS) {
        *out = p;
    }
    return (int)error;
}

// A thread calls CUDA for the device after this. The context is that of all users of
// the device in the process: PyTorch's, too, which may have made another one current
// since the last call.
static int enter(void) {
    return (int)cu.cuCtxSetCurrent(cu.context);
}

static int open_device(int number) {
    CUdevice device = 0;
    int error = (int)cu.cuDeviceGet(&device, number);
    error = error ? error : (int)cu.cuDevicePrimaryCtxRetain(&cu.context, device);
    cu.device = device;
    error = error ? error : enter();
    return error ? error : tr__cublas_open();
}

// ---- kernels

static int load(const void *image, void **module) {
    int error = enter();
    return error ? error : (int)cu.cuModuleLoadData((CUmodule *)module, image);
}

static int function(void *module, const char *name, void **out) {
    int error = enter();
    return error ? error : (int)cu.cuModuleGetFunction((CUfunction *)out, module, name);
}

// A kernel has to be allowed more shared memory than all GPUs have.
static int allow_shared(void *function, int64_t bytes) {
    enum { USUAL = 48 << 10 };
    return bytes <= USUAL
               ? 0
               : (int)cu.cuFuncSetAttribute(
                     function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                     (int)bytes);
}

static int launch(void *function, const tr_cuda_grid *grid, const void *args,
                  size_t bytes, void *stream) {
    const int64_t *b = grid->blocks, *t = grid->threads;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)args,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    int error = enter();
    if (b[0] > INT32_MAX || b[1] > UINT16_MAX || b[2] > UINT16_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    error = error ? error : allow_shared(function, grid->shared);
    return error ? error
                 : (int)cu.cuLaunchKernel(function, (unsigned)b[0], (unsigned)b[1],
                                          (unsigned)b[2], (unsigned)t[0],
                                          (unsigned)t[1], (unsigned)t[2],
                                          (unsigned)grid->shared, stream, NULL, extra);
}

static int multiply(const tr_cuda_product *product, void *stream) {
    int error = enter();
    return error ? error : tr__cublas_multiply(product, stream);
}

static tr_status ready_attention(const tr_cuda_attend_shape *shape, tr_error *err) {
    int error = enter();
    return error ? tr_fail(err, TR_USAGE, "the CUDA device cannot be entered: %s",
                           error_text(error))
                 : tr__cudnn_ready(shape, err);
}

static int attend(const tr_cuda_attend *a, void *stream) {
    int error = enter();
    return error ? error : tr__cudnn_attend(a, stream);
}

// ---- memory

static CUdeviceptr address(const void *memory) {
    return (CUdeviceptr)(uintptr_t)memory;
}

static int take(size_t bytes, void **out) {
    CUdeviceptr taken = 0;
    int error = enter();
    error = error ? error : (int)cu.cuMemAlloc(&taken, bytes);
    *out = error ? NULL : (void *)(uintptr_t)taken;
    return error;
}

static int give_back(void *memory) {
    int error = enter();
    return error || !memory ? error : (int)cu.cuMemFree(address(memory));
}

// ---- memory in pages

static int memory_of_device(size_t *bytes) {
    return (int)cu.cuDeviceTotalMem(bytes, cu.device);
}

static CUmemAllocationProp page_of_device(void) {
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cu.device}};
}

static int page(size_t *bytes) {
    CUmemAllocationProp prop = page_of_device();
    int can = 0, error = enter();
    *bytes = 0;
    error = error ? error
                  : (int)cu.cuDeviceGetAttribute(
                        &can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                        cu.device);
    return error || !can ? error
                         : (int)cu.cuMemGetAllocationGranularity(
                               bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}

static int reserve(size_t bytes, void **out) {
    CUdeviceptr base = 0;
    int error = enter();
    error = error ? error : (int)cu.cuMemAddressReserve(&base, bytes, 0, 0, 0);
    *out = error ? NULL : (void *)(uintptr_t)base;
    return error;
}

static int release(void *base, size_t bytes) {
    int error = enter();
    return error ? error : (int)cu.cuMemAddressFree(address(base), bytes);
}

static int unmap(void *at, size_t bytes) {
    int error = enter();
    return error ? error : (int)cu.cuMemUnmap(address(at), bytes);
}

// Pages live as long as they are mapped, or their handle is held.
static int map(void *at, size_t bytes) {
    CUmemAllocationProp prop = page_of_device();
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle pages = 0;
    int error = enter();
    error = error ? error : (int)cu.cuMemCreate(&pages, bytes, &prop, 0);
    if (error) {
        return error;
    }
    error = (int)cu.cuMemMap(address(at), bytes, 0, pages, 0);
    int released = (int)cu.cuMemRelease(pages);
    if (error) {
        return error;
    }
    error =
        released ? released : (int)cu.cuMemSetAccess(address(at), bytes, &access, 1);
    if (error) {
        unmap(at, bytes);
    }
    return error;
}

// ---- memory of the host

static int pin(void *memory, size_t bytes) {
    int error = enter();
    return error ? error
                 : (int)cu.cuMemHostRegister(memory, bytes,
                                             CU_MEMHOSTREGISTER_PORTABLE |
                                                 CU_MEMHOSTREGISTER_DEVICEMAP);
}

static int unpin(void *memory) {
    int error = enter();
    return error ? error : (int)cu.cuMemHostUnregister(memory);
}

static_assert(TR_CUDA_OUT_OF_MEMORY == (int)CUDA_ERROR_OUT_OF_MEMORY, "as CUDA has it");

// ---- streams and events

static int stream_create(void **out) {
    int error = enter();
    return error ? error
                 : (int)cu.cuStreamCreate((CUstream *)out, CU_STREAM_NON_BLOCKING);
}

static int stream_destroy(void *stream) {
    int error = enter();
    return error ? error : (int)cu.cuStreamDestroy(stream);
}

static int stream_wait(void *stream) {
    int error = enter();
    return error ? error : (int)cu.cuStreamSynchronize(stream);
}

static int copy(void *to, const void *from, size_t bytes, void *stream) {
    int error = enter();
    return error ? error
                 : (int)cu.cuMemcpyAsync(address(to), address(from), bytes, stream);
}

static int clear(void *to, size_t bytes, void *stream) {
    int error = enter();
    return error ? error : (int)cu.cuMemsetD8Async(address(to), 0, bytes, stream);
}

static int event_create(void **out) {
    int error = enter();
    return error ? error : (int)cu.cuEventCreate((CUevent *)out, CU_EVENT_DEFAULT);
}

static int event_destroy(void *event) {
    int error = enter();
    return error ? error : (int)cu.cuEventDestroy(event);
}

static int event_record(void *event, void *stream) {
    int error = enter();
    return error ? error : (int)cu.cuEventRecord(event, stream);
}

static int event_look(void *event, bool *passed) {
    int error = enter();
    error = error ? error : (int)cu.cuEventQuery(event);
    *passed = error == CUDA_SUCCESS;
    return error == CUDA_ERROR_NOT_READY ? 0 : error;
}

// CUDA's own wait spins for as long as it takes, on a core that the host's kernels may
// need. This one spins for a moment, and sleeps then, the longer the longer it waits.
static int event_wait(void *event) {
    static const double moment = 1e-3, nap_most = 2e-4; // seconds
    double begin = tr__seconds(), waited = 0;
    bool passed = false;
    int error = event_look(event, &passed);
    while (error == 0 && !passed) {
        waited = tr__seconds() - begin;
        if (waited > moment) {
            tr__sleep(waited / 16 < nap_most ? waited / 16 : nap_most);
        }
        error = event_look(event, &passed);
    }
    return error;
}

static int event_follow(void *event, void *stream) {
    int error = enter();
    return error ? error
                 : (int)cu.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT);
}

static int event_seconds(void *from, void *to, double *seconds) {
    float milliseconds = 0;
    int error = enter();
    error = error ? error : (int)cu.cuEventElapsedTime(&milliseconds, from, to);
    *seconds = milliseconds * 1e-3;
    return error;
}

// ---- ranks

static int peers_invite(void *invitation) {
    int error = enter();
    return error ? error : tr__nccl_invite(invitation);
}

static int peers_join(const void *invitation, int members, int member, void **peers) {
    int error = enter();
    return error ? error : tr__nccl_join(invitation, members, member, peers);
}

static int peers_state(void *peers, bool *busy) {
    int error = enter();
    return error ? error : tr__nccl_state(peers, busy);
}

static int peers_exchange(const tr_cuda_exchange *parts, int count, void *peers,
                          void *stream) {
    int error = enter();
    return error ? error : tr__nccl_exchange(parts, count, peers, stream);
}

static int peers_leave(void *peers, bool broken) {
    int error = enter();
    return error ? error : tr__nccl_leave(peers, broken);
}

const tr_cuda_driver *tr__cuda_driver(void) {
    static const tr_cuda_driver driver = {
        .missing = missing,
        .count = count_devices,
        .properties = properties,
        .error_text = error_text,
        .open = open_device,
        .load = load,
        .function = function,
        .launch = launch,
        .take = take,
        .give_back = give_back,
        .memory = memory_of_device,
        .page = page,
        .reserve = reserve,
        .release = release,
        .map = map,
        .unmap = unmap,
        .pin = pin,
        .unpin = unpin,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .stream_wait = stream_wait,
        .copy = copy,
        .clear = clear,
        .multiply = multiply,
        .attention = {.version = tr__cudnn_version,
                      .ready = ready_attention,
                      .attend = attend},
        .peers_missing = tr__nccl_missing,
        .peers_invite = peers_invite,
        .peers_join = peers_join,
        .peers_state = peers_state,
        .peers_exchange = peers_exchange,
        .peers_leave = peers_leave,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_wait = event_wait,
        .event_look = event_look,
        .event_follow = event_follow,
        .event_seconds = event_seconds,
        .say_product = tr__cublas_say,
    };
    return &driver;
}
