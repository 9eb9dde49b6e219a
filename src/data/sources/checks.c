// Checks that several formats make, with one wording.
#include "data/sources/formats.h"

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
