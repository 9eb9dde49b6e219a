// All programs of one unit: which calls each is made of.
#include "plan/compiler.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/unit_graph.h"

#include <string.h>

static tr_status no_memory(const tr_compiler *c) {
    return tr_fail(c->err, TR_MEMORY, "no memory for the program of unit %s",
                   c->unit->kind);
}

// Must the forward make this value, whether or not another node reads it?
static bool is_result(const tr_compiler *c, tr_variant variant, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    bool asks = variant == TR_VARIANT_EVALUATE || variant == TR_VARIANT_INFERENCE;
    for (int i = 0; i < c->graph->output_count; i++) {
        if (c->graph->output[i] == value) {
            return variant != TR_VARIANT_RECOMPUTE;
        }
    }
    // What passes from segment to segment is read by another node.
    bool keeps = !asks && variant != TR_VARIANT_SAVES_NOTHING;
    return info->sums || info->kind == TR_VALUE_LOGITS
               ? asks
               : (info->wave && !asks) || (c->saved_offset[value] >= 0 && keeps);
}

// The nodes that the variant is made of.
static const tr_call *nodes_of(const tr_graph *graph, tr_variant variant,
                               size_t *count) {
    bool apart = variant == TR_VARIANT_EVALUATE;
    *count = apart ? graph->asked_count : graph->node_count;
    return apart ? graph->asked : graph->nodes;
}

// The inputs that the variant does not read.
static uint32_t left_out(tr_variant variant, const tr_op *op) {
    bool asks = variant == TR_VARIANT_EVALUATE || variant == TR_VARIANT_INFERENCE;
    return asks ? op->train_only : op->evaluate_only;
}

// Marks the nodes that lead to a result. In training the loss is left to the backward,
// and with it what only the loss reads and the backward recomputes.
static void mark_nodes(const tr_compiler *c, tr_variant variant, bool *runs,
                       bool *read) {
    size_t count = 0;
    const tr_call *nodes = nodes_of(c->graph, variant, &count);
    for (size_t n = count; n-- > 0;) {
        const tr_call *node = &nodes[n];
        for (int i = 0; i < node->out_count; i++) {
            runs[n] =
                runs[n] || read[node->out[i]] || is_result(c, variant, node->out[i]);
        }
        for (int i = 0; i < node->in_count && runs[n]; i++) {
            bool left = left_out(variant, node->op) >> i & 1;
            if (node->in[i] != TR_NO_VALUE && !left) {
                read[node->in[i]] = true;
            }
        }
    }
    for (size_t n = 0; n < count && variant == TR_VARIANT_RECOMPUTE; n++) {
        runs[n] = c->unit->derived.needed[n];
    }
}

// What was added to for the whole wave is there: recomputed, it would be there twice.
static void leave_out_sums(const tr_compiler *c, tr_call *call) {
    for (int i = 0; i < call->out_count; i++) {
        const tr_value_info *info = &c->graph->values[call->out[i]];
        if (info->wave || info->sums) {
            call->out[i] = TR_NO_VALUE;
        }
    }
}

static tr_call node_call(const tr_compiler *c, tr_variant variant,
                         const tr_call *node) {
    tr_call call = *node;
    for (int i = 0; i < call.in_count; i++) {
        if (left_out(variant, node->op) >> i & 1) {
            call.in[i] = TR_NO_VALUE;
        }
    }
    if (variant == TR_VARIANT_RECOMPUTE) {
        leave_out_sums(c, &call);
    }
    return call;
}

static tr_status compile_nodes(tr_compiler *c, tr_variant variant, int segment,
                               tr_program *program) {
    bool whole = variant == TR_VARIANT_RECOMPUTE || variant == TR_VARIANT_INFERENCE;
    size_t nodes = 0, count = 0;
    const tr_call *node = nodes_of(c->graph, variant, &nodes);
    tr_call *calls = tr__calloc(nodes, sizeof *calls);
    bool *runs = tr__calloc(nodes, sizeof *runs);
    bool *read = tr__calloc(c->graph->value_count, sizeof *read);
    tr_status status = TR_OK;
    if (!calls || !runs || !read) {
        status = no_memory(c);
        goto cleanup;
    }
    mark_nodes(c, variant, runs, read);
    for (size_t i = 0; i < nodes; i++) {
        if (runs[i] && (whole || node[i].segment == segment)) {
            calls[count++] = node_call(c, variant, &node[i]);
        }
    }
    status = tr__program_compile(c, variant, calls, count, program);
cleanup:
    tr__free(calls);
    tr__free(runs);
    tr__free(read);
    return status;
}

// The calls of a segment follow each other in the backward.
static tr_status compile_backward(tr_compiler *c, int segment, tr_program *program) {
    const tr_derivation *derived = &c->unit->derived;
    size_t first = 0, count = 0;
    while (first < derived->backward_count &&
           derived->backward[first].segment != segment) {
        first++;
    }
    while (first + count < derived->backward_count &&
           derived->backward[first + count].segment == segment) {
        count++;
    }
    const tr_call *calls = count ? derived->backward + first : NULL;
    return tr__program_compile(c, TR_VARIANT_BACKWARD, calls, count, program);
}

static void view_of(const tr_graph *graph, const tr_call *node, tr_tensor_desc *in,
                    tr_tensor_desc *out, tr_op_node *view) {
    for (int i = 0; i < node->in_count; i++) {
        in[i] = tr_graph_desc(graph, node->in[i]);
    }
    for (int i = 0; i < node->out_count; i++) {
        out[i] = tr_graph_desc(graph, node->out[i]);
    }
    *view = (tr_op_node){.op = node->op,
                         .attr = node->attr,
                         .in_count = node->in_count,
                         .out_count = node->out_count,
                         .in = in,
                         .out = out};
}

static tr_value track_value(const tr_call *node, tr_ref ref) {
    return ref.kind == TR_REF_IN    ? node->in[ref.index]
           : ref.kind == TR_REF_OUT ? node->out[ref.index]
                                    : TR_NO_VALUE;
}

// The call that brings the node's states up to date; false: it has none.
static bool track_call(const tr_graph *graph, const tr_call *node, tr_call *call) {
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_op_node view;
    tr_rule rule = {0};
    view_of(graph, node, in, out, &view);
    if (!node->op->track || !node->op->track(&view, &rule)) {
        return false;
    }
    *call = (tr_call){.op = rule.op, .segment = node->segment};
    memcpy(call->attr, rule.attr, sizeof call->attr);
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        call->in[i] = track_value(node, rule.in[i]);
        call->in_count = rule.in[i].kind == TR_REF_NONE ? call->in_count : i + 1;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        bool there = rule.out[i].kind != TR_REF_NONE;
        call->out[i] = track_value(node, rule.out[i]);
        call->out_count = there ? i + 1 : call->out_count;
        call->accumulate |= (uint32_t)there << i;
    }
    return true;
}

static tr_status compile_track(tr_compiler *c) {
    size_t count = 0;
    tr_call *calls = tr__calloc(c->graph->node_count, sizeof *calls);
    if (!calls) {
        return no_memory(c);
    }
    for (size_t n = 0; n < c->graph->node_count; n++) {
        count += track_call(c->graph, &c->graph->nodes[n], &calls[count]);
    }
    tr_status status =
        tr__program_compile(c, TR_VARIANT_TRACK, calls, count, &c->unit->track);
    tr__free(calls);
    return status;
}

static tr_status compile_training(tr_compiler *c) {
    tr_unit_program *unit = c->unit;
    size_t segments = (size_t)unit->segments;
    tr_status status = TR_OK;
    unit->forward = tr__calloc(segments, sizeof *unit->forward);
    unit->saves_nothing = tr__calloc(segments, sizeof *unit->saves_nothing);
    unit->evaluate = tr__calloc(segments, sizeof *unit->evaluate);
    unit->backward = tr__calloc(segments, sizeof *unit->backward);
    if (!unit->forward || !unit->saves_nothing || !unit->evaluate || !unit->backward) {
        return no_memory(c);
    }
    for (int s = 0; s < unit->segments && status == TR_OK; s++) {
        status = compile_nodes(c, TR_VARIANT_FORWARD, s, &unit->forward[s]);
        if (status == TR_OK && (c->request->recompute || !unit->derived.exists)) {
            status =
                compile_nodes(c, TR_VARIANT_SAVES_NOTHING, s, &unit->saves_nothing[s]);
        }
        if (status == TR_OK) {
            status = compile_nodes(c, TR_VARIANT_EVALUATE, s, &unit->evaluate[s]);
        }
        if (status == TR_OK) {
            status = compile_backward(c, s, &unit->backward[s]);
        }
    }
    if (status == TR_OK) {
        status = compile_track(c);
    }
    return status == TR_OK && c->request->recompute
               ? compile_nodes(c, TR_VARIANT_RECOMPUTE, 0, &unit->recompute)
               : status;
}

static tr_status compile_inference(tr_compiler *c) {
    for (size_t v = 0; v < c->graph->value_count; v++) {
        if (c->graph->values[v].kind == TR_VALUE_LOGITS) {
            c->unit->logits_bytes = tr__value_bytes(c, (tr_value)v);
        }
    }
    return compile_nodes(c, TR_VARIANT_INFERENCE, 0, &c->unit->inference);
}

static tr_status compile_unit(tr_compiler *c) {
    size_t forward_values = c->graph->value_count;
    tr_status status = TR_OK;
    if (c->request->train) {
        status =
            tr__derive(c->graph, c->request->recomputed, &c->unit->derived, c->err);
    }
    c->unit->segments = c->graph->segment_count;
    c->unit->cache_room = c->graph->cache_room;
    if (status == TR_OK) {
        status = tr__compiler_layout(c, forward_values);
    }
    if (status != TR_OK) {
        return status;
    }
    return c->request->train ? compile_training(c) : compile_inference(c);
}

tr_status tr__unit_compile(const tr_compile_request *request, const tr_model_unit *unit,
                           const tr_tensor_desc *inputs, int input_count,
                           const tr_batch_tensors *batch, tr_unit_program **out,
                           tr_error *err) {
    tr_compiler c = {.request = request, .batch = batch, .err = err};
    c.unit = tr__calloc(1, sizeof *c.unit);
    if (!c.unit) {
        return tr_fail(err, TR_MEMORY, "no memory for the program of unit %s",
                       unit->name);
    }
    c.unit->kind = unit->kind;
    c.unit->recomputed = request->recomputed;
    tr_status status =
        tr__unit_graph(request, unit, inputs, input_count, batch, &c.unit->graph, err);
    c.graph = c.unit->graph;
    if (status == TR_OK) {
        status = compile_unit(&c);
    }
    tr__free(c.alias);
    tr__free(c.saved_offset);
    tr__free(c.wave_offset);
    tr__free(c.packings);
    if (status != TR_OK) {
        tr__unit_program_destroy(c.unit);
        return status;
    }
    *out = c.unit;
    return TR_OK;
}

static void destroy_programs(tr_program *programs, int segments) {
    for (int s = 0; programs && s < segments; s++) {
        tr__program_clear(&programs[s]);
    }
    tr__free(programs);
}

void tr__unit_program_destroy(tr_unit_program *unit) {
    if (!unit) {
        return;
    }
    destroy_programs(unit->forward, unit->segments);
    destroy_programs(unit->saves_nothing, unit->segments);
    destroy_programs(unit->evaluate, unit->segments);
    destroy_programs(unit->backward, unit->segments);
    tr__program_clear(&unit->recompute);
    tr__program_clear(&unit->inference);
    tr__program_clear(&unit->track);
    tr__free(unit->state_offset);
    tr__free(unit->params);
    tr__derivation_clear(&unit->derived);
    tr__graph_destroy(unit->graph);
    tr__free(unit);
}
