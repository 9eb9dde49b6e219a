// What a program says to an engine between its steps: when to stop, at which rates to
// go on.
#include "train/engine.h"

#include <math.h>

tr_status tr_engine_stop_when(tr_engine *engine, bool (*stop)(void *user), void *user,
                              tr_error *err) {
    tr_status status =
        tr__engine_need_any(engine, engine, "tr_engine_stop_when", "engine", err);
    if (status == TR_OK) {
        engine->stop = stop;
        engine->stop_user = user;
    }
    return status;
}

size_t tr_engine_groups(const tr_engine *engine) {
    return engine ? engine->settings->group_count : 0;
}

tr_status tr_engine_set_rate(tr_engine *engine, size_t group, double rate,
                             tr_error *err) {
    tr_status status =
        tr__engine_need_any(engine, engine, "tr_engine_set_rate", "engine", err);
    if (status != TR_OK) {
        return status;
    }
    if (group >= tr_engine_groups(engine)) {
        return tr_fail(
            err, TR_USAGE,
            "tr_engine_set_rate: there is no group %zu; the run has %zu, and "
            "the last is that of all other parameters",
            group, tr_engine_groups(engine));
    }
    if (rate < 0 || isinf(rate)) {
        return tr_fail(err, TR_USAGE,
                       "tr_engine_set_rate: %g is no learning rate; give a number of 0 "
                       "or more, or NAN for what the run file says",
                       rate);
    }
    engine->own_rate[group] = rate;
    return TR_OK;
}

tr_status tr_engine_set_updates(tr_engine *engine, int64_t updates, tr_error *err) {
    static const char name[] = "tr_engine_set_updates";
    tr_status status = tr__engine_need_any(engine, engine, name, "engine", err);
    if (status != TR_OK) {
        return status;
    }
    if (updates < 0) {
        return tr_fail(err, TR_USAGE, "%s: %lld updates; give a number of 0 or more",
                       name, (long long)updates);
    }
    if (tr__executor_pause(engine->executor)) {
        return tr_fail(err, TR_USAGE, "%s: a step is at work: call it behind", name);
    }
    tr__engine_count_updates(engine, updates);
    return TR_OK;
}
