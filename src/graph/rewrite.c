#include "graph/rewrite.h"

#include "base/hash.h"
#include "base/memory.h"
#include "graph/written.h"

#include <string.h>

// A draw that a row makes has the number
//
//     2^15 + (((draws * 1024) + node) * 8) + k
//
// where `node` is the model's node, `draws` the kind of variant, and k counts the draws
// in the node's place. So it depends on nothing that stands elsewhere.
enum { DRAWS_OF_NODE = 8, NODES_MOST = 1024 };

static uint32_t draw_kind(tr_rewrite_variant variant) {
    return variant == TR_REWRITE_ALWAYS  ? 0
           : variant == TR_REWRITE_FP8   ? 1
           : variant == TR_REWRITE_ASKED ? 2
                                         : 3;
}

// ---- rows

static bool is_of(const tr_rewrite *row, const tr_op *op, tr_rewrite_variant variant) {
    bool of_op = row->op ? row->op == op : strcmp(row->name, op->name) == 0;
    return row->variant == variant && of_op;
}

static const tr_rewrite *row_in(const tr_rewrite *rows, const tr_op *op,
                                tr_rewrite_variant variant) {
    while (rows && rows->write && !is_of(rows, op, variant)) {
        rows++;
    }
    return rows && rows->write ? rows : NULL;
}

const tr_rewrite *tr__rewrite_row(const tr_rewrite *own, const tr_op *op,
                                  tr_rewrite_variant variant) {
    const tr_rewrite *row = row_in(own, op, variant);
    for (int i = 0; !row && tr__rewrites[i]; i++) {
        row = row_in(tr__rewrites[i], op, variant);
    }
    return row;
}

static bool any_row(const tr_graph *graph, const tr_rewrite_walk *walk) {
    for (size_t n = 0; n < graph->node_count; n++) {
        if (tr__rewrite_row(walk->own, graph->nodes[n].op, walk->variant)) {
            return true;
        }
    }
    return false;
}

// ---- one node

static tr_rewrite_node view_of(const tr_graph *graph, const tr_rewrite_walk *walk,
                               const tr_call *node) {
    tr_rewrite_node view = {.variant = walk->variant,
                            .unit = walk->unit,
                            .adapter = walk->adapter,
                            .quantization = walk->quantization,
                            .quantizes = walk->quantizes,
                            .request = walk->request,
                            .op = node->op,
                            .attr = node->attr,
                            .in_count = node->in_count,
                            .out_count = node->out_count,
                            .in = node->in,
                            .out = node->out,
                            .cache_positions = walk->cache_positions,
                            .cache_piece = walk->cache_piece,
                            .ranks = walk->ranks,
                            .rank = walk->rank,
                            .logits_bytes = walk->logits_bytes};
    for (int i = 0; i < node->in_count; i++) {
        const tr_value_info *info =
            node->in[i] == TR_NO_VALUE ? NULL : &graph->values[node->in[i]];
        view.param[i] = info && info->kind == TR_VALUE_PARAM
                            ? graph->params[info->index].name
                            : NULL;
    }
    return view;
}

void tr__graph_keep_node(tr_graph *graph, const tr_call *node) {
    if (!tr__grow((void **)&graph->nodes, &graph->node_capacity, graph->node_count + 1,
                  sizeof *graph->nodes)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
        return;
    }
    graph->nodes[graph->node_count++] = *node;
}

tr_call *tr__graph_take_nodes(tr_graph *graph, size_t *count) {
    tr_call *nodes = graph->nodes;
    *count = graph->node_count;
    graph->nodes = NULL;
    graph->node_count = graph->node_capacity = 0;
    return nodes;
}

void tr__graph_put_node(tr_graph *graph, const tr_call *like, const tr_op *op,
                        const void *attr, const tr_value *in, int in_count,
                        tr_value out) {
    tr_call node = {.op = op,
                    .in_count = in_count,
                    .out_count = 1,
                    .out = {out},
                    .segment = like->segment,
                    .origin = like->origin};
    memcpy(node.in, in, (size_t)in_count * sizeof *in);
    if (attr) {
        memcpy(node.attr, attr, op->attr_bytes);
    }
    tr__graph_keep_node(graph, &node);
}

static void begin_writing(tr_graph *graph, const tr_rewrite_walk *walk,
                          const tr_call *node) {
    uint32_t place = draw_kind(walk->variant) * NODES_MOST + (uint32_t)node->origin;
    uint32_t first = TR_GRAPH_DRAWS + place * DRAWS_OF_NODE;
    bool draws = node->origin < NODES_MOST;
    graph->writing = (tr_writing){.on = true,
                                  .variant = walk->variant,
                                  .segment = node->segment,
                                  .origin = node->origin,
                                  .axes = walk->axes,
                                  .draw = first,
                                  .draw_end = draws ? first + DRAWS_OF_NODE : first};
}

void tr__graph_rewrite_node(tr_graph *graph, const tr_rewrite_walk *walk,
                            const tr_call *node) {
    const tr_rewrite *row = tr__rewrite_row(walk->own, node->op, walk->variant);
    tr_written written;
    if (!row) {
        tr__graph_keep_node(graph, node);
        return;
    }
    tr_rewrite_node view = view_of(graph, walk, node);
    tr__written_begin(&written, graph, node);
    begin_writing(graph, walk, node);
    bool writes = row->write(graph, &view, written.results);
    if (graph->err.status == TR_OK && !writes && tr__written_nothing(&written)) {
        tr__graph_keep_node(graph, node);
    } else if (graph->err.status == TR_OK) {
        tr__written_settle(&written);
    }
    graph->writing = (tr_writing){0};
}

// ---- all nodes

static void rewrite_nodes(tr_graph *graph, const tr_rewrite_walk *walk,
                          const tr_call *old, size_t count) {
    for (size_t n = 0; n < count && graph->err.status == TR_OK; n++) {
        tr__graph_rewrite_node(graph, walk, &old[n]);
    }
    if (graph->err.status == TR_OK) {
        tr__written_check(graph);
    }
}

void tr__graph_number_nodes(tr_graph *graph) {
    for (size_t n = 0; n < graph->node_count && graph->err.status == TR_OK; n++) {
        const tr_call *node = &graph->nodes[n];
        for (int i = 0; i < node->out_count; i++) {
            tr_value_info *info = &graph->values[node->out[i]];
            info->node = (int)n;
            info->index = i;
            info->segment = node->segment;
        }
    }
}

tr_status tr__graph_rewrite(tr_graph *graph, const tr_rewrite_walk *walk,
                            tr_error *err) {
    if (graph->err.status == TR_OK && any_row(graph, walk)) {
        size_t count;
        tr_call *old = tr__graph_take_nodes(graph, &count);
        rewrite_nodes(graph, walk, old, count);
        tr__graph_number_nodes(graph);
        tr__free(old);
    }
    return tr_graph_status(graph, err);
}

// What lies between nodes of the evaluation alone is no value of the training.
static void set_apart(tr_graph *graph, size_t first) {
    for (size_t v = first; v < graph->value_count && graph->err.status == TR_OK; v++) {
        tr_value_info *info = &graph->values[v];
        if (info->kind != TR_VALUE_NODE || info->wave || info->sums) {
            tr_graph_fail(graph, TR_USAGE,
                          "between the nodes of a rewrite for evaluations lies a "
                          "tensor of the whole wave, or of the batch");
        }
        info->kind = TR_VALUE_TEMP;
    }
}

tr_status tr__graph_rewrite_asked(tr_graph *graph, const tr_rewrite_walk *walk,
                                  tr_error *err) {
    if (graph->err.status != TR_OK) {
        return tr_graph_status(graph, err);
    }
    size_t count, capacity = graph->node_capacity, values = graph->value_count;
    tr_call *nodes = tr__graph_take_nodes(graph, &count);
    rewrite_nodes(graph, walk, nodes, count);
    set_apart(graph, values);
    graph->asked = graph->nodes;
    graph->asked_count = graph->node_count;
    graph->nodes = nodes;
    graph->node_count = count;
    graph->node_capacity = capacity;
    return tr_graph_status(graph, err);
}

tr_status tr__graph_of_unit(const tr_model *model, const tr_model_unit *unit,
                            const tr_tensor_desc *inputs, int count,
                            const tr_batch_tensors *batch, tr_dtype real,
                            tr_graph **out, tr_error *err) {
    const tr_rewrite_walk walk = {.own = model ? model->rewrites : NULL,
                                  .adapter = model ? model->adapter : NULL,
                                  .unit = unit,
                                  .variant = TR_REWRITE_ALWAYS};
    tr_graph *graph = tr__graph_create(inputs, count, batch, real);
    if (!graph) {
        return tr_fail(err, TR_MEMORY, "no memory for the graph of unit %s",
                       unit->name);
    }
    unit->build(graph, unit->config);
    tr_status status = tr__graph_rewrite(graph, &walk, err);
    if (status != TR_OK) {
        tr__graph_destroy(graph);
        return status;
    }
    *out = graph;
    return TR_OK;
}

static uint64_t hash_desc(uint64_t hash, tr_dtype dtype, const tr_shape *shape) {
    hash = tr__hash_more(hash, &dtype, sizeof dtype);
    hash = tr__hash_more(hash, &shape->rank, sizeof shape->rank);
    return tr__hash_more(hash, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
}

static uint64_t hash_nodes(uint64_t hash, const tr_call *nodes, size_t count) {
    for (size_t n = 0; n < count; n++) {
        const tr_call *node = &nodes[n];
        hash = tr__hash_more(hash, &node->op, sizeof node->op);
        hash = tr__hash_more(hash, node->attr, sizeof node->attr);
        hash = tr__hash_more(hash, node->in, (size_t)node->in_count * sizeof *node->in);
        hash =
            tr__hash_more(hash, node->out, (size_t)node->out_count * sizeof *node->out);
        hash = tr__hash_more(hash, &node->segment, sizeof node->segment);
    }
    return hash;
}

uint64_t tr__graph_hash(const tr_graph *graph) {
    uint64_t hash = hash_nodes(1, graph->nodes, graph->node_count);
    hash = hash_nodes(hash, graph->asked, graph->asked_count);
    for (size_t i = 0; i < graph->param_count; i++) {
        const tr_param_info *param = &graph->params[i];
        hash = tr__hash_more(hash, param->name, strlen(param->name) + 1);
        hash = tr__hash_more(hash, &param->init, sizeof param->init);
        hash = hash_desc(hash, graph->real, &param->shape);
    }
    for (size_t i = 0; i < graph->state_count; i++) {
        const tr_state_info *state = &graph->states[i];
        const tr_tensor_desc *desc = &graph->values[state->value].desc;
        hash = tr__hash_more(hash, state->name, strlen(state->name) + 1);
        hash = tr__hash_more(hash, &state->init, sizeof state->init);
        hash = hash_desc(hash, desc->dtype, &desc->shape);
    }
    return tr__hash_more(hash, graph->output,
                         (size_t)graph->output_count * sizeof *graph->output);
}
