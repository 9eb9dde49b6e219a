// The weights that a run begins with.
#include "base/hash.h"
#include "base/rng.h"
#include "ckpt/tensor_set.h"
#include "train/engine.h"
#include "train/tensors.h"

static void draw(tr_engine *engine, int index) {
    const tr_plan_param *param = &engine->plan->params[index];
    float *values = tr__executor_param(engine->executor, index, -1);
    uint64_t seed = engine->settings->seed, stream = tr__hash_text(param->name);
    float a = param->init.a, b = param->init.b;
    switch (param->init.kind) {
    case TR_INIT_CONSTANT:
        tr__fill_uniform(values, 0, param->count, a, a, seed, stream);
        break;
    case TR_INIT_NORMAL:
        tr__fill_normal(values, 0, param->count, a, b, seed, stream);
        break;
    case TR_INIT_UNIFORM:
        tr__fill_uniform(values, 0, param->count, a, b, seed, stream);
        break;
    }
}

tr_status tr__engine_read_tensors(tr_engine *engine, const tr_tensor_set *set,
                                  const char *path, int state, tr_error *err) {
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        const tr_plan_param *param = &engine->plan->params[i];
        char name[TR_TENSOR_NAME_MAX];
        tr__engine_tensor_name(engine, (int)i, state, name);
        const tr_stored_tensor *stored = tr__tensor_set_find_prefixed(set, name);
        if (!stored) {
            return tr_fail(err, TR_IO,
                           "%s: has no tensor %s, which the model of this run needs: it "
                           "belongs to another model or optimizer",
                           path, name);
        }
        bool same = stored->rank == param->shape.rank;
        for (int d = 0; same && d < stored->rank; d++) {
            same = stored->dim[d] == param->shape.dim[d];
        }
        if (!same) {
            return tr_fail(err, TR_IO,
                           "%s: tensor %s has %lld elements in another shape than this "
                           "run's model (%lld elements): it belongs to another model",
                           path, name, (long long)stored->count, (long long)param->count);
        }
        tr_status status = tr__tensor_read_f32(
            set, stored, 0, param->count,
            tr__executor_param(engine->executor, (int)i, state), err);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
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
        status = tr__engine_read_tensors(engine, set, folder, -1, err);
    }
    tr__tensor_set_close(set);
    return status;
}
