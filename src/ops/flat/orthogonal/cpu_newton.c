// Newton-Schulz iterations (newton.h) on the CPU: matrices are in f32, and hold what
// the type that is asked for can.
#include "ops/flat/orthogonal/cpu_newton.h"

#include "backend/cpu/gemm.h"
#include "backend/cpu/parallel.h"
#include "base/checked.h"
#include "base/half.h"
#include "ops/flat/orthogonal/newton.h"

#include <math.h>
#include <string.h>

enum { LINE = 64 }; // bytes of the cache

typedef struct newton {
    const tr_orthogonal *how;
    int64_t r, c; // sides, r <= c
    int threads;
    float *x, *y; // [r, c]
    float *a, *b; // [r, r]
    void *products;
} newton;

static tr_matmul_desc describe(const newton *n, tr_newton_product which) {
    bool gram = which == TR_NEWTON_GRAM, step = which == TR_NEWTON_STEP;
    tr_matmul_desc desc = {.m = n->r,
                           .n = step ? n->c : n->r,
                           .k = gram ? n->c : n->r,
                           .a_row = gram ? n->c : n->r,
                           .a_col = 1,
                           .b_row = gram   ? 1
                                    : step ? n->c
                                           : n->r,
                           .b_col = gram ? n->c : 1,
                           .c_row = step ? n->c : n->r,
                           .type = TR_F32,
                           .c_type = TR_F32,
                           .fresh = true,
                           .threads = n->threads};
    return desc;
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
    for (int which = 0; which < TR_NEWTON_PRODUCTS; which++) {
        tr_matmul_desc desc = describe(&n, (tr_newton_product)which);
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

// ---- steps of the iterations

// What Q and a product take lies where Y does.
static float *place_of(const newton *n, tr_newton_matrix which) {
    switch (which) {
    case TR_NEWTON_X:
        return n->x;
    case TR_NEWTON_A:
        return n->a;
    case TR_NEWTON_B:
        return n->b;
    case TR_NEWTON_Q:
        return n->y + floats_of(n->r * n->r);
    case TR_NEWTON_Y:
    case TR_NEWTON_T:
        break;
    }
    return n->y;
}

static int64_t count_of(const newton *n, tr_newton_product which) {
    return n->r * (which == TR_NEWTON_STEP ? n->c : n->r);
}

static void multiply(void *user, const tr_newton_term *t) {
    const newton *n = user;
    tr_matmul_desc desc = describe(n, t->which);
    bool over = t->to == t->right; // the product is made beside it
    float *to = place_of(n, t->to), *made = over ? n->y : to;
    tr_gemm_run run = {.desc = &desc,
                       .a = place_of(n, t->left),
                       .b = place_of(n, t->right),
                       .c = made,
                       .workspace = n->products};
    tr__gemm_kernel(&desc)->run(&run);
    if (over) {
        combine(n, t->q, made, t->p, count_of(n, t->which), to);
    } else if (t->p != 0 || n->how->type != TR_F32) {
        combine(n, t->p, place_of(n, t->of), t->q, count_of(n, t->which), to);
    }
}

static void copy(void *user, tr_newton_matrix from, tr_newton_matrix to) {
    const newton *n = user;
    memcpy(place_of(n, to), place_of(n, from), (size_t)(n->r * n->r) * sizeof(float));
}

static void add_identity(void *user, float times, tr_newton_matrix to) {
    const newton *n = user;
    float *q = place_of(n, to);
    for (int64_t i = 0; i < n->r; i++) {
        q[i * n->r + i] = rounded(n, q[i * n->r + i] + times);
    }
}

static void swap(void *user) {
    newton *n = user;
    float *x = n->x;
    n->x = n->y;
    n->y = x;
}

static const tr_newton_steps steps = {multiply, copy, add_identity, swap};

const float *tr__newton(const tr_orthogonal *how, const float *x, int64_t rows,
                        int64_t columns, int threads, void *workspace) {
    newton n = lay_out(rows, columns, threads, workspace);
    n.how = how;
    begin(&n, x, rows > columns);
    tr__newton_iterate(how, tr__newton_gram(how, n.r, n.c), &steps, &n);
    return n.x;
}
