// Products of codes of 8 bits, each kind alone, beside sums that are exact: on the
// device for tests, and on a GPU, where a line tells what cuBLASLt does with each.
#include "backend/backend.h"
#include "backend/cuda/driver.h"
#include "base/half.h"
#include "ops/guarded.h"
#include "ops/launch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// What is tried of a product of m, n and k.
typedef struct kind {
    const char *name;
    int64_t m, n, k;
    tr_fp8 a, b;
    tr_dtype c;
    bool adds, biased, fast;
    int64_t scratch;
} kind;

enum { NONE = 0, SOME = 4 << 20, MANY = 32 << 20, SUMS_TRIED = 64 };

#define PLAIN  TR_FP8_E4M3, TR_FP8_E4M3
#define SLOPES TR_FP8_E5M2, TR_FP8_E4M3
#define TURNED TR_FP8_E4M3, TR_FP8_E5M2

static const kind kinds[] = {
    {"of bf16", 64, 64, 64, PLAIN, TR_BF16, false, false, false, NONE},
    {"of f32", 64, 64, 64, PLAIN, TR_F32, false, false, false, NONE},
    {"with a workspace", 64, 64, 64, PLAIN, TR_BF16, false, false, false, MANY},
    {"summed fast", 64, 64, 64, PLAIN, TR_BF16, false, false, true, MANY},
    {"summed fast, of f32", 64, 64, 64, PLAIN, TR_F32, false, false, true, MANY},
    {"with a bias", 64, 64, 64, PLAIN, TR_BF16, false, true, false, MANY},
    {"with a bias, summed fast", 64, 64, 64, PLAIN, TR_BF16, false, true, true, MANY},
    {"with a bias, added to", 64, 64, 64, PLAIN, TR_BF16, true, true, false, MANY},
    {"added to", 64, 64, 64, PLAIN, TR_BF16, true, false, false, MANY},
    {"added to, of f32", 64, 64, 64, SLOPES, TR_F32, true, false, false, MANY},
    {"of E5M2 by E4M3", 64, 64, 64, SLOPES, TR_BF16, false, false, false, MANY},
    {"of E5M2 by E4M3, of f32", 64, 64, 64, SLOPES, TR_F32, false, false, false, MANY},
    {"of E4M3 by E5M2", 64, 64, 64, TURNED, TR_BF16, false, false, false, MANY},
    {"of E4M3 by E5M2, of f32", 64, 64, 64, TURNED, TR_F32, true, false, false, MANY},
    {"of 16", 16, 16, 16, PLAIN, TR_BF16, false, false, false, NONE},
    {"of 16, of f32", 16, 16, 16, PLAIN, TR_F32, false, false, false, NONE},
    {"of 1 row", 1, 32, 48, PLAIN, TR_BF16, false, false, false, SOME},
    {"of 17 rows", 17, 32, 48, PLAIN, TR_BF16, false, false, false, SOME},
    {"of 17 rows, of f32", 17, 32, 48, PLAIN, TR_F32, false, false, false, SOME},
    {"of 66 rows and a bias", 66, 96, 80, PLAIN, TR_BF16, false, true, false, SOME},
    {"of 66 rows, of slopes", 66, 80, 96, SLOPES, TR_BF16, false, false, false, SOME},
    {"of a weight's slopes", 96, 80, 80, SLOPES, TR_F32, true, false, false, SOME},
    {"of 257 rows", 257, 144, 272, PLAIN, TR_BF16, false, true, true, SOME},
    {"of a long sum", 64, 32, 8208, TURNED, TR_F32, true, false, false, MANY},
};

// ---- operands

typedef struct operands {
    test_memory a, b, c, bias, scratch;
    test_memory scales; // two, 16 bytes apart
} operands;

// Small whole numbers, which both formats have and f32 adds exactly.
static float value_of(int64_t row, int64_t column, int which) {
    return (float)((row * 3 + column * 5 + which + row * column) % 7 - 3);
}

static test_memory codes(tr_fp8 format, int64_t rows, int64_t row, int which) {
    test_memory memory = test_memory_take((size_t)(rows * row));
    for (int64_t i = 0; i < rows * row; i++) {
        ((uint8_t *)memory.data)[i] =
            tr__fp8_of_f32(format, value_of(i / row, i % row, which));
    }
    return memory;
}

static void put(tr_dtype type, void *x, int64_t i, float value) {
    if (type == TR_F32) {
        ((float *)x)[i] = value;
    } else {
        ((uint16_t *)x)[i] = tr__bf16_of_f32(value);
    }
}

static float get(tr_dtype type, const void *x, int64_t i) {
    return type == TR_F32 ? ((const float *)x)[i]
                          : tr__bf16_to_f32(((const uint16_t *)x)[i]);
}

static test_memory reals(tr_dtype type, int64_t rows, int64_t row, int which) {
    test_memory memory = test_memory_take((size_t)(rows * row) * tr_dtype_bytes(type));
    for (int64_t i = 0; i < rows * row; i++) {
        put(type, memory.data, i, value_of(i / row, i % row, which));
    }
    return memory;
}

static operands open_operands(const kind *of) {
    operands o = {.a = codes(of->a, of->m, of->k, 0),
                  .b = codes(of->b, of->n, of->k, 1),
                  .c = reals(of->c, of->m, of->n, 2),
                  .bias = reals(of->c, 1, of->n, 3),
                  .scratch = test_memory_take((size_t)of->scratch),
                  .scales = test_memory_take(32)};
    ((float *)o.scales.data)[0] = 0.5f;
    ((float *)o.scales.data)[4] = 4;
    return o;
}

static bool close_operands(operands *o) {
    test_memory *all[] = {&o->a, &o->b, &o->c, &o->bias, &o->scratch, &o->scales};
    bool intact = true;
    for (int i = 0; i < 6; i++) {
        intact = intact && test_memory_intact(all[i]);
        test_memory_give(all[i]);
    }
    return intact;
}

static tr_cuda_product product_of(const kind *of, const operands *o, bool biased) {
    const float *scales = o->scales.data;
    return (tr_cuda_product){.m = of->m,
                             .n = of->n,
                             .k = of->k,
                             .a = o->a.data,
                             .b = o->b.data,
                             .c = o->c.data,
                             .c_real = of->c,
                             .a_row = of->k,
                             .b_row = of->k,
                             .c_row = of->n,
                             .b_transposed = true,
                             .beta = of->adds ? 1 : 0,
                             .bias = biased ? o->bias.data : NULL,
                             .scratch = o->scratch.data,
                             .scratch_bytes = of->scratch,
                             .fp8 = true,
                             .a_format = of->a,
                             .b_format = of->b,
                             .a_scale = &scales[0],
                             .b_scale = &scales[4],
                             .fast = of->fast};
}

// ---- results

static float expected(const kind *of, int64_t i, int64_t j, bool biased) {
    float sum = 0;
    for (int64_t k = 0; k < of->k; k++) {
        sum += value_of(i, k, 0) * value_of(j, k, 1);
    }
    sum *= 2; // both scales
    sum += of->adds ? value_of(i, j, 2) : 0;
    return sum + (biased ? value_of(0, j, 3) : 0);
}

// The largest error, in units of what rounding to the result's type may do; sums that
// stay in tensor cores are kept with some 14 bits (DeepSeek-V3, arXiv 2412.19437, 3.3).
static double error_of(const kind *of, const operands *o, bool biased) {
    double most = 0, step = of->c == TR_BF16 ? 0x1p-8 : of->fast ? 0x1p-10 : 0;
    int64_t rows = of->m < SUMS_TRIED ? of->m : SUMS_TRIED;
    for (int64_t i = of->m - rows; i < of->m; i++) {
        for (int64_t j = 0; j < of->n; j++) {
            double ought = expected(of, i, j, biased);
            double off = fabs(get(of->c, o->c.data, i * of->n + j) - ought);
            double allowed = step * fabs(ought);
            double error = off <= allowed ? 0 : off / (allowed > 0 ? allowed : 0x1p-8);
            most = !(error <= most) ? error : most;
        }
    }
    return most;
}

static int wait(void) {
    return tr__cuda_driver()->stream_wait(NULL);
}

// Returns true if it is computed, and right.
static bool try_kind(const kind *of) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    operands o = open_operands(of);
    tr_cuda_product product = product_of(of, &o, of->biased);
    int error = driver->multiply(&product, NULL);
    bool bare = error == TR_CUDA_BARE, biased = of->biased && !bare;
    if (bare) {
        product = product_of(of, &o, false);
        error = driver->multiply(&product, NULL);
    }
    const char *refused = error != 0 ? driver->error_text(error) : NULL;
    error = error != 0 ? error : wait();
    double off = error == 0 ? error_of(of, &o, biased) : 0;
    char how[128] = "";
    if (off > 0) {
        snprintf(how, sizeof how, "by %.3g", off);
    } else if (error == 0 && driver->say_product) {
        driver->say_product(how, sizeof how);
    }
    bool good = error == 0 && off == 0 && close_operands(&o);
    print_message("fp8 %s%s: %s%s%s\n", of->name, bare ? " (which is not added)" : "",
                  refused      ? refused
                  : error != 0 ? driver->error_text(error)
                  : off > 0    ? "WRONG "
                               : "right ",
                  how, good ? "" : " FAILED");
    return good;
}

static void kinds_are_right(void **state) {
    int failed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        failed += !try_kind(&kinds[i]);
    }
    assert_int_equal(failed, 0);
}

// Why a scale has a place of its own.
static void scales_begin_at_16_bytes(void **state) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    operands o = open_operands(&kinds[0]);
    tr_cuda_product product = product_of(&kinds[0], &o, false);
    (void)state;
    product.n -= 16; // a choice of its own
    product.b_scale = (const float *)o.scales.data + 1;
    int error = driver->multiply(&product, NULL);
    print_message("fp8 with a scale at 4: %s\n",
                  error != 0 ? driver->error_text(error) : "is taken");
    assert_int_equal(wait(), 0);
    assert_int_not_equal(error, 0);
    assert_true(close_operands(&o));
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_are_right),
                                       cmocka_unit_test(scales_begin_at_16_bytes)};
    return cmocka_run_group_tests(tests, open_backend, NULL);
}
