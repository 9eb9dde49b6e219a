// The part of the walk that follows the norms of tensors, for updates of two phases.
#include "ops/optimizer_measure.h"
#include "plan/check_walk.h"

static bool is_large(const tr_check_walk *w, int32_t buffer, int64_t squares) {
    return buffer >= 0 &&
           w->plan->buffers[buffer].bytes >= squares * (int64_t)sizeof(tr_squares);
}

static bool holds(const tr_check_walk *w, int32_t buffer, tr_content_kind kind) {
    return buffer >= 0 && w->contents[buffer].kind == kind;
}

static bool all_measured(const tr_check_walk *w) {
    bool all = true;
    for (size_t f = 0; f < w->plan->flat_count; f++) {
        all = all && w->measured[f];
    }
    return all && holds(w, w->measures, TR_HOLDS_MEASURES);
}

// States change: like the update it comes when all have agreed on it.
tr_status tr__check_measure(tr_check_walk *w) {
    size_t index = (size_t)(w->step - w->plan->sequences[w->kind].steps);
    int32_t to = w->step->buffer[TR_SLOT_NORMS];
    bool agreed = w->normed && (w->recorded || w->plan->request.ranks == 1);
    if (!w->plan->request.tensor_norms || !agreed || w->measured[w->step->unit] ||
        index < w->applied) {
        return tr__check_wrong(w, "is there twice, or before the norm");
    }
    bool first = w->measures < 0;
    if (!is_large(w, to, w->plan->norms.parts * tr__norms_ranks(w->plan)) ||
        (!first && (to != w->measures || !holds(w, to, TR_HOLDS_MEASURES)))) {
        return tr__check_wrong(w, "measures into the wrong place");
    }
    w->measures = to;
    tr__check_leave(w, TR_SLOT_NORMS,
                    (tr_content){.kind = TR_HOLDS_MEASURES, .whole = true});
    tr_status status = tr__check_first_phase(w);
    return status == TR_OK ? tr__check_scratch(w) : status;
}

tr_status tr__check_gather_norms(tr_check_walk *w) {
    int32_t to = w->step->buffer[TR_SLOT_OUTPUT];
    if (tr__norms_ranks(w->plan) < 2 || w->gathered || !all_measured(w) ||
        to != w->measures) {
        return tr__check_wrong(w, "is there twice, or gathers what is not measured");
    }
    w->gathered = true;
    return tr__check_begin(w, TR_STREAM_COMM, -1, to);
}

tr_status tr__check_total(tr_check_walk *w) {
    bool here = tr__norms_ranks(w->plan) == 1;
    if (w->totalled || !all_measured(w) || !(here || w->gathered) ||
        w->step->buffer[TR_SLOT_INPUT] != w->measures) {
        return tr__check_wrong(w, "is there twice, or before all is measured");
    }
    if (!is_large(w, w->step->buffer[TR_SLOT_OUTPUT], (int64_t)w->plan->param_count)) {
        return tr__check_wrong(w, "has no room for the norms of tensors");
    }
    w->totalled = true;
    tr__check_leave(w, TR_SLOT_OUTPUT,
                    (tr_content){.kind = TR_HOLDS_NORMS, .whole = true});
    return tr__check_second_phase(w);
}

tr_status tr__check_norms(const tr_check_walk *w) {
    return !w->plan->request.tensor_norms ||
                   holds(w, w->step->buffer[TR_SLOT_NORMS], TR_HOLDS_NORMS)
               ? TR_OK
               : tr__check_wrong(w, "comes before the norms of tensors are there");
}
