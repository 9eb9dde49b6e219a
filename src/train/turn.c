// Who may call an engine: one thread at a time, of the process that has created it.
#include "base/arguments.h"
#include "train/engine.h"

#include <unistd.h>

void tr__turn_begin(tr_turn *turn) {
    turn->process = getpid();
    atomic_init(&turn->working, 0);
}

bool tr__turn_is_here(const tr_turn *turn) {
    return turn->process == getpid();
}

static uintptr_t self(void) {
    return (uintptr_t)pthread_self();
}

tr_status tr__engine_need_any(const tr_engine *engine, const void *argument,
                              const char *function, const char *name, tr_error *err) {
    tr_status status = tr__need(engine, function, "engine", err);
    status = status == TR_OK ? tr__need(argument, function, name, err) : status;
    if (status != TR_OK) {
        return status;
    }
    if (!tr__turn_is_here(&engine->turn)) {
        return tr_fail(err, TR_USAGE,
                       "%s: the engine is of the process that has created it; a child "
                       "of fork() has none: create one there",
                       function);
    }
    if (engine->dead.status != TR_OK) {
        return tr_fail(err, engine->dead.status, "%s", engine->dead.message);
    }
    uintptr_t working = atomic_load(&engine->turn.working);
    return working == 0 || working == self()
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s: another thread is in a call of this engine: one thread "
                         "calls it at a time",
                         function);
}

tr_status tr__engine_need(const tr_engine *engine, const void *argument,
                          const char *function, const char *name, tr_error *err) {
    tr_status status = tr__engine_need_any(engine, argument, function, name, err);
    return status == TR_OK && tr__executor_pause(engine->executor)
               ? tr_fail(err, TR_USAGE,
                         "%s: a step is at work: end it by tr_engine_update, or drop "
                         "it by tr_engine_drop",
                         function)
               : status;
}

// The engine is this call's from now on, where all is well so far.
static tr_status take(tr_engine *engine, tr_status status, const char *function,
                      tr_error *err) {
    uintptr_t none = 0;
    if (status == TR_OK && atomic_load(&engine->turn.working) == self() &&
        engine->turn.lent == TR_LENT_FREE) {
        engine->turn.lent = TR_LENT_TAKEN;
        return TR_OK;
    }
    if (status == TR_OK &&
        !atomic_compare_exchange_strong(&engine->turn.working, &none, self())) {
        status = tr_fail(err, TR_USAGE,
                         "%s: the engine is at work: call it when the call before has "
                         "returned, and not from a function that this one calls",
                         function);
    }
    return status;
}

tr_status tr__engine_enter(tr_engine *engine, const void *argument,
                           const char *function, const char *name, tr_error *err) {
    tr_status status = tr__engine_need(engine, argument, function, name, err);
    return take(engine, status, function, err);
}

// One that is lent is in a call of tr_engine_train, which has no steps in parts.
tr_status tr__engine_enter_part(tr_engine *engine, const char *function,
                                tr_error *err) {
    tr_status status = tr__engine_need_any(engine, engine, function, "engine", err);
    return take(engine, status, function, err);
}

void tr__engine_note(tr_engine *engine, tr_status status, const tr_error *err) {
    if (status == TR_INTERNAL) {
        tr_fail(&engine->dead, status, "%s",
                err && err->message[0] ? err->message
                                       : "an earlier call of this engine has failed");
    }
}

tr_status tr__engine_enter_to_step(tr_engine *engine, const void *argument,
                                   const char *function, const char *name,
                                   tr_error *err) {
    tr_status status = tr__engine_enter(engine, argument, function, name, err);
    if (status == TR_OK && engine->turn.lent == TR_LENT_TAKEN) {
        tr__engine_leave(engine, TR_OK, NULL);
        status = tr_fail(err, TR_USAGE,
                         "%s: a function that tr_engine_train tells of a step makes "
                         "none itself",
                         function);
    }
    return status;
}

void tr__engine_leave(tr_engine *engine, tr_status status, const tr_error *err) {
    tr__engine_note(engine, status, err);
    if (engine->turn.lent == TR_LENT_TAKEN) {
        engine->turn.lent = TR_LENT_FREE;
        return;
    }
    atomic_store(&engine->turn.working, 0);
}

void tr__engine_lend(tr_engine *engine, bool lent) {
    engine->turn.lent = lent ? TR_LENT_FREE : TR_LENT_NOT;
}
