#include "plan/flow/parts.h"

#include "plan/flow/plan.h"

static tr_part_row row_of(tr_dtype dtype) {
    return (tr_part_row){.dtype = dtype,
                         .packing = {1, (int64_t)tr_dtype_bytes(dtype)}};
}

tr_part_rows tr__part_rows(const tr_plan_request *request, bool apart) {
    const tr_optimizer_state *states = apart ? request->apart_states : request->states;
    tr_part_rows rows = {{{0}}};
    rows.of[TR_PART_PARAM] = row_of(TR_F32);
    rows.of[TR_PART_GRAD] = row_of(request->sums);
    rows.of[TR_PART_COPY] = row_of(request->compute);
    int count = apart ? request->apart_state_count : request->optimizer_states;
    for (int s = 0; s < count; s++) {
        const tr_state_format *format = tr__state_format(states[s].type);
        rows.of[TR_PART_STATE + s] =
            (tr_part_row){format->dtype, format->packing, states[s].type};
    }
    return rows;
}

const tr_part_row *tr__part_row(const tr_plan *plan, const tr_flat *flat,
                                tr_part part) {
    return &plan->rows[flat->apart].of[part];
}

int tr__flat_states(const tr_plan *plan, const tr_flat *flat) {
    const tr_plan_request *r = &plan->request;
    return flat->frozen ? 0 : flat->apart ? r->apart_state_count : r->optimizer_states;
}

const char *tr__state_name(const tr_plan *plan, const tr_flat *flat, int state) {
    const tr_plan_request *r = &plan->request;
    return flat->apart ? r->apart_states[state].name : r->states[state].name;
}

int tr__plan_states(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    int apart = r->apart == TR_APART_NOTHING ? 0 : r->apart_state_count;
    return apart > r->optimizer_states ? apart : r->optimizer_states;
}

int tr__flat_parts(const tr_plan *plan, const tr_flat *flat) {
    return TR_PART_STATE + tr__flat_states(plan, flat);
}

int64_t tr__part_bytes(const tr_plan *plan, const tr_flat *flat, tr_part part,
                       int64_t count) {
    return tr__packed_bytes(tr__part_row(plan, flat, part)->packing, count);
}

tr_tensor_desc tr__part_desc(const tr_plan *plan, const tr_flat *flat, tr_part part,
                             int64_t count) {
    const tr_part_row *row = tr__part_row(plan, flat, part);
    int64_t bytes = tr__packed_bytes(row->packing, count);
    return (tr_tensor_desc){row->dtype,
                            TR_SHAPE1(bytes / (int64_t)tr_dtype_bytes(row->dtype))};
}
