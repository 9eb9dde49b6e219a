// Work that all ranks of an engine do together, and how it ends on all of them.
#include "train/engine.h"

#include "comm/alone.h"

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

tr_status tr__engine_settle(tr_engine *engine, tr_error *err) {
    tr_run_context context = {.seed = engine->settings->seed};
    tr_error mine = {0};
    if (!tr__executor_is_deferred(engine->executor)) {
        return TR_OK;
    }
    tr_status status = tr__executor_settle(engine->executor, &context, &mine);
    return tr__engine_end_work(engine, status, &mine, err);
}

tr_status tr_engine_refresh(tr_engine *engine, tr_error *err) {
    tr_status given =
        tr__engine_need(engine, engine, "tr_engine_refresh", "engine", err);
    if (given != TR_OK) {
        return given;
    }
    const tr_sequence *sync = &engine->plan->sequences[TR_SEQUENCE_SYNC_PARAMETERS];
    tr_run_context context = {.seed = engine->settings->seed};
    tr_status settled = tr__engine_settle(engine, err);
    if (settled != TR_OK) {
        return settled;
    }
    if (!engine->stale_params || sync->count == 0) {
        return TR_OK;
    }
    tr_error mine = {0};
    tr_status status = tr__executor_run(engine->executor, TR_SEQUENCE_SYNC_PARAMETERS,
                                        &context, NULL, &mine);
    engine->stale_params = status != TR_OK;
    return tr__engine_end_work(engine, status, &mine, err);
}
