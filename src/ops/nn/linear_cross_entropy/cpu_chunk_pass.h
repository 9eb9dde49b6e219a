// One launch of an op that works through chunks of rows, for kernel files: the products
// of a chunk, and what the gradients of its logits give.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_CHUNK_PASS_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_CHUNK_PASS_H

#include "backend/cpu/column_sums.h"
#include "ops/nn/linear_cross_entropy/cpu_chunks.h"
#include "ops/operand.h"

// A launch, its workspace and the chunk at hand.
typedef struct tr_lce_pass {
    const tr_op_desc *desc;
    const tr_launch *launch;
    const tr_lce_chunks *chunks;
    const tr_lce_products *products;
    int64_t first;          // row
    const int32_t *row;     // [rows] which rows these are, if they are gathered; NULL
    const tr_real *x;       // [rows, C] of the chunk
    const int32_t *targets; // [rows]
    float *logits;          // [rows, V]
    double *losses;         // [rows]
    int32_t *correct;       // [rows]
    void *scratch;
} tr_lce_pass;

static inline tr_lce_pass tr__lce_pass(const tr_op_desc *desc,
                                       const tr_lce_chunks *chunks,
                                       const tr_launch *launch) {
    char *workspace = launch->workspace;
    return (tr_lce_pass){
        .desc = desc,
        .launch = launch,
        .chunks = chunks,
        .logits = launch->workspace,
        .losses = (double *)(workspace + chunks->losses),
        .correct = (int32_t *)(workspace + chunks->correct),
        .scratch = workspace + chunks->scratch,
    };
}

static inline void tr__lce_enter(tr_lce_pass *p, int64_t first) {
    p->first = first;
    p->row = NULL;
    p->products = tr__lce_chunk_at(p->chunks, first);
    p->x = (const tr_real *)p->launch->in[HEAD_X] + first * p->chunks->dims.in;
    p->targets = (const int32_t *)p->launch->in[HEAD_TARGETS] + first;
}

// Which of all rows the chunk's row `r` is. A gathered chunk may have rows without a
// target that are none.
static inline int64_t tr__lce_row(const tr_lce_pass *p, int64_t r) {
    return p->row ? p->row[r] : p->first + r;
}

// The gradients of the logits, in their place: each row begins where the f32 one did.
static inline const tr_real *tr__lce_gradients(const tr_lce_pass *p) {
    return (const tr_real *)(const void *)p->logits;
}

static inline bool tr__lce_any_target(const tr_lce_pass *p) {
    return tr__lce_last_target(p->targets, p->products->dims.rows) >= 0;
}

// The chunk's logits, unless the op is given them.
static inline void tr__lce_compute(const tr_lce_pass *p) {
    if (!p->products->output) {
        return;
    }
    tr__launch_note(p->launch,
                    tr__matmul_run(p->products->output, false, p->x,
                                   p->launch->in[HEAD_WEIGHT], p->launch->in[HEAD_BIAS],
                                   p->logits, p->scratch));
}

static inline void tr__lce_put_input(const tr_lce_pass *p, bool any) {
    bool add = p->launch->accumulate >> HEAD_DX & 1;
    tr_linear_dims dims = p->products->dims;
    if (!tr__lce_wants(p->desc, HEAD_DX)) {
        return;
    }
    tr_real *dx = (tr_real *)p->launch->out[HEAD_DX] + p->first * dims.in;
    if (any) {
        tr__launch_note(p->launch,
                        tr__matmul_run(p->products->input, add, tr__lce_gradients(p),
                                       p->launch->in[HEAD_WEIGHT], NULL, dx,
                                       p->scratch));
    } else if (!add) {
        memset(dx, 0, (size_t)(dims.rows * dims.in) * sizeof *dx);
    }
}

// again: an earlier chunk of this launch has written the gradients.
static inline void tr__lce_put_weight(const tr_lce_pass *p, bool again) {
    uint32_t add = p->launch->accumulate;
    tr_linear_dims dims = p->products->dims;
    if (tr__lce_wants(p->desc, HEAD_DWEIGHT)) {
        tr__launch_note(p->launch,
                        tr__product_weight_run(
                            p->products->weight, &dims,
                            again || (add >> HEAD_DWEIGHT & 1), tr__lce_gradients(p),
                            p->x, p->launch->out[HEAD_DWEIGHT], p->scratch));
    }
    if (tr__lce_wants(p->desc, HEAD_DBIAS)) {
        tr__column_sums(tr__lce_gradients(p), dims.dy_row, dims.rows, dims.out,
                        p->desc->target.workers, again || (add >> HEAD_DBIAS & 1),
                        p->scratch, p->launch->out[HEAD_DBIAS]);
    }
}

// A result that no chunk has written.
static inline void tr__lce_clear(const tr_lce_pass *p, int result) {
    if (tr__lce_wants(p->desc, result) && !(p->launch->accumulate >> result & 1)) {
        memset(p->launch->out[result], 0,
               (size_t)tr_tensor_bytes(p->desc->out[result]));
    }
}

// A backward: of each chunk the logits, their gradients, which `soften` puts in their
// place, and what these give. `soften` is called for every chunk; without a target in
// it (`any`) there are no logits, and all gradients are zeros.
__attribute__((always_inline)) static inline void
tr__lce_run_backward(const tr_op_desc *desc, const tr_lce_chunks *chunks,
                     const tr_launch *launch,
                     void (*soften)(const tr_lce_pass *p, bool any)) {
    tr_lce_pass p = tr__lce_pass(desc, chunks, launch);
    bool again = false;
    for (int64_t first = 0; first < chunks->dims.rows; first += chunks->rows) {
        tr__lce_enter(&p, first);
        bool any = tr__lce_any_target(&p);
        if (any) {
            tr__lce_compute(&p);
        }
        soften(&p, any);
        if (any) {
            tr__lce_put_weight(&p, again);
            again = true;
        }
        tr__lce_put_input(&p, any);
    }
    if (!again) {
        tr__lce_clear(&p, HEAD_DWEIGHT);
        tr__lce_clear(&p, HEAD_DBIAS);
    }
}

#endif
