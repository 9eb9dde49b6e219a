// Steps that move flat buffers, and what units are given, between the device and where
// they live or wait.
#include "exec/walk.h"

// What a unit is given, whole, from one buffer to another.
static tr_status move_boundary(const tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_unit_program *unit = ex->plan->units[step->unit].program;
    tr_carry order = {.kind = TR_CARRY_COPY,
                      .from = tr__memory(ex, step->buffer[TR_SLOT_INPUT]),
                      .to = tr__memory(ex, step->buffer[TR_SLOT_OUTPUT]),
                      .bytes = unit->input_bytes};
    tr__carrier_start(ex->carrier[TR_STREAM_COPY], &order);
    return TR_OK;
}

tr_status tr__run_fetch(tr_work *work, const tr_plan_step *step) {
    if (tr__step_is_of_boundary(step)) {
        return move_boundary(work, step);
    }
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    const tr_flat_range *from = &flat->copy;
    int staged = step->buffer[TR_SLOT_INPUT], to = step->buffer[TR_SLOT_OUTPUT];
    tr_carry order = {.kind = TR_CARRY_COPY,
                      .from = tr__memory(ex, staged < 0 ? from->buffer : staged),
                      .bytes = from->count * tr__param_bytes(ex->plan)};
    order.to =
        to < 0 ? tr__kept_param(ex, &flat->param, from->first) : tr__memory(ex, to);
    tr__carrier_start(ex->carrier[TR_STREAM_COPY], &order);
    return TR_OK; // a fault comes up where somebody waits
}

tr_status tr__run_evict(tr_work *work, const tr_plan_step *step) {
    if (tr__step_is_of_boundary(step)) {
        return move_boundary(work, step);
    }
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    const tr_flat_range *to = &flat->grad;
    int from = step->buffer[TR_SLOT_INPUT], staged = step->buffer[TR_SLOT_OUTPUT];
    tr_carry order = {.kind = TR_CARRY_COPY,
                      .to = tr__memory(ex, staged < 0 ? to->buffer : staged),
                      .bytes = to->count * tr__sum_bytes(ex->plan)};
    order.from =
        from < 0 ? tr__kept_sum(ex, &flat->sums, to->first) : tr__memory(ex, from);
    if (!(step->writes & tr__slot_bit(TR_SLOT_OUTPUT))) {
        order.kind = TR_CARRY_ADD_I64; // others than integers leave once
    }
    tr__carrier_start(ex->carrier[TR_STREAM_COPY], &order);
    return TR_OK;
}
