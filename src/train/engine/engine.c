#include "train/engine.h"

#include "backend/backend.h"
#include "base/arguments.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"
#include "train/loss_seed.h"

#include <string.h>

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
                 "%s: this file system has no direct I/O (O_DIRECT), so the page cache "
                 "takes memory beside the plan's",
                 folder);
    }
}

static tr_status allocate(tr_engine *engine, tr_error *err) {
    size_t groups = engine->settings->group_count;
    engine->power = tr__calloc(groups, sizeof *engine->power);
    engine->next_power = tr__calloc(2 * groups, sizeof *engine->next_power);
    engine->hyper = tr__calloc(2 * groups, sizeof *engine->hyper);
    engine->own_rate = tr__calloc(groups, sizeof *engine->own_rate);
    if (!engine->power || !engine->next_power || !engine->hyper || !engine->own_rate) {
        return tr_fail(err, TR_MEMORY, "no memory for the optimizer's groups");
    }
    for (size_t g = 0; g < groups; g++) {
        engine->power[g][0] = engine->power[g][1] = 1;
        engine->own_rate[g] = NAN;
    }
    const tr_plan *plan = engine->plan;
    tr_status status = tr__arenas_fit(plan, engine->arenas, err);
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
    if (!tr__run_train_data(engine->run)) { // they come from the caller
        engine->stale_feed = false;
        return TR_OK;
    }
    tr_feed_options options = {
        .dataset = tr__run_train_data(engine->run),
        .batch = &engine->plan->batch,
        .model = r->model,
        .order = *tr__run_order(engine->run),
        .batcher = engine->batcher,
        .cursor = engine->count.cursor,
        .micro_batch = r->micro_batch,
        .first_micro = tr__data_rank(r) * engine->whole->request.accumulation_steps,
        .micros = r->accumulation_steps,
        .rounds = tr__plan_rounds(engine->plan),
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
    int64_t planned = tr_mesh_rank(&plan->request.mesh);
    int64_t all = tr_mesh_ranks(&plan->request.mesh);
    if (planned == rank && all == ranks) {
        return TR_OK;
    }
    return tr_fail(
        err, TR_USAGE, "a plan for rank %lld of %lld was given to rank %lld of %lld",
        (long long)planned, (long long)all, (long long)rank, (long long)ranks);
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
    engine->comm = tr_mesh_ranks(&r->mesh) > 1 ? tr__run_comm(run) : NULL;
    engine->scale = tr__loss_scale_begin(&engine->settings->scale);
    engine->batcher = *tr__run_batcher(run);
    engine->batcher.batch = engine->wanted_batch = r->train_batch_size;
    engine->seed_power =
        tr__loss_seed_power(plan->request.model, engine->batcher.batch);
    engine->guard = tr__guard_begin();
    engine->stale_params = true; // ranks draw or read their own parts
    engine->fixed_exponent = tr__engine_first_exponent(engine);
    tr_status status = tr__run_check_patterns(run, plan, err);
    if (status == TR_OK) {
        status = tr__run_fits(run, plan, err);
    }
    if (status == TR_OK) {
        status = tr__run_open_companions(run, &engine->companions, err);
    }
    if (status == TR_OK) {
        status = allocate(engine, err);
    }
    if (status == TR_OK) {
        status = tr__engine_take_parts(engine, err);
    }
    return status == TR_OK ? tr__engine_ranges(engine, err) : status;
}

// Weights drawn or read, with no more threads than the ranks of a machine have room
// for.
static tr_status begin_or_resume(tr_engine *engine, tr_error *err) {
    const tr_target *target = &engine->plan->target;
    const tr_backend *backend = tr__backend(target->backend);
    int before = backend->begin(target->workers);
    tr_status status = tr__engine_resume(engine, err);
    if (status == TR_OK) {
        tr_error mine = {0};
        status = tr__executor_round(engine->executor, &mine);
        status = tr__agree(engine->comm, status, &mine, err);
    }
    backend->end(before);
    return status;
}

static tr_status check_arguments(const tr_run *run, const void *out, tr_error *err) {
    static const char name[] = "tr_engine_create";
    tr_status status = tr__run_need_resolved(run, name, err);
    return status == TR_OK ? tr__need(out, name, "out", err) : status;
}

// With the caller's plan, or one of its own.
static tr_status begin(tr_engine *engine, const tr_run *run, const tr_plan *plan,
                       tr_error *err) {
    tr__turn_begin(&engine->turn);
    engine->whole = plan;
    if (!plan) {
        tr_status status = tr_run_make_plan(run, &engine->made_plan, err);
        if (status != TR_OK) {
            return status;
        }
        engine->whole = engine->made_plan;
    }
    return check_rank(run, engine->whole, err);
}

tr_status tr_engine_create(tr_run *run, const tr_plan *plan, tr_engine **out,
                           tr_error *err) {
    tr_status status = check_arguments(run, out, err);
    if (status != TR_OK) {
        return status;
    }
    tr_comm *comm = tr__run_comm(run);
    tr_error mine = {0};
    tr_engine *engine = tr__calloc(1, sizeof *engine);
    status = engine ? begin(engine, run, plan, &mine)
                    : tr_fail(&mine, TR_MEMORY, "no memory for the engine");
    status = tr__agree(comm, status, &mine, err);
    if (status == TR_OK) {
        status = tr__run_agree(run, engine->whole, err);
    }
    if (status == TR_OK) {
        status = prepare(engine, run, engine->whole, &mine);
        status = tr__agree(comm, status, &mine, err);
    }
    if (status == TR_OK) {
        status = tr__executor_join(engine->executor, err);
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

// A child of fork() has neither the engine's threads nor what they work on.
void tr_engine_destroy(tr_engine *engine) {
    if (!engine || !tr__turn_is_here(&engine->turn)) {
        return;
    }
    tr__engine_end_parts(engine);
    tr__feed_destroy(engine->feed);
    tr__executor_destroy(engine->executor);
    tr__watch_destroy(engine->watch);
    tr__companions_close(&engine->companions);
    tr__arenas_destroy(engine->arenas);
    tr__free(engine->power);
    tr__free(engine->next_power);
    tr__free(engine->hyper);
    tr__free(engine->own_rate);
    tr__free(engine->ranges);
    tr__free(engine->matrix_parts);
    tr_plan_destroy(engine->made_plan);
    tr_plan_destroy(engine->own_plan);
    tr_plan_destroy(engine->short_plan);
    tr__free(engine);
}

const tr_plan *tr_engine_plan(const tr_engine *engine) {
    return engine ? engine->whole : NULL;
}
