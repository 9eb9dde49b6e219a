// The part of the walk that follows what is on NVMe: read, staged, changed, written.
//
// The file is read and written by one stream in the order of its steps, so what is
// followed here is that order, and what each staging buffer holds; that nobody touches
// a buffer while the disk does, check_flats.c sees.
#include "base/checked.h"
#include "ops/accumulate/accumulate.h"
#include "plan/check_walk.h"

// Steps of an update have a slot; before the norm it is the step before's.
static bool in_update(const tr_check_walk *w) {
    return w->step->slot >= 0;
}

static bool has_late_updates(const tr_check_walk *w) {
    return w->kind == TR_SEQUENCE_TRAIN && w->defers && !w->normed;
}

// Is an update possible now, whose gradients are those of this step, or of the step
// before as long as they are there?
static bool may_update(const tr_check_walk *w) {
    const tr_flat_progress *progress = &w->flats[w->step->unit];
    bool old = !progress->stored && progress->evictions == 0;
    return w->kind == TR_SEQUENCE_TRAIN && (w->normed || (has_late_updates(w) && old));
}

static bool is_left(const tr_check_walk *w) {
    return has_late_updates(w) && !tr__check_is_updated(w, w->step->unit);
}

static const tr_flat *flat_of(const tr_check_walk *w) {
    return &w->plan->flats[w->step->unit];
}

static const tr_flat_range *range_of(const tr_check_walk *w, tr_part part) {
    return tr__flat_range(flat_of(w), part);
}

// What the step moves: elements of a part that is on NVMe.
static tr_content moved(const tr_check_walk *w, tr_content_kind kind) {
    const tr_plan_step *step = w->step;
    return (tr_content){.kind = kind,
                        .unit = step->unit,
                        .micro = step->first,
                        .whole = true,
                        .part = step->part,
                        .count = step->count};
}

static bool is_there(const tr_check_walk *w, int32_t buffer, tr_content want) {
    const tr_content *is = buffer >= 0 ? &w->contents[buffer] : NULL;
    return is && is->kind == want.kind && is->unit == want.unit &&
           is->micro == want.micro && is->part == want.part && is->count == want.count;
}

static bool is_staged_for(const tr_check_walk *w, int32_t buffer) {
    return buffer >= 0 && (w->contents[buffer].kind == TR_HOLDS_READ ||
                           w->contents[buffer].kind == TR_HOLDS_UNSTORED);
}

// Staging is in host memory, at whole blocks, with room for what every rank moves of a
// part at a time: `elements`, or all of it (0).
static bool has_room(const tr_check_walk *w, int32_t buffer, tr_part part,
                     int64_t elements) {
    const tr_buffer *b = buffer >= 0 ? &w->plan->buffers[buffer] : NULL;
    int64_t all = w->plan->buffers[range_of(w, part)->buffer].bytes;
    int64_t bytes = elements > 0 ? tr__nvme_bytes(w->plan, part, elements) : all;
    return b && b->space == TR_SPACE_HOST && b->offset % TR_NVME_ALIGNMENT == 0 &&
           b->bytes >= bytes;
}

// The elements are of this rank's part and begin at a block.
static tr_status check_elements(const tr_check_walk *w, tr_part part) {
    const tr_plan_step *step = w->step;
    int parts = TR_PART_STATE + w->plan->request.optimizer_states, at_part = (int)part;
    if (at_part < 0 || at_part >= parts || !tr__part_is_on_nvme(w->plan, part)) {
        return tr__check_wrong(w, "moves what is not on NVMe");
    }
    const tr_flat_range *range = range_of(w, part);
    const tr_buffer *file = &w->plan->buffers[range->buffer];
    int64_t at = step->first - range->first;
    bool good = at >= 0 && at % tr__nvme_elements(w->plan, part) == 0 &&
                step->count >= 0 && step->count <= range->count - at &&
                file->offset % TR_NVME_ALIGNMENT == 0;
    return good ? TR_OK : tr__check_wrong(w, "moves elements that are not its own");
}

static bool is_whole(const tr_check_walk *w, tr_part part) {
    const tr_flat_range *range = range_of(w, part);
    return w->step->first == range->first && w->step->count == range->count;
}

// ---- transfers
// -----------------------------------------------------------------------

// Before the norm, parameters on their way to the device; after it, what the update
// works on next.
static tr_status check_wanted(tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    tr_flat_progress *progress = &w->flats[step->unit];
    tr_part used = tr__used_part(w->plan);
    if (!in_update(w)) {
        return step->part == used && is_whole(w, used) && !w->normed && !is_left(w)
                   ? TR_OK
                   : tr__check_wrong(w, "reads what nobody has asked for");
    }
    int64_t at = step->first - range_of(w, step->part)->first;
    if (progress->read[step->part] != at || step->count == 0 || !may_update(w) ||
        step->part == TR_PART_COPY) {
        return tr__check_wrong(w, "reads other elements than the next");
    }
    progress->read[step->part] += step->count;
    return step->part != TR_PART_GRAD || progress->stored == w->normed
               ? TR_OK
               : tr__check_wrong(w, "reads gradients that are not written");
}

tr_status tr__check_read(tr_check_walk *w) {
    int32_t to = w->step->buffer[TR_SLOT_OUTPUT];
    int64_t elements = in_update(w) ? w->plan->request.update_elements : 0;
    tr_status status = check_elements(w, w->step->part);
    if (status == TR_OK) {
        status = check_wanted(w);
    }
    if (status != TR_OK) {
        return status;
    }
    if (!has_room(w, to, w->step->part, elements)) {
        return tr__check_wrong(w, "reads into buffer %d, which is not for it", (int)to);
    }
    if (is_staged_for(w, to)) {
        return tr__check_wrong(w, "reads over what is yet to be used");
    }
    w->contents[to] = moved(w, TR_HOLDS_READ);
    return tr__check_begin(w, TR_STREAM_NVME, -1, to);
}

tr_status tr__check_write(tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    tr_flat_progress *progress = &w->flats[step->unit];
    int32_t from = step->buffer[TR_SLOT_INPUT];
    tr_status status = check_elements(w, step->part);
    if (status != TR_OK) {
        return status;
    }
    if (!is_there(w, from, moved(w, TR_HOLDS_UNSTORED))) {
        return tr__check_wrong(w, "writes what is not there");
    }
    w->contents[from].kind = TR_HOLDS_NOTHING;
    if (in_update(w)) {
        progress->written[step->part] += step->count;
        return tr__check_begin(w, TR_STREAM_NVME, from, -1);
    }
    if (step->part != TR_PART_GRAD || progress->stored) {
        return tr__check_wrong(w, "writes what nobody has changed");
    }
    progress->stored = true;
    return tr__check_begin(w, TR_STREAM_NVME, from, -1);
}

tr_status tr__check_fetch_staged(tr_check_walk *w) {
    int32_t from = w->step->buffer[TR_SLOT_INPUT];
    tr_part used = tr__used_part(w->plan);
    const tr_flat_range *range = range_of(w, used);
    if (is_left(w)) {
        return tr__check_wrong(w, "fetches what is yet to be updated");
    }
    if (!tr__is_on_nvme(w->plan, range) || flat_of(w)->count == 0) {
        return from < 0 ? TR_OK : tr__check_wrong(w, "fetches from the wrong place");
    }
    tr_content want = {TR_HOLDS_READ, w->step->unit, range->first,
                       true,          used,          range->count};
    if (!is_there(w, from, want)) {
        return tr__check_wrong(w, "fetches what is not read");
    }
    w->contents[from].kind = TR_HOLDS_NOTHING; // each is fetched once
    return TR_OK;
}

tr_status tr__check_evict_staged(tr_check_walk *w) {
    int32_t to = w->step->buffer[TR_SLOT_OUTPUT];
    const tr_flat_range *range = range_of(w, TR_PART_GRAD);
    const tr_flat_progress *progress = &w->flats[w->step->unit];
    if (is_left(w)) {
        return tr__check_wrong(w, "evicts to where the update has yet to read");
    }
    if (!tr__is_on_nvme(w->plan, range)) {
        return to < 0 ? TR_OK : tr__check_wrong(w, "evicts to the wrong place");
    }
    if (!has_room(w, to, TR_PART_GRAD, 0) || is_staged_for(w, to)) {
        return tr__check_wrong(w, "evicts to buffer %d, which is not for it", (int)to);
    }
    if (!progress->squared || progress->evictions > 0) {
        return tr__check_wrong(w, "evicts before the squares are taken, or twice");
    }
    w->contents[to] = (tr_content){TR_HOLDS_UNSTORED, w->step->unit, range->first, true,
                                   TR_PART_GRAD,      range->count};
    return TR_OK;
}

// ---- computing
// -----------------------------------------------------------------------

tr_status tr__check_scratch(const tr_check_walk *w) {
    int32_t buffer = w->step->buffer[TR_SLOT_TEMP];
    int64_t bytes = TR_CONVERT_ELEMENTS * (int64_t)sizeof(float);
    bool good = !tr__plan_folds(w->plan) ||
                (buffer >= 0 && w->plan->buffers[buffer].bytes >= bytes);
    return good ? TR_OK : tr__check_wrong(w, "has no room to unfold gradients");
}

tr_status tr__check_square(tr_check_walk *w) {
    tr_flat_progress *progress = &w->flats[w->step->unit];
    if (!tr__part_is_on_nvme(w->plan, TR_PART_GRAD) || progress->squared || w->normed) {
        return tr__check_wrong(w, "is there twice, or has nothing to do");
    }
    progress->squared = true;
    tr_status status = tr__check_leaving(w);
    return status == TR_OK ? tr__check_scratch(w) : status;
}

static tr_status make_copy(tr_check_walk *w, int32_t buffer) {
    tr_content what = moved(w, TR_HOLDS_UNSTORED);
    what.part = TR_PART_COPY;
    if (!has_room(w, buffer, TR_PART_COPY, w->plan->request.update_elements) ||
        is_staged_for(w, buffer)) {
        return tr__check_wrong(w, "rounds into buffer %d, which is not for it",
                               (int)buffer);
    }
    w->contents[buffer] = what;
    return TR_OK;
}

// What an update, or its first phase, takes from staging is there; what it changes is
// to be written.
static tr_status check_part(tr_check_walk *w, tr_part part) {
    int32_t buffer = w->step->buffer[TR_SLOT_PART + part];
    bool measures = w->step->kind == TR_STEP_measure;
    bool changes = measures ? part >= TR_PART_STATE : part != TR_PART_GRAD;
    tr_content want = moved(w, TR_HOLDS_READ);
    want.part = part;
    if (!tr__part_is_on_nvme(w->plan, part) || w->step->count == 0 ||
        (measures && part == TR_PART_COPY)) {
        return buffer < 0 ? TR_OK : tr__check_wrong(w, "names staging for nothing");
    }
    if (part == TR_PART_COPY) { // is made, of all of the piece
        return make_copy(w, buffer);
    }
    if (!is_there(w, buffer, want)) {
        return tr__check_wrong(w, "changes what is not read");
    }
    w->contents[buffer].kind = changes ? TR_HOLDS_UNSTORED : TR_HOLDS_NOTHING;
    return TR_OK;
}

static tr_status check_parts(tr_check_walk *w) {
    int parts = TR_PART_STATE + w->plan->request.optimizer_states;
    tr_status status = TR_OK;
    for (int part = 0; part < parts && status == TR_OK; part++) {
        status = part == TR_PART_RECORD ? TR_OK : check_part(w, (tr_part)part);
    }
    return status;
}

// What of a flat buffer a rank updates: what it has the optimizer's state of.
static int64_t elements_to_update(const tr_check_walk *w, int flat) {
    const tr_flat *f = &w->plan->flats[flat];
    return tr__plan_stage(w->plan) > 0 ? f->own : f->count;
}

// Are the step's elements those after the first `done` of what this rank updates?
static bool are_next(const tr_check_walk *w, int64_t done) {
    const tr_plan_step *step = w->step;
    int64_t begin = tr__plan_stage(w->plan) > 0 ? flat_of(w)->first : 0;
    int64_t all = elements_to_update(w, step->unit);
    return step->first == begin + done && step->count >= 0 &&
           step->count <= all - done && (step->count > 0 || all == 0);
}

tr_status tr__check_update(tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    tr_flat_progress *progress = &w->flats[step->unit];
    if (!may_update(w) || w->updated[step->unit] || !are_next(w, progress->updated)) {
        return tr__check_wrong(w, "updates other elements than the next");
    }
    progress->updated += step->count;
    w->updated[step->unit] = progress->updated == elements_to_update(w, step->unit);
    tr_status status = check_parts(w);
    return status == TR_OK ? tr__check_scratch(w) : status;
}

tr_status tr__check_first_phase(tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    tr_flat_progress *progress = &w->flats[step->unit];
    if (!are_next(w, progress->measured)) {
        return tr__check_wrong(w, "measures other elements than the next");
    }
    progress->measured += step->count;
    w->measured[step->unit] = progress->measured == elements_to_update(w, step->unit);
    return check_parts(w);
}

// What the second phase reads has all been written, and in one order with its reads.
tr_status tr__check_second_phase(tr_check_walk *w) {
    for (size_t f = 0; f < w->plan->flat_count; f++) {
        tr_flat_progress *progress = &w->flats[f];
        int64_t all = elements_to_update(w, (int)f);
        for (int part = 0; part < TR_PARTS; part++) {
            bool staged = tr__part_is_on_nvme(w->plan, (tr_part)part);
            bool needed = staged && part != TR_PART_COPY;
            bool changed = staged && part >= TR_PART_STATE;
            if (progress->read[part] != (needed ? all : 0) ||
                progress->written[part] != (changed ? all : 0)) {
                return tr__check_wrong(w, "comes before the first phase of %s is done",
                                       w->plan->flats[f].name);
            }
            progress->read[part] = progress->written[part] = 0;
        }
    }
    return TR_OK;
}

bool tr__check_is_updated(const tr_check_walk *w, int flat) {
    const tr_flat_progress *progress = &w->flats[flat];
    int64_t all = elements_to_update(w, flat);
    bool whole = w->updated[flat];
    for (int part = 0; part < TR_PARTS; part++) {
        bool staged = tr__part_is_on_nvme(w->plan, (tr_part)part);
        bool needed = staged && part != TR_PART_COPY;
        bool changed = staged && part != TR_PART_GRAD;
        whole = whole && progress->read[part] == (needed ? all : 0) &&
                progress->written[part] == (changed ? all : 0);
    }
    return whole;
}

tr_status tr__check_late_updates(tr_check_walk *w) {
    for (size_t f = 0; w->defers && f < w->plan->flat_count; f++) {
        tr_flat_progress *progress = &w->flats[f];
        if (!tr__check_is_updated(w, (int)f)) {
            return tr__check_wrong(w, "comes before the last update of %s",
                                   w->plan->flats[f].name);
        }
        w->updated[f] = false;
        progress->updated = 0;
        for (int part = 0; part < TR_PARTS; part++) {
            progress->read[part] = progress->written[part] = 0;
        }
    }
    return TR_OK;
}
