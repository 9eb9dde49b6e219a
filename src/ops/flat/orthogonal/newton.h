// Newton-Schulz iterations of fifth order, towards the orthogonal factor of a matrix:
// what they do, whoever multiplies.
#ifndef TR_OPS_FLAT_ORTHOGONAL_NEWTON_H
#define TR_OPS_FLAT_ORTHOGONAL_NEWTON_H

#include "ops/optimizers/optimizer.h"

// X and what becomes of it, [r, c] with r <= c; the others are [r, r].
typedef enum tr_newton_matrix {
    TR_NEWTON_X,
    TR_NEWTON_Y,
    TR_NEWTON_A, // X X^T
    TR_NEWTON_B, // polynomials of A
    // Of iterations on A alone. They may lie where Y does.
    TR_NEWTON_Q, // X is Q X
    TR_NEWTON_T, // a product
} tr_newton_matrix;

typedef enum tr_newton_product {
    TR_NEWTON_GRAM,   // X X^T: [r, c] and [r, c] -> [r, r]
    TR_NEWTON_SQUARE, // [r, r] and [r, r] -> [r, r]
    TR_NEWTON_STEP,   // [r, r] and [r, c] -> [r, c]
    TR_NEWTON_PRODUCTS
} tr_newton_product;

// to = p of + q left right, with sums in f32, rounded once. p 0: `of` is not read.
// `to` may be `of` or `right`.
typedef struct tr_newton_term {
    tr_newton_product which;
    tr_newton_matrix left, right;
    float p;
    tr_newton_matrix of;
    float q;
    tr_newton_matrix to;
} tr_newton_term;

// Who multiplies. user: its own.
typedef struct tr_newton_steps {
    void (*multiply)(void *user, const tr_newton_term *term);
    void (*copy)(void *user, tr_newton_matrix from, tr_newton_matrix to); // [r, r]
    void (*add_identity)(void *user, float times, tr_newton_matrix to);
    void (*swap)(void *user); // X and Y
} tr_newton_steps;

// Is there room where Y lies for what iterations on A alone take?
bool tr__newton_gram(const tr_orthogonal *how, int64_t r, int64_t c);
// The iterations on X. gram: on A alone. In the end it is X that is nearly orthogonal.
void tr__newton_iterate(const tr_orthogonal *how, bool gram,
                        const tr_newton_steps *steps, void *user);

#endif
