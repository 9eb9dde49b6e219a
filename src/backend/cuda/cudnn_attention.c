// Which operations cuDNN takes together as attention, in which order and with which
// types, is a matter of its engines; its open frontend writes the same graphs (NVIDIA
// cudnn-frontend, scaled_dot_product_flash_attention.h).
#include "backend/cuda/cudnn_attention.h"

typedef struct shapes {
    tr_cudnn_data half;
    tr_cudnn_shape queries, keys;   // q; k and v
    tr_cudnn_shape results, scores; // y; [context, context] of each head
    tr_cudnn_shape rows;            // one number for each query
} shapes;

// A head's columns lie beside the next one's.
static tr_cudnn_shape rows_of(const tr_cuda_attend_shape *s, int64_t heads,
                              int64_t pitch) {
    return (tr_cudnn_shape){{s->batch, heads, s->context, s->depth},
                            {s->context * pitch, s->depth, pitch, 1}};
}

static shapes shapes_of(const tr_cuda_attend_shape *s) {
    return (shapes){
        .half = s->half == TR_BF16 ? TR_CUDNN_BFLOAT16 : TR_CUDNN_HALF,
        .queries = rows_of(s, s->heads, s->pitch),
        .keys = rows_of(s, s->pairs, s->pitch),
        .results = rows_of(s, s->heads, s->width),
        .scores = tr__cudnn_dense(s->batch, s->heads, s->context, s->context),
        .rows = tr__cudnn_dense(s->batch, s->heads, s->context, 1),
    };
}

static void *new_scores(tr_cudnn_graph *g, const shapes *of) {
    return tr__cudnn_virtual(g, TR_CUDNN_FLOAT, of->scores);
}

static void *new_rows(tr_cudnn_graph *g, const shapes *of) {
    return tr__cudnn_virtual(g, TR_CUDNN_FLOAT, of->rows);
}

// Of two operands, into scores.
static void *combine(tr_cudnn_graph *g, const shapes *of, tr_cudnn_mode mode, void *x,
                     void *b) {
    void *y = new_scores(g, of);
    tr__cudnn_pointwise(g, mode, x, b, y);
    return y;
}

// The scores of keys that a query does not see are replaced.
static void *mask(tr_cudnn_graph *g, const shapes *of, void *scores) {
    enum { ROW = 2, COLUMN = 3 };
    void *row = tr__cudnn_virtual(g, TR_CUDNN_INT32, of->scores);
    void *column = tr__cudnn_virtual(g, TR_CUDNN_INT32, of->scores);
    void *seen = tr__cudnn_virtual(g, TR_CUDNN_BOOLEAN, of->scores);
    void *masked = new_scores(g, of);
    tr__cudnn_places(g, scores, ROW, row);
    tr__cudnn_places(g, scores, COLUMN, column);
    tr__cudnn_at_least(g, row, column, seen);
    tr__cudnn_select(g, scores, tr__cudnn_value(g, TR_CUDNN_ID_UNSEEN), seen, masked);
    return masked;
}

static void *score(tr_cudnn_graph *g, const shapes *of, void *q, void *keys,
                   void *scale) {
    void *products = new_scores(g, of);
    tr__cudnn_matmul(g, q, keys, products);
    return combine(g, of, TR_CUDNN_MUL, products, scale);
}

// ---- forward

// y's factor of v: e^(score - highest) / sum. lse: where highest + log(sum) goes.
static void *softmax(tr_cudnn_graph *g, const shapes *of, void *scores, void *lse) {
    void *highest = new_rows(g, of), *sum = new_rows(g, of);
    tr__cudnn_reduce(g, TR_CUDNN_REDUCE_MAX, scores, highest);
    void *below = combine(g, of, TR_CUDNN_SUB, scores, highest);
    void *powers = combine(g, of, TR_CUDNN_EXP, below, NULL);
    tr__cudnn_reduce(g, TR_CUDNN_REDUCE_ADD, powers, sum);
    void *logarithm = new_rows(g, of);
    tr__cudnn_pointwise(g, TR_CUDNN_LOG, sum, NULL, logarithm);
    tr__cudnn_pointwise(g, TR_CUDNN_ADD, highest, logarithm, lse);
    void *shares = tr__cudnn_virtual(g, of->half, of->scores);
    tr__cudnn_pointwise(g, TR_CUDNN_DIV, powers, sum, shares);
    return shares;
}

void tr__cudnn_forward(tr_cudnn_graph *g, const tr_cuda_attend_shape *s) {
    const shapes of = shapes_of(s);
    void *q = tr__cudnn_tensor(g, TR_CUDNN_ID_Q, of.half, of.queries);
    void *k = tr__cudnn_tensor(g, TR_CUDNN_ID_K, of.half, tr__cudnn_turned(of.keys));
    void *v = tr__cudnn_tensor(g, TR_CUDNN_ID_V, of.half, of.keys);
    void *y = tr__cudnn_tensor(g, TR_CUDNN_ID_Y, of.half, of.results);
    // Logarithms that nobody wants stay virtual: no engine takes a graph without them.
    void *lse = s->has_lse
                    ? tr__cudnn_tensor(g, TR_CUDNN_ID_LSE, TR_CUDNN_FLOAT, of.rows)
                    : new_rows(g, &of);
    void *scores = score(g, &of, q, k, tr__cudnn_value(g, TR_CUDNN_ID_SCALE));
    scores = s->both ? scores : mask(g, &of, scores);
    tr__cudnn_matmul(g, softmax(g, &of, scores, lse), v, y);
}

// ---- backward

// delta = dy . y of each query.
static void *add_up(tr_cudnn_graph *g, const tr_cuda_attend_shape *s, const shapes *of,
                    void *dy, void *y) {
    void *products = tr__cudnn_virtual(
        g, TR_CUDNN_FLOAT, tr__cudnn_dense(s->batch, s->heads, s->context, s->depth));
    void *sums = new_rows(g, of);
    void *delta = tr__cudnn_tensor(g, TR_CUDNN_ID_DELTA, TR_CUDNN_FLOAT, of->rows);
    tr__cudnn_pointwise(g, TR_CUDNN_MUL, dy, y, products);
    tr__cudnn_reduce(g, TR_CUDNN_REDUCE_ADD, products, sums);
    tr__cudnn_pointwise(g, TR_CUDNN_MUL, sums, tr__cudnn_value(g, TR_CUDNN_ID_ONE),
                        delta);
    return delta;
}

// What each key gets: x' rows, of all heads that share it.
static void give_keys(tr_cudnn_graph *g, const tr_cuda_attend_shape *s,
                      const shapes *of, void *x, void *rows, void *to) {
    void *turned = tr__cudnn_virtual(g, of->half, tr__cudnn_turned(of->scores));
    tr__cudnn_reshape(g, x, turned);
    if (s->heads == s->pairs) {
        tr__cudnn_matmul(g, turned, rows, to);
        return;
    }
    void *of_all = tr__cudnn_virtual(
        g, of->half, tr__cudnn_dense(s->batch, s->heads, s->context, s->depth));
    tr__cudnn_matmul(g, turned, rows, of_all);
    tr__cudnn_reduce(g, TR_CUDNN_REDUCE_ADD, of_all, to);
}

void tr__cudnn_backward(tr_cudnn_graph *g, const tr_cuda_attend_shape *s) {
    const shapes of = shapes_of(s);
    const tr_cudnn_shape turned = tr__cudnn_turned(of.keys);
    void *q = tr__cudnn_tensor(g, TR_CUDNN_ID_Q, of.half, of.queries);
    void *k = tr__cudnn_tensor(g, TR_CUDNN_ID_K, of.half, turned);
    void *v = tr__cudnn_tensor(g, TR_CUDNN_ID_V, of.half, turned);
    void *y = tr__cudnn_tensor(g, TR_CUDNN_ID_Y, of.half, of.results);
    void *dy = tr__cudnn_tensor(g, TR_CUDNN_ID_DY, of.half, of.results);
    void *lse = tr__cudnn_tensor(g, TR_CUDNN_ID_LSE, TR_CUDNN_FLOAT, of.rows);
    void *dq = tr__cudnn_tensor(g, TR_CUDNN_ID_DQ, of.half, of.queries);
    void *dk = tr__cudnn_tensor(g, TR_CUDNN_ID_DK, of.half, of.keys);
    void *dv = tr__cudnn_tensor(g, TR_CUDNN_ID_DV, of.half, of.keys);
    void *scale = tr__cudnn_value(g, TR_CUDNN_ID_SCALE);
    void *delta = add_up(g, s, &of, dy, y);

    void *scores = score(g, &of, q, k, scale);
    scores = combine(g, &of, TR_CUDNN_SUB, scores, lse);
    scores = s->both ? scores : mask(g, &of, scores);
    void *shares = combine(g, &of, TR_CUDNN_EXP, scores, NULL);
    give_keys(g, s, &of, shares, dy, dv);

    void *through = new_scores(g, &of);
    tr__cudnn_matmul(g, dy, v, through);
    through = combine(g, &of, TR_CUDNN_SUB, through, delta);
    through = combine(g, &of, TR_CUDNN_MUL, through, shares);
    through = combine(g, &of, TR_CUDNN_MUL, through, scale);
    give_keys(g, s, &of, through, q, dk);

    void *rows = tr__cudnn_virtual(g, of.half, of.keys);
    tr__cudnn_reshape(g, k, rows);
    tr__cudnn_matmul(g, through, rows, dq);
}
