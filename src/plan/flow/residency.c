// What of a plan lives on NVMe.
#include "plan/flow/residency.h"
#include "base/checked.h"
#include "plan/flow/plan.h"

bool tr__is_on_nvme(const tr_plan *plan, const tr_flat_range *range) {
    return range->buffer >= 0 && plan->buffers[range->buffer].space == TR_SPACE_NVME;
}

bool tr__flat_part_is_on_nvme(const tr_plan *plan, const tr_flat *flat, tr_part part) {
    return (part != TR_PART_COPY || tr__plan_is_half(plan)) &&
           tr__is_on_nvme(plan, &flat->part[part]);
}

bool tr__part_is_on_nvme(const tr_plan *plan, tr_part part) {
    bool some = false;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        some = some || (!flat->frozen && flat->count > 0 &&
                        tr__flat_part_is_on_nvme(plan, flat, part));
    }
    return some;
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

int64_t tr__nvme_bytes(const tr_plan *plan, const tr_flat *flat, tr_part part,
                       int64_t count) {
    return tr__round_up(tr__part_bytes(plan, flat, part, count), TR_NVME_ALIGNMENT);
}

// Of a packing of 260 bytes, 64 blocks of 4,096 are 1,024 packed ones.
int64_t tr__nvme_elements(const tr_plan *plan, const tr_flat *flat, tr_part part) {
    tr_block_size packing = tr__part_row(plan, flat, part)->packing;
    int64_t shared = packing.bytes & -packing.bytes; // the power of two in it
    int64_t blocks = TR_NVME_ALIGNMENT / tr__min_i64(shared, TR_NVME_ALIGNMENT);
    return tr__max_i64(TR_SHARD_ELEMENTS, blocks * packing.elements);
}

int64_t tr__exchange_bytes(const tr_plan *plan) {
    bool copies = tr__part_is_on_nvme(plan, TR_PART_COPY) ||
                  (plan->request.discrete && tr__plan_is_half(plan));
    // Copies, or a state as it is kept: at most two bytes an element.
    int64_t behind = copies ? tr__param_bytes(plan) : 0;
    bool packed =
        tr__plan_packs(plan) && (tr__plan_uses_nvme(plan) || plan->request.discrete);
    behind = packed ? tr__max_i64(behind, sizeof(uint16_t)) : behind;
    return (int64_t)sizeof(float) + behind;
}

bool tr__plan_packs(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    bool packs = false;
    for (int s = 0; s < r->optimizer_states; s++) {
        packs = packs || r->states[s].type != TR_STATE_F32 ||
                r->apart_states[s].type != TR_STATE_F32;
    }
    return packs;
}

int64_t tr__exchange_elements(const tr_plan *plan) {
    return plan->buffers[plan->exchange].bytes / tr__exchange_bytes(plan);
}
