// A whole run: steps, metrics, evaluations and checkpoints until its end. One rank
// writes and speaks; the others keep step with it.
#include "base/arena.h"
#include "base/arguments.h"
#include "base/clock.h"
#include "base/text.h"
#include "comm/alone.h"
#include "train/engine.h"
#include "train/state/saved_tensors.h"
#include "train/state/saver.h"
#include "train/watch/crowding.h"
#include "train/watch/metrics.h"
#include "train/watch/progress.h"
#include "train/watch/summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct loop {
    tr_engine *engine;
    tr_comm *comm; // NULL: this process alone
    tr_metrics metrics;
    tr_progress_line line;
    tr_summary summary;
    tr_crowding crowding;
    tr_saver saver;
    tr_metrics_kept kept;   // of an earlier process
    int64_t evaluated_step; // of the newest evaluation
    tr_evaluation evaluation;
    const tr_train_options *options;
    bool (*stop)(void *user);
    void *user;
    tr_error *err;
} loop;

// The step's line, and the epoch's when the next sample is of another one. What the
// writing rank cannot write ends all.
static tr_status note_step(loop *l, const tr_step_result *r) {
    tr_batcher batcher = tr__engine_next_batcher(l->engine);
    tr_error mine = {0};
    tr_status status = tr__metrics_step(&l->metrics, l->engine, r, &mine);
    if (status == TR_OK && tr__batcher_next(&batcher, r->samples).epoch != r->epoch) {
        status = tr__metrics_epoch(&l->metrics, l->engine, r, &mine);
    }
    return status == TR_OK ? TR_OK : tr__abandon(l->comm, status, &mine, l->err);
}

static tr_status note_evaluation(loop *l, int64_t step, const tr_evaluation *result) {
    tr_error mine = {0};
    tr_status status =
        tr__metrics_evaluation(&l->metrics, l->engine, step, result, &mine);
    return status == TR_OK ? TR_OK : tr__abandon(l->comm, status, &mine, l->err);
}

// Where the batch follows the noise scale, epochs are not known in steps.
static bool is_last(const loop *l, int64_t step) {
    const tr_engine *engine = l->engine;
    int64_t epochs = engine->settings->epochs;
    tr_batcher batcher = tr__engine_next_batcher(engine);
    tr_batch next = tr__batcher_next(&batcher, engine->count.cursor);
    return step >= engine->settings->steps || (epochs > 0 && next.epoch >= epochs);
}

// The evaluation that belongs to `step`, unless it has been made.
static tr_status evaluate(loop *l, int64_t step) {
    const tr_settings *settings = l->engine->settings;
    bool due = tr__is_due(settings->evaluate_every, step) || is_last(l, step);
    if (!due || !tr__run_validation_data(l->engine->run) || l->evaluated_step == step) {
        return TR_OK;
    }
    tr_evaluation result = TR_EVALUATION_INIT;
    tr_status status = tr__engine_evaluate_until(l->engine, settings->evaluate_samples,
                                                 l->stop, l->user, &result, l->err);
    l->evaluated_step = step;
    if (status == TR_OK) {
        l->evaluation = result;
        tr__summary_evaluation(&l->summary, step, &result);
        status = note_evaluation(l, step, &result);
    }
    if (status != TR_OK) {
        return status;
    }
    if (tr_run_model(l->engine->run)->classifier) {
        tr__progress_say(&l->line,
                         "step %" PRId64 ": validation loss %.4f, accuracy %.2f%% "
                         "(%" PRId64 " sample%s)",
                         step, result.loss, 100 * result.accuracy, result.samples,
                         tr__plural(result.samples));
    } else {
        tr__progress_say(
            &l->line, "step %" PRId64 ": validation loss %.4f (%" PRId64 " sample%s)",
            step, result.loss, result.samples, tr__plural(result.samples));
    }
    return tr__saver_judge(&l->saver, result.loss, l->err);
}

static bool is_not_finite(const tr_step_result *r) {
    return strcmp(r->spike, tr__spike_name(TR_SPIKE_NOT_FINITE)) == 0;
}

// What is not finite is told as a skipped update.
static void say_spike(loop *l, const tr_step_result *r) {
    static const char *const acts[][2] = {{"warn", "the update is made all the same"},
                                          {"skip", "update skipped"},
                                          {"rollback", "going back"}};
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        if (strcmp(r->act, acts[i][0]) == 0 && !is_not_finite(r)) {
            tr__progress_say(&l->line,
                             "step %" PRId64 ": spike (%s; loss %.4f, norm %.3g): %s",
                             r->step, r->spike, r->loss, r->grad_norm, acts[i][1]);
        }
    }
}

static void say_skipped(loop *l, const tr_step_result *r) {
    if (r->act[0] && !is_not_finite(r)) {
        return; // the spike has been told
    }
    tr__progress_say(
        &l->line,
        "step %" PRId64 ": %s%s%s: update skipped (%" PRId64 " skipped so far)",
        r->step,
        r->targets > 0 ? "loss or gradient is not finite"
                       : "no sample of the batch has a target",
        l->engine->blame[0] ? ", " : "", l->engine->blame, l->engine->count.skipped);
    if (l->engine->scale.scale != r->loss_scale) {
        tr__progress_say(&l->line, "step %" PRId64 ": the loss scale goes to %g",
                         r->step, l->engine->scale.scale);
    }
}

// Where the guard asks for it.
static tr_status roll_back(loop *l, const tr_step_result *r) {
    tr_error mine = {0};
    int64_t to = -1;
    if (strcmp(r->act, tr__guard_action_name(TR_GUARD_ROLLBACK)) != 0) {
        return TR_OK;
    }
    tr__progress_hide(&l->line);
    tr_status status = tr_engine_rollback(l->engine, &to, l->err);
    tr__progress_show(&l->line);
    if (status != TR_OK) {
        return status;
    }
    if (to < 0) {
        tr__progress_say(&l->line,
                         "step %" PRId64 ": there is no checkpoint to go back to; the "
                         "update is skipped",
                         r->step);
    } else {
        tr__progress_say(
            &l->line,
            "step %" PRId64 ": back to the weights of step %" PRId64
            "; the rate is %.3g of what the run file says, after a warm-up "
            "of %" PRId64 " updates",
            r->step, to, l->engine->guard.rate,
            l->engine->settings->guard.warmup_steps);
    }
    status = tr__metrics_rollback(&l->metrics, l->engine, to, &mine);
    return status == TR_OK ? TR_OK : tr__abandon(l->comm, status, &mine, l->err);
}

// Tells the caller, who may ask the engine meanwhile: so no update is left to be made.
static tr_status tell(loop *l, const tr_step_result *r) {
    bool evaluated = l->evaluated_step == r->step;
    tr_status status =
        l->options->stepped ? tr__engine_settle(l->engine, l->err) : TR_OK;
    if (status == TR_OK && l->options->stepped) {
        tr__progress_hide(&l->line);
        tr__engine_lend(l->engine, true);
        l->options->stepped(l->options->stepped_user, r,
                            evaluated ? &l->evaluation : NULL);
        tr__engine_lend(l->engine, false);
        tr__progress_show(&l->line);
    }
    return status;
}

// The checkpoint comes first: an evaluation that fails or is interrupted loses nothing.
static tr_status after_step(loop *l, const tr_step_result *r) {
    tr_status status = note_step(l, r);
    tr__summary_step(&l->summary, r);
    say_spike(l, r);
    if (r->skipped) {
        say_skipped(l, r);
    }
    tr__progress_step(&l->line, l->engine, r);
    tr__crowding_step(&l->crowding, r->step, &l->line);
    if (status == TR_OK) {
        status = roll_back(l, r);
    }
    if (status == TR_OK) {
        status = tr__saver_after(&l->saver, is_last(l, r->step), l->err);
    }
    if (status == TR_OK) {
        status = evaluate(l, r->step);
    }
    return status == TR_OK ? tell(l, r) : status;
}

// Which step of this process has a trace, from 1; 0: none. The first one touches memory
// for the first time.
static int64_t traced_step(const loop *l) {
    const tr_settings *settings = l->engine->settings;
    bool one = settings->steps - l->engine->count.step == 1;
    if (!settings->trace || l->options->no_files) {
        return 0;
    }
    return settings->trace_step > 0 ? settings->trace_step : one ? 1 : 2;
}

// A trace that cannot be had ends no run; ranks that are lost do.
static tr_status end_of_trace(loop *l, tr_status status, const tr_error *mine) {
    if (status == TR_OK) {
        return TR_OK;
    }
    if (status == TR_COMM) {
        return tr_fail(l->err, status, "%s", mine->message);
    }
    tr__progress_hide(&l->line);
    tr__warn(tr__run_log(l->engine->run), "no trace: %s", mine->message);
    tr__progress_show(&l->line);
    return TR_OK;
}

static tr_status watch(loop *l) {
    tr_error mine = {0};
    return end_of_trace(l, tr_engine_watch(l->engine, &mine), &mine);
}

static tr_status write_trace(loop *l) {
    tr_engine *engine = l->engine;
    tr_error mine = {0};
    tr_status status = tr_engine_write_trace(engine, engine->settings->trace, &mine);
    return end_of_trace(l, status, &mine);
}

// What a change of the batch changes.
typedef struct at_work {
    int64_t batch, steps, memory;
    const tr_plan *plan;
} at_work;

static at_work what_is(const loop *l) {
    const tr_engine *engine = l->engine;
    at_work is = {engine->batcher.batch, engine->plan->request.accumulation_steps, 0,
                  engine->plan};
    for (int space = 0; space < TR_SPACES; space++) {
        const tr_arena *arena = engine->arenas[space];
        is.memory += arena ? (int64_t)tr__arena_bytes(arena) : 0;
    }
    return is;
}

static void say_resized(loop *l, const at_work *before) {
    at_work now = what_is(l);
    char was[32], is[32];
    if (now.batch == before->batch) {
        return;
    }
    tr__print_size(was, sizeof was, before->memory);
    tr__print_size(is, sizeof is, now.memory);
    tr__progress_say(
        &l->line,
        "step %" PRId64 ": the batch is now %" PRId64 ", it was %" PRId64 " (%" PRId64
        " accumulation step%s; %s%s%s%s); the rate is multiplied by %.4g",
        l->engine->count.step, now.batch, before->batch, now.steps,
        tr__plural(now.steps),
        now.plan == before->plan       ? "the plan is the same"
        : now.memory == before->memory ? "a new plan in the memory of the old one"
                                       : "a new plan in more memory: ",
        now.memory == before->memory ? "" : is,
        now.memory == before->memory ? "" : " for ",
        now.memory == before->memory ? "" : was,
        tr__scaling_rate(&l->engine->settings->scaling, now.batch) /
            tr__scaling_rate(&l->engine->settings->scaling, before->batch));
}

static tr_status run_steps(loop *l) {
    tr_engine *engine = l->engine;
    int64_t number = 0, traced = traced_step(l);
    // What a stopped run owes.
    tr_status status = engine->count.step > 0 ? evaluate(l, engine->count.step) : TR_OK;
    while (status == TR_OK && !is_last(l, engine->count.step)) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        at_work before = what_is(l);
        bool watched = ++number == traced;
        status = tr__saver_before(&l->saver, l->err);
        if (status == TR_OK && watched) {
            status = watch(l);
        }
        if (status == TR_OK) {
            tr__saver_ask(&l->saver);
            status = tr__engine_step_until(engine, l->stop, l->user, &result, l->err);
        }
        if (status == TR_OK && watched) {
            status = write_trace(l);
        }
        if (status == TR_OK) {
            say_resized(l, &before);
            status = after_step(l, &result);
        }
    }
    if (status == TR_OK && number < traced) {
        tr__warn(tr__run_log(engine->run),
                 "no trace was written: --trace-step is %" PRId64
                 ", and the run ended after step %" PRId64,
                 traced, number);
    }
    return status;
}

// The unfinished step is dropped; what is saved is the last applied update.
static tr_status interrupted(loop *l) {
    tr_error later = {0};
    tr_error *first = l->err;
    l->err = &later;
    tr__progress_end(&l->line); // the last step has been told
    tr_status status = tr__saver_save(&l->saver, l->err);
    l->err = first;
    if (status == TR_OK && l->options->no_files) {
        tr__progress_say(&l->line, "interrupted after step %" PRId64,
                         l->engine->count.step);
    } else if (status == TR_OK) {
        tr__progress_say(&l->line,
                         "interrupted; checkpoint of step %" PRId64
                         " saved: run the same command again to resume",
                         l->saver.saved_step);
    }
    if (status == TR_OK) {
        return TR_INTERRUPTED;
    }
    if (first) {
        *first = later;
    }
    return status;
}

// Is it a sample of an evaluation? Of several ranks the others have been ended by it.
static bool lacks_validation(const loop *l, tr_status status) {
    return status == TR_DATA && !l->comm;
}

// A sample could not be read, so the run ends; what it has learned is kept.
static tr_status keep_learned(loop *l, tr_status status) {
    tr_error first = l->err ? *l->err : (tr_error){0}, later = {0};
    tr_error *told = l->err;
    int64_t step = l->engine->count.step;
    bool news = step > 0 && l->saver.saved_step != step && !l->options->no_files;
    l->err = &later;
    if (news && tr__saver_save(&l->saver, l->err) == TR_OK) {
        tr__progress_say(&l->line,
                         "a sample cannot be read; checkpoint of step %" PRId64
                         " saved before the run ends",
                         step);
    } else if (news) {
        tr__warn(tr__run_log(l->engine->run), "no checkpoint: %s", later.message);
    }
    l->err = told;
    if (told) {
        *told = first;
    }
    return status;
}

static tr_status open_no_files(loop *l) {
    tr_error mine = {0};
    tr_status status =
        tr__run_resolve_execution(l->engine->run, l->engine->plan, &mine);
    l->kept = (tr_metrics_kept){.best_step = -1, .best_loss = INFINITY};
    l->evaluated_step = -1;
    tr__saver_begin(&l->saver, l->engine, &l->line, INFINITY);
    l->saver.off = true;
    return tr__agree(l->comm, status, &mine, l->err);
}

// What the old metrics tell of evaluations, all ranks must know: they make them
// together.
static tr_status open_outputs(loop *l) {
    tr_engine *engine = l->engine;
    tr_error mine = {0};
    if (l->options->no_files) {
        return open_no_files(l);
    }
    l->kept = (tr_metrics_kept){.best_step = tr__saver_best_step(engine)};
    tr_status status = tr__run_write(engine->run, engine->plan, &mine);
    if (status == TR_OK && tr__comm_leads(l->comm)) {
        status = tr__saved_check_shards(engine, &mine);
    }
    if (status == TR_OK && tr__comm_leads(l->comm)) {
        status = tr__engine_check_room(engine, &mine);
    }
    if (status == TR_OK && tr__comm_leads(l->comm)) {
        status = tr__metrics_open(engine->settings->out, engine->count.step,
                                  &l->metrics, &l->kept, &mine);
        l->metrics.log = tr__run_log(engine->run);
    }
    if (status == TR_OK && tr__comm_leads(l->comm)) {
        status = tr__metrics_open_monitors(&l->metrics, engine, &mine);
    }
    status = tr__agree(l->comm, status, &mine, l->err);
    if (status == TR_OK && l->comm) {
        status = tr__comm_broadcast(l->comm, 0, &l->kept, sizeof l->kept, l->err);
    }
    l->evaluated_step = l->kept.evaluated_step;
    tr__saver_begin(&l->saver, engine, &l->line, l->kept.best_loss);
    l->saver.metrics = &l->metrics;
    return status;
}

static void say_noise(loop *l) {
    char text[TR_NOISE_TEXT_MAX];
    tr__noise_words(&l->engine->noise, l->engine->batcher.batch, text);
    if (text[0]) {
        tr__progress_say(&l->line, "%s", text);
    }
}

static void say_begin(loop *l) {
    const tr_engine *engine = l->engine;
    tr__engine_say_rate(engine);
    tr__progress_say(&l->line, "ready in %.2f s", tr__run_seconds(engine->run));
    if (is_last(l, engine->count.step)) {
        tr__progress_say(&l->line,
                         "step %" PRId64 " of %" PRId64 ": this run is complete; raise "
                         "\"steps\" or \"epochs\" to train on",
                         engine->count.step, engine->settings->steps);
    }
}

static tr_status check_options(const tr_engine *engine, const tr_train_options *options,
                               tr_error *err) {
    static const char name[] = "tr_engine_train";
    static const tr_sized known = {"tr_train_options", "TR_TRAIN_OPTIONS_INIT",
                                   sizeof(tr_train_options), 0};
    tr_status status = tr__need(engine, name, "engine", err);
    return status == TR_OK && options ? tr__need_sized(options, &known, name, err)
                                      : status;
}

static tr_status train(tr_engine *engine, const tr_train_options *options,
                       tr_error *err) {
    static const tr_screen none = {NULL, NULL, NULL, NULL};
    loop l = {.engine = engine,
              .comm = engine->comm,
              .metrics = {.file = -1},
              .summary = tr__summary_begin(),
              .options = options,
              .stop = options->stop,
              .user = options->stop_user,
              .err = err};
    tr_status status = open_outputs(&l);
    if (status != TR_OK) {
        tr__metrics_close(&l.metrics);
        return status;
    }
    const tr_screen *screen = tr__comm_leads(l.comm) ? &options->screen : &none;
    tr__progress_begin(&l.line, screen, engine);
    tr__metrics_begin(&l.metrics, l.line.flops_limit, options, l.comm);
    say_begin(&l);
    l.crowding = tr__crowding_begin(engine->plan->request.threads);
    engine->defers = true;
    status = run_steps(&l);
    if (status == TR_OK) {
        say_noise(&l);
    }
    if (status == TR_INTERRUPTED) {
        status = interrupted(&l);
    } else if (status != TR_OK && (engine->unread || lacks_validation(&l, status))) {
        status = keep_learned(&l, status);
    }
    engine->defers = false;
    if (status == TR_OK) {
        status = tr__engine_settle(engine, err);
    }
    tr__progress_end(&l.line);
    if (status == TR_OK && !options->no_files) {
        tr__summary_say(&l.summary, engine, l.saver.saved_step, &l.line);
    }
    tr__metrics_close(&l.metrics);
    return status;
}

tr_status tr_engine_train(tr_engine *engine, const tr_train_options *options,
                          tr_error *err) {
    static const tr_train_options none = TR_TRAIN_OPTIONS_INIT;
    static const char name[] = "tr_engine_train";
    tr_status status = check_options(engine, options, err);
    if (status == TR_OK) {
        status = tr__engine_enter_to_step(engine, engine, name, "engine", err);
    }
    if (status == TR_OK) {
        status = tr__engine_need_loss(engine, name, err);
        status =
            status == TR_OK ? train(engine, options ? options : &none, err) : status;
        tr__engine_leave(engine, status, err);
    }
    return status;
}
