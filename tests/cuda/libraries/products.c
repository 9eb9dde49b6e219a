// What cuBLASLt is told of a product (driver_cublas.c), by a stand-in that is as strict
// as the library.
#include "backend/cuda/driver_cublas.h"
#include "base/half.h"
#include "cuda/libraries/cublas_lt.h"

#include <cublasLt.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 5, N = 7, K = 9, MORE = 3 }; // MORE: elements between rows
enum { WIDE = 48, ROOM = 1 << 16, SCRATCH = 512 };

static struct {
    TR_ALIGNAS(256) char a[ROOM], b[ROOM], c[ROOM], scratch[ROOM], bias[ROOM];
} memory;

static void put(tr_dtype type, void *x, int64_t i, float value) {
    if (type == TR_F32) {
        ((float *)x)[i] = value;
    } else {
        ((uint16_t *)x)[i] =
            type == TR_BF16 ? tr__bf16_of_f32(value) : tr__f16_of_f32(value);
    }
}

static float get(tr_dtype type, const void *x, int64_t i) {
    return type == TR_F32    ? ((const float *)x)[i]
           : type == TR_BF16 ? tr__bf16_to_f32(((const uint16_t *)x)[i])
                             : tr__f16_to_f32(((const uint16_t *)x)[i]);
}

// Small whole numbers, which every type and every order of sums has exactly.
static float value_of(int64_t row, int64_t column, int which) {
    return (float)((row * 3 + column * 5 + which) % 7 - 3);
}

static void fill(tr_dtype type, void *x, int64_t rows, int64_t columns, int64_t row,
                 int which) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            put(type, x, i * row + j, value_of(i, j, which));
        }
    }
}

static float factor(int64_t row, int64_t column, bool transposed, int which) {
    return transposed ? value_of(column, row, which) : value_of(row, column, which);
}

static float expected(const tr_cuda_product *p, int64_t row, int64_t column) {
    float sum = p->beta * value_of(row, column, 2);
    for (int64_t k = 0; k < p->k; k++) {
        sum +=
            factor(row, k, p->a_transposed, 0) * factor(k, column, p->b_transposed, 1);
    }
    return sum + (p->bias ? value_of(0, column, 3) : 0);
}

// A product of the memory's matrices, whose rows have room behind them.
static tr_cuda_product product_of(tr_dtype real, tr_dtype c_real, int how) {
    bool a_transposed = how & 1, b_transposed = how & 2;
    return (tr_cuda_product){.m = M,
                             .n = N,
                             .k = K,
                             .a = memory.a,
                             .b = memory.b,
                             .c = memory.c,
                             .real = real,
                             .c_real = c_real,
                             .a_row = (a_transposed ? M : K) + MORE,
                             .b_row = (b_transposed ? K : N) + MORE,
                             .c_row = N + MORE,
                             .a_transposed = a_transposed,
                             .b_transposed = b_transposed,
                             .beta = how & 4 ? 1 : 0,
                             .scratch = memory.scratch,
                             .scratch_bytes = SCRATCH};
}

static void fill_operands(const tr_cuda_product *p) {
    fill(p->real, (void *)p->a, p->a_transposed ? K : M, p->a_transposed ? M : K,
         p->a_row, 0);
    fill(p->real, (void *)p->b, p->b_transposed ? N : K, p->b_transposed ? K : N,
         p->b_row, 1);
    fill(p->c_real, p->c, M, N, p->c_row, 2);
    if (p->bias) {
        fill(p->c_real, (void *)p->bias, 1, N, N, 3);
    }
}

static void assert_product(const tr_cuda_product *p) {
    fill_operands(p);
    assert_int_equal(tr__cublas_multiply(p, &memory), 0);
    assert_ptr_equal(lt_look()->stream, &memory);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            assert_float_equal(get(p->c_real, p->c, i * p->c_row + j),
                               expected(p, i, j), 0);
        }
    }
}

// All types, transposed or not, written or added to.
static void products_are_by_rows(void **state) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16};
    (void)state;
    for (int t = 0; t < 3; t++) {
        for (int how = 0; how < 8; how++) {
            tr_cuda_product same = product_of(types[t], types[t], how);
            tr_cuda_product wide = product_of(types[t], TR_F32, how);
            assert_product(&same);
            assert_product(&wide);
        }
    }
}

// A bias for each column, of the result's type. Products without one are asked for
// apart.
static void biases_are_added_to_rows(void **state) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16};
    (void)state;
    for (int t = 0; t < 3; t++) {
        for (int how = 0; how < 8; how++) {
            tr_cuda_product p = product_of(types[t], types[t], how);
            assert_product(&p);
            int asked = lt_look()->asked;
            p.bias = memory.bias;
            assert_product(&p);
            assert_product(&p);
            assert_int_equal(lt_look()->asked, asked + 1);
        }
    }
}

static float sum_expected(const tr_cuda_product *p, int64_t i) {
    float sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        sum += p->sums_b ? factor(k, i, p->b_transposed, 1)
                         : factor(i, k, p->a_transposed, 0);
    }
    return sum;
}

// Of either factor, beside the product, of the result's type; each is another choice.
static void factors_are_summed(void **state) {
    static const tr_dtype types[] = {TR_BF16, TR_F16};
    (void)state;
    for (int t = 0; t < 2; t++) {
        for (int how = 0; how < 16; how++) {
            tr_cuda_product p = product_of(types[t], TR_F32, how & 7);
            p.sums = memory.bias;
            p.sums_b = how & 8;
            int asked = lt_look()->asked;
            assert_product(&p);
            assert_int_equal(lt_look()->asked, asked + 1);
            for (int64_t i = 0; i < (p.sums_b ? N : M); i++) {
                assert_float_equal(get(TR_F32, p.sums, i), sum_expected(&p, i), 0);
            }
        }
    }
}

// The library may have no sums beside a product: then nothing is done.
static void sums_may_be_lacking(void **state) {
    tr_cuda_product p = product_of(TR_BF16, TR_F32, 0);
    (void)state;
    p.c_row = N + 2;
    p.sums = memory.bias;
    lt_lack_sums(true);
    int products = lt_look()->products;
    assert_int_equal(tr__cublas_multiply(&p, NULL), TR_CUDA_BARE);
    assert_int_equal(lt_look()->products, products);
    lt_lack_sums(false);
    p.sums = NULL;
    assert_product(&p);
}

// The choice counts on the alignment of the bias that it was asked for with: it is
// another where that is less, and the same wherever a plan places one.
static void biases_choose_by_alignment_alone(void **state) {
    tr_cuda_product p = product_of(TR_BF16, TR_BF16, 0);
    (void)state;
    p.c_row = N + 1;
    p.bias = memory.bias + 256;
    assert_product(&p);
    int asked = lt_look()->asked;
    for (int at = 64; at < 256; at += 64) {
        p.bias = memory.bias + at;
        assert_product(&p);
    }
    assert_int_equal(lt_look()->asked, asked);
    p.bias = memory.bias + 4;
    assert_product(&p);
    assert_int_equal(lt_look()->asked, asked + 1);
}

// Sums that are cut into parts are added in f32, in one order.
static void parts_of_sums_stay_f32(void **state) {
    tr_cuda_product p = product_of(TR_BF16, TR_BF16, 0);
    (void)state;
    p.c_row = N;
    assert_product(&p);
    assert_int_equal(lt_look()->schemes, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

// A buffer of a plan begins at any multiple of 64: wherever it lies, it is computed in
// the same way. What is aligned to less is computed in another.
static void places_choose_nothing(void **state) {
    tr_cuda_product p = product_of(TR_F32, TR_F32, 1);
    (void)state;
    assert_product(&p);
    int asked = lt_look()->asked;
    for (int at = 64; at < 256; at += 64) {
        p.a = memory.a + at;
        p.b = memory.b + 2 * at;
        p.c = memory.c + 3 * at;
        assert_product(&p);
    }
    assert_int_equal(lt_look()->asked, asked);
    p.a = memory.a + 4;
    assert_product(&p);
    assert_int_equal(lt_look()->asked, asked + 1);
}

// A model has some hundred products, and each is asked for once.
static void many_products_are_asked_for_once(void **state) {
    enum { PRODUCTS = 300 };
    tr_cuda_product p = product_of(TR_BF16, TR_BF16, 0);
    (void)state;
    p.m = p.n = p.k = 1;
    int asked = lt_look()->asked;
    for (int i = 0; i < 2 * PRODUCTS; i++) {
        p.c_row = 100 + i % PRODUCTS;
        assert_int_equal(tr__cublas_multiply(&p, NULL), 0);
    }
    assert_int_equal(lt_look()->asked, asked + PRODUCTS);
}

// Scales go with their factors.
static void products_of_8_bits(void **state) {
    static const TR_ALIGNAS(16) float scales[] = {0.5f, 4, 0, 0, 4};
    tr_cuda_product p = {.m = WIDE,
                         .n = 16,
                         .k = 32,
                         .a = memory.a,
                         .b = memory.b,
                         .c = memory.c,
                         .c_real = TR_F32,
                         .a_row = 32,
                         .b_row = 32,
                         .c_row = 16,
                         .b_transposed = true,
                         .fp8 = true,
                         .a_format = TR_FP8_E5M2,
                         .b_format = TR_FP8_E4M3,
                         .a_scale = &scales[0],
                         .b_scale = &scales[4],
                         .scratch = memory.scratch,
                         .scratch_bytes = SCRATCH};
    (void)state;
    for (int64_t i = 0; i < WIDE * 32; i++) {
        memory.a[i] = (char)tr__fp8_of_f32(TR_FP8_E5M2, value_of(i / 32, i % 32, 0));
        memory.b[i] = (char)tr__fp8_of_f32(TR_FP8_E4M3, value_of(i / 32, i % 32, 1));
    }
    assert_int_equal(tr__cublas_multiply(&p, NULL), 0);
    for (int64_t i = 0; i < WIDE; i++) {
        for (int64_t j = 0; j < 16; j++) {
            float sum = 0;
            for (int64_t k = 0; k < 32; k++) {
                sum += value_of(i, k, 0) * value_of(j, k, 1);
            }
            assert_float_equal(((float *)(void *)memory.c)[i * 16 + j], 2 * sum, 0);
        }
    }
    int asked = lt_look()->asked;
    assert_false(lt_look()->fast);
    p.fast = true;
    assert_int_equal(tr__cublas_multiply(&p, NULL), 0);
    assert_true(lt_look()->fast);
    assert_int_equal(lt_look()->asked, ++asked);
    p.fast = false;
    p.bias = memory.bias; // of f32, which products of 8 bits do not add
    assert_int_equal(tr__cublas_multiply(&p, NULL), TR_CUDA_BARE);
    assert_int_equal(lt_look()->asked, asked);
    p.bias = NULL;
    p.c = memory.c + 4; // not at a multiple of 16
    int error = tr__cublas_multiply(&p, NULL);
    assert_string_equal(
        tr__cublas_error_text(error),
        "CUBLAS_STATUS_NOT_SUPPORTED by cublasLtMatmulAlgoGetHeuristic: a product of m "
        "48, n 16, k 32: a is E5M2 in rows of 32, b is E4M3, transposed, in rows of "
        "32, c is F32 in rows of 16; with 512 bytes of scratch");
    p.c = memory.c;
    p.b_scale = &scales[1];
    p.n = 8; // another choice
    assert_true(tr__cublas_multiply(&p, NULL) > TR_CUBLAS_ERROR);
    p.m = 16; // the first one is told
    error = tr__cublas_multiply(&p, NULL);
    assert_non_null(strstr(tr__cublas_error_text(error), "m 48, n 8, k 32"));
}

// By which algorithm, of the last product, once.
static void products_tell_their_algorithm(void **state) {
    tr_cuda_product p = product_of(TR_F32, TR_F32, 0);
    char said[128];
    (void)state;
    assert_product(&p);
    tr__cublas_say(said, sizeof said);
    assert_string_equal(said, "algorithm 1, tile 2, stages 7, split 3, cluster 9");
    tr__cublas_say(said, sizeof said);
    assert_string_equal(said, "");
}

// Work that does not fit in what the library is lent is refused, and nothing else is.
static void a_workspace_begins_at_256_bytes(void **state) {
    tr_cuda_product p = product_of(TR_F32, TR_F32, 0);
    (void)state;
    p.scratch = memory.scratch + 64;
    assert_int_equal(tr__cublas_multiply(&p, NULL),
                     TR_CUBLAS_ERROR + CUBLAS_STATUS_INVALID_VALUE);
    p.scratch = NULL;
    p.scratch_bytes = 0;
    assert_product(&p);
}

static int open_library(void **state) {
    (void)state;
    return tr__cublas_open();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_by_rows),
        cmocka_unit_test(biases_are_added_to_rows),
        cmocka_unit_test(factors_are_summed),
        cmocka_unit_test(sums_may_be_lacking),
        cmocka_unit_test(biases_choose_by_alignment_alone),
        cmocka_unit_test(parts_of_sums_stay_f32),
        cmocka_unit_test(places_choose_nothing),
        cmocka_unit_test(many_products_are_asked_for_once),
        cmocka_unit_test(products_of_8_bits),
        cmocka_unit_test(products_tell_their_algorithm),
        cmocka_unit_test(a_workspace_begins_at_256_bytes),
    };
    return cmocka_run_group_tests(tests, open_library, NULL);
}
