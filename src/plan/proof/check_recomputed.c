// What the backward recomputes must be what the forward made: by the same op with the
// same attributes (a dropout's draw is one) on the same values, or by the op's own
// rule.
#include "plan/proof/check.h"

#include <string.h>

static bool same_operands(const tr_instruction *at, const tr_call *call) {
    if (at->desc.in_count != call->in_count) {
        return false;
    }
    for (int i = 0; i < call->in_count; i++) {
        bool left_out = call->op->evaluate_only >> i & 1;
        bool looked_at = !(call->op->shape_only >> i & 1);
        tr_value value = left_out ? TR_NO_VALUE : call->in[i];
        if (looked_at && at->in[i].value != value) {
            return false;
        }
    }
    return true;
}

// Does result `k` of the instruction come to what result `k` of the call does?
static bool is_same(const tr_instruction *at, int k, const tr_call *call) {
    return at->desc.op == call->op && k < call->out_count &&
           at->out[k].value == call->out[k] &&
           memcmp(at->desc.attr, call->attr, call->op->attr_bytes) == 0 &&
           same_operands(at, call);
}

// A value of one micro-batch that the forward makes, not what is added up.
static bool is_forward(const tr_graph *graph, const tr_operand *operand) {
    if (operand->place == TR_PLACE_NONE || operand->value == TR_NO_VALUE) {
        return false;
    }
    const tr_value_info *info = &graph->values[operand->value];
    return info->kind == TR_VALUE_NODE && !info->wave && !info->sums;
}

static tr_status check_program(const tr_unit_program *unit, const tr_program *program,
                               tr_error *err) {
    const tr_graph *graph = unit->graph;
    for (size_t i = 0; i < program->count && !program->exchange; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.out_count; k++) {
            tr_value value = at->out[k].value;
            tr_call rule;
            if (!is_forward(graph, &at->out[k]) ||
                is_same(at, k, &graph->nodes[graph->values[value].node]) ||
                (tr__recompute_rule(graph, value, &rule) && is_same(at, k, &rule))) {
                continue;
            }
            return tr_fail(err, TR_INTERNAL,
                           "plan: unit %s, instruction %zu (%s) recomputes a value in "
                           "another way than the forward made it",
                           unit->kind, i, at->desc.op->name);
        }
    }
    return TR_OK;
}

static tr_status check_role(const tr_unit_program *unit, tr_variant role,
                            tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < tr__unit_pieces(unit, role) && status == TR_OK; i++) {
        status = check_program(unit, tr__unit_piece(unit, role, i), err);
    }
    return status;
}

tr_status tr__check_recomputed(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int u = 0; u < plan->unit_count && status == TR_OK; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        if (!plan->units[u].owns_program) {
            continue;
        }
        status = check_role(unit, TR_VARIANT_RECOMPUTE, err);
        status = status == TR_OK ? check_role(unit, TR_VARIANT_BACKWARD, err) : status;
    }
    return status;
}
