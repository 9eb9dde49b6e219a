// Where ranks of the tensor axis share a unit: each of its values is there on every
// rank as a whole, as the rank's tokens, as its part of a sum, or cut otherwise; and
// each op reads what it can work with. A parameter whose gradient comes of a rank's
// tokens lies among those whose gradients ranks sum, and no other does; so does one of
// which several ranks have the same part, and these alone sum it.
#include "base/memory.h"
#include "graph/recompute.h"
#include "ops/flat/copy/copy.h"
#include "ops/nn/all_reduce/all_reduce.h"
#include "ops/nn/dequantize/dequantize.h"
#include "ops/nn/largest/largest.h"
#include "ops/nn/token_parts/token_parts.h"
#include "plan/proof/check.h"
#include "plan/proof/parts.h"

#include <string.h>

// A weight that is made of few bits is the parameter that has these.
static tr_value parameter_of(const tr_shares *w, tr_value value) {
    const tr_value_info *info = &w->graph->values[value];
    bool made = info->kind == TR_VALUE_NODE &&
                w->graph->nodes[info->node].op == &tr__op_dequantize;
    return made ? w->graph->nodes[info->node].in[0] : value;
}

// This rank's part of it, as the files have it.
static tr_shape part_of(const tr_param_info *param) {
    return param->quantized ? param->plain : param->shape;
}

// What comes of a parameter of which each rank has a part: what the op's way says that
// cuts it along the same dimension.
static tr_part_form form_by_param(const tr_shares *w, const tr_call *node, int i) {
    const tr_param_info *param = tr__share_param(w, parameter_of(w, node->in[i]));
    const tr_plan_request *r = &w->plan->request;
    tr_shape own = part_of(param);
    tr_node_view view;
    int dim = 0;
    if (tr_shape_equal(own, param->whole_shape)) {
        return TR_SHARE_WHOLE; // one head, which all ranks have
    }
    while (dim + 1 < own.rank && own.dim[dim] == param->whole_shape.dim[dim]) {
        dim++;
    }
    dim = param->transposed ? 1 - dim : dim;
    tr__node_view(w->graph, node, &view);
    for (int way = 0; node->op->split; way++) {
        tr_split split = {.added = 0};
        memcpy(split.attr, node->attr, sizeof split.attr);
        if (!node->op->split(&view.node, way, r->mesh.size[TR_AXIS_TENSOR],
                             r->mesh.at[TR_AXIS_TENSOR], &split)) {
            break;
        }
        if (split.in[i].dim == dim) {
            return split.partial & 1 ? TR_SHARE_PART : TR_SHARE_OTHERWISE;
        }
    }
    return TR_SHARE_OTHERWISE; // what a rewrite has put there works on its part
}

static bool is_rows(const tr_shares *w, tr_value value) {
    const tr_value_info *info = &w->graph->values[value];
    return info->kind != TR_VALUE_PARAM && info->desc.shape.rank >= 2;
}

// Of any op that exchanges nothing.
static tr_part_form form_of_work(const tr_shares *w, const tr_call *node) {
    tr_part_form made = TR_SHARE_WHOLE;
    bool tokens = false, others = false;
    for (int i = 0; i < node->in_count; i++) {
        if (node->in[i] == TR_NO_VALUE) {
            continue;
        }
        tr_value value = parameter_of(w, node->in[i]);
        tr_part_form in = w->of[value];
        if (in == TR_SHARE_PART || in == TR_SHARE_REDUCED || in == TR_SHARE_MEASURED) {
            return TR_SHARE_WRONG;
        }
        tokens = tokens || in == TR_SHARE_TOKENS;
        others = others || (in != TR_SHARE_TOKENS && is_rows(w, value));
        if (tr__share_param(w, value)) {
            tr_part_form by = form_by_param(w, node, i);
            made = made == TR_SHARE_PART ? made : by;
            others = true;
        } else if (in == TR_SHARE_OTHERWISE && made == TR_SHARE_WHOLE) {
            made = TR_SHARE_OTHERWISE;
        }
    }
    return !tokens ? made : others ? TR_SHARE_WRONG : TR_SHARE_TOKENS;
}

// What one rank has found is the largest value of its own part, until all have told.
static tr_part_form form_of_largest(const tr_shares *w, const tr_call *node) {
    tr_part_form in = w->of[node->in[0]];
    if (in == TR_SHARE_PART || in == TR_SHARE_REDUCED || in == TR_SHARE_MEASURED) {
        return TR_SHARE_WRONG;
    }
    bool whole = in == TR_SHARE_WHOLE && !tr__share_param(w, node->in[0]);
    return whole ? TR_SHARE_WHOLE : TR_SHARE_MEASURED;
}

static tr_part_form form_of_gathered(const tr_shares *w, const tr_call *node) {
    bool found = true;
    for (int i = 0; i < node->in_count; i++) {
        tr_part_form in = w->of[node->in[i]];
        found = found && (in == TR_SHARE_MEASURED || in == TR_SHARE_WHOLE);
    }
    return found ? TR_SHARE_WHOLE : TR_SHARE_WRONG;
}

static tr_part_form form_of(const tr_shares *w, const tr_call *node) {
    tr_part_form in = node->in[0] == TR_NO_VALUE ? TR_SHARE_WHOLE : w->of[node->in[0]];
    if (node->op == &tr__op_all_reduce) {
        return in == TR_SHARE_PART || in == TR_SHARE_OTHERWISE ? TR_SHARE_WHOLE
                                                               : TR_SHARE_WRONG;
    }
    if (node->op == &tr__op_all_gather) {
        return in == TR_SHARE_TOKENS ? TR_SHARE_WHOLE : TR_SHARE_WRONG;
    }
    if (node->op == &tr__op_reduce_scatter) {
        return in == TR_SHARE_PART ? TR_SHARE_REDUCED : TR_SHARE_WRONG;
    }
    if (node->op == &tr__op_own_part) {
        return in == TR_SHARE_WHOLE || in == TR_SHARE_REDUCED ? TR_SHARE_TOKENS
                                                              : TR_SHARE_WRONG;
    }
    if (node->op == &tr__op_largest) {
        return form_of_largest(w, node);
    }
    if (node->op == &tr__op_gather_largest) {
        return form_of_gathered(w, node);
    }
    return form_of_work(w, node);
}

static tr_status check_nodes(tr_shares *w, const tr_call *nodes, size_t count,
                             tr_error *err) {
    for (size_t v = 0; v < w->graph->value_count; v++) {
        const tr_value_info *info = &w->graph->values[v];
        bool cut = info->kind == TR_VALUE_INPUT && w->graph->input_cut[info->index];
        w->of[v] = cut ? TR_SHARE_TOKENS : TR_SHARE_WHOLE;
    }
    for (size_t n = 0; n < count; n++) {
        tr_part_form made = form_of(w, &nodes[n]);
        if (made == TR_SHARE_WRONG) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: unit %s, node %zu (%s) reads what ranks have not "
                           "exchanged, or exchanges what they have not cut",
                           w->unit->kind, n, nodes[n].op->name);
        }
        for (int i = 0; i < nodes[n].out_count; i++) {
            if (nodes[n].out[i] != TR_NO_VALUE) {
                w->of[nodes[n].out[i]] = made;
            }
        }
        if ((nodes[n].op->flags & TR_OP_LOSS) && made != TR_SHARE_WHOLE) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: unit %s: not every rank has all of the loss",
                           w->unit->kind);
        }
    }
    for (int i = 0; i < w->graph->output_count; i++) {
        if (w->of[w->graph->output[i]] !=
            (w->graph->output_cut[i] ? TR_SHARE_TOKENS : TR_SHARE_WHOLE)) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: unit %s hands on what ranks have otherwise than it "
                           "says",
                           w->unit->kind);
        }
    }
    return TR_OK;
}

// ---- parameters

// Is an operand of the instruction a rank's tokens, or the gradient of such?
static bool reads_tokens(const tr_shares *w, const tr_instruction *at) {
    for (int i = 0; i < at->desc.in_count; i++) {
        tr_value value =
            at->in[i].place == TR_PLACE_NONE ? TR_NO_VALUE : at->in[i].value;
        if (value != TR_NO_VALUE && w->graph->values[value].kind == TR_VALUE_GRAD) {
            value = (tr_value)w->graph->values[value].index;
        }
        if (value != TR_NO_VALUE && w->of[value] == TR_SHARE_TOKENS) {
            return true;
        }
    }
    return false;
}

// What has made an operand that is held for the pieces of weights; NULL: nothing.
static const tr_instruction *holder_of(const tr_shares *w, const tr_operand *held) {
    for (int i = 0; i < tr__unit_pieces(w->unit, TR_VARIANT_BACKWARD); i++) {
        const tr_program *program = tr__unit_piece(w->unit, TR_VARIANT_BACKWARD, i);
        for (size_t k = 0; k < program->count; k++) {
            const tr_instruction *at = &program->instructions[k];
            for (int o = 0; o < at->desc.out_count; o++) {
                if (at->out[o].place == TR_PLACE_HELD &&
                    at->out[o].value == held->value) {
                    return at;
                }
            }
        }
    }
    return NULL;
}

// A gradient that was made with that of the unit's input is held, and copied later.
static const tr_instruction *maker_of(const tr_shares *w, const tr_instruction *at) {
    bool copies = at->desc.op == &tr__op_copy && at->in[0].place == TR_PLACE_HELD;
    const tr_instruction *maker = copies ? holder_of(w, &at->in[0]) : NULL;
    return maker ? maker : at;
}

static tr_status check_gradient(const tr_shares *w, int u, const tr_instruction *at,
                                const tr_operand *gradient, tr_error *err) {
    const tr_flat *flat = &w->plan->flats[w->plan->units[u].flats[gradient->flat]];
    bool summed = (flat->axes.summed & TR_ON_TENSOR) != 0;
    return reads_tokens(w, maker_of(w, at)) == summed
               ? TR_OK
               : tr_fail(err, TR_INTERNAL,
                         "plan: unit %s: %s makes gradients of %s, which ranks %s",
                         w->unit->kind, at->desc.op->name, flat->name,
                         summed ? "sum, and which all of them have"
                                : "have parts of and do not sum");
}

static tr_status check_gradients(const tr_shares *w, int u, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < tr__unit_pieces(w->unit, TR_VARIANT_BACKWARD); i++) {
        const tr_program *program = tr__unit_piece(w->unit, TR_VARIANT_BACKWARD, i);
        for (size_t k = 0; k < program->count && !program->exchange; k++) {
            const tr_instruction *at = &program->instructions[k];
            for (int o = 0; o < at->desc.out_count && status == TR_OK; o++) {
                if (at->out[o].place == TR_PLACE_PARAM_GRAD) {
                    status = check_gradient(w, u, at, &at->out[o], err);
                }
            }
        }
    }
    return status;
}

// How many ranks have an element of the parameter, where each has as much of it.
static int64_t ranks_of(const tr_shares *w, const tr_param_info *param) {
    int64_t ranks = w->plan->request.mesh.size[TR_AXIS_TENSOR];
    int64_t all = tr_shape_count(param->whole_shape);
    int64_t own = tr_shape_count(part_of(param)) * ranks;
    return param->split && own % all == 0 ? own / all : 1;
}

// Heads that are repeated: neighbours have the same, their gradients are summed by
// them, and each is counted once.
static tr_status check_repeats(const tr_shares *w, int u, tr_error *err) {
    const tr_mesh *mesh = &w->plan->request.mesh;
    for (size_t i = 0; i < w->graph->param_count; i++) {
        const tr_param_info *param = &w->graph->params[i];
        const tr_flat *flat =
            &w->plan->flats[w->plan->units[u].flats[w->unit->params[i].flat]];
        int64_t ranks = ranks_of(w, param);
        bool many = ranks > 1;
        tr_axes sum = many && !flat->frozen ? TR_ON_REPEATS : 0;
        bool good =
            (flat->axes.summed & TR_ON_REPEATS) == sum && flat->repeated == many &&
            (!many ||
             (ranks == mesh->repeats && (flat->axes.split & TR_ON_TENSOR) &&
              param->lies.first == mesh->at[TR_AXIS_TENSOR] / ranks * param->lies.run));
        if (!good) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: %lld ranks have the same part of %s of unit %s, and "
                           "its flat buffer says otherwise",
                           (long long)ranks, param->name, w->unit->kind);
        }
    }
    return TR_OK;
}

static tr_status check_unit(tr_shares *w, int u, tr_error *err) {
    tr_status status = TR_OK;
    w->unit = w->plan->units[u].program;
    w->graph = w->unit->graph;
    w->of = tr__calloc(w->graph->value_count, sizeof *w->of);
    if (!w->of) {
        return tr_fail(err, TR_MEMORY, "no memory to check what ranks share");
    }
    status = check_nodes(w, w->graph->nodes, w->graph->node_count, err);
    status = status == TR_OK ? check_gradients(w, u, err) : status;
    status = status == TR_OK ? check_repeats(w, u, err) : status;
    status = status == TR_OK ? tr__check_scales(w, false, err) : status;
    if (status == TR_OK) {
        status = check_nodes(w, w->graph->asked, w->graph->asked_count, err);
    }
    status = status == TR_OK ? tr__check_scales(w, true, err) : status;
    tr__free(w->of);
    return status;
}

tr_status tr__check_parts(const tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_shares w = {.plan = plan};
    tr_status status = TR_OK;
    bool shared = r->mesh.size[TR_AXIS_TENSOR] > 1 && !r->tensor_ranks_alike;
    for (int u = 0; u < plan->unit_count && shared && !r->inference && status == TR_OK;
         u++) {
        status = check_unit(&w, u, err);
    }
    return status;
}
