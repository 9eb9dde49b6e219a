#include "plan/flow/fp8.h"

#include "graph/rewrite.h"

// Is there a product that can be in 8 bits?
static bool has_product(const tr_model *model, const tr_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        if (tr__rewrite_row(model->rewrites, graph->nodes[i].op, TR_REWRITE_FP8)) {
            return true;
        }
    }
    return false;
}

// Builds the unit's graph behind the outputs of the one before; writes its own.
static tr_status look_at(const tr_plan *plan, int unit, tr_tensor_desc *desc,
                         int *count, bool *is_block, tr_error *err) {
    const tr_model *model = plan->request.model;
    tr_graph *graph = NULL;
    tr_status status =
        tr__graph_of_unit(model, &model->units[unit], desc, *count, &plan->batch,
                          plan->request.compute, &graph, err);
    if (status != TR_OK) {
        return status;
    }
    *is_block = has_product(model, graph);
    *count = graph->output_count;
    for (int i = 0; i < graph->output_count; i++) {
        desc[i] = tr_graph_desc(graph, graph->output[i]);
    }
    tr__graph_destroy(graph);
    return TR_OK;
}

// Marks all blocks, and counts them.
static tr_status find_blocks(tr_plan *plan, int *blocks, tr_error *err) {
    tr_tensor_desc desc[TR_GRAPH_IO_MAX];
    tr_status status = TR_OK;
    int count = 0;
    *blocks = 0;
    for (int u = 0; u < plan->unit_count && status == TR_OK; u++) {
        bool *is_block = &plan->units[u].fp8;
        status = look_at(plan, u, desc, &count, is_block, err);
        *blocks += status == TR_OK && *is_block;
    }
    return status;
}

static tr_status check_blocks(const tr_plan_request *r, int blocks, tr_error *err) {
    const tr_plan_fp8 *fp8 = &r->fp8;
    if (blocks == 0) {
        return tr_fail(err, TR_USAGE,
                       "fp8.enabled is true, and the model %s has no linear layer "
                       "before its head, whose product could be in fp8: leave fp8 out",
                       r->model->type);
    }
    return fp8->first_blocks_bf16 + fp8->last_blocks_bf16 < blocks
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "fp8.first_blocks_bf16 %lld and fp8.last_blocks_bf16 %lld "
                         "leave none of the model's %d blocks in fp8: lower them, or "
                         "leave fp8 out",
                         (long long)fp8->first_blocks_bf16,
                         (long long)fp8->last_blocks_bf16, blocks);
}

tr_status tr__fp8_units(tr_plan *plan, tr_error *err) {
    const tr_plan_fp8 *fp8 = &plan->request.fp8;
    int blocks = 0, block = 0;
    if (!fp8->enabled) {
        return TR_OK;
    }
    tr_status status = find_blocks(plan, &blocks, err);
    status = status == TR_OK ? check_blocks(&plan->request, blocks, err) : status;
    for (int u = 0; u < plan->unit_count && status == TR_OK; u++) {
        if (plan->units[u].fp8) {
            plan->units[u].fp8 = block >= fp8->first_blocks_bf16 &&
                                 block < blocks - fp8->last_blocks_bf16;
            block++;
        }
    }
    return status;
}

int tr__plan_fp8_units(const tr_plan *plan) {
    int count = 0;
    for (int u = 0; u < plan->unit_count; u++) {
        count += plan->units[u].fp8;
    }
    return count;
}
