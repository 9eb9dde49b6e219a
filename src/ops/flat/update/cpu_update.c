#include "backend/cpu/half.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/update/cpu_packed.h"
#include "ops/flat/update/cpu_pieces.h"
#include "ops/operand.h"
#include "ops/optimizers/cpu_optimizer.h"
#include "ops/optimizers/state_types.h"

#include <math.h>

extern const tr_kernel tr__update_kernel;

// What the squares of a range's tensor make of its rate.
static double trust_of(const tr_update_piece *piece) {
    const tr_adaptation *adaptation = piece->optimizer->adaptation;
    const double *squares = piece->walk->launch->in[1];
    if (!adaptation || !piece->range->adapts) {
        return 1;
    }
    squares += 2 * piece->range->tensor;
    return adaptation->trust(&piece->hyper, sqrt(squares[0]), sqrt(squares[1]));
}

static void update_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    tr_update update = piece->update;
    update.trust = trust_of(piece);
    int level = walk->desc->target.level;
    tr_update_kernel *kernel = tr__optimizer_choose(piece->optimizer, level);
    if (tr__update_is_packed(&update)) {
        tr__update_packed(kernel, level, &piece->hyper, &update);
    } else {
        kernel(&piece->hyper, &update);
    }
}

// With what lies between the tensors.
static void round_run(const tr_update_walk *walk, int64_t first, int64_t count) {
    int64_t at = first - walk->attr->first;
    uint16_t *copy = walk->launch->out[TR_UPDATE_COPY];
    tr__half_narrow(walk->desc->out[TR_UPDATE_COPY].dtype, walk->param + at, count,
                    walk->desc->target.workers, copy + at);
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_update_walk walk = {.desc = desc,
                           .launch = launch,
                           .attr = (const void *)desc->attr,
                           .order = launch->run->update,
                           .param = launch->out[0]};
    tr__update_all_pieces(&walk, update_piece,
                          launch->out[TR_UPDATE_COPY] ? round_run : NULL);
}

static bool supports(const tr_op_desc *desc) {
    return tr__sums_are_read(desc->in[0].dtype) && desc->out[0].dtype == TR_F32;
}

// Parameters and states are read and written.
static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    for (int i = 0; i < desc->out_count; i++) {
        bool read = i != TR_UPDATE_COPY;
        out->bytes += read ? (double)tr_tensor_bytes(desc->out[i]) : 0;
    }
}

const tr_kernel tr__update_kernel = {
    .name = "update.cpu",
    .supports = supports,
    .cost = cost,
    .workspace = tr__sums_workspace,
    .launch = launch,
};
