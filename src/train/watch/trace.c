// The trace of a step, put together from all ranks.
#include "base/files.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "train/engine.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

tr_status tr_engine_watch(tr_engine *engine, tr_error *err) {
    tr_status given = tr__engine_need(engine, engine, "tr_engine_watch", "engine", err);
    if (given != TR_OK) {
        return given;
    }
    tr_error mine = {0};
    tr_status status =
        engine->watch ? TR_OK : tr__watch_create(engine->plan, &engine->watch, &mine);
    status = tr__agree(engine->comm, status, &mine, err);
    if (status == TR_OK) {
        engine->watch->count = 0;
        tr__executor_watch(engine->executor, engine->watch);
    }
    return status;
}

// ---- what all ranks have noted

// What every rank has noted; `most`: of one, the others' are followed by nothing.
typedef struct noted {
    int64_t *counts; // [ranks]
    tr_span *spans;  // [ranks][most]
    size_t most;
} noted;

static void release(noted *all) {
    tr__free(all->counts);
    tr__free(all->spans);
}

static tr_status take(const tr_engine *engine, noted *all, tr_span **own,
                      tr_error *err) {
    size_t ranks = (size_t)tr__comm_count(engine->comm), count = engine->watch->count;
    tr_error mine = {0};
    all->counts = tr__calloc(ranks, sizeof *all->counts);
    all->spans = tr__calloc(ranks * all->most, sizeof *all->spans);
    *own = tr__calloc(all->most, sizeof **own);
    tr_status status = TR_OK;
    if (!all->counts || !all->spans || !*own) {
        status = tr_fail(&mine, TR_MEMORY, "no memory for the trace of a step");
    } else {
        memcpy(*own, engine->watch->spans, count * sizeof **own);
    }
    return tr__agree(engine->comm, status, &mine, err);
}

static tr_status exchange(const tr_engine *engine, noted *all, const tr_span *own,
                          tr_error *err) {
    int64_t count = (int64_t)engine->watch->count;
    size_t bytes = all->most * sizeof *own;
    if (!engine->comm) {
        all->counts[0] = count;
        memcpy(all->spans, own, bytes);
        return TR_OK;
    }
    tr_status status =
        tr__comm_all_gather(engine->comm, &count, sizeof count, all->counts, err);
    return status == TR_OK
               ? tr__comm_all_gather(engine->comm, own, bytes, all->spans, err)
               : status;
}

static tr_status gather(const tr_engine *engine, noted *all, tr_error *err) {
    int64_t most = (int64_t)engine->watch->count;
    tr_span *own = NULL;
    tr_status status =
        engine->comm ? tr_comm_most(engine->comm, most, &most, err) : TR_OK;
    all->most = (size_t)most;
    if (status == TR_OK) {
        status = take(engine, all, &own, err);
    }
    if (status == TR_OK) {
        status = exchange(engine, all, own, err);
    }
    tr__free(own);
    return status;
}

typedef struct whole_trace {
    const tr_engine *engine;
    const noted *all;
} whole_trace;

static tr_status print(const void *what, FILE *to, tr_error *err) {
    const tr_engine *engine = ((const whole_trace *)what)->engine;
    const noted *all = ((const whole_trace *)what)->all;
    size_t ranks = (size_t)tr__comm_count(engine->comm);
    char name[32];
    tr_rank_spans *spans = tr__calloc(ranks, sizeof *spans);
    if (!spans) {
        return tr_fail(err, TR_MEMORY, "no memory for the trace of a step");
    }
    for (size_t r = 0; r < ranks; r++) {
        spans[r] = (tr_rank_spans){(int64_t)r, all->spans + r * all->most,
                                   (size_t)all->counts[r]};
    }
    snprintf(name, sizeof name, "step %" PRId64, engine->count.step);
    tr_status status = tr__trace_write(engine->plan, name, spans, ranks, to, err);
    tr__free(spans);
    return status;
}

tr_status tr_engine_write_trace(tr_engine *engine, const char *path, tr_error *err) {
    tr_status given =
        tr__engine_need(engine, path, "tr_engine_write_trace", "path", err);
    if (given != TR_OK) {
        return given;
    }
    tr_error mine = {0};
    noted all = {NULL, NULL, 0};
    bool watched = engine->watch && engine->watch->count > 0;
    tr_status status =
        watched ? TR_OK : tr_fail(&mine, TR_USAGE, "no step has been watched");
    status = tr__agree(engine->comm, status, &mine, err);
    tr__executor_watch(engine->executor, NULL);
    if (status == TR_OK) {
        status = gather(engine, &all, err);
    }
    if (status == TR_OK) {
        if (tr__comm_leads(engine->comm)) {
            const whole_trace trace = {engine, &all};
            status = tr__file_print(path, print, &trace, &mine);
        }
        status = tr__agree(engine->comm, status, &mine, err);
    }
    release(&all);
    tr__watch_destroy(engine->watch);
    engine->watch = NULL;
    return status;
}
