#include "train/state/saver.h"

#include "base/clock.h"
#include "comm/alone.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>

// ---- writing

static void saving(void *user, int64_t done, int64_t total) {
    tr__progress_work(user, "saving a checkpoint", done, total);
}

static double next_time(const tr_saver *saver) {
    double minutes = saver->engine->settings->checkpoint_minutes;
    return minutes > 0 ? tr__seconds() + 60 * minutes : INFINITY;
}

tr_status tr__saver_save(tr_saver *saver, tr_error *err) {
    tr_engine *engine = saver->engine;
    if (saver->off || saver->saved_step == engine->count.step) {
        return TR_OK;
    }
    double begin = tr__seconds();
    const tr_progress progress = {saving, saver->line};
    tr__progress_hide(saver->line); // warnings may come
    saving(saver->line, 0, 0);
    if (saver->metrics) {
        tr__monitors_flush(&saver->metrics->monitors);
    }
    tr_status status = tr__engine_save(engine, &(tr_save_options){0}, &progress, err);
    tr__progress_show(saver->line);
    saver->next = next_time(saver);
    saver->owes = false;
    if (status == TR_OK) {
        saver->saved_step = engine->count.step;
        if (tr__seconds() - begin > 1) {
            tr__progress_say(saver->line,
                             "step %" PRId64 ": checkpoint saved in %.1f s",
                             saver->saved_step, tr__seconds() - begin);
        }
    }
    return status;
}

// A checkpoint on the way. The disk may be full for a while: the training goes on, and
// the checkpoints before are as they were.
static tr_status try_to_save(tr_saver *saver, tr_error *err) {
    tr_error problem = {0};
    tr_status status = tr__saver_save(saver, &problem);
    if (status != TR_IO && status != TR_MEMORY) {
        return status == TR_OK ? TR_OK : tr_fail(err, status, "%s", problem.message);
    }
    tr__progress_hide(saver->line);
    if (saver->saved_step < 0) {
        tr__warn(tr__run_log(saver->engine->run),
                 "step %" PRId64 ": no checkpoint: %.700s; training goes on until the "
                 "next try, and there is none yet",
                 saver->engine->count.step, problem.message);
    } else {
        tr__warn(tr__run_log(saver->engine->run),
                 "step %" PRId64 ": no checkpoint: %.700s; training goes on until the "
                 "next try, and that of step %" PRId64 " stays the last",
                 saver->engine->count.step, problem.message, saver->saved_step);
    }
    tr__progress_show(saver->line);
    return TR_OK;
}

// ---- when

// One more overflow, or one more spike, would end the run.
static bool is_risky(const tr_engine *engine) {
    const tr_loss_scale_rules *scale = &engine->settings->scale;
    const tr_guard_rules *guard = &engine->settings->guard;
    bool overflow = scale->dynamic && engine->scale.scale <= scale->minimum &&
                    engine->scale.hysteresis <= 1;
    bool spike = guard->action != TR_GUARD_NONE &&
                 engine->guard.pressure + 1 > (double)guard->limit;
    return overflow || spike;
}

void tr__saver_begin(tr_saver *saver, tr_engine *engine, tr_progress_line *line,
                     double best_loss) {
    int64_t step = engine->count.step;
    *saver = (tr_saver){.engine = engine,
                        .line = line,
                        .saved_step = step > 0 ? step : -1,
                        .risky = is_risky(engine),
                        .best_loss = best_loss};
    saver->next = next_time(saver);
}

void tr__saver_ask(tr_saver *saver) {
    tr_engine *engine = saver->engine;
    tr__executor_ask(engine->executor,
                     tr__comm_leads(engine->comm) && tr__seconds() >= saver->next);
}

tr_status tr__saver_before(tr_saver *saver, tr_error *err) {
    const tr_engine *engine = saver->engine;
    int64_t batch = tr__engine_next_batcher(engine).batch;
    bool larger = batch > engine->batcher.batch;
    return larger && engine->count.step > 0 && engine->count.in_row == 0
               ? try_to_save(saver, err)
               : TR_OK;
}

// While updates are skipped one after the other, a checkpoint waits for one that is
// applied: the weights may be those of a run that has diverged, and good checkpoints
// would be deleted for them.
tr_status tr__saver_after(tr_saver *saver, bool last, tr_error *err) {
    const tr_engine *engine = saver->engine;
    bool risky = is_risky(engine);
    saver->owes |= tr__is_due(engine->settings->checkpoint_every, engine->count.step) ||
                   engine->save_asked || (risky && !saver->risky);
    saver->risky = risky;
    if (last) {
        return tr__saver_save(saver, err);
    }
    return saver->owes && engine->count.in_row == 0 ? try_to_save(saver, err) : TR_OK;
}

// ---- the best

int64_t tr__saver_best_step(const tr_engine *engine) {
    char folder[PATH_MAX], name[TR_STEP_NAME_MAX];
    bool there = tr__checkpoints_path(engine->settings->out, folder, NULL) == TR_OK &&
                 tr__link_read(folder, TR_LINK_BEST, name);
    return there ? tr__step_number(name) : -1;
}

static tr_status point_best(const tr_engine *engine, tr_error *err) {
    char folder[PATH_MAX], name[TR_STEP_NAME_MAX];
    tr_status status = tr__checkpoints_path(engine->settings->out, folder, err);
    tr__step_name(engine->count.step, TR_STEP_PLAIN, name);
    return status == TR_OK ? tr__link_write(folder, TR_LINK_BEST, name, err) : status;
}

tr_status tr__saver_judge(tr_saver *saver, double loss, tr_error *err) {
    tr_engine *engine = saver->engine;
    tr_error mine = {0};
    if (saver->off || !engine->settings->checkpoint_best ||
        !(loss < saver->best_loss)) {
        return TR_OK;
    }
    tr_status status = try_to_save(saver, err);
    if (status != TR_OK || saver->saved_step != engine->count.step) {
        return status;
    }
    if (tr__comm_leads(engine->comm)) {
        status = point_best(engine, &mine);
    }
    status = tr__agree(engine->comm, status, &mine, err);
    if (status == TR_OK) {
        saver->best_loss = loss;
        tr__progress_say(saver->line,
                         "step %" PRId64 ": the lowest validation loss so far; "
                         "checkpoints/best leads there",
                         engine->count.step);
    }
    return status;
}
