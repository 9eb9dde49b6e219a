// A whole run: steps, metrics, evaluations and checkpoints until its end.
#include "base/clock.h"
#include "train/engine.h"
#include "train/metrics.h"
#include "train/progress.h"

#include <inttypes.h>

typedef struct loop {
    tr_engine *engine;
    tr_metrics metrics;
    tr_progress_line line;
    int64_t saved_step; // of the newest checkpoint
    tr_error *err;
} loop;

// An epoch ends with the step after which the next sample is of another one.
static tr_status note_epoch(loop *l, const tr_step_result *r) {
    const tr_batcher *batcher = tr__run_batcher(l->engine->run);
    const tr_epoch_sums *sums = &l->engine->epoch;
    if (tr__batcher_next(batcher, r->samples).epoch == r->epoch) {
        return TR_OK;
    }
    return tr__metrics_epoch(&l->metrics, r->step, r->epoch, sums->loss / sums->targets,
                             sums->correct / sums->targets, sums->seconds, l->err);
}

static tr_status evaluate(loop *l, int64_t step) {
    tr_evaluation result;
    tr_status status = tr_engine_evaluate(
        l->engine, l->engine->settings->evaluate_samples, &result, l->err);
    if (status == TR_OK) {
        status = tr__metrics_evaluation(&l->metrics, l->engine, step, &result, l->err);
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

static tr_status save(loop *l) {
    if (l->saved_step == l->engine->count.step) {
        return TR_OK;
    }
    double begin = tr__seconds();
    tr_status status = tr_engine_save(l->engine, l->err);
    if (status == TR_OK) {
        l->saved_step = l->engine->count.step;
        if (tr__seconds() - begin > 1) {
            tr__progress_say(&l->line, "step %" PRId64 ": checkpoint saved in %.1f s",
                             l->saved_step, tr__seconds() - begin);
        }
    }
    return status;
}

static tr_status after_step(loop *l, const tr_step_result *r) {
    const tr_settings *settings = l->engine->settings;
    bool last = r->step >= settings->steps;
    tr_status status = tr__metrics_step(&l->metrics, l->engine, r, l->err);
    if (status == TR_OK) {
        status = note_epoch(l, r);
    }
    if (r->skipped) {
        tr__progress_say(&l->line,
                         "step %" PRId64 ": %s: update skipped (%" PRId64
                         " skipped so far)",
                         r->step,
                         r->targets > 0 ? "loss or gradient is not finite"
                                        : "no sample of the batch has a target",
                         l->engine->count.skipped);
    }
    tr__progress_step(&l->line, l->engine, r);
    bool due = settings->evaluate_every > 0 && r->step % settings->evaluate_every == 0;
    if (status == TR_OK && tr__run_validation_data(l->engine->run) && (due || last)) {
        status = evaluate(l, r->step);
    }
    bool save_due =
        settings->checkpoint_every > 0 && r->step % settings->checkpoint_every == 0;
    if (status == TR_OK && (save_due || last)) {
        status = save(l);
    }
    return status;
}

static tr_status run_steps(loop *l, bool (*stop)(void *user), void *user) {
    while (l->engine->count.step < l->engine->settings->steps) {
        tr_step_result result;
        tr_status status =
            tr__engine_step_until(l->engine, stop, user, &result, l->err);
        if (status == TR_OK) {
            status = after_step(l, &result);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
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

tr_status tr_engine_train(tr_engine *engine, bool (*stop)(void *user), void *user,
                          tr_error *err) {
    loop l = {.engine = engine, .saved_step = -1, .err = err};
    tr_status status =
        tr__metrics_open(engine->settings->out, engine->count.step, &l.metrics, err);
    if (status != TR_OK) {
        return status;
    }
    if (engine->count.step > 0) {
        l.saved_step = engine->count.step;
    }
    tr__progress_begin(&l.line, stdout, engine);
    tr__progress_say(&l.line, "ready in %.2f s", tr__run_seconds(engine->run));
    status = run_steps(&l, stop, user);
    if (status == TR_INTERRUPTED) {
        status = interrupted(&l);
    }
    tr__progress_end(&l.line);
    tr__metrics_close(&l.metrics);
    return status;
}
