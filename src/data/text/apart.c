#include "data/text/apart.h"

#include "base/hash.h"
#include "base/memory.h"
#include "data/sources/dataset.h"

#include <string.h>

enum { IDS, LABELS, PLACES, TENSORS }; // of tr_batch_packed

typedef struct apart {
    int32_t *token[TENSORS]; // [rows, length] each, as they were packed
    int64_t length;
    int64_t *first; // [count] where documents begin in `token`
    int64_t *size;  // [count]
    int64_t count;
} apart;

static tr_status read_apart(void *user, const int64_t *index, int64_t count,
                            void *const *rows, tr_error *err) {
    const apart *a = user;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        int64_t first = a->first[index[i]], size = a->size[index[i]];
        for (int t = 0; t < TENSORS; t++) {
            int32_t *to = (int32_t *)rows[t] + i * a->length;
            memcpy(to, a->token[t] + first, (size_t)size * sizeof *to);
            for (int64_t k = size; k < a->length; k++) {
                to[k] = t == LABELS ? TR_NO_TARGET : 0;
            }
        }
    }
    return TR_OK;
}

static void destroy(void *user) {
    apart *a = user;
    for (int t = 0; t < TENSORS; t++) {
        tr__free(a->token[t]);
    }
    tr__free(a->first);
    tr__free(a->size);
    tr__free(a);
}

static bool take_memory(apart *a, int64_t tokens) {
    bool good = true;
    for (int t = 0; t < TENSORS; t++) {
        a->token[t] = tr__calloc((size_t)tokens, sizeof *a->token[t]);
        good = good && a->token[t];
    }
    a->first = tr__calloc((size_t)tokens, sizeof *a->first);
    a->size = tr__calloc((size_t)tokens, sizeof *a->size);
    return good && a->first && a->size;
}

// The document of the tokens [first, end), where one of them has a target.
static void add(apart *a, int64_t first, int64_t end) {
    bool any = false;
    for (int64_t i = first; i < end; i++) {
        any = any || a->token[LABELS][i] != TR_NO_TARGET;
    }
    if (any) {
        a->first[a->count] = first;
        a->size[a->count++] = end - first;
    }
}

static void find_documents(apart *a, int64_t tokens) {
    int64_t first = 0;
    for (int64_t i = 1; i <= tokens; i++) {
        if (i == tokens || a->token[PLACES][i] == 0) {
            add(a, first, i);
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
        .tensors = tr_batch_packed(a->length),
        .vocabulary = tr_dataset_vocabulary(packed),
        .classes = tr_dataset_classes(packed),
        .hash = tr__hash_text("documents apart"),
        .read = read_apart,
        .destroy = destroy,
        .user = a,
    };
    return tr__dataset_create(&source, out, err);
}

// Does the data set have the tensors of tr_batch_packed, in its order?
static bool is_packed(const tr_batch_tensors *tensors, int64_t length) {
    tr_batch_tensors packed = tr_batch_packed(length);
    bool good = tensors->count == packed.count;
    for (int t = 0; good && t < packed.count; t++) {
        good = strcmp(tensors->tensor[t].name, packed.tensor[t].name) == 0;
    }
    return good;
}

tr_status tr__documents_apart(tr_dataset *packed, const int64_t *index, int64_t count,
                              tr_dataset **out, tr_error *err) {
    const tr_batch_tensors *tensors = tr_dataset_tensors(packed);
    int64_t length = tr__dataset_features(packed);
    if (!is_packed(tensors, length)) {
        return tr_fail(err, TR_USAGE,
                       "only data with the tensors input_ids, labels and position_ids "
                       "can be taken apart");
    }
    apart *a = tr__calloc(1, sizeof *a);
    if (!a || !take_memory(a, count * length)) {
        if (a) {
            destroy(a);
        }
        return tr_fail(err, TR_MEMORY, "no memory to take documents apart");
    }
    a->length = length;
    void *rows[] = {a->token[IDS], a->token[LABELS], a->token[PLACES]};
    tr_status status = tr_dataset_read(packed, index, count, rows, err);
    if (status != TR_OK) {
        destroy(a);
        return status;
    }
    find_documents(a, count * length);
    return wrap(a, packed, out, err);
}
