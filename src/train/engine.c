#include "train/engine.h"

#include "backend/cpu/team.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"

#include <math.h>
#include <string.h>

double tr__engine_seed_power(const tr_engine *engine, int64_t batch) {
    double least =
        (double)batch * (double)tr_model_targets(engine->plan->request.model);
    double power = 1;
    while (power < least) {
        power *= 2;
    }
    return power;
}

// How NVMe is read is for nobody to choose, but everybody to know.
static void say_nvme(const tr_engine *engine) {
    const tr_log *log = tr__run_log(engine->run);
    const char *folder = engine->settings->nvme_path;
    char bytes[32];
    bool direct = false;
    const char *method = tr__executor_nvme_method(engine->executor, &direct);
    if (method[0] == '\0') {
        return;
    }
    tr__print_size(bytes, sizeof bytes, engine->plan->arena_bytes[TR_SPACE_NVME]);
    tr__note(log, "NVMe: %s below %s, by %s", bytes, folder, method);
    if (strcmp(method, "threads") == 0) {
        tr__warn(log, "io_uring is not permitted here: NVMe is read and written by "
                      "threads");
    }
    if (!direct) {
        tr__warn(log,
                 "%s: its file system cannot be read past the page cache, which "
                 "takes memory beside the plan's",
                 folder);
    }
}

static tr_status allocate(tr_engine *engine, tr_error *err) {
    size_t groups = engine->settings->group_count;
    engine->power = tr__calloc(groups, sizeof *engine->power);
    engine->next_power = tr__calloc(groups, sizeof *engine->next_power);
    engine->hyper = tr__calloc(groups, sizeof *engine->hyper);
    if (!engine->power || !engine->next_power || !engine->hyper) {
        return tr_fail(err, TR_MEMORY, "no memory for the optimizer's groups");
    }
    for (size_t g = 0; g < groups; g++) {
        engine->power[g][0] = engine->power[g][1] = 1;
    }
    const tr_plan *plan = engine->plan;
    tr_status status = tr__arenas_create(plan, engine->arenas, err);
    if (status == TR_OK) {
        status =
            tr__executor_create(plan, engine->arenas, engine->comm,
                                engine->settings->nvme_path, &engine->executor, err);
    }
    if (status == TR_OK) {
        say_nvme(engine);
    }
    return status;
}

tr_status tr__engine_start_feed(tr_engine *engine, tr_error *err) {
    const tr_plan_request *r = &engine->plan->request;
    tr_feed_options options = {
        .dataset = tr__run_train_data(engine->run),
        .order = *tr__run_order(engine->run),
        .batcher = engine->batcher,
        .cursor = engine->count.cursor,
        .micro_batch = r->micro_batch,
        .first_micro = r->rank * engine->whole->request.accumulation_steps,
        .micros = r->accumulation_steps,
        .slots = engine->plan->slots[0],
        .memory = tr__executor_ring(engine->executor, 0),
    };
    tr__feed_destroy(engine->feed);
    engine->feed = NULL;
    tr_status status = tr__feed_create(&options, &engine->feed, err);
    engine->stale_feed = status != TR_OK;
    tr__executor_feed(engine->executor, 0, engine->feed);
    return status;
}

// A plan is one rank's of so many.
static tr_status check_rank(const tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_comm *comm = tr__run_comm(run);
    int64_t rank = comm ? tr_comm_rank(comm) : 0, ranks = tr__comm_count(comm);
    if (plan->request.rank == rank && plan->request.ranks == ranks) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "a plan for rank %lld of %lld was given to rank %lld of %lld",
                   (long long)plan->request.rank, (long long)plan->request.ranks,
                   (long long)rank, (long long)ranks);
}

// What each rank does by itself.
static tr_status prepare(tr_engine *engine, tr_run *run, const tr_plan *plan,
                         tr_error *err) {
    const tr_plan_request *r = &plan->request;
    engine->run = run;
    engine->settings = tr__run_settings(run);
    engine->plan = engine->whole = plan;
    engine->least_saving = TR_SHORT_SAVING;
    tr__engine_note_planned(engine);
    engine->comm = r->ranks > 1 ? tr__run_comm(run) : NULL;
    engine->scale = tr__loss_scale_begin(&engine->settings->scale);
    engine->batcher = *tr__run_batcher(run);
    engine->batcher.batch = engine->wanted_batch = r->train_batch_size;
    engine->seed_power = tr__engine_seed_power(engine, engine->batcher.batch);
    engine->guard = tr__guard_begin();
    engine->stale_params = true; // ranks draw or read their own parts
    engine->fixed_exponent = tr__engine_first_exponent(engine);
    tr_status status = tr__run_check_groups(run, plan, err);
    if (status == TR_OK) {
        status = tr__run_fits(run, plan, err);
    }
    if (status == TR_OK) {
        status = tr__run_open_companions(run, &engine->companions, err);
    }
    if (status == TR_OK) {
        status = allocate(engine, err);
    }
    return status == TR_OK ? tr__engine_ranges(engine, err) : status;
}

// Weights drawn or read, with no more threads than the ranks of a machine have room
// for.
static tr_status begin_or_resume(tr_engine *engine, tr_error *err) {
    int before = tr__team_begin(engine->plan->request.threads);
    tr_status status = tr__engine_resume(engine, err);
    if (status == TR_OK) {
        tr_error mine = {0};
        status = tr__executor_round(engine->executor, &mine);
        status = tr__agree(engine->comm, status, &mine, err);
    }
    tr__team_end(before);
    return status;
}

tr_status tr_engine_create(tr_run *run, const tr_plan *plan, tr_engine **out,
                           tr_error *err) {
    tr_comm *comm = tr__run_comm(run);
    tr_error mine = {0};
    tr_engine *engine = tr__calloc(1, sizeof *engine);
    tr_status status = engine ? check_rank(run, plan, &mine)
                              : tr_fail(&mine, TR_MEMORY, "no memory for the engine");
    status = tr__agree(comm, status, &mine, err);
    if (status == TR_OK) {
        status = tr__run_agree(run, plan, err);
    }
    if (status == TR_OK) {
        status = prepare(engine, run, plan, &mine);
        status = tr__agree(comm, status, &mine, err);
    }
    if (status == TR_OK) {
        status = begin_or_resume(engine, err);
    }
    if (status == TR_OK) {
        status = tr__engine_follow_batch(engine, err);
    }
    if (status == TR_OK && (engine->stale_feed || !engine->feed)) {
        status = tr__engine_start_feed(engine, &mine);
        status = tr__agree(comm, status, &mine, err);
    }
    if (status != TR_OK) {
        tr_engine_destroy(engine);
        return status;
    }
    *out = engine;
    return TR_OK;
}

void tr_engine_destroy(tr_engine *engine) {
    if (!engine) {
        return;
    }
    tr__feed_destroy(engine->feed);
    tr__executor_destroy(engine->executor);
    tr__watch_destroy(engine->watch);
    tr__companions_close(&engine->companions);
    tr__arenas_destroy(engine->arenas);
    tr__free(engine->power);
    tr__free(engine->next_power);
    tr__free(engine->hyper);
    tr__free(engine->ranges);
    tr_plan_destroy(engine->own_plan);
    tr_plan_destroy(engine->short_plan);
    tr__free(engine);
}

// ---- one step
// ------------------------------------------------------------------------

static tr_spread spread_of(const tr_step_statistics *statistics, tr_record_flag flag) {
    return (tr_spread){statistics->least[flag], statistics->mean[flag],
                       statistics->most[flag]};
}

static void fill_result(tr_engine *engine, const tr_batch *batch,
                        const tr_step_statistics *statistics, tr_step_result *result) {
    const double *sums = statistics->sums;
    engine->unscale =
        engine->seed_power / (engine->scale.scale * fmax(sums[TR_SUM_COUNT], 1));
    *result = (tr_step_result){
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
        .rank_seconds = spread_of(statistics, TR_RECORD_SECONDS),
        .rank_wait_seconds = spread_of(statistics, TR_RECORD_WAIT),
        .rank_peak_bytes = spread_of(statistics, TR_RECORD_PEAK),
    };
}

// Everything after the norm is known: invariant 2's one multiplication, clipping
// (DeepSpeed's divisor max(1, (norm + 1e-6) / clip)), and whether to update at all.
static double decide(const tr_engine *engine, const tr_step_statistics *statistics,
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

static tr_status apply(tr_engine *engine, const tr_run_context *context,
                       const tr_step_statistics *statistics, tr_step_result *result,
                       double grad_scale, tr_error *err) {
    size_t groups = engine->settings->group_count;
    int64_t number = engine->count.update + 1;
    result->lr = tr__engine_order(engine, number, grad_scale);
    if (result->skipped) {
        engine->count.skipped++;
        return TR_OK;
    }
    tr_status status = tr__executor_run(engine->executor, TR_SEQUENCE_TRAIN,
                                        engine->defers ? TR_WALK_LEAVE : TR_WALK_UPDATE,
                                        context, NULL, NULL, err);
    if (status == TR_OK) {
        engine->count.learned += result->batch;
        tr__guard_updated(&engine->guard);
        memcpy(engine->power, engine->next_power, groups * sizeof *engine->power);
        result->update = engine->count.update = number;
        engine->stale_params = true;
        engine->fixed_exponent =
            tr__engine_next_exponent(engine, sqrt(statistics->norm_squares));
    }
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

bool tr__is_asked(void *asking) {
    const tr_asking *a = asking;
    bool here = a->stop && a->stop(a->user);
    if (a->comm && here && !tr__comm_noticed(a->comm)) {
        tr__comm_notice(a->comm);
    }
    return here || (a->comm && tr__comm_noticed(a->comm));
}

// The word for an end has reached all ranks; what they do next is not asked for it.
static tr_status end_asked(tr_engine *engine, tr_error *err) {
    tr_status status = engine->comm ? tr__comm_notice_clear(engine->comm, err) : TR_OK;
    return status == TR_OK ? tr_fail(err, TR_INTERRUPTED, "interrupted") : status;
}

tr_status tr__engine_end_work(tr_engine *engine, tr_status status, const tr_error *mine,
                              tr_error *err) {
    if (status == TR_OK) {
        return TR_OK;
    }
    return status == TR_INTERRUPTED ? end_asked(engine, err)
                                    : tr__abandon(engine->comm, status, mine, err);
}

// All ranks know that the step was stopped. Because a sample could not be read (of
// `status`), on whichever of them, or because somebody asked for it?
static tr_status say_stopped(tr_engine *engine, tr_status status, const tr_error *mine,
                             tr_error *err) {
    status = tr__agree(engine->comm, status, mine, err);
    engine->unread = status == TR_DATA || status == TR_IO;
    return status == TR_OK ? tr_fail(err, TR_INTERRUPTED, "interrupted") : status;
}

// Forward, backward and norm, and what all ranks make of it.
static tr_status run_gradients(tr_engine *engine, const tr_run_context *context,
                               tr_asking *ask, tr_step_statistics *statistics,
                               tr_error *err) {
    tr__engine_fix(engine);
    tr_error mine = {0};
    tr_status status =
        tr__executor_run(engine->executor, TR_SEQUENCE_TRAIN, TR_WALK_WORK, context,
                         tr__is_asked, ask, &mine);
    bool unread = tr__executor_is_unread(engine->executor);
    bool walked = status == TR_OK || unread || status == TR_INTERRUPTED;
    if (!engine->comm || !walked) {
        engine->unread = unread;
        if (status != TR_OK) {
            return tr_fail(err, status, "%s", mine.message);
        }
    }
    tr__executor_statistics(engine->executor, statistics);
    return statistics->stopped
               ? say_stopped(engine, unread ? status : TR_OK, &mine, err)
               : TR_OK;
}

// The same; and again with coarser sums as long as gradients do not fit into them.
static tr_status run_until_fit(tr_engine *engine, const tr_run_context *context,
                               tr_asking *ask, tr_step_statistics *statistics,
                               tr_error *err) {
    tr_status status = run_gradients(engine, context, ask, statistics, err);
    while (status == TR_OK && statistics->too_large && !statistics->not_finite) {
        engine->fixed_exponent = tr__engine_coarser(engine->fixed_exponent);
        status = tr__engine_start_feed(engine, err);
        if (status == TR_OK) {
            status = run_gradients(engine, context, ask, statistics, err);
        }
    }
    return status;
}

// The loss scale of the next step; fixed-point sums move with it. A step without a
// target says nothing about it.
static tr_status scale_after(tr_engine *engine, const tr_step_statistics *statistics,
                             const tr_step_result *result, bool overflow,
                             tr_error *err) {
    double before = engine->scale.scale;
    tr_status status = TR_OK;
    tr__executor_blame(engine->executor, overflow ? statistics->first_bad : 0,
                       engine->blame, sizeof engine->blame);
    if (result->targets > 0) {
        status = tr__loss_scale_after(&engine->settings->scale, overflow,
                                      &engine->scale, err);
    }
    engine->fixed_exponent -= (int)lround(log2(engine->scale.scale / before));
    return status;
}

static tr_status run_step(tr_engine *engine, tr_asking *ask, tr_step_result *result,
                          tr_error *err) {
    double begin = tr__seconds();
    double waited = tr__feed_waits(engine->feed).seconds;
    tr_step_statistics statistics;
    tr_batch batch = tr__batcher_next(&engine->batcher, engine->count.cursor);
    tr_run_context context = {
        .seed = engine->settings->seed,
        .step = (uint64_t)engine->count.step,
        .loss_seed = (float)(engine->scale.scale / engine->seed_power),
    };
    tr_status status = run_until_fit(engine, &context, ask, &statistics, err);
    if (status != TR_OK) {
        return status;
    }
    engine->save_asked = statistics.save_asked;
    fill_result(engine, &batch, &statistics, result);
    double grad_scale = decide(engine, &statistics, result);
    bool overflow = result->skipped; // the guard may skip what is finite
    status = tr__engine_guard(engine, result, err);
    if (status != TR_OK) {
        return status;
    }
    tr__engine_measure(engine, &statistics, result);
    status = apply(engine, &context, &statistics, result, grad_scale, err);
    if (status == TR_OK) {
        status = scale_after(engine, &statistics, result, overflow, err);
    }
    if (status == TR_OK) {
        status = tr__engine_skipped(engine, result, overflow, err);
    }
    if (status == TR_OK) {
        engine->count.step++;
        engine->count.cursor = batch.next;
        result->seconds = tr__seconds() - begin;
        result->wait_seconds = tr__feed_waits(engine->feed).seconds - waited;
        add_to_epoch(engine, result);
    }
    return status;
}

tr_status tr__engine_step_until(tr_engine *engine, bool (*stop)(void *user), void *user,
                                tr_step_result *result, tr_error *err) {
    tr_asking ask = {engine->comm, stop, user};
    tr_error mine = {0};
    engine->unread = false;
    tr_status status = tr__engine_follow_batch(engine, err);
    if (status != TR_OK) {
        return status;
    }
    if (engine->stale_feed) {
        status = tr__engine_start_feed(engine, &mine);
    }
    if (status == TR_OK) {
        status = run_step(engine, &ask, result, &mine);
        engine->stale_feed = status != TR_OK;
    }
    if (status != TR_OK && engine->unread) { // which all ranks know
        return tr_fail(err, status, "%s", mine.message);
    }
    return tr__engine_end_work(engine, status, &mine, err);
}

tr_status tr__engine_settle(tr_engine *engine, tr_error *err) {
    tr_run_context context = {.seed = engine->settings->seed};
    tr_error mine = {0};
    if (!tr__executor_is_late(engine->executor)) {
        return TR_OK;
    }
    tr_status status = tr__executor_run(engine->executor, TR_SEQUENCE_TRAIN,
                                        TR_WALK_SETTLE, &context, NULL, NULL, &mine);
    return tr__engine_end_work(engine, status, &mine, err);
}

tr_status tr_engine_refresh(tr_engine *engine, tr_error *err) {
    const tr_sequence *fence = &engine->plan->sequences[TR_SEQUENCE_FENCE];
    tr_run_context context = {.seed = engine->settings->seed};
    tr_status settled = tr__engine_settle(engine, err);
    if (settled != TR_OK) {
        return settled;
    }
    if (!engine->stale_params || fence->count == 0) {
        return TR_OK;
    }
    tr_error mine = {0};
    tr_status status = tr__executor_run(engine->executor, TR_SEQUENCE_FENCE,
                                        TR_WALK_WORK, &context, NULL, NULL, &mine);
    engine->stale_params = status != TR_OK;
    return tr__engine_end_work(engine, status, &mine, err);
}

tr_status tr_engine_step(tr_engine *engine, tr_step_result *result, tr_error *err) {
    return tr__engine_step_until(engine, NULL, NULL, result, err);
}

// ---- asking
// --------------------------------------------------------------------------

const char *tr_engine_blame(const tr_engine *engine) {
    return engine->blame;
}

int64_t tr_engine_steps_done(const tr_engine *engine) {
    return engine->count.step;
}

const float *tr_engine_parameter(const tr_engine *engine, const char *name,
                                 int64_t *count) {
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        const tr_plan_param *param = &engine->plan->params[i];
        bool whole = tr_shape_equal(param->shape, param->stored_shape);
        if (whole && strcmp(param->stored, name) == 0) {
            if (count) {
                *count = param->count;
            }
            return tr__executor_param(engine->executor, (int)i, -1);
        }
    }
    return NULL;
}

int64_t tr_engine_arena_peak(const tr_engine *engine) {
    return (int64_t)tr__arena_high_water(engine->arenas[TR_SPACE_DEVICE]);
}

int64_t tr_engine_space_peak(const tr_engine *engine, tr_space space) {
    const tr_arena *arena = engine->arenas[space];
    int64_t data = space == TR_SPACE_HOST ? engine->plan->request.host_data_bytes : 0;
    return data + (arena ? (int64_t)tr__arena_high_water(arena) : 0);
}

int64_t tr_engine_process_peak(const tr_engine *engine) {
    (void)engine;
    return tr__process_peak();
}
