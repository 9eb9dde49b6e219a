#include "backend/cpu/half.h"
#include "base/checked.h"
#include "ops/flat/orthogonal/cpu_newton.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/flat/update/pieces.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__orthogonal_kernel;

enum { LINE = 64 }; // bytes of the cache

static int64_t newton_bytes(const tr_op_desc *desc, int64_t rows, int64_t columns) {
    size_t bytes = tr__newton_workspace(rows, columns, desc->target.workers);
    return tr__round_up((int64_t)bytes, LINE);
}

static void put_part(const float *all, const tr_matrix_part *part, float *matrix) {
    int64_t count;
    for (int64_t i = 0; i < part->count; i += count) {
        count = part->count - i;
        int64_t at = tr__stride_at(&part->lies, i, &count);
        memcpy(matrix + at, all + part->offset + i, (size_t)count * sizeof *matrix);
    }
}

// The directions of a matrix: where they lie, or, of one that ranks share, put together
// behind what the iterations work in.
static const float *directions_of(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    const tr_update_range *range = piece->range;
    const float *all = walk->launch->in[0];
    if (range->part_count == 0) {
        return all + range->offset;
    }
    float *matrix = (void *)((char *)walk->launch->workspace +
                             newton_bytes(walk->desc, range->rows, range->columns));
    for (int i = 0; i < range->part_count; i++) {
        put_part(all, &range->parts[i], matrix);
    }
    return matrix;
}

// A matrix, of which elements are updated here. What is orthogonal lies transposed
// where it has more rows than columns.
static void update_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    const tr_update_range *range = piece->range;
    const tr_matrix_update *matrices = piece->optimizer->matrices;
    tr_orthogonal how =
        matrices->orthogonal(&piece->hyper, range->rows, range->columns);
    const float *o = tr__newton(&how, directions_of(piece), range->rows, range->columns,
                                walk->desc->target.workers, walk->launch->workspace);
    float keep = (float)how.keep, step = (float)how.step;
    bool turned = range->rows > range->columns;
    for (int64_t i = 0; i < piece->update.count; i++) {
        int64_t at = tr__stride_place(&range->lies, piece->first - range->offset + i);
        int64_t row = at / range->columns, column = at % range->columns;
        float value = o[turned ? column * range->rows + row : at];
        piece->update.param[i] = keep * piece->update.param[i] - step * value;
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_orthogonal_attr *attr = (const void *)desc->attr;
    int64_t count = tr_shape_count(desc->out[0].shape);
    tr_update_walk walk = {.desc = desc,
                           .launch = launch,
                           .attr = &attr->update,
                           .order = launch->run->update,
                           .param = launch->out[0]};
    tr__update_pieces(&walk, attr->update.first, count, NULL, update_piece);
    if (launch->out[TR_UPDATE_COPY]) {
        tr__half_narrow(desc->out[TR_UPDATE_COPY].dtype, walk.param, count,
                        desc->target.workers, launch->out[TR_UPDATE_COPY]);
    }
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32 && desc->out[0].dtype == TR_F32;
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    const tr_orthogonal_attr *attr = (const void *)desc->attr;
    (void)state;
    size_t matrix = (size_t)(attr->rows * attr->columns) * sizeof(float);
    return (size_t)newton_bytes(desc, attr->rows, attr->columns) +
           (attr->shared ? matrix : 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    const tr_orthogonal_attr *attr = (const void *)desc->attr;
    tr__desc_cost(desc, attr->flops, out);
    out->bytes += (double)tr_tensor_bytes(desc->out[0]);
}

const tr_kernel tr__orthogonal_kernel = {
    .name = "orthogonal.cpu",
    .supports = supports,
    .cost = cost,
    .workspace = workspace,
    .launch = launch,
};
