// Gradients of weights that come later than those that the unit hands on: which calls
// make them, and the order that puts them behind all others. What waits for the unit
// waits for its input's gradient alone; the other half of the work fills gaps.
#include "graph/derive_walk.h"

#include "base/memory.h"

// Does the call read the micro-batch's data? Their memory is given back when the last
// gradient has been handed on.
static bool reads_data(const tr_walk *w, const tr_call *call) {
    bool reads = false;
    for (int i = 0; i < call->in_count; i++) {
        tr_value value = call->in[i];
        reads = reads || (value != TR_NO_VALUE && !(call->op->shape_only >> i & 1) &&
                          w->graph->values[value].kind == TR_VALUE_DATA);
    }
    return reads;
}

bool tr__walk_is_of_param(const tr_walk *w, tr_value value) {
    const tr_value_info *values = w->graph->values, *info = &values[value];
    return info->kind == TR_VALUE_GRAD && values[info->index].kind == TR_VALUE_PARAM;
}

// Does the call make something beside gradients of parameters?
bool tr__walk_makes_others(const tr_walk *w, const tr_call *call) {
    bool others = false;
    for (int i = 0; i < call->out_count; i++) {
        others = others || (call->out[i] != TR_NO_VALUE &&
                            !tr__walk_is_of_param(w, call->out[i]));
    }
    return others;
}

static bool makes_params_alone(const tr_walk *w, const tr_call *call) {
    bool some = false;
    for (int i = 0; i < call->out_count; i++) {
        some = some || call->out[i] != TR_NO_VALUE;
    }
    return some && !tr__walk_makes_others(w, call);
}

bool tr__walk_makes_weights(const tr_walk *w, const tr_call *call) {
    return makes_params_alone(w, call) && !(call->op->flags & TR_OP_EXCHANGE) &&
           !reads_data(w, call);
}

bool tr__walk_weights_read_data(const tr_walk *w) {
    bool some = false;
    for (size_t i = 0; i < w->out->backward_count; i++) {
        const tr_call *call = &w->out->backward[i];
        some = some || (makes_params_alone(w, call) && reads_data(w, call));
    }
    return some;
}

bool tr__walk_held(const tr_walk *w, tr_value storage) {
    const tr_derivation *out = w->out;
    for (size_t i = 0; i < out->backward_count && w->weights_later; i++) {
        const tr_call *call = &out->backward[i];
        for (int k = 0; k < call->in_count; k++) {
            if (call->in[k] == storage && tr__walk_makes_weights(w, call)) {
                return true;
            }
        }
    }
    return false;
}

// ---- what is recomputed for them alone

// Does a call that is not put off read one of the call's results?
static bool is_read_sooner(const tr_derivation *out, size_t index) {
    const tr_call *made = &out->backward[index];
    for (size_t i = index + 1; i < out->backward_count; i++) {
        const tr_call *call = &out->backward[i];
        for (int k = 0; k < call->in_count && !call->weights; k++) {
            for (int j = 0; j < made->out_count; j++) {
                if (call->in[k] != TR_NO_VALUE && call->in[k] == made->out[j]) {
                    return true;
                }
            }
        }
    }
    return false;
}

// Parameters that come for a visit alone would have to come once more.
static bool reads_brought(const tr_walk *w, const tr_call *call) {
    bool reads = false;
    for (int i = 0; i < call->in_count && w->params_come; i++) {
        tr_value value = call->in[i];
        reads = reads || (value != TR_NO_VALUE &&
                          w->graph->values[value].kind == TR_VALUE_PARAM);
    }
    return reads;
}

bool tr__walk_recomputes(const tr_walk *w, const tr_call *call) {
    bool all = true;
    for (int i = 0; i < call->out_count; i++) {
        tr_value value = call->out[i];
        all = all && (value == TR_NO_VALUE ||
                      ((size_t)value < w->forward_count && w->out->recomputed[value]));
    }
    return all && !(call->op->flags & TR_OP_EXCHANGE) && !reads_data(w, call);
}

// ---- the order

static bool part(tr_derivation *out) {
    tr_call *later = tr__calloc(out->backward_count, sizeof *later);
    size_t sooner = 0, count = 0;
    if (!later) {
        return false;
    }
    for (size_t i = 0; i < out->backward_count; i++) {
        if (out->backward[i].weights) {
            later[count++] = out->backward[i];
        } else {
            out->backward[sooner++] = out->backward[i];
        }
    }
    out->weights = sooner;
    for (size_t i = 0; i < count; i++) {
        out->backward[sooner + i] = later[i];
    }
    tr__free(later);
    return true;
}

bool tr__walk_part_weights(tr_walk *w) {
    tr_derivation *out = w->out;
    out->weights = out->backward_count;
    for (size_t i = out->backward_count; w->weights_later && i-- > 0;) {
        tr_call *call = &out->backward[i];
        call->weights = tr__walk_makes_weights(w, call) ||
                        (tr__walk_recomputes(w, call) && !reads_brought(w, call) &&
                         !is_read_sooner(out, i));
    }
    return !w->weights_later || part(out);
}
