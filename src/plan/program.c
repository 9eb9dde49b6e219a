#include "plan/program.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/offsets.h"

#include <string.h>

// Which of a unit's programs is being compiled: it decides where values lie.
typedef enum variant {
    FORWARD,
    LEAN,
    EVALUATE,
    BACKWARD,
    RECOMPUTE,
    ANSWER,
} variant;

typedef struct compiler {
    const tr_compile_request *request;
    tr_unit_program *unit;
    tr_graph *graph;
    const tr_tensor_desc *data;
    int64_t *saved_offset; // [values] in TR_PLACE_SAVED; -1: not there
    int64_t *wave_offset;  // [values] in TR_PLACE_WAVE and TR_PLACE_WAVE_GRAD
    tr_value answer;       // what the loss's inference op gives
    tr_error *err;
} compiler;

// A program while it is put together: its temporaries are laid out at its end.
typedef struct draft {
    tr_program *program;
    variant kind;
    int *temp_of;       // [values] index in `temps`, -1: none yet
    tr_interval *temps; // values, then one workspace for each instruction
    size_t temp_count;
    size_t capacity;
} draft;

static tr_tensor_desc concrete(tr_tensor_desc desc, int64_t micro_batch) {
    for (int i = 0; i < desc.shape.rank; i++) {
        if (desc.shape.dim[i] == TR_BATCH) {
            desc.shape.dim[i] = micro_batch;
        }
    }
    return desc;
}

static int64_t bytes_of(const compiler *c, tr_value value) {
    tr_tensor_desc desc = c->graph->values[value].desc;
    return tr_tensor_bytes(concrete(desc, c->request->micro_batch));
}

static int64_t room_of(const compiler *c, tr_value value) {
    return tr__round_up(bytes_of(c, value), TR_ALIGNMENT);
}

int64_t tr__data_offset(const tr_tensor_desc data[TR_DATA_KINDS], int64_t micro_batch,
                        tr_data_kind kind) {
    int64_t offset = 0;
    for (int i = 0; i < (int)kind; i++) {
        int64_t bytes = tr_tensor_bytes(concrete(data[i], micro_batch));
        offset += tr__round_up(bytes, TR_ALIGNMENT);
    }
    return offset;
}

// ---- where values lie
// ----------------------------------------------------------------

static int64_t boundary_offset(const compiler *c, const tr_value *values, int index) {
    int64_t offset = 0;
    for (int i = 0; i < index; i++) {
        offset += room_of(c, values[i]);
    }
    return offset;
}

static int64_t input_offset(const compiler *c, int index) {
    int64_t offset = 0;
    for (int i = 0; i < index; i++) {
        tr_tensor_desc desc = concrete(c->graph->given[i], c->request->micro_batch);
        offset += tr__round_up(tr_tensor_bytes(desc), TR_ALIGNMENT);
    }
    return offset;
}

static int output_index(const tr_graph *graph, tr_value value) {
    for (int i = 0; i < graph->output_count; i++) {
        if (graph->output[i] == value) {
            return i;
        }
    }
    return -1;
}

static tr_operand in_temp(draft *d, tr_value value) {
    if (d->temp_of[value] < 0) {
        d->temp_of[value] = (int)d->temp_count;
        d->temps[d->temp_count++] =
            (tr_interval){.first = (int32_t)d->program->count, .last = -1};
    }
    d->temps[d->temp_of[value]].last = (int32_t)d->program->count;
    return (tr_operand){TR_PLACE_TEMP, 0, d->temp_of[value]}; // offset set at the end
}

static tr_operand place_param(const compiler *c, tr_place place, int index) {
    const tr_program_param *param = &c->unit->params[index];
    return (tr_operand){place, param->flat, param->offset * (int64_t)sizeof(float)};
}

static tr_operand place_node(const compiler *c, draft *d, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    int output = output_index(c->graph, value);
    if (info->wave) {
        return (tr_operand){TR_PLACE_WAVE, 0, c->wave_offset[value]};
    }
    if (info->sums) {
        return (tr_operand){TR_PLACE_SUMS, 0, 0};
    }
    if (output >= 0 && d->kind != RECOMPUTE) {
        return (tr_operand){TR_PLACE_OUTPUT, 0,
                            boundary_offset(c, c->graph->output, output)};
    }
    bool lean = d->kind == LEAN || d->kind == EVALUATE || d->kind == ANSWER;
    bool crosses = d->kind != ANSWER && c->unit->segments > 1;
    if (c->saved_offset[value] >= 0 && (!lean || crosses)) {
        return (tr_operand){TR_PLACE_SAVED, 0, c->saved_offset[value]};
    }
    return in_temp(d, value);
}

static tr_operand place_grad(const compiler *c, draft *d, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    tr_value of = c->graph->values[value].index;
    const tr_value_info *forward = &c->graph->values[of];
    if (forward->kind == TR_VALUE_PARAM) {
        return place_param(c, TR_PLACE_PARAM_GRAD, forward->index);
    }
    if (forward->wave) {
        return (tr_operand){TR_PLACE_WAVE_GRAD, 0, c->wave_offset[of]};
    }
    for (int i = 0; i < c->graph->output_count; i++) {
        if (derived->output_grad[i] == value) {
            return (tr_operand){TR_PLACE_OUTPUT_GRAD, 0,
                                boundary_offset(c, c->graph->output, i)};
        }
    }
    for (int i = 0; i < c->graph->given_count; i++) {
        if (derived->input_grad[i] == value) {
            return (tr_operand){TR_PLACE_INPUT_GRAD, 0, input_offset(c, i)};
        }
    }
    if (c->saved_offset[value] >= 0) {
        return (tr_operand){TR_PLACE_SAVED, 0, c->saved_offset[value]};
    }
    return in_temp(d, value);
}

static tr_operand place(const compiler *c, draft *d, tr_value value) {
    if (value == TR_NO_VALUE) {
        return (tr_operand){0};
    }
    const tr_value_info *info = &c->graph->values[value];
    switch (info->kind) {
    case TR_VALUE_INPUT:
        return (tr_operand){TR_PLACE_INPUT, 0, input_offset(c, info->index)};
    case TR_VALUE_DATA:
        return (tr_operand){TR_PLACE_DATA, 0,
                            tr__data_offset(c->data, c->request->micro_batch,
                                            (tr_data_kind)info->index)};
    case TR_VALUE_PARAM:
        return place_param(c, TR_PLACE_PARAM, info->index);
    case TR_VALUE_NODE:
        return place_node(c, d, value);
    case TR_VALUE_GRAD:
        return place_grad(c, d, value);
    case TR_VALUE_TEMP:
        return in_temp(d, value);
    case TR_VALUE_ANSWER:
        return (tr_operand){TR_PLACE_ANSWER, 0, 0};
    }
    return (tr_operand){0};
}

// ---- instructions
// --------------------------------------------------------------------

static const tr_kernel *choose_kernel(const tr_compile_request *request,
                                      const tr_op_desc *desc) {
    const tr_op *op = desc->op;
    for (int isa = request->isa; op->cpu && !request->reference && isa >= 0; isa--) {
        if (op->cpu[isa] && op->cpu[isa]->supports(desc)) {
            return op->cpu[isa];
        }
    }
    return op->reference && op->reference->supports(desc) ? op->reference : NULL;
}

static void describe(const compiler *c, const tr_call *call, tr_op_desc *desc) {
    *desc = (tr_op_desc){.op = call->op,
                         .in_count = call->in_count,
                         .out_count = call->out_count,
                         .threads = c->request->threads};
    memcpy(desc->attr, call->attr, sizeof desc->attr);
    for (int i = 0; i < call->in_count; i++) {
        tr_tensor_desc in = tr_graph_desc(c->graph, call->in[i]);
        desc->in[i] = concrete(in, c->request->micro_batch);
    }
    for (int i = 0; i < call->out_count; i++) {
        tr_tensor_desc out = tr_graph_desc(c->graph, call->out[i]);
        desc->out[i] = concrete(out, c->request->micro_batch);
        bool first = call->first >> i & 1, adds = call->accumulate >> i & 1;
        tr_value value = call->out[i];
        bool tied = false;
        if (first && value >= 0 && c->graph->values[value].kind == TR_VALUE_GRAD) {
            const tr_value_info *of = &c->graph->values[c->graph->values[value].index];
            tied = of->kind == TR_VALUE_PARAM && c->graph->params[of->index].shared;
        }
        desc->fresh |= (uint32_t)!adds << i;
        desc->accumulate |= (uint32_t)(adds || (first && (c->request->many || tied)))
                            << i;
    }
}

static tr_status add_instruction(compiler *c, draft *d, const tr_call *call) {
    tr_instruction *to = &d->program->instructions[d->program->count];
    size_t workspace = 0;
    *to = (tr_instruction){.accumulate = call->accumulate, .first = call->first};
    describe(c, call, &to->desc);
    to->kernel = choose_kernel(c->request, &to->desc);
    if (!to->kernel) {
        return tr_fail(c->err, TR_INTERNAL,
                       "unit %s: no kernel for op %s of this shape", c->unit->kind,
                       call->op->name);
    }
    for (int i = 0; i < call->in_count; i++) {
        to->in[i] = place(c, d, call->in[i]);
    }
    for (int i = 0; i < call->out_count; i++) {
        to->out[i] = place(c, d, call->out[i]);
    }
    if (to->kernel->prepare) {
        tr_status status = to->kernel->prepare(&to->desc, &to->state, c->err);
        if (status != TR_OK) {
            return status;
        }
    }
    if (to->kernel->workspace) {
        workspace = to->kernel->workspace(&to->desc, to->state);
    }
    to->workspace = (int64_t)d->temp_count;
    d->temps[d->temp_count++] = (tr_interval){.bytes = (int64_t)workspace,
                                              .first = (int32_t)d->program->count,
                                              .last = (int32_t)d->program->count};
    if (to->kernel->cost) {
        tr_cost cost = {0};
        to->kernel->cost(&to->desc, &cost);
        d->program->cost.flops += cost.flops;
        d->program->cost.bytes += cost.bytes;
    }
    d->program->count++;
    return TR_OK;
}

static tr_status draft_begin(compiler *c, draft *d, tr_program *program, variant kind,
                             size_t calls) {
    size_t values = c->graph->value_count;
    *d = (draft){.program = program, .kind = kind};
    program->instructions = tr__calloc(calls, sizeof *program->instructions);
    d->temp_of = tr__calloc(values, sizeof *d->temp_of);
    d->temps = tr__calloc(values + calls, sizeof *d->temps);
    if (!program->instructions || !d->temp_of || !d->temps) {
        return tr_fail(c->err, TR_MEMORY, "no memory for the program of unit %s",
                       c->unit->kind);
    }
    for (size_t i = 0; i < values; i++) {
        d->temp_of[i] = -1;
    }
    return TR_OK;
}

// Sizes the temporaries, lays them out, and turns their numbers into offsets.
static tr_status draft_end(compiler *c, draft *d) {
    tr_program *program = d->program;
    for (size_t v = 0; v < c->graph->value_count; v++) {
        if (d->temp_of[v] >= 0) {
            d->temps[d->temp_of[v]].bytes = bytes_of(c, (tr_value)v);
        }
    }
    tr_status status =
        tr__offsets_assign(d->temps, d->temp_count, &program->temp_bytes, c->err);
    for (size_t i = 0; i < program->count && status == TR_OK; i++) {
        tr_instruction *to = &program->instructions[i];
        to->workspace = d->temps[to->workspace].offset;
        for (int k = 0; k < TR_OP_IN_MAX + TR_OP_OUT_MAX; k++) {
            tr_operand *operand =
                k < TR_OP_IN_MAX ? &to->in[k] : &to->out[k - TR_OP_IN_MAX];
            if (operand->place == TR_PLACE_TEMP) {
                operand->offset = d->temps[operand->offset].offset;
            }
        }
    }
    return status;
}

static bool has_loss(const tr_call *node) {
    return (node->op->flags & TR_OP_LOSS) != 0;
}

// Does this program run this node of the forward?
static bool runs_node(const compiler *c, variant kind, int segment, size_t index) {
    const tr_call *node = &c->graph->nodes[index];
    switch (kind) {
    case FORWARD: // the loss is left to the backward
        return node->segment == segment && !has_loss(node);
    case LEAN:
        return node->segment == segment && !has_loss(node);
    case EVALUATE:
        return node->segment == segment;
    case RECOMPUTE:
        return c->unit->derived.needed[index];
    default:
        return true;
    }
}

// The loss's place is taken by the op that answers.
static tr_call answer_call(const compiler *c, const tr_call *loss) {
    tr_call call = *loss;
    call.op = loss->op->inference;
    call.first = call.accumulate = 0;
    call.out_count = 1;
    call.out[0] = c->answer;
    return call;
}

// Gives the answer a value of its own in the graph.
static tr_status add_answer(compiler *c) {
    for (size_t i = 0; i < c->graph->node_count; i++) {
        const tr_call *node = &c->graph->nodes[i];
        tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX] = {0};
        int out_count = 0;
        if (!has_loss(node)) {
            continue;
        }
        if (!node->op->inference) {
            return tr_fail(c->err, TR_USAGE,
                           "the loss %s cannot be asked for an answer", node->op->name);
        }
        for (int k = 0; k < node->in_count; k++) {
            in[k] = tr_graph_desc(c->graph, node->in[k]);
        }
        tr_op_node view = {.op = node->op->inference,
                           .attr = node->attr,
                           .in_count = node->in_count,
                           .in = in};
        tr_status status = view.op->infer(&view, out, &out_count, c->err);
        if (status != TR_OK) {
            return status;
        }
        c->answer = tr__graph_value(
            c->graph, (tr_value_info){.desc = out[0], .kind = TR_VALUE_ANSWER});
        c->unit->answer_bytes = bytes_of(c, c->answer);
    }
    return tr_graph_status(c->graph, c->err);
}

static tr_status compile_nodes(compiler *c, variant kind, int segment,
                               tr_program *program) {
    draft d;
    tr_status status = draft_begin(c, &d, program, kind, c->graph->node_count);
    for (size_t i = 0; i < c->graph->node_count && status == TR_OK; i++) {
        const tr_call *node = &c->graph->nodes[i];
        if (!runs_node(c, kind, segment, i)) {
            continue;
        }
        tr_call call = kind == ANSWER && has_loss(node) ? answer_call(c, node) : *node;
        if ((kind == EVALUATE || kind == ANSWER) && node->op->evaluate) {
            node->op->evaluate(call.attr);
        }
        status = add_instruction(c, &d, &call);
    }
    if (status == TR_OK) {
        status = draft_end(c, &d);
    }
    tr__free(d.temp_of);
    tr__free(d.temps);
    return status;
}

static tr_status compile_backward(compiler *c, int segment, tr_program *program) {
    const tr_derivation *derived = &c->unit->derived;
    draft d;
    tr_status status = draft_begin(c, &d, program, BACKWARD, derived->backward_count);
    for (size_t i = 0; i < derived->backward_count && status == TR_OK; i++) {
        if (derived->backward[i].segment == segment) {
            status = add_instruction(c, &d, &derived->backward[i]);
        }
    }
    if (status == TR_OK) {
        status = draft_end(c, &d);
    }
    tr__free(d.temp_of);
    tr__free(d.temps);
    return status;
}

// ---- layouts
// -------------------------------------------------------------------------

static tr_status lay_out_params(compiler *c) {
    tr_unit_program *unit = c->unit;
    int64_t next = 0;
    unit->flat_count = 1;
    unit->params = tr__calloc(c->graph->param_count, sizeof *unit->params);
    if (!unit->params) {
        return tr_fail(c->err, TR_MEMORY, "no memory for the layout of unit %s",
                       unit->kind);
    }
    for (size_t i = 0; i < c->graph->param_count; i++) {
        const tr_param_info *param = &c->graph->params[i];
        if (!param->shared) {
            unit->params[i] = (tr_program_param){0, next};
            int64_t count = tr_shape_count(param->shape);
            next += tr__round_up(count, TR_ALIGNMENT / (int64_t)sizeof(float));
            continue;
        }
        if (unit->flat_count == TR_UNIT_FLATS_MAX) {
            return tr_fail(c->err, TR_INTERNAL,
                           "unit %s uses more than %d tied tensors", unit->kind,
                           TR_UNIT_FLATS_MAX - 1);
        }
        unit->tied[unit->flat_count] = param->name;
        unit->params[i] = (tr_program_param){unit->flat_count++, 0};
    }
    unit->flat_elements = next;
    return TR_OK;
}

// Marks derived values (gradients, recomputed tensors) that pass from one backward
// segment to another: they live beside the saved ones.
static void mark_crossing(const compiler *c, bool *crosses, int *segment) {
    const tr_derivation *derived = &c->unit->derived;
    for (size_t v = 0; v < c->graph->value_count; v++) {
        segment[v] = -1;
    }
    for (size_t i = 0; i < derived->backward_count; i++) {
        const tr_call *call = &derived->backward[i];
        for (int k = 0; k < call->in_count + call->out_count; k++) {
            tr_value value =
                k < call->in_count ? call->in[k] : call->out[k - call->in_count];
            if (value == TR_NO_VALUE) {
                continue;
            }
            tr_value_kind kind = c->graph->values[value].kind;
            bool derived_value = kind == TR_VALUE_GRAD || kind == TR_VALUE_TEMP ||
                                 derived->recomputed[value];
            crosses[value] = crosses[value] || (derived_value && segment[value] >= 0 &&
                                                segment[value] != call->segment);
            segment[value] = call->segment;
        }
    }
}

static bool in_boundary(const compiler *c, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    const tr_value_info *info = &c->graph->values[value];
    if (info->kind != TR_VALUE_GRAD) {
        return false;
    }
    const tr_value_info *of = &c->graph->values[info->index];
    for (int i = 0; i < c->graph->output_count; i++) {
        if (value == derived->output_grad[i]) {
            return true;
        }
    }
    return of->kind == TR_VALUE_PARAM || of->kind == TR_VALUE_INPUT || of->wave;
}

static tr_status lay_out_saved(compiler *c, size_t forward_values) {
    size_t values = c->graph->value_count;
    bool *crosses = tr__calloc(values, sizeof *crosses);
    int *segment = tr__calloc(values, sizeof *segment);
    c->saved_offset = tr__calloc(values, sizeof *c->saved_offset);
    c->wave_offset = tr__calloc(values, sizeof *c->wave_offset);
    if (!crosses || !segment || !c->saved_offset || !c->wave_offset) {
        tr__free(crosses);
        tr__free(segment);
        return tr_fail(c->err, TR_MEMORY, "no memory for the layout of unit %s",
                       c->unit->kind);
    }
    if (c->unit->segments > 1) {
        mark_crossing(c, crosses, segment);
    }
    for (size_t v = 0; v < values; v++) {
        bool saved =
            v < forward_values && c->request->train && c->unit->derived.saved[v];
        c->saved_offset[v] = -1;
        if (saved || (crosses[v] && !in_boundary(c, (tr_value)v))) {
            c->saved_offset[v] = c->unit->saved_bytes;
            c->unit->saved_bytes += room_of(c, (tr_value)v);
        }
        if (c->graph->values[v].wave) {
            c->wave_offset[v] = c->unit->wave_bytes;
            c->unit->wave_bytes += room_of(c, (tr_value)v);
        }
    }
    tr__free(crosses);
    tr__free(segment);
    return TR_OK;
}

static tr_status check_sizes(compiler *c) {
    for (size_t v = 0; v < c->graph->value_count; v++) {
        int64_t bytes = bytes_of(c, (tr_value)v);
        if (bytes < 0 || bytes > INT64_C(1) << 46) {
            return tr_fail(c->err, TR_USAGE,
                           "unit %s: a tensor of one micro-batch of %lld samples would "
                           "be larger than 2^46 bytes; make the micro-batch or the "
                           "model smaller",
                           c->unit->kind, (long long)c->request->micro_batch);
        }
    }
    return TR_OK;
}

static tr_status compile_training(compiler *c) {
    tr_unit_program *unit = c->unit;
    size_t segments = (size_t)unit->segments;
    tr_status status = TR_OK;
    unit->forward = tr__calloc(segments, sizeof *unit->forward);
    unit->lean = tr__calloc(segments, sizeof *unit->lean);
    unit->evaluate = tr__calloc(segments, sizeof *unit->evaluate);
    unit->backward = tr__calloc(segments, sizeof *unit->backward);
    if (!unit->forward || !unit->lean || !unit->evaluate || !unit->backward) {
        return tr_fail(c->err, TR_MEMORY, "no memory for the program of unit %s",
                       unit->kind);
    }
    for (int s = 0; s < unit->segments && status == TR_OK; s++) {
        status = compile_nodes(c, FORWARD, s, &unit->forward[s]);
        if (status == TR_OK && c->request->recompute) {
            status = compile_nodes(c, LEAN, s, &unit->lean[s]);
        }
        if (status == TR_OK) {
            status = compile_nodes(c, EVALUATE, s, &unit->evaluate[s]);
        }
        if (status == TR_OK) {
            status = compile_backward(c, s, &unit->backward[s]);
        }
    }
    return status == TR_OK && c->request->recompute
               ? compile_nodes(c, RECOMPUTE, 0, &unit->recompute)
               : status;
}

static tr_status compile_unit(compiler *c, const tr_model_unit *model_unit) {
    tr_unit_program *unit = c->unit;
    model_unit->build(c->graph, model_unit->config);
    tr_status status = tr_graph_status(c->graph, c->err);
    size_t forward_values = c->graph->value_count;
    if (status == TR_OK && c->request->train) {
        status = tr__derive(c->graph, &unit->derived, c->err);
    }
    unit->segments = c->graph->segment_count;
    if (status == TR_OK && !c->request->train) {
        status = add_answer(c);
    }
    if (status == TR_OK) {
        status = check_sizes(c);
    }
    if (status == TR_OK) {
        status = lay_out_params(c);
    }
    if (status == TR_OK) {
        status = lay_out_saved(c, forward_values);
    }
    if (status != TR_OK) {
        return status;
    }
    unit->input_bytes = input_offset(c, c->graph->given_count);
    unit->output_bytes = boundary_offset(c, c->graph->output, c->graph->output_count);
    return c->request->train ? compile_training(c)
                             : compile_nodes(c, ANSWER, 0, &unit->answer);
}

tr_status tr__unit_compile(const tr_compile_request *request, const tr_model_unit *unit,
                           const tr_tensor_desc *given, int given_count,
                           const tr_tensor_desc data[TR_DATA_KINDS],
                           tr_unit_program **out, tr_error *err) {
    compiler c = {.request = request, .data = data, .err = err};
    c.unit = tr__calloc(1, sizeof *c.unit);
    if (!c.unit) {
        return tr_fail(err, TR_MEMORY, "no memory for the program of unit %s",
                       unit->name);
    }
    c.unit->kind = unit->kind;
    c.graph = c.unit->graph = tr__graph_create(given, given_count, data);
    tr_status status =
        c.graph
            ? compile_unit(&c, unit)
            : tr_fail(err, TR_MEMORY, "no memory for the graph of unit %s", unit->name);
    tr__free(c.saved_offset);
    tr__free(c.wave_offset);
    if (status != TR_OK) {
        tr__unit_program_destroy(c.unit);
        return status;
    }
    *out = c.unit;
    return TR_OK;
}

static void clear_program(tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        tr_instruction *instruction = &program->instructions[i];
        if (instruction->kernel && instruction->kernel->release) {
            instruction->kernel->release(instruction->state);
        }
    }
    tr__free(program->instructions);
}

void tr__unit_program_destroy(tr_unit_program *unit) {
    if (!unit) {
        return;
    }
    for (int s = 0; s < unit->segments; s++) {
        if (unit->forward) {
            clear_program(&unit->forward[s]);
        }
        if (unit->lean) {
            clear_program(&unit->lean[s]);
        }
        if (unit->evaluate) {
            clear_program(&unit->evaluate[s]);
        }
        if (unit->backward) {
            clear_program(&unit->backward[s]);
        }
    }
    clear_program(&unit->recompute);
    clear_program(&unit->answer);
    tr__free(unit->forward);
    tr__free(unit->lean);
    tr__free(unit->evaluate);
    tr__free(unit->backward);
    tr__free(unit->params);
    tr__derivation_clear(&unit->derived);
    tr__graph_destroy(unit->graph);
    tr__free(unit);
}
