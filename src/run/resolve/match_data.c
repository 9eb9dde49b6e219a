#include "run/resolve/match_data.h"

#include "base/checked.h"
#include "ops/operand.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LIST_TEXT = 256 };

typedef struct matching {
    const tr_dataset *data;
    const tr_model *model;
    tr_error *err;
} matching;

static const char *type_text(tr_dtype dtype, char text[8]) {
    snprintf(text, 8, "%s", tr_dtype_name(dtype));
    for (char *c = text; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return text;
}

// "input_ids i32 [128]"; returns how many bytes.
static size_t tensor_text(const tr_batch_tensor *tensor, char *text, size_t size) {
    char shape[TR_SHAPE_TEXT], type[8];
    int length = snprintf(text, size, "%s %s %s", tensor->name,
                          type_text(tensor->desc.dtype, type),
                          tr__shape_text(tensor->desc.shape, shape));
    return (size_t)length < size ? (size_t)length : size - 1;
}

// "input_ids i32 [128], labels i32 [128]"
static const char *list_text(const tr_batch_tensors *batch, char text[LIST_TEXT]) {
    size_t at = 0;
    for (int i = 0; i < batch->count; i++) {
        if (i > 0 && at + 2 < LIST_TEXT) {
            at += (size_t)snprintf(text + at, LIST_TEXT - at, ", ");
        }
        at += tensor_text(&batch->tensor[i], text + at, LIST_TEXT - at);
    }
    return text;
}

static tr_status fail_missing(const matching *m, const tr_batch_tensor *tensor,
                              bool in_data) {
    char has[LIST_TEXT], one[LIST_TEXT];
    const tr_batch_tensors *data = tr_dataset_tensors(m->data);
    const tr_batch_tensors *other = in_data ? data : &m->model->batch;
    tensor_text(tensor, one, sizeof one);
    list_text(other, has);
    if (in_data) {
        return tr_fail(m->err, TR_DATA,
                       "the model (%s) takes the tensor %s, which the data (%s) does "
                       "not have; the data has %s",
                       m->model->type, one, tr_dataset_about(m->data), has);
    }
    return tr_fail(m->err, TR_DATA,
                   "the data (%s) has the tensor %s, which the model (%s) does not "
                   "take; the model takes %s",
                   tr_dataset_about(m->data), one, m->model->type, has);
}

static const char *what_to_change(const tr_model *model, tr_batch_role role) {
    bool input = role == TR_ROLE_INPUT;
    return !model->classifier ? "data.max_length"
           : !input           ? "the model's last layer"
           : tr_batch_input(&model->batch)->desc.shape.rank == 3
               ? "the model's image_size"
               : "the model's first layer";
}

static tr_status match_one(const matching *m, const tr_batch_tensor *has,
                           const tr_batch_tensor *takes) {
    char a[LIST_TEXT], b[LIST_TEXT];
    int64_t values = tr_shape_count(has->desc.shape);
    int64_t wanted = tr_shape_count(takes->desc.shape);
    bool fits = has->role == takes->role && has->desc.dtype == takes->desc.dtype &&
                tr_shape_equal(has->desc.shape, takes->desc.shape);
    if (fits) {
        return TR_OK;
    }
    if (has->role != takes->role) {
        return tr_fail(m->err, TR_DATA,
                       "the tensor %s has one role in the data (%s) and another in the "
                       "model (%s): it is an input in one and a target in the other",
                       has->name, tr_dataset_about(m->data), m->model->type);
    }
    if (has->desc.dtype == takes->desc.dtype && values != wanted) {
        return tr_fail(
            m->err, TR_DATA,
            "the data (%s) has %lld values a sample, the model takes %lld in "
            "%s: change %s or the data",
            tr_dataset_about(m->data), (long long)values, (long long)wanted, has->name,
            what_to_change(m->model, has->role));
    }
    tensor_text(has, a, sizeof a);
    tensor_text(takes, b, sizeof b);
    return tr_fail(m->err, TR_DATA, "the data (%s) has %s, the model (%s) takes %s",
                   tr_dataset_about(m->data), a, m->model->type, b);
}

static tr_status match_tensors(const matching *m) {
    const tr_batch_tensors *data = tr_dataset_tensors(m->data);
    const tr_batch_tensors *model = &m->model->batch;
    tr_status status = TR_OK;
    for (int i = 0; i < model->count && status == TR_OK; i++) {
        int at = tr_batch_find(data, model->tensor[i].name);
        status = at < 0 ? fail_missing(m, &model->tensor[i], true)
                        : match_one(m, &data->tensor[at], &model->tensor[i]);
    }
    for (int i = 0; i < data->count && status == TR_OK; i++) {
        bool taken = tr_batch_find(model, data->tensor[i].name) >= 0;
        status = taken ? TR_OK : fail_missing(m, &data->tensor[i], false);
    }
    return status;
}

tr_status tr__data_match(const tr_dataset *data, const tr_model *model, tr_error *err) {
    tr_status status = match_tensors(&(matching){data, model, err});
    // The labels of texts are numbers of texts, or have a count of their own.
    bool texts = model->embedding_width > 0 || model->labels > 0;
    int64_t classes = texts ? 0 : tr_dataset_classes(data);
    if (status == TR_OK && model->labels > 0 &&
        tr_dataset_classes(data) > model->labels) {
        return tr_fail(err, TR_DATA, "the data (%s) has %lld labels, the model %lld",
                       tr_dataset_about(data), (long long)tr_dataset_classes(data),
                       (long long)model->labels);
    }
    classes = tr__max_i64(classes, tr_dataset_vocabulary(data));
    if (status == TR_OK && classes > model->classes) {
        return tr_fail(err, TR_DATA,
                       "the data (%s) has %lld classes, the model %lld: make the "
                       "model's %s at least as large",
                       tr_dataset_about(data), (long long)classes,
                       (long long)model->classes,
                       model->classifier ? "last layer" : "vocab_size");
    }
    return status;
}
