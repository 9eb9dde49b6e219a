// The weights that a run begins with.
#include "base/hash.h"
#include "base/rng.h"
#include "train/engine.h"
#include "train/folder.h"

// An element's value depends on where it lies in the tensor that files hold, not on who
// draws it.
static void draw(tr_engine *engine, int index) {
    const tr_plan_param *param = &engine->plan->params[index];
    tr_piece piece = tr__executor_held(engine->executor, index, -1);
    uint64_t seed = engine->settings->seed, stream = tr__hash_text(param->stored);
    float a = param->init.a, b = param->init.b;
    switch (param->init.kind) {
    case TR_INIT_CONSTANT:
        tr__fill_uniform(piece.data, piece.first, piece.count, a, a, seed, stream);
        break;
    case TR_INIT_NORMAL:
        tr__fill_normal(piece.data, piece.first, piece.count, a, b, seed, stream);
        break;
    case TR_INIT_UNIFORM:
        tr__fill_uniform(piece.data, piece.first, piece.count, a, b, seed, stream);
        break;
    }
}

tr_status tr__engine_weights(tr_engine *engine, tr_error *err) {
    const char *folder = tr__run_weights(engine->run);
    if (!folder) {
        for (size_t i = 0; i < engine->plan->param_count; i++) {
            draw(engine, (int)i);
        }
        return TR_OK;
    }
    tr_tensor_set *set = NULL;
    tr_status status = tr__tensor_set_open(folder, &set, err);
    if (status == TR_OK) {
        status = tr__read_parameters(set, folder, engine->plan, engine->executor, -1,
                                     NULL, err);
    }
    tr__tensor_set_close(set);
    return status;
}
