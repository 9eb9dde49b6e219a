// Which values share a place: where an op may write on top of its input
// (tr_op.in_place) and nobody reads that input after, result and input have one place.
// So what is passed from segment to segment to be added to is there once, and where it
// can be, lies in the tensor that the unit hands on.
#include "base/memory.h"
#include "plan/units/compiler.h"

static tr_value root_of(const tr_compiler *c, tr_value value) {
    while (c->alias[value] != value) {
        value = c->alias[value];
    }
    return value;
}

static bool is_one_of(const tr_value *list, int count, tr_value value) {
    for (int i = 0; i < count; i++) {
        if (list[i] == value) {
            return true;
        }
    }
    return false;
}

static int times_read(const tr_call *call, tr_value value) {
    int times = 0;
    for (int i = 0; i < call->in_count; i++) {
        times += call->in[i] == value;
    }
    return times;
}

static bool writes(const tr_call *call, tr_value value) {
    for (int i = 0; i < call->out_count; i++) {
        if (call->out[i] == value) {
            return true;
        }
    }
    return false;
}

// The input that the call's first result may lie on top of, TR_NO_VALUE: none.
static tr_value under(const tr_compiler *c, const tr_call *call) {
    int input = call->op->in_place - 1;
    bool writes_all = call->out_count > 0 && call->out[0] != TR_NO_VALUE &&
                      !((call->accumulate | call->first) & 1);
    if (input < 0 || input >= call->in_count || !writes_all) {
        return TR_NO_VALUE;
    }
    tr_value value = call->in[input];
    bool fits = value != TR_NO_VALUE && times_read(call, value) == 1 &&
                tr__value_bytes(c, value) == tr__value_bytes(c, call->out[0]);
    return fits ? value : TR_NO_VALUE;
}

// ---- the forward: the input lies where the result does

static bool is_of_micro_batch(const tr_compiler *c, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    return info->kind == TR_VALUE_NODE && !info->wave && !info->sums;
}

static bool backward_mentions(const tr_compiler *c, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    for (size_t i = 0; i < derived->backward_count; i++) {
        const tr_call *call = &derived->backward[i];
        if (times_read(call, value) || writes(call, value)) {
            return true;
        }
    }
    return false;
}

static bool is_read_once(const tr_compiler *c, tr_value value) {
    int times = 0;
    for (size_t n = 0; n < c->graph->node_count; n++) {
        times += times_read(&c->graph->nodes[n], value);
    }
    return times == 1;
}

// In an evaluation, too, nothing reads the value but an op that may write over it.
static bool is_overwritten(const tr_compiler *c, tr_value value, tr_value by) {
    int times = 0;
    for (size_t n = 0; n < c->graph->asked_count; n++) {
        const tr_call *node = &c->graph->asked[n];
        bool over = under(c, node) == value && node->out[0] == by;
        times += over ? 1 : 2 * times_read(node, value);
    }
    return times <= 1;
}

static void share_forward(tr_compiler *c, const tr_call *node) {
    tr_value value = under(c, node);
    if (value == TR_NO_VALUE || !is_of_micro_batch(c, value) ||
        !is_of_micro_batch(c, node->out[0])) {
        return;
    }
    if (!is_one_of(c->graph->output, c->graph->output_count, value) &&
        is_read_once(c, value) && is_overwritten(c, value, node->out[0]) &&
        !backward_mentions(c, value)) {
        c->alias[value] = node->out[0];
    }
}

// ---- the backward: the result lies where the input does

// Is it one micro-batch's, and not one of those that a unit hands on or is given?
static bool is_passing(const tr_compiler *c, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    const tr_value_info *info = &c->graph->values[value];
    if (info->kind != TR_VALUE_GRAD) {
        return info->kind == TR_VALUE_TEMP;
    }
    const tr_value_info *of = &c->graph->values[info->index];
    return of->kind != TR_VALUE_PARAM && !of->wave &&
           !is_one_of(derived->input_grad, c->graph->input_count, value) &&
           !is_one_of(derived->output_grad, c->graph->output_count, value);
}

// May it be destroyed once the call has read it?
static bool is_last_read(const tr_compiler *c, size_t index, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    bool last = is_passing(c, value) ||
                (is_one_of(derived->output_grad, c->graph->output_count, value) &&
                 !is_one_of(derived->input_grad, c->graph->input_count, value));
    for (size_t i = index + 1; i < derived->backward_count && last; i++) {
        const tr_call *call = &derived->backward[i];
        last = !times_read(call, value) && !writes(call, value);
    }
    return last;
}

static bool is_new(const tr_compiler *c, size_t index, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    for (size_t i = 0; i < index; i++) {
        const tr_call *call = &derived->backward[i];
        if (times_read(call, value) || writes(call, value)) {
            return false;
        }
    }
    return true;
}

static void share_backward(tr_compiler *c, size_t index) {
    const tr_call *call = &c->unit->derived.backward[index];
    tr_value value = under(c, call);
    if (value != TR_NO_VALUE && is_passing(c, call->out[0]) &&
        is_new(c, index, call->out[0]) && is_last_read(c, index, value)) {
        c->alias[call->out[0]] = value;
    }
}

tr_status tr__compiler_in_place(tr_compiler *c) {
    size_t values = c->graph->value_count;
    c->alias = tr__calloc(values, sizeof *c->alias);
    if (!c->alias) {
        return tr_fail(c->err, TR_MEMORY, "no memory for the layout of unit %s",
                       c->unit->kind);
    }
    for (size_t v = 0; v < values; v++) {
        c->alias[v] = (tr_value)v;
    }
    for (size_t n = 0; n < c->graph->node_count; n++) {
        share_forward(c, &c->graph->nodes[n]);
    }
    for (size_t i = 0; i < c->unit->derived.backward_count; i++) {
        share_backward(c, i);
    }
    for (size_t v = 0; v < values; v++) {
        c->alias[v] = root_of(c, (tr_value)v);
    }
    return TR_OK;
}
