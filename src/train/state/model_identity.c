#include "train/state/model_identity.h"

#include "base/hash.h"
#include "base/quantized.h"

#include <string.h>

// Without what lies between and behind a shape's numbers in memory.
static uint64_t hash_shape(uint64_t hash, const tr_shape *shape) {
    return tr__hash_more(hash, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
}

// Is it the first slice of its tensor, which stands for the whole, or a part of it?
static bool stands(const tr_plan *plan, size_t param) {
    return plan->params[param].tensor == (int)param;
}

// Of names and shapes, as files have them: tells whether a checkpoint is of this model.
static uint64_t model_hash(const tr_engine *engine) {
    uint64_t hash = 0;
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        const tr_plan_param *param = &engine->plan->params[i];
        if (stands(engine->plan, i)) {
            hash = tr__hash_more(hash, param->stored, strlen(param->stored));
            hash = hash_shape(hash, &param->stored_shape);
        }
    }
    for (size_t i = 0; i < engine->plan->state_count; i++) {
        const tr_plan_state *state = &engine->plan->states[i];
        hash = tr__hash_more(hash, state->name, strlen(state->name));
        hash = hash_shape(hash, &state->desc.shape);
    }
    return hash;
}

// Of the names of what is frozen; 0: nothing is. A double holds it exactly.
static double frozen_hash(const tr_engine *engine) {
    const tr_plan *plan = engine->plan;
    uint64_t hash = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (plan->flats[param->flat].frozen && stands(plan, i)) {
            hash = tr__hash_more(hash, param->stored, strlen(param->stored) + 1);
        }
    }
    return (double)(hash >> 11);
}

void tr__model_identity_put(const tr_engine *engine, tr_state *state) {
    double frozen = frozen_hash(engine);
    state->model_hash = model_hash(engine);
    if (frozen != 0) {
        tr__state_numbers_set(&state->numbers, "frozen", frozen);
    }
    if (engine->plan->request.model->adapter) {
        tr__state_numbers_set(&state->numbers, "base", engine->base_hash);
        tr__state_numbers_set(&state->numbers, "quantized",
                              engine->plan->request.quantization);
    }
}

// What is trained here and was frozen there has no states; the other way round they
// would be lost.
static tr_status check_frozen(const tr_engine *engine, const tr_checkpoint *from,
                              tr_error *err) {
    double was = 0;
    tr__state_numbers_get(&from->state.numbers, "frozen", &was);
    return was == frozen_hash(engine)
               ? TR_OK
               : tr_fail(err, TR_IO,
                         "%s: was trained with another \"freeze\" than this run's, so "
                         "it has the optimizer's states of other parameters: give the "
                         "same \"freeze\", or begin a new run from its weights, with "
                         "\"model\": \"%s\" and another \"out\"",
                         from->folder, from->folder);
}

// The adapter has learned what is missing in its own base.
static tr_status check_base(const tr_engine *engine, const tr_checkpoint *from,
                            tr_error *err) {
    double was = engine->base_hash;
    tr__state_numbers_get(&from->state.numbers, "base", &was);
    return was == engine->base_hash
               ? TR_OK
               : tr_fail(err, TR_IO,
                         "%s: its adapter was trained on another base than %s: name "
                         "that one in \"model\", or choose another \"out\"",
                         from->folder, tr__run_weights(engine->run));
}

// And what its bits leave out.
static tr_status check_quantized(const tr_engine *engine, const tr_checkpoint *from,
                                 tr_error *err) {
    tr_quantization is = engine->plan->request.quantization;
    double was = TR_QUANTIZED_NOT;
    tr__state_numbers_get(&from->state.numbers, "quantized", &was);
    return was == is || !engine->plan->request.model->adapter
               ? TR_OK
               : tr_fail(err, TR_IO,
                         "%s: its adapter was trained on a base kept as %s, and "
                         "\"quantization\" says %s here: say the same, or begin a new "
                         "run with \"adapter.path\": \"%s\" and another \"out\"",
                         from->folder, tr__quantization_name((tr_quantization)was),
                         tr__quantization_name(is), from->folder);
}

tr_status tr__model_identity_check(const tr_engine *engine, const tr_checkpoint *from,
                                   tr_error *err) {
    if (from->state.model_hash != model_hash(engine)) {
        return tr_fail(err, TR_IO,
                       "%s: is a checkpoint of another model (names or shapes differ); "
                       "choose another \"out\" folder, or --resume never",
                       from->folder);
    }
    tr_status status = check_base(engine, from, err);
    status = status == TR_OK ? check_quantized(engine, from, err) : status;
    return status == TR_OK ? check_frozen(engine, from, err) : status;
}
