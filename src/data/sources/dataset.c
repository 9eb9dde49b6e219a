#include "data/sources/dataset.h"

#include "base/arguments.h"
#include "base/memory.h"

#include <stdatomic.h>

struct tr_dataset {
    tr_dataset_source source; // about: owned
    tr_data_identity identity;
    _Atomic int users;
    bool chats, epochs, weights;
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

void tr__dataset_mark_chats(tr_dataset *dataset) {
    dataset->chats = true;
}

bool tr__dataset_has_chats(const tr_dataset *dataset) {
    return dataset->chats;
}

void tr__dataset_mark_epochs(tr_dataset *dataset) {
    dataset->epochs = true;
}

bool tr__dataset_has_epochs(const tr_dataset *dataset) {
    return dataset->epochs;
}

void tr__dataset_mark_weights(tr_dataset *dataset) {
    dataset->weights = true;
}

bool tr__dataset_has_weights(const tr_dataset *dataset) {
    return dataset->weights;
}

void tr__dataset_names(tr_dataset *dataset, uint64_t names) {
    dataset->identity.names = names;
}

void tr__dataset_identify(tr_dataset *dataset, const tr_data_identity *identity) {
    dataset->identity = *identity;
}

bool tr__dataset_asks_caller(const tr_dataset *dataset) {
    return dataset->source.on_calling_thread;
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
                          void *const *rows, tr_error *err) {
    static const char own_name[] = "tr_dataset_read";
    tr_status given = tr__need(dataset, own_name, "dataset", err);
    given = given == TR_OK ? tr__need(index, own_name, "index", err) : given;
    given = given == TR_OK ? tr__need(rows, own_name, "rows", err) : given;
    if (given != TR_OK) {
        return given;
    }
    const tr_dataset_source *source = &dataset->source;
    for (int64_t i = 0; i < count; i++) {
        if (index[i] < 0 || (index[i] >= source->samples && !dataset->epochs)) {
            return tr_fail(err, TR_USAGE,
                           "sample %lld was asked for, and the dataset has %lld",
                           (long long)index[i], (long long)source->samples);
        }
    }
    return source->read(source->user, index, count, rows, err);
}

int64_t tr_dataset_samples(const tr_dataset *dataset) {
    return dataset ? dataset->source.samples : 0;
}

const tr_batch_tensors *tr_dataset_tensors(const tr_dataset *dataset) {
    return dataset ? &dataset->source.tensors : NULL;
}

int64_t tr_dataset_vocabulary(const tr_dataset *dataset) {
    return dataset ? dataset->source.vocabulary : 0;
}

int64_t tr_dataset_classes(const tr_dataset *dataset) {
    return dataset ? dataset->source.classes : 0;
}

uint64_t tr_dataset_hash(const tr_dataset *dataset) {
    return dataset ? dataset->source.hash : 0;
}

int64_t tr_dataset_bytes(const tr_dataset *dataset) {
    return dataset ? dataset->source.bytes : 0;
}

const char *tr_dataset_about(const tr_dataset *dataset) {
    return dataset ? dataset->source.about : "";
}

tr_batch_tensors tr__tensors_of(const tr_data_options *options, int64_t features) {
    int64_t height = options->image_height, width = options->image_width;
    tr_batch_tensors image = tr_batch_images(height, width, options->image_channels);
    if (height <= 0) {
        return tr_batch_features(features);
    }
    if (tr_shape_count(image.tensor[0].desc.shape) != features) {
        image.tensor[0].desc.shape = TR_SHAPE1(features);
    }
    return image;
}

int64_t tr__dataset_features(const tr_dataset *dataset) {
    return tr_shape_count(tr_batch_input(&dataset->source.tensors)->desc.shape);
}

void tr__rows_move(const tr_batch_tensors *tensors, int64_t by, void *const *rows,
                   void *out[TR_BATCH_TENSORS_MAX]) {
    for (int i = 0; i < tensors->count; i++) {
        out[i] = (char *)rows[i] + by * tr_tensor_bytes(tensors->tensor[i].desc);
    }
}
