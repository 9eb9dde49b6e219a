// The first phase of an update whose rate follows each tensor's norms.
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/update/cpu_pieces.h"
#include "ops/operand.h"
#include "ops/optimizers/cpu_optimizer.h"

extern const tr_kernel tr__direction_squares_kernel;

static void measure_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    tr_squares *parts = walk->launch->out[0];
    int64_t block = piece->first / TR_NORM_BLOCK - walk->attr->origin / TR_NORM_BLOCK;
    tr__optimizer_measure(piece->optimizer, &walk->desc->target, &piece->hyper,
                          &piece->update, piece->first,
                          parts + block + piece->range->place);
}

// Parameters are read alone, but a piece of an update may write them.
static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_update_walk walk = {.desc = desc,
                           .launch = launch,
                           .attr = (const void *)desc->attr,
                           .order = launch->run->update,
                           .param = (float *)launch->in[1]};
    tr__update_all_pieces(&walk, measure_piece, NULL);
}

static bool supports(const tr_op_desc *desc) {
    bool f32 = true;
    for (int i = TR_UPDATE_STATE; i < desc->out_count; i++) {
        f32 = f32 && (desc->out[i].dtype == TR_F32 || desc->out[i].dtype == TR_NONE);
    }
    return f32 && tr__sums_are_read(desc->in[0].dtype) && desc->in[1].dtype == TR_F32;
}

// States are read, too.
static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    for (int i = TR_UPDATE_STATE; i < desc->out_count; i++) {
        out->bytes += (double)tr_tensor_bytes(desc->out[i]);
    }
}

const tr_kernel tr__direction_squares_kernel = {
    .name = "direction_squares.cpu",
    .supports = supports,
    .cost = cost,
    .workspace = tr__sums_workspace,
    .launch = launch,
};
