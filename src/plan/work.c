#include "plan/work.h"

#include "base/checked.h"
#include "ops/optimizer_measure.h"
#include "plan/flat_launch.h"

enum { F32 = sizeof(float), F64 = sizeof(double) };

// ---- memory
// --------------------------------------------------------------------------

double tr__step_bytes(const tr_plan *plan, const tr_plan_step *step) {
    tr_flat_launch launch;
    double bytes = 0;
    size_t next = 0;
    if (step->kind == TR_STEP_clear && step->part == TR_PART_GRAD) {
        return 0; // gaps between parameters are too small to count
    }
    while (tr__flat_launch_next(plan, step, &next, &launch)) {
        tr_cost cost = {0};
        launch.kernel->cost(&launch.desc, &cost);
        bytes += cost.bytes;
    }
    return bytes;
}

static int64_t norms_bytes(const tr_plan *plan) {
    return plan->norms.parts * (int64_t)sizeof(tr_squares);
}

int64_t tr__step_copied(const tr_plan *plan, const tr_plan_step *step) {
    if (tr__step_is_of_boundary(step)) {
        return plan->units[step->unit].program->input_bytes;
    }
    const tr_flat *flat = &plan->flats[step->unit];
    switch (step->kind) {
    case TR_STEP_fetch:
        return flat->copy.count * tr__param_bytes(plan);
    case TR_STEP_evict:
        return flat->grad.count * tr__sum_bytes(plan);
    default:
        return 0;
    }
}

// In 16 bits the masters are on the device, and what they are rounded to is written.
tr_reach tr__step_reach(const tr_plan *plan, const tr_plan_step *step) {
    const tr_plan_request *r = &plan->request;
    bool updates = step->kind == TR_STEP_update, half = tr__plan_is_half(plan);
    bool reads = !half && (updates || step->kind == TR_STEP_measure);
    if (r->param_home == TR_SPACE_DEVICE || !(reads || updates) ||
        plan->flats[step->unit].leaves) {
        return (tr_reach){0, 0};
    }
    return (tr_reach){reads ? step->count * F32 : 0,
                      updates ? step->count * tr__param_bytes(plan) : 0};
}

int64_t tr__step_stored(const tr_plan *plan, const tr_plan_step *step) {
    bool moves = step->kind == TR_STEP_read || step->kind == TR_STEP_write;
    return moves ? tr__nvme_bytes(plan, step->part, step->count) : 0;
}

// ---- messages
// ------------------------------------------------------------------------

static tr_transfer flat_transfer(const tr_plan *plan, const tr_plan_step *step) {
    const tr_flat *flat = &plan->flats[step->unit];
    bool params = step->kind == TR_STEP_gather && step->part == TR_PART_PARAM;
    return (tr_transfer){step->kind == TR_STEP_gather ? TR_COMM_GATHER : TR_COMM_REDUCE,
                         flat->count, flat->shard,
                         params ? tr__param_bytes(plan) : tr__sum_bytes(plan)};
}

static tr_transfer record_transfer(const tr_plan *plan) {
    int64_t own = plan->record.doubles;
    return (tr_transfer){TR_COMM_GATHER, own * plan->request.ranks, own, F64};
}

static tr_transfer norms_transfer(const tr_plan *plan) {
    int64_t own = norms_bytes(plan) / F64;
    return (tr_transfer){TR_COMM_GATHER, own * plan->request.ranks, own, F64};
}

int tr__step_transfers(const tr_plan *plan, const tr_plan_step *step, size_t *next,
                       tr_transfer out[TR_TRANSFERS_AT_ONCE]) {
    tr_wave_tensor tensor;
    if (plan->request.ranks == 1) {
        return 0;
    }
    if (step->kind == TR_STEP_combine) { // each merges the parts of all
        do {
            if (!tr__combine_next(plan, step, next, &tensor)) {
                return 0;
            }
        } while (tensor.own);
        int64_t own = tensor.bytes * tr__wave_parts(plan, TR_SEQUENCE_TRAIN);
        out[0] = (tr_transfer){TR_COMM_GATHER, own * plan->request.ranks, own, 1};
        return 1;
    }
    if (step->stream != TR_STREAM_COMM || (*next)++ > 0) {
        return 0;
    }
    bool gather = step->kind == TR_STEP_gather;
    if (gather && step->part == TR_PART_RECORD) {
        out[0] = record_transfer(plan);
    } else if (gather && step->part == TR_PART_NORMS) {
        out[0] = norms_transfer(plan);
    } else {
        out[0] = flat_transfer(plan, step);
    }
    return 1;
}

int64_t tr__transfer_sent(const tr_plan *plan, const tr_transfer *t) {
    int64_t first = 0, own = 0;
    tr__comm_part(t->count, t->shard, (int)plan->request.rank, &first, &own);
    int64_t elements =
        t->kind == TR_COMM_GATHER ? (plan->request.ranks - 1) * own : t->count - own;
    return elements * t->bytes;
}
