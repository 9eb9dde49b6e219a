// What of a plan lives on NVMe.
#include "plan/flow/residency.h"
#include "base/checked.h"
#include "plan/flow/plan.h"

const tr_flat_range *tr__flat_range(const tr_flat *flat, tr_part part) {
    switch (part) {
    case TR_PART_PARAM:
        return &flat->master;
    case TR_PART_GRAD:
        return &flat->grad;
    case TR_PART_COPY:
        return &flat->copy;
    default:
        return &flat->state[part - TR_PART_STATE];
    }
}

bool tr__is_on_nvme(const tr_plan *plan, const tr_flat_range *range) {
    return range->buffer >= 0 && plan->buffers[range->buffer].space == TR_SPACE_NVME;
}

// All flat buffers that are trained are alike, but for those of units whose parameters
// are all tied: they are empty, and lie nowhere.
static const tr_flat *any_flat(const tr_plan *plan) {
    size_t f = 0;
    while (f + 1 < plan->flat_count &&
           (plan->flats[f].count == 0 || plan->flats[f].frozen)) {
        f++;
    }
    return f < plan->flat_count ? &plan->flats[f] : NULL;
}

bool tr__part_is_on_nvme(const tr_plan *plan, tr_part part) {
    const tr_flat *flat = any_flat(plan);
    bool there = flat && part != TR_PART_STATISTICS &&
                 (part != TR_PART_COPY || tr__plan_is_half(plan));
    return there && tr__is_on_nvme(plan, tr__flat_range(flat, part));
}

bool tr__copy_is_in_file(const tr_plan *plan, const tr_flat *flat) {
    return tr__plan_is_half(plan) && tr__is_on_nvme(plan, &flat->copy);
}

bool tr__plan_uses_nvme(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    return !r->inference && (r->optimizer_placement == TR_SPACE_NVME ||
                             r->param_placement == TR_SPACE_NVME);
}

tr_part tr__used_part(const tr_plan *plan) {
    return tr__plan_is_half(plan) ? TR_PART_COPY : TR_PART_PARAM;
}

int64_t tr__part_bytes(const tr_plan *plan, tr_part part) {
    switch (part) {
    case TR_PART_COPY:
        return tr__param_bytes(plan);
    case TR_PART_GRAD:
        return tr__sum_bytes(plan);
    default:
        return sizeof(float);
    }
}

int64_t tr__nvme_bytes(const tr_plan *plan, tr_part part, int64_t count) {
    return tr__round_up(count * tr__part_bytes(plan, part), TR_NVME_ALIGNMENT);
}

int64_t tr__nvme_elements(const tr_plan *plan, tr_part part) {
    return tr__max_i64(TR_SHARD_ELEMENTS,
                       TR_NVME_ALIGNMENT / tr__part_bytes(plan, part));
}

int64_t tr__exchange_bytes(const tr_plan *plan) {
    bool copies = tr__part_is_on_nvme(plan, TR_PART_COPY) ||
                  (plan->request.discrete && tr__plan_is_half(plan));
    return (int64_t)sizeof(float) + (copies ? tr__param_bytes(plan) : 0);
}

int64_t tr__exchange_elements(const tr_plan *plan) {
    return plan->buffers[plan->exchange].bytes / tr__exchange_bytes(plan);
}
