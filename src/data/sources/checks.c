// Checks that several formats make, with one wording.
#include "data/sources/dataset.h"
#include "data/sources/formats.h"

#include <stdio.h>

tr_status tr__label_check(int64_t label, int64_t classes, const char *path,
                          int64_t position, tr_error *err) {
    int64_t bound = classes > 0 ? classes : INT32_MAX;
    if (label == TR_NO_TARGET || (label >= 0 && label < bound)) {
        return TR_OK;
    }
    return tr_fail(
        err, TR_DATA,
        "%s: label %lld at position %lld is not in [0, %lld), nor %d for none; "
        "correct it, or raise data.classes and the model's outputs",
        path, (long long)label, (long long)position, (long long)bound, TR_NO_TARGET);
}

// Where labels may be missing, a trained model says how many; else the run file.
tr_status tr__features_check(int64_t features, const tr_data_options *options,
                             const char *path, tr_error *err) {
    if (options->features == 0 || features == options->features) {
        return TR_OK;
    }
    return tr_fail(err, TR_DATA,
                   options->labels_optional
                       ? "%s: %lld features in a row, but the model takes %lld"
                       : "%s: %lld features in a row, but data.features is %lld; "
                         "correct it, or leave it out",
                   path, (long long)features, (long long)options->features);
}

// ---- what kernels trust

enum { SAMPLE_TEXT = 32 };

// "sample 17" of a data set; "row 3" of what a caller has handed over.
static const char *sample_name(const tr_checked_rows *rows, int64_t row, char *text) {
    bool known = rows->index != NULL;
    snprintf(text, SAMPLE_TEXT, "%s %lld", known ? "sample" : "row",
             (long long)(known ? rows->index[row] : row));
    return text;
}

static tr_status check_ids(const tr_batch_tensor *tensor, const tr_checked_rows *rows,
                           tr_error *err) {
    const int32_t *id = rows->rows;
    int64_t each = tr_shape_count(tensor->desc.shape), bound = rows->bound;
    char sample[SAMPLE_TEXT];
    for (int64_t i = 0; bound > 0 && i < rows->count * each; i++) {
        bool lacks = tensor->role == TR_ROLE_TARGET && id[i] == TR_NO_TARGET;
        if (!lacks && (id[i] < 0 || id[i] >= bound)) {
            return tr_fail(err, TR_DATA,
                           "%s: %s: %d at element %lld is not in [0, %lld)",
                           sample_name(rows, i / each, sample), tensor->name, id[i],
                           (long long)(i % each), (long long)bound);
        }
    }
    return TR_OK;
}

// Kernels look as many places back as a place says.
static tr_status check_places(const tr_batch_tensor *tensor,
                              const tr_checked_rows *rows, tr_error *err) {
    const int32_t *place = rows->rows;
    int64_t each = tr_shape_count(tensor->desc.shape);
    char sample[SAMPLE_TEXT];
    for (int64_t i = 0; i < rows->count * each; i++) {
        bool goes_on = i % each > 0 && place[i] == place[i - 1] + 1;
        if (place[i] != 0 && !goes_on) {
            return tr_fail(err, TR_DATA,
                           "%s: %s: %d at element %lld is neither 0, where a "
                           "document begins, nor one more than before",
                           sample_name(rows, i / each, sample), tensor->name, place[i],
                           (long long)(i % each));
        }
    }
    return TR_OK;
}

tr_status tr__rows_check(const tr_batch_tensor *tensor, const tr_checked_rows *rows,
                         tr_error *err) {
    if (tensor->desc.dtype != TR_I32) {
        return TR_OK;
    }
    return tensor->role == TR_ROLE_POSITION ? check_places(tensor, rows, err)
                                            : check_ids(tensor, rows, err);
}
