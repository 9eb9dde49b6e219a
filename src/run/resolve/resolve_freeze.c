// Which parameters are not trained, and in which type they are kept.
#include "base/half.h"
#include "files/safetensors/tensor_set.h"
#include "models/adapter.h"
#include "run/run.h"

#include <string.h>

// Are the folder's weights all of the type? Those of a bf16 model are; a checkpoint's
// are of f32, unless checkpoint.dtype says otherwise.
static tr_status are_of_type(const char *folder, tr_dtype type, bool *are,
                             tr_error *err) {
    tr_tensor_set *set = NULL;
    tr_status status = tr__tensor_set_open(folder, &set, err);
    *are = status == TR_OK;
    for (size_t i = 0; status == TR_OK && i < tr__tensor_set_count(set); i++) {
        *are = *are && tr__tensor_set_at(set, i)->dtype == type;
    }
    tr__tensor_set_close(set);
    return status;
}

// Rows that are drawn are of f32.
static bool draws_rows(const tr_run *run) {
    return run->tokens_read > 0 && run->tokens_read < run->model->classes;
}

// How the base's weights are kept.
static tr_status read_quantization(tr_run *run, tr_error *err) {
    const char *base = tr__config_text(run->config, "quantization.base");
    bool twice = tr__config_bool(run->config, "quantization.double");
    bool nf4 = base && strcmp(base, "nf4") == 0;
    if (base && !run->model->adapter) {
        return tr_fail(err, TR_USAGE,
                       "quantization.base: what is kept in few bits cannot be trained; "
                       "set \"adapter\", which is trained beside it");
    }
    if (twice && !nf4) {
        return tr_fail(err, TR_USAGE,
                       "quantization.double is of quantization.base \"nf4\"; set that, "
                       "or leave it out");
    }
    run->request.quantization = !base   ? TR_QUANTIZED_NOT
                                : twice ? TR_QUANTIZED_NF4_DOUBLE
                                : nf4   ? TR_QUANTIZED_NF4
                                        : TR_QUANTIZED_Q8_0;
    return TR_OK;
}

// All but the adapter. The base is kept in the type that computes alone: it is rounded
// to that when it is read.
static tr_status freeze_base(tr_run *run, tr_error *err) {
    static const char *const all[] = {"*"};
    tr_plan_request *r = &run->request;
    if (tr__config_is_given(run->config, "freeze")) {
        return tr_fail(err, TR_USAGE,
                       "freeze: with an adapter all of the base is frozen but "
                       "adapter.modules_to_save; leave freeze out");
    }
    r->frozen = all;
    r->frozen_count = 1;
    r->unfrozen = tr__adapter_trained(tr__model_adapter(run->model));
    r->frozen_half = r->frozen_rounds = tr__dtype_is_half(r->compute);
    return TR_OK;
}

tr_status tr__run_resolve_freeze(tr_run *run, tr_error *err) {
    tr_patterns *freeze = &run->settings.freeze;
    tr_plan_request *r = &run->request;
    tr_status status = read_quantization(run, err);
    if (status != TR_OK || run->model->adapter) {
        return status == TR_OK ? freeze_base(run, err) : status;
    }
    status = tr__patterns_read(tr__config_json(run->config, "freeze"), freeze, err);
    r->frozen = (const char *const *)freeze->globs;
    r->frozen_count = freeze->count;
    bool may = freeze->count > 0 && run->weights && tr__dtype_is_half(r->compute) &&
               !draws_rows(run);
    return status == TR_OK && may
               ? are_of_type(run->weights, r->compute, &r->frozen_half, err)
               : status;
}
