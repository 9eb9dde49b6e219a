// Engines of models whose loss is outside: the room of their steps in parts, and what
// they cannot do.
#include "base/memory.h"
#include "train/engine/attempt.h"

tr_status tr__engine_take_parts(tr_engine *engine, tr_error *err) {
    if (!engine->plan->hands_out) {
        return TR_OK;
    }
    engine->parts = tr__calloc(1, sizeof *engine->parts);
    return engine->parts ? TR_OK
                         : tr_fail(err, TR_MEMORY, "no memory for steps in parts");
}

tr_status tr__engine_need_loss(const tr_engine *engine, const char *function,
                               tr_error *err) {
    return !engine->plan->hands_out
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s: the model has outputs and no loss: call "
                         "tr_engine_forward, tr_engine_backward and tr_engine_update",
                         function);
}

void tr__engine_end_parts(tr_engine *engine) {
    tr_error error = {0};
    if (engine->executor && tr__executor_pause(engine->executor)) {
        if (engine->comm) { // nobody knows whether the others come
            tr_fail(&error, TR_COMM, "an engine was destroyed in the middle of a step");
            tr_comm_abandon(engine->comm, &error);
        } else {
            (void)tr__executor_drop(engine->executor, &error);
        }
    }
    tr__free(engine->parts);
}
