// The scale of a tensor of which each rank of the tensor axis has a part is that of the
// whole tensor: what its product reads of it was found in this very part, and gathered
// over all ranks that have the others.
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear_fp8/linear_fp8.h"
#include "plan/proof/parts.h"

#include <string.h>

// One op, of the unit's graph or of its backward alone; op NULL: there is none.
typedef struct maker {
    const tr_op *op;
    const unsigned char *attr;
    int in_count;
    tr_value in[TR_OP_IN_MAX];
} maker;

static maker of_instruction(const tr_instruction *at) {
    maker m = {at->desc.op, at->desc.attr, at->desc.in_count, {0}};
    for (int i = 0; i < at->desc.in_count; i++) {
        m.in[i] = at->in[i].place == TR_PLACE_NONE ? TR_NO_VALUE : at->in[i].value;
    }
    return m;
}

// What makes a value that is no gradient.
static maker maker_of(const tr_shares *w, tr_value value) {
    for (size_t n = 0; n < w->graph->node_count; n++) {
        const tr_call *node = &w->graph->nodes[n];
        if (node->out[0] == value) {
            maker m = {node->op, node->attr, node->in_count, {0}};
            memcpy(m.in, node->in, sizeof m.in);
            return m;
        }
    }
    for (int i = 0; i < tr__unit_pieces(w->unit, TR_VARIANT_BACKWARD); i++) {
        const tr_program *program = tr__unit_piece(w->unit, TR_VARIANT_BACKWARD, i);
        for (size_t k = 0; k < program->count && !program->exchange; k++) {
            const tr_instruction *at = &program->instructions[k];
            if (at->desc.out_count > 0 && at->out[0].value == value) {
                return of_instruction(at);
            }
        }
    }
    return (maker){.op = NULL};
}

// Has a rank only its part of the factor? A gradient is cut as what it is one of, whole
// where that is a part of a sum; and between the rules of a node lie gradients of its
// output.
static bool is_part(const tr_shares *w, tr_value value) {
    const tr_value_info *info = &w->graph->values[value];
    while (info->kind == TR_VALUE_TEMP) {
        maker m = maker_of(w, value);
        value = m.op ? m.in[0] : TR_NO_VALUE;
        if (value == TR_NO_VALUE) {
            return true;
        }
        info = &w->graph->values[value];
    }
    value = info->kind == TR_VALUE_GRAD ? (tr_value)info->index : value;
    const tr_param_info *param = tr__share_param(w, value);
    return param
               ? !tr_shape_equal(param->shape, param->whole_shape)
               : w->of[value] == TR_SHARE_TOKENS || w->of[value] == TR_SHARE_OTHERWISE;
}

// Does column `column` of the value have the largest value of this tensor?
static bool tells(const tr_shares *w, tr_value value, int32_t column, tr_value tensor) {
    const tr_mesh *mesh = &w->plan->request.mesh;
    maker gathered = maker_of(w, value);
    tr_gather_largest_attr attr;
    if (gathered.op != &tr__op_gather_largest || column < 0 ||
        column >= gathered.in_count) {
        return false;
    }
    memcpy(&attr, gathered.attr, sizeof attr);
    maker found = maker_of(w, gathered.in[column]);
    return found.op == &tr__op_largest && found.in[0] == tensor &&
           attr.axes == TR_ON_TENSOR && attr.ranks == mesh->size[TR_AXIS_TENSOR] &&
           attr.rank == mesh->at[TR_AXIS_TENSOR];
}

static bool has_scale(const tr_shares *w, const maker *product, int factor) {
    int i = tr__fp8_plain_inputs(product->op) + factor;
    tr_value told = i < product->in_count ? product->in[i] : TR_NO_VALUE;
    tr_linear_fp8_attr attr;
    memcpy(&attr, product->attr, sizeof attr);
    return told == TR_NO_VALUE
               ? !is_part(w, product->in[factor])
               : tells(w, told, attr.column[factor], product->in[factor]);
}

static tr_status check_product(const tr_shares *w, const tr_instruction *at,
                               tr_error *err) {
    maker product = of_instruction(at);
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        if (!has_scale(w, &product, i)) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: unit %s: %s rounds operand %d, of which a rank has a "
                           "part, by another scale than that of the whole",
                           w->unit->kind, at->desc.op->name, i);
        }
    }
    return TR_OK;
}

static bool is_product(const tr_instruction *at) {
    const tr_op *op = at->desc.op;
    return op == &tr__op_linear_fp8 || op == &tr__op_linear_fp8_backward_input ||
           op == &tr__op_linear_fp8_backward_weight;
}

tr_status tr__check_scales(const tr_shares *w, bool evaluates, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < w->unit->first_of[TR_VARIANTS]; i++) {
        const tr_program *program = &w->unit->programs[i];
        bool asked = program->variant == TR_VARIANT_EVALUATE;
        for (size_t k = 0; k < program->count && asked == evaluates; k++) {
            const tr_instruction *at = &program->instructions[k];
            status =
                status == TR_OK && is_product(at) ? check_product(w, at, err) : status;
        }
    }
    return status;
}
