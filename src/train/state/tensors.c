// The tensors of an engine: which there are, and where they live.
#include "train/engine.h"

#include "base/arguments.h"

// A tensor in files is one parameter of the plan, or several slices, of which the first
// stands for all.
static bool is_first(const tr_plan *plan, size_t param) {
    return plan->params[param].tensor == (int)param;
}

size_t tr_engine_tensors(const tr_engine *engine) {
    size_t count = engine ? engine->plan->state_count : 0;
    for (size_t i = 0; engine && i < engine->plan->param_count; i++) {
        count += is_first(engine->plan, i);
    }
    return count;
}

static tr_space space_of(const tr_plan *plan, const tr_flat_range *range,
                         const tr_flat_range *other) {
    int buffer = range->buffer >= 0 ? range->buffer : other->buffer;
    return buffer >= 0 ? (tr_space)plan->buffers[buffer].space : TR_SPACE_DEVICE;
}

static void tell_param(const tr_plan *plan, size_t index, tr_tensor_info *info) {
    const tr_plan_param *param = &plan->params[index];
    const tr_flat *flat = &plan->flats[param->flat];
    info->name = param->stored;
    info->dtype = TR_F32;
    info->shape = param->stored_shape;
    info->trained = !flat->frozen;
    info->space = space_of(plan, &flat->master, &flat->copy);
    info->gradient_space = space_of(plan, &flat->grad, &flat->master);
    info->optimizer_space = space_of(plan, &flat->state[0], &flat->master);
}

static void tell_state(const tr_plan_state *state, tr_tensor_info *info) {
    info->name = state->name;
    info->dtype = state->desc.dtype;
    info->shape = state->desc.shape;
    info->of_model = true;
}

static const tr_sized known_info = {"tr_tensor_info", "TR_TENSOR_INFO_INIT",
                                    sizeof(tr_tensor_info), 0};

tr_status tr_engine_tensor(const tr_engine *engine, size_t index, tr_tensor_info *info,
                           tr_error *err) {
    static const char name[] = "tr_engine_tensor";
    tr_status status = tr__need(engine, name, "engine", err);
    status = status == TR_OK ? tr__need_sized(info, &known_info, name, err) : status;
    if (status != TR_OK) {
        return status;
    }
    const tr_plan *plan = engine->plan;
    size_t count = tr_engine_tensors(engine), params = count - plan->state_count;
    *info = (tr_tensor_info)TR_TENSOR_INFO_INIT;
    if (index >= count) {
        return tr_fail(err, TR_USAGE, "%s: there is no tensor %zu; the model has %zu",
                       name, index, count);
    }
    if (index >= params) {
        tell_state(&plan->states[index - params], info);
        return TR_OK;
    }
    size_t at = 0;
    while (!is_first(plan, at) || index-- > 0) {
        at++;
    }
    tell_param(plan, at, info);
    return TR_OK;
}

const char *tr_engine_part(const tr_engine *engine, size_t index) {
    const tr_plan_request *r = engine ? &engine->plan->request : NULL;
    int states = r ? r->optimizer_states : 0;
    // Those of what is apart have names of their own where another optimizer has them.
    int apart = r && engine->settings->optimizer->apart ? r->apart_state_count : 0;
    const char *const first[] = {"values", "gradient"};
    if (!engine || index >= 2 + (size_t)states + (size_t)apart) {
        return NULL;
    }
    size_t state = index - 2, own = (size_t)states;
    return index < 2     ? first[index]
           : state < own ? r->states[state].name
                         : r->apart_states[state - own].name;
}
