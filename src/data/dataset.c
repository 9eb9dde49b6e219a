#include "data/dataset.h"

#include "data/order.h"

#include "base/memory.h"

#include <stdatomic.h>

struct tr_dataset {
    tr_dataset_source source; // about: owned
    tr_data_identity identity;
    _Atomic int users;
};

tr_status tr__dataset_create(const tr_dataset_source *source, tr_dataset **out,
                             tr_error *err) {
    tr_status status = TR_OK;
    tr_dataset *dataset = tr__calloc(1, sizeof *dataset);
    char *about = tr__strdup(source->about ? source->about : "callback");
    if (!dataset || !about) {
        status = tr_fail(err, TR_MEMORY, "no memory to open a dataset");
    } else if (source->samples > TR_SAMPLES_MAX) {
        status = tr_fail(err, TR_USAGE, "data of %lld samples; 2^62 are the most",
                         (long long)source->samples);
    }
    if (status != TR_OK) {
        tr__free(dataset);
        tr__free(about);
        if (source->destroy) {
            source->destroy(source->user);
        }
        return status;
    }
    dataset->source = *source;
    dataset->source.about = about;
    dataset->identity = (tr_data_identity){source->hash, 0, source->hash};
    atomic_init(&dataset->users, 1);
    *out = dataset;
    return TR_OK;
}

const tr_data_identity *tr__dataset_identity(const tr_dataset *dataset) {
    return &dataset->identity;
}

void tr__dataset_names(tr_dataset *dataset, uint64_t names) {
    dataset->identity.names = names;
}

void tr__dataset_identify(tr_dataset *dataset, const tr_data_identity *identity) {
    dataset->identity = *identity;
}

const void *tr__dataset_user(const tr_dataset *dataset) {
    return dataset->source.user;
}

tr_dataset *tr__dataset_retain(tr_dataset *dataset) {
    atomic_fetch_add(&dataset->users, 1);
    return dataset;
}

void tr_dataset_destroy(tr_dataset *dataset) {
    if (!dataset || atomic_fetch_sub(&dataset->users, 1) > 1) {
        return;
    }
    if (dataset->source.destroy) {
        dataset->source.destroy(dataset->source.user);
    }
    tr__free((char *)dataset->source.about);
    tr__free(dataset);
}

tr_status tr_dataset_read(tr_dataset *dataset, const int64_t *index, int64_t count,
                          void *input, void *target, tr_error *err) {
    const tr_dataset_source *source = &dataset->source;
    for (int64_t i = 0; i < count; i++) {
        if (index[i] < 0 || index[i] >= source->samples) {
            return tr_fail(err, TR_USAGE, "sample %lld of a dataset that has %lld",
                           (long long)index[i], (long long)source->samples);
        }
    }
    return source->read(source->user, index, count, input, target, err);
}

int64_t tr_dataset_samples(const tr_dataset *dataset) {
    return dataset->source.samples;
}

tr_sample_desc tr_dataset_sample(const tr_dataset *dataset) {
    return dataset->source.sample;
}

int64_t tr_dataset_vocabulary(const tr_dataset *dataset) {
    return dataset->source.vocabulary;
}

int64_t tr_dataset_classes(const tr_dataset *dataset) {
    return dataset->source.classes;
}

uint64_t tr_dataset_hash(const tr_dataset *dataset) {
    return dataset->source.hash;
}

int64_t tr_dataset_bytes(const tr_dataset *dataset) {
    return dataset->source.bytes;
}

const char *tr_dataset_about(const tr_dataset *dataset) {
    return dataset->source.about;
}

int64_t tr__sample_input_bytes(tr_sample_desc sample) {
    return tr_tensor_bytes(sample.input);
}

int64_t tr__sample_target_bytes(tr_sample_desc sample) {
    return tr_tensor_bytes(sample.target);
}

tr_sample_desc tr__sample_text(int64_t length) {
    tr_tensor_desc ids = {TR_I32, TR_SHAPE1(length)};
    return (tr_sample_desc){ids, ids};
}

tr_sample_desc tr__sample_features(int64_t features) {
    return (tr_sample_desc){{TR_F32, TR_SHAPE1(features)}, {TR_I32, {0}}};
}

tr_sample_desc tr__sample_of(const tr_data_options *options, int64_t features) {
    tr_shape image =
        TR_SHAPE3(options->image_height, options->image_width, options->image_channels);
    return tr_shape_count(image) == features
               ? (tr_sample_desc){{TR_F32, image}, {TR_I32, {0}}}
               : tr__sample_features(features);
}
