#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "base/half.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/update/cuda_pieces.h"
#include "ops/operand.h"
#include "ops/optimizers/optimizer_measure.h"
#include "ops/optimizers/state_types.h"

#include <assert.h>

extern const tr_cuda_kernels tr__cuda_kernels_update[];

static_assert(TR_CUDA_PART == TR_NORM_BLOCK, "a block measures one part");

// ---- what phases share

void tr__cuda_update_pieces(const tr_op_desc *desc, const tr_launch *launch,
                            float *param, void (*visit)(const tr_update_piece *)) {
    tr_update_walk walk = {.desc = desc,
                           .launch = launch,
                           .attr = (const void *)desc->attr,
                           .order = launch->run->update,
                           .param = param};
    bool measures = desc->op == &tr__op_direction_squares;
    tr_shape shape = measures ? desc->in[0].shape : desc->out[0].shape;
    tr__update_pieces(&walk, walk.attr->first, tr_shape_count(shape), NULL, visit);
}

static const tr_cuda_function *function_of(const tr_cuda_optimizer *optimizer,
                                           const tr_update *update,
                                           tr_cuda_update_phase phase) {
    return !optimizer                     ? NULL
           : phase == TR_CUDA_MEASURE     ? optimizer->measure
           : phase == TR_CUDA_DIRECT      ? optimizer->direct
           : tr__update_is_packed(update) ? optimizer->packed
                                          : optimizer->update;
}

void tr__cuda_update_piece(const tr_update_piece *piece, const tr_update *update,
                           tr_cuda_update_phase phase, const tr_cuda_norms *norms) {
    static const tr_cuda_norms none;
    const tr_update_walk *walk = piece->walk;
    const tr_cuda_optimizer *optimizer = tr__cuda_optimizer_of(piece->optimizer);
    const tr_cuda_function *function = function_of(optimizer, update, phase);
    tr_cuda_gradients grads =
        tr__cuda_gradients(walk->desc, walk->launch, piece->first - walk->attr->first);
    TR_ALIGNAS(8) unsigned char args[TR_CUDA_OPTIMIZER_ARGS];
    if (!function) { // the run's request has been refused before
        tr__launch_note(walk->launch, TR_INTERNAL);
        return;
    }
    norms = norms ? norms : &none;
    int64_t parts = tr__measure_parts(norms->parts.before, update->count);
    tr_cuda_grid grid = phase == TR_CUDA_MEASURE
                            ? tr__cuda_blocks(parts, TR_CUDA_THREADS)
                            : tr__cuda_each(update->count); // blocks of states, too
    size_t bytes = optimizer->args(&piece->hyper, update, &grads, norms, args);
    tr__cuda_launch(walk->launch, function, grid, args, bytes);
}

void tr__cuda_round_params(const tr_op_desc *desc, const tr_launch *launch) {
    if (!launch->out[TR_UPDATE_COPY]) {
        return;
    }
    tr__cuda_cast(launch, &(tr_cuda_cast_args){
                              .x = launch->out[0],
                              .y = launch->out[TR_UPDATE_COPY],
                              .count = tr_shape_count(desc->out[0].shape),
                              .from = TR_F32,
                              .to = (int32_t)desc->out[TR_UPDATE_COPY].dtype,
                          });
}

// ---- the first phase

static void measure_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    int64_t block = piece->first / TR_NORM_BLOCK - walk->attr->origin / TR_NORM_BLOCK;
    tr_squares *parts = walk->launch->out[0];
    const tr_cuda_norms norms = {
        .parts = {.before = piece->first % TR_NORM_BLOCK,
                  .count = piece->update.count,
                  .squares = &parts[block + piece->range->place].param}};
    tr__cuda_update_piece(piece, &piece->update, TR_CUDA_MEASURE, &norms);
}

// Parameters are read alone, but a piece of an update may write them.
static void launch_measure(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    tr__cuda_update_pieces(desc, launch, (float *)launch->in[1], measure_piece);
}

// ---- the update

static void update_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    bool adapts = piece->optimizer->adaptation && piece->range->adapts;
    const double *squares = walk->launch->in[1];
    tr_update update = piece->update;
    update.trust = 1; // what the squares make of it is found on the device
    const tr_cuda_norms norms = {.squares = adapts ? squares + 2 * piece->range->tensor
                                                   : NULL};
    tr__cuda_update_piece(piece, &update, TR_CUDA_UPDATE, &norms);
}

static void launch_update(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr__cuda_update_pieces(desc, launch, launch->out[0], update_piece);
    tr__cuda_round_params(desc, launch);
}

// ---- what they support and cost

static bool has_f32_states(const tr_op_desc *desc) {
    bool f32 = true;
    for (int i = TR_UPDATE_STATE; i < desc->out_count; i++) {
        f32 = f32 && (desc->out[i].dtype == TR_F32 || desc->out[i].dtype == TR_NONE);
    }
    return f32;
}

static bool supports_update(const tr_op_desc *desc) {
    return tr__sums_are_read(desc->in[0].dtype) && desc->out[0].dtype == TR_F32;
}

static bool supports_measure(const tr_op_desc *desc) {
    return tr__sums_are_read(desc->in[0].dtype) && desc->in[1].dtype == TR_F32 &&
           has_f32_states(desc);
}

// Parameters and states are read and written.
static void cost_update(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    for (int i = 0; i < desc->out_count; i++) {
        bool read = i != TR_UPDATE_COPY;
        out->bytes += read ? (double)tr_tensor_bytes(desc->out[i]) : 0;
    }
}

static void cost_measure(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    for (int i = TR_UPDATE_STATE; i < desc->out_count; i++) {
        out->bytes += (double)tr_tensor_bytes(desc->out[i]);
    }
}

static const tr_kernel update = {.name = "update.cuda",
                                 .supports = supports_update,
                                 .cost = cost_update,
                                 .launch = launch_update};
static const tr_kernel measure = {.name = "direction_squares.cuda",
                                  .supports = supports_measure,
                                  .cost = cost_measure,
                                  .launch = launch_measure};
const tr_cuda_kernels tr__cuda_kernels_update[] = {
    {&tr__op_update, &update},
    {&tr__op_direction_squares, &measure},
    {NULL, NULL},
};
