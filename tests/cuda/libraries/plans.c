// The graphs, and in how much memory they are computed, as the real cuDNN plans them
// for a GPU that is not here. Skipped where there is no cuDNN. An argument is the
// library's path.
#include "backend/cuda/cudnn_plan.h"
#include "backend/cuda/symbol.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// NVIDIA's H200, as cuDNN describes a device.
static const char h200[] =
    "{\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,\"maxGridSize\":"
    "[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
    "\"multiProcessorCount\":132,\"smCountOrigin\":0,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"oversizedSharedMemoryPerBlock\":0,"
    "\"reservedSharedMemoryPerBlock\":1024,"
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":"
    "1,\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"memoryBusWidth\":6144,"
    "\"l2CacheSize\":62914560,"
    "\"deviceName\":\"NVIDIA H200\",\"totalGlobalMem\":150121545728}";

static tr_cudnn_library by;
static int version;
static tr_cudnn_graph properties; // of one descriptor
static tr_cudnn_device device;

// beside: heads of queries and of keys that are in the operands, and not computed.
static const struct {
    int64_t batch, heads, pairs, context, depth;
    int32_t both;
    tr_dtype half;
    int64_t beside;
} shapes[] = {
    {16, 12, 12, 1024, 64, 0, TR_BF16, 0}, // GPT-2 124M
    {4, 25, 25, 1024, 64, 0, TR_BF16, 0},  // 1.5B
    {1, 32, 32, 2048, 128, 0, TR_BF16, 0}, // Llama 7B
    {1, 8, 8, 4096, 128, 0, TR_BF16, 24},  {1, 1, 1, 8192, 128, 0, TR_BF16, 31},
    {1, 4, 1, 8192, 128, 0, TR_F16, 3},    {2, 32, 8, 4096, 128, 0, TR_BF16, 0},
    {1, 3, 1, 64, 64, 0, TR_F16, 0},       {3, 2, 2, 192, 128, 0, TR_F16, 0},
    {2, 12, 12, 512, 64, 1, TR_BF16, 0}, // BERT
    {2, 8, 2, 320, 128, 1, TR_F16, 0},     {1, 1, 1, 64, 64, 0, TR_BF16, 0},
};
// A forward with and without logarithms, and a backward.
enum { SHAPES = sizeof shapes / sizeof *shapes, FORWARD, EVALUATION, BACKWARD };

static tr_cuda_attend_shape shape_of(int i, int which) {
    int64_t queries = shapes[i].heads + shapes[i].beside;
    int64_t heads = queries + 2 * (shapes[i].pairs + shapes[i].beside);
    return (tr_cuda_attend_shape){.batch = shapes[i].batch,
                                  .context = shapes[i].context,
                                  .depth = shapes[i].depth,
                                  .heads = shapes[i].heads,
                                  .pairs = shapes[i].pairs,
                                  .pitch = heads * shapes[i].depth,
                                  .width = queries * shapes[i].depth,
                                  .half = (int32_t)shapes[i].half,
                                  .backward = which == BACKWARD,
                                  .both = shapes[i].both,
                                  .has_lse = which != EVALUATION,
                                  .version = version};
}

static void check(const tr_cuda_attend_shape *shape) {
    tr_cudnn_plan plan;
    tr_error err = {0};
    if (tr__cudnn_choose(&plan, &by, &device, shape, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    print_message("%s %" PRId64 " x %" PRId64 "/%" PRId64 " x %" PRId64 " x %" PRId64
                  "%s: engine %" PRId64 ", %" PRId64 " bytes\n",
                  shape->backward  ? "backward"
                  : shape->has_lse ? "forward"
                                   : "forward alone",
                  shape->batch, shape->heads, shape->pairs, shape->context,
                  shape->depth, shape->both ? " both ways" : "", plan.engine,
                  plan.workspace);
    assert_int_equal(plan.workspace, shape->workspace);
    tr__cudnn_plan_close(&plan);
}

// To the byte: a plan has neither less nor more.
static void room_is_what_is_planned(void **state) {
    (void)state;
    if (!tr__cuda_attend_knows(version)) {
        print_message("cuDNN %d.%d is not one that plans know\n", version / 100,
                      version % 100);
        skip();
    }
    for (int i = 0; i < SHAPES; i++) {
        for (int which = FORWARD; which <= BACKWARD; which++) {
            tr_cuda_attend_shape shape = shape_of(i, which);
            shape.workspace = tr__cuda_attend_room(&shape);
            assert_true(shape.workspace >= 0);
            check(&shape);
        }
    }
}

static bool find_all(void *library) {
    return tr__cuda_symbol(library, "cudnnGetVersion", &by.version) &&
           tr__cuda_symbol(library, "cudnnGetErrorString", &by.status_name) &&
           tr__cuda_symbol(library, "cudnnGetLastErrorString", &by.last_error) &&
           tr__cuda_symbol(library, "cudnnBackendCreateDescriptor", &by.create) &&
           tr__cuda_symbol(library, "cudnnBackendDestroyDescriptor", &by.destroy) &&
           tr__cuda_symbol(library, "cudnnBackendFinalize", &by.finalize) &&
           tr__cuda_symbol(library, "cudnnBackendSetAttribute", &by.set) &&
           tr__cuda_symbol(library, "cudnnBackendGetAttribute", &by.get);
}

static int describe_device(void **state) {
    (void)state;
    tr__cudnn_graph_begin(&properties, &by);
    device.properties = tr__cudnn_create(&properties, TR_CUDNN_DEVICEPROP, "a device");
    tr__cudnn_set(&properties, device.properties,
                  TR_CUDNN_DEVICEPROP_JSON_REPRESENTATION, TR_CUDNN_TYPE_CHAR,
                  (int64_t)strlen(h200), h200);
    tr__cudnn_finalize(&properties, device.properties);
    if (properties.status != TR_CUDNN_SUCCESS) {
        print_error("%s: %s\n", by.status_name(properties.status), properties.text);
    }
    return properties.status;
}

int main(int count, char **given) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(room_is_what_is_planned)};
    enum { SKIPPED = 77 };
    void *library =
        dlopen(count > 1 ? given[1] : "libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!library || !find_all(library)) {
        printf("there is no cuDNN to ask\n");
        return SKIPPED;
    }
    version = (int)(by.version() / 100);
    return cmocka_run_group_tests(tests, describe_device, NULL);
}
