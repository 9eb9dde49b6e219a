// The weights that a run begins with.
#include "base/checked.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/wait.h"
#include "models/models.h"
#include "train/engine.h"
#include "train/state/magnitudes.h"
#include "train/state/read_tensors.h"

#include <string.h>

// An element's value depends on where it lies in the tensor that files hold, not on who
// draws it.
static void draw_elements(const tr_engine *engine, const tr_plan_param *param,
                          int64_t first, int64_t count, float *to) {
    uint64_t seed = engine->settings->seed, stream = tr__hash_text(param->stored);
    float a = param->init.a, b = param->init.b;
    switch (param->init.kind) {
    case TR_INIT_CONSTANT:
        tr__fill_uniform(to, first, count, a, a, seed, stream);
        break;
    case TR_INIT_NORMAL:
        tr__fill_normal(to, first, count, a, b, seed, stream);
        break;
    case TR_INIT_UNIFORM:
        tr__fill_uniform(to, first, count, a, b, seed, stream);
        break;
    }
}

static void draw_run(const tr_engine *engine, const tr_plan_param *param,
                     const tr_piece *run) {
    int64_t now = 0;
    for (int64_t done = 0; done < run->count; done += now) {
        now = run->count - done;
        int64_t first = tr__stride_at(&param->lies, run->first + done, &now);
        draw_elements(engine, param, first, now, run->data + done);
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
    const tr_plan *plan = engine->plan;
    tr_wait wait = tr__wait_begin(tr__run_log(engine->run), "drawing the weights");
    double done = 0, total = (double)tr_plan_parameters(plan);
    tr_status status = TR_OK;
    for (size_t i = 0; i < plan->param_count && status == TR_OK; i++) {
        status = draw(engine, (int)i, err);
        done += (double)tr_shape_count(plan->params[i].stored_shape);
        tr__wait_part(&wait, done, total);
    }
    return status;
}

// ---- tensors that a folder has and the model lacks

// What older versions of transformers saved beside the weights: masks and frequencies,
// which follow from the config, and a head that is the embedding.
static bool is_derived(const tr_stored_tensor *tensor) {
    return tr__ends_with(tensor->name, ".attn.bias") ||
           tr__ends_with(tensor->name, ".attn.masked_bias") ||
           tr__ends_with(tensor->name, "rotary_emb.inv_freq") ||
           strcmp(tensor->name, "lm_head.weight") == 0;
}

static bool is_used(const tr_tensor_set *set, const tr_plan *plan,
                    const tr_stored_tensor *tensor) {
    bool used = false;
    for (size_t i = 0; i < plan->param_count && !used; i++) {
        used = tr__tensor_set_find_prefixed(set, plan->params[i].stored) == tensor;
    }
    for (size_t i = 0; i < plan->state_count && !used; i++) {
        used = strcmp(plan->states[i].name, tensor->name) == 0;
    }
    return used;
}

// A config that names fewer layers than the files have loads without an error.
static void warn_of_unused(const tr_engine *engine, const tr_tensor_set *set,
                           const char *folder) {
    const tr_plan *plan = engine->plan;
    size_t count = tr__tensor_set_count(set), unused = 0;
    const char *first = NULL;
    if (count <= plan->param_count + plan->state_count) {
        return; // all that the model needs has been found
    }
    for (size_t i = 0; i < count; i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(set, i);
        if (!is_derived(tensor) && !is_used(set, plan, tensor)) {
            first = first ? first : tensor->name;
            unused++;
        }
    }
    if (unused > 0) {
        tr__warn(
            tr__run_log(engine->run),
            "%s: the model of its config.json does not use %zu of the %zu tensors; "
            "the first is %s",
            folder, unused, count, first);
    }
}

// ---- tensors that the model has and a folder lacks

// How many, of heads: those of a class for another task.
static size_t count_lacking(const tr_engine *engine, const tr_tensor_set *set,
                            const char **first) {
    const tr_plan *plan = engine->plan;
    const tr_model *own = engine->run->own_model;
    size_t lacking = 0;
    *first = NULL;
    for (size_t i = 0; own && i < plan->param_count; i++) {
        const char *name = plan->params[i].stored;
        if (tr__model_may_lack(own, name) && !tr__tensor_set_find_prefixed(set, name)) {
            *first = *first ? *first : name;
            lacking++;
        }
    }
    return lacking;
}

static void say_lacking(const tr_engine *engine, const char *folder, size_t count,
                        const char *first) {
    if (count > 0) {
        tr__note(tr__run_log(engine->run),
                 "%s has no head for this task: %zu tensor%s drawn; the first is %s",
                 folder, count, count == 1 ? " is" : "s are", first);
    }
}

// Of a vocabulary that has grown, the rows that the files have lie over drawn ones, as
// do all tensors where some are lacking.
static tr_status read_folder(tr_engine *engine, const char *folder, tr_error *err) {
    tr_tensor_set *set = NULL;
    const tr_run *run = engine->run;
    bool grown = run->tokens_read > 0 && run->tokens_read < run->model->classes;
    const char *first = NULL;
    size_t lacking = 0;
    tr_status status = tr__tensor_set_open(folder, &set, err);
    if (status == TR_OK) {
        lacking = count_lacking(engine, set, &first);
        status = grown || lacking > 0 ? draw_all(engine, err) : TR_OK;
    }
    if (status == TR_OK) {
        say_lacking(engine, folder, lacking, first);
        tr_weights_source from = {.set = set,
                                  .path = folder,
                                  .rows = run->rows_read,
                                  .used = grown ? run->tokens_read : 0,
                                  .may_lack = run->own_model,
                                  .log = tr__run_log(run)};
        status =
            tr__read_parameters(&from, engine->plan, engine->executor, -1, NULL, err);
    }
    if (status == TR_OK) {
        status = tr__read_states(set, folder, engine->plan, engine->executor, err);
    }
    if (status == TR_OK) {
        warn_of_unused(engine, set, folder);
    }
    tr__tensor_set_close(set);
    return status;
}

// ---- weights that rounding may have made of these

// Not the seed of any weights, in practice.
#define PERTURB_SEED 0x726F756E64696E67u

static void perturb_run(const tr_plan_param *param, const tr_piece *run, double part,
                        int draw) {
    enum { CHUNK = 1024 };
    float off[CHUNK];
    uint64_t stream = tr__hash_text(param->stored);
    int64_t count = 0;
    for (int64_t at = 0; at < run->count; at += count) {
        count = tr__min_i64(CHUNK, run->count - at);
        int64_t first = tr__stride_at(&param->lies, run->first + at, &count);
        tr__fill_uniform(off, first, count, (float)-part, (float)part,
                         PERTURB_SEED + (uint64_t)draw, stream);
        for (int64_t i = 0; i < count; i++) {
            run->data[at + i] += run->data[at + i] * off[i];
        }
    }
}

static tr_status perturb(tr_engine *engine, int index, double part, int draw,
                         tr_error *err) {
    tr_piece piece = tr__executor_held(engine->executor, index, -1), run;
    const tr_plan_param *param = &engine->plan->params[index];
    tr_status status = TR_OK;
    for (int64_t at = 0; at < piece.count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(engine->executor, &piece, at, &run, err);
        if (status == TR_OK) {
            perturb_run(param, &run, part, draw);
            status = tr__executor_return(engine->executor, &run, err);
        }
    }
    return status;
}

tr_status tr__engine_perturb(tr_engine *engine, double part, int draw, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < engine->plan->param_count && status == TR_OK; i++) {
        // What is in few bits is what it is: those of its values that are near are
        // none.
        status = engine->plan->params[i].quantized
                     ? TR_OK
                     : perturb(engine, (int)i, part, draw, err);
    }
    return status == TR_OK ? tr__executor_round(engine->executor, err) : status;
}

// ---- adapters

static tr_status read_set(tr_engine *engine, const tr_weights_source *from,
                          tr_error *err) {
    return tr__read_parameters(from, engine->plan, engine->executor, -1, NULL, err);
}

tr_status tr__engine_read_base(tr_engine *engine, tr_error *err) {
    const char *folder = tr__run_weights(engine->run);
    tr_tensor_set *set = NULL;
    tr_status status = tr__tensor_set_open(folder, &set, err);
    if (status == TR_OK) {
        status = read_set(engine,
                          &(tr_weights_source){.set = set,
                                               .path = folder,
                                               .reads = TR_READS_FROZEN,
                                               .log = tr__run_log(engine->run)},
                          err);
    }
    if (status == TR_OK) {
        warn_of_unused(engine, set, folder);
    }
    tr__tensor_set_close(set);
    return status;
}

static tr_status draw_trained(tr_engine *engine, tr_error *err) {
    const tr_plan *plan = engine->plan;
    tr_status status = TR_OK;
    for (size_t i = 0; i < plan->param_count && status == TR_OK; i++) {
        if (!plan->flats[plan->params[i].flat].frozen) {
            status = draw(engine, (int)i, err);
        }
    }
    return status;
}

// What is trained: from the adapter that the run goes on from; else the adapter is
// drawn, modules_to_save are the base's (a head that it lacks is drawn), and magnitudes
// the lengths of its weights' rows.
static tr_status begin_trained(tr_engine *engine, tr_error *err) {
    const tr_run *run = engine->run;
    const char *folder = run->adapter ? run->adapter : run->weights, *first = NULL;
    const tr_model *may_lack = run->adapter ? NULL : run->own_model;
    tr_tensor_set *set = NULL;
    tr_status status = run->adapter ? TR_OK : draw_trained(engine, err);
    if (status == TR_OK) {
        status = run->adapter
                     ? tr__tensor_set_open_files(folder, TR_FILES_ADAPTER, &set, err)
                     : tr__tensor_set_open(folder, &set, err);
    }
    if (status == TR_OK && may_lack) {
        size_t lacking = count_lacking(engine, set, &first);
        say_lacking(engine, folder, lacking, first);
    }
    if (status == TR_OK) {
        status = read_set(engine,
                          &(tr_weights_source){.set = set,
                                               .path = folder,
                                               .reads = TR_READS_TRAINED,
                                               .drawn = !run->adapter,
                                               .may_lack = may_lack,
                                               .log = tr__run_log(run)},
                          err);
    }
    if (status == TR_OK && !run->adapter) {
        status = tr__begin_magnitudes(set, engine->plan, engine->executor, err);
    }
    tr__tensor_set_close(set);
    return status;
}

static tr_status begin_adapter(tr_engine *engine, tr_error *err) {
    tr_status status = tr__engine_hash_base(engine, err);
    status = status == TR_OK ? tr__engine_read_base(engine, err) : status;
    return status == TR_OK ? begin_trained(engine, err) : status;
}

tr_status tr__engine_weights(tr_engine *engine, tr_error *err) {
    const char *folder = tr__run_weights(engine->run);
    if (engine->plan->request.model->adapter) {
        return begin_adapter(engine, err);
    }
    if (folder) {
        return read_folder(engine, folder, err);
    }
    tr_status status = draw_all(engine, err);
    begin_states(engine);
    return status;
}
