#include "ops/nn/linear_cross_entropy/cpu_chunks.h"

#include "backend/cpu/column_sums.h"
#include "base/checked.h"
#include "base/memory.h"

#include <math.h>

// 256 rows are enough for products at full speed; more cost only memory, unless the
// vocabulary is small. A vocabulary so large that 256 rows need more than 52 MB (GPT-2
// is just below) gets fewer.
enum {
    CHUNK_ROWS = 256,
    CHUNK_BYTES = 8 << 20,
    CHUNK_BYTES_MOST = 52000000,
    CHUNK_UNIT = 16,
    FEW_ROWS = 64,
};

static int64_t chunk_rows(const tr_linear_dims *dims, int64_t asked) {
    int64_t row_bytes = dims->out * (int64_t)sizeof(float);
    int64_t limit = tr__max_i64(CHUNK_ROWS, CHUNK_BYTES / row_bytes);
    limit = tr__min_i64(limit, CHUNK_BYTES_MOST / row_bytes);
    limit = tr__max_i64(limit, 1);
    if (asked > 0) {
        return tr__min_i64(asked, dims->rows);
    }
    if (dims->rows <= limit) {
        return dims->rows;
    }
    int64_t even = tr__ceil_div(dims->rows, tr__ceil_div(dims->rows, limit));
    return tr__min_i64(tr__round_up(even, CHUNK_UNIT), limit);
}

// Logits that are kept are written where they are kept.
static int64_t logits_row(const tr_op_desc *desc) {
    int64_t classes = tr__lce_dims(desc).out;
    return tr__lce_keeps_logits(desc) ? tr__lce_logits_row(classes) : classes;
}

// How products add up their results: are there several chunks, and are they gathered,
// so that dx is a chunk's own?
typedef struct adding {
    bool several, gathers;
} adding;

static tr_status create_backward(const tr_op_desc *desc, adding how, tr_lce_products *p,
                                 tr_error *err) {
    tr_status status = TR_OK;
    if (tr__lce_wants(desc, HEAD_DX)) {
        tr_matmul_desc input = tr__product_input(&p->dims, desc->target.workers);
        input.type = input.c_type = desc->in[HEAD_X].dtype;
        input.fresh = how.gathers || (desc->fresh >> HEAD_DX & 1);
        input.accumulate = desc->accumulate >> HEAD_DX & 1;
        status = tr__matmul_create(&input, &p->input, err);
    }
    if (status == TR_OK && tr__lce_wants(desc, HEAD_DWEIGHT)) {
        tr_matmul_desc weight = tr__product_weight(&p->dims, desc->target.workers);
        weight.type = desc->in[HEAD_X].dtype;
        weight.fresh = desc->fresh >> HEAD_DWEIGHT & 1;
        weight.accumulate = how.several || (desc->accumulate >> HEAD_DWEIGHT & 1);
        status = tr__matmul_create(&weight, &p->weight, err);
    }
    return status;
}

static tr_status create_output(const tr_op_desc *desc, tr_lce_products *p,
                               tr_error *err) {
    tr_matmul_desc output = tr__product_output(&p->dims, desc->target.workers);
    output.type = desc->in[HEAD_X].dtype;
    output.c_row = logits_row(desc);
    output.bias = tr__lce_has_bias(desc);
    output.fresh = true;
    return tr__matmul_create(&output, &p->output, err);
}

static tr_status create_products(const tr_op_desc *desc, bool backward, adding how,
                                 tr_linear_dims dims, tr_lce_products *p,
                                 tr_error *err) {
    tr_status status = TR_OK;
    p->dims = dims;
    if (dims.rows == 0) {
        return TR_OK;
    }
    if (!tr__lce_is_given_logits(desc)) {
        status = create_output(desc, p, err);
    }
    if (status == TR_OK && backward) {
        status = create_backward(desc, how, p, err);
    }
    return status;
}

static size_t scratch_bytes(const tr_op_desc *desc, const tr_lce_products *p) {
    size_t bytes = 0;
    const tr_matmul *products[] = {p->output, p->input, p->weight};
    if (p->dims.rows == 0) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        size_t need = tr__matmul_workspace(products[i]);
        bytes = need > bytes ? need : bytes;
    }
    if (tr__lce_wants(desc, HEAD_DBIAS)) {
        size_t sums = tr__column_sums_workspace(p->dims.rows, p->dims.out);
        bytes = sums > bytes ? sums : bytes;
    }
    return bytes;
}

static size_t aligned(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

// What gathered rows take.
static size_t lay_out_gathered(const tr_op_desc *desc, tr_lce_chunks *chunks,
                               size_t at) {
    size_t rows = (size_t)chunks->rows, type = tr_dtype_bytes(desc->in[HEAD_X].dtype);
    size_t bytes = aligned(rows * (size_t)chunks->dims.in * type);
    chunks->list = at;
    chunks->targets = at + aligned((size_t)chunks->dims.rows * sizeof(int32_t));
    chunks->x = chunks->targets + aligned(rows * sizeof(int32_t));
    chunks->dx = chunks->x + bytes;
    return chunks->dx + (tr__lce_wants(desc, HEAD_DX) ? bytes : 0);
}

static void lay_out(const tr_op_desc *desc, tr_lce_chunks *chunks) {
    const tr_lce_products *sizes[] = {&chunks->full, &chunks->last, &chunks->few};
    size_t rows = (size_t)chunks->rows, scratch = 0;
    chunks->losses = aligned(rows * (size_t)chunks->logits_row * sizeof(float));
    chunks->correct = chunks->losses + aligned(rows * sizeof(double));
    chunks->scratch = chunks->correct + aligned(rows * sizeof(int32_t));
    if (chunks->few.dims.rows > 0) {
        chunks->scratch = lay_out_gathered(desc, chunks, chunks->scratch);
    }
    for (int i = 0; i < 3; i++) {
        size_t need = scratch_bytes(desc, sizes[i]);
        scratch = need > scratch ? need : scratch;
    }
    chunks->bytes = chunks->scratch + scratch;
}

// Fewer rows than this are as soon computed as gathered.
static bool gathers_of(int64_t rows) {
    return rows > FEW_ROWS;
}

static tr_status create_all(const tr_op_desc *desc, bool backward,
                            tr_lce_chunks *chunks, tr_error *err) {
    tr_linear_dims dims = chunks->dims;
    bool several = dims.rows > chunks->rows, gathers = gathers_of(chunks->rows);
    const adding how = {several || gathers, gathers};
    dims.rows = chunks->rows;
    tr_status status = create_products(desc, backward, how, dims, &chunks->full, err);
    if (status == TR_OK) {
        dims.rows = chunks->dims.rows % chunks->rows;
        status = create_products(desc, backward, how, dims, &chunks->last, err);
    }
    if (status == TR_OK && gathers) {
        dims.rows = FEW_ROWS;
        status = create_products(desc, backward, how, dims, &chunks->few, err);
    }
    return status;
}

tr_status tr__lce_chunks_create(const tr_op_desc *desc, bool backward,
                                tr_lce_chunks **out, tr_error *err) {
    *out = NULL;
    tr_lce_chunks *chunks = tr__calloc(1, sizeof *chunks);
    if (!chunks) {
        return tr_fail(err, TR_MEMORY, "no memory to prepare the head");
    }
    chunks->dims = tr__lce_dims(desc);
    chunks->dims.dy_row = chunks->dims.out * (int64_t)sizeof(float) /
                          (int64_t)tr_dtype_bytes(desc->in[HEAD_X].dtype);
    chunks->rows = chunk_rows(&chunks->dims, tr__lce_attr(desc).chunk_rows);
    chunks->logits_row = logits_row(desc);
    tr_status status = create_all(desc, backward, chunks, err);
    if (status != TR_OK) {
        tr__lce_chunks_release(chunks);
        return status;
    }
    lay_out(desc, chunks);
    *out = chunks;
    return TR_OK;
}

static void destroy_products(tr_lce_products *p) {
    tr__matmul_destroy(p->output);
    tr__matmul_destroy(p->input);
    tr__matmul_destroy(p->weight);
}

size_t tr__lce_chunks_workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    return ((const tr_lce_chunks *)state)->bytes;
}

void tr__lce_chunks_release(void *state) {
    tr_lce_chunks *chunks = state;
    if (chunks) {
        destroy_products(&chunks->full);
        destroy_products(&chunks->last);
        destroy_products(&chunks->few);
        tr__free(chunks);
    }
}

// ---- cost

static int64_t rows_of_cost(const tr_op_desc *desc) {
    tr_lce_attr attr = tr__lce_attr(desc);
    tr_lce_chunks chunks = {.dims = tr__lce_dims(desc)};
    chunks.rows = chunk_rows(&chunks.dims, attr.chunk_rows);
    if (!(attr.share > 0 && attr.share < 1) || !gathers_of(chunks.rows)) {
        return chunks.dims.rows;
    }
    chunks.full.dims.rows = chunks.rows;
    chunks.few.dims.rows = FEW_ROWS;
    int64_t count = (int64_t)ceil(attr.share * (double)chunks.dims.rows);
    return tr__min_i64(tr__lce_computed(&chunks, count), chunks.dims.rows);
}

void tr__lce_chunks_forward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__lce_cost(desc, rows_of_cost(desc), 1, cost);
}

void tr__lce_chunks_backward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__lce_rows_backward_cost(desc, rows_of_cost(desc), cost);
}
