#include "plan/units/unit_graph.h"

#include "graph/rewrite.h"
#include "graph/scales.h"
#include "graph/split.h"
#include "plan/units/apart.h"
#include "plan/units/freeze.h"
#include "plan/units/heads.h"

#include <string.h>

typedef struct stage {
    const tr_compile_request *request;
    tr_graph *graph;
    tr_rewrite_walk walk;
    tr_error *err;
    tr_status status;
} stage;

static void rewrite(stage *s, tr_rewrite_variant variant) {
    s->walk.variant = variant;
    if (s->status == TR_OK) {
        s->status = tr__graph_rewrite(s->graph, &s->walk, s->err);
    }
}

static void rewrite_evaluation(stage *s) {
    s->walk.variant = TR_REWRITE_ASKED;
    if (s->status == TR_OK) {
        s->status = tr__graph_rewrite_asked(s->graph, &s->walk, s->err);
    }
}

static bool quantizes(const void *request, const tr_rewrite_node *node,
                      const char *param) {
    return tr__matches_own(request, node->unit, param);
}

static bool has_logits(const tr_graph *graph) {
    for (size_t v = 0; v < graph->value_count; v++) {
        if (graph->values[v].kind == TR_VALUE_LOGITS) {
            return true;
        }
    }
    return false;
}

// In a loss's place come the logits.
static void rewrite_loss(stage *s) {
    size_t count = s->graph->node_count;
    const tr_op *last = count > 0 ? s->graph->nodes[count - 1].op : NULL;
    rewrite(s, s->request->all_rows ? TR_REWRITE_ALL_LOGITS : TR_REWRITE_LOGITS);
    if (s->status == TR_OK && last && (last->flags & TR_OP_LOSS) &&
        !has_logits(s->graph)) {
        s->status = tr_fail(
            s->err, TR_USAGE,
            "the loss %s has no op that gives logits, so this model has no inference",
            last->name);
    }
}

static void rewrite_inference(stage *s) {
    rewrite(s, TR_REWRITE_ASKED);
    if (s->request->cache_positions > 0) {
        rewrite(s, TR_REWRITE_CACHE);
    }
    rewrite_loss(s);
}

int64_t tr__tokens_of(const tr_model *model) {
    const tr_batch_tensor *input = tr_batch_input(&model->batch);
    bool text = input && input->desc.dtype == TR_I32 && input->desc.shape.rank == 1;
    return text ? input->desc.shape.dim[0] : 0;
}

int64_t tr__cut_tokens_of(const tr_plan_request *r) {
    bool cuts = r->sequence_parallel && r->mesh.size[TR_AXIS_TENSOR] > 1 &&
                !r->tensor_ranks_alike && !r->inference;
    return cuts ? tr__tokens_of(r->model) : 0;
}

// What the unit before hands on, as the model's code knows it: of all tokens.
static void find_whole_inputs(const tr_compile_request *request,
                              const tr_tensor_desc *inputs, int count,
                              tr_tensor_desc *whole) {
    for (int i = 0; i < count; i++) {
        whole[i] = inputs[i];
        whole[i].shape.dim[1] *=
            request->input_cut[i] ? request->plan->mesh.size[TR_AXIS_TENSOR] : 1;
    }
}

static bool shares_work(const stage *s) {
    const tr_plan_request *r = s->request->plan;
    return r->mesh.size[TR_AXIS_TENSOR] > 1 && !r->tensor_ranks_alike;
}

// What is kept is copied for the gradients, so a half of what a GPU has at once is
// kept.
static int64_t kept_logits(const tr_plan_request *r) {
    return (r->logits_mib << 20) / 2 / r->micro_batch;
}

static tr_rewrite_walk walk_over_ranks(const stage *s) {
    const tr_mesh *mesh = &s->request->plan->mesh;
    tr_rewrite_walk walk = s->walk;
    walk.variant = TR_REWRITE_SPLIT;
    walk.ranks = mesh->size[TR_AXIS_TENSOR];
    walk.rank = mesh->at[TR_AXIS_TENSOR];
    walk.axes = TR_ON_TENSOR;
    walk.logits_bytes = kept_logits(s->request->plan);
    return walk;
}

// Ranks of the tensor axis share the work of layers.
static void split_over_ranks(stage *s) {
    const tr_plan_request *r = s->request->plan;
    if (shares_work(s)) {
        tr_rewrite_walk walk = walk_over_ranks(s);
        walk.tokens = tr__cut_tokens_of(r);
        walk.hands_out = s->request->last;
        tr__apart_graph(r, s->walk.unit, s->graph);
        s->status = tr__check_heads(r, s->graph, s->walk.unit->name, s->err);
        if (s->status == TR_OK) {
            s->status = tr__graph_split(s->graph, &walk, s->request->cuts_tied, s->err);
        }
    }
}

static void multiply_in_8_bits(stage *s) {
    rewrite(s, TR_REWRITE_FP8);
    if (s->status == TR_OK && shares_work(s)) {
        const tr_rewrite_walk walk = walk_over_ranks(s);
        s->status = tr__graph_share_scales(s->graph, &walk, s->err);
    }
}

tr_status tr__unit_graph(const tr_compile_request *request, const tr_model_unit *unit,
                         const tr_tensor_desc *inputs, int input_count,
                         const tr_batch_tensors *batch, tr_graph **out, tr_error *err) {
    const tr_model *model = request->plan->model;
    tr_graph *graph = NULL;
    tr_tensor_desc whole[TR_GRAPH_IO_MAX] = {{0}};
    find_whole_inputs(request, inputs, input_count, whole);
    tr_status status = tr__graph_of_unit(model, unit, whole, input_count, batch,
                                         request->real, &graph, err);
    if (status != TR_OK) {
        return status;
    }
    memcpy(graph->input_cut, request->input_cut, sizeof request->input_cut);
    memcpy(graph->input_fixed, request->input_fixed, sizeof request->input_fixed);
    stage s = {.request = request,
               .graph = graph,
               .walk = {.own = model->rewrites,
                        .unit = unit,
                        .quantization = request->quantization,
                        .quantizes = quantizes,
                        .request = request->plan,
                        .cache_positions = request->cache_positions,
                        .cache_piece = request->cache_piece},
               .err = err};
    split_over_ranks(&s);
    if (request->quantization) {
        rewrite(&s, TR_REWRITE_QUANTIZED);
    }
    if (request->fp8) {
        multiply_in_8_bits(&s);
    }
    if (request->train) {
        rewrite_evaluation(&s);
    } else {
        rewrite_inference(&s);
    }
    if (s.status == TR_OK) {
        s.status = tr__freeze_graph(request->plan, unit, graph, err);
        tr__apart_graph(request->plan, unit, graph);
    }
    if (s.status == TR_OK) {
        s.status = tr__apart_check_parts(request->plan, unit->name, graph, err);
    }
    if (s.status != TR_OK) {
        tr__graph_destroy(graph);
        return s.status;
    }
    *out = graph;
    return TR_OK;
}
