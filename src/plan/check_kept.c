// What lives always of the flat buffers: each range has room for its elements, of their
// own type, and holds what this rank has to keep.
#include "plan/check.h"

static tr_status wrong(const tr_flat *flat, const char *what, tr_error *err) {
    return tr_fail(err, TR_INTERNAL, "plan: of flat buffer %s, %s", flat->name, what);
}

// Has the range's buffer room for it, and is this rank's part in it?
static bool is_whole(const tr_plan *plan, const tr_flat *flat,
                     const tr_flat_range *range, int64_t element) {
    if (range->buffer < 0 || range->buffer >= (int)plan->buffer_count ||
        plan->buffers[range->buffer].sequence >= 0) {
        return false;
    }
    return plan->buffers[range->buffer].bytes >= range->count * element &&
           range->first <= flat->first &&
           flat->first + flat->own <= range->first + range->count;
}

// In f32 what the update changes is what is used; in 16 bits they are two.
static tr_status check_params(const tr_plan *plan, const tr_flat *flat, tr_error *err) {
    int64_t element = tr__param_bytes(plan);
    bool half = tr__plan_is_half(plan);
    if (flat->param.buffer >= 0 && !is_whole(plan, flat, &flat->param, element)) {
        return wrong(flat, "parameters have no room", err);
    }
    if (!is_whole(plan, flat, &flat->master, (int64_t)sizeof(float))) {
        return wrong(flat, "master weights have no room", err);
    }
    if (!is_whole(plan, flat, &flat->copy, element) ||
        (flat->copy.buffer == flat->master.buffer) == half) {
        return wrong(flat, "what is used of the master weights has no room", err);
    }
    bool here = plan->buffers[flat->master.buffer].space == TR_SPACE_DEVICE;
    return here && flat->copy.buffer != flat->param.buffer
               ? wrong(flat, "parameters are not what the update makes", err)
               : TR_OK;
}

tr_status tr__check_kept(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t f = 0; f < plan->flat_count && status == TR_OK; f++) {
        status = check_params(plan, &plan->flats[f], err);
    }
    return status;
}
