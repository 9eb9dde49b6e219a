// Back to the last good checkpoint, after a spike. The steps and the data go on: what
// came between is passed over, and its samples are not seen again.
#include "base/text.h"
#include "comm/alone.h"
#include "train/engine.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <stdio.h>

// A spike soon after a rollback says that the checkpoint was no good: then one from
// before it is taken, where there is one.
static bool is_soon(const tr_engine *engine) {
    const tr_guard_rules *rules = &engine->settings->guard;
    const tr_guard *guard = &engine->guard;
    int64_t settled = guard->since + rules->warmup_steps + rules->after;
    return guard->target >= 0 && engine->count.step <= settled;
}

typedef struct goal {
    int64_t step; // -1: none
    char folder[PATH_MAX];
} goal;

static tr_status find(const tr_engine *engine, goal *out, tr_error *err) {
    tr_checkpoint_entry *entries = NULL;
    size_t count = 0;
    bool soon = is_soon(engine);
    *out = (goal){.step = -1};
    if (engine->anew) { // what lies there is another run's
        return TR_OK;
    }
    tr_status status = tr_checkpoint_list(engine->settings->out, &entries, &count, err);
    for (size_t i = 0; i < count; i++) { // oldest first
        const tr_checkpoint_entry *e = &entries[i];
        bool good = e->complete && e->step <= engine->count.step &&
                    e->step <= engine->own_until;
        bool before = !soon || e->step < engine->guard.target || out->step < 0;
        if (good && before) {
            out->step = e->step;
            snprintf(out->folder, sizeof out->folder, "%s", e->path);
        }
    }
    tr_checkpoint_list_destroy(entries, count);
    return status;
}

tr_status tr_engine_rollback(tr_engine *engine, int64_t *step, tr_error *err) {
    tr_status given = tr__engine_need(engine, step, "tr_engine_rollback", "step", err);
    if (given != TR_OK) {
        return given;
    }
    tr_comm *comm = tr__run_comm(engine->run);
    tr_error mine = {0};
    goal to = {.step = -1};
    tr_status status = tr__comm_leads(comm) ? find(engine, &to, &mine) : TR_OK;
    status = tr__agree(comm, status, &mine, err);
    if (status == TR_OK && comm) {
        status = tr__comm_broadcast(comm, 0, &to, sizeof to, err);
    }
    if (status == TR_OK && to.step >= 0) {
        status = tr__engine_return(engine, to.folder, err);
    }
    if (status == TR_OK && to.step >= 0) {
        tr__guard_rolled_back(&engine->settings->guard, to.step, engine->count.step,
                              &engine->guard);
    }
    *step = to.step;
    return status;
}
