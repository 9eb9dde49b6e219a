// What kernels are asked to do, for each call of a unit's graph.
#include "backend/backend.h"
#include "plan/units/compiler.h"

#include <string.h>

static bool is_tied(const tr_compiler *c, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    if (info->kind != TR_VALUE_GRAD) {
        return false;
    }
    const tr_value_info *of = &c->graph->values[info->index];
    return of->kind == TR_VALUE_PARAM && c->graph->params[of->index].shared;
}

tr_value tr__packed_param(const tr_compiler *c, const tr_call *call) {
    int input = call->op->packed_input - 1;
    tr_value value = input < 0 ? TR_NO_VALUE : call->in[input];
    bool param = value != TR_NO_VALUE && c->graph->values[value].kind == TR_VALUE_PARAM;
    return param ? value : TR_NO_VALUE;
}

tr_op_desc tr__call_desc(const tr_compiler *c, const tr_call *call) {
    const tr_plan_request *plan = c->request->plan;
    tr_op_desc desc = {.op = call->op,
                       .in_count = call->in_count,
                       .out_count = call->out_count,
                       .logits_bytes = plan->logits_mib << 20,
                       .f32_logits = plan->f32_logits,
                       .fp8_fast = plan->fp8.fast,
                       .inference = !c->request->train,
                       .packs = c->request->packs &&
                                tr__packed_param(c, call) != TR_NO_VALUE,
                       .target = c->request->target};
    memcpy(desc.attr, call->attr, sizeof desc.attr);
    for (int i = 0; i < call->in_count; i++) {
        desc.in[i] = tr__value_desc(c, call->in[i]);
    }
    for (int i = 0; i < call->out_count; i++) {
        tr_value value = call->out[i];
        desc.out[i] = tr__value_desc(c, value);
        bool first = call->first >> i & 1, adds = call->accumulate >> i & 1;
        bool also_adds =
            first && (c->request->many || (value >= 0 && is_tied(c, value)));
        desc.fresh |= (uint32_t)!adds << i;
        desc.accumulate |= (uint32_t)(adds || also_adds) << i;
    }
    return desc;
}

tr_cost tr__call_cost(const tr_compiler *c, const tr_call *call) {
    tr_op_desc desc = tr__call_desc(c, call);
    tr_cost cost = {0};
    const tr_kernel *kernel = tr__kernel_find(&desc);
    if (kernel && kernel->cost) {
        kernel->cost(&desc, &cost);
    }
    return cost;
}
