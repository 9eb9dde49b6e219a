// The head, chunk of rows by chunk of rows: product, softmax with loss and gradient in
// place, then the products of the backward.
#include "backend/cpu/column_sums.h"
#include "backend/cpu/isa.h"
#include "ops/head/chunks.h"
#include "ops/head/softmax_row.h"

extern const tr_kernel TR_ISA_NAME(tr__head_kernel);
extern const tr_kernel TR_ISA_NAME(tr__head_backward_kernel);

// A launch, its workspace and the chunk at hand.
typedef struct pass {
    const tr_op_desc *desc;
    const tr_launch *launch;
    const tr_head_chunks *chunks;
    const tr_head_products *products;
    int64_t first;    // row
    float *logits;    // [rows, V]
    double *losses;   // [rows]
    int32_t *correct; // [rows]
    void *scratch;
} pass;

static pass pass_of(const tr_op_desc *desc, const tr_head_chunks *chunks,
                    const tr_launch *launch) {
    char *workspace = launch->workspace;
    return (pass){
        .desc = desc,
        .launch = launch,
        .chunks = chunks,
        .logits = launch->workspace,
        .losses = (double *)(workspace + chunks->losses),
        .correct = (int32_t *)(workspace + chunks->correct),
        .scratch = workspace + chunks->scratch,
    };
}

static void enter_chunk(pass *p, int64_t first) {
    p->first = first;
    p->products = tr__head_chunk_at(p->chunks, first);
}

static const float *rows_of_x(const pass *p) {
    return (const float *)p->launch->in[HEAD_X] + p->first * p->chunks->dims.in;
}

static const int32_t *targets_of(const pass *p) {
    return (const int32_t *)p->launch->in[HEAD_TARGETS] + p->first;
}

static bool has_target(const pass *p) {
    const int32_t *targets = targets_of(p);
    return tr__head_last_target(targets, p->products->dims.rows) >= 0;
}

static void compute_logits(const pass *p) {
    tr__matmul_run(p->products->output, false, rows_of_x(p), p->launch->in[HEAD_WEIGHT],
                   p->launch->in[HEAD_BIAS], p->logits, p->scratch);
}

// Losses of the chunk's rows; with `gradient` the logits become their gradients.
__attribute__((always_inline)) static inline void soften(const pass *p, bool gradient) {
    const int32_t *targets = targets_of(p);
    int64_t rows = p->products->dims.rows, width = p->products->dims.out;
    float seed = p->launch->run->loss_seed;
    int threads = tr__threads_for(rows * width, 8, p->desc->threads);
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
static void add_sums(const pass *p, double *sums) {
    const int32_t *targets = targets_of(p);
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
    return tr__head_chunks_create(desc, false, (tr_head_chunks **)state, err);
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    pass p = pass_of(desc, state, launch);
    for (int64_t first = 0; first < p.chunks->dims.rows; first += p.chunks->rows) {
        enter_chunk(&p, first);
        if (has_target(&p)) {
            compute_logits(&p);
            soften(&p, false);
            add_sums(&p, launch->out[0]);
        }
    }
}

// ---- backward

static tr_status backward_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    return tr__head_chunks_create(desc, true, (tr_head_chunks **)state, err);
}

static void put_input_gradient(const pass *p, bool any) {
    bool add = p->launch->accumulate >> HEAD_DX & 1;
    tr_linear_dims dims = p->products->dims;
    if (!tr__head_wants(p->desc, HEAD_DX)) {
        return;
    }
    float *dx = (float *)p->launch->out[HEAD_DX] + p->first * dims.in;
    if (any) {
        tr__matmul_run(p->products->input, add, p->logits, p->launch->in[HEAD_WEIGHT],
                       NULL, dx, p->scratch);
    } else if (!add) {
        memset(dx, 0, (size_t)(dims.rows * dims.in) * sizeof *dx);
    }
}

// again: an earlier chunk of this launch has written the gradients.
static void put_weight_gradients(const pass *p, bool again) {
    uint32_t add = p->launch->accumulate;
    tr_linear_dims dims = p->products->dims;
    if (tr__head_wants(p->desc, HEAD_DWEIGHT)) {
        tr__product_weight_run(p->products->weight, &dims,
                               again || (add >> HEAD_DWEIGHT & 1), p->logits,
                               rows_of_x(p), p->launch->out[HEAD_DWEIGHT], p->scratch);
    }
    if (tr__head_wants(p->desc, HEAD_DBIAS)) {
        tr__column_sums(p->logits, dims.rows, dims.out, p->desc->threads,
                        again || (add >> HEAD_DBIAS & 1), p->scratch,
                        p->launch->out[HEAD_DBIAS]);
    }
}

static void clear_fresh(const pass *p, int result) {
    if (tr__head_wants(p->desc, result) && !(p->launch->accumulate >> result & 1)) {
        memset(p->launch->out[result], 0,
               (size_t)tr_tensor_bytes(p->desc->out[result]));
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    pass p = pass_of(desc, state, launch);
    bool again = false;
    for (int64_t first = 0; first < p.chunks->dims.rows; first += p.chunks->rows) {
        enter_chunk(&p, first);
        bool any = has_target(&p);
        if (any) {
            compute_logits(&p);
            soften(&p, true);
            add_sums(&p, launch->out[HEAD_SUMS]);
            put_weight_gradients(&p, again);
            again = true;
        }
        put_input_gradient(&p, any);
    }
    if (!again) {
        clear_fresh(&p, HEAD_DWEIGHT);
        clear_fresh(&p, HEAD_DBIAS);
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    return ((const tr_head_chunks *)state)->bytes;
}

static void release(void *state) {
    tr__head_chunks_destroy(state);
}

const tr_kernel TR_ISA_NAME(tr__head_kernel) = {
    .name = "head.cpu." TR_ISA_TEXT,
    .supports = tr__head_supports,
    .cost = tr__head_forward_cost,
    .prepare = forward_prepare,
    .workspace = workspace,
    .launch = forward,
    .release = release,
};

const tr_kernel TR_ISA_NAME(tr__head_backward_kernel) = {
    .name = "head_backward.cpu." TR_ISA_TEXT,
    .supports = tr__head_supports,
    .cost = tr__head_backward_cost,
    .prepare = backward_prepare,
    .workspace = workspace,
    .launch = backward,
    .release = release,
};
