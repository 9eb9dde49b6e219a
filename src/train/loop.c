// A whole run: steps, metrics, evaluations and checkpoints until its end. One rank
// writes and speaks; the others keep step with it.
#include "base/clock.h"
#include "comm/alone.h"
#include "train/engine.h"
#include "train/metrics.h"
#include "train/progress.h"

#include <inttypes.h>

typedef struct loop {
    tr_engine *engine;
    tr_comm *comm; // NULL: this process alone
    tr_metrics metrics;
    tr_progress_line line;
    int64_t saved_step;     // of the newest checkpoint
    int64_t evaluated_step; // of the newest evaluation
    bool (*stop)(void *user);
    void *user;
    tr_error *err;
} loop;

// The step's line, and the epoch's when the next sample is of another one. What the
// writing rank cannot write ends all.
static tr_status note_step(loop *l, const tr_step_result *r) {
    const tr_batcher *batcher = tr__run_batcher(l->engine->run);
    tr_error mine = {0};
    tr_status status = tr__metrics_step(&l->metrics, l->engine, r, &mine);
    if (status == TR_OK && tr__batcher_next(batcher, r->samples).epoch != r->epoch) {
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

static bool is_last(const loop *l, int64_t step) {
    return step >= l->engine->settings->steps;
}

static bool is_due(int64_t every, int64_t step) {
    return every > 0 && step % every == 0;
}

// The evaluation that belongs to `step`, unless it has been made.
static tr_status evaluate(loop *l, int64_t step) {
    const tr_settings *settings = l->engine->settings;
    bool due = is_due(settings->evaluate_every, step) || is_last(l, step);
    if (!due || !tr__run_validation_data(l->engine->run) || l->evaluated_step == step) {
        return TR_OK;
    }
    tr_evaluation result;
    tr_status status = tr__engine_evaluate_until(l->engine, settings->evaluate_samples,
                                                 l->stop, l->user, &result, l->err);
    l->evaluated_step = step;
    if (status == TR_OK) {
        status = note_evaluation(l, step, &result);
    }
    if (status != TR_OK) {
        return status;
    }
    if (tr_run_model(l->engine->run)->classifier) {
        tr__progress_say(&l->line,
                         "step %" PRId64 ": validation loss %.4f, accuracy %.2f%% "
                         "(%" PRId64 " samples)",
                         step, result.loss, 100 * result.accuracy, result.samples);
    } else {
        tr__progress_say(&l->line,
                         "step %" PRId64 ": validation loss %.4f (%" PRId64 " samples)",
                         step, result.loss, result.samples);
    }
    return TR_OK;
}

static void saving(void *user, int64_t done, int64_t total) {
    tr__progress_work(user, "saving a checkpoint", done, total);
}

static tr_status save(loop *l) {
    if (l->saved_step == l->engine->count.step) {
        return TR_OK;
    }
    double begin = tr__seconds();
    tr__progress_hide(&l->line); // warnings may come
    tr_progress progress = {saving, &l->line};
    saving(&l->line, 0, 0);
    tr_status status = tr__engine_save(l->engine, &progress, l->err);
    tr__progress_show(&l->line);
    if (status == TR_OK) {
        l->saved_step = l->engine->count.step;
        if (tr__seconds() - begin > 1) {
            tr__progress_say(&l->line, "step %" PRId64 ": checkpoint saved in %.1f s",
                             l->saved_step, tr__seconds() - begin);
        }
    }
    return status;
}

static void say_skipped(loop *l, const tr_step_result *r) {
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

// The checkpoint comes first: an evaluation that fails or is interrupted loses nothing.
static tr_status after_step(loop *l, const tr_step_result *r) {
    tr_status status = note_step(l, r);
    if (r->skipped) {
        say_skipped(l, r);
    }
    tr__progress_step(&l->line, l->engine, r);
    bool save_due =
        is_due(l->engine->settings->checkpoint_every, r->step) || is_last(l, r->step);
    if (status == TR_OK && save_due) {
        status = save(l);
    }
    return status == TR_OK ? evaluate(l, r->step) : status;
}

// Which step of this process has a trace, from 1; 0: none. The first one touches memory
// for the first time.
static int64_t traced_step(const loop *l) {
    const tr_settings *settings = l->engine->settings;
    bool one = settings->steps - l->engine->count.step == 1;
    if (!settings->trace) {
        return 0;
    }
    return settings->trace_step > 0 ? settings->trace_step : one ? 1 : 2;
}

static tr_status run_steps(loop *l) {
    tr_engine *engine = l->engine;
    int64_t number = 0, traced = traced_step(l);
    // What a stopped run owes.
    tr_status status = engine->count.step > 0 ? evaluate(l, engine->count.step) : TR_OK;
    while (status == TR_OK && !is_last(l, engine->count.step)) {
        tr_step_result result;
        bool watched = ++number == traced;
        status = watched ? tr_engine_watch(engine, l->err) : TR_OK;
        if (status == TR_OK) {
            status = tr__engine_step_until(engine, l->stop, l->user, &result, l->err);
        }
        if (status == TR_OK && watched) {
            status = tr_engine_write_trace(engine, engine->settings->trace, l->err);
        }
        if (status == TR_OK) {
            status = after_step(l, &result);
        }
    }
    if (status == TR_OK && number < traced) {
        tr__warn(tr__run_log(engine->run),
                 "no trace: step %" PRId64
                 " was asked for, the run ended after %" PRId64,
                 traced, number);
    }
    return status;
}

// The unfinished step is dropped; what is saved is the last applied update.
static tr_status interrupted(loop *l) {
    tr_error later = {0};
    tr_error *first = l->err;
    l->err = &later;
    tr_status status = save(l);
    l->err = first;
    if (status == TR_OK) {
        tr__progress_say(&l->line, "interrupted; checkpoint of step %" PRId64 " saved",
                         l->saved_step);
        return TR_INTERRUPTED;
    }
    if (first) {
        *first = later;
    }
    return status;
}

// What the old metrics tell of evaluations, all ranks must know: they make them
// together.
static tr_status open_outputs(loop *l) {
    const tr_engine *engine = l->engine;
    int64_t step = engine->count.step;
    tr_error mine = {0};
    l->saved_step = step > 0 ? step : -1;
    tr_status status = tr__run_write(engine->run, engine->plan, &mine);
    if (status == TR_OK && tr__comm_leads(l->comm)) {
        status = tr__metrics_open(engine->settings->out, step, &l->metrics,
                                  &l->evaluated_step, &mine);
    }
    status = tr__agree(l->comm, status, &mine, l->err);
    return status == TR_OK && l->comm
               ? tr__comm_broadcast(l->comm, 0, &l->evaluated_step,
                                    sizeof l->evaluated_step, l->err)
               : status;
}

static void say_begin(loop *l) {
    const tr_engine *engine = l->engine;
    tr__progress_say(&l->line, "ready in %.2f s", tr__run_seconds(engine->run));
    if (is_last(l, engine->count.step)) {
        tr__progress_say(&l->line,
                         "step %" PRId64 " of %" PRId64 ": this run is complete; raise "
                         "\"steps\" or \"epochs\" to train on",
                         engine->count.step, engine->settings->steps);
    }
}

tr_status tr_engine_train(tr_engine *engine, bool (*stop)(void *user), void *user,
                          tr_error *err) {
    loop l = {.engine = engine,
              .comm = engine->comm,
              .metrics = {.file = -1},
              .stop = stop,
              .user = user,
              .err = err};
    tr_status status = open_outputs(&l);
    if (status != TR_OK) {
        tr__metrics_close(&l.metrics);
        return status;
    }
    tr__progress_begin(&l.line, tr__comm_leads(l.comm) ? stdout : NULL, engine);
    say_begin(&l);
    status = run_steps(&l);
    if (status == TR_INTERRUPTED) {
        status = interrupted(&l);
    }
    tr__progress_end(&l.line);
    tr__metrics_close(&l.metrics);
    return status;
}
