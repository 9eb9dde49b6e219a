#include "graph/derive_walk.h"

#include "base/memory.h"
#include "ops/flat/copy/copy.h"

#include <string.h>

tr_value_info *tr__walk_info(tr_walk *w, tr_value value) {
    return &w->graph->values[value];
}

bool tr__walk_output(const tr_graph *graph, tr_value value, int *index) {
    for (int i = 0; i < graph->output_count; i++) {
        if (graph->output[i] == value) {
            *index = i;
            return true;
        }
    }
    return false;
}

void tr__walk_emit(tr_walk *w, const tr_call *call) {
    tr_derivation *out = w->out;
    if (!tr__grow((void **)&out->backward, &out->backward_capacity,
                  out->backward_count + 1, sizeof *out->backward)) {
        tr_graph_fail(w->graph, TR_MEMORY, "no memory for a unit's backward");
        return;
    }
    out->backward[out->backward_count++] = *call;
}

// Gradients of parameters are summed in f32, whatever the parameters are.
tr_value tr__walk_gradient(tr_walk *w, tr_value value) {
    const tr_value_info *of = tr__walk_info(w, value);
    tr_tensor_desc desc = of->desc;
    desc.dtype = of->kind == TR_VALUE_PARAM ? TR_F32 : desc.dtype;
    return tr__graph_value(
        w->graph,
        (tr_value_info){.desc = desc, .kind = TR_VALUE_GRAD, .index = (int)value});
}

void tr__walk_copy(tr_walk *w, tr_value from, tr_value to, bool accumulate, bool first,
                   int segment) {
    tr_call call = {.op = &tr__op_copy,
                    .in_count = 1,
                    .out_count = 1,
                    .in = {from},
                    .out = {to},
                    .accumulate = accumulate,
                    .first = first,
                    .segment = segment};
    tr__walk_emit(w, &call);
}

bool tr__walk_collected(tr_walk *w, tr_value value) {
    return tr__walk_info(w, value)->kind == TR_VALUE_PARAM ||
           tr__walk_info(w, value)->wave;
}

// Does the gradient of another value, not passed on yet, lie in the same storage?
static bool is_shared(tr_walk *w, tr_value value) {
    for (size_t i = 0; i < w->forward_count; i++) {
        if ((tr_value)i != value && w->storage[i] == w->storage[value] &&
            !w->consumed[i]) {
            return true;
        }
    }
    return false;
}

tr_value tr__walk_contribute(tr_walk *w, tr_value value, int segment, bool *accumulate,
                             bool *first) {
    *accumulate = *first = false;
    if (w->storage[value] == TR_NO_VALUE) {
        w->storage[value] = tr__walk_gradient(w, value);
        *first = tr__walk_collected(w, value);
        return w->storage[value];
    }
    if (!tr__walk_collected(w, value) &&
        (is_shared(w, value) || tr__walk_held(w, w->storage[value]))) {
        tr_value own = tr__walk_gradient(w, value);
        tr__walk_copy(w, w->storage[value], own, false, false, segment);
        w->storage[value] = own;
    }
    *accumulate = true;
    return w->storage[value];
}

// Makes a dropped value again, after what it is made from; with it come the other
// dropped results of the same call.
static void recompute(tr_walk *w, tr_value value, int segment) {
    tr_call call;
    tr__recompute_call(w->graph, w->out->dropped, value, &call);
    for (int i = 0; i < call.in_count; i++) {
        tr__walk_need(w, call.in[i], segment);
    }
    for (int i = 0; i < call.out_count; i++) {
        if (call.out[i] != TR_NO_VALUE) {
            w->out->recomputed[call.out[i]] = true;
        }
    }
    call.segment = segment;
    tr__walk_emit(w, &call);
}

void tr__walk_need(tr_walk *w, tr_value value, int segment) {
    int index;
    if (value == TR_NO_VALUE || (size_t)value >= w->forward_count) {
        return;
    }
    const tr_value_info *what = tr__walk_info(w, value);
    if (what->kind == TR_VALUE_INPUT) {
        w->out->reads_input[what->index] = true;
    } else if (what->kind == TR_VALUE_NODE && !what->wave && !what->sums) {
        if (tr__walk_output(w->graph, value, &index)) {
            w->out->reads_output[index] = true;
        } else if (!w->out->dropped[value]) {
            w->out->saved[value] = true;
        } else if (!w->out->recomputed[value]) {
            recompute(w, value, segment);
        }
    }
}
