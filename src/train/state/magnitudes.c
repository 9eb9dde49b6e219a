#include "train/state/magnitudes.h"

#include "base/memory.h"
#include "base/quantized.h"
#include "graph/adapter.h"
#include "models/adapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256 };

// ---- weights as they are kept

// Codes of a weight [in, out] are those of it with its sides exchanged.
static tr_status through_bits(const tr_plan_param *param, float *x, tr_error *err) {
    int64_t rows = param->stored_shape.dim[0], columns = param->stored_shape.dim[1];
    if (!param->transposed) {
        return tr__quantize_through(param->quantized, x, rows * columns, err);
    }
    float *turned = tr__calloc((size_t)(rows * columns), sizeof *turned);
    if (!turned) {
        return tr_fail(err, TR_MEMORY, "no memory for tensor %s", param->stored);
    }
    tr__exchange_sides(x, rows, columns, turned);
    tr_status status =
        tr__quantize_through(param->quantized, turned, rows * columns, err);
    tr__exchange_sides(turned, columns, rows, x);
    tr__free(turned);
    return status;
}

tr_status tr__read_as_kept(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                           const tr_plan_param *param, float **out, tr_error *err) {
    float *x = tr__calloc((size_t)tensor->count, sizeof *x);
    tr_status status =
        x ? tr__tensor_read_f32(set, tensor, 0, tensor->count, x, err)
          : tr_fail(err, TR_MEMORY, "no memory for tensor %s", tensor->name);
    if (status == TR_OK && param && param->quantized &&
        tr__tensor_quantization(set, tensor) != param->quantized) {
        status = through_bits(param, x, err);
    }
    if (status != TR_OK) {
        tr__free(x);
        return status;
    }
    *out = x;
    return TR_OK;
}

void tr__add_squares(const float *w, int64_t rows, int64_t columns, bool in_out,
                     double *squares) {
    for (int64_t i = 0; i < rows * columns; i++) {
        squares[in_out ? i % columns : i / columns] += (double)w[i] * (double)w[i];
    }
}

// ---- magnitudes

// The name of the weight of the layer whose magnitudes have this name; false: it is no
// name of magnitudes.
static bool name_weight(const char *magnitudes, char *name) {
    static const char tail[] = "." TR_DORA_M;
    size_t length = strlen(magnitudes), end = sizeof tail - 1;
    if (length <= end || length >= NAME_BYTES ||
        strcmp(magnitudes + length - end, tail) != 0) {
        return false;
    }
    snprintf(name, NAME_BYTES, "%.*s.weight", (int)(length - end), magnitudes);
    return true;
}

static const tr_plan_param *find_param(const tr_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->param_count; i++) {
        if (strcmp(plan->params[i].stored, name) == 0) {
            return &plan->params[i];
        }
    }
    return NULL;
}

// lengths: [elements of the stored parameter], of which the rank has those that lie so.
static tr_status put(tr_executor *executor, int param, const tr_stride *lies,
                     const double *lengths, tr_error *err) {
    tr_piece piece = tr__executor_held(executor, param, -1), run;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < piece.count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(executor, &piece, at, &run, err);
        for (int64_t i = 0; status == TR_OK && i < run.count; i++) {
            run.data[i] = (float)lengths[tr__stride_place(lies, run.first + i)];
        }
        status = status == TR_OK ? tr__executor_return(executor, &run, err) : status;
    }
    return status;
}

static tr_status begin_one(const tr_tensor_set *set, const tr_plan *plan,
                           tr_executor *executor, int param, const char *weight,
                           tr_error *err) {
    const tr_stored_tensor *tensor = tr__tensor_set_find_prefixed(set, weight);
    bool in_out = tr__weights_are_in_out(plan->request.model->type);
    int64_t count = tr_shape_count(plan->params[param].stored_shape);
    float *w = NULL;
    if (!tensor || tensor->rank != 2 || tensor->dim[in_out] != count) {
        return tr_fail(err, TR_IO, "the base has no tensor %s of %lld outputs", weight,
                       (long long)count);
    }
    double *lengths = tr__calloc((size_t)count, sizeof *lengths);
    tr_status status =
        lengths ? tr__read_as_kept(set, tensor, find_param(plan, weight), &w, err)
                : tr_fail(err, TR_MEMORY, "no memory for %s", weight);
    if (status == TR_OK) {
        tr__add_squares(w, tensor->dim[0], tensor->dim[1], in_out, lengths);
        for (int64_t o = 0; o < count; o++) {
            lengths[o] = sqrt(lengths[o]);
        }
        status = put(executor, param, &plan->params[param].lies, lengths, err);
    }
    tr__free(w);
    tr__free(lengths);
    return status;
}

tr_status tr__begin_magnitudes(const tr_tensor_set *set, const tr_plan *plan,
                               tr_executor *executor, tr_error *err) {
    char weight[NAME_BYTES + 16];
    tr_status status = TR_OK;
    for (size_t i = 0; i < plan->param_count && status == TR_OK; i++) {
        if (name_weight(plan->params[i].stored, weight)) {
            status = begin_one(set, plan, executor, (int)i, weight, err);
        }
    }
    return status;
}
