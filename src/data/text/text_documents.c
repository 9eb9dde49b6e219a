#include "data/text/text_documents.h"

#include "base/checked.h"
#include "base/memory.h"
#include "data/text/windows_inner.h"

enum { PIECE = 4096 }; // ids read at once, on the stack

typedef struct text_documents {
    tr_windows ids;
    int64_t entries;
    int64_t *first; // [count] entry with which each document begins
    int32_t *length;
    size_t count, first_room, length_room;
    int32_t eos;
} text_documents;

static void destroy(void *user) {
    text_documents *t = user;
    tr__joined_close(&t->ids.text);
    tr__free(t->first);
    tr__free(t);
}

// ids, labels: [count]. The last document of the text may lack its eos in the file.
static tr_status read_document(const void *user, int64_t document, int64_t count,
                               int32_t *ids, int32_t *labels, tr_error *err) {
    const text_documents *t = user;
    int64_t first = t->first[document];
    int64_t there = tr__min_i64(count, t->entries - first);
    tr_status status = tr__windows_read_ids(&t->ids, first, there, ids, err);
    for (int64_t i = there; i < count; i++) {
        ids[i] = t->eos;
    }
    for (int64_t i = 0; i + 1 < count; i++) {
        labels[i] = ids[i + 1];
    }
    return status;
}

// A document of the entries [first, end), and of `more` ids that are not in the file.
static tr_status add(text_documents *t, int64_t first, int64_t end, int more,
                     tr_error *err) {
    int64_t length = end - first + more;
    if (length < 2) {
        return TR_OK;
    }
    if (!tr__grow((void **)&t->first, &t->first_room, t->count + 1, sizeof *t->first) ||
        !tr__grow((void **)&t->length, &t->length_room, t->count + 1,
                  sizeof *t->length)) {
        return tr_fail(err, TR_MEMORY, "no memory for a list of documents");
    }
    t->first[t->count] = first;
    t->length[t->count++] = (int32_t)tr__min_i64(length, INT32_MAX);
    return TR_OK;
}

static tr_status list_documents(text_documents *t, tr_error *err) {
    int32_t ids[PIECE];
    int64_t first = 0;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < t->entries && status == TR_OK; at += PIECE) {
        int64_t here = tr__min_i64(PIECE, t->entries - at);
        status = tr__windows_read_ids(&t->ids, at, here, ids, err);
        for (int64_t i = 0; i < here && status == TR_OK; i++) {
            if (ids[i] == t->eos) {
                status = add(t, first, at + i + 1, 0, err);
                first = at + i + 1;
            }
        }
    }
    return status == TR_OK && first < t->entries ? add(t, first, t->entries, 1, err)
                                                 : status;
}

static tr_status open_ids(text_documents *t, tr_error *err) {
    const tr_windows_made *made = t->ids.options.made;
    tr_file_list list = {0};
    tr_status status = tr__file_list_add(&list, made->path, err);
    if (status != TR_OK) {
        return status;
    }
    list.entry[0].bytes = made->entries * t->ids.options.width;
    return tr__joined_open(&t->ids.text, &list, made->path, t->ids.options.width, err);
}

tr_status tr__text_documents(const tr_windows_options *options, int32_t eos,
                             tr_documents *out, tr_error *err) {
    text_documents *t = tr__calloc(1, sizeof *t);
    if (!t) {
        return tr_fail(err, TR_MEMORY, "no memory for a list of documents");
    }
    t->ids.options = *options;
    t->entries = options->made->entries;
    t->eos = eos;
    tr_status status = open_ids(t, err);
    if (status == TR_OK) {
        status = list_documents(t, err);
    }
    if (status != TR_OK) {
        tr__free(t->length);
        destroy(t);
        return status;
    }
    *out = (tr_documents){
        .count = (int64_t)t->count,
        .length = t->length,
        .read = read_document,
        .destroy = destroy,
        .user = t,
        .bytes =
            tr__joined_bytes(&t->ids.text) + (int64_t)(t->count * sizeof *t->first),
        .vocabulary = options->vocabulary,
        .padding = eos,
        .hash = options->made->hash,
        .about = options->made->about,
    };
    return TR_OK;
}
