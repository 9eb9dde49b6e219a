#include "plan/units/apart.h"

#include "base/checked.h"
#include "base/text.h"
#include "models/folder.h"
#include "ops/nn/embedding/embedding.h"
#include "ops/optimizers/state_types.h"

#include <stdio.h>

// As bitsandbytes has it.
enum { SMALL = 4096 };

int64_t tr__states_block(const tr_plan_request *request) {
    int64_t block = 1;
    for (int s = 0; s < request->optimizer_states; s++) {
        tr_block_size packing = tr__state_format(request->states[s].type)->packing;
        block = tr__max_i64(block, packing.elements);
    }
    return block;
}

// Does an embedding look its rows up?
static bool is_table(const tr_graph *graph, size_t index) {
    bool table = false;
    for (size_t i = 0; i < graph->node_count; i++) {
        const tr_call *node = &graph->nodes[i];
        bool looks_up = node->op == &tr__op_embedding;
        for (int k = 0; looks_up && k < node->in_count; k++) {
            table = table || (node->in[k] != TR_NO_VALUE &&
                              node->in[k] == graph->params[index].value);
        }
    }
    return table;
}

// The rule that decides; NULL: none does.
static const tr_apart_rule *rule_of(const tr_plan_request *request, const char *name) {
    for (size_t i = 0; i < request->apart_rule_count; i++) {
        const tr_apart_rule *rule = &request->apart_rules[i];
        for (size_t k = 0; k < rule->count; k++) {
            if (tr__glob_match(rule->patterns[k], name)) {
                return rule->says ? rule : NULL;
            }
        }
    }
    return NULL;
}

// Tables of embeddings and the output layer are none unless a rule says so.
static bool is_matrix(const tr_plan_request *request, const tr_model_unit *unit,
                      const tr_graph *graph, size_t index) {
    const tr_param_info *param = &graph->params[index];
    char name[1024];
    snprintf(name, sizeof name, "%s%s", param->shared ? "" : unit->prefix, param->name);
    const tr_apart_rule *rule = rule_of(request, name);
    bool usual = !is_table(graph, index) && !tr__is_token_tensor(request->model, name);
    return param->shape.rank == 2 && !param->whole && (rule ? !rule->apart : usual);
}

static bool is_small(const tr_graph *graph, size_t index) {
    const tr_param_info *param = &graph->params[index];
    int64_t count = tr_shape_count(param->whole ? param->whole_shape : param->shape);
    return count < SMALL || is_table(graph, index);
}

static bool is_apart(const tr_plan_request *request, const tr_model_unit *unit,
                     const tr_graph *graph, size_t index) {
    return request->apart == TR_APART_SMALL ? is_small(graph, index)
                                            : !is_matrix(request, unit, graph, index);
}

// The tensors of a stack are one operand. All of them are apart where one is, or where
// the next one would not begin with a block.
bool tr__is_apart(const tr_plan_request *request, const tr_model_unit *unit,
                  const tr_graph *graph, size_t index) {
    int64_t block = tr__states_block(request);
    size_t first = index, end = index + 1;
    if (request->apart == TR_APART_NOTHING) {
        return false;
    }
    while (graph->params[first].stacked) {
        first--;
    }
    while (end < graph->param_count && graph->params[end].stacked) {
        end++;
    }
    bool apart = false;
    for (size_t i = first; i < end; i++) {
        int64_t count = tr_shape_count(graph->params[i].shape);
        apart = apart || is_apart(request, unit, graph, i) ||
                (i + 1 < end && count % block != 0);
    }
    return apart;
}

// Which tensors are small, all units of a kind say alike.
bool tr__apart_alike(const tr_plan_request *request, const tr_model_unit *unit,
                     const tr_graph *graph) {
    bool alike = true;
    for (size_t i = 0;
         alike && request->apart == TR_APART_NO_MATRIX && i < graph->param_count; i++) {
        const tr_param_info *info = &graph->params[i];
        bool apart = !info->frozen && tr__is_apart(request, unit, graph, i);
        alike = apart == info->apart;
    }
    return alike;
}

void tr__apart_graph(const tr_plan_request *request, const tr_model_unit *unit,
                     tr_graph *graph) {
    for (size_t i = 0; i < graph->param_count; i++) {
        tr_param_info *info = &graph->params[i];
        bool apart = info->split ? info->apart : tr__is_apart(request, unit, graph, i);
        info->apart = apart && !info->frozen;
    }
}

tr_status tr__apart_check_parts(const tr_plan_request *request, const char *unit,
                                const tr_graph *graph, tr_error *err) {
    int64_t block = tr__states_block(request);
    for (size_t i = 0; i < graph->param_count; i++) {
        const tr_param_info *info = &graph->params[i];
        const tr_stride *lies = &info->lies;
        if (info->split && !info->frozen && !info->apart &&
            tr__stride_cuts(lies, block)) {
            return tr_fail(err, TR_USAGE,
                           "tensor_parallel.size is %lld, which cuts %s of %s after "
                           "every %lld elements, and in optimizer.params.state_dtype "
                           "\"int8\" blocks of %lld share a scale: set one of the two "
                           "so that no block is cut, or the type to \"bf16\"",
                           (long long)request->mesh.size[TR_AXIS_TENSOR], info->name,
                           unit, (long long)lies->run, (long long)block);
        }
    }
    return TR_OK;
}

const char *tr__apart_name(tr_apart apart) {
    static const char *const names[] = {"apart", "states in f32", "AdamW"};
    return names[apart];
}
