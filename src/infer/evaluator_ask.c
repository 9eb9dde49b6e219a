// What a model says of rows that the caller has in memory.
#include "base/arguments.h"
#include "base/checked.h"
#include "infer/evaluator.h"

#include <string.h>

typedef struct asked {
    const tr_batch_tensors *tensors;
    const void *const *rows;
} asked;

// The samples are there in their order, one after the other.
static tr_status read_asked(void *user, const int64_t *index, int64_t count,
                            void *const *rows, tr_error *err) {
    const asked *from = user;
    (void)err;
    for (int t = 0; t < from->tensors->count; t++) {
        const tr_batch_tensor *tensor = &from->tensors->tensor[t];
        size_t bytes = (size_t)tr_tensor_bytes(tensor->desc);
        const char *row = from->rows[t];
        if (row) {
            memcpy(rows[t], row + (size_t)index[0] * bytes, (size_t)count * bytes);
        } else { // the target: every position is answered for
            memset(rows[t], 0, (size_t)count * bytes);
        }
    }
    return TR_OK;
}

static tr_status check_asked(const tr_evaluator *e, const asked *from, int64_t count,
                             const float *logits, tr_error *err) {
    static const char name[] = "tr_evaluator_ask";
    tr_status status = tr__need(from->rows, name, "rows", err);
    status = status == TR_OK ? tr__need(logits, name, "logits", err) : status;
    status = status == TR_OK ? tr__evaluator_computes(e, err) : status;
    for (int t = 0; t < from->tensors->count && status == TR_OK; t++) {
        const tr_batch_tensor *tensor = &from->tensors->tensor[t];
        if (!from->rows[t] && tensor->role != TR_ROLE_TARGET) {
            status = tr_fail(err, TR_USAGE, "%s: rows[%d], \"%s\", is NULL", name, t,
                             tensor->name);
        }
    }
    return status == TR_OK && count < 1
               ? tr_fail(err, TR_USAGE, "%s: asked for %lld rows", name,
                         (long long)count)
               : status;
}

static tr_status answer(tr_evaluator *e, tr_dataset *data, float *logits,
                        tr_error *err) {
    int64_t samples = tr_dataset_samples(data);
    int64_t each = e->positions * e->width;
    tr_status status = TR_OK;
    for (int64_t first = 0; first < samples && status == TR_OK; first += e->batch) {
        const float *made = NULL;
        int64_t count = tr__min_i64(e->batch, samples - first);
        status = tr__evaluator_fill(e, data, first, count, err);
        if (status == TR_OK) {
            status = tr__evaluator_compute(e, first, count, &made, err);
        }
        if (status == TR_OK) {
            memcpy(logits + first * each, made, (size_t)(count * each) * sizeof *made);
        }
    }
    return status;
}

tr_status tr_evaluator_ask(tr_evaluator *e, const void *const *rows, int64_t count,
                           float *logits, tr_error *err) {
    tr_dataset *data = NULL;
    tr_status status = tr__need(e, "tr_evaluator_ask", "evaluator", err);
    if (status != TR_OK) {
        return status;
    }
    asked from = {&e->model->batch, rows};
    status = check_asked(e, &from, count, logits, err);
    if (status == TR_OK) {
        const tr_dataset_source source = {.size = sizeof(tr_dataset_source),
                                          .about = "rows",
                                          .samples = count,
                                          .tensors = e->model->batch,
                                          .vocabulary = e->model->classes,
                                          .read = read_asked,
                                          .user = &from};
        status = tr_dataset_create_callback(&source, &data, err);
    }
    if (status == TR_OK) {
        status = answer(e, data, logits, err);
    }
    tr_dataset_destroy(data);
    return status;
}
