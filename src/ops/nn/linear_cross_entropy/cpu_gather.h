// The rows with a target alone, gathered into chunks, for kernel files: a masked model
// has one in seven, and a conversation those of its answers. Chunks are of planned
// sizes, so that only how many there are depends on the data. A chunk's rows that are
// missing are zeros without a target.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_GATHER_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_GATHER_H

#include "ops/nn/linear_cross_entropy/cpu_chunk_pass.h"

// The rows with a target, in their order.
typedef struct tr_lce_list {
    int32_t *row;
    int64_t count;
} tr_lce_list;

static inline tr_lce_list tr__lce_list(const tr_lce_pass *p) {
    char *workspace = p->launch->workspace;
    const int32_t *targets = p->launch->in[HEAD_TARGETS];
    tr_lce_list list = {(int32_t *)(workspace + p->chunks->list), 0};
    for (int64_t r = 0; r < p->chunks->dims.rows; r++) {
        list.row[list.count] = (int32_t)r;
        list.count += targets[r] >= 0;
    }
    return list;
}

// Are rows to be gathered? *list: then, which.
static inline bool tr__lce_gathers(const tr_lce_pass *p, tr_lce_list *list) {
    if (p->chunks->few.dims.rows == 0) {
        return false;
    }
    *list = tr__lce_list(p);
    return tr__lce_computed(p->chunks, list->count) < p->chunks->dims.rows;
}

// The rows that the chunk has of the list from `at` on.
static inline int64_t tr__lce_taken(const tr_lce_pass *p, const tr_lce_list *list,
                                    int64_t at) {
    int64_t rows = p->products->dims.rows;
    return list->count - at < rows ? list->count - at : rows;
}

static inline void tr__lce_take(tr_lce_pass *p, const tr_lce_list *list, int64_t at) {
    char *workspace = p->launch->workspace;
    tr_real *x = (tr_real *)(workspace + p->chunks->x);
    int32_t *targets = (int32_t *)(workspace + p->chunks->targets);
    const tr_real *from = p->launch->in[HEAD_X];
    const int32_t *wanted = p->launch->in[HEAD_TARGETS];
    int64_t width = p->chunks->dims.in;
    p->products = tr__lce_chunk_of(p->chunks, list->count - at);
    int64_t rows = p->products->dims.rows, taken = tr__lce_taken(p, list, at);
    for (int64_t i = 0; i < taken; i++) {
        int64_t row = list->row[at + i];
        memcpy(x + i * width, from + row * width, (size_t)width * sizeof *x);
        targets[i] = wanted[row];
    }
    memset(x + taken * width, 0, (size_t)((rows - taken) * width) * sizeof *x);
    for (int64_t i = taken; i < rows; i++) {
        targets[i] = -1;
    }
    p->x = x;
    p->targets = targets;
    p->row = list->row + at;
}

// What the chunk's logits give to its rows of x.
static inline void tr__lce_scatter_input(const tr_lce_pass *p, const tr_lce_list *list,
                                         int64_t at) {
    char *workspace = p->launch->workspace;
    tr_real *made = (tr_real *)(workspace + p->chunks->dx);
    int64_t width = p->chunks->dims.in, taken = tr__lce_taken(p, list, at);
    bool add = p->launch->accumulate >> HEAD_DX & 1;
    if (!tr__lce_wants(p->desc, HEAD_DX)) {
        return;
    }
    tr__launch_note(p->launch,
                    tr__matmul_run(p->products->input, false, tr__lce_gradients(p),
                                   p->launch->in[HEAD_WEIGHT], NULL, made, p->scratch));
    for (int64_t i = 0; i < taken; i++) {
        const tr_real *from = made + i * width;
        tr_real *to = (tr_real *)p->launch->out[HEAD_DX] + list->row[at + i] * width;
        for (int64_t c = 0; c < width; c++) {
            float before = add ? tr_r_get(to[c]) : 0;
            to[c] = tr_r_of(before + tr_r_get(from[c]));
        }
    }
}

// tr__lce_run_backward of the list's rows alone.
__attribute__((always_inline)) static inline void
tr__lce_run_gathered(tr_lce_pass *p, const tr_lce_list *list,
                     void (*soften)(const tr_lce_pass *p, bool any)) {
    tr__lce_clear(p, HEAD_DX);
    for (int64_t at = 0; at < list->count; at += p->products->dims.rows) {
        tr__lce_take(p, list, at);
        tr__lce_compute(p);
        soften(p, true);
        tr__lce_put_weight(p, at > 0);
        tr__lce_scatter_input(p, list, at);
    }
    if (list->count == 0) {
        tr__lce_clear(p, HEAD_DWEIGHT);
        tr__lce_clear(p, HEAD_DBIAS);
    }
}

#endif
