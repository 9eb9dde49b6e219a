// What an engine says of itself between two steps: its steps, its memory, who failed.
#include "train/engine.h"

#include "base/machine.h"

#include <string.h>

const char *tr_engine_blame(const tr_engine *engine) {
    return engine ? engine->blame : "";
}

int64_t tr_engine_steps_done(const tr_engine *engine) {
    return engine ? engine->count.step : 0;
}

// The number of a parameter that is not used in slices; -1: there is none.
static int find(const tr_engine *engine, const char *name) {
    for (size_t i = 0; engine && name && i < engine->plan->param_count; i++) {
        const tr_plan_param *param = &engine->plan->params[i];
        bool whole = tr_shape_equal(param->shape, param->stored_shape);
        if (whole && strcmp(param->stored, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const float *tr_engine_parameter(const tr_engine *engine, const char *name,
                                 int64_t *count) {
    int param = find(engine, name);
    if (param >= 0 && count) {
        *count = engine->plan->params[param].count;
    }
    return param < 0 ? NULL : tr__executor_param(engine->executor, param, -1);
}

const float *tr_engine_parameter_on(const tr_engine *engine, const char *name,
                                    int64_t *count, int *device) {
    const float *here = tr_engine_parameter(engine, name, count), *there = NULL;
    int param = here ? -1 : find(engine, name);
    if (param >= 0) {
        there = tr__executor_param_there(engine->executor, param);
    }
    if (device) {
        *device = there ? engine->plan->request.device : -1;
    }
    return here ? here : there;
}

int64_t tr_engine_arena_peak(const tr_engine *engine) {
    return engine ? (int64_t)tr__arena_high_water(engine->arenas[TR_SPACE_DEVICE]) : 0;
}

int64_t tr_engine_space_peak(const tr_engine *engine, tr_space space) {
    if (!engine || space < 0 || space >= TR_SPACES) {
        return 0;
    }
    const tr_arena *arena = engine->arenas[space];
    int64_t data = space == TR_SPACE_HOST ? engine->plan->request.host_data_bytes : 0;
    return data + (arena ? (int64_t)tr__arena_high_water(arena) : 0);
}

int64_t tr_engine_process_peak(const tr_engine *engine) {
    (void)engine;
    return tr__process_peak();
}
