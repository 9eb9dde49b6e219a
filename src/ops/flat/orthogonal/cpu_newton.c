// Newton-Schulz iterations of fifth order, towards the orthogonal factor of a matrix:
//
//     X = x / max(norm(x), eps), transposed if it has more rows than columns
//     A = X X^T,   X = a X + (b A + c A A) X     so many times
//
// (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.)
// With bf16 each result is rounded to it, as products of bf16 with sums in f32 are.
#include "ops/flat/orthogonal/cpu_newton.h"

#include "backend/cpu/gemm.h"
#include "backend/cpu/parallel.h"
#include "base/checked.h"
#include "base/half.h"

#include <math.h>

enum { LINE = 64 }; // bytes of the cache

typedef struct newton {
    const tr_orthogonal *how;
    int64_t r, c; // sides, r <= c
    int threads;
    float *x, *y; // [r, c]
    float *a, *b; // [r, r]
    void *products;
} newton;

typedef enum product { GRAM, SQUARE, STEP, PRODUCTS } product;

static tr_matmul_desc describe(const newton *n, product which) {
    tr_matmul_desc desc = {.m = n->r,
                           .n = which == STEP ? n->c : n->r,
                           .k = which == GRAM ? n->c : n->r,
                           .a_row = which == GRAM ? n->c : n->r,
                           .a_col = 1,
                           .b_row = which == GRAM   ? 1
                                    : which == STEP ? n->c
                                                    : n->r,
                           .b_col = which == GRAM ? n->c : 1,
                           .c_row = which == STEP ? n->c : n->r,
                           .type = TR_F32,
                           .c_type = TR_F32,
                           .fresh = true,
                           .threads = n->threads};
    return desc;
}

static void multiply(const newton *n, product which, const float *a, const float *b,
                     float *c) {
    tr_matmul_desc desc = describe(n, which);
    tr_gemm_run run = {.desc = &desc, .a = a, .b = b, .c = c, .workspace = n->products};
    tr__gemm_kernel(&desc)->run(&run);
}

static int64_t floats_of(int64_t count) {
    return tr__round_up(count * (int64_t)sizeof(float), LINE) / (int64_t)sizeof(float);
}

static newton lay_out(int64_t rows, int64_t columns, int threads, float *memory) {
    newton n = {.r = tr__min_i64(rows, columns),
                .c = tr__max_i64(rows, columns),
                .threads = threads,
                .x = memory};
    if (memory) {
        n.y = n.x + floats_of(n.r * n.c);
        n.a = n.y + floats_of(n.r * n.c);
        n.b = n.a + floats_of(n.r * n.r);
        n.products = n.b + floats_of(n.r * n.r);
    }
    return n;
}

size_t tr__newton_workspace(int64_t rows, int64_t columns, int threads) {
    newton n = lay_out(rows, columns, threads, NULL);
    size_t most = 0;
    for (int which = 0; which < PRODUCTS; which++) {
        tr_matmul_desc desc = describe(&n, (product)which);
        size_t bytes = tr__gemm_kernel(&desc)->workspace(&desc);
        most = bytes > most ? bytes : most;
    }
    int64_t floats = 2 * floats_of(n.r * n.c) + 2 * floats_of(n.r * n.r);
    return (size_t)floats * sizeof(float) + most;
}

// to[i] = p from[i] + q to[i], rounded where that is asked for.
static void combine(const newton *n, float p, const float *from, float q, int64_t count,
                    float *to) {
    bool bf16 = n->how->bf16;
    int threads = tr__threads_for(count, 2, n->threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range range = tr__range_part(count, LINE, t, threads);
        for (int64_t i = range.begin; i < range.end; i++) {
            float value = p * from[i] + q * to[i];
            to[i] = bf16 ? tr__bf16_to_f32(tr__bf16_of_f32(value)) : value;
        }
    }
}

static float rounded(const newton *n, float value) {
    return n->how->bf16 ? tr__bf16_to_f32(tr__bf16_of_f32(value)) : value;
}

// Brings x in, and divides it by its norm.
static void begin(const newton *n, const float *x, bool turns) {
    double sum = 0;
    for (int64_t i = 0; i < n->r; i++) {
        for (int64_t j = 0; j < n->c; j++) {
            float value = rounded(n, turns ? x[j * n->r + i] : x[i * n->c + j]);
            n->x[i * n->c + j] = value;
            sum += (double)value * value;
        }
    }
    float norm = rounded(n, (float)sqrt(sum)), least = (float)n->how->eps;
    norm = norm > least ? norm : least;
    for (int64_t i = 0; i < n->r * n->c; i++) {
        n->x[i] = rounded(n, n->x[i] / norm);
    }
}

const float *tr__newton(const tr_orthogonal *how, const float *x, int64_t rows,
                        int64_t columns, int threads, void *workspace) {
    newton n = lay_out(rows, columns, threads, workspace);
    n.how = how;
    begin(&n, x, rows > columns);
    for (int i = 0; i < how->steps; i++) {
        multiply(&n, GRAM, n.x, n.x, n.a);
        combine(&n, 0, n.a, 1, how->bf16 ? n.r * n.r : 0, n.a);
        multiply(&n, SQUARE, n.a, n.a, n.b);
        combine(&n, (float)how->b, n.a, (float)how->c, n.r * n.r, n.b);
        multiply(&n, STEP, n.b, n.x, n.y);
        combine(&n, 1, n.y, (float)how->a, n.r * n.c, n.x);
    }
    return n.x;
}
