#include "data/text/apart.h"

#include "base/hash.h"
#include "base/memory.h"
#include "data/sources/dataset.h"

#include <math.h>
#include <string.h>

// A tensor of the packed samples: numbers of each token, or of each document.
typedef struct column {
    int32_t *values;     // [rows, width], as they were packed
    int64_t width;       // of a row
    int64_t each;        // of a document; 0: each token has one number
    bool target, number; // F32
} column;

typedef struct apart {
    column column[TR_BATCH_TENSORS_MAX];
    tr_batch_tensors tensors;
    int positions, targets; // their numbers among the tensors
    int64_t length;         // of a row
    int64_t *first;         // [count] where documents begin among the tokens
    int64_t *size;          // [count]
    int64_t *place;         // [count] how many others are before them in their row
    int64_t count;
} apart;

// A value that is no target, where these are numbers or classes.
static int32_t no_target(const column *c) {
    const float nothing = NAN;
    int32_t bits = c->target ? TR_NO_TARGET : 0;
    if (c->target && c->number) {
        memcpy(&bits, &nothing, sizeof bits);
    }
    return bits;
}

// Where what the column says of document d begins, and how many numbers that is.
static const int32_t *said_of(const apart *a, const column *c, int64_t d,
                              int64_t *count) {
    int64_t row = a->first[d] / a->length;
    *count = c->each > 0 ? c->each : a->size[d];
    return c->values +
           (c->each > 0 ? row * c->width + a->place[d] * c->each : a->first[d]);
}

static tr_status read_apart(void *user, const int64_t *index, int64_t count,
                            void *const *rows, tr_error *err) {
    const apart *a = user;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        for (int t = 0; t < a->tensors.count; t++) {
            const column *c = &a->column[t];
            int32_t *to = (int32_t *)rows[t] + i * c->width;
            int64_t said = 0;
            const int32_t *from = said_of(a, c, index[i], &said);
            memcpy(to, from, (size_t)said * sizeof *to);
            for (int64_t k = said; k < c->width; k++) {
                to[k] = no_target(c);
            }
        }
    }
    return TR_OK;
}

static void destroy(void *user) {
    apart *a = user;
    for (int t = 0; t < TR_BATCH_TENSORS_MAX; t++) {
        tr__free(a->column[t].values);
    }
    tr__free(a->first);
    tr__free(a->size);
    tr__free(a->place);
    tr__free(a);
}

static bool take_memory(apart *a, int64_t rows) {
    bool good = true;
    int64_t tokens = rows * a->length;
    for (int t = 0; t < a->tensors.count; t++) {
        column *c = &a->column[t];
        c->values = tr__calloc((size_t)(rows * c->width), sizeof *c->values);
        good = good && c->values;
    }
    a->first = tr__calloc((size_t)tokens, sizeof *a->first);
    a->size = tr__calloc((size_t)tokens, sizeof *a->size);
    a->place = tr__calloc((size_t)tokens, sizeof *a->place);
    return good && a->first && a->size && a->place;
}

static bool is_target(const column *c, int32_t value) {
    float number;
    memcpy(&number, &value, sizeof number);
    return c->number ? !isnan(number) : value != TR_NO_TARGET;
}

// The document of the tokens [first, end), the `place`th of its row, where it has a
// target.
static void add(apart *a, int64_t first, int64_t end, int64_t place) {
    const column *c = &a->column[a->targets];
    int64_t d = a->count, said = 0;
    bool any = false;
    if (c->each > 0 && (place + 1) * c->each > c->width) {
        return; // padding, of which nothing is said
    }
    a->first[d] = first;
    a->size[d] = end - first;
    a->place[d] = place;
    const int32_t *from = said_of(a, c, d, &said);
    for (int64_t i = 0; i < said; i++) {
        any = any || is_target(c, from[i]);
    }
    a->count += any;
}

static void find_documents(apart *a, int64_t tokens) {
    const int32_t *places = a->column[a->positions].values;
    int64_t first = 0, place = 0;
    for (int64_t i = 1; i <= tokens; i++) {
        if (i == tokens || places[i] == 0 || i % a->length == 0) {
            add(a, first, i, place);
            place = i % a->length == 0 ? 0 : place + 1;
            first = i;
        }
    }
}

static tr_status wrap(apart *a, const tr_dataset *packed, tr_dataset **out,
                      tr_error *err) {
    if (a->count == 0) {
        destroy(a);
        return tr_fail(err, TR_DATA, "none of the packed documents has a target");
    }
    tr_dataset_source source = {
        .about = "documents apart",
        .samples = a->count,
        .tensors = a->tensors,
        .vocabulary = tr_dataset_vocabulary(packed),
        .classes = tr_dataset_classes(packed),
        .hash = tr__hash_text("documents apart"),
        .read = read_apart,
        .destroy = destroy,
        .user = a,
    };
    return tr__dataset_create(&source, out, err);
}

// false: the tensor is neither of tokens nor of documents.
static bool read_column(const tr_batch_tensor *tensor, int64_t length, column *out) {
    tr_shape shape = tensor->desc.shape;
    bool tokens = shape.rank == 1 && shape.dim[0] == length;
    *out = (column){.width = tr_shape_count(shape),
                    .target = tensor->role == TR_ROLE_TARGET,
                    .number = tensor->desc.dtype == TR_F32};
    if (!tokens) {
        out->each = shape.rank == 2 ? shape.dim[1] : 1;
    }
    bool documents = out->target && (shape.rank == 1 || shape.rank == 2);
    return tokens ? tensor->desc.dtype == TR_I32 : documents;
}

static bool read_columns(apart *a, const tr_batch_tensors *tensors) {
    const tr_batch_tensor *places = tr_batch_positions(tensors);
    const tr_batch_tensor *targets = tr_batch_target(tensors);
    bool good = places && targets;
    a->tensors = *tensors;
    for (int t = 0; good && t < tensors->count; t++) {
        const tr_batch_tensor *tensor = &tensors->tensor[t];
        a->positions = tensor == places ? t : a->positions;
        a->targets = tensor == targets ? t : a->targets;
        a->length = places->desc.shape.dim[0];
        good = read_column(tensor, a->length, &a->column[t]);
    }
    return good;
}

tr_status tr__documents_apart(tr_dataset *packed, const int64_t *index, int64_t count,
                              tr_dataset **out, tr_error *err) {
    void *rows[TR_BATCH_TENSORS_MAX] = {0};
    apart *a = tr__calloc(1, sizeof *a);
    if (!a) {
        return tr_fail(err, TR_MEMORY, "no memory to take documents apart");
    }
    tr_status status =
        read_columns(a, tr_dataset_tensors(packed))
            ? TR_OK
            : tr_fail(
                  err, TR_USAGE,
                  "only data with position_ids and labels, whose tensors say "
                  "something of each token or of each document, can be taken apart");
    if (status == TR_OK && !take_memory(a, count)) {
        status = tr_fail(err, TR_MEMORY, "no memory to take documents apart");
    }
    for (int t = 0; t < a->tensors.count; t++) {
        rows[t] = a->column[t].values;
    }
    status =
        status == TR_OK ? tr_dataset_read(packed, index, count, rows, err) : status;
    if (status != TR_OK) {
        destroy(a);
        return status;
    }
    find_documents(a, count * a->length);
    return wrap(a, packed, out, err);
}
