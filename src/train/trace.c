// The trace of a step, put together from all ranks.
#include "base/files.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "train/engine.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

tr_status tr_engine_watch(tr_engine *engine, tr_error *err) {
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
// -------------------------------------------------------

// Ranks run the same steps, so they have noted as many; `all`: [ranks * count].
static tr_status gather(const tr_engine *engine, tr_span **all, tr_error *err) {
    const tr_watch *watch = engine->watch;
    size_t ranks = (size_t)tr__comm_count(engine->comm);
    tr_error mine = {0};
    *all = tr__calloc(ranks * watch->count, sizeof **all);
    tr_status status =
        *all ? TR_OK : tr_fail(&mine, TR_MEMORY, "no memory for the trace of a step");
    status = tr__agree(engine->comm, status, &mine, err);
    if (status != TR_OK || !engine->comm) {
        for (size_t i = 0; status == TR_OK && i < watch->count; i++) {
            (*all)[i] = watch->spans[i];
        }
        return status;
    }
    return tr__comm_all_gather(engine->comm, watch->spans,
                               watch->count * sizeof *watch->spans, *all, err);
}

static tr_status print(const tr_engine *engine, const tr_span *all, FILE *to,
                       tr_error *err) {
    size_t ranks = (size_t)tr__comm_count(engine->comm), count = engine->watch->count;
    char what[32];
    tr_rank_spans *spans = tr__calloc(ranks, sizeof *spans);
    if (!spans) {
        return tr_fail(err, TR_MEMORY, "no memory for the trace of a step");
    }
    for (size_t r = 0; r < ranks; r++) {
        spans[r] = (tr_rank_spans){(int64_t)r, all + r * count, count};
    }
    snprintf(what, sizeof what, "step %" PRId64, engine->count.step);
    tr_status status =
        tr__trace_write(engine->plan, TR_SEQUENCE_TRAIN, what, spans, ranks, to, err);
    tr__free(spans);
    return status;
}

static tr_status write(const tr_engine *engine, const tr_span *all, const char *path,
                       tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) {
        return tr_fail(err, TR_MEMORY, "no memory for the trace of a step");
    }
    tr_status status = print(engine, all, to, err);
    if (fclose(to) != 0 && status == TR_OK) {
        status = tr_fail(err, TR_MEMORY, "no memory for the trace of a step");
    }
    if (status == TR_OK) {
        status = tr__file_replace(path, text, bytes, err);
    }
    free(text);
    return status;
}

tr_status tr_engine_write_trace(tr_engine *engine, const char *path, tr_error *err) {
    tr_error mine = {0};
    tr_span *all = NULL;
    if (!engine->watch || engine->watch->count == 0) {
        return tr_fail(err, TR_USAGE, "no step has been watched");
    }
    tr__executor_watch(engine->executor, NULL);
    tr_status status = gather(engine, &all, err);
    if (status == TR_OK) {
        if (tr__comm_leads(engine->comm)) {
            status = write(engine, all, path, &mine);
        }
        status = tr__agree(engine->comm, status, &mine, err);
    }
    tr__free(all);
    return status;
}
