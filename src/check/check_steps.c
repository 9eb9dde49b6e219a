#include "check/check_steps.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

#define SCALE_STEP 0x1p4 // how much lower the next loss scale is

// Distances in a tensor whose gradient is smaller than this part of the whole one are
// measured by this part: what is 1e-4 of that, which a check in f32 allows, is about a
// rounding of the whole. The true gradient of a key's bias is 0.
#define LEAST 1e-3

void tr__check_end(tr_attempt *a) {
    tr_engine_destroy(a->engine);
    tr_plan_destroy(a->plan);
    *a = (tr_attempt){0};
}

static tr_status make_once(tr_checker *c, const tr_plan_request *request, tr_attempt *a,
                           tr_error *err) {
    tr_status status = tr_plan_make(request, &a->plan, err);
    if (status == TR_OK) {
        status = tr_engine_create(c->run, a->plan, &a->engine, err);
    }
    if (status == TR_OK && c->part > 0) {
        status = tr__engine_perturb(a->engine, c->part, c->draw, err);
    }
    if (status == TR_OK) {
        a->result.size = sizeof a->result;
        status = tr_engine_step(a->engine, &a->result, err);
    }
    return status;
}

tr_status tr__check_step(tr_checker *c, const tr_plan_request *request, tr_attempt *a,
                         tr_error *err) {
    bool scaled = request->compute == TR_F16;
    for (;; c->scale /= SCALE_STEP) {
        c->run->settings.scale =
            (tr_loss_scale_rules){.initial = scaled ? c->scale : 1};
        tr_status status = make_once(c, request, a, err);
        bool fits = isfinite(a->result.grad_norm) || c->scale <= 1;
        if (status != TR_OK || !scaled || fits) {
            return status;
        }
        tr__check_end(a);
    }
}

enum { RUN = 1024 }; // elements that are read at a time

// Elements [first, first + *count) of a tensor's gradient, *count <= RUN of them. The
// accumulators hold loss_scale times the gradient's sum. false: cannot be read.
static bool read_grad(const tr_checker *c, const tr_attempt *a, size_t t, int64_t first,
                      int64_t *count, float values[RUN]) {
    const tr_check_tensor *tensor = &c->check->tensors[t];
    double scale = a->engine->seed_power / c->power / a->result.loss_scale;
    *count = tr__min_i64(RUN, tensor->count - first);
    if (!tr__executor_read_grad(a->engine->executor, (int)c->param[t], first, *count,
                                values)) {
        return false;
    }
    for (int64_t i = 0; i < *count; i++) {
        values[i] = (float)(values[i] * scale);
    }
    return true;
}

// ---- the first cut

static tr_status list_tensors(tr_checker *c, const tr_plan *plan, tr_error *err) {
    c->check->tensors = tr__calloc(plan->param_count, sizeof *c->check->tensors);
    c->param = tr__calloc(plan->param_count, sizeof *c->param);
    if (!c->check->tensors || !c->param) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (plan->flats[param->flat].frozen) {
            continue;
        }
        size_t t = c->check->tensor_count++;
        c->param[t] = i;
        c->check->tensors[t].count = param->count;
        c->check->tensors[t].name = tr__strdup(param->name);
        if (!c->check->tensors[t].name) {
            return tr_fail(err, TR_MEMORY, "no memory for a check");
        }
    }
    return TR_OK;
}

void tr__check_drop(const tr_checker *c, tr_kept_cut *k) {
    for (size_t t = 0; k->values && t < c->check->tensor_count; t++) {
        tr__free(k->values[t]);
    }
    tr__free(k->values);
    k->values = NULL;
}

static bool keep_tensor(const tr_checker *c, const tr_attempt *a, size_t t, float *to) {
    int64_t count = c->check->tensors[t].count, now = 0;
    for (int64_t at = 0; at < count; at += now) {
        float values[RUN];
        if (!read_grad(c, a, t, at, &now, values)) {
            return false;
        }
        memcpy(to + at, values, (size_t)now * sizeof *values);
    }
    return true;
}

tr_status tr__check_keep(const tr_checker *c, const tr_attempt *a, tr_kept_cut *k,
                         tr_error *err) {
    size_t count = c->check->tensor_count;
    k->loss = a->result.loss;
    k->values = tr__calloc(count, sizeof *k->values);
    for (size_t t = 0; t < count && k->values; t++) {
        size_t elements = (size_t)c->check->tensors[t].count;
        k->values[t] = tr__calloc(elements, sizeof **k->values);
        if (!k->values[t]) {
            tr__check_drop(c, k);
        } else if (!keep_tensor(c, a, t, k->values[t])) {
            return tr_fail(
                err, TR_USAGE,
                "a check reads gradients in memory, which it cannot in reproducible "
                "mode, or with gradients on NVMe: change that for the check by --set");
        }
    }
    return k->values ? TR_OK
                     : tr_fail(err, TR_MEMORY, "no memory for a copy of the gradients");
}

tr_status tr__check_keep_first(tr_checker *c, const tr_attempt *a, tr_error *err) {
    tr_status status = list_tensors(c, a->plan, err);
    double whole = 0;
    c->power = a->engine->seed_power;
    status = status == TR_OK ? tr__check_keep(c, a, &c->first, err) : status;
    for (size_t t = 0; t < c->check->tensor_count && status == TR_OK; t++) {
        double squares = 0;
        for (int64_t i = 0; i < c->check->tensors[t].count; i++) {
            squares += (double)c->first.values[t][i] * c->first.values[t][i];
        }
        c->check->tensors[t].norm = sqrt(squares);
        whole += squares;
    }
    c->whole = sqrt(whole);
    if (status == TR_OK && !isfinite(c->whole)) {
        status = tr_fail(err, TR_NUMBERS,
                         "the gradients of the first step are not "
                         "finite");
    }
    return status;
}

double tr__check_distance(const tr_checker *c, const tr_attempt *a,
                          const tr_kept_cut *from, size_t t, bool *same) {
    const tr_check_tensor *tensor = &c->check->tensors[t];
    int64_t now = 0;
    double sum = 0;
    for (int64_t at = 0; at < tensor->count; at += now) {
        float values[RUN];
        const float *first = from->values[t] + at;
        if (!read_grad(c, a, t, at, &now, values)) {
            return NAN;
        }
        *same = *same && memcmp(values, first, (size_t)now * sizeof *values) == 0;
        for (int64_t i = 0; i < now; i++) {
            double off = (double)values[i] - first[i];
            sum += off * off;
        }
    }
    double least = LEAST * c->whole;
    double norm = tensor->norm > least ? tensor->norm : least;
    return tr__plain(sum > 0 ? sqrt(sum) / norm : sum);
}
