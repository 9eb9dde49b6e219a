// Muon's ops: what is orthogonal of a matrix, against Newton-Schulz iterations in
// double; and an update by hand, whole and in parts. Labels: isa
#include "ops/flat/orthogonal/cpu_newton.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/launch.h"
#include "ops/optimizers/muon/muon.h"
#include "ops/shared_matrix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float draw(uint32_t *seed) {
    *seed = *seed * 1664525U + 1013904223U;
    return (float)(*seed >> 8) / (float)(1 << 23) - 1;
}

// c [m, n] = a [m, k] b [k, n], or b transposed.
static void product(const double *a, const double *b, bool turned, int m, int n, int k,
                    double *c) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k; p++) {
                sum += a[i * k + p] * (turned ? b[j * k + p] : b[p * n + j]);
            }
            c[i * n + j] = sum;
        }
    }
}

// x: [rows, columns], becomes what is orthogonal of it.
static void iterate(const tr_orthogonal *how, double *x, int rows, int columns) {
    int r = rows < columns ? rows : columns, c = rows < columns ? columns : rows;
    double *t = calloc((size_t)(r * c), sizeof *t), *y = calloc((size_t)(r * c), 8);
    double *a = calloc((size_t)(r * r), sizeof *a), *b = calloc((size_t)(r * r), 8);
    double sum = 0;
    assert_true(t && y && a && b);
    for (int i = 0; i < r * c; i++) {
        t[i] = rows > columns ? x[i % c * columns + i / c] : x[i];
        sum += t[i] * t[i];
    }
    for (int i = 0; i < r * c; i++) {
        t[i] /= fmax(sqrt(sum), how->eps);
    }
    for (int s = 0; s < how->steps; s++) {
        product(t, t, true, r, r, c, a);
        product(a, a, false, r, r, r, b);
        for (int i = 0; i < r * r; i++) {
            b[i] = how->b * a[i] + how->c * b[i];
        }
        product(b, t, false, r, c, r, y);
        for (int i = 0; i < r * c; i++) {
            t[i] = how->a * t[i] + y[i];
        }
    }
    for (int i = 0; i < r * c; i++) {
        x[rows > columns ? i % c * columns + i / c : i] = t[i];
    }
    free(t);
    free(y);
    free(a);
    free(b);
}

static tr_hyper hyper_of(tr_dtype type, bool gram) {
    tr_hyper hyper = {.lr = 0.02, .weight_decay = 0.1};
    tr_muon_hyper own = {
        .momentum = 0.9, .steps = 5, .nesterov = true, .gram = gram, .type = type};
    memcpy(hyper.own, &own, sizeof own);
    return hyper;
}

static void *memory_of(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    return memory;
}

static void check_matrix(int rows, int columns, tr_dtype type, bool gram,
                         double tolerance) {
    tr_hyper hyper = hyper_of(type, gram);
    tr_orthogonal how = tr__optimizer_muon.matrices->orthogonal(&hyper, rows, columns);
    size_t count = (size_t)(rows * columns);
    float *x = malloc(count * sizeof *x);
    double *want = malloc(count * sizeof *want);
    uint32_t seed = 3;
    assert_true(x && want);
    for (size_t i = 0; i < count; i++) {
        x[i] = draw(&seed) * 1e-3F;
        want[i] = x[i];
    }
    iterate(&how, want, rows, columns);
    for (int threads = 1; threads <= 2; threads++) {
        void *work = memory_of(tr__newton_workspace(rows, columns, threads));
        const float *got = tr__newton(&how, x, rows, columns, threads, work);
        double off = 0, norm = 0;
        for (size_t i = 0; i < count; i++) {
            size_t at = rows > columns
                            ? i % (size_t)columns * (size_t)rows + i / (size_t)columns
                            : i;
            off += (got[at] - want[i]) * (got[at] - want[i]);
            norm += want[i] * want[i];
        }
        if (!(sqrt(off / norm) <= tolerance)) {
            fail_msg("%d x %d: %g away", rows, columns, sqrt(off / norm));
        }
        free(work);
    }
    free(x);
    free(want);
}

static void matrices_become_orthogonal(void **state) {
    static const int shapes[][2] = {{1, 1},   {3, 7},    {7, 3},  {64, 64},
                                    {33, 65}, {128, 40}, {1, 90}, {48, 192}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int gram = 0; gram < 2; gram++) {
            check_matrix(shapes[i][0], shapes[i][1], TR_F32, gram, 1e-4);
            check_matrix(shapes[i][0], shapes[i][1], TR_BF16, gram, gram ? 1e-1 : 5e-2);
            check_matrix(shapes[i][0], shapes[i][1], TR_F16, gram, 1e-2);
        }
    }
}

// By hand, with lr 0.02, momentum 0.9 and no gradient scale.
static void directions_are_nesterovs(void **state) {
    float grad[2] = {1, -2}, buffer[2] = {0.5F, 0}, direction[2];
    tr_hyper hyper = hyper_of(TR_F32, false);
    tr_update update = {.grad = grad, .state = {buffer}, .count = 2, .grad_scale = 0.5};
    (void)state;
    tr__optimizer_muon.matrices->direct(&hyper, &update, direction);
    assert_float_equal(buffer[0], 0.5, 1e-6); // g is 0.5, as the buffer
    assert_float_equal(buffer[1], -0.1, 1e-6);
    assert_float_equal(direction[0], 0.5, 1e-6);
    assert_float_equal(direction[1], -1 + 0.9 * 0.9, 1e-6);
}

static void rates_follow_the_sides(void **state) {
    tr_hyper hyper = hyper_of(TR_F32, false);
    tr_muon_hyper own = tr__muon_hyper(&hyper);
    (void)state;
    tr_orthogonal how = tr__optimizer_muon.matrices->orthogonal(&hyper, 400, 100);
    assert_float_equal(how.step, 0.02 * 2, 1e-12);
    assert_float_equal(how.keep, 1 - 0.002, 1e-12);
    how = tr__optimizer_muon.matrices->orthogonal(&hyper, 100, 400);
    assert_float_equal(how.step, 0.02, 1e-12);
    own.adjust = TR_MUON_MATCH_RMS;
    memcpy(hyper.own, &own, sizeof own);
    how = tr__optimizer_muon.matrices->orthogonal(&hyper, 100, 400);
    assert_float_equal(how.step, 0.02 * 0.2 * 20, 1e-12);
    own.adjust = TR_MUON_SPECTRAL;
    memcpy(hyper.own, &own, sizeof own);
    how = tr__optimizer_muon.matrices->orthogonal(&hyper, 100, 400);
    assert_float_equal(how.step, 0.02 * 0.5, 1e-12);
}

// Each rank updates what it has of the matrix as one rank would.
static void ranks_share_a_matrix(void **state) {
    (void)state;
    for (int k = 0; test_kernel(&tr__op_orthogonal, k); k++) {
        test_shared_matrix(test_kernel(&tr__op_orthogonal, k),
                           (tr_target){.workers = 2});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_become_orthogonal),
        cmocka_unit_test(directions_are_nesterovs),
        cmocka_unit_test(rates_follow_the_sides),
        cmocka_unit_test(ranks_share_a_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
