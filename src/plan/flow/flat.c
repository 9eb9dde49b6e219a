// Flat buffers: their types and sizes, and who hands their gradients on.
#include "plan/flow/flat.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/plan.h"
#include "plan/units/offsets.h"

#include <string.h>

bool tr__flat_is_half(const tr_flat *flat) {
    return flat->frozen && flat->master.buffer < 0;
}

int64_t tr__param_bytes(const tr_plan *plan) {
    return (int64_t)tr_dtype_bytes(plan->request.compute);
}

bool tr__plan_is_half(const tr_plan *plan) {
    return plan->request.compute != TR_F32;
}

bool tr__plan_accumulates(const tr_plan *plan) {
    return plan->request.sums != TR_F32;
}

int64_t tr__sum_bytes(const tr_plan *plan) {
    return (int64_t)tr_dtype_bytes(plan->request.sums);
}

int64_t tr__sums_bytes(const tr_plan *plan, int64_t count) {
    return tr__round_up(count * tr__sum_bytes(plan), TR_ALIGNMENT);
}

// Where ranks sum whole steps, what is evicted is the sum. So it is in a pipeline,
// since one wave of all micro-batches would leave its stages waiting for each other.
static bool evicts_whole_sums(const tr_plan *plan) {
    return tr__data_ranks(&plan->request) > 1 || tr__has_stages(&plan->request);
}

bool tr__plan_grads_pass(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    return tr__plan_stage(plan) >= 2 ||
           (!evicts_whole_sums(plan) && r->optimizer_placement != TR_SPACE_DEVICE);
}

bool tr__flat_grads_pass(const tr_plan *plan, int flat) {
    return tr__plan_stage(plan) >= 2 ||
           (!evicts_whole_sums(plan) && plan->flats[flat].offloaded);
}

bool tr__plan_evicts_scopes(const tr_plan *plan) {
    return tr__plan_grads_pass(plan) && !tr__has_stages(&plan->request) &&
           plan->request.optimizer_placement != TR_SPACE_DEVICE;
}

bool tr__flat_evicts_scopes(const tr_plan *plan, int flat) {
    return tr__plan_evicts_scopes(plan) && plan->flats[flat].offloaded;
}

bool tr__flat_leaves_by_use(const tr_plan *plan, int flat) {
    const tr_flat *of = &plan->flats[flat];
    return of->slice || (of->tied && tr__has_stages(&plan->request));
}

bool tr__plan_evicts_again(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    return plan->hands_out && r->accumulation_steps > r->wave &&
           tr__plan_evicts_scopes(plan);
}

bool tr__flat_has_gaps(const tr_plan *plan, int flat) {
    const tr_flat *of = &plan->flats[flat];
    int64_t count = 0;
    for (size_t i = of->first_param; i < of->end_param; i++) {
        count += plan->params[i].flat == flat ? plan->params[i].count : 0;
    }
    return count < plan->flats[flat].count;
}

int64_t tr__plan_trained(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        count += plan->flats[f].frozen ? 0 : plan->flats[f].count;
    }
    return count;
}

int64_t tr__plan_staying(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        count += flat->offloaded || flat->frozen ? 0 : flat->count;
    }
    return count;
}

int64_t tr__update_shard(const tr_plan *plan, const tr_flat *flat) {
    return tr__plan_stage(plan) > 0 ? flat->shard : flat->all;
}

int64_t tr__gradient_scope(const tr_plan *plan, int flat, int unit, int64_t wave) {
    if (!tr__flat_grads_pass(plan, flat)) {
        return 0;
    }
    return tr__flat_leaves_by_use(plan, flat) ? wave * plan->unit_count + unit : wave;
}
