// The embedding's gradient where many rows have one id: as the reference's, the same
// bits in both orders of threads.
#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/nn/embedding/embedding.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 3, LENGTH = 1500, ROWS = SAMPLES * LENGTH, TABLE = 5000, OTHERS = 50 };
enum { DY, IDS, TOKENS, POSITIONS, PLACES, INPUTS };
enum { DTOKENS, DPOSITIONS, RESULTS };

// How the rows' ids are chosen, and how wide rows are.
typedef struct example {
    int32_t (*id)(int row);
    int64_t width; // a multiple of eight goes by vectors
    tr_dtype real; // of dy
    bool placed;   // positions by number
    bool adds;     // to gradients that are there
} example;

static int32_t all_equal(int row) {
    (void)row;
    return 7;
}

static int32_t all_different(int row) {
    return row * 7 % TABLE;
}

// 3,000 rows have one, 1,500 the others.
static int32_t mostly_one(int row) {
    return row % 3 == 0 ? row * 31 % OTHERS : OTHERS;
}

// Runs that end where a part ends, one before and one behind.
static int32_t around_parts(int row) {
    const int32_t ends[] = {127, 255, 384, 512, 641, 1025};
    int32_t id = 0;
    while (id < 6 && row >= ends[id]) {
        id++;
    }
    return id;
}

static int32_t none(int row) {
    return row % 2 == 0 ? -1 - row : TABLE + row;
}

static test_memory take(tr_tensor_desc desc) {
    return test_memory_take(desc.dtype == TR_NONE ? 0 : (size_t)tr_tensor_bytes(desc));
}

static float drawn(uint32_t *draw) {
    *draw = *draw * 1664525u + 1013904223u;
    return tr__bf16_to_f32(tr__bf16_of_f32((float)*draw / 4294967296.0f - 0.5f));
}

static tr_op_desc describe(const example *of, tr_dtype real) {
    tr_op_desc desc = {
        .op = &tr__op_embedding_backward,
        .in_count = of->placed ? INPUTS : PLACES,
        .out_count = RESULTS,
        .in = {[DY] = {real, TR_SHAPE3(SAMPLES, LENGTH, of->width)},
               [IDS] = {TR_I32, TR_SHAPE2(SAMPLES, LENGTH)},
               [TOKENS] = {real, TR_SHAPE2(TABLE, of->width)},
               [POSITIONS] = {real, TR_SHAPE2(LENGTH, of->width)}},
        .out = {{TR_F32, TR_SHAPE2(TABLE, of->width)},
                {TR_F32, TR_SHAPE2(LENGTH, of->width)}},
        .fresh = 3,
        .accumulate = 3,
        .target = {.backend = TR_BACKEND_CUDA, .level = TR_CUDA_SM_90, .workers = 1},
    };
    if (of->placed) {
        desc.in[PLACES] = desc.in[IDS];
    }
    return desc;
}

// dy, ids, places. dy is the same in each type.
static void fill(const example *of, const tr_op_desc *desc, test_memory *in) {
    bool single = desc->in[DY].dtype == TR_F32;
    size_t bytes = single ? sizeof(float) : sizeof(uint16_t);
    uint32_t draw = 1;
    for (int64_t i = 0; i < ROWS * of->width; i++) {
        float x = drawn(&draw);
        uint16_t half = tr__bf16_of_f32(x);
        memcpy((char *)in[DY].data + (size_t)i * bytes,
               single ? (const void *)&x : &half, bytes);
    }
    for (int row = 0; row < ROWS; row++) {
        ((int32_t *)in[IDS].data)[row] = of->id(row);
        if (of->placed) {
            ((int32_t *)in[PLACES].data)[row] = row % LENGTH % 700;
        }
    }
}

// The gradients, from 1 where they are added to.
static void gradients(const example *of, const tr_kernel *kernel, tr_op_desc desc,
                      test_memory *out) {
    test_memory in[INPUTS] = {{0}};
    tr_launch launch = {.accumulate = of->adds ? 3 : 0};
    for (int i = 0; i < desc.in_count; i++) {
        in[i] = take(desc.in[i]);
        launch.in[i] = in[i].data;
    }
    fill(of, &desc, in);
    for (int i = 0; i < RESULTS; i++) {
        out[i] = take(desc.out[i]);
        launch.out[i] = out[i].data;
        for (int64_t k = 0; of->adds && k < tr_shape_count(desc.out[i].shape); k++) {
            ((float *)out[i].data)[k] = 1;
        }
    }
    test_launch(kernel, &desc, &launch);
    for (int i = 0; i < desc.in_count; i++) {
        assert_true(test_memory_intact(&in[i]));
        test_memory_give(&in[i]);
    }
    for (int i = 0; i < RESULTS; i++) {
        assert_true(test_memory_intact(&out[i]));
    }
}

static void assert_near(const test_memory *got, const test_memory *want) {
    const float *a = got->data, *b = want->data;
    assert_true(got->bytes == want->bytes);
    for (size_t i = 0; i < got->bytes / sizeof *a; i++) {
        // 4,500 terms of at most 1/2, each rounded
        if (!(fabsf(a[i] - b[i]) <= 2e-4f)) {
            fail_msg("element %zu is %.9g, not %.9g", i, (double)a[i], (double)b[i]);
        }
    }
}

static void give(test_memory *out) {
    for (int i = 0; i < RESULTS; i++) {
        test_memory_give(&out[i]);
    }
}

static void as_the_reference(void **state) {
    const example *of = *state;
    tr_op_desc desc = describe(of, of->real), plain = describe(of, TR_F32);
    test_memory want[RESULTS], got[RESULTS], descending[RESULTS];
    plain.target = (tr_target){.workers = 1};
    gradients(of, tr__op_embedding_backward.reference, plain, want);
    unsetenv("TR_CUDA_DESCENDING");
    gradients(of, tr__cuda_kernel(&desc), desc, got);
    setenv("TR_CUDA_DESCENDING", "1", 1);
    gradients(of, tr__cuda_kernel(&desc), desc, descending);
    unsetenv("TR_CUDA_DESCENDING");
    for (int i = 0; i < RESULTS; i++) {
        assert_near(&got[i], &want[i]);
        assert_memory_equal(got[i].data, descending[i].data, got[i].bytes);
    }
    give(want);
    give(got);
    give(descending);
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

#define ON(ids, width, real, placed, adds)                                             \
    {                                                                                  \
#ids, as_the_reference, NULL, NULL, &(example) {                               \
            ids, width, real, placed, adds                                             \
        }                                                                              \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        ON(all_equal, 8, TR_BF16, false, true),
        ON(all_different, 3, TR_F32, false, false),
        ON(mostly_one, 8, TR_F32, true, true),
        ON(mostly_one, 3, TR_BF16, false, false),
        ON(around_parts, 8, TR_BF16, true, false),
        ON(none, 8, TR_BF16, false, true),
    };
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
