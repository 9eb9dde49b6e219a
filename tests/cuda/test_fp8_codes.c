// Every number that a GPU rounds to 8 bits, both ways, beside the reference: in
// products with a matrix that picks rows, so that no sum hides one. Bit for bit, on the
// device for tests and on a GPU.
#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "base/rng.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// More than a tile of rows and of columns, and more than one part of a search.
enum { ROWS = 301, WIDTH = 144, FACTORS = 2, SEED = 11 };

// An op of one product, and which of its factors picks.
typedef struct way {
    const char *name;
    const tr_op *op;
    int picks;
} way;

static const way ways[] = {
    {"x along its rows", &tr__op_linear_fp8, 1},
    {"dy along its rows", &tr__op_linear_fp8_backward_input, 1},
    {"dy across them", &tr__op_linear_fp8_backward_weight, 1},
    {"x across them", &tr__op_linear_fp8_backward_weight, 0},
};

static bool is_of_weight(const way *w) {
    return w->op == &tr__op_linear_fp8_backward_weight;
}

static tr_op_desc describe(const way *w, tr_dtype real, tr_weight_layout layout) {
    const tr_linear_attr attr = {layout, TR_ACTIVATION_NONE};
    tr_tensor_desc rows = {real, TR_SHAPE2(ROWS, WIDTH)};
    tr_tensor_desc square = {real, TR_SHAPE2(WIDTH, WIDTH)};
    tr_op_desc desc = {.op = w->op,
                       .in_count = w->op == &tr__op_linear_fp8 ? 3 : FACTORS,
                       .out_count = 1,
                       .in = {rows, is_of_weight(w) ? rows : square},
                       .out = {is_of_weight(w) ? square : rows},
                       .fresh = 1,
                       .target = {.workers = 1, .level = -1}};
    desc.out[0].dtype = is_of_weight(w) ? TR_F32 : real;
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void put(test_memory *memory, tr_dtype real, int64_t i, float value) {
    if (real == TR_F32) {
        ((float *)memory->data)[i] = value;
    } else {
        ((uint16_t *)memory->data)[i] = tr__bf16_of_f32(value);
    }
}

static float get(const test_memory *memory, tr_dtype real, int64_t i) {
    return real == TR_F32 ? ((const float *)memory->data)[i]
                          : tr__bf16_to_f32(((const uint16_t *)memory->data)[i]);
}

// Of any size and sign, as bf16 has them: of each the format has some, ties of two
// codes and numbers below its least one, too.
static float drawn(int64_t i) {
    float fraction = 1 + (float)tr__draw_below(32, (uint64_t)i, SEED, 0) / 32;
    int exponent = (int)tr__draw_below(36, (uint64_t)i, SEED, 1) - 33;
    float size = ldexpf(fraction, exponent);
    return tr__draw_below(2, (uint64_t)i, SEED, 2) ? size : -size;
}

static test_memory fill(const tr_op_desc *desc, int factor, bool picks) {
    tr_dtype real = desc->in[factor].dtype;
    int64_t count = tr_shape_count(desc->in[factor].shape), width = WIDTH;
    test_memory memory = test_memory_take((size_t)tr_tensor_bytes(desc->in[factor]));
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / width,
                step = count / width / width; // every other row, or each
        bool picked = row == i % width * step + step / 2;
        put(&memory, real, i, picks ? (float)picked : drawn(i));
    }
    return memory;
}

// As the kernel of a target makes it; the caller gives it back.
static test_memory make(tr_op_desc desc, const way *w, bool reference) {
    tr_run_context context = {.rows = INT64_MAX};
    test_memory in[FACTORS];
    test_memory out = test_memory_take((size_t)tr_tensor_bytes(desc.out[0]));
    desc.target = reference ? desc.target
                            : (tr_target){.backend = TR_BACKEND_CUDA,
                                          .level = TR_CUDA_SM_90,
                                          .workers = 1};
    tr_launch launch = {.out = {out.data}, .run = &context};
    for (int i = 0; i < FACTORS; i++) {
        in[i] = fill(&desc, i, i == w->picks);
        launch.in[i] = in[i].data;
    }
    test_launch(reference ? w->op->reference : tr__cuda_kernel(&desc), &desc, &launch);
    for (int i = 0; i < FACTORS; i++) {
        assert_true(test_memory_intact(&in[i]));
        test_memory_give(&in[i]);
    }
    assert_true(test_memory_intact(&out));
    return out;
}

static void codes_are_the_references(const way *w, tr_dtype real,
                                     tr_weight_layout layout) {
    tr_op_desc desc = describe(w, real, layout), f32 = describe(w, TR_F32, layout);
    test_memory is = make(desc, w, false), ought = make(f32, w, true);
    int64_t count = tr_shape_count(desc.out[0].shape), seen = 0;
    for (int64_t i = 0; i < count; i++) {
        float a = get(&is, desc.out[0].dtype, i), b = get(&ought, TR_F32, i);
        if (a != b) {
            fail_msg("%s, in %s: number %lld is %.9g, not %.9g", w->name,
                     tr_dtype_name(real), (long long)i, (double)a, (double)b);
        }
        seen += b != 0;
    }
    assert_true(seen > count / 4); // the other ones are below the least code
    test_memory_give(&is);
    test_memory_give(&ought);
}

static void every_number_is_rounded(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int how = 0; how < 4; how++) {
            codes_are_the_references(&ways[i], how & 1 ? TR_BF16 : TR_F32,
                                     how & 2 ? TR_WEIGHT_IN_OUT : TR_WEIGHT_OUT_IN);
        }
    }
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_is_rounded)};
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
