// Format "random": a synthetic classification set. Sample i is a function of the seed
// and i, so nothing is held and any number of samples is as cheap as one.
#include "base/text.h"
#include "data/sources/dataset.h"
#include "data/sources/formats.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"

#include <stdio.h>

typedef struct synthetic {
    int64_t features, classes;
    uint64_t seed, feature_stream, label_stream;
} synthetic;

static tr_status read_random(void *user, const int64_t *index, int64_t count,
                             void *const *rows, tr_error *err) {
    const synthetic *self = user;
    float *row = rows[0];     // [count, features]
    int32_t *label = rows[1]; // [count]
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        tr__fill_normal(row + i * self->features, index[i] * self->features,
                        self->features, 0, 1, self->seed, self->feature_stream);
        label[i] = (int32_t)tr__draw_below((uint64_t)self->classes, (uint64_t)index[i],
                                           self->seed, self->label_stream);
    }
    return TR_OK;
}

static tr_status check_sizes(const tr_data_options *options, tr_error *err) {
    int64_t product = 0;
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"samples", options->samples},
                 {"features", options->features},
                 {"classes", options->classes}};
    for (int i = 0; i < 3; i++) {
        if (sizes[i].value <= 0) {
            return tr_fail(err, TR_USAGE,
                           "data.%s: random data needs at least 1, not %lld",
                           sizes[i].key, (long long)sizes[i].value);
        }
    }
    if (options->classes > INT32_MAX || options->features > INT32_MAX ||
        !tr__mul_i64(options->samples, options->features, &product)) {
        return tr_fail(err, TR_USAGE,
                       "random data of %lld samples, %lld features and %lld classes is "
                       "too large",
                       (long long)options->samples, (long long)options->features,
                       (long long)options->classes);
    }
    return TR_OK;
}

tr_status tr__random_open(const tr_data_options *options, const tr_data_files *files,
                          tr_dataset **out, tr_error *err) {
    (void)files;
    tr_status status = check_sizes(options, err);
    if (status != TR_OK) {
        return status;
    }
    synthetic *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory for random data");
    }
    *self = (synthetic){options->features, options->classes, options->seed,
                        tr__hash_text("data.features"), tr__hash_text("data.labels")};
    char about[128];
    snprintf(about, sizeof about, "%lld random sample%s, %lld feature%s, %lld classes",
             (long long)options->samples, tr__plural(options->samples),
             (long long)options->features, tr__plural(options->features),
             (long long)options->classes);
    int64_t identity[] = {options->samples, options->features, options->classes,
                          (int64_t)options->seed};
    tr_dataset_source source = {
        .about = about,
        .samples = options->samples,
        .tensors = tr__tensors_of(options, options->features),
        .classes = options->classes,
        .hash = tr__hash_more(tr__hash_text("random"), identity, sizeof identity),
        .bytes = (int64_t)sizeof *self,
        .read = read_random,
        .destroy = tr__free,
        .user = self,
    };
    return tr__dataset_create(&source, out, err);
}
