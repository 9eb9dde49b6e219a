// The part of the walk that follows what is measured for the noise scale.
#include "plan/check_walk.h"

static const tr_progress *progress_of(const tr_check_walk *w, int64_t micro) {
    return &w->progress[(int64_t)w->step->unit * w->micros + micro];
}

// The first micro-batch has just been through the segment, and no other has.
static bool is_alone(const tr_check_walk *w) {
    int before = tr__check_unit(w)->segments - 1 - w->step->segment;
    bool alone = w->step->micro == 0 && progress_of(w, 0)->backward == before + 1;
    for (int64_t j = 1; alone && j < w->micros; j++) {
        alone = progress_of(w, j)->backward <= before;
    }
    return alone;
}

// The own flat buffer's gradients lie where the binding says.
static bool is_there(const tr_check_walk *w, int flat) {
    int32_t at = w->step->binding;
    if (at < 0 || at >= (int32_t)w->plan->binding_count) {
        return false;
    }
    const tr_binding *binding = &w->plan->bindings[at];
    int32_t made = tr__check_grads_pass(w->plan, flat)
                       ? w->flats[flat].grad
                       : w->plan->flats[flat].sums.buffer;
    bool other = false;
    for (int f = 0; f < TR_UNIT_FLATS_MAX; f++) {
        other = other || binding->param[f] >= 0 || (f > 0 && binding->grad[f] >= 0);
    }
    return binding->grad[0] >= 0 && binding->grad[0] == made && !other;
}

static tr_status mark(tr_check_walk *w, int flat, int64_t offset) {
    const tr_flat *of = &w->plan->flats[flat];
    for (size_t i = of->first_param; i < of->end_param; i++) {
        const tr_plan_param *param = &w->plan->params[i];
        if (param->flat == flat && param->offset * (int64_t)sizeof(float) == offset) {
            bool fits = w->written[i] && !w->gauged[i];
            w->gauged[i] = true;
            return fits ? TR_OK
                        : tr__check_wrong(w,
                                          "measures the gradient of %s twice, or "
                                          "before it is made",
                                          param->name);
        }
    }
    return tr__check_wrong(w, "measures a gradient of no parameter");
}

// ---- tied tensors

// Has the micro-batch been through so much of the unit that all its segments that add
// to the flat buffer have (`all`), or one of them has?
static bool has_added(const tr_check_walk *w, int u, int flat, int64_t micro,
                      bool all) {
    const tr_plan_unit *unit = &w->plan->units[u];
    int segments = unit->program->segments;
    int done = w->progress[(int64_t)u * w->micros + micro].backward;
    bool added = all;
    for (int s = 0; s < segments; s++) {
        uint32_t made =
            tr__program_flats(&unit->program->backward[s], TR_PLACE_PARAM_GRAD);
        bool past = done > segments - 1 - s;
        for (int f = 1; f < unit->program->flat_count; f++) {
            if (unit->flats[f] == flat && (made >> f & 1)) {
                added = all ? added && past : added || past;
            }
        }
    }
    return added;
}

// Every micro-batch of the first wave has been through every unit that adds to it, and
// no other through any.
static bool is_wave_alone(const tr_check_walk *w, int flat) {
    bool alone = true;
    for (int u = 0; u < w->plan->unit_count && alone; u++) {
        for (int64_t j = 0; j < w->micros && alone; j++) {
            bool first = j < w->plan->request.wave;
            alone = has_added(w, u, flat, j, first) == first;
        }
    }
    return alone;
}

// Where it is being made, and nothing of it has been handed on.
static bool is_tied_there(const tr_check_walk *w, int flat) {
    const tr_flat_progress *is = &w->flats[flat];
    int32_t from = w->step->buffer[TR_SLOT_INPUT];
    bool passes = tr__check_grads_pass(w->plan, flat);
    bool there = passes ? from >= 0 && from == is->grad : from < 0;
    return there && is->reductions == 0 && is->evictions == 0;
}

tr_status tr__check_gauge_tied(tr_check_walk *w) {
    int flat = w->step->unit;
    const tr_flat *of = &w->plan->flats[flat];
    tr_status status = TR_OK;
    if (w->kind != TR_SEQUENCE_TRAIN || w->plan->request.measure == TR_MEASURE_NEVER ||
        !of->tied || !of->gauged || tr__plan_folds(w->plan) ||
        !is_tied_there(w, flat) || !is_wave_alone(w, flat)) {
        return tr__check_wrong(w, "measures what is not one wave's gradient");
    }
    for (size_t i = of->first_param; i < of->end_param && status == TR_OK; i++) {
        const tr_plan_param *param = &w->plan->params[i];
        if (param->flat == flat) {
            status = mark(w, flat, param->offset * (int64_t)sizeof(float));
        }
    }
    return status;
}

// ---- all others

tr_status tr__check_gauge(tr_check_walk *w) {
    int flat = w->plan->units[w->step->unit].flats[0];
    bool inside = w->step->segment < tr__check_unit(w)->segments;
    if (w->kind != TR_SEQUENCE_TRAIN || w->plan->request.measure == TR_MEASURE_NEVER ||
        !inside || !w->plan->flats[flat].gauged || !is_alone(w) || !is_there(w, flat)) {
        return tr__check_wrong(w, "measures what is not one micro-batch's gradient");
    }
    const tr_operand *operand;
    int64_t count;
    size_t next = 0;
    tr_status status = TR_OK;
    while (status == TR_OK &&
           (operand = tr__unit_gradient(tr__check_unit(w), w->step->segment, &next,
                                        &count)) != NULL) {
        status = mark(w, flat, operand->offset);
    }
    return status;
}

tr_status tr__check_gauged(const tr_check_walk *w) {
    bool measures = w->plan->request.measure != TR_MEASURE_NEVER;
    for (size_t i = 0; i < w->plan->param_count; i++) {
        const tr_plan_param *param = &w->plan->params[i];
        const tr_flat *flat = &w->plan->flats[param->flat];
        if (flat->gauged && w->gauged[i] != measures) {
            return tr__check_wrong(w, "comes without the gradient of %s measured",
                                   param->name);
        }
    }
    return TR_OK;
}
