#include "train/state/saved_tensors.h"

#include "base/checked.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "files/checkpoint/shards.h"
#include "files/safetensors/adapter.h"
#include "models/folder.h"

#include <stdio.h>

void tr__saved_free(tr_saved_tensors *list) {
    tr__free(list->tensors);
    tr__free(list->names);
    tr__free(list->zeros);
}

// A parameter's values (state -1) or one of its states as one number.
static int64_t key_of(const tr_engine *engine, int param, int state) {
    return (int64_t)(state + 1) * (int64_t)engine->plan->param_count + param;
}

tr_status tr__saved_read(void *user, int64_t key, int64_t at, const float **data,
                         int64_t *count, tr_error *err) {
    const tr_engine *engine = user;
    int64_t params = (int64_t)engine->plan->param_count;
    int state = (int)(key / params) - 1;
    bool scales = state >= TR_OPTIMIZER_STATES;
    tr_piece run,
        piece = tr__executor_own(engine->executor, (int)(key % params),
                                 scales ? state - TR_OPTIMIZER_STATES : state);
    if (scales) {
        return tr__executor_scales(engine->executor, &piece, at, data, count, err);
    }
    tr_status status = tr__executor_borrow(engine->executor, &piece, at, &run, err);
    *data = run.data;
    *count = run.count;
    return status;
}

// The model's own states are the same on all ranks: rank 0 writes them.
static void list_states(tr_engine *engine, tr_saved_tensors *list) {
    bool leads = tr__comm_leads(tr__run_comm(engine->run));
    for (size_t i = 0; i < engine->plan->state_count; i++) {
        const tr_plan_state *state = &engine->plan->states[i];
        char *name = list->names[list->count];
        snprintf(name, TR_TENSOR_NAME_MAX, "%s", state->name);
        list->tensors[list->count++] = (tr_checkpoint_tensor){
            .name = name,
            .shape = state->desc.shape,
            .count = leads ? tr_shape_count(state->desc.shape) : 0,
            .data = tr__executor_state(engine->executor, (int)i),
            .dtype = state->desc.dtype,
        };
    }
}

static tr_shape padded_shape(const tr_engine *engine, const tr_plan_param *param) {
    const tr_model *model = engine->plan->request.model;
    tr_shape shape = param->stored_shape;
    if (model->padded_classes && tr__is_token_tensor(model, param->stored)) {
        shape.dim[0] = model->padded_classes;
    }
    return shape;
}

// What a tensor has in files beyond the model's own elements.
static int64_t padding_of(const tr_engine *engine, const tr_plan_param *param) {
    return tr_shape_count(padded_shape(engine, param)) -
           tr_shape_count(param->stored_shape);
}

// Room for all of them: the most that one tensor needs.
static bool make_zeros(const tr_engine *engine, tr_saved_tensors *list) {
    int64_t most = 0;
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        most = tr__max_i64(most, padding_of(engine, &engine->plan->params[i]));
    }
    list->zeros = most > 0 ? tr__calloc((size_t)most, sizeof *list->zeros) : NULL;
    return most == 0 || list->zeros;
}

// The piece of a tensor that is padding, which rank 0 writes; of a sliced one once.
static void list_padding(const tr_engine *engine, size_t index,
                         tr_saved_tensors *list) {
    const tr_plan_param *param = &engine->plan->params[index];
    int64_t count = padding_of(engine, param);
    bool leads = tr__comm_leads(tr__run_comm(engine->run));
    if (count == 0 || param->tensor != (int)index) {
        return;
    }
    const tr_checkpoint_tensor *whole = &list->tensors[list->count - 1];
    list->tensors[list->count++] =
        (tr_checkpoint_tensor){.name = whole->name,
                               .shape = whole->shape,
                               .first = tr_shape_count(param->stored_shape),
                               .count = leads ? count : 0,
                               .data = list->zeros,
                               .stored = whole->stored};
}

static bool adapts(const tr_engine *engine) {
    return engine->plan->request.model->adapter != NULL;
}

// All parameters in one state (-1: their own values), by the name that files give it.
static void list_params(tr_engine *engine, int state, const char *of_values,
                        tr_dtype stored, tr_saved_tensors *list) {
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        const tr_plan_param *param = &engine->plan->params[i];
        char *name = list->names[list->count];
        const tr_flat *flat = &engine->plan->flats[param->flat];
        if ((flat->frozen && adapts(engine)) ||
            state >= tr__flat_states(engine->plan, flat)) {
            continue; // it has none; an adapter's base stays where it is
        }
        const char *of_state =
            state < 0 ? of_values : tr__state_name(engine->plan, flat, state);
        tr__tensor_name(engine->plan, (int)i, of_state, name);
        if (state < 0 && !of_values && adapts(engine)) {
            snprintf(name, TR_TENSOR_NAME_MAX, TR_ADAPTER_PREFIX "%s", param->stored);
        }
        tr_piece piece = tr__executor_own(engine->executor, (int)i, state);
        list->tensors[list->count++] =
            (tr_checkpoint_tensor){.name = name,
                                   .shape = padded_shape(engine, param),
                                   .first = piece.first,
                                   .count = piece.count,
                                   .lies = param->lies,
                                   .data = piece.data,
                                   .stored = stored,
                                   .key = key_of(engine, (int)i, state)};
        list_padding(engine, i, list);
    }
}

// What blocks of a state in 8 bits are scaled by: one number for each.
static void list_scales(tr_engine *engine, int state, tr_saved_tensors *list) {
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        const tr_plan_param *param = &engine->plan->params[i];
        tr_piece piece = tr__executor_own(engine->executor, (int)i, state);
        const tr_flat *flat = &engine->plan->flats[param->flat];
        int64_t block = tr__executor_block(engine->executor, (int)i, state);
        if (block == 1) {
            continue;
        }
        char *name = list->names[list->count];
        tr__scales_name(engine->plan, (int)i, tr__state_name(engine->plan, flat, state),
                        name);
        tr_shape shape =
            TR_SHAPE1(tr__ceil_div(tr_shape_count(param->stored_shape), block));
        list->tensors[list->count++] = (tr_checkpoint_tensor){
            .name = name,
            .shape = shape,
            .first = piece.first / block,
            .count = tr__ceil_div(piece.count, block),
            .lies = tr__stride_of_blocks(&param->lies, block),
            .key = key_of(engine, (int)i, state + TR_OPTIMIZER_STATES)};
    }
}

// Room for the parameters in so many states, and for `others`.
static bool make_list(const tr_engine *engine, int states, size_t others,
                      tr_saved_tensors *list) {
    size_t most = 2 * engine->plan->param_count * (size_t)states + others;
    *list = (tr_saved_tensors){0};
    list->tensors = tr__calloc(most, sizeof *list->tensors);
    list->names = tr__calloc(most, sizeof *list->names);
    return list->tensors && list->names && make_zeros(engine, list);
}

bool tr__saved_model(tr_engine *engine, tr_saved_tensors *list) {
    if (!make_list(engine, 1, engine->plan->state_count, list)) {
        return false;
    }
    list_params(engine, -1, NULL, engine->settings->checkpoint_dtype, list);
    list_states(engine, list);
    return true;
}

bool tr__saved_optimizer(tr_engine *engine, tr_saved_tensors *list) {
    int states = tr__plan_states(engine->plan);
    size_t scales = (size_t)states * engine->plan->param_count;
    if (!make_list(engine, states + 1, scales, list)) {
        return false;
    }
    for (int state = 0; state < states; state++) {
        bool half = engine->plan->request.states[state].type == TR_STATE_BF16;
        list_params(engine, state, NULL, half ? TR_BF16 : TR_F32, list);
        list_scales(engine, state, list);
    }
    if (engine->settings->checkpoint_dtype != TR_F32) {
        list_params(engine, -1, TR_SAVED_MASTER, TR_F32, list);
    }
    return true;
}

static tr_status check_shards(tr_engine *engine, tr_tensor_files files, tr_error *err) {
    tr_saved_tensors all;
    tr_shards shards = {0};
    bool listed = files == TR_FILES_MODEL ? tr__saved_model(engine, &all)
                                          : tr__saved_optimizer(engine, &all);
    tr_shards_input cut = {files == TR_FILES_MODEL && adapts(engine) ? TR_FILES_ADAPTER
                                                                     : files,
                           all.tensors, all.count, engine->settings->shard_bytes};
    tr_status status =
        listed ? tr__shards_cut(&cut, &shards, err)
               : tr_fail(err, TR_MEMORY, "no memory to list a checkpoint's tensors");
    tr__shards_free(&shards);
    tr__saved_free(&all);
    return status;
}

// The optimizer's states first: where there are any, they are no less than the weights,
// and the value that the message names is enough for both.
tr_status tr__saved_check_shards(tr_engine *engine, tr_error *err) {
    tr_status status = check_shards(engine, TR_FILES_OPTIMIZER, err);
    return status == TR_OK ? check_shards(engine, TR_FILES_MODEL, err) : status;
}
