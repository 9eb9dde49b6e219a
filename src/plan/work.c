#include "plan/work.h"

#include "base/checked.h"
#include "ops/optimizer_measure.h"

enum { F32 = sizeof(float), F64 = sizeof(double) };

// ---- memory
// --------------------------------------------------------------------------

// Gradients are read, and the sums written, read too where they are added to.
static double fold_bytes(const tr_plan *plan, const tr_plan_step *step) {
    int64_t sums =
        (step->writes & tr__slot_bit(TR_SLOT_OUTPUT) ? 1 : 2) * tr__sum_bytes(plan);
    return (double)plan->flats[step->unit].count * (double)(F32 + sums);
}

static double gauge_bytes(const tr_plan *plan, const tr_plan_step *step) {
    double elements = 0;
    int64_t count;
    size_t next = 0;
    while (
        tr__gauge_next(plan->units[step->unit].program, step->segment, &next, &count)) {
        elements += (double)count;
    }
    return elements * F32;
}

static double norm_bytes(const tr_plan *plan) {
    double elements = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        bool squared = tr__is_on_nvme(plan, &plan->flats[f].grad);
        elements += squared ? 0 : (double)plan->flats[f].own;
    }
    return elements * (double)tr__sum_bytes(plan);
}

// Parameters and states are read and written, gradients read.
static double update_bytes(const tr_plan *plan, const tr_plan_step *step) {
    int64_t each = 2 * F32 * (1 + plan->request.optimizer_states) + tr__sum_bytes(plan);
    each += tr__plan_is_half(plan) ? tr__param_bytes(plan) : 0; // what it is rounded to
    return (double)step->count * (double)each;
}

// The first phase: parameters and gradients are read, states read and written.
static double measure_bytes(const tr_plan *plan, const tr_plan_step *step) {
    int64_t each = F32 * (1 + 2 * plan->request.optimizer_states) + tr__sum_bytes(plan);
    return (double)step->count * (double)each;
}

static int64_t norms_bytes(const tr_plan *plan) {
    return plan->norms.parts * (int64_t)sizeof(tr_squares);
}

double tr__step_bytes(const tr_plan *plan, const tr_plan_step *step) {
    switch (step->kind) {
    case TR_STEP_fold:
        return fold_bytes(plan, step);
    case TR_STEP_square:
        return (double)plan->flats[step->unit].own * (double)tr__sum_bytes(plan);
    case TR_STEP_gauge:
        return gauge_bytes(plan, step);
    case TR_STEP_gauge_tied:
        return (double)plan->flats[step->unit].count * F32;
    case TR_STEP_norm:
        return norm_bytes(plan);
    case TR_STEP_measure:
        return measure_bytes(plan, step);
    case TR_STEP_total:
        return (double)(norms_bytes(plan) * tr__norms_ranks(plan));
    case TR_STEP_update:
        return update_bytes(plan, step);
    case TR_STEP_clear: // gaps between parameters are too small to count
        return step->part == TR_PART_RECORD
                   ? (double)plan->record.partials * (double)F64
                   : 0;
    default:
        return 0;
    }
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
