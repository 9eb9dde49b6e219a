// Matrix products against a triple loop: sizes, orientations, bias, activation, sums.
#include "backend/cpu/matmul.h"
#include "base/half.h"
#include "base/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { GUARD = 64, SEED = 12345 };

// Pseudo-random in [-0.5, 0.5), a function of the stream and the index.
static float draw(uint32_t stream, int64_t i) {
    uint32_t x = (uint32_t)i * 2654435761u + stream * 40503u + SEED;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    return (float)(x >> 8) / (float)(1 << 24) - 0.5f;
}

static float *drawn(uint32_t stream, int64_t count) {
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = draw(stream, i);
    }
    return values;
}

// Elements from the first to the last of a matrix.
static int64_t extent(int64_t rows, int64_t row, int64_t columns, int64_t column) {
    return (rows - 1) * row + (columns - 1) * column + 1;
}

// The values as `type`; they become what the type has of them.
static void *packed(tr_dtype type, float *values, int64_t count) {
    void *out = malloc((size_t)count * sizeof *values);
    assert_non_null(out);
    memcpy(out, values, (size_t)count * sizeof *values);
    for (int64_t i = 0; type == TR_BF16 && i < count; i++) {
        ((uint16_t *)out)[i] = tr__bf16_of_f32(values[i]);
        values[i] = tr__bf16_to_f32(((uint16_t *)out)[i]);
    }
    return out;
}

static float unpacked(tr_dtype type, const void *from, int64_t i) {
    return type == TR_BF16 ? tr__bf16_to_f32(((const uint16_t *)from)[i])
                           : ((const float *)from)[i];
}

// Of every element, which all runs of the product share.
static double *sums_of(const tr_matmul_desc *d) {
    int64_t a_count = extent(d->m, d->a_row, d->k, d->a_col);
    int64_t b_count = extent(d->k, d->b_row, d->n, d->b_col);
    float *a = drawn(1, a_count), *b = drawn(2, b_count), *bias = drawn(3, d->n);
    free(packed(d->type, a, a_count)); // the values that the product gets
    free(packed(d->type, b, b_count));
    free(packed(d->type, bias, d->n));
    double *sums = calloc((size_t)(d->m * d->n), sizeof *sums);
    assert_non_null(sums);
    for (int64_t i = 0; i < d->m; i++) {
        double *row = sums + i * d->n;
        for (int64_t p = 0; p < d->k; p++) {
            double x = a[i * d->a_row + p * d->a_col];
            const float *y = b + p * d->b_row;
            for (int64_t j = 0; j < d->n; j++) {
                row[j] += x * y[j * d->b_col];
            }
        }
        for (int64_t j = 0; j < d->n; j++) {
            row[j] += d->bias ? bias[j] : 0;
            row[j] = d->relu && row[j] < 0 ? 0 : row[j];
        }
    }
    free(a);
    free(b);
    free(bias);
    return sums;
}

static void compare(const tr_matmul_desc *d, bool accumulate, int64_t i, int64_t j,
                    double got, double want, bool inside) {
    double tolerance = !inside                ? 0
                       : d->c_type == TR_BF16 ? fabs(want) / 64 + 1e-2
                                              : 1e-6 * (double)(d->k + 1);
    if (!(fabs(got - want) <= tolerance)) {
        fail_msg("%lld x %lld x %lld, A %lld %lld, B %lld %lld, C %lld, type %d to %d, "
                 "%d threads%s: element %lld, %lld is %g, not %g",
                 (long long)d->m, (long long)d->n, (long long)d->k, (long long)d->a_row,
                 (long long)d->a_col, (long long)d->b_row, (long long)d->b_col,
                 (long long)d->c_row, (int)d->type, (int)d->c_type, d->threads,
                 accumulate ? ", added" : "", (long long)i, (long long)j, got, want);
    }
}

// Elements of C between its first and its last, guards and gaps of a wider c_row: only
// [m, n] may change.
static void check_run(const tr_matmul_desc *d, tr_matmul *product, bool accumulate,
                      const double *sums) {
    int64_t c_count = (d->m - 1) * d->c_row + d->n + 2 * GUARD;
    int64_t a_count = extent(d->m, d->a_row, d->k, d->a_col);
    int64_t b_count = extent(d->k, d->b_row, d->n, d->b_col);
    float *a = drawn(1, a_count), *b = drawn(2, b_count), *bias = drawn(3, d->n);
    float *before = drawn(4, c_count);
    char *c = packed(d->c_type, before, c_count);
    void *in[] = {packed(d->type, a, a_count), packed(d->type, b, b_count),
                  packed(d->type, bias, d->n)};
    size_t bytes = tr__matmul_workspace(product), guard = GUARD;
    void *workspace = aligned_alloc(64, (bytes + 64) / 64 * 64);
    assert_non_null(workspace);
    assert_int_equal(
        tr__matmul_run(product, accumulate, in[0], in[1], d->bias ? in[2] : NULL,
                       c + guard * (d->c_type == TR_BF16 ? 2 : 4), workspace),
        TR_OK);
    for (int64_t e = 0; e < c_count; e++) {
        int64_t i = (e - GUARD) / d->c_row, j = (e - GUARD) % d->c_row;
        bool inside = e >= GUARD && e < c_count - GUARD && j < d->n;
        double want = inside && !accumulate ? 0 : before[e];
        want += inside ? sums[i * d->n + j] : 0;
        compare(d, accumulate, i, j, unpacked(d->c_type, c, e), want, inside);
    }
    void *all[] = {a, b, bias, before, c, in[0], in[1], in[2], workspace};
    for (int i = 0; i < 9; i++) {
        free(all[i]);
    }
}

static void check(const tr_matmul_desc *d) {
    tr_matmul *product = NULL;
    tr_error err = {0};
    if (tr__matmul_create(d, &product, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    double *sums = sums_of(d);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        if (accumulate ? d->accumulate : d->fresh) {
            check_run(d, product, accumulate, sums);
            check_run(d, product, accumulate, sums); // a product runs more than once
        }
    }
    free(sums);
    tr__matmul_destroy(product);
}

// variant: bits for A transposed, B transposed, bias, activation, a wider row of C.
static tr_matmul_desc variant_of(int64_t m, int64_t n, int64_t k, int variant) {
    bool a_transposed = variant & 1, b_transposed = variant & 2;
    return (tr_matmul_desc){
        .m = m,
        .n = n,
        .k = k,
        .a_row = a_transposed ? 1 : k,
        .a_col = a_transposed ? m : 1,
        .b_row = b_transposed ? 1 : n,
        .b_col = b_transposed ? k : 1,
        .c_row = variant & 16 ? n + 5 : n,
        .bias = variant & 4,
        .relu = variant & 8,
        .fresh = true,
        .accumulate = true,
        .threads = 2,
    };
}

static void odd_sizes(void **state) {
    (void)state;
    const int64_t sizes[] = {1, 3, 17, 63};
    int variant = 0;
    for (int m = 0; m < 4; m++) {
        for (int n = 0; n < 4; n++) {
            for (int k = 0; k < 4; k++) { // all variants come round
                for (int v = 0; v < 4; v++) {
                    tr_matmul_desc d = variant_of(sizes[m], sizes[n], sizes[k],
                                                  (variant++ + v * 9) % 32);
                    check(&d);
                }
            }
        }
    }
}

static void every_variant(void **state) {
    (void)state;
    for (int variant = 0; variant < 32; variant++) {
        tr_matmul_desc d = variant_of(37, 70, 130, variant);
        check(&d);
    }
}

static void large_products(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        tr_matmul_desc d = variant_of(257, 259, 263, variant);
        check(&d);
    }
    tr_matmul_desc d = variant_of(257, 259, 263, 16);
    check(&d);
    d = variant_of(1, 4099, 4097, 1); // a vector with gaps
    d.a_col = 2;
    check(&d);
    d = variant_of(4099, 1, 4097, 16);
    check(&d);
}

// Blocks along k, and pairs of which the last one has a single number.
static void large_products_of_bf16(void **state) {
    (void)state;
    if (!tr__matmul_has(TR_BF16)) {
        skip();
    }
    for (int variant = 0; variant < 16; variant++) {
        tr_matmul_desc d = variant_of(67, 149, 1601 - variant % 2, variant);
        d.type = TR_BF16;
        d.c_type = variant & 8 ? TR_F32 : TR_BF16;
        check(&d);
    }
}

// Rows and columns further apart than they are long, also where there is only one: a
// side of length 1 leaves the library to guess which way round a matrix is stored.
static void check_gaps(int64_t m, int64_t n, int64_t k, tr_dtype type,
                       tr_dtype c_type) {
    for (int variant = 0; variant < 32; variant++) {
        tr_matmul_desc d = variant_of(m, n, k, variant);
        *(variant & 1 ? &d.a_col : &d.a_row) *= 2;
        *(variant & 2 ? &d.b_col : &d.b_row) += 3;
        d.type = type;
        d.c_type = c_type;
        d.threads = 1 + variant % 3;
        check(&d);
    }
}

static void gaps(void **state) {
    (void)state;
    const int64_t sizes[] = {1, 5, 36};
    for (int i = 0; i < 27; i++) {
        int64_t m = sizes[i % 3], n = sizes[i / 3 % 3], k = sizes[i / 9];
        check_gaps(m, n, k, TR_F32, TR_F32);
        if (tr__matmul_has(TR_BF16)) {
            check_gaps(m, n, k, TR_BF16, TR_F32);
            check_gaps(m, n, k, TR_BF16, TR_BF16);
        }
    }
}

static void threads_are_as_described(void **state) {
    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        tr_matmul_desc d = variant_of(65, 129, 33, 2);
        d.threads = threads;
        check(&d);
    }
}

static void wrong_descriptions_are_refused(void **state) {
    (void)state;
    tr_matmul_desc good = variant_of(3, 4, 5, 0);
    tr_matmul_desc bad[6];
    for (int i = 0; i < 6; i++) {
        bad[i] = good;
    }
    bad[0].m = 0;
    bad[1].k = -1;
    bad[2].a_col = 2;
    bad[3].c_row = 3;
    bad[4].threads = 0;
    bad[5].fresh = bad[5].accumulate = false;
    for (int i = 0; i < 6; i++) {
        tr_matmul *product = NULL;
        tr_error err = {0};
        assert_int_equal(tr__matmul_create(&bad[i], &product, &err), TR_INTERNAL);
        assert_null(product);
        assert_non_null(strstr(err.message, "refused the matrix product"));
    }
    tr__matmul_destroy(NULL);
    assert_int_equal(tr__matmul_workspace(NULL), 0);
}

static void absurd_sizes_are_refused(void **state) {
    (void)state;
    for (int shift = 31; shift < 62; shift += 6) {
        tr_matmul_desc d = variant_of(3, 4, 5, 0);
        tr_matmul *product = NULL;
        tr_error err = {0};
        d.m = INT64_C(1) << shift;
        assert_int_equal(tr__matmul_create(&d, &product, &err), TR_USAGE);
        assert_null(product);
        assert_non_null(strstr(err.message, "smaller"));
    }
}

static void no_memory_is_reported(void **state) {
    (void)state;
    tr_matmul_desc d = variant_of(3, 4, 5, 0);
    tr_matmul *product = NULL;
    tr_error err = {0};
    tr__memory_fail_at(1);
    assert_int_equal(tr__matmul_create(&d, &product, &err), TR_MEMORY);
    tr__memory_fail_at(0);
    assert_null(product);
}

#ifndef __SANITIZE_ADDRESS__ // which cannot live with a limit of its address space
static void fill_memory(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
    for (size_t bytes = (size_t)1 << 20; bytes >= 32; bytes /= 2) {
        while (malloc(bytes)) {
        }
    }
}

// What a product touches is there before it runs.
static void a_run_takes_no_memory(void **state) {
    (void)state;
    tr_matmul_desc d = variant_of(512, 512, 512, 0);
    tr_matmul *product = NULL;
    tr_error err = {0};
    int status = 0;
    d.threads = 1;
    float *a = drawn(1, d.m * d.k), *b = drawn(2, d.k * d.n), *c = drawn(3, d.m * d.n);
    assert_int_equal(tr__matmul_create(&d, &product, &err), TR_OK);
    void *workspace = aligned_alloc(64, (tr__matmul_workspace(product) + 63) / 64 * 64);
    assert_non_null(workspace);
    memset(workspace, 0, tr__matmul_workspace(product)); // its pages are there
    pid_t child = fork();
    if (child == 0) {
        fill_memory();
        _exit((int)tr__matmul_run(product, false, a, b, NULL, c, workspace));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), TR_OK);
    tr__matmul_destroy(product);
    free(a);
    free(b);
    free(c);
    free(workspace);
}
#endif

// No result depends on how many rows, columns or threads there are, nor on how the
// operands are stored.
static float *multiplied(const tr_matmul_desc *d, const float *a, const float *b) {
    tr_matmul *product = NULL;
    assert_int_equal(tr__matmul_create(d, &product, NULL), TR_OK);
    void *workspace = aligned_alloc(64, (tr__matmul_workspace(product) + 64) / 64 * 64);
    float *c = malloc((size_t)(d->m * d->n) * sizeof *c);
    assert_true(workspace && c);
    memset(workspace, 0xff, tr__matmul_workspace(product)); // NaN in every type
    assert_int_equal(tr__matmul_run(product, false, a, b, NULL, c, workspace), TR_OK);
    tr__matmul_destroy(product);
    free(workspace);
    return c;
}

static float *transposed(const float *from, int64_t rows, int64_t columns) {
    float *to = malloc((size_t)(rows * columns) * sizeof *to);
    assert_non_null(to);
    for (int64_t i = 0; i < rows * columns; i++) {
        to[i % columns * rows + i / columns] = from[i];
    }
    return to;
}

static void bits_depend_on_row_and_column_alone(void **state) {
    (void)state;
    enum { M = 531, N = 301, K = 801 };
    float *a[] = {drawn(1, M * K), NULL}, *b[] = {drawn(2, K * N), NULL};
    a[1] = transposed(a[0], M, K);
    b[1] = transposed(b[0], K, N);
    tr_matmul_desc whole = variant_of(M, N, K, 0);
    whole.accumulate = false;
    float *c = multiplied(&whole, a[0], b[0]);
    const int64_t rows[] = {1, 7, 8, 100, M}, columns[] = {1, 15, 48, 97, N};
    for (int i = 0; i < 20; i++) {
        tr_matmul_desc d = whole;
        d.m = rows[i % 5];
        d.n = d.c_row = columns[(i + i / 5) % 5];
        d.a_row = i & 1 ? 1 : K;
        d.a_col = i & 1 ? M : 1;
        d.b_row = i & 2 ? 1 : N;
        d.b_col = i & 2 ? K : 1;
        d.threads = 1 + i % 7;
        float *part = multiplied(&d, a[i & 1], b[i >> 1 & 1]);
        for (int64_t e = 0; e < d.m * d.n; e++) {
            assert_true(part[e] == c[e / d.n * N + e % d.n]);
        }
        free(part);
    }
    void *all[] = {a[0], a[1], b[0], b[1], c};
    for (int i = 0; i < 5; i++) {
        free(all[i]);
    }
}

// Halves, or floats, of which those behind the first `count` are NaN.
static void *followed(tr_dtype type, uint32_t stream, int64_t count) {
    float *values = drawn(stream, count + GUARD);
    for (int64_t i = count; i < count + GUARD; i++) {
        values[i] = NAN;
    }
    void *out = packed(type, values, count + GUARD);
    free(values);
    return out;
}

// A product reads its operands alone: not even to multiply by 0 does it read what lies
// behind them, or what was in its workspace.
static void the_rest_of_memory_is_not_read(void **state) {
    (void)state;
    static const int64_t depths[] = {1, 2, 3, 6, 17, 31, 34, 63, 64, 66, 130, 257};
    for (int i = 0; i < 96; i++) {
        int64_t k = depths[i % 12];
        tr_matmul_desc d = variant_of(51, 65, k, i / 12 % 4);
        d.type = i < 48 ? TR_BF16 : TR_F32;
        d.accumulate = false;
        if (!tr__matmul_has(d.type)) {
            continue;
        }
        float *a = followed(d.type, 1, d.m * k), *b = followed(d.type, 2, k * d.n);
        float *c = multiplied(&d, a, b);
        for (int64_t e = 0; e < d.m * d.n; e++) {
            assert_true(isfinite(c[e]));
        }
        free(a);
        free(b);
        free(c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(a_run_takes_no_memory), // forks: no threads yet
#endif
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(every_variant),
        cmocka_unit_test(large_products),
        cmocka_unit_test(large_products_of_bf16),
        cmocka_unit_test(gaps),
        cmocka_unit_test(threads_are_as_described),
        cmocka_unit_test(bits_depend_on_row_and_column_alone),
        cmocka_unit_test(the_rest_of_memory_is_not_read),
        cmocka_unit_test(wrong_descriptions_are_refused),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(no_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
