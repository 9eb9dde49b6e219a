// All programs of one unit: which calls each is made of.
#include "plan/compiler.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/fp8.h"
#include "plan/freeze.h"

#include <string.h>

static bool has_loss(const tr_call *node) {
    return (node->op->flags & TR_OP_LOSS) != 0;
}

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
    return info->sums ? asks
                      : (info->wave && !asks) || (c->saved_offset[value] >= 0 && keeps);
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
    for (size_t n = c->graph->node_count; n-- > 0;) {
        const tr_call *node = &c->graph->nodes[n];
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
    for (size_t n = 0; n < c->graph->node_count && variant == TR_VARIANT_RECOMPUTE;
         n++) {
        runs[n] = c->unit->derived.needed[n];
    }
}

// The op that gives logits in a loss's place. NULL: there is none.
static const tr_op *inference_op(const tr_compiler *c, const tr_op *loss) {
    const tr_op *op = loss->inference;
    return op && c->request->all_rows ? op->inference : op;
}

// Puts the op that gives logits in the loss's place.
static void make_inference(const tr_compiler *c, tr_call *call) {
    call->op = inference_op(c, call->op);
    call->first = call->accumulate = 0;
    call->out_count = 1;
    call->out[0] = (tr_value)c->graph->value_count - 1; // see add_inference
}

static bool has_cache(const tr_compiler *c, const tr_call *node) {
    return c->request->cache_positions > 0 && node->op->cached;
}

// The op's place is taken by the one that goes on from its cache.
static void go_on(const tr_compiler *c, tr_call *call, int node) {
    tr_value cache = 0;
    while (c->graph->values[cache].kind != TR_VALUE_CACHE ||
           c->graph->values[cache].node != node) {
        cache++;
    }
    call->op = call->op->cached;
    call->in[call->in_count++] = cache;
    call->out[1] = cache;
    call->out_count = 2;
    call->first = call->accumulate = 0;
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
    bool asks = variant == TR_VARIANT_INFERENCE || variant == TR_VARIANT_EVALUATE;
    if (asks && node->op->evaluate) {
        node->op->evaluate(call.attr);
    }
    for (int i = 0; i < call.in_count; i++) {
        if (left_out(variant, node->op) >> i & 1) {
            call.in[i] = TR_NO_VALUE;
        }
    }
    if (variant == TR_VARIANT_INFERENCE && has_loss(node)) {
        make_inference(c, &call);
    } else if (variant == TR_VARIANT_INFERENCE && has_cache(c, node)) {
        go_on(c, &call, (int)(node - c->graph->nodes));
    }
    if (variant == TR_VARIANT_RECOMPUTE) {
        leave_out_sums(c, &call);
    }
    return call;
}

static tr_status compile_nodes(tr_compiler *c, tr_variant variant, int segment,
                               tr_program *program) {
    bool whole = variant == TR_VARIANT_RECOMPUTE || variant == TR_VARIANT_INFERENCE;
    tr_call *calls = tr__calloc(c->graph->node_count, sizeof *calls);
    bool *runs = tr__calloc(c->graph->node_count, sizeof *runs);
    bool *read = tr__calloc(c->graph->value_count, sizeof *read);
    size_t count = 0;
    tr_status status = TR_OK;
    if (!calls || !runs || !read) {
        status = no_memory(c);
        goto cleanup;
    }
    mark_nodes(c, variant, runs, read);
    for (size_t i = 0; i < c->graph->node_count; i++) {
        const tr_call *node = &c->graph->nodes[i];
        if (runs[i] && (whole || node->segment == segment)) {
            calls[count++] = node_call(c, variant, node);
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

// Adds a value for the logits, the graph's last.
static tr_status add_inference(tr_compiler *c, const tr_call *loss) {
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX] = {0};
    int out_count = 0;
    const tr_op *op = inference_op(c, loss->op);
    if (!op) {
        return tr_fail(
            c->err, TR_USAGE,
            "the loss %s has no op that gives logits, so this model has no inference",
            loss->op->name);
    }
    for (int k = 0; k < loss->in_count; k++) {
        in[k] = tr_graph_desc(c->graph, loss->in[k]);
    }
    tr_op_node view = {
        .op = op, .attr = loss->attr, .in_count = loss->in_count, .in = in};
    tr_status status = view.op->infer(&view, out, &out_count, c->err);
    if (status != TR_OK) {
        return status;
    }
    tr__graph_value(c->graph, (tr_value_info){.desc = out[0], .kind = TR_VALUE_LOGITS});
    return tr_graph_status(c->graph, c->err);
}

// Of a node, view, that keeps something of earlier positions.
static tr_tensor_desc cache_of(tr_compiler *c, const tr_op_node *view) {
    int64_t room = c->request->cache_positions;
    if (view->op->cache_room) {
        room = view->op->cache_room(view, room, c->request->cache_piece);
    }
    c->unit->cache_room = tr__min_i64(c->unit->cache_room, room);
    return view->op->cache(view, room);
}

// Gives each node that keeps something of earlier positions a value for it.
static tr_status add_caches(tr_compiler *c) {
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_op_node view;
    c->unit->cache_room = INT64_MAX;
    for (size_t n = 0; n < c->graph->node_count; n++) {
        const tr_call *node = &c->graph->nodes[n];
        if (!has_cache(c, node)) {
            continue;
        }
        view_of(c->graph, node, in, out, &view);
        tr__graph_value(c->graph, (tr_value_info){.desc = cache_of(c, &view),
                                                  .kind = TR_VALUE_CACHE,
                                                  .node = (int)n});
    }
    return tr_graph_status(c->graph, c->err);
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
    size_t last = c->graph->value_count - 1;
    if (c->graph->values[last].kind == TR_VALUE_LOGITS) {
        c->unit->logits_bytes = tr__value_bytes(c, (tr_value)last);
    }
    return compile_nodes(c, TR_VARIANT_INFERENCE, 0, &c->unit->inference);
}

static tr_status derive(tr_compiler *c) {
    tr_graph *graph = c->graph;
    if (c->request->train) {
        return tr__derive(graph, c->request->recomputed, &c->unit->derived, c->err);
    }
    bool ends = graph->node_count && has_loss(&graph->nodes[graph->node_count - 1]);
    tr_status status = add_caches(c);
    if (status != TR_OK) {
        return status;
    }
    return ends ? add_inference(c, &graph->nodes[graph->node_count - 1]) : TR_OK;
}

static tr_status compile_unit(tr_compiler *c, const tr_model_unit *model_unit) {
    model_unit->build(c->graph, model_unit->config);
    tr_status status = tr_graph_status(c->graph, c->err);
    if (c->request->fp8) {
        tr__fp8_graph(c->graph);
    }
    size_t forward_values = c->graph->value_count;
    if (status == TR_OK && c->request->plan) {
        status = tr__freeze_graph(c->request->plan, model_unit, c->graph, c->err);
    }
    if (status == TR_OK) {
        status = derive(c);
    }
    c->unit->segments = c->graph->segment_count;
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
    c.graph = c.unit->graph =
        tr__graph_create(inputs, input_count, batch, request->real);
    if (c.graph) {
        memcpy(c.graph->input_fixed, request->input_fixed, sizeof request->input_fixed);
    }
    tr_status status =
        c.graph
            ? compile_unit(&c, unit)
            : tr_fail(err, TR_MEMORY, "no memory for the graph of unit %s", unit->name);
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
