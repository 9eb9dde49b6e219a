// Updates on CUDA whose states are in few bits, against the reference: parameters, and
// codes and scales of the states; on a device of the host's memory, in both orders of
// threads.
#include "backend/cuda/kernels.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/flat/packed_state/packed_state.h"
#include "ops/flat/update/update.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/optimizers/adam/adam.h"
#include "ops/shared_matrix.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    COUNT = 256 * 21 + 77, // the last block is not full
    STATES = 2,
    UPDATES = 4,
};

static const tr_update_range range = {.count = COUNT};
static const double powers[][2] = {{0.9, 0.999}};

// Parameters, gradients, and states.
typedef struct operands {
    test_memory param, grad, state[STATES];
} operands;

static float drawn(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (float)(*seed >> 40) / (float)(1 << 23) - 1;
}

static tr_tensor_desc describe_state(tr_dtype dtype) {
    int64_t blocks = (COUNT + TR_STATE_BLOCK - 1) / TR_STATE_BLOCK;
    int64_t count = dtype == TR_U8 ? blocks * TR_STATE_BLOCK_BYTES : COUNT;
    return (tr_tensor_desc){dtype, TR_SHAPE1(count)};
}

static operands open_operands(const tr_dtype dtype[STATES]) {
    operands o = {.param = test_memory_take(COUNT * sizeof(float)),
                  .grad = test_memory_take(COUNT * sizeof(float))};
    uint64_t seed = 3;
    for (int s = 0; s < STATES; s++) {
        size_t bytes = (size_t)tr_tensor_bytes(describe_state(dtype[s]));
        o.state[s] = test_memory_take(bytes);
        memset(o.state[s].data, 0, bytes); // of 8 bits: a scale of 0
    }
    for (int64_t i = 0; i < COUNT; i++) {
        ((float *)o.param.data)[i] = drawn(&seed);
    }
    return o;
}

static void close_operands(operands *o) {
    test_memory_give(&o->param);
    test_memory_give(&o->grad);
    for (int s = 0; s < STATES; s++) {
        assert_true(test_memory_intact(&o->state[s]));
        test_memory_give(&o->state[s]);
    }
}

// From blocks of zeros to those with one large gradient.
static void draw_gradients(operands *o, uint64_t seed) {
    float *grad = o->grad.data;
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t block = i / TR_STATE_BLOCK;
        float size = powf(10, (float)(block % 9) - 6);
        grad[i] = block % 7 == 6 ? 0 : size * drawn(&seed);
    }
    grad[300] = 1e4F;
}

static void update(operands *o, const tr_dtype dtype[STATES], const tr_hyper *hyper,
                   bool on_cuda) {
    const tr_update_order order = {.optimizer = &tr__optimizer_adam,
                                   .ranges = &range,
                                   .range_count = 1,
                                   .hyper = hyper,
                                   .grad_scale = 0.5,
                                   .number = 1,
                                   .power = powers};
    tr_run_context run = {.update = &order};
    tr_tensor_desc flat = {TR_F32, TR_SHAPE1(COUNT)};
    tr_op_desc desc = {
        .op = &tr__op_update,
        .in_count = 2,
        .out_count = 4,
        .in = {flat, {TR_NONE, {0}}},
        .out = {flat,
                {TR_NONE, {0}},
                describe_state(dtype[0]),
                describe_state(dtype[1])},
        .target = {.workers = 1, .level = -1},
    };
    tr_launch launch = {
        .in = {o->grad.data},
        .out = {o->param.data, NULL, o->state[0].data, o->state[1].data},
        .run = &run};
    if (on_cuda) {
        desc.target = (tr_target){.backend = TR_BACKEND_CUDA};
    }
    const tr_kernel *kernel =
        on_cuda ? tr__cuda_kernel(&desc) : tr__op_update.reference;
    assert_non_null(kernel);
    test_launch(kernel, &desc, &launch);
}

// The reference computes in double, so that the largest value of a block may be rounded
// to the f32 beside it. Then a code may be the next one, but hardly ever is.
static void assert_blocks_close(const unsigned char *got, const unsigned char *want) {
    int64_t others = 0;
    for (int64_t at = 0; at < COUNT; at += TR_STATE_BLOCK) {
        float a, b;
        memcpy(&a, got, sizeof a);
        memcpy(&b, want, sizeof b);
        assert_true(fabsf(a - b) <= 1e-6F * b);
        for (size_t i = sizeof a; i < TR_STATE_BLOCK_BYTES; i++) {
            assert_in_range(got[i] - want[i] + 1, 0, 2);
            others += got[i] != want[i];
        }
        got += TR_STATE_BLOCK_BYTES;
        want += TR_STATE_BLOCK_BYTES;
    }
    assert_true(others <= COUNT / 1000);
}

static void assert_same_states(const operands *got, const operands *want,
                               const tr_dtype dtype[STATES]) {
    for (int s = 0; s < STATES; s++) {
        if (dtype[s] == TR_U8) {
            assert_blocks_close(got->state[s].data, want->state[s].data);
        } else {
            assert_memory_equal(got->state[s].data, want->state[s].data,
                                COUNT * sizeof(uint16_t));
        }
    }
}

static tr_hyper read_hyper(void) {
    int i = 0;
    while (tr__optimizers[i]->optimizer != &tr__optimizer_adam) {
        i++;
    }
    return test_hyper_read(tr__optimizers[i], "");
}

static void check(const tr_dtype dtype[STATES]) {
    tr_hyper hyper = read_hyper();
    hyper.lr = 0.01;
    hyper.weight_decay = 0.1;
    operands got = open_operands(dtype), want = open_operands(dtype);
    for (uint64_t n = 0; n < UPDATES; n++) {
        draw_gradients(&got, n);
        draw_gradients(&want, n);
        update(&got, dtype, &hyper, true);
        update(&want, dtype, &hyper, false);
        assert_same_states(&got, &want, dtype);
        const float *a = got.param.data, *b = want.param.data;
        for (int64_t i = 0; i < COUNT; i++) {
            if (!(fabsf(a[i] - b[i]) <= 1e-6F)) {
                fail_msg("update %d, element %lld: %.9g for %.9g", (int)n, (long long)i,
                         (double)a[i], (double)b[i]);
            }
        }
    }
    close_operands(&got);
    close_operands(&want);
}

static void eight_bits(void **state) {
    (void)state;
    check((const tr_dtype[STATES]){TR_U8, TR_U8});
}

static void bf16(void **state) {
    (void)state;
    check((const tr_dtype[STATES]){TR_BF16, TR_BF16});
}

static void of_two_types(void **state) {
    (void)state;
    check((const tr_dtype[STATES]){TR_BF16, TR_U8});
}

static int open_cuda(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

// Muon's: ranks that have parts of a matrix put it together.
static void ranks_share_a_matrix(void **state) {
    const tr_target target = {
        .backend = TR_BACKEND_CUDA, .level = TR_CUDA_SM_90, .workers = 1};
    tr_op_desc desc = {.op = &tr__op_orthogonal,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{TR_F32, TR_SHAPE1(1)}},
                       .out = {{TR_F32, TR_SHAPE1(1)}},
                       .target = target};
    (void)state;
    test_shared_matrix(tr__cuda_kernel(&desc), target);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_bits),
        cmocka_unit_test(bf16),
        cmocka_unit_test(of_two_types),
        cmocka_unit_test(ranks_share_a_matrix),
    };
    return cmocka_run_group_tests(tests, open_cuda, NULL);
}
