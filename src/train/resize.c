// Changes of the effective batch between two steps. Micro-batches keep their size, so
// another batch is another number of them. If that number stays, the plan does too.
// Else there is a new plan. Parameters, gradients and states keep their addresses, and
// memory grows if it is too small. An update that the last step has left to the next
// one is in the new plan, too. A batch that is short, at the end of an epoch, costs
// what it has: if that is far less, it has a plan of fewer micro-batches, and each rank
// keeps the rows that it has in the whole batch.
#include "base/arena.h"
#include "base/checked.h"
#include "comm/alone.h"
#include "train/engine.h"
#include "train/loss_seed.h"

// A step that is to be watched is watched in the new plan; without memory for that, not
// at all.
static void watch_anew(tr_engine *engine, const tr_plan *plan) {
    bool watched = engine->watch != NULL;
    tr__watch_destroy(engine->watch);
    engine->watch = NULL;
    if (watched) {
        tr__watch_create(plan, &engine->watch, NULL);
    }
    tr__executor_watch(engine->executor, engine->watch);
}

// What each rank does by itself.
static tr_status prepare(tr_engine *engine, const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    if (!tr__plans_same_places(engine->plan, plan)) {
        status =
            tr_fail(err, TR_USAGE,
                    "an effective batch of %lld has a plan that keeps parameters or "
                    "optimizer state in other places; changing to it during a run is "
                    "not yet supported",
                    (long long)plan->request.train_batch_size);
    }
    if (status == TR_OK) {
        tr__feed_destroy(engine->feed); // it fills memory that is about to move
        engine->feed = NULL;
        watch_anew(engine, plan);
        status = tr__arenas_fit(plan, engine->arenas, err);
    }
    return status == TR_OK
               ? tr__executor_replan(engine->executor, plan, engine->arenas, err)
               : status;
}

// The old plan again, for which there is room: in arenas that may have moved, and
// without a feed.
static void take_back(tr_engine *engine) {
    tr__executor_replan(engine->executor, engine->plan, engine->arenas, NULL);
    watch_anew(engine, engine->plan);
    engine->stale_feed = true;
}

void tr__engine_note_planned(tr_engine *engine) {
    const tr_ledger *ledger = tr_plan_ledger(engine->plan);
    for (int s = 0; s < TR_SPACES; s++) {
        engine->planned[s] = tr__max_i64(engine->planned[s], ledger->total[s]);
    }
}

// Goes over to a plan; without success the one at work stays. Collective.
static tr_status go_over(tr_engine *engine, const tr_plan *plan, tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_error mine = {0};
    tr_status status = prepare(engine, plan, &mine);
    status = tr__agree(comm, status, &mine, err);
    if (status != TR_OK) {
        take_back(engine);
        return status;
    }
    engine->plan = plan;
    engine->stale_feed = true;
    tr__engine_note_planned(engine);
    return TR_OK;
}

static tr_status take_plan(tr_engine *engine, int64_t batch, tr_error *err) {
    tr_plan *plan = NULL;
    tr_status status = tr__run_replan(engine->run, engine->whole, batch, &plan, err);
    if (status == TR_OK) {
        status = tr__run_agree(engine->run, plan, err);
    }
    if (status == TR_OK) {
        status = go_over(engine, plan, err);
    }
    if (status != TR_OK) {
        tr_plan_destroy(plan);
        return status;
    }
    tr_plan_destroy(engine->short_plan);
    tr_plan_destroy(engine->own_plan);
    engine->short_plan = NULL;
    engine->whole = engine->own_plan = plan;
    return TR_OK;
}

static void take_batch(tr_engine *engine, int64_t batch) {
    engine->fixed_exponent +=
        tr__engine_exponent_shift(engine, engine->batcher.batch, batch);
    engine->batcher.batch = batch;
    engine->seed_power = tr__loss_seed_power(engine->plan->request.model, batch);
}

tr_batcher tr__engine_next_batcher(const tr_engine *engine) {
    const tr_batches *batches = &engine->settings->batches;
    tr_batcher next = engine->batcher;
    if (batches->adaptive) {
        next.batch = engine->wanted_batch;
    } else if (batches->count > 0) {
        next.batch = tr__batches_at(batches, engine->count.step);
    }
    return next;
}

static tr_status follow(tr_engine *engine, tr_error *err) {
    int64_t batch = tr__engine_next_batcher(engine).batch;
    if (batch == engine->batcher.batch) {
        return TR_OK;
    }
    const tr_plan_request *r = &engine->whole->request;
    int64_t steps = tr__ceil_div(batch, r->micro_batch * tr__data_ranks(r));
    tr_status status =
        steps != r->accumulation_steps ? take_plan(engine, batch, err) : TR_OK;
    if (status == TR_OK) {
        take_batch(engine, batch);
        engine->stale_feed = true;
    }
    return status;
}

// ---- short batches

// What a micro-batch takes of each unit besides its floating-point operations, as so
// many of them: a microsecond or some.
static const double each_unit = 1e5;

// How many micro-batches the step that comes is to walk: those of rank 0 that have
// samples, of which no other rank has more; or all, where the others cost next to
// nothing.
static int64_t micros_walked(const tr_engine *engine) {
    const tr_plan_request *r = &engine->whole->request;
    int64_t all = r->accumulation_steps;
    tr_batch next = tr__batcher_next(&engine->batcher, engine->count.cursor);
    int64_t there = tr__min_i64(tr__ceil_div(next.count, r->micro_batch), all);
    double each = tr_plan_flops(engine->whole) / (double)all +
                  each_unit * (double)r->model->unit_count;
    return (double)(all - there) * each < engine->least_saving ? all : there;
}

// The plan of the whole batch with fewer micro-batches. Those that it leaves out would
// add zeros, so no bit of a sum depends on them. Collective.
static tr_status make_short(tr_engine *engine, int64_t micros, tr_error *err) {
    tr_plan_request request = engine->whole->request;
    tr_error mine = {0};
    tr_plan *plan = NULL;
    request.accumulation_steps = micros;
    request.wave = tr__min_i64(request.wave, micros);
    request.train_batch_size =
        tr__min_i64(request.train_batch_size,
                    micros * request.micro_batch * tr__data_ranks(&request));
    tr_status status = tr_plan_make(&request, &plan, &mine);
    status = tr__agree(tr__run_comm(engine->run), status, &mine, err);
    if (status == TR_OK) {
        status = tr__run_agree(engine->run, plan, err);
    }
    if (status != TR_OK) {
        tr_plan_destroy(plan);
        return status;
    }
    tr_plan_destroy(engine->short_plan);
    engine->short_plan = plan;
    return TR_OK;
}

static bool has_micros(const tr_plan *plan, int64_t micros) {
    return plan && plan->request.accumulation_steps == micros;
}

// Where no shorter plan can be had, the one of the whole batch walks what is not there,
// too: that costs time only.
static tr_status shorten(tr_engine *engine, tr_error *err) {
    int64_t micros = micros_walked(engine);
    tr_error why = {0};
    tr_status status = TR_OK;
    if (has_micros(engine->plan, micros)) {
        return TR_OK;
    }
    if (engine->plan != engine->whole) {
        status = go_over(engine, engine->whole, err);
    }
    if (status != TR_OK || has_micros(engine->whole, micros)) {
        return status;
    }
    if (!has_micros(engine->short_plan, micros)) {
        status = make_short(engine, micros, &why);
    }
    if (status == TR_OK) {
        status = go_over(engine, engine->short_plan, &why);
    }
    return status == TR_COMM ? tr_fail(err, status, "%s", why.message) : TR_OK;
}

tr_status tr__engine_follow_batch(tr_engine *engine, tr_error *err) {
    tr_status status = follow(engine, err);
    return status == TR_OK ? shorten(engine, err) : status;
}
