// tr_graph_function: functions of the caller's as ops. The op's attribute is where the
// caller's table lies, and which of the inputs are parameters.
#include "graph/function.h"
#include "backend/backend.h"
#include "base/hash.h"
#include "graph/graph.h"
#include "ops/operand.h"

#include <stddef.h>
#include <string.h>

typedef struct tr_function_attr {
    const tr_function *function;
    tr_dtype real;       // of the output
    uint32_t parameters; // bit i: input i is one
    uint32_t batch;      // bit i: input i has a row for each sample
    uint64_t shapes;     // a hash of those of the inputs, without rows
} tr_function_attr;

// Operands of the backward: the gradient of the output, then the inputs. Results: the
// gradients of the inputs; of a loss its sums behind them.
enum { GRADIENT, FIRST_INPUT, LOSS_SUMS = TR_FUNCTION_INPUTS - 1 };

static const tr_op function_op, function_backward_op, loss_op, loss_backward_op;

static bool is_real(tr_dtype dtype) {
    return dtype == TR_F32 || dtype == TR_F16 || dtype == TR_BF16;
}

// ---- shapes

// The caller's functions know one shape of a sample.
static uint64_t hash_shapes(const tr_function_attr *attr, const tr_tensor_desc *in,
                            int count) {
    uint64_t hash = 0;
    for (int i = 0; i < count; i++) {
        tr_shape shape = in[i].shape;
        shape.dim[0] = attr->batch >> i & 1 ? 0 : shape.dim[0];
        hash = tr__hash_more(hash, &shape.rank, sizeof shape.rank);
        hash = tr__hash_more(hash, shape.dim, (size_t)shape.rank * sizeof *shape.dim);
    }
    return hash;
}

static tr_status check_shapes(const tr_op_node *node, int first, tr_error *err) {
    const tr_function_attr *attr = node->attr;
    int count = node->in_count - first;
    return hash_shapes(attr, node->in + first, count) == attr->shapes
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s: inputs of other shapes than it was made for",
                         node->op->name);
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_function_attr *attr = node->attr;
    tr_status status = check_shapes(node, 0, err);
    out[0] = attr->function->output;
    out[0].dtype = attr->real;
    // A compiled program has its rows in the place of TR_BATCH.
    for (int i = 0; i < node->in_count; i++) {
        if (attr->batch >> i & 1) {
            out[0].shape.dim[0] = node->in[i].shape.dim[0];
            break;
        }
    }
    *out_count = 1;
    return status;
}

static tr_status loss_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    *out_count = 1;
    return check_shapes(node, 0, err);
}

static tr_tensor_desc gradient_of(const tr_function_attr *attr, int i,
                                  tr_tensor_desc input) {
    if (!is_real(input.dtype)) {
        return (tr_tensor_desc){0};
    }
    return attr->parameters >> i & 1 ? tr__param_gradient(input) : input;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    *out_count = node->in_count - FIRST_INPUT;
    for (int i = 0; i < *out_count; i++) {
        out[i] = gradient_of(node->attr, i, node->in[FIRST_INPUT + i]);
    }
    return check_shapes(node, FIRST_INPUT, err);
}

static tr_status loss_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    for (int i = 0; i < LOSS_SUMS; i++) {
        out[i] = i < node->in_count ? gradient_of(node->attr, i, node->in[i])
                                    : (tr_tensor_desc){0};
    }
    out[LOSS_SUMS] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    *out_count = LOSS_SUMS + 1;
    return check_shapes(node, 0, err);
}

// ---- rules

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &function_backward_op, .in = {TR_GRAD_OUT(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_function_attr));
    for (int i = 0; i < node->in_count; i++) {
        rules[0].in[FIRST_INPUT + i] = (tr_ref)TR_IN(i);
        if (is_real(node->in[i].dtype)) {
            rules[0].out[i] = (tr_ref)TR_GRAD_IN(i);
        }
    }
    return 1;
}

static int loss_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &loss_backward_op};
    memcpy(rules[0].attr, node->attr, sizeof(tr_function_attr));
    for (int i = 0; i < node->in_count; i++) {
        rules[0].in[i] = (tr_ref)TR_IN(i);
        if (is_real(node->in[i].dtype)) {
            rules[0].out[i] = (tr_ref)TR_GRAD_IN(i);
        }
    }
    rules[0].out[LOSS_SUMS] = (tr_ref)TR_OUT(0);
    return 1;
}

// ---- kernels

// Of a discrete device; NULL: the call is on the host.
static void *stream_of(const tr_op_desc *desc, const tr_launch *launch) {
    const tr_queue_table *queues = tr__backend(desc->target.backend)->queues;
    return launch->queue && queues && queues->handle ? queues->handle(launch->queue)
                                                     : NULL;
}

static void take_inputs(const tr_op_desc *desc, const tr_launch *launch, int first,
                        tr_function_call *call) {
    *call = (tr_function_call){.size = sizeof *call,
                               .rows = launch->run->rows,
                               .input_count = desc->in_count - first,
                               .loss_seed = launch->run->loss_seed,
                               .stream = stream_of(desc, launch)};
    for (int i = 0; i < call->input_count; i++) {
        call->input_desc[i] = desc->in[first + i];
        call->input[i] = launch->in[first + i];
    }
}

static void take_gradients(const tr_op_desc *desc, const tr_launch *launch,
                           tr_function_call *call) {
    for (int i = 0; i < call->input_count && i < desc->out_count; i++) {
        if (desc->out[i].dtype != TR_F64) {
            call->input_gradient[i] = launch->out[i];
            call->input_gradient_dtype[i] = desc->out[i].dtype;
        }
    }
    call->adds = launch->accumulate;
}

static void end(const tr_launch *launch, bool good) {
    tr__launch_note(launch, good ? TR_OK : TR_DATA);
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    const tr_function_attr *attr = (const void *)desc->attr;
    tr_function_call call;
    (void)state;
    take_inputs(desc, launch, 0, &call);
    call.output_desc = desc->out[0];
    call.output = launch->out[0];
    end(launch, attr->function->forward(attr->function->user, &call));
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    const tr_function_attr *attr = (const void *)desc->attr;
    tr_function_call call;
    (void)state;
    take_inputs(desc, launch, FIRST_INPUT, &call);
    call.output_desc = desc->in[GRADIENT];
    call.output_gradient = launch->in[GRADIENT];
    take_gradients(desc, launch, &call);
    end(launch, attr->function->backward(attr->function->user, &call));
}

static void launch_loss_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    const tr_function_attr *attr = (const void *)desc->attr;
    tr_function_call call;
    (void)state;
    take_inputs(desc, launch, 0, &call);
    call.output_desc = desc->out[LOSS_SUMS];
    call.output = launch->out[LOSS_SUMS];
    take_gradients(desc, launch, &call);
    end(launch, attr->function->backward(attr->function->user, &call));
}

static bool supports(const tr_op_desc *desc) {
    const tr_function_attr *attr = (const void *)desc->attr;
    return desc->target.backend == TR_BACKEND_HOST ||
           tr__function_on_device(attr->function);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel forward_kernel = {.name = "function.caller",
                                         .supports = supports,
                                         .cost = cost,
                                         .launch = launch_forward};
static const tr_kernel backward_kernel = {.name = "function_backward.caller",
                                          .supports = supports,
                                          .cost = cost,
                                          .launch = launch_backward};
static const tr_kernel loss_backward_kernel = {.name = "loss_backward.caller",
                                               .supports = supports,
                                               .cost = cost,
                                               .launch = launch_loss_backward};

static const tr_op function_op = {.name = "function",
                                  .flags = TR_OP_CALLS,
                                  .attr_bytes = sizeof(tr_function_attr),
                                  .infer = infer,
                                  .backward = backward,
                                  .reference = &forward_kernel};
static const tr_op function_backward_op = {.name = "function_backward",
                                           .flags = TR_OP_CALLS,
                                           .attr_bytes = sizeof(tr_function_attr),
                                           .infer = backward_infer,
                                           .reference = &backward_kernel};
static const tr_op loss_op = {.name = "loss",
                              .attr_bytes = sizeof(tr_function_attr),
                              .flags = TR_OP_LOSS | TR_OP_CALLS,
                              .infer = loss_infer,
                              .backward = loss_backward,
                              .reference = &forward_kernel};
static const tr_op loss_backward_op = {.name = "loss_backward",
                                       .flags = TR_OP_CALLS,
                                       .attr_bytes = sizeof(tr_function_attr),
                                       .infer = loss_backward_infer,
                                       .reference = &loss_backward_kernel};

// ---- asked of a plan's instructions

const tr_function *tr__function_of(const tr_op_desc *desc) {
    static const tr_op *const called[] = {&function_op, &function_backward_op, &loss_op,
                                          &loss_backward_op};
    for (size_t i = 0; i < sizeof called / sizeof *called; i++) {
        if (desc->op == called[i]) {
            return ((const tr_function_attr *)(const void *)desc->attr)->function;
        }
    }
    return NULL;
}

// Earlier versions of the struct ended before these members.
static const size_t sizes[] = {offsetof(tr_function, outside_bytes),
                               offsetof(tr_function, on_device), sizeof(tr_function)};

int64_t tr__function_outside(const tr_function *function) {
    return function->size > sizes[0] ? function->outside_bytes : 0;
}

bool tr__function_on_device(const tr_function *function) {
    return function->size > sizes[1] && function->on_device;
}

// ---- the call

static bool is_known_size(size_t size) {
    return size == sizes[0] || size == sizes[1] || size == sizes[2];
}

static const char *problem_of(const tr_graph *graph, const tr_function *f,
                              const tr_value *inputs, int count) {
    if (!is_known_size(f->size)) {
        return "a tr_function of an unknown size";
    }
    if (!f->forward || !f->backward) {
        return "forward and backward have to be there";
    }
    if (tr__function_outside(f) < 0) {
        return "outside_bytes is below 0";
    }
    if (count < 1 || !inputs || count > TR_FUNCTION_INPUTS - (f->loss ? 1 : 0)) {
        return "there are too many inputs, or none";
    }
    for (int i = 0; i < count; i++) {
        if (inputs[i] < 0 || (size_t)inputs[i] >= graph->value_count) {
            return "an input is no value of this graph";
        }
    }
    if (!f->loss && (f->output.dtype != TR_F32 || f->output.shape.rank < 1 ||
                     f->output.shape.dim[0] != TR_BATCH)) {
        return "its output is F32, and TR_BATCH is its first dimension";
    }
    return NULL;
}

static uint64_t hash_inputs(const tr_graph *graph, const tr_function_attr *attr,
                            const tr_value *inputs, int count) {
    tr_tensor_desc in[TR_FUNCTION_INPUTS];
    for (int i = 0; i < count; i++) {
        in[i] = tr_graph_desc(graph, inputs[i]);
    }
    return hash_shapes(attr, in, count);
}

tr_value tr_graph_function(tr_graph *graph, const tr_function *function,
                           const tr_value *inputs, int input_count) {
    if (!graph || tr_graph_status(graph, NULL) != TR_OK) {
        return TR_NO_VALUE;
    }
    const char *problem =
        function ? problem_of(graph, function, inputs, input_count) : "it is NULL";
    if (problem) {
        bool named = function && is_known_size(function->size) && function->name;
        tr_graph_fail(graph, TR_USAGE, "tr_graph_function: %.60s: %s",
                      named ? function->name : "function", problem);
        return TR_NO_VALUE;
    }
    tr_function_attr attr = {.function = function, .real = graph->real};
    for (int i = 0; i < input_count; i++) {
        const tr_value_info *info = &graph->values[inputs[i]];
        bool batch = info->desc.shape.rank > 0 && info->desc.shape.dim[0] == TR_BATCH;
        attr.parameters |= (uint32_t)(info->kind == TR_VALUE_PARAM) << i;
        attr.batch |= (uint32_t)batch << i;
    }
    attr.shapes = hash_inputs(graph, &attr, inputs, input_count);
    tr_value value = tr__graph_op(graph, function->loss ? &loss_op : &function_op,
                                  &attr, inputs, input_count, NULL);
    return function->loss ? TR_NO_VALUE : value;
}
