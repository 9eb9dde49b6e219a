#include "graph/graph.h"

#include "base/batch.h"
#include "base/memory.h"
#include "ops/flat/cast/cast.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tr_graph *tr__graph_create(const tr_tensor_desc *inputs, int input_count,
                           const tr_batch_tensors *batch, tr_dtype real) {
    tr_graph *graph = tr__calloc(1, sizeof *graph);
    if (!graph) {
        return NULL;
    }
    graph->real = real;
    for (int i = 0; i < input_count; i++) {
        graph->inputs[i] = inputs[i];
    }
    graph->input_count = input_count;
    graph->batch = *batch;
    for (int i = 0; i < batch->count; i++) {
        graph->data_value[i] = TR_NO_VALUE;
    }
    for (int i = 0; i < TR_GRAPH_IO_MAX; i++) {
        graph->input_value[i] = TR_NO_VALUE;
    }
    graph->segment_count = 1;
    graph->cache_room = INT64_MAX;
    return graph;
}

void tr__graph_destroy(tr_graph *graph) {
    if (!graph) {
        return;
    }
    for (size_t i = 0; i < graph->param_count; i++) {
        tr__free(graph->params[i].name);
        tr__free(graph->params[i].whole);
    }
    for (size_t i = 0; i < graph->state_count; i++) {
        tr__free(graph->states[i].name);
    }
    tr__free(graph->states);
    tr__free(graph->barriers);
    tr__free(graph->params);
    tr__free(graph->values);
    tr__free(graph->nodes);
    tr__free(graph->asked);
    tr__free(graph);
}

void(tr_graph_fail)(tr_graph *graph, tr_status status, const char *format, ...) {
    char message[TR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (tr_fail)(&graph->err, status, "%s", message);
}

void tr_graph_fail_at(tr_graph *graph, tr_status status, const char *file, int line,
                      const char *format, ...) {
    char message[TR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    tr_fail_at(&graph->err, status, file, line, "%s", message);
}

tr_status tr_graph_status(const tr_graph *graph, tr_error *err) {
    if (graph->err.status != TR_OK) {
        tr_fail(err, graph->err.status, "%s", graph->err.message);
    }
    return graph->err.status;
}

tr_tensor_desc tr_graph_desc(const tr_graph *graph, tr_value value) {
    if (value < 0 || (size_t)value >= graph->value_count) {
        return (tr_tensor_desc){0};
    }
    return graph->values[value].desc;
}

tr_value tr__graph_value(tr_graph *graph, tr_value_info info) {
    if (!tr__grow((void **)&graph->values, &graph->value_capacity,
                  graph->value_count + 1, sizeof *graph->values)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
        return TR_NO_VALUE;
    }
    graph->values[graph->value_count] = info;
    return (tr_value)graph->value_count++;
}

tr_value tr_graph_input(tr_graph *graph, int index) {
    if (graph->err.status != TR_OK) {
        return TR_NO_VALUE;
    }
    if (index < 0 || index >= graph->input_count) {
        tr_graph_fail(graph, TR_INTERNAL,
                      "a unit asks for tensor %d of the unit before, which hands on %d",
                      index, graph->input_count);
        return TR_NO_VALUE;
    }
    if (graph->input_value[index] == TR_NO_VALUE) {
        tr_value_info info = {
            .desc = graph->inputs[index], .kind = TR_VALUE_INPUT, .index = index};
        graph->input_value[index] = tr__graph_value(graph, info);
    }
    return graph->input_value[index];
}

// Inputs in the type that the graph computes in; what a loss compares with as it is.
static tr_value add_data(tr_graph *graph, int index) {
    bool input = graph->batch.tensor[index].role == TR_ROLE_INPUT;
    tr_value_info info = {.desc = tr__batch_desc(&graph->batch.tensor[index]),
                          .kind = TR_VALUE_DATA,
                          .index = index};
    tr_value value = graph->data_value[index] = tr__graph_value(graph, info);
    if (input && info.desc.dtype == TR_F32 && graph->real != TR_F32) {
        tr_cast_attr attr = {(int32_t)graph->real};
        value = tr__graph_op(graph, &tr__op_cast, &attr, &value, 1, NULL);
    }
    return value;
}

tr_value tr_graph_data(tr_graph *graph, const char *name) {
    if (graph->err.status != TR_OK) {
        return TR_NO_VALUE;
    }
    int index = tr_batch_find(&graph->batch, name);
    if (index < 0) {
        tr_graph_fail(graph, TR_USAGE,
                      "a unit asks for the tensor %s of the batch, which the model's "
                      "batch does not have",
                      name);
        return TR_NO_VALUE;
    }
    if (graph->data_value[index] == TR_NO_VALUE) {
        graph->data_seen[index] = add_data(graph, index);
    }
    return graph->data_seen[index];
}

tr_value tr_graph_state(tr_graph *graph, const char *name, tr_tensor_desc desc,
                        float value) {
    if (graph->err.status != TR_OK) {
        return TR_NO_VALUE;
    }
    if (tr_shape_count(desc.shape) <= 0 ||
        (desc.dtype != TR_F32 && desc.dtype != TR_I64)) {
        tr_graph_fail(graph, TR_USAGE, "state %s has an impossible shape or type",
                      name);
        return TR_NO_VALUE;
    }
    for (size_t i = 0; i < graph->state_count; i++) {
        if (strcmp(graph->states[i].name, name) == 0) {
            tr_graph_fail(graph, TR_USAGE, "a unit has two states %s", name);
            return TR_NO_VALUE;
        }
    }
    char *copy = tr__strdup(name);
    if (!copy || !tr__grow((void **)&graph->states, &graph->state_capacity,
                           graph->state_count + 1, sizeof *graph->states)) {
        tr__free(copy);
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's states");
        return TR_NO_VALUE;
    }
    tr_value_info info = {
        .desc = desc, .kind = TR_VALUE_STATE, .index = (int)graph->state_count};
    tr_state_info *state = &graph->states[graph->state_count++];
    *state = (tr_state_info){.name = copy, .init = value};
    state->value = tr__graph_value(graph, info);
    return state->value;
}

bool tr__graph_hands_on(const tr_graph *graph, tr_value value) {
    for (int i = 0; i < graph->output_count; i++) {
        if (graph->output[i] == value) {
            return true;
        }
    }
    return false;
}

void tr_graph_output(tr_graph *graph, tr_value value) {
    if (graph->err.status != TR_OK) {
        return;
    }
    bool known = value >= 0 && (size_t)value < graph->value_count;
    if (graph->writing.on) {
        tr_graph_fail(graph, TR_USAGE,
                      "a rewrite hands on what the node did, and nothing else");
    } else if (!known || graph->values[value].kind != TR_VALUE_NODE) {
        tr_graph_fail(graph, TR_INTERNAL, "a unit hands on what no op of it made");
    } else if (graph->values[value].wave || graph->values[value].sums) {
        tr_graph_fail(graph, TR_INTERNAL,
                      "a unit hands on what is not of one micro-batch");
    } else if (tr__graph_hands_on(graph, value)) {
        tr_graph_fail(graph, TR_INTERNAL, "a unit hands on one tensor twice");
    } else if (graph->output_count == TR_GRAPH_IO_MAX) {
        tr_graph_fail(graph, TR_INTERNAL, "a unit hands on more than %d tensors",
                      (int)TR_GRAPH_IO_MAX);
    } else {
        graph->output[graph->output_count++] = value;
    }
}

// ---- segments

void tr_graph_segment(tr_graph *graph) {
    if (graph->writing.on) {
        tr_graph_fail(graph, TR_USAGE, "a rewrite stays in the segment of its node");
    }
    graph->cut = graph->node_count > 0;
}

int tr__graph_barriers(const tr_graph *graph, int first, int end) {
    int count = 0;
    for (int s = first; s < end; s++) {
        count += graph->barriers[s];
    }
    return count;
}

static bool begin_segment(tr_graph *graph) {
    size_t count = (size_t)graph->segment_count;
    if (!tr__grow((void **)&graph->barriers, &graph->barrier_capacity, count + 1,
                  sizeof *graph->barriers)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's segments");
        return false;
    }
    graph->barriers[count] = false;
    graph->segment_count++;
    graph->cut = false;
    return true;
}

// The segment that writes the last of the wave tensors that the node reads, -1: none.
static int wave_segment(const tr_graph *graph, const tr_call *node) {
    int last = -1;
    for (int i = 0; i < node->in_count; i++) {
        const tr_value_info *value =
            node->in[i] == TR_NO_VALUE ? NULL : &graph->values[node->in[i]];
        if (value && value->wave && value->segment > last) {
            last = value->segment;
        }
    }
    return last;
}

// What a row writes in a node's place is in the node's segment.
static bool place_written(tr_graph *graph, tr_call *node, int wave) {
    node->segment = graph->writing.segment;
    if (wave == node->segment) {
        tr_graph_fail(graph, TR_USAGE,
                      "op %s, which a rewrite puts in a node's place, reads a wave "
                      "tensor of its own segment",
                      node->op->name);
    }
    return wave != node->segment;
}

// A node is in the running segment, unless the unit was cut before it or it reads a
// wave tensor of that segment. Between what adds to a wave tensor and what reads it
// lies a barrier.
static bool place_node(tr_graph *graph, tr_call *node) {
    int wave = wave_segment(graph, node);
    if (graph->writing.on) {
        return place_written(graph, node, wave);
    }
    bool next = graph->cut || wave == graph->segment_count - 1;
    if (next && !begin_segment(graph)) {
        return false;
    }
    node->segment = graph->segment_count - 1;
    if (wave >= 0 && tr__graph_barriers(graph, wave + 1, graph->segment_count) == 0) {
        graph->barriers[node->segment] = true;
    }
    return true;
}

static bool infer(tr_graph *graph, tr_call *node, tr_tensor_desc *out) {
    tr_tensor_desc in[TR_OP_IN_MAX] = {0};
    for (int i = 0; i < node->in_count; i++) {
        in[i] = tr_graph_desc(graph, node->in[i]);
    }
    tr_op_node view = {
        .op = node->op, .attr = node->attr, .in_count = node->in_count, .in = in};
    return node->op->infer(&view, out, &node->out_count, &graph->err) == TR_OK;
}

static bool ends_with_loss(const tr_graph *graph) {
    return graph->node_count > 0 &&
           (graph->nodes[graph->node_count - 1].op->flags & TR_OP_LOSS);
}

static bool operands_fit(tr_graph *graph, const tr_op *op, int in_count) {
    bool may_follow = op->flags & TR_OP_LOSS || graph->writing.on;
    if (ends_with_loss(graph) && !may_follow) {
        tr_graph_fail(graph, TR_INTERNAL, "op %s follows the loss, which ends a model",
                      op->name);
    } else if (in_count > TR_OP_IN_MAX || op->attr_bytes > TR_OP_ATTR_BYTES) {
        tr_graph_fail(graph, TR_INTERNAL, "op %s: too many operands or attributes",
                      op->name);
    } else if (!tr__grow((void **)&graph->nodes, &graph->node_capacity,
                         graph->node_count + 1, sizeof *graph->nodes)) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's graph");
    }
    return graph->err.status == TR_OK;
}

uint32_t tr__graph_draw(tr_graph *graph) {
    tr_writing *writing = &graph->writing;
    uint32_t *next = writing->on ? &writing->draw : &graph->draw_count;
    if (*next == (writing->on ? writing->draw_end : TR_GRAPH_DRAWS)) {
        tr_graph_fail(graph, TR_USAGE,
                      "a unit, or a rewrite of one of its nodes, has "
                      "too many random draws");
        return 0;
    }
    return (*next)++;
}

tr_value tr__graph_op(tr_graph *graph, const tr_op *op, const void *attr,
                      const tr_value *in, int in_count, tr_value *out) {
    tr_call node = {.op = op, .in_count = in_count, .origin = (int)graph->node_count};
    tr_tensor_desc desc[TR_OP_OUT_MAX] = {0};
    if (graph->err.status != TR_OK || !operands_fit(graph, op, in_count)) {
        return TR_NO_VALUE;
    }
    if (op->attr_bytes) {
        memcpy(node.attr, attr, op->attr_bytes);
    }
    memcpy(node.in, in, (size_t)in_count * sizeof *in);
    if (!infer(graph, &node, desc)) {
        return TR_NO_VALUE;
    }
    if (!place_node(graph, &node)) {
        return TR_NO_VALUE;
    }
    if (graph->writing.on) {
        node.origin = graph->writing.origin;
    }
    for (int i = 0; i < node.out_count; i++) {
        tr_value_info info = {.desc = desc[i],
                              .kind = TR_VALUE_NODE,
                              .index = i,
                              .node = (int)graph->node_count,
                              .segment = node.segment,
                              .wave = (op->wave_outputs >> i & 1) != 0,
                              .sums = (op->flags & TR_OP_LOSS) && i == 0};
        node.out[i] = tr__graph_value(graph, info);
        if (out) {
            out[i] = node.out[i];
        }
    }
    graph->has_loss = graph->has_loss || (op->flags & TR_OP_LOSS);
    graph->nodes[graph->node_count++] = node;
    return node.out[0];
}
