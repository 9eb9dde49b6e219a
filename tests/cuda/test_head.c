// The products of the head, whatever the number of logits is: rows of what they read
// and write begin at multiples of 16 bytes.
#include "backend/cuda/kernels.h"
#include "cuda/device.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 6, WIDTH = 32, LOGITS = 53, CHUNK = 4 };
enum { X, WEIGHT, NO_BIAS, TARGETS, INPUTS };
enum { DX, DWEIGHT, NO_DBIAS, SUMS, RESULTS };

static const tr_op_desc head = {
    .op = &tr__op_linear_cross_entropy_backward,
    .in_count = INPUTS,
    .out_count = RESULTS,
    .in = {[X] = {TR_BF16, {2, {ROWS, WIDTH}}},
           [WEIGHT] = {TR_BF16, {2, {LOGITS, WIDTH}}},
           [TARGETS] = {TR_I32, {1, {ROWS}}}},
    .out = {[DX] = {TR_BF16, {2, {ROWS, WIDTH}}},
            [DWEIGHT] = {TR_F32, {2, {LOGITS, WIDTH}}},
            [SUMS] = {TR_F64, {1, {3}}}},
    .fresh = 1 << DX | 1 << DWEIGHT,
    .accumulate = 1 << SUMS,
    .target = {.backend = TR_BACKEND_CUDA, .level = TR_CUDA_SM_90, .workers = 1},
};

static test_memory take(tr_tensor_desc desc) {
    test_memory memory =
        test_memory_take(desc.dtype == TR_NONE ? 0 : (size_t)tr_tensor_bytes(desc));
    if (memory.bytes > 0) {
        memset(memory.data, 0, memory.bytes);
    }
    return memory;
}

static void rows_begin_at_16_bytes(void **state) {
    const tr_lce_attr attr = {TR_WEIGHT_OUT_IN, CHUNK, 0};
    tr_op_desc desc = head;
    test_memory in[INPUTS], out[RESULTS];
    tr_run_context run = {.loss_seed = 1};
    tr_launch launch = {.run = &run, .accumulate = desc.accumulate};
    int before = test_device_crooked();
    (void)state;
    memcpy(desc.attr, &attr, sizeof attr);
    for (int i = 0; i < INPUTS; i++) {
        in[i] = take(desc.in[i]);
        launch.in[i] = in[i].data;
    }
    for (int i = 0; i < RESULTS; i++) {
        out[i] = take(desc.out[i]);
        launch.out[i] = out[i].data;
    }
    test_launch(tr__cuda_kernel(&desc), &desc, &launch);
    assert_true(((const double *)out[SUMS].data)[1] == ROWS);
    assert_int_equal(test_device_crooked(), before);
    for (int i = 0; i < INPUTS; i++) {
        test_memory_give(&in[i]);
    }
    for (int i = 0; i < RESULTS; i++) {
        assert_true(test_memory_intact(&out[i]));
        test_memory_give(&out[i]);
    }
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_begin_at_16_bytes),
    };
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
