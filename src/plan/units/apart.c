#include "plan/units/apart.h"

#include "base/checked.h"
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

// Tables of embeddings and the output layer are no matrices in this sense.
static bool is_matrix(const tr_plan_request *request, const tr_model_unit *unit,
                      const tr_graph *graph, size_t index) {
    const tr_param_info *param = &graph->params[index];
    char name[1024];
    snprintf(name, sizeof name, "%s%s", param->shared ? "" : unit->prefix, param->name);
    return param->shape.rank == 2 && !param->whole && !is_table(graph, index) &&
           !tr__is_token_tensor(request->model, name);
}

static bool is_small(const tr_graph *graph, size_t index) {
    const tr_param_info *param = &graph->params[index];
    int64_t count = tr_shape_count(param->whole ? param->whole_shape : param->shape);
    return count < SMALL || is_table(graph, index);
}

// The tensors of a stack are one operand. All of them are apart where one is, or where
// the next one would not begin with a block.
static bool stack_is_small(const tr_plan_request *request, const tr_graph *graph,
                           size_t index) {
    int64_t block = tr__states_block(request);
    size_t first = index, end = index + 1;
    while (graph->params[first].stacked) {
        first--;
    }
    while (end < graph->param_count && graph->params[end].stacked) {
        end++;
    }
    bool small = false;
    for (size_t i = first; i < end; i++) {
        int64_t count = tr_shape_count(graph->params[i].shape);
        small = small || is_small(graph, i) || (i + 1 < end && count % block != 0);
    }
    return small;
}

bool tr__is_apart(const tr_plan_request *request, const tr_model_unit *unit,
                  const tr_graph *graph, size_t index) {
    switch (request->apart) {
    case TR_APART_SMALL:
        return stack_is_small(request, graph, index);
    case TR_APART_NO_MATRIX:
        return !is_matrix(request, unit, graph, index);
    default:
        return false;
    }
}

void tr__apart_graph(const tr_plan_request *request, const tr_model_unit *unit,
                     tr_graph *graph) {
    for (size_t i = 0; i < graph->param_count; i++) {
        tr_param_info *info = &graph->params[i];
        info->apart = !info->frozen && tr__is_apart(request, unit, graph, i);
    }
}

const char *tr__apart_name(tr_apart apart) {
    static const char *const names[] = {"apart", "states in f32", "AdamW"};
    return names[apart];
}
