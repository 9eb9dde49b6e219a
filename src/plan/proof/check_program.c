// Follows the programs of a unit in the orders in which steps run them, and keeps the
// list of what lies where: a read must find what was last written at exactly its place,
// so temporaries that share memory too early are found by what they destroy.
#include "base/batch.h"
#include "base/checked.h"
#include "base/memory.h"
#include "plan/proof/check.h"
#include "plan/units/offsets.h"

#include <string.h>

// Bytes of a block that hold a value.
typedef struct region {
    tr_place place;
    int flat;
    int64_t offset, bytes;
    tr_value value; // TR_NO_VALUE: not one of the graph's
} region;

typedef struct walk {
    const tr_plan *plan;
    const tr_unit_program *unit;
    const tr_program *program;
    const tr_instruction *at;
    region *held;
    size_t count, capacity;
    tr_error *err;
} walk;

static tr_status wrong(const walk *w, const char *what, const region *r) {
    return tr_fail(w->err, TR_INTERNAL,
                   "plan: unit %s, instruction %zu (%s): [%lld, +%lld) of %s %s",
                   w->unit->kind, (size_t)(w->at - w->program->instructions),
                   w->at->desc.op->name, (long long)r->offset, (long long)r->bytes,
                   tr__check_place_name(r->place), what);
}

static bool overlap(const region *x, const region *y) {
    return x->place == y->place && x->flat == y->flat &&
           x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static bool is_same(const region *x, const region *y) {
    return x->place == y->place && x->flat == y->flat && x->offset == y->offset &&
           x->bytes == y->bytes && x->value == y->value;
}

static tr_status hold(walk *w, region r) {
    if (!tr__grow((void **)&w->held, &w->capacity, w->count + 1, sizeof *w->held)) {
        return tr_fail(w->err, TR_MEMORY, "no memory to check a unit");
    }
    w->held[w->count++] = r;
    return TR_OK;
}

static const region *find(const walk *w, const region *r) {
    for (size_t i = 0; i < w->count; i++) {
        if (is_same(&w->held[i], r)) {
            return &w->held[i];
        }
    }
    return NULL;
}

// ---- what is there before a unit runs

static int64_t place_bytes(const walk *w, tr_place place) {
    const tr_unit_program *unit = w->unit;
    switch (place) {
    case TR_PLACE_DATA:
        return w->plan->slot_bytes;
    case TR_PLACE_INPUT:
    case TR_PLACE_INPUT_GRAD:
        return unit->input_bytes;
    case TR_PLACE_OUTPUT:
    case TR_PLACE_OUTPUT_GRAD:
        return unit->output_bytes;
    case TR_PLACE_SAVED:
        return unit->saved_bytes;
    case TR_PLACE_HELD:
        return unit->held_bytes;
    case TR_PLACE_WAVE:
    case TR_PLACE_WAVE_GRAD:
        return unit->wave_bytes;
    case TR_PLACE_CARRIED:
        return w->program->carried_bytes;
    case TR_PLACE_TEMP:
        return w->program->temp_bytes;
    case TR_PLACE_SUMS:
        return TR_SUMS * (int64_t)sizeof(double);
    case TR_PLACE_FIRST_BAD:
        return (int64_t)sizeof(double);
    case TR_PLACE_LOGITS:
        return unit->logits_bytes;
    case TR_PLACE_STATE:
        return unit->state_bytes;
    case TR_PLACE_CACHE:
        return unit->cache_bytes;
    case TR_PLACE_PACKED:
        return unit->packed_bytes[0];
    case TR_PLACE_PACKED_BACKWARD:
        return unit->packed_bytes[1];
    default:
        return INT64_MAX; // flat buffers: only whole parameters, below
    }
}

static int64_t bytes_of(const walk *w, tr_tensor_desc desc) {
    for (int i = 0; i < desc.shape.rank; i++) {
        if (desc.shape.dim[i] == TR_BATCH) {
            desc.shape.dim[i] = w->plan->request.micro_batch;
        }
    }
    return tr_tensor_bytes(desc);
}

// Tensors that lie one after the other in a block.
typedef struct row {
    tr_place place;
    int count;
    tr_tensor_desc desc[TR_GRAPH_IO_MAX];
    const tr_value *values; // [count]
} row;

static row outputs_of(const walk *w, tr_place place, const tr_value *values) {
    const tr_graph *graph = w->unit->graph;
    row outputs = {.place = place, .count = graph->output_count, .values = values};
    for (int i = 0; i < graph->output_count; i++) {
        outputs.desc[i] = tr_graph_desc(graph, graph->output[i]);
    }
    return outputs;
}

static row inputs_of(const walk *w, tr_place place, const tr_value *values) {
    const tr_graph *graph = w->unit->graph;
    row inputs = {.place = place, .count = graph->input_count, .values = values};
    memcpy(inputs.desc, graph->inputs, sizeof graph->inputs);
    return inputs;
}

static tr_status hold_row(walk *w, const row *r) {
    int64_t offset = 0;
    tr_status status = TR_OK;
    for (int i = 0; i < r->count && status == TR_OK; i++) {
        int64_t bytes = bytes_of(w, r->desc[i]);
        status = hold(w, (region){r->place, 0, offset, bytes, r->values[i]});
        offset += tr__round_up(bytes, TR_ALIGNMENT);
    }
    return status;
}

// Is the row there at the end?
static tr_status expect_row(const walk *w, const row *r) {
    int64_t offset = 0;
    for (int i = 0; i < r->count; i++) {
        int64_t bytes = bytes_of(w, r->desc[i]);
        region want = {r->place, 0, offset, bytes, r->values[i]};
        if (r->values[i] != TR_NO_VALUE && !find(w, &want)) {
            return tr_fail(w->err, TR_INTERNAL,
                           "plan: unit %s ends and %s %d is not there", w->unit->kind,
                           r->place == TR_PLACE_OUTPUT ? "output" : "gradient of input",
                           i);
        }
        offset += tr__round_up(bytes, TR_ALIGNMENT);
    }
    return TR_OK;
}

// Parameters, their accumulators, states and the sums.
static tr_status hold_collected(walk *w) {
    const tr_graph *graph = w->unit->graph;
    tr_status status = TR_OK;
    for (size_t v = 0; v < graph->value_count && status == TR_OK; v++) {
        const tr_value_info *info = &graph->values[v];
        bool grad = info->kind == TR_VALUE_GRAD;
        const tr_value_info *of = grad ? &graph->values[info->index] : info;
        if (info->sums) {
            int64_t bytes = tr_tensor_bytes(info->desc);
            status = hold(w, (region){TR_PLACE_SUMS, 0, 0, bytes, (tr_value)v});
        } else if (info->kind == TR_VALUE_STATE) {
            int64_t bytes = tr_tensor_bytes(info->desc);
            status =
                hold(w, (region){TR_PLACE_STATE, 0, w->unit->state_offset[info->index],
                                 bytes, (tr_value)v});
        } else if (of->kind == TR_VALUE_PARAM) {
            const tr_program_param *param = &w->unit->params[of->index];
            int64_t size = grad ? (int64_t)sizeof(float) : tr__param_bytes(w->plan);
            status = hold(w, (region){grad ? TR_PLACE_PARAM_GRAD : TR_PLACE_PARAM,
                                      param->flat, param->offset * size,
                                      tr_tensor_bytes(info->desc), (tr_value)v});
        }
    }
    return status;
}

// Earlier positions have been there.
static tr_status hold_caches(walk *w) {
    const tr_graph *graph = w->unit->graph;
    int64_t offset = 0;
    tr_status status = TR_OK;
    for (size_t v = 0; v < graph->value_count && status == TR_OK; v++) {
        if (graph->values[v].kind == TR_VALUE_CACHE) {
            int64_t bytes = bytes_of(w, graph->values[v].desc);
            status = hold(w, (region){TR_PLACE_CACHE, 0, offset, bytes, (tr_value)v});
            offset += tr__round_up(bytes, TR_ALIGNMENT);
        }
    }
    return status;
}

static tr_status begin(walk *w) {
    const tr_unit_program *unit = w->unit;
    row data = {.place = TR_PLACE_DATA,
                .count = w->plan->batch.count,
                .values = unit->graph->data_value};
    for (int i = 0; i < data.count; i++) {
        data.desc[i] = tr__batch_desc(&w->plan->batch.tensor[i]);
    }
    row inputs = inputs_of(w, TR_PLACE_INPUT, unit->graph->input_value);
    row grads = outputs_of(w, TR_PLACE_OUTPUT_GRAD, unit->derived.output_grad);
    region first_bad = {TR_PLACE_FIRST_BAD, 0, 0, sizeof(double), TR_NO_VALUE};
    w->count = 0;
    tr_status status = hold(w, first_bad);
    status = status == TR_OK ? hold_collected(w) : status;
    status = status == TR_OK ? hold_caches(w) : status;
    status = status == TR_OK ? hold_row(w, &data) : status;
    status = status == TR_OK ? hold_row(w, &inputs) : status;
    return status == TR_OK && w->plan->request.inference == false ? hold_row(w, &grads)
                                                                  : status;
}

// ---- an instruction

static region region_of(const tr_operand *operand, const tr_tensor_desc *desc) {
    return (region){operand->place, operand->flat, operand->offset,
                    tr_tensor_bytes(*desc), operand->value};
}

static region workspace_of(const tr_instruction *at) {
    size_t bytes =
        at->kernel->workspace ? at->kernel->workspace(&at->desc, at->state) : 0;
    return (region){TR_PLACE_TEMP, 0, at->workspace, (int64_t)bytes, TR_NO_VALUE};
}

static tr_status check_bounds(const walk *w, const region *r) {
    bool inside = r->offset >= 0 && r->bytes >= 0 &&
                  r->offset <= place_bytes(w, r->place) - r->bytes;
    return inside ? TR_OK : wrong(w, "lies outside of its block", r);
}

static tr_status read_operand(const walk *w, const region *r) {
    tr_status status = check_bounds(w, r);
    if (status == TR_OK && !find(w, r)) {
        return wrong(w, "is read, and is not what was last written there", r);
    }
    return status;
}

static bool may_write(const walk *w, tr_place place) {
    return place != TR_PLACE_PARAM && place != TR_PLACE_DATA &&
           place != TR_PLACE_INPUT &&
           (place != TR_PLACE_STATE || w->program->variant == TR_VARIANT_TRACK);
}

// Whatever overlaps is destroyed.
static tr_status write_result(walk *w, const region *r) {
    size_t kept = 0;
    tr_status status = check_bounds(w, r);
    if (status == TR_OK && !may_write(w, r->place)) {
        return wrong(w, "is written, and is only there to be read", r);
    }
    if (status != TR_OK || r->bytes == 0 || find(w, r)) {
        return status;
    }
    if (r->place == TR_PLACE_PARAM_GRAD || r->place == TR_PLACE_SUMS ||
        r->place == TR_PLACE_STATE || r->place == TR_PLACE_CACHE) {
        return wrong(w, "is written, and is not one whole tensor", r);
    }
    for (size_t i = 0; i < w->count; i++) {
        if (!overlap(&w->held[i], r)) {
            w->held[kept++] = w->held[i];
        }
    }
    w->count = kept;
    return hold(w, *r);
}

// May result `k` of the instruction lie where its input `i` does, and does it exactly?
static bool is_in_place(const walk *w, int k, int i) {
    const tr_instruction *at = w->at;
    region in = region_of(&at->in[i], &at->desc.in[i]);
    region out = region_of(&at->out[k], &at->desc.out[k]);
    if (in.place == TR_PLACE_CACHE) { // later positions of what it reads
        return is_same(&in, &out);
    }
    return k == 0 && i == at->desc.op->in_place - 1 &&
           !((at->accumulate | at->first) & 1) && in.offset == out.offset &&
           in.bytes == out.bytes;
}

static tr_status check_apart(const walk *w, int k, const region *result) {
    const tr_instruction *at = w->at;
    region room = workspace_of(at);
    int same = 0;
    if (overlap(result, &room)) {
        return wrong(w, "is written, and is also the workspace", result);
    }
    for (int i = 0; i < at->desc.in_count; i++) {
        region in = region_of(&at->in[i], &at->desc.in[i]);
        if (in.place != TR_PLACE_NONE && overlap(result, &in) &&
            !is_in_place(w, k, i)) {
            return wrong(w, "is written while it is read", result);
        }
    }
    for (int i = 0; i < at->desc.out_count; i++) {
        region out = region_of(&at->out[i], &at->desc.out[i]);
        same += out.place != TR_PLACE_NONE && overlap(result, &out);
    }
    return same <= 1 ? TR_OK : wrong(w, "is written twice at once", result);
}

// It is the bytes of one op and parameter alone, whose value stands for them.
static tr_status check_packed(walk *w) {
    const tr_instruction *at = w->at;
    if (at->packed.place == TR_PLACE_NONE) {
        return TR_OK;
    }
    const tr_operand *param = &at->in[at->desc.op->packed_input - 1];
    region packed = {at->packed.place, 0, at->packed.offset, at->packed_bytes,
                     param->value};
    for (size_t i = 0; i < w->count; i++) {
        if (overlap(&w->held[i], &packed) && !is_same(&w->held[i], &packed)) {
            return wrong(w, "is packed, and has something else", &packed);
        }
    }
    tr_status status = check_bounds(w, &packed);
    return status == TR_OK && !find(w, &packed) ? hold(w, packed) : status;
}

// What another instruction has left in its workspace is there as it left it.
static tr_status check_shared(const walk *w) {
    const tr_instruction *at = w->at;
    size_t before = (size_t)(at - w->program->instructions);
    if (!at->desc.finds) {
        return TR_OK;
    }
    const tr_instruction *left = at - (at->shared <= before ? at->shared : 0);
    region room = workspace_of(left);
    bool same = left < at && left->desc.leaves && left->kernel == at->kernel &&
                left->in[0].value == at->in[0].value;
    for (const tr_instruction *i = left + 1; i < at; i++) {
        region other = workspace_of(i);
        same = same && !overlap(&other, &room);
    }
    return same && find(w, &room)
               ? TR_OK
               : wrong(w, "is to hold what an earlier instruction left, and does not",
                       &room);
}

static tr_status run_instruction(walk *w) {
    const tr_instruction *at = w->at;
    region room = workspace_of(at);
    tr_status status = check_shared(w);
    for (int i = 0; i < at->desc.in_count && status == TR_OK; i++) {
        region in = region_of(&at->in[i], &at->desc.in[i]);
        status = in.place == TR_PLACE_NONE ? TR_OK : read_operand(w, &in);
    }
    for (int i = 0; i < at->desc.out_count && status == TR_OK; i++) {
        region out = region_of(&at->out[i], &at->desc.out[i]);
        if (out.place == TR_PLACE_NONE) {
            continue;
        }
        status = check_apart(w, i, &out);
        if (status == TR_OK && (at->accumulate >> i & 1)) {
            status = read_operand(w, &out);
        }
        status = status == TR_OK ? write_result(w, &out) : status;
    }
    status = status == TR_OK ? check_packed(w) : status;
    return status == TR_OK ? write_result(w, &room) : status;
}

// ---- programs, one after the other

static void forget(walk *w, tr_place place) {
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (w->held[i].place != place) {
            w->held[kept++] = w->held[i];
        }
    }
    w->count = kept;
}

static tr_status run_program(walk *w, const tr_program *program) {
    tr_status status = TR_OK;
    w->program = program;
    if (program->exchange) { // it leaves another number where it finds one
        return status;
    }
    for (size_t i = 0; i < program->count && status == TR_OK; i++) {
        w->at = &program->instructions[i];
        status = run_instruction(w);
    }
    forget(w, TR_PLACE_TEMP);
    if (program->ends) {
        forget(w, TR_PLACE_CARRIED);
    }
    return status;
}

static tr_status run_backward(walk *w) {
    const tr_derivation *derived = &w->unit->derived;
    row grads =
        inputs_of(w, derived->in_place ? TR_PLACE_OUTPUT_GRAD : TR_PLACE_INPUT_GRAD,
                  derived->input_grad);
    tr_status status = TR_OK;
    for (int s = w->unit->segments; s-- > 0 && status == TR_OK;) {
        tr_piece_range pieces = tr__segment_pieces(w->unit, TR_VARIANT_BACKWARD, s);
        for (int i = pieces.first; i < pieces.end && status == TR_OK; i++) {
            status = run_program(w, tr__unit_piece(w->unit, TR_VARIANT_BACKWARD, i));
        }
    }
    return status == TR_OK ? expect_row(w, &grads) : status;
}

// All pieces of a role in their order, behind what is there already.
static tr_status run_role(walk *w, tr_variant role) {
    tr_status status = TR_OK;
    for (int i = 0; i < tr__unit_pieces(w->unit, role) && status == TR_OK; i++) {
        status = run_program(w, tr__unit_piece(w->unit, role, i));
    }
    return status;
}

static tr_status run_forward(walk *w, tr_variant role) {
    row outputs = outputs_of(w, TR_PLACE_OUTPUT, w->unit->graph->output);
    tr_status status = begin(w);
    status = status == TR_OK ? run_role(w, role) : status;
    return status == TR_OK ? expect_row(w, &outputs) : status;
}

static bool has(const walk *w, tr_variant role) {
    return tr__unit_pieces(w->unit, role) > 0;
}

static tr_status check_unit(walk *w) {
    tr_status status = TR_OK;
    if (has(w, TR_VARIANT_FORWARD)) {
        status = run_forward(w, TR_VARIANT_FORWARD);
        status = status == TR_OK ? run_backward(w) : status;
        status = status == TR_OK ? run_role(w, TR_VARIANT_TRACK) : status;
    }
    if (status == TR_OK && has(w, TR_VARIANT_EVALUATE)) {
        status = run_forward(w, TR_VARIANT_EVALUATE);
    }
    if (status == TR_OK && has(w, TR_VARIANT_INFERENCE)) {
        status = run_forward(w, TR_VARIANT_INFERENCE);
    }
    if (status == TR_OK && has(w, TR_VARIANT_RECOMPUTE) && w->unit->segments == 1) {
        status = run_forward(w, TR_VARIANT_SAVES_NOTHING);
        status = status == TR_OK ? run_role(w, TR_VARIANT_RECOMPUTE) : status;
        status = status == TR_OK ? run_backward(w) : status;
    }
    return status;
}

tr_status tr__check_programs(const tr_plan *plan, tr_error *err) {
    walk w = {.plan = plan, .err = err};
    tr_status status = TR_OK;
    for (int u = 0; u < plan->unit_count && status == TR_OK; u++) {
        if (plan->units[u].owns_program) {
            w.unit = plan->units[u].program;
            status = check_unit(&w);
        }
    }
    tr__free(w.held);
    return status;
}
