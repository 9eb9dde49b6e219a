#include "backend/cuda/kernels.h"
#include "ops/operand.h"
#include "ops/update/pieces.h"

extern const tr_cuda_kernels tr__cuda_kernels_update[];

static void update_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    tr_cuda_update *update = tr__cuda_update_by(walk->order->optimizer);
    if (update) {
        tr_update one = piece->update;
        one.trust = 1;
        update(walk->launch, &piece->hyper, &one);
    } else { // the run's request has been refused before
        tr__launch_note(walk->launch, TR_INTERNAL);
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const tr_update_attr *attr = (const void *)desc->attr;
    (void)state;
    tr_update_walk walk = {.desc = desc,
                           .launch = launch,
                           .attr = attr,
                           .order = launch->run->update,
                           .param = launch->out[0]};
    tr__update_pieces(&walk, attr->first, tr_shape_count(desc->in[0].shape),
                      launch->in[0], update_piece);
}

// Without norms of tensors, and without parameters in 16 bits.
static bool supports(const tr_op_desc *desc) {
    return desc->in_count == 1 && tr__desc_f32(desc);
}

// Parameters and states are read and written.
static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    for (int i = 0; i < desc->out_count; i++) {
        out->bytes += (double)tr_tensor_bytes(desc->out[i]);
    }
}

static const tr_kernel update = {
    .name = "update.cuda", .supports = supports, .cost = cost, .launch = launch};

const tr_cuda_kernels tr__cuda_kernels_update[] = {
    {&tr__op_update, &update},
    {NULL, NULL},
};
