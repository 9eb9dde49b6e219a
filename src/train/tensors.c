// Parameters and gradients as a program sees them that steps the engine itself.
#include "train/engine.h"

#include <string.h>

const char *tr_engine_parameter_name(const tr_engine *engine, size_t index) {
    const tr_plan *plan = engine->plan;
    for (size_t i = 0; i < plan->param_count; i++) {
        if (plan->params[i].tensor == (int)i && index-- == 0) { // slices: the first
            return plan->params[i].stored;
        }
    }
    return NULL;
}

// The values that belong into the elements of a piece.
static tr_status put_piece(tr_engine *engine, const tr_piece *piece,
                           const float *values, tr_error *err) {
    tr_status status = TR_OK;
    tr_piece run;
    for (int64_t at = 0; at < piece->count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(engine->executor, piece, at, &run, err);
        if (status == TR_OK) {
            memcpy(run.data, values + run.first, (size_t)run.count * sizeof *values);
            status = tr__executor_return(engine->executor, &run, err);
        }
    }
    return status;
}

tr_status tr_engine_set_parameter(tr_engine *engine, const char *name,
                                  const float *values, int64_t count, tr_error *err) {
    const tr_plan *plan = engine->plan;
    tr_status status = TR_OK;
    bool found = false;
    for (size_t i = 0; i < plan->param_count && status == TR_OK; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (strcmp(param->stored, name) != 0) {
            continue;
        }
        if (tr_shape_count(param->stored_shape) != count) {
            return tr_fail(err, TR_USAGE, "%s has %lld elements, not %lld", name,
                           (long long)tr_shape_count(param->stored_shape),
                           (long long)count);
        }
        tr_piece piece = tr__executor_held(engine->executor, (int)i, -1);
        status = put_piece(engine, &piece, values, err);
        if (status == TR_OK) {
            status = tr__executor_round_param(engine->executor, (int)i, err);
        }
        found = true;
    }
    engine->stale_params = true; // other ranks' copies
    return found ? status : tr_fail(err, TR_USAGE, "the model has no tensor %s", name);
}

tr_status tr_engine_gradient(const tr_engine *engine, const char *name, float *values,
                             int64_t count, tr_error *err) {
    const tr_plan *plan = engine->plan;
    bool found = false;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (strcmp(param->stored, name) != 0) {
            continue;
        }
        float *grad = values + param->first;
        if (plan->flats[param->flat].frozen) {
            return tr_fail(err, TR_USAGE, "%s is frozen: it has no gradient", name);
        }
        if (param->first + param->count > count ||
            !tr__executor_read_grad(engine->executor, (int)i, 0, param->count, grad)) {
            return tr_fail(
                err, TR_USAGE,
                "the gradient of %s is not whole in this rank's memory (other ranks, "
                "NVMe or fixed-point sums have it), or the buffer has no room for it",
                name);
        }
        for (int64_t k = 0; k < param->count; k++) {
            grad[k] = (float)(engine->unscale * grad[k]);
        }
        found = true;
    }
    return found ? TR_OK : tr_fail(err, TR_USAGE, "the model has no tensor %s", name);
}
