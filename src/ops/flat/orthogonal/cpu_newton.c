// Newton-Schulz iterations of fifth order, towards the orthogonal factor of a matrix:
//
//     X = x / max(norm(x), eps), transposed if it has more rows than columns
//     A = X X^T,   X = a X + (b A + c A A) X     so many times
//
// (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.)
// Results are rounded to the type that is asked for, as products with sums in f32 are.
//
// As A and the polynomials of it commute, X is Q X for a product Q of these, and A can
// be had of A alone, in products of the short side (Dao, "Gram Newton-Schulz", 2026):
//
//     Z = b A + c A A,   Q = (a I + Z) Q,   A = (a I + Z) A (a I + Z)
//
// Rounding makes A another matrix than X X^T after a while. So after RESTART iterations
// X becomes Q X, and A is made of it anew, as DeepSpeed does it. Where the long side is
// less than twice the short one there is little to gain, and the first way is gone.
#include "ops/flat/orthogonal/cpu_newton.h"

#include "backend/cpu/gemm.h"
#include "backend/cpu/parallel.h"
#include "base/checked.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

enum {
    LINE = 64, // bytes of the cache
    RESTART = 2,
};

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

static float rounded(const newton *n, float value) {
    return n->how->type == TR_BF16  ? tr__bf16_to_f32(tr__bf16_of_f32(value))
           : n->how->type == TR_F16 ? tr__f16_to_f32(tr__f16_of_f32(value))
                                    : value;
}

// to[i] = p from[i] + q to[i], rounded where that is asked for.
static void combine(const newton *n, float p, const float *from, float q, int64_t count,
                    float *to) {
    int threads = tr__threads_for(count, 2, n->threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range range = tr__range_part(count, LINE, t, threads);
        for (int64_t i = range.begin; i < range.end; i++) {
            to[i] = rounded(n, p * from[i] + q * to[i]);
        }
    }
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

// Of a product that nothing is added to.
static void round_all(const newton *n, float *to, int64_t count) {
    combine(n, 0, to, 1, n->how->type == TR_F32 ? 0 : count, to);
}

// A = X X^T
static void make_gram(const newton *n) {
    multiply(n, GRAM, n->x, n->x, n->a);
    round_all(n, n->a, n->r * n->r);
}

static void iterate(newton *n) {
    const tr_orthogonal *how = n->how;
    for (int i = 0; i < how->steps; i++) {
        make_gram(n);
        multiply(n, SQUARE, n->a, n->a, n->b);
        combine(n, (float)how->b, n->a, (float)how->c, n->r * n->r, n->b);
        multiply(n, STEP, n->b, n->x, n->y);
        combine(n, 1, n->y, (float)how->a, n->r * n->c, n->x);
    }
}

// ---- on A alone

// What Q and a product take lies where Q X is made.
static float *product_of(const newton *n) {
    return n->y;
}
static float *factor_of(const newton *n) {
    return n->y + floats_of(n->r * n->r);
}

static bool has_room(const newton *n) {
    return 2 * floats_of(n->r * n->r) <= floats_of(n->r * n->c);
}

// X = Q X
static void apply(newton *n) {
    float *x = n->x;
    memcpy(n->b, factor_of(n), (size_t)(n->r * n->r) * sizeof *n->b);
    multiply(n, STEP, n->b, n->x, n->y);
    round_all(n, n->y, n->r * n->c);
    n->x = n->y;
    n->y = x;
}

// Q = (a I + Z) Q; `first`: Q is I.
static void extend(newton *n, bool first) {
    float *q = factor_of(n), a = (float)n->how->a;
    if (!first) {
        multiply(n, SQUARE, n->b, q, product_of(n));
        combine(n, 1, product_of(n), a, n->r * n->r, q);
        return;
    }
    memcpy(q, n->b, (size_t)(n->r * n->r) * sizeof *q);
    for (int64_t i = 0; i < n->r; i++) {
        q[i * n->r + i] = rounded(n, q[i * n->r + i] + a);
    }
}

static void iterate_gram(newton *n) {
    const tr_orthogonal *how = n->how;
    int64_t count = n->r * n->r;
    for (int i = 0; i < how->steps; i++) {
        bool first = i == 0 || i == RESTART, last = i + 1 == how->steps;
        if (i == RESTART) {
            apply(n);
        }
        if (first) {
            make_gram(n);
        }
        multiply(n, SQUARE, n->a, n->a, n->b);
        combine(n, (float)how->b, n->a, (float)how->c, count, n->b);
        extend(n, first);
        if (!last && i + 1 != RESTART) {
            float *t = product_of(n);
            multiply(n, SQUARE, n->b, n->a, t);
            combine(n, (float)how->a, n->a, 1, count, t);
            multiply(n, SQUARE, n->b, t, n->a);
            combine(n, (float)how->a, t, 1, count, n->a);
        }
    }
    apply(n);
}

const float *tr__newton(const tr_orthogonal *how, const float *x, int64_t rows,
                        int64_t columns, int threads, void *workspace) {
    newton n = lay_out(rows, columns, threads, workspace);
    n.how = how;
    begin(&n, x, rows > columns);
    (how->gram && has_room(&n) ? iterate_gram : iterate)(&n);
    return n.x;
}
