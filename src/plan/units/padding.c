// Zeros behind parameters, where a kernel asks for them. They are gaps of the flat
// buffer, like those between parameters: no update, norm or file takes them for
// elements of a tensor.
#include "backend/backend.h"
#include "base/checked.h"
#include "plan/units/compiler.h"

// Behind a part that a rank has lies what evens it out, behind a stacked one the next.
static bool may_have(const tr_graph *graph, size_t param) {
    const tr_param_info *info = &graph->params[param];
    bool followed = param + 1 < graph->param_count && graph->params[param + 1].stacked;
    return !info->split && !info->stacked && !followed && !info->quantized &&
           info->value != TR_NO_VALUE;
}

static int64_t asked(const tr_compiler *c, const tr_call *calls, size_t count,
                     tr_value param) {
    int64_t most = 0;
    for (size_t n = 0; n < count; n++) {
        for (int i = 0; i < calls[n].in_count; i++) {
            if (calls[n].in[i] == param) {
                tr_op_desc desc = tr__call_desc(c, &calls[n]);
                const tr_kernel *kernel = tr__kernel_find(&desc);
                most = kernel && kernel->padding
                           ? tr__max_i64(most, kernel->padding(&desc, i))
                           : most;
            }
        }
    }
    return most;
}

int64_t tr__param_padding(const tr_compiler *c, size_t param) {
    const tr_graph *graph = c->graph;
    const tr_derivation *derived = &c->unit->derived;
    tr_value value = graph->params[param].value;
    if (!may_have(graph, param)) {
        return 0;
    }
    int64_t most = asked(c, graph->nodes, graph->node_count, value);
    most = tr__max_i64(most, asked(c, graph->asked, graph->asked_count, value));
    return tr__max_i64(most,
                       asked(c, derived->backward, derived->backward_count, value));
}

static bool is_gradient_of(const tr_graph *graph, tr_value value, tr_value param) {
    return value != TR_NO_VALUE && graph->values[value].kind == TR_VALUE_GRAD &&
           graph->values[value].index == param;
}

void tr__instruction_pad(const tr_compiler *c, const tr_call *call,
                         tr_instruction *to) {
    const tr_graph *graph = c->graph;
    for (int i = 0; i < call->in_count && to->kernel->padding; i++) {
        tr_value value = call->in[i];
        int64_t elements = to->kernel->padding(&to->desc, i);
        if (value == TR_NO_VALUE || graph->values[value].kind != TR_VALUE_PARAM ||
            elements == 0 ||
            c->unit->params[graph->values[value].index].padding < elements) {
            continue;
        }
        to->desc.in_padded |= 1u << i;
        to->in[i].padding = elements * (int64_t)tr_dtype_bytes(to->desc.in[i].dtype);
        for (int k = 0; k < call->out_count; k++) {
            if (is_gradient_of(graph, call->out[k], value)) {
                to->desc.out_padded |= 1u << k;
                to->out[k].padding =
                    elements * (int64_t)tr_dtype_bytes(to->desc.out[k].dtype);
            }
        }
    }
}
