// The head, chunk of rows by chunk of rows: product, softmax with loss and gradient in
// place, then the products of the backward.
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/linear_cross_entropy/cpu_gather.h"
#include "ops/nn/linear_cross_entropy/cpu_softmax_row.h"

extern const tr_kernel TR_ISA_NAME(tr__lce_kernel);
extern const tr_kernel TR_ISA_NAME(tr__lce_backward_kernel);

// Losses of the chunk's rows; with `gradient` the logits become their gradients.
__attribute__((always_inline)) static inline void soften(const tr_lce_pass *p,
                                                         bool gradient) {
    const int32_t *targets = p->targets;
    int64_t rows = p->products->dims.rows, width = p->products->dims.out;
    float seed = p->launch->run->loss_seed;
    int threads = tr__threads_for(rows * width, 8, p->desc->target.workers);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        float *row = p->logits + r * width;
        if (targets[r] >= 0 && gradient) {
            p->losses[r] =
                tr__row_gradient(row, width, targets[r], seed, &p->correct[r]);
        } else if (targets[r] >= 0) {
            p->losses[r] = tr__row_loss(row, width, targets[r], &p->correct[r]);
        } else if (gradient) {
            memset(row, 0, (size_t)width * sizeof *row);
        }
    }
}

// Row by row in their order, straight into the sums: no cut into chunks or
// micro-batches changes the order of the additions.
static void add_sums(const tr_lce_pass *p, double *sums) {
    const int32_t *targets = p->targets;
    for (int64_t r = 0; r < p->products->dims.rows; r++) {
        if (targets[r] >= 0) {
            sums[TR_SUM_LOSS] += p->losses[r];
            sums[TR_SUM_COUNT] += 1;
            sums[TR_SUM_CORRECT] += p->correct[r];
        }
    }
}

// ---- forward

static tr_status forward_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    return tr__lce_chunks_create(desc, false, (tr_lce_chunks **)state, err);
}

static void forward_chunk(const tr_lce_pass *p) {
    tr__lce_compute(p);
    soften(p, false);
    add_sums(p, p->launch->out[0]);
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_lce_pass p = tr__lce_pass(desc, state, launch);
    tr_lce_list list;
    if (tr__lce_gathers(&p, &list)) {
        for (int64_t at = 0; at < list.count; at += p.products->dims.rows) {
            tr__lce_take(&p, &list, at);
            forward_chunk(&p);
        }
        return;
    }
    for (int64_t first = 0; first < p.chunks->dims.rows; first += p.chunks->rows) {
        tr__lce_enter(&p, first);
        if (tr__lce_any_target(&p)) {
            forward_chunk(&p);
        }
    }
}

// ---- backward

static tr_status backward_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    return tr__lce_chunks_create(desc, true, (tr_lce_chunks **)state, err);
}

static void soften_backward(const tr_lce_pass *p, bool any) {
    if (any) {
        soften(p, true);
        add_sums(p, p->launch->out[HEAD_SUMS]);
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_lce_pass p = tr__lce_pass(desc, state, launch);
    tr_lce_list list;
    if (tr__lce_gathers(&p, &list)) {
        tr__lce_run_gathered(&p, &list, soften_backward);
    } else {
        tr__lce_run_backward(desc, state, launch, soften_backward);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__matmul_has(TR_REAL) && tr__lce_supports(desc, TR_REAL);
}

const tr_kernel TR_ISA_NAME(tr__lce_kernel) = {
    .name = "head.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__lce_chunks_forward_cost,
    .prepare = forward_prepare,
    .workspace = tr__lce_chunks_workspace,
    .launch = forward,
    .release = tr__lce_chunks_release,
};

const tr_kernel TR_ISA_NAME(tr__lce_backward_kernel) = {
    .name = "head_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__lce_chunks_backward_cost,
    .prepare = backward_prepare,
    .workspace = tr__lce_chunks_workspace,
    .launch = backward,
    .release = tr__lce_chunks_release,
};
