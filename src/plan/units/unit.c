// All programs of one unit: which calls each is made of.
#include "plan/units/compiler.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/units/unit_graph.h"

#include <string.h>

static tr_status no_memory(const tr_compiler *c) {
    return tr_fail(c->err, TR_MEMORY, "no memory for the program of unit %s",
                   c->unit->kind);
}

// Must the forward make this value, whether or not another node reads it?
static bool is_result(const tr_compiler *c, tr_variant variant, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    bool evaluates = variant == TR_VARIANT_EVALUATE;
    bool asks = evaluates || variant == TR_VARIANT_INFERENCE;
    for (int i = 0; i < c->graph->output_count; i++) {
        if (c->graph->output[i] == value) {
            return variant != TR_VARIANT_RECOMPUTE;
        }
    }
    // What passes from segment to segment is read by another node.
    bool keeps = !asks && variant != TR_VARIANT_SAVES_NOTHING;
    if (info->sums) { // inference has logits in the place of a loss
        return evaluates;
    }
    return info->kind == TR_VALUE_LOGITS
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

static tr_value track_value(const tr_call *node, tr_ref ref) {
    return ref.kind == TR_REF_IN    ? node->in[ref.index]
           : ref.kind == TR_REF_OUT ? node->out[ref.index]
                                    : TR_NO_VALUE;
}

// The call that brings the node's states up to date; false: it has none.
static bool track_call(const tr_graph *graph, const tr_call *node, tr_call *call) {
    tr_node_view view;
    tr_rule rule = {0};
    tr__node_view(graph, node, &view);
    if (!node->op->track || !node->op->track(&view.node, &rule)) {
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

static tr_status compile_track(tr_compiler *c, tr_program *program) {
    size_t count = 0;
    tr_call *calls = tr__calloc(c->graph->node_count, sizeof *calls);
    if (!calls) {
        return no_memory(c);
    }
    for (size_t n = 0; n < c->graph->node_count; n++) {
        count += track_call(c->graph, &c->graph->nodes[n], &calls[count]);
    }
    tr_status status = tr__program_compile(c, TR_VARIANT_TRACK, calls, count, program);
    tr__free(calls);
    return status;
}

// ---- which programs there are

static bool tracks(const tr_graph *graph) {
    tr_call call;
    for (size_t n = 0; n < graph->node_count; n++) {
        if (track_call(graph, &graph->nodes[n], &call)) {
            return true;
        }
    }
    return false;
}

// In how many programs a role has the unit, before they are cut.
static int segments_of(const tr_compiler *c, tr_variant role) {
    const tr_compile_request *r = c->request;
    switch (role) {
    case TR_VARIANT_FORWARD:
    case TR_VARIANT_EVALUATE:
    case TR_VARIANT_BACKWARD:
        return r->train ? c->unit->segments : 0;
    case TR_VARIANT_SAVES_NOTHING:
        return r->train && (r->recompute || !c->unit->derived.exists)
                   ? c->unit->segments
                   : 0;
    case TR_VARIANT_RECOMPUTE:
        return r->train && r->recompute;
    case TR_VARIANT_TRACK:
        return r->train && tracks(c->graph);
    default:
        return !r->train;
    }
}

static bool list_programs(tr_compiler *c) {
    for (int role = 0; role < TR_VARIANTS; role++) {
        c->whole_of[role + 1] = c->whole_of[role] + segments_of(c, (tr_variant)role);
    }
    c->whole = tr__calloc((size_t)c->whole_of[TR_VARIANTS], sizeof *c->whole);
    return c->whole != NULL;
}

// Where the role has one of the segment.
static tr_status compile_segment(tr_compiler *c, tr_variant role, int segment) {
    int at = c->whole_of[role] + segment;
    if (at >= c->whole_of[role + 1]) {
        return TR_OK;
    }
    tr_program *program = &c->whole[at];
    program->segment = segment;
    switch (role) {
    case TR_VARIANT_BACKWARD:
        return compile_backward(c, segment, program);
    case TR_VARIANT_TRACK:
        return compile_track(c, program);
    default:
        return compile_nodes(c, role, segment, program);
    }
}

static void find_logits(tr_compiler *c) {
    for (size_t v = 0; v < c->graph->value_count; v++) {
        if (c->graph->values[v].kind == TR_VALUE_LOGITS) {
            c->unit->logits_bytes = tr__value_bytes(c, (tr_value)v);
        }
    }
}

// A segment's programs before those of the next: what a forward packs its backward
// finds there.
static tr_status compile_programs(tr_compiler *c) {
    static const tr_variant order[] = {TR_VARIANT_FORWARD,   TR_VARIANT_SAVES_NOTHING,
                                       TR_VARIANT_EVALUATE,  TR_VARIANT_BACKWARD,
                                       TR_VARIANT_INFERENCE, TR_VARIANT_TRACK,
                                       TR_VARIANT_RECOMPUTE};
    enum { BY_SEGMENT = 4, ROLES = sizeof order / sizeof *order };
    tr_status status = list_programs(c) ? TR_OK : no_memory(c);
    for (int s = 0; s < c->unit->segments; s++) {
        for (int i = 0; i < BY_SEGMENT && status == TR_OK; i++) {
            status = compile_segment(c, order[i], s);
        }
    }
    for (int i = BY_SEGMENT; i < ROLES && status == TR_OK; i++) {
        status = compile_segment(c, order[i], 0);
    }
    return status == TR_OK && !tr__unit_cut(c) ? no_memory(c) : status;
}

static tr_status compile_unit(tr_compiler *c) {
    size_t forward_values = c->graph->value_count;
    tr_status status = TR_OK;
    if (c->request->train) {
        status = tr__derive(c->graph,
                            (tr_derive_request){c->request->recomputed,
                                                c->request->weights_later,
                                                c->request->params_come},
                            &c->unit->derived, c->err);
    }
    c->unit->segments = c->graph->segment_count;
    c->unit->cache_room = c->graph->cache_room;
    if (status == TR_OK) {
        status = tr__compiler_layout(c, forward_values);
    }
    find_logits(c);
    return status == TR_OK ? compile_programs(c) : status;
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
    for (int i = 0; c.whole && i < c.whole_of[TR_VARIANTS]; i++) {
        tr__program_clear(&c.whole[i]);
    }
    tr__free(c.whole);
    tr__free(c.alias);
    tr__free(c.saved_offset);
    tr__free(c.held_offset);
    tr__free(c.wave_offset);
    tr__free(c.packings);
    if (status != TR_OK) {
        tr__unit_program_destroy(c.unit);
        return status;
    }
    *out = c.unit;
    return TR_OK;
}

void tr__unit_program_destroy(tr_unit_program *unit) {
    if (!unit) {
        return;
    }
    for (int i = 0; unit->programs && i < unit->first_of[TR_VARIANTS]; i++) {
        tr__program_clear(&unit->programs[i]);
    }
    tr__free(unit->programs);
    tr__free(unit->state_offset);
    tr__free(unit->params);
    tr__derivation_clear(&unit->derived);
    tr__graph_destroy(unit->graph);
    tr__free(unit);
}
