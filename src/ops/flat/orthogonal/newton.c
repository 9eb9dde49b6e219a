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
#include "ops/flat/orthogonal/newton.h"

#include "base/checked.h"

enum { RESTART = 2, LINE = 16 }; // elements of a line of the cache

typedef struct newton {
    const tr_orthogonal *how;
    const tr_newton_steps *steps;
    void *user;
} newton;

static void multiply(const newton *n, tr_newton_term term) {
    n->steps->multiply(n->user, &term);
}

// A = X X^T
static void make_gram(const newton *n) {
    multiply(n, (tr_newton_term){TR_NEWTON_GRAM, TR_NEWTON_X, TR_NEWTON_X, 0,
                                 TR_NEWTON_A, 1, TR_NEWTON_A});
}

// B = b A + c A A
static void make_polynomial(const newton *n) {
    multiply(n, (tr_newton_term){TR_NEWTON_SQUARE, TR_NEWTON_A, TR_NEWTON_A,
                                 (float)n->how->b, TR_NEWTON_A, (float)n->how->c,
                                 TR_NEWTON_B});
}

// to = (a I + B) right
static void take_step(const newton *n, tr_newton_product which, tr_newton_matrix right,
                      tr_newton_matrix to) {
    multiply(
        n, (tr_newton_term){which, TR_NEWTON_B, right, (float)n->how->a, right, 1, to});
}

static void iterate(const newton *n) {
    for (int i = 0; i < n->how->steps; i++) {
        make_gram(n);
        make_polynomial(n);
        take_step(n, TR_NEWTON_STEP, TR_NEWTON_X, TR_NEWTON_X);
    }
}

// ---- on A alone

// X = Q X, made where Q lies.
static void apply(const newton *n) {
    n->steps->copy(n->user, TR_NEWTON_Q, TR_NEWTON_B);
    multiply(n, (tr_newton_term){TR_NEWTON_STEP, TR_NEWTON_B, TR_NEWTON_X, 0,
                                 TR_NEWTON_Y, 1, TR_NEWTON_Y});
    n->steps->swap(n->user);
}

// Q = (a I + B) Q; `first`: Q is I.
static void extend(const newton *n, bool first) {
    if (first) {
        n->steps->copy(n->user, TR_NEWTON_B, TR_NEWTON_Q);
        n->steps->add_identity(n->user, (float)n->how->a, TR_NEWTON_Q);
    } else {
        take_step(n, TR_NEWTON_SQUARE, TR_NEWTON_Q, TR_NEWTON_Q);
    }
}

static void iterate_gram(const newton *n) {
    for (int i = 0; i < n->how->steps; i++) {
        bool first = i == 0 || i == RESTART, last = i + 1 == n->how->steps;
        if (i == RESTART) {
            apply(n);
        }
        if (first) {
            make_gram(n);
        }
        make_polynomial(n);
        extend(n, first);
        if (!last && i + 1 != RESTART) {
            take_step(n, TR_NEWTON_SQUARE, TR_NEWTON_A, TR_NEWTON_T);
            take_step(n, TR_NEWTON_SQUARE, TR_NEWTON_T, TR_NEWTON_A);
        }
    }
    apply(n);
}

bool tr__newton_gram(const tr_orthogonal *how, int64_t r, int64_t c) {
    return how->gram && 2 * tr__round_up(r * r, LINE) <= tr__round_up(r * c, LINE);
}

void tr__newton_iterate(const tr_orthogonal *how, bool gram,
                        const tr_newton_steps *steps, void *user) {
    const newton n = {how, steps, user};
    (gram ? iterate_gram : iterate)(&n);
}
