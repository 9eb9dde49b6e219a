// The weights that a run begins with.
#include "base/hash.h"
#include "base/rng.h"
#include "train/engine.h"
#include "train/read_tensors.h"

// An element's value depends on where it lies in the tensor that files hold, not on who
// draws it.
static void draw_run(const tr_engine *engine, const tr_plan_param *param,
                     const tr_piece *run) {
    uint64_t seed = engine->settings->seed, stream = tr__hash_text(param->stored);
    float a = param->init.a, b = param->init.b;
    switch (param->init.kind) {
    case TR_INIT_CONSTANT:
        tr__fill_uniform(run->data, run->first, run->count, a, a, seed, stream);
        break;
    case TR_INIT_NORMAL:
        tr__fill_normal(run->data, run->first, run->count, a, b, seed, stream);
        break;
    case TR_INIT_UNIFORM:
        tr__fill_uniform(run->data, run->first, run->count, a, b, seed, stream);
        break;
    }
}

static tr_status draw(tr_engine *engine, int index, tr_error *err) {
    tr_piece piece = tr__executor_held(engine->executor, index, -1), run;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < piece.count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(engine->executor, &piece, at, &run, err);
        if (status == TR_OK) {
            draw_run(engine, &engine->plan->params[index], &run);
            status = tr__executor_return(engine->executor, &run, err);
        }
    }
    return status;
}

static void begin_states(tr_engine *engine) {
    for (size_t i = 0; i < engine->plan->state_count; i++) {
        const tr_plan_state *state = &engine->plan->states[i];
        void *data = tr__executor_state(engine->executor, (int)i);
        for (int64_t k = 0; k < tr_shape_count(state->desc.shape); k++) {
            if (state->desc.dtype == TR_I64) {
                ((int64_t *)data)[k] = (int64_t)state->init;
            } else {
                ((float *)data)[k] = state->init;
            }
        }
    }
}

static tr_status draw_all(tr_engine *engine, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < engine->plan->param_count && status == TR_OK; i++) {
        status = draw(engine, (int)i, err);
    }
    return status;
}

// Of a vocabulary that has grown, the rows that the files have lie over drawn ones.
static tr_status read_folder(tr_engine *engine, const char *folder, tr_error *err) {
    tr_tensor_set *set = NULL;
    const tr_run *run = engine->run;
    bool grown = run->tokens_read > 0 && run->tokens_read < run->model->classes;
    tr_status status = grown ? draw_all(engine, err) : TR_OK;
    if (status == TR_OK) {
        status = tr__tensor_set_open(folder, &set, err);
    }
    if (status == TR_OK) {
        tr_weights_source from = {set, folder, run->rows_read,
                                  grown ? run->tokens_read : 0};
        status =
            tr__read_parameters(&from, engine->plan, engine->executor, -1, NULL, err);
    }
    if (status == TR_OK) {
        status = tr__read_states(set, folder, engine->plan, engine->executor, err);
    }
    tr__tensor_set_close(set);
    return status;
}

tr_status tr__engine_weights(tr_engine *engine, tr_error *err) {
    const char *folder = tr__run_weights(engine->run);
    if (folder) {
        return read_folder(engine, folder, err);
    }
    tr_status status = draw_all(engine, err);
    begin_states(engine);
    return status;
}
