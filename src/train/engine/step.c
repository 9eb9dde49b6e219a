// One optimizer step: a walk of the plan, what the engine decides in it, and what
// follows from that.
#include "base/arguments.h"
#include "base/clock.h"
#include "comm/alone.h"
#include "plan/print/print.h"
#include "train/engine/attempt.h"
#include "train/loss_seed.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- the decision

static tr_spread spread_of(const tr_step_statistics *statistics,
                           tr_statistics_flag flag) {
    return (tr_spread){statistics->least[flag], statistics->mean[flag],
                       statistics->most[flag]};
}

static void fill_result(tr_engine *engine, const tr_batch *batch,
                        const tr_step_statistics *statistics, tr_step_result *result) {
    const double *sums = statistics->sums;
    engine->unscale =
        engine->seed_power / (engine->scale.scale * fmax(sums[TR_SUM_COUNT], 1));
    *result = (tr_step_result){
        .size = sizeof *result,
        .step = engine->count.step + 1,
        .update = engine->count.update,
        .epoch = batch->epoch,
        .batch = batch->count,
        .train_batch = engine->batcher.batch,
        .samples = batch->next,
        .targets = sums[TR_SUM_COUNT],
        .loss = tr__plain(sums[TR_SUM_LOSS] / sums[TR_SUM_COUNT]),
        .accuracy = tr__plain(sums[TR_SUM_CORRECT] / sums[TR_SUM_COUNT]),
        .loss_scale = engine->scale.scale,
        .rank_seconds = spread_of(statistics, TR_STATISTICS_SECONDS),
        .rank_wait_seconds = spread_of(statistics, TR_STATISTICS_WAIT),
        .rank_peak_bytes = spread_of(statistics, TR_STATISTICS_PEAK),
    };
}

// Everything after the norm is known: invariant 2's one multiplication, clipping
// (DeepSpeed's divisor max(1, (norm + 1e-6) / clip)), and whether to update at all.
static double clip(const tr_engine *engine, const tr_step_statistics *statistics,
                   tr_step_result *result) {
    double unscale = engine->unscale;
    result->grad_norm = statistics->not_finite
                            ? NAN
                            : tr__plain(sqrt(statistics->norm_squares) * unscale);
    result->skipped = !isfinite(result->grad_norm) || !isfinite(result->loss);
    double divisor = 1;
    if (engine->settings->clip > 0) {
        divisor = fmax(1, (result->grad_norm + 1e-6) / engine->settings->clip);
    }
    return unscale / divisor;
}

// Whether the step counts. Whatever comes of it, its result is known then.
static tr_status judge(tr_step_attempt *a, double *grad_scale, tr_error *err) {
    tr_engine *engine = a->engine;
    engine->save_asked = a->statistics.save_asked;
    fill_result(engine, &a->batch, &a->statistics, a->result);
    *grad_scale = clip(engine, &a->statistics, a->result);
    a->overflow = a->result->skipped; // the guard may skip what is finite
    tr_status status = tr__engine_guard(engine, a->result, err);
    if (status == TR_OK) {
        tr__engine_measure(engine, &a->statistics, a->result);
    }
    return status;
}

// All ranks have the same statistics, and decide alike.
static tr_status decide(void *user, tr_decision *decision, tr_error *err) {
    tr_step_attempt *a = user;
    tr_engine *engine = a->engine;
    double grad_scale = 0;
    *decision = TR_DECIDE_END;
    tr__executor_statistics(engine->executor, &a->statistics);
    a->stopped = a->statistics.stopped;
    a->too_large = a->statistics.too_large && !a->statistics.not_finite;
    if (a->stopped || a->too_large) {
        return TR_OK;
    }
    tr_status status = judge(a, &grad_scale, err);
    if (status != TR_OK) {
        return status;
    }
    a->result->lr = tr__engine_order(engine, engine->count.update + 1, grad_scale);
    if (!a->result->skipped) {
        bool defers = engine->defers && tr__executor_works_beside(engine->executor);
        *decision = defers ? TR_DECIDE_DEFER : TR_DECIDE_APPLY;
    }
    return TR_OK;
}

// ---- the walk

static bool is_asked(void *user) {
    return tr__is_asked(&((tr_step_attempt *)user)->ask);
}

// All ranks know that the step was stopped. Because a sample could not be read (of
// `status`), on whichever of them, or because somebody asked for it?
static tr_status say_stopped(tr_engine *engine, tr_status status, const tr_error *mine,
                             tr_error *err) {
    status = tr__agree(engine->comm, status, mine, err);
    engine->unread = status == TR_DATA || status == TR_IO;
    return status == TR_OK ? tr_fail(err, TR_INTERRUPTED, "interrupted") : status;
}

void tr__attempt_walk(tr_step_attempt *a, tr_run_context *context,
                      tr_walk_calls *calls) {
    tr_engine *engine = a->engine;
    *context = (tr_run_context){
        .seed = engine->settings->seed,
        .step = (uint64_t)engine->count.step,
        .loss_seed = (float)(engine->scale.scale / engine->seed_power),
    };
    *calls = (tr_walk_calls){.stop = is_asked, .decide = decide, .user = a};
    a->stopped = a->too_large = false;
    tr__engine_fix(engine);
    engine->summed_exponent = engine->fixed_exponent;
}

tr_status tr__attempt_walked(tr_step_attempt *a, tr_status status, const tr_error *mine,
                             tr_error *err) {
    tr_engine *engine = a->engine;
    bool unread = tr__executor_is_unread(engine->executor);
    bool here = engine->comm && (unread || status == TR_INTERRUPTED);
    if (a->stopped || here) {
        return say_stopped(engine, unread ? status : TR_OK, mine, err);
    }
    engine->unread = unread;
    return status == TR_INTERNAL ? tr_fail(err, status, "step %" PRId64 ": %s",
                                           engine->count.step + 1, mine->message)
           : status != TR_OK     ? tr_fail(err, status, "%s", mine->message)
                                 : TR_OK;
}

static tr_status walk_once(tr_step_attempt *a, tr_error *err) {
    tr_executor *executor = a->engine->executor;
    tr_run_context context;
    tr_walk_calls calls;
    tr_error mine = {0};
    tr__attempt_walk(a, &context, &calls);
    tr_status status =
        tr__executor_run(executor, TR_SEQUENCE_TRAIN, &context, &calls, &mine);
    return tr__attempt_walked(a, status, &mine, err);
}

// Again with coarser sums as long as gradients do not fit into them.
static tr_status walk_until_fit(tr_step_attempt *a, tr_error *err) {
    tr_engine *engine = a->engine;
    tr_status status = walk_once(a, err);
    while (status == TR_OK && a->too_large) {
        engine->fixed_exponent = tr__engine_coarser(engine->fixed_exponent);
        status = tr__engine_start_feed(engine, err);
        if (status == TR_OK) {
            status = walk_once(a, err);
        }
    }
    return status;
}

// ---- what follows

static void count_update(const tr_step_attempt *a) {
    tr_engine *engine = a->engine;
    size_t groups = engine->settings->group_count;
    if (a->result->skipped) {
        engine->count.skipped++;
        return;
    }
    engine->count.learned += a->result->batch;
    tr__guard_updated(&engine->guard);
    memcpy(engine->power, engine->next_power, groups * sizeof *engine->power);
    a->result->update = ++engine->count.update;
    engine->stale_params = true;
    engine->fixed_exponent =
        tr__engine_next_exponent(engine, sqrt(a->statistics.norm_squares));
}

// The loss scale of the next step; fixed-point sums move with it. A step without a
// target says nothing about it.
static tr_status scale_after(const tr_step_attempt *a, tr_error *err) {
    tr_engine *engine = a->engine;
    double before = engine->scale.scale;
    tr_status status = TR_OK;
    tr__plan_blame(engine->plan, a->overflow ? a->statistics.first_bad : 0,
                   engine->blame, sizeof engine->blame);
    if (a->result->targets > 0) {
        status = tr__loss_scale_after(&engine->settings->scale, a->overflow,
                                      &engine->scale, err);
    }
    engine->fixed_exponent -= (int)lround(log2(engine->scale.scale / before));
    return status;
}

static void add_to_epoch(tr_engine *engine, const tr_step_result *r) {
    tr_epoch_sums *sums = &engine->epoch;
    if (r->epoch != sums->epoch) {
        *sums = (tr_epoch_sums){.epoch = r->epoch};
    }
    if (!r->skipped) {
        sums->loss += r->loss * r->targets;
        sums->correct += r->accuracy * r->targets;
        sums->targets += r->targets;
    }
    sums->seconds += r->seconds;
}

static double data_waits(const tr_engine *engine) {
    return engine->feed ? tr__feed_waits(engine->feed).seconds : 0;
}

// A loss outside of the model is a mean over each micro-batch.
static void scale_means(tr_engine *engine) {
    const tr_plan_request *r = &engine->plan->request;
    if (engine->plan->hands_out) {
        engine->seed_power =
            tr__loss_seed_power_of_means(r->accumulation_steps * tr__data_ranks(r));
    }
}

void tr__attempt_begin(tr_step_attempt *a, tr_engine *engine, const tr_asking *ask,
                       tr_step_result *result) {
    scale_means(engine);
    *a = (tr_step_attempt){.engine = engine,
                           .ask = *ask,
                           .batch =
                               tr__batcher_next(&engine->batcher, engine->count.cursor),
                           .result = result,
                           .begin = tr__seconds(),
                           .waited = data_waits(engine)};
}

tr_status tr__attempt_end(tr_step_attempt *a, tr_error *err) {
    tr_engine *engine = a->engine;
    tr_step_result *result = a->result;
    count_update(a);
    tr_status status = scale_after(a, err);
    if (status == TR_OK) {
        status = tr__engine_skipped(engine, result, a->overflow, err);
    }
    if (status == TR_OK) {
        engine->count.step++;
        engine->count.cursor = a->batch.next;
        result->seconds = tr__seconds() - a->begin;
        result->wait_seconds = data_waits(engine) - a->waited;
        add_to_epoch(engine, result);
    }
    return status;
}

static tr_status run_step(tr_engine *engine, const tr_asking *ask,
                          tr_step_result *result, tr_error *err) {
    tr_step_attempt a;
    tr__attempt_begin(&a, engine, ask, result);
    tr_status status = walk_until_fit(&a, err);
    return status == TR_OK ? tr__attempt_end(&a, err) : status;
}

tr_status tr__attempt_fail(tr_engine *engine, tr_status status, const tr_error *mine,
                           tr_error *err) {
    engine->stale_feed = true;
    if (engine->unread) { // which all ranks know
        return tr_fail(err, status, "%s", mine->message);
    }
    return tr__engine_end_work(engine, status, mine, err);
}

tr_status tr__attempt_prepare(tr_engine *engine, tr_error *err) {
    tr_error mine = {0};
    engine->unread = false;
    tr_status status = tr__engine_follow_batch(engine, err);
    if (status != TR_OK || !engine->stale_feed) {
        return status;
    }
    status = tr__engine_start_feed(engine, &mine);
    return status == TR_OK ? TR_OK : tr__attempt_fail(engine, status, &mine, err);
}

tr_status tr__engine_step_until(tr_engine *engine, bool (*stop)(void *user), void *user,
                                tr_step_result *result, tr_error *err) {
    tr_asking ask = {engine->comm, stop, user};
    tr_error mine = {0};
    tr_status status = tr__attempt_prepare(engine, err);
    if (status != TR_OK) {
        return status;
    }
    status = run_step(engine, &ask, result, &mine);
    return status == TR_OK ? TR_OK : tr__attempt_fail(engine, status, &mine, err);
}

tr_status tr_engine_step(tr_engine *engine, tr_step_result *result, tr_error *err) {
    static const char name[] = "tr_engine_step";
    static const tr_sized known = {"tr_step_result", "TR_STEP_RESULT_INIT",
                                   sizeof *result, 0};
    tr_step_result made = TR_STEP_RESULT_INIT;
    tr_status status = tr__engine_need(engine, result, name, "result", err);
    status = status == TR_OK ? tr__need_sized(result, &known, name, err) : status;
    status = status == TR_OK
                 ? tr__engine_enter_to_step(engine, result, name, "result", err)
                 : status;
    if (status != TR_OK) {
        return status;
    }
    status = tr__engine_need_loss(engine, name, err);
    if (status == TR_OK) {
        status =
            tr__engine_step_until(engine, engine->stop, engine->stop_user, &made, err);
    }
    if (status == TR_OK) {
        tr__give_sized(result, &made);
    }
    tr__engine_leave(engine, status, err);
    return status;
}
