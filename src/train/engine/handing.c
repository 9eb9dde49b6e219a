#include "train/engine/handing.h"

#include "base/batch.h"
#include "data/sources/ids.h"
#include "train/engine/attempt.h"

#include <string.h>

_Static_assert((int)TR_OUTPUTS_MAX == (int)TR_GRAPH_IO_MAX,
               "all outputs of a unit have a place");

// ---- inputs

static tr_status check_rows(const tr_engine *engine, const tr_forward_options *options,
                            const char *function, tr_error *err) {
    int64_t most = engine->plan->request.micro_batch;
    int64_t least = options->evaluate ? 1 : 0;
    if (options->rows >= least && options->rows <= most) {
        return TR_OK;
    }
    return tr_fail(
        err, TR_USAGE,
        "%s: %lld rows were handed over, and a micro-batch of this run has %lld "
        "to %lld (train_micro_batch_size_per_gpu)",
        function, (long long)options->rows, (long long)least, (long long)most);
}

static const void *const *rows_of(const tr_forward_options *options) {
    return options->inputs_there ? options->inputs_there : options->inputs;
}

bool tr__handing_has_rows(const tr_forward_options *options) {
    return rows_of(options) != NULL;
}

static int64_t bytes_of(const tr_batch_tensor *tensor, int64_t rows) {
    return rows * tr_tensor_bytes(tensor->desc);
}

// Ids are looked at where the host reaches them.
static tr_status check_values(const tr_engine *engine, int index,
                              const tr_forward_options *options, tr_error *err) {
    const tr_batch_tensors *batch = &engine->plan->batch;
    const tr_batch_tensor *tensor = &batch->tensor[index];
    const tr_plan_request *r = &engine->plan->request;
    const void *rows = rows_of(options)[index];
    tr_status status = TR_OK;
    if (options->inputs_there && tensor->desc.dtype == TR_I32) {
        char *here = tr__executor_landing(engine->executor, NULL);
        here += tr__batch_offset(batch, r->micro_batch, index);
        tr__executor_hand(engine->executor, rows, here,
                          bytes_of(tensor, options->rows));
        status = tr__executor_handed(engine->executor, err);
        rows = here;
    }
    return status == TR_OK ? tr__rows_check(tensor, rows, r->model->classes,
                                            (tr_sample_list){NULL, options->rows}, err)
                           : status;
}

static tr_status check_tensor(const tr_engine *engine, int index,
                              const tr_forward_options *options, const char *function,
                              tr_error *err) {
    const tr_batch_tensor *tensor = &engine->plan->batch.tensor[index];
    return rows_of(options)[index]
               ? check_values(engine, index, options, err)
               : tr_fail(err, TR_USAGE, "%s: inputs[%d], \"%s\", is NULL", function,
                         index, tensor->name);
}

static tr_status check_place(const tr_engine *engine, const tr_forward_options *options,
                             const char *function, tr_error *err) {
    const char *problem = options->inputs_there && options->inputs
                              ? "give inputs or inputs_there, not both"
                          : options->inputs_there && !tr__rows_on_device(engine->plan)
                              ? "rows in a GPU's memory are taken with "
                                "execution.parts_on_device, by a run without data of "
                                "its own: give inputs in place of inputs_there"
                              : NULL;
    return problem ? tr_fail(err, TR_USAGE, "%s: %s", function, problem) : TR_OK;
}

// Training goes on by the run's data, where it has some.
static tr_status check_source(const tr_engine *engine,
                              const tr_forward_options *options, const char *function,
                              tr_error *err) {
    bool own = tr__run_train_data(engine->run) != NULL && !options->evaluate;
    if (own != tr__handing_has_rows(options)) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   own ? "%s: the run has data of its own: give no "
                         "inputs, or the run no data"
                   : options->evaluate
                       ? "%s: an evaluation takes inputs"
                       : "%s: the run has no data of its own: give inputs",
                   function);
}

tr_status tr__handing_check(const tr_engine *engine, const tr_forward_options *options,
                            const char *function, tr_error *err) {
    tr_status status = check_source(engine, options, function, err);
    status = status == TR_OK ? check_place(engine, options, function, err) : status;
    if (status != TR_OK || !tr__handing_has_rows(options)) {
        return status;
    }
    status = check_rows(engine, options, function, err);
    for (int i = 0; i < engine->plan->batch.count && status == TR_OK; i++) {
        status = check_tensor(engine, i, options, function, err);
    }
    return status;
}

// The rows that are there come from the device, those that are not from the host.
static void load_there(const tr_engine *engine, const tr_forward_options *options,
                       const char *landing, char *slot) {
    const tr_batch_tensors *batch = &engine->plan->batch;
    int64_t most = engine->plan->request.micro_batch;
    for (int i = 0; i < batch->count; i++) {
        int64_t first = tr__batch_offset(batch, most, i);
        int64_t behind = first + bytes_of(&batch->tensor[i], options->rows);
        int64_t end = first + bytes_of(&batch->tensor[i], most);
        tr__executor_hand(engine->executor, options->inputs_there[i], slot + first,
                          behind - first);
        tr__executor_hand(engine->executor, landing + behind, slot + behind,
                          end - behind);
    }
}

static void load_here(const tr_engine *engine, const tr_forward_options *options,
                      char *landing) {
    const tr_batch_tensors *batch = &engine->plan->batch;
    int64_t most = engine->plan->request.micro_batch;
    for (int i = 0; i < batch->count; i++) {
        memcpy(landing + tr__batch_offset(batch, most, i), options->inputs[i],
               (size_t)bytes_of(&batch->tensor[i], options->rows));
    }
}

tr_status tr__handing_load(tr_engine *engine, const tr_plan_step *load,
                           const tr_forward_options *options, int64_t sample,
                           tr_error *err) {
    const tr_batch_tensors *batch = &engine->plan->batch;
    int64_t most = engine->plan->request.micro_batch;
    char *slot = tr__executor_operand(engine->executor, load, 0);
    char *landing = tr__executor_landing(engine->executor, load);
    if (options->inputs) {
        load_here(engine, options, landing);
    }
    tr__batch_pad(batch, landing, most, options->rows);
    if (options->inputs_there) {
        load_there(engine, options, landing, slot);
    } else if (landing != slot) {
        tr__executor_hand(engine->executor, landing, slot,
                          tr__batch_offset(batch, most, batch->count));
    }
    tr__executor_loaded(engine->executor, load, (uint64_t)sample, options->rows);
    return tr__executor_handed(engine->executor, err);
}

// ---- outputs

static const tr_unit_program *last_of(const tr_plan *plan) {
    return plan->units[plan->unit_count - 1].program;
}

static int64_t offset_of(const tr_plan *plan, int index) {
    return tr__graph_output_offset(last_of(plan)->graph, plan->request.micro_batch,
                                   index);
}

static tr_output output_of(const tr_engine *engine, const char *outputs, int index,
                           int64_t rows) {
    const tr_unit_program *last = last_of(engine->plan);
    tr_output output = {
        .data = outputs + offset_of(engine->plan, index),
        .desc = tr_graph_desc(last->graph, last->graph->output[index]),
        .trained = last->derived.output_grad[index] != TR_NO_VALUE,
    };
    output.desc.shape.dim[0] = rows; // in place of TR_BATCH
    return output;
}

static tr_outputs outputs_of(const tr_engine *engine, const tr_plan_step *step,
                             bool trains) {
    const tr_plan *plan = engine->plan;
    return (tr_outputs){
        .size = sizeof(tr_outputs),
        .micro_batch = step->micro,
        .micro_batches = trains ? plan->request.accumulation_steps : 1,
        .rows = tr__executor_rows(engine->executor, step),
        .device = tr__hands_on_device(plan) ? plan->request.device : -1,
    };
}

void tr__handing_show(const tr_engine *engine, const tr_plan_step *hand_out,
                      tr_outputs *outputs) {
    const char *memory =
        tr__executor_operand(engine->executor, hand_out, TR_HAND_OUT_OUTPUTS);
    *outputs = outputs_of(engine, hand_out, hand_out->payload.operand_count > 1);
    outputs->count = last_of(engine->plan)->graph->output_count;
    for (int i = 0; i < outputs->count; i++) {
        outputs->output[i] = output_of(engine, memory, i, outputs->rows);
    }
}

void tr__handing_show_none(const tr_engine *engine, const tr_plan_step *load,
                           bool trains, tr_outputs *outputs) {
    *outputs = outputs_of(engine, load, trains);
}

// ---- gradients

// Rows that are not there have no part in the loss.
static void take_gradient(const tr_engine *engine, const tr_output *output,
                          tr_dtype type, const void *gradient, char *to) {
    tr_shape whole = output->desc.shape;
    whole.dim[0] = engine->plan->request.micro_batch;
    const tr_seeding seeding = {
        .from = gradient,
        .given_type = type,
        .given = gradient ? tr_shape_count(output->desc.shape) : 0,
        .to = to,
        .type = output->desc.dtype,
        .room = tr_shape_count(whole),
        .seed = engine->parts->seed,
    };
    tr__executor_seed(engine->executor, &seeding);
}

// A micro-batch counts once, one without rows where the caller says so.
static void take_loss(const tr_engine *engine, const tr_plan_step *hand_out,
                      double loss) {
    double *sums = tr__executor_operand(engine->executor, hand_out, TR_HAND_OUT_SUMS);
    bool there = tr__executor_rows(engine->executor, hand_out) > 0;
    sums[TR_SUM_LOSS] = there ? loss : 0;
    sums[TR_SUM_COUNT] = there || engine->parts->counts;
    sums[TR_SUM_CORRECT] = 0;
}

tr_status tr__handing_take(const tr_engine *engine, const tr_plan_step *hand_out,
                           const tr_backward_options *options, tr_error *err) {
    tr_outputs outputs;
    char *memory =
        tr__executor_operand(engine->executor, hand_out, TR_HAND_OUT_GRADIENTS);
    tr__handing_show(engine, hand_out, &outputs);
    for (int i = 0; i < outputs.count; i++) {
        if (outputs.output[i].trained) {
            take_gradient(engine, &outputs.output[i], options->dtype,
                          options->gradients[i], memory + offset_of(engine->plan, i));
        }
    }
    take_loss(engine, hand_out, options->loss);
    return tr__executor_handed(engine->executor, err);
}
