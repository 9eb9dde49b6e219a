// The part of the walk that follows flat buffers: gathered, made, folded, reduced.
#include "base/checked.h"
#include "plan/check_walk.h"

bool tr__check_grads_pass(const tr_plan *plan) {
    return plan->request.reproducible || tr__plan_stage(plan) >= 2;
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

// ---- the communication thread
// --------------------------------------------------------

tr_status tr__check_idle(const tr_check_walk *w) {
    int32_t buffers[TR_STEP_BUFFERS_MAX];
    int count = tr__check_named(w->plan, w->step, buffers);
    if (w->step->wait < 0 || w->step->wait > w->issued) {
        return tr__check_wrong(w, "waits for communication that has not begun");
    }
    for (int i = 0; i < count; i++) {
        if (w->busy[buffers[i]] > w->done) {
            return tr__check_wrong(w, "touches buffer %d, which is being moved",
                                   (int)buffers[i]);
        }
    }
    return TR_OK;
}

static tr_status begin(tr_check_walk *w, int32_t buffer) {
    if (w->step->stream != TR_STREAM_COMM) {
        return tr__check_wrong(w, "is not of the communication stream");
    }
    w->issued++;
    if (buffer >= 0) { // behind another on the same buffer: they are in order
        w->busy[buffer] = w->issued;
    }
    return TR_OK;
}

// ---- parameters
// ----------------------------------------------------------------------

static bool is_large(const tr_check_walk *w, int32_t buffer, int flat, size_t element) {
    return w->plan->buffers[buffer].bytes >=
           w->plan->flats[flat].count * (int64_t)element;
}

static tr_status gather_param(tr_check_walk *w) {
    const tr_flat *flat = &w->plan->flats[w->step->unit];
    int32_t to = w->step->buffer[TR_SLOT_OUTPUT];
    bool whole = tr__plan_stage(w->plan) < 3;
    if (whole != (to < 0)) {
        return tr__check_wrong(w, "gathers parameters into the wrong place");
    }
    if (whole && w->flats[w->step->unit].gathered_param) {
        return tr__check_wrong(w, "is there twice");
    }
    if (!whole) {
        if (w->contents[to].kind == TR_HOLDS_PARAMETERS) {
            return tr__check_wrong(w, "gathers over what was gathered");
        }
        if (!is_large(w, to, w->step->unit, sizeof(float))) {
            return tr__check_wrong(w, "names buffer %d, which is too small", (int)to);
        }
        w->contents[to] = (tr_content){TR_HOLDS_PARAMETERS, w->step->unit, 0, true};
    }
    w->flats[w->step->unit].gathered_param = true;
    return begin(w, whole ? flat->param.buffer : to);
}

static tr_status gather_grad(tr_check_walk *w) {
    tr_flat_progress *flat = &w->flats[w->step->unit];
    if (tr__plan_stage(w->plan) != 0 || flat->reductions != 1 || flat->gathered_grad) {
        return tr__check_wrong(w, "gathers gradients that are not reduced");
    }
    flat->gathered_grad = true;
    return begin(w, w->plan->flats[w->step->unit].grad.buffer);
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
    default:
        if (!w->normed || w->recorded) {
            return tr__check_wrong(w, "is there twice, or before the norm");
        }
        w->recorded = true;
        return begin(w, w->plan->record.buffer);
    }
}

static tr_status check_param(const tr_check_walk *w, int flat, int32_t buffer) {
    const tr_flat *f = &w->plan->flats[flat];
    int stage = tr__plan_stage(w->plan);
    if (buffer < 0) {
        return tr__check_wrong(w, "reads parameters of no buffer");
    }
    if (buffer == f->param.buffer) {
        bool stale = w->kind == TR_SEQUENCE_TRAIN && (stage == 1 || stage == 2) &&
                     !w->flats[flat].gathered_param;
        return stage < 3 && !stale
                   ? TR_OK
                   : tr__check_wrong(w, "reads parameters that are not gathered");
    }
    tr_content is = w->contents[buffer];
    return is.kind == TR_HOLDS_PARAMETERS && is.unit == flat &&
                   is_large(w, buffer, flat, sizeof(float))
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
    if (!tr__check_grads_pass(w->plan)) {
        return buffer == f->grad.buffer && progress->reductions == 0
                   ? TR_OK
                   : tr__check_wrong(w, "makes a gradient in the wrong place");
    }
    if (buffer < 0 || !is_large(w, buffer, flat, sizeof(float)) ||
        w->plan->buffers[buffer].sequence < 0) {
        return tr__check_wrong(w, "makes a gradient in no buffer of its own");
    }
    if (progress->grad < 0) {
        progress->grad = buffer;
        for (size_t i = 0; i < w->plan->param_count; i++) {
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

static tr_status check_whole(const tr_check_walk *w, int flat) {
    int64_t count = 0;
    for (size_t i = 0; i < w->plan->param_count; i++) {
        const tr_plan_param *param = &w->plan->params[i];
        if (param->flat == flat) {
            count += param->count;
            if (!w->written[i]) {
                return tr__check_wrong(w, "comes before the gradient of %s is made",
                                       param->name);
            }
        }
    }
    bool gaps = count < w->plan->flats[flat].count;
    return !gaps || !tr__check_grads_pass(w->plan) ||
                   w->flats[flat].gaps == w->flats[flat].grad
               ? TR_OK
               : tr__check_wrong(w, "takes gaps that were not cleared");
}

tr_status tr__check_clear_gaps(tr_check_walk *w) {
    int32_t buffer = w->step->buffer[TR_SLOT_OUTPUT];
    if (w->step->unit < 0 || w->step->unit >= (int64_t)w->plan->flat_count ||
        !tr__check_grads_pass(w->plan) || buffer < 0 ||
        !is_large(w, buffer, w->step->unit, sizeof(float)) ||
        w->flats[w->step->unit].grad >= 0 || w->flats[w->step->unit].gaps >= 0) {
        return tr__check_wrong(w, "clears what it should not");
    }
    w->flats[w->step->unit].gaps = buffer;
    return TR_OK;
}

tr_status tr__check_fold(tr_check_walk *w) {
    tr_flat_progress *flat = &w->flats[w->step->unit];
    int32_t to = w->step->buffer[TR_SLOT_OUTPUT];
    bool stays = tr__plan_stage(w->plan) < 2;
    if (!w->plan->request.reproducible || flat->grad < 0 ||
        w->step->buffer[TR_SLOT_INPUT] != flat->grad || stays != (to < 0) ||
        (!stays && !is_large(w, to, w->step->unit, sizeof(int64_t)))) {
        return tr__check_wrong(w, "folds what is not there, or into the wrong place");
    }
    tr_status status = check_whole(w, w->step->unit);
    bool begun = stays ? flat->folded : flat->sum >= 0;
    if (status == TR_OK && (w->step->fresh & 1) == begun) {
        status = tr__check_wrong(w, "is wrong about being the first");
    }
    if (status == TR_OK && begun && !stays && flat->sum != to) {
        status = tr__check_wrong(w, "folds the gradient of a flat into two buffers");
    }
    flat->folded = true;
    flat->sum = to;
    flat->grad = flat->gaps = -1;
    return status;
}

tr_status tr__check_reduce(tr_check_walk *w) {
    tr_flat_progress *flat = &w->flats[w->step->unit];
    int32_t from = w->step->buffer[TR_SLOT_INPUT];
    bool stays = tr__plan_stage(w->plan) < 2, folds = w->plan->request.reproducible;
    int32_t made = folds ? flat->sum : flat->grad;
    bool whole = stays ? from < 0 && flat->reductions == 0 : from >= 0 && from == made;
    if (w->plan->request.ranks < 2 || !whole || (folds && flat->grad >= 0)) {
        return tr__check_wrong(w, "reduces what is not there");
    }
    if ((w->step->fresh & 1) != (flat->reductions == 0)) {
        return tr__check_wrong(w, "is wrong about being the first");
    }
    tr_status status = folds ? TR_OK : check_whole(w, w->step->unit);
    flat->reductions++;
    flat->grad = flat->gaps = flat->sum = -1;
    return status == TR_OK
               ? begin(w, stays ? w->plan->flats[w->step->unit].grad.buffer : from)
               : status;
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

// How often the ranks' gradients of the flat are to be summed in one optimizer step.
static int64_t reductions(const tr_plan *plan, int flat) {
    const tr_plan_request *r = &plan->request;
    if (r->ranks < 2 || tr__plan_stage(plan) < 2) {
        return r->ranks < 2 ? 0 : 1;
    }
    int64_t waves = tr__ceil_div(r->accumulation_steps, r->wave);
    return waves * (plan->flats[flat].slice ? makers(plan, flat) : 1);
}

tr_status tr__check_gradients(const tr_check_walk *w) {
    const tr_plan_request *r = &w->plan->request;
    int stage = tr__plan_stage(w->plan);
    if (w->done < w->issued) {
        return tr__check_wrong(w, "comes while gradients are being moved");
    }
    for (size_t f = 0; f < w->plan->flat_count; f++) {
        const tr_flat_progress *flat = &w->flats[f];
        if (flat->grad >= 0 || flat->sum >= 0 ||
            flat->reductions != reductions(w->plan, (int)f) ||
            flat->folded != r->reproducible ||
            flat->gathered_grad != (r->ranks > 1 && stage == 0)) {
            return tr__check_wrong(w, "comes before the gradient of %s is complete",
                                   w->plan->flats[f].name);
        }
    }
    return TR_OK;
}
