// What lives always of the flat buffers: each range has room for its elements, of their
// own type, and holds what this rank has to keep.
#include "plan/proof/check.h"

static tr_status wrong(const tr_flat *flat, const char *what, tr_error *err) {
    return tr_fail(err, TR_INTERNAL, "plan: of flat buffer %s, %s", flat->name, what);
}

// Has the range's buffer room for it, and is this rank's part in it?
static bool is_whole(const tr_plan *plan, const tr_flat *flat,
                     const tr_flat_range *range, tr_block_size packing) {
    if (range->buffer < 0 || range->buffer >= (int)plan->buffer_count ||
        plan->buffers[range->buffer].sequence >= 0) {
        return false;
    }
    return plan->buffers[range->buffer].bytes >=
               tr__packed_bytes(packing, range->count) &&
           range->first <= flat->first &&
           flat->first + flat->own <= range->first + range->count;
}

static bool is_here(const tr_plan *plan, const tr_flat_range *range) {
    return plan->buffers[range->buffer].space == TR_SPACE_DEVICE;
}

// In f32 what the update changes is what is used; in 16 bits they are two.
static tr_status check_params(const tr_plan *plan, const tr_flat *flat, tr_error *err) {
    tr_block_size element = {1, tr__param_bytes(plan)}, f32 = {1, sizeof(float)};
    bool half = tr__plan_is_half(plan);
    if (flat->param.buffer >= 0 && !is_whole(plan, flat, &flat->param, element)) {
        return wrong(flat, "parameters have no room", err);
    }
    bool alone = tr__flat_is_half(flat);
    if (alone !=
        (half && (flat->quantized || (flat->frozen && plan->request.frozen_half)))) {
        return wrong(flat, "which is frozen, values are not of the type they come in",
                     err);
    }
    if (!alone && !is_whole(plan, flat, &flat->master, f32)) {
        return wrong(flat, "master weights have no room", err);
    }
    if (!is_whole(plan, flat, &flat->copy, element) ||
        (flat->copy.buffer == flat->master.buffer) == half) {
        return wrong(flat, "what is used of the master weights has no room", err);
    }
    bool stays = flat->param.buffer >= 0;
    return !alone && is_here(plan, &flat->master) && stays &&
                   flat->copy.buffer != flat->param.buffer
               ? wrong(flat, "parameters are not what the update makes", err)
               : TR_OK;
}

// Frozen, it is only there to be read.
static bool has_none(const tr_flat *flat) {
    bool none = flat->grad.buffer < 0 && flat->sums.buffer < 0 && !flat->offloaded &&
                !flat->measured;
    for (int s = 0; s < TR_OPTIMIZER_STATES; s++) {
        none = none && flat->state[s].buffer < 0;
    }
    return none;
}

// Of the type of the sums, what the update reads, and what stays on the device until it
// is complete.
static tr_status check_gradients(const tr_plan *plan, const tr_flat *flat,
                                 tr_error *err) {
    tr_block_size element = {1, tr__sum_bytes(plan)};
    if (plan->request.inference) {
        return TR_OK;
    }
    if (flat->frozen) {
        return has_none(flat) ? TR_OK
                              : wrong(flat,
                                      "which is frozen, there are gradients, "
                                      "states or an update",
                                      err);
    }
    if (!is_whole(plan, flat, &flat->grad, element)) {
        return wrong(flat, "gradients have no room where the update reads them", err);
    }
    bool stay = !flat->offloaded || !tr__plan_evicts_scopes(plan);
    bool good =
        stay ? is_whole(plan, flat, &flat->sums, element) : flat->sums.buffer < 0;
    return good ? TR_OK : wrong(flat, "sums of gradients have no room", err);
}

static tr_block_size state_of(const tr_plan *plan, const tr_flat *flat, int s) {
    const tr_plan_request *r = &plan->request;
    const tr_optimizer_state *row = flat->apart ? &r->apart_states[s] : &r->states[s];
    return tr__state_format(row->type)->packing;
}

// What leaves is updated elsewhere; of what stays there is no more than was asked for,
// but for what ranks sum where it is made.
static tr_status check_leaving(const tr_plan *plan, tr_error *err) {
    double all = 0, here = (double)tr__plan_staying(plan);
    for (size_t f = 0; f < plan->flat_count && !plan->request.inference; f++) {
        const tr_flat *flat = &plan->flats[f];
        if (flat->frozen) {
            continue;
        }
        bool good = is_here(plan, &flat->grad) != flat->offloaded;
        for (int s = 0; s < tr__flat_states(plan, flat); s++) {
            good = good &&
                   is_whole(plan, flat, &flat->state[s], state_of(plan, flat, s)) &&
                   is_here(plan, &flat->state[s]) != flat->offloaded;
        }
        if (!good) {
            return wrong(flat,
                         "gradients and states are not in one place, or have no room",
                         err);
        }
        all += (double)flat->count;
        here -= flat->axes.summed ? (double)flat->count : 0;
    }
    bool fits = plan->request.optimizer_placement == TR_SPACE_DEVICE ||
                here <= plan->request.optimizer_stays * all;
    return fits ? TR_OK
                : tr_fail(err, TR_INTERNAL,
                          "plan: more of the optimizer stays than "
                          "was asked for");
}

tr_status tr__check_kept(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t f = 0; f < plan->flat_count && status == TR_OK; f++) {
        status = check_params(plan, &plan->flats[f], err);
        if (status == TR_OK) {
            status = check_gradients(plan, &plan->flats[f], err);
        }
    }
    return status == TR_OK ? check_leaving(plan, err) : status;
}
