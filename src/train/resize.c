// Changes of the effective batch between two steps. Micro-batches keep their size, so
// another batch is another number of them. Where that number stays, the plan does too;
// else there is a new plan, whose parameters, gradients and states lie where they lay,
// in the same memory where that is large enough, or in more; an update that the last
// step has left to the next one is in the new plan, too.
#include "base/arena.h"
#include "base/checked.h"
#include "comm/alone.h"
#include "train/engine.h"

tr_status tr__plan_resize(const tr_run *run, const tr_plan *plan, int64_t batch,
                          tr_plan **out, tr_error *err) {
    const tr_plan_request *asked = &run->request;
    tr_plan_request request = plan->request;
    tr_plan *made = NULL;
    tr_error mine = {0};
    request.train_batch_size = batch;
    request.accumulation_steps =
        tr__ceil_div(batch, request.micro_batch * request.ranks);
    request.wave = tr__min_i64(asked->wave, request.accumulation_steps);
    request.measure = asked->measure;
    tr_status status = tr__run_choose_again(run, &request, err);
    if (status != TR_OK) {
        return status;
    }
    status = tr_plan_make(&request, &made, &mine);
    if (status == TR_OK) {
        status = tr__run_fits(run, made, &mine);
    }
    status = tr__agree(run->comm, status, &mine, err);
    if (status != TR_OK) {
        tr_plan_destroy(made);
        return status;
    }
    *out = made;
    return TR_OK;
}

static bool same_range(const tr_plan *a, const tr_flat_range *x, const tr_plan *b,
                       const tr_flat_range *y) {
    bool none = x->buffer < 0 && y->buffer < 0;
    if (none || x->buffer < 0 || y->buffer < 0) {
        return none;
    }
    const tr_buffer *p = &a->buffers[x->buffer], *q = &b->buffers[y->buffer];
    return x->first == y->first && x->count == y->count && p->space == q->space &&
           p->offset == q->offset && p->bytes == q->bytes;
}

// Does everything that outlives a step lie where it lay?
static bool same_places(const tr_plan *a, const tr_plan *b) {
    bool same = a->flat_count == b->flat_count;
    for (size_t f = 0; same && f < a->flat_count; f++) {
        const tr_flat *x = &a->flats[f], *y = &b->flats[f];
        same = x->count == y->count && same_range(a, &x->param, b, &y->param) &&
               same_range(a, &x->master, b, &y->master) &&
               same_range(a, &x->copy, b, &y->copy) &&
               same_range(a, &x->grad, b, &y->grad) &&
               same_range(a, &x->sums, b, &y->sums);
        for (int s = 0; same && s < a->request.optimizer_states; s++) {
            same = same_range(a, &x->state[s], b, &y->state[s]);
        }
    }
    for (int u = 0; same && u < a->unit_count; u++) {
        int x = a->units[u].states, y = b->units[u].states;
        same = x < 0 ? y < 0 : y >= 0 && a->buffers[x].offset == b->buffers[y].offset;
    }
    return same;
}

static tr_status grow(tr_engine *engine, const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int space = 0; space < TR_SPACE_NVME && status == TR_OK; space++) {
        size_t bytes = (size_t)plan->arena_bytes[space];
        if (!engine->arenas[space] && bytes > 0) {
            status = tr__arena_create(tr_space_name((tr_space)space), bytes,
                                      &engine->arenas[space], err);
        } else if (bytes > 0 && bytes > tr__arena_bytes(engine->arenas[space])) {
            status = tr__arena_grow(engine->arenas[space], bytes, err);
        }
    }
    return status;
}

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
    if (!same_places(engine->plan, plan)) {
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
        status = grow(engine, plan, err);
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

static tr_status take_plan(tr_engine *engine, int64_t batch, tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_plan *plan = NULL;
    tr_error mine = {0};
    tr_status status = tr__plan_resize(engine->run, engine->plan, batch, &plan, err);
    if (status == TR_OK) {
        status = prepare(engine, plan, &mine);
        status = tr__agree(comm, status, &mine, err);
    }
    if (status == TR_OK) {
        status = tr__run_agree(engine->run, plan, err);
    }
    if (status != TR_OK) {
        take_back(engine);
        tr_plan_destroy(plan);
        return status;
    }
    tr_plan_destroy(engine->own_plan);
    engine->plan = engine->own_plan = plan;
    return TR_OK;
}

static void take_batch(tr_engine *engine, int64_t batch) {
    engine->fixed_exponent +=
        tr__engine_exponent_shift(engine, engine->batcher.batch, batch);
    engine->batcher.batch = batch;
    engine->seed_power = tr__engine_seed_power(engine, batch);
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

tr_status tr__engine_follow_batch(tr_engine *engine, tr_error *err) {
    int64_t batch = tr__engine_next_batcher(engine).batch;
    if (batch == engine->batcher.batch) {
        return TR_OK;
    }
    const tr_plan_request *r = &engine->plan->request;
    tr_error mine = {0};
    int64_t steps = tr__ceil_div(batch, r->micro_batch * r->ranks);
    tr_status status = TR_OK;
    if (steps != r->accumulation_steps) {
        status = take_plan(engine, batch, err);
    }
    if (status != TR_OK) {
        return status;
    }
    take_batch(engine, batch);
    status = tr__engine_start_feed(engine, &mine);
    return tr__agree(tr__run_comm(engine->run), status, &mine, err);
}
