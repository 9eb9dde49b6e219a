// The part of the walk that follows flat buffers: gathered, made, folded, reduced.
#include "base/checked.h"
#include "plan/check_walk.h"

bool tr__check_grads_pass(const tr_plan *plan, int flat) {
    return tr__plan_folds(plan) || tr__flat_grads_pass(plan, flat);
}

int tr__check_named(const tr_plan *plan, const tr_plan_step *step,
                    int32_t buffers[TR_STEP_BUFFERS_MAX]) {
    int count = 0;
    for (int slot = 0; slot < TR_SLOTS; slot++) {
        if (step->buffer[slot] >= 0) {
            buffers[count++] = step->buffer[slot];
        }
    }
    if (step->binding < 0 || step->binding >= (int32_t)plan->binding_count) {
        return count;
    }
    const tr_binding *binding = &plan->bindings[step->binding];
    for (int f = 0; f < TR_UNIT_FLATS_MAX; f++) {
        if (binding->param[f] >= 0) {
            buffers[count++] = binding->param[f];
        }
        if (binding->grad[f] >= 0) {
            buffers[count++] = binding->grad[f];
        }
    }
    return count;
}

// ---- what goes on beside computing
// ---------------------------------------------------

static bool is_busy(const tr_check_walk *w, int32_t buffer) {
    bool busy = false;
    for (int s = 0; s < TR_BESIDE; s++) {
        busy = busy || w->busy[s][buffer] > w->done[s];
    }
    return busy;
}

tr_stream tr__beside_stream(int beside) {
    static const tr_stream streams[TR_BESIDE] = {TR_STREAM_COMM, TR_STREAM_COPY,
                                                 TR_STREAM_NVME};
    return streams[beside];
}

tr_status tr__check_idle(tr_check_walk *w) {
    int32_t buffers[TR_STEP_BUFFERS_MAX];
    bool in_order = w->step->stream == TR_STREAM_NVME; // with those of its own stream
    for (int s = 0; s < TR_BESIDE; s++) {
        int32_t wait = tr__step_wait(w->step, tr__beside_stream(s));
        if (wait < 0 || wait > w->issued[s]) {
            return tr__check_wrong(w, "waits for what has not begun");
        }
        w->done[s] = wait > w->done[s] ? wait : w->done[s];
    }
    int count = tr__check_named(w->plan, w->step, buffers);
    for (int i = 0; i < count; i++) {
        if (in_order ? tr__check_is_busy_elsewhere(w, TR_STREAM_NVME, buffers[i])
                     : is_busy(w, buffers[i])) {
            return tr__check_wrong(w, "touches buffer %d, which is being moved",
                                   (int)buffers[i]);
        }
    }
    return TR_OK;
}

tr_status tr__check_begin(tr_check_walk *w, tr_stream stream, int32_t from,
                          int32_t to) {
    int s = 0;
    while (tr__beside_stream(s) != stream) {
        s++;
    }
    if (w->step->stream != stream) {
        return tr__check_wrong(w, "is of the wrong stream");
    }
    w->issued[s]++;
    if (from >= 0) {
        w->busy[s][from] = w->issued[s];
    }
    if (to >= 0) { // behind another of the same stream they are in order
        w->busy[s][to] = w->issued[s];
    }
    return TR_OK;
}

bool tr__check_is_busy_elsewhere(const tr_check_walk *w, tr_stream stream,
                                 int32_t buffer) {
    bool busy = false;
    for (int s = 0; s < TR_BESIDE; s++) {
        bool other = tr__beside_stream(s) != stream;
        busy = busy || (other && w->busy[s][buffer] > w->done[s]);
    }
    return busy;
}

// ---- parameters
// ----------------------------------------------------------------------

static bool is_large(const tr_check_walk *w, int32_t buffer, int flat, size_t element) {
    return w->plan->buffers[buffer].bytes >=
           w->plan->flats[flat].count * (int64_t)element;
}

// Do parameters stay on the device, and the newest are elsewhere?
static bool is_stale(const tr_check_walk *w, int flat) {
    return w->kind != TR_SEQUENCE_EVALUATE && w->plan->flats[flat].leaves &&
           !w->flats[flat].fetched;
}

static tr_status fill(tr_check_walk *w, int32_t to, tr_content_kind kind,
                      int64_t bytes) {
    if (to < 0 || w->plan->buffers[to].bytes < bytes) {
        return tr__check_wrong(w, "names buffer %d, which is too small", (int)to);
    }
    if (w->contents[to].kind == kind) {
        return tr__check_wrong(w, "brings what is there");
    }
    w->contents[to] =
        (tr_content){.kind = kind, .unit = w->step->unit, .micro = 0, .whole = true};
    return TR_OK;
}

static bool holds(const tr_check_walk *w, int32_t buffer, tr_content_kind kind) {
    return buffer >= 0 && w->contents[buffer].kind == kind &&
           w->contents[buffer].unit == w->step->unit;
}

tr_status tr__check_fetch(tr_check_walk *w) {
    const tr_plan_request *r = &w->plan->request;
    const tr_flat *flat = &w->plan->flats[w->step->unit];
    tr_flat_progress *progress = &w->flats[w->step->unit];
    int32_t to = w->step->buffer[TR_SLOT_OUTPUT];
    bool stays = r->param_home == TR_SPACE_DEVICE;
    if ((stays && !flat->leaves) || stays != (to < 0) ||
        (stays && (progress->fetched || progress->gathered_param))) {
        return tr__check_wrong(w,
                               "fetches what it should not, or into the wrong place");
    }
    tr_status status = tr__check_fetch_staged(w);
    if (status == TR_OK && !stays) {
        bool whole = r->ranks == 1;
        status = fill(w, to, whole ? TR_HOLDS_PARAMETERS : TR_HOLDS_PART,
                      (whole ? flat->count : tr__min_i64(flat->shard, flat->count)) *
                          tr__param_bytes(w->plan));
    }
    progress->fetched = true;
    return status == TR_OK
               ? tr__check_begin(w, TR_STREAM_COPY, w->step->buffer[TR_SLOT_INPUT],
                                 stays ? flat->param.buffer : to)
               : status;
}

static tr_status gather_param(tr_check_walk *w) {
    const tr_flat *flat = &w->plan->flats[w->step->unit];
    int32_t from = w->step->buffer[TR_SLOT_INPUT], to = w->step->buffer[TR_SLOT_OUTPUT];
    bool lives_here = w->plan->request.param_home == TR_SPACE_DEVICE;
    bool whole = tr__plan_stage(w->plan) < 3;
    if (whole != (to < 0) || (whole && w->flats[w->step->unit].gathered_param)) {
        return tr__check_wrong(w, "is there twice, or gathers into the wrong place");
    }
    if (lives_here
            ? is_stale(w, w->step->unit) ||
                  tr__check_is_busy_elsewhere(w, TR_STREAM_COMM, flat->param.buffer)
            : !holds(w, from, TR_HOLDS_PART)) {
        return tr__check_wrong(w, "gathers what is not there");
    }
    tr_status status = whole ? TR_OK
                             : fill(w, to, TR_HOLDS_PARAMETERS,
                                    flat->count * tr__param_bytes(w->plan));
    if (!lives_here) {
        w->contents[from].kind = TR_HOLDS_NOTHING; // each part is gathered once
    }
    w->flats[w->step->unit].gathered_param = true;
    return status == TR_OK ? tr__check_begin(w, TR_STREAM_COMM, from,
                                             whole ? flat->param.buffer : to)
                           : status;
}

static tr_status gather_grad(tr_check_walk *w) {
    tr_flat_progress *flat = &w->flats[w->step->unit];
    if (tr__plan_stage(w->plan) != 0 || flat->reductions != 1 || flat->gathered_grad) {
        return tr__check_wrong(w, "gathers gradients that are not reduced");
    }
    flat->gathered_grad = true;
    return tr__check_begin(w, TR_STREAM_COMM, -1,
                           w->plan->flats[w->step->unit].sums.buffer);
}

tr_status tr__check_gather(tr_check_walk *w) {
    if (w->plan->request.ranks < 2) {
        return tr__check_wrong(w, "has no other rank to gather from");
    }
    switch (w->step->part) {
    case TR_PART_PARAM:
        return gather_param(w);
    case TR_PART_GRAD:
        return gather_grad(w);
    case TR_PART_NORMS:
        return tr__check_gather_norms(w);
    default:
        if (!w->normed || w->recorded) {
            return tr__check_wrong(w, "is there twice, or before the norm");
        }
        w->recorded = true;
        return tr__check_begin(w, TR_STREAM_COMM, -1, w->plan->record.buffer);
    }
}

static tr_status check_param(const tr_check_walk *w, int flat, int32_t buffer) {
    const tr_flat *f = &w->plan->flats[flat];
    int stage = tr__plan_stage(w->plan);
    if (buffer < 0) {
        return tr__check_wrong(w, "reads parameters of no buffer");
    }
    if (buffer == f->param.buffer) {
        bool gathers = w->kind == TR_SEQUENCE_TRAIN && (stage == 1 || stage == 2);
        bool stale = is_stale(w, flat) || (gathers && !w->flats[flat].gathered_param);
        return stage < 3 && !stale
                   ? TR_OK
                   : tr__check_wrong(w, "reads parameters that are not brought");
    }
    tr_content is = w->contents[buffer];
    return is.kind == TR_HOLDS_PARAMETERS && is.unit == flat &&
                   is_large(w, buffer, flat, (size_t)tr__param_bytes(w->plan))
               ? TR_OK
               : tr__check_wrong(w, "reads buffer %d before flat buffer %s is there",
                                 (int)buffer, f->name);
}

// ---- gradients
// -----------------------------------------------------------------------

// Gradients that pass are made in one buffer, from the first to the last that adds.
static tr_status check_grad(tr_check_walk *w, int flat, int32_t buffer) {
    tr_flat_progress *progress = &w->flats[flat];
    const tr_flat *f = &w->plan->flats[flat];
    if (!tr__check_grads_pass(w->plan, flat)) {
        return buffer == f->sums.buffer && progress->reductions == 0
                   ? TR_OK
                   : tr__check_wrong(w, "makes a gradient in the wrong place");
    }
    if (buffer < 0 || !is_large(w, buffer, flat, sizeof(float)) ||
        w->plan->buffers[buffer].sequence < 0) {
        return tr__check_wrong(w, "makes a gradient in no buffer of its own");
    }
    if (progress->grad < 0) {
        progress->grad = buffer;
        for (size_t i = f->first_param; i < f->end_param; i++) {
            if (w->plan->params[i].flat == flat) {
                w->written[i] = false;
            }
        }
    }
    return progress->grad == buffer
               ? TR_OK
               : tr__check_wrong(w, "makes the gradient of %s in two buffers", f->name);
}

tr_status tr__check_binding(tr_check_walk *w, const tr_program *program) {
    const tr_plan_unit *unit = &w->plan->units[w->step->unit];
    uint32_t reads = tr__program_flats(program, TR_PLACE_PARAM);
    uint32_t makes = tr__program_flats(program, TR_PLACE_PARAM_GRAD);
    tr_status status = TR_OK;
    if (w->step->binding < 0 || w->step->binding >= (int32_t)w->plan->binding_count) {
        return tr__check_wrong(w, "has no binding");
    }
    const tr_binding *binding = &w->plan->bindings[w->step->binding];
    for (int f = 0; f < unit->program->flat_count && status == TR_OK; f++) {
        if (reads >> f & 1) {
            status = check_param(w, unit->flats[f], binding->param[f]);
        }
        if (status == TR_OK && (makes >> f & 1)) {
            status = check_grad(w, unit->flats[f], binding->grad[f]);
        }
    }
    return status;
}

// Elements of the flat buffer whose gradient has been made. *missing: the last
// parameter whose gradient has not; NULL: none.
static int64_t elements_made(const tr_check_walk *w, int flat, const char **missing) {
    const tr_flat *f = &w->plan->flats[flat];
    int64_t count = 0;
    *missing = NULL;
    for (size_t i = f->first_param; i < f->end_param; i++) {
        const tr_plan_param *param = &w->plan->params[i];
        if (param->flat == flat) {
            count += w->written[i] ? param->count : 0;
            *missing = w->written[i] ? *missing : param->name;
        }
    }
    return count;
}

// Where it was not made there are zeros. What is folded may be a segment's part, where
// all of the buffer was cleared before it.
static tr_status check_whole(const tr_check_walk *w, int flat) {
    const char *missing;
    bool gaps = elements_made(w, flat, &missing) < w->plan->flats[flat].count;
    bool part = w->step->kind == TR_STEP_fold && w->flats[flat].cleared;
    if (missing && !part) {
        return tr__check_wrong(w, "comes before the gradient of %s is made", missing);
    }
    return !gaps || !tr__check_grads_pass(w->plan, flat) ||
                   w->flats[flat].gaps == w->flats[flat].grad
               ? TR_OK
               : tr__check_wrong(w, "takes gaps that were not cleared");
}

tr_status tr__check_clear_gaps(tr_check_walk *w) {
    int32_t buffer = w->step->buffer[TR_SLOT_OUTPUT];
    if (w->step->unit < 0 || w->step->unit >= (int64_t)w->plan->flat_count ||
        !tr__check_grads_pass(w->plan, w->step->unit) || buffer < 0 ||
        !is_large(w, buffer, w->step->unit, sizeof(float)) ||
        w->flats[w->step->unit].grad >= 0 || w->flats[w->step->unit].gaps >= 0) {
        return tr__check_wrong(w, "clears what it should not");
    }
    w->flats[w->step->unit].gaps = buffer;
    w->flats[w->step->unit].cleared = w->step->whole;
    return TR_OK;
}

static bool writes_output(const tr_check_walk *w) {
    return w->step->writes & tr__slot_bit(TR_SLOT_OUTPUT);
}

tr_status tr__check_fold(tr_check_walk *w) {
    tr_flat_progress *flat = &w->flats[w->step->unit];
    int32_t to = w->step->buffer[TR_SLOT_OUTPUT];
    bool stays = !tr__flat_grads_pass(w->plan, w->step->unit);
    int64_t bytes = tr__sums_bytes(w->plan, w->plan->flats[w->step->unit].count);
    if (!tr__plan_folds(w->plan) || flat->grad < 0 ||
        w->step->buffer[TR_SLOT_INPUT] != flat->grad || stays != (to < 0) ||
        (!stays && w->plan->buffers[to].bytes < bytes)) {
        return tr__check_wrong(w, "folds what is not there, or into the wrong place");
    }
    tr_status status = check_whole(w, w->step->unit);
    bool begun = stays ? flat->folded : flat->sum >= 0;
    if (status == TR_OK && writes_output(w) == begun) {
        status = tr__check_wrong(w, "is wrong about being the first");
    }
    if (status == TR_OK && begun && !stays && flat->sum != to) {
        status = tr__check_wrong(w, "folds the gradient of a flat into two buffers");
    }
    const tr_flat *of = &w->plan->flats[w->step->unit];
    for (size_t i = of->first_param; i < of->end_param; i++) {
        bool own = w->plan->params[i].flat == w->step->unit;
        w->summed[i] = w->summed[i] || (own && w->written[i]);
    }
    flat->folded = true;
    flat->sum = to;
    flat->grad = flat->gaps = -1;
    return status;
}

tr_status tr__check_reduce(tr_check_walk *w) {
    tr_flat_progress *flat = &w->flats[w->step->unit];
    int32_t from = w->step->buffer[TR_SLOT_INPUT], to = w->step->buffer[TR_SLOT_OUTPUT];
    bool stays = !tr__flat_grads_pass(w->plan, w->step->unit);
    bool folds = tr__plan_folds(w->plan);
    bool away = w->plan->flats[w->step->unit].leaves;
    int32_t made = folds ? flat->sum : flat->grad;
    bool whole = stays ? from < 0 && flat->reductions == 0 : from >= 0 && from == made;
    if (w->plan->request.ranks < 2 || !whole || (folds && flat->grad >= 0)) {
        return tr__check_wrong(w, "reduces what is not there");
    }
    if (writes_output(w) != (away || flat->reductions == 0)) {
        return tr__check_wrong(w, "is wrong about being the first");
    }
    tr_status status = folds ? TR_OK : check_whole(w, w->step->unit);
    if (status == TR_OK && away && !stays) {
        const tr_flat *f = &w->plan->flats[w->step->unit];
        status = fill(w, to, TR_HOLDS_REDUCED,
                      tr__sums_bytes(w->plan, tr__min_i64(f->shard, f->count)));
    } else if (status == TR_OK && to >= 0) {
        status = tr__check_wrong(w, "reduces into the wrong place");
    }
    flat->reductions++;
    flat->grad = flat->gaps = flat->sum = -1;
    return status == TR_OK
               ? tr__check_begin(
                     w, TR_STREAM_COMM,
                     stays ? w->plan->flats[w->step->unit].sums.buffer : from, to)
               : status;
}

// What leaves: the sum over ranks, complete or of a wave; with one rank, what a wave
// has made.
tr_status tr__check_leaving(const tr_check_walk *w) {
    const tr_plan_request *r = &w->plan->request;
    const tr_flat_progress *flat = &w->flats[w->step->unit];
    bool folds = tr__plan_folds(w->plan);
    int32_t from = w->step->buffer[TR_SLOT_INPUT];
    if (!tr__flat_grads_pass(w->plan, w->step->unit)) {
        int32_t sums = w->plan->flats[w->step->unit].sums.buffer;
        bool complete = flat->reductions == 1 &&
                        flat->gathered_grad == (tr__plan_stage(w->plan) == 0) &&
                        !tr__check_is_busy_elsewhere(w, TR_STREAM_COPY, sums);
        return from < 0 && complete
                   ? TR_OK
                   : tr__check_wrong(w, "takes away what is not complete");
    }
    if (r->ranks > 1) {
        return holds(w, from, TR_HOLDS_REDUCED)
                   ? TR_OK
                   : tr__check_wrong(w, "takes away what is not reduced");
    }
    int32_t made = folds ? flat->sum : flat->grad;
    if (from < 0 || from != made || (folds && flat->grad >= 0)) {
        return tr__check_wrong(w, "takes away what is not there");
    }
    return folds ? TR_OK : check_whole(w, w->step->unit);
}

tr_status tr__check_evict(tr_check_walk *w) {
    tr_flat_progress *flat = &w->flats[w->step->unit];
    int32_t from = w->step->buffer[TR_SLOT_INPUT], to = w->step->buffer[TR_SLOT_OUTPUT];
    if (!w->plan->flats[w->step->unit].leaves) {
        return tr__check_wrong(w, "has nowhere to evict to");
    }
    if (writes_output(w) != (flat->evictions == 0)) {
        return tr__check_wrong(w, "is wrong about being the first");
    }
    if (flat->evictions > 0 && w->plan->request.sums != TR_I64) {
        return tr__check_wrong(w, "adds where gradients are to come complete");
    }
    tr_status status = tr__check_leaving(w);
    if (status == TR_OK) {
        status = tr__check_evict_staged(w);
    }
    if (status != TR_OK) {
        return status;
    }
    if (from >= 0 && w->plan->request.ranks > 1) { // each is taken once
        w->contents[from].kind = TR_HOLDS_NOTHING;
    } else if (from >= 0) {
        flat->grad = flat->gaps = flat->sum = -1;
    }
    flat->evictions++;
    int32_t sums = w->plan->flats[w->step->unit].sums.buffer;
    return tr__check_begin(w, TR_STREAM_COPY, from < 0 ? sums : from, to);
}

// Units whose backward makes gradients of the flat.
static int makers(const tr_plan *plan, int flat) {
    int count = 0;
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        uint32_t made = 0;
        for (int s = 0; s < unit->segments; s++) {
            made |= tr__program_flats(&unit->backward[s], TR_PLACE_PARAM_GRAD);
        }
        for (int f = 0; f < unit->flat_count; f++) {
            count += plan->units[u].flats[f] == flat && (made >> f & 1);
        }
    }
    return count;
}

// How often gradients of the flat are to be handed on in one optimizer step.
static int64_t handings(const tr_plan *plan, int flat) {
    const tr_plan_request *r = &plan->request;
    int64_t waves = tr__ceil_div(r->accumulation_steps, r->wave);
    if (!tr__flat_grads_pass(plan, flat)) {
        return 1;
    }
    return waves * (plan->flats[flat].slice ? makers(plan, flat) : 1);
}

tr_status tr__check_gradients(const tr_check_walk *w) {
    const tr_plan_request *r = &w->plan->request;
    int stage = tr__plan_stage(w->plan);
    bool stores = tr__part_is_on_nvme(w->plan, TR_PART_GRAD);
    bool folds = tr__plan_folds(w->plan);
    for (int s = 0; s < TR_BESIDE; s++) {
        if (w->done[s] < w->issued[s]) {
            return tr__check_wrong(w, "comes while gradients are being moved");
        }
    }
    for (size_t f = 0; f < w->plan->flat_count; f++) {
        const tr_flat_progress *flat = &w->flats[f];
        bool some = w->plan->flats[f].count > 0; // of a unit without parameters: none
        int64_t times = some ? handings(w->plan, (int)f) : 0;
        if (flat->grad >= 0 || flat->sum >= 0 || flat->folded != (some && folds) ||
            flat->reductions != (r->ranks > 1 ? times : 0) ||
            flat->evictions != (w->plan->flats[f].leaves ? times : 0) ||
            flat->squared != (some && stores) || flat->stored != (some && stores) ||
            flat->gathered_grad != (some && r->ranks > 1 && stage == 0)) {
            return tr__check_wrong(w, "comes before the gradient of %s is complete",
                                   w->plan->flats[f].name);
        }
    }
    for (size_t i = 0; folds && i < w->plan->param_count; i++) {
        if (!w->summed[i]) {
            return tr__check_wrong(w, "comes before the gradient of %s is folded",
                                   w->plan->params[i].name);
        }
    }
    return TR_OK;
}
