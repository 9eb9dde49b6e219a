#include "backend/cpu/parallel.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/flat/update/cpu_pieces.h"
#include "ops/operand.h"

extern const tr_kernel tr__direction_kernel;

// One element costs as much as this many moved ones.
enum { WEIGHT = 4, LINE = 64 };

static void direct_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    float *direction = walk->launch->out[0];
    direction += piece->first - walk->attr->first;
    int threads =
        tr__threads_for(piece->update.count, WEIGHT, walk->desc->target.workers);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range range = tr__range_part(piece->update.count, LINE, t, threads);
        tr_update part = piece->update;
        part.grad += range.begin;
        part.state[0] += range.begin;
        part.count = range.end - range.begin;
        piece->optimizer->matrices->direct(&piece->hyper, &part,
                                           direction + range.begin);
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_update_walk walk = {.desc = desc,
                           .launch = launch,
                           .attr = (const void *)desc->attr,
                           .order = launch->run->update};
    tr__update_all_pieces(&walk, direct_piece, NULL);
}

static bool supports(const tr_op_desc *desc) {
    return tr__sums_are_read(desc->in[0].dtype) && desc->out[0].dtype == TR_F32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    for (int i = TR_UPDATE_STATE; i < desc->out_count; i++) {
        out->bytes += (double)tr_tensor_bytes(desc->out[i]);
    }
}

const tr_kernel tr__direction_kernel = {
    .name = "direction.cpu",
    .supports = supports,
    .cost = cost,
    .workspace = tr__sums_workspace,
    .launch = launch,
};
