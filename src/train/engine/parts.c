// Steps in parts, of models without a loss: the walk of the plan stops where the caller
// brings a micro-batch's data, where it gets the outputs and brings their gradients,
// and before this rank tells the others of itself, which begins the update.
#include "base/arguments.h"
#include "base/half.h"
#include "train/engine/attempt.h"
#include "train/engine/handing.h"

#include <stddef.h>
#include <string.h>

// ---- where the walk stands

typedef enum part { NO_STEP, TAKES_DATA, HANDS_OUT, ENDS } part;

static part part_of(const tr_engine *engine) {
    const tr_plan_step *step = tr__executor_pause(engine->executor);
    return !step                                    ? NO_STEP
           : step->shape == TR_STEP_IS_FEED         ? TAKES_DATA
           : step->payload.call == TR_HOST_HAND_OUT ? HANDS_OUT
                                                    : ENDS;
}

// Has this rank outputs to hand out? Those of other stages of a pipeline have none.
static bool has_outputs(const tr_engine *engine) {
    return tr__plan_runs(engine->plan, engine->plan->unit_count - 1);
}

static tr_status out_of_turn(const tr_engine *engine, const char *function,
                             tr_error *err) {
    const tr_plan_step *step = tr__executor_pause(engine->executor);
    long long all = (long long)engine->plan->request.accumulation_steps;
    switch (part_of(engine)) {
    case NO_STEP:
        return tr_fail(err, TR_USAGE,
                       "%s: no step is at work: call tr_engine_forward first",
                       function);
    case TAKES_DATA:
        return tr_fail(err, TR_USAGE,
                       "%s: the step has had %lld of its %lld micro-batches: call "
                       "tr_engine_forward for the next, or tr_engine_drop",
                       function, (long long)step->micro, all);
    case HANDS_OUT:
        return tr_fail(err, TR_USAGE,
                       "%s: the outputs of micro-batch %lld wait for their gradients: "
                       "call tr_engine_backward, or tr_engine_drop",
                       function, (long long)step->micro);
    default:
        return tr_fail(err, TR_USAGE,
                       "%s: the step has had all of its %lld micro-batches: call "
                       "tr_engine_update, or tr_engine_drop",
                       function, all);
    }
}

// ---- the walk

// The walk has come to its next pause, or it has failed.
static tr_status reach_pause(tr_engine *engine, tr_status status, tr_error *mine,
                             tr_error *err) {
    tr_error told = {0};
    if (status == TR_OK && tr__executor_pause(engine->executor)) {
        return TR_OK;
    }
    status = tr__attempt_walked(&engine->parts->attempt, status, mine, &told);
    if (status == TR_OK) {
        status = tr_fail(&told, TR_INTERNAL, "a step has ended before its update");
    }
    return tr__attempt_fail(engine, status, &told, err);
}

static tr_status resume(tr_engine *engine, tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr__executor_resume(engine->executor, &mine);
    return reach_pause(engine, status, &mine, err);
}

// The device has failed at what the caller has handed over.
static tr_status give_up(tr_engine *engine, tr_status status, tr_error *mine,
                         tr_error *err) {
    tr_error ignored = {0};
    (void)tr__executor_drop(engine->executor, &ignored);
    return reach_pause(engine, status, mine, err);
}

// Whoever asks, asks at any time of the step.
static bool is_asked(void *user) {
    const tr_engine *engine = user;
    return engine->stop && engine->stop(engine->stop_user);
}

// A step begins, and comes to its first data.
static tr_status begin(tr_engine *engine, bool own_rows, tr_error *err) {
    tr_parts *parts = engine->parts;
    tr_asking ask = {engine->comm, is_asked, engine};
    tr_run_context context;
    tr_walk_calls calls;
    tr_error mine = {0};
    tr_status status = tr__attempt_prepare(engine, err);
    if (status != TR_OK) {
        return status;
    }
    tr__attempt_begin(&parts->attempt, engine, &ask, &parts->made);
    tr__attempt_walk(&parts->attempt, &context, &calls);
    parts->seed = context.loss_seed;
    calls.in_parts = true;
    calls.own_rows = own_rows;
    status =
        tr__executor_run(engine->executor, TR_SEQUENCE_TRAIN, &context, &calls, &mine);
    return reach_pause(engine, status, &mine, err);
}

// ---- forward

// What the kernels draw by: where the row would stand in data of this order.
static int64_t first_sample(const tr_engine *engine, int64_t micro) {
    const tr_plan_request *r = &engine->whole->request;
    int64_t before = tr__data_rank(r) * r->accumulation_steps + micro;
    return engine->parts->attempt.batch.first + before * r->micro_batch;
}

// What comes of the micro-batch that the step has loaded.
static void show(const tr_engine *engine, const tr_plan_step *load, bool trains,
                 tr_outputs *outputs) {
    if (has_outputs(engine)) {
        tr__handing_show(engine, tr__executor_pause(engine->executor), outputs);
    } else {
        tr__handing_show_none(engine, load, trains, outputs);
    }
}

static tr_status train(tr_engine *engine, const tr_forward_options *options,
                       tr_outputs *outputs, tr_error *err) {
    bool own_rows = tr__handing_has_rows(options);
    tr_error mine = {0};
    tr_status status = TR_OK;
    if (part_of(engine) == NO_STEP) {
        status = begin(engine, own_rows, err);
    }
    if (status != TR_OK) {
        return status;
    }
    const tr_plan_step *load = tr__executor_pause(engine->executor);
    engine->parts->counts = own_rows && options->counts;
    if (own_rows) {
        int64_t first = first_sample(engine, load->micro);
        status = tr__handing_load(engine, load, options, first, &mine);
    }
    status =
        status == TR_OK ? resume(engine, err) : give_up(engine, status, &mine, err);
    if (status == TR_OK) {
        show(engine, load, true, outputs);
    }
    return status;
}

// One walk of the evaluation; nothing of it is read again once the outputs are there.
static tr_status walk_forward(tr_engine *engine, const tr_forward_options *options,
                              tr_outputs *outputs, tr_error *err) {
    tr_run_context context = {.seed = engine->settings->seed};
    tr_walk_calls calls = {.in_parts = true, .own_rows = true};
    tr_executor *ex = engine->executor;
    tr_status status =
        tr__executor_run(ex, TR_SEQUENCE_EVALUATE, &context, &calls, err);
    const tr_plan_step *load = tr__executor_pause(ex);
    if (status == TR_OK) {
        tr_error ignored = {0};
        status = tr__handing_load(engine, load, options, 0, err);
        if (status != TR_OK) {
            (void)tr__executor_drop(ex, &ignored);
        }
    }
    if (status == TR_OK) {
        status = tr__executor_resume(ex, err);
    }
    if (status == TR_OK) {
        show(engine, load, false, outputs);
    }
    return status == TR_OK && has_outputs(engine) ? tr__executor_resume(ex, err)
                                                  : status;
}

static tr_status evaluate(tr_engine *engine, const tr_forward_options *options,
                          tr_outputs *outputs, tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr_engine_refresh(engine, err);
    if (status != TR_OK) {
        return status;
    }
    status = walk_forward(engine, options, outputs, &mine);
    return tr__engine_end_work(engine, status, &mine, err);
}

static tr_status forward(tr_engine *engine, const tr_forward_options *options,
                         tr_outputs *outputs, tr_error *err) {
    static const char name[] = "tr_engine_forward";
    part at = part_of(engine);
    if (at != NO_STEP && (options->evaluate || at != TAKES_DATA)) {
        return out_of_turn(engine, name, err);
    }
    tr_status status = tr__handing_check(engine, options, name, err);
    if (status != TR_OK) {
        return status;
    }
    return (options->evaluate ? evaluate : train)(engine, options, outputs, err);
}

static tr_status enter(tr_engine *engine, const char *function, tr_error *err) {
    tr_status status = tr__engine_enter_part(engine, function, err);
    if (status == TR_OK && !engine->parts) {
        tr__engine_leave(engine, TR_OK, NULL);
        return tr_fail(err, TR_USAGE,
                       "%s: the model has a loss, so its steps have no parts: call "
                       "tr_engine_step",
                       function);
    }
    return status;
}

tr_status tr_engine_forward(tr_engine *engine, const tr_forward_options *options,
                            tr_outputs *outputs, tr_error *err) {
    static const char name[] = "tr_engine_forward";
    static const tr_sized options_known = {"tr_forward_options",
                                           "TR_FORWARD_OPTIONS_INIT", sizeof *options,
                                           offsetof(tr_forward_options, inputs_there)};
    static const tr_sized outputs_known = {
        "tr_outputs", "TR_OUTPUTS_INIT", sizeof *outputs, offsetof(tr_outputs, device)};
    tr_forward_options asked = TR_FORWARD_OPTIONS_INIT;
    tr_outputs found = TR_OUTPUTS_INIT;
    tr_status status =
        options ? tr__need_sized(options, &options_known, name, err) : TR_OK;
    status =
        status == TR_OK ? tr__need_sized(outputs, &outputs_known, name, err) : status;
    status = status == TR_OK ? enter(engine, name, err) : status;
    if (status != TR_OK) {
        return status;
    }
    if (options) { // of an earlier version, perhaps
        memcpy(&asked, options, options->size);
    }
    status = forward(engine, &asked, &found, err);
    if (status == TR_OK) {
        tr__give_sized(outputs, &found);
    }
    tr__engine_leave(engine, status, err);
    return status;
}

// ---- backward, update

// On ranks without outputs the walk has gone on by itself.
static tr_status backward(tr_engine *engine, const char *name,
                          const tr_backward_options *options, tr_error *err) {
    const tr_plan_step *step = tr__executor_pause(engine->executor);
    bool outputs = has_outputs(engine);
    tr_error mine = {0};
    tr_status status =
        outputs ? tr__need(options->gradients, name, "gradients", err) : TR_OK;
    if (status != TR_OK || (step && !outputs)) {
        return status;
    }
    if (part_of(engine) != HANDS_OUT) {
        return out_of_turn(engine, "tr_engine_backward", err);
    }
    status = tr__handing_take(engine, step, options, &mine);
    return status == TR_OK ? resume(engine, err) : give_up(engine, status, &mine, err);
}

static tr_status enter_backward(tr_engine *engine, const char *name,
                                const tr_backward_options *options, tr_error *err) {
    tr_status status =
        tr__dtype_is_real(options->dtype)
            ? enter(engine, name, err)
            : tr_fail(err, TR_USAGE, "%s: gradients of %s: f32, bf16 or f16 is taken",
                      name, tr_dtype_name(options->dtype));
    if (status == TR_OK) {
        status = backward(engine, name, options, err);
        tr__engine_leave(engine, status, err);
    }
    return status;
}

tr_status tr_engine_backward(tr_engine *engine, const float *const *gradients,
                             double loss, tr_error *err) {
    tr_backward_options options = TR_BACKWARD_OPTIONS_INIT;
    options.gradients = (const void *const *)gradients;
    options.loss = loss;
    return enter_backward(engine, "tr_engine_backward", &options, err);
}

tr_status tr_engine_backward_with(tr_engine *engine, const tr_backward_options *options,
                                  tr_error *err) {
    static const char name[] = "tr_engine_backward_with";
    static const tr_sized known = {"tr_backward_options", "TR_BACKWARD_OPTIONS_INIT",
                                   sizeof *options, 0};
    tr_status status = tr__need_sized(options, &known, name, err);
    return status == TR_OK ? enter_backward(engine, name, options, err) : status;
}

static tr_status update(tr_engine *engine, tr_error *err) {
    tr_parts *parts = engine->parts;
    tr_error mine = {0}, told = {0};
    if (part_of(engine) != ENDS) {
        return out_of_turn(engine, "tr_engine_update", err);
    }
    tr_status status = tr__executor_resume(engine->executor, &mine);
    status = tr__attempt_walked(&parts->attempt, status, &mine, &told);
    if (status == TR_OK) {
        status = tr__attempt_end(&parts->attempt, &told);
    }
    return status == TR_OK ? TR_OK : tr__attempt_fail(engine, status, &told, err);
}

tr_status tr_engine_update(tr_engine *engine, tr_step_result *result, tr_error *err) {
    static const char name[] = "tr_engine_update";
    static const tr_sized known = {"tr_step_result", "TR_STEP_RESULT_INIT",
                                   sizeof *result, 0};
    tr_status status = tr__need_sized(result, &known, name, err);
    status = status == TR_OK ? enter(engine, name, err) : status;
    if (status != TR_OK) {
        return status;
    }
    status = update(engine, err);
    if (status == TR_OK) {
        tr__give_sized(result, &engine->parts->made);
    }
    tr__engine_leave(engine, status, err);
    return status;
}

// ---- giving up

static tr_status drop(tr_engine *engine, tr_error *err) {
    tr_error mine = {0}, told = {0}, end = {0};
    if (part_of(engine) == NO_STEP) {
        return TR_OK;
    }
    tr_status status = tr__executor_drop(engine->executor, &mine);
    status = tr__attempt_walked(&engine->parts->attempt, status, &mine, &told);
    status = tr__attempt_fail(engine, status, &told, &end);
    return status == TR_INTERRUPTED ? TR_OK : tr_fail(err, status, "%s", end.message);
}

tr_status tr_engine_drop(tr_engine *engine, tr_error *err) {
    tr_status status = tr__engine_enter_part(engine, "tr_engine_drop", err);
    if (status == TR_OK) {
        status = drop(engine, err);
        tr__engine_leave(engine, status, err);
    }
    return status;
}
