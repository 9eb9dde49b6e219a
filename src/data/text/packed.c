#include "data/text/packed.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/sources/dataset.h"
#include "data/text/pack.h"

#include <stdio.h>
#include <string.h>

typedef struct packed {
    tr_documents documents;
    tr_packing packing;
    int64_t length; // of a row
} packed;

// What packing came to, in tokens and documents.
typedef struct figures {
    int64_t cut, cut_tokens, tokens;
} figures;

// ---- reading

// ids, labels, places: [length] of a row, from a document's first token on.
static tr_status read_document(const packed *p, int64_t document, int32_t *ids,
                               int32_t *labels, int32_t *places, tr_error *err) {
    const tr_documents *from = &p->documents;
    int64_t count = from->length[document];
    tr_status status = from->read(from->user, document, count, ids, labels, err);
    for (int64_t i = 0; i < count; i++) {
        places[i] = (int32_t)i;
    }
    labels[count - 1] = TR_NO_TARGET; // what follows is another document
    return status;
}

static tr_status read_row(const packed *p, int64_t row, int32_t *ids, int32_t *labels,
                          int32_t *places, tr_error *err) {
    int64_t at = 0, last = p->packing.first[row + 1];
    tr_status status = TR_OK;
    for (int64_t i = p->packing.first[row]; i < last && status == TR_OK; i++) {
        int64_t document = p->packing.document[i];
        status = read_document(p, document, ids + at, labels + at, places + at, err);
        at += p->documents.length[document];
    }
    for (; at < p->length; at++) { // each a document of its own, that nothing reads
        ids[at] = p->documents.padding;
        labels[at] = TR_NO_TARGET;
        places[at] = 0;
    }
    return status;
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const packed *p = user;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < count && status == TR_OK; i++) {
        int64_t at = i * p->length;
        status = read_row(p, index[i], (int32_t *)rows[0] + at, (int32_t *)rows[1] + at,
                          (int32_t *)rows[2] + at, err);
    }
    return status;
}

static void destroy(void *user) {
    packed *p = user;
    tr__packing_free(&p->packing);
    tr__free(p->documents.length);
    if (p->documents.destroy) {
        p->documents.destroy(p->documents.user);
    }
    tr__free(p);
}

// ---- opening

// Documents longer than a row lose their ends.
static figures cut_documents(packed *p) {
    figures f = {0};
    for (int64_t d = 0; d < p->documents.count; d++) {
        int32_t *length = &p->documents.length[d];
        if (*length > p->length) {
            f.cut++;
            f.cut_tokens += *length - p->length;
            *length = (int32_t)p->length;
        }
        f.tokens += *length;
    }
    return f;
}

static void say_figures(const packed *p, const figures *f, const char *key,
                        const tr_data_options *options) {
    double all = (double)p->packing.rows * (double)p->length;
    tr__data_say(options,
                 "%s: %lld document%s packed into %lld row%s of %lld tokens; %.2f%% of "
                 "them are padding",
                 key, (long long)p->documents.count, tr__plural(p->documents.count),
                 (long long)p->packing.rows, tr__plural(p->packing.rows),
                 (long long)p->length, 100 * (1 - (double)f->tokens / all));
    if (f->cut > 0) {
        tr__data_say(options,
                     "%s: %lld document%s of more than %lld tokens %s cut to that, and "
                     "%lld tokens left out; raise data.max_length to keep them",
                     key, (long long)f->cut, tr__plural(f->cut), (long long)p->length,
                     f->cut == 1 ? "is" : "are", (long long)f->cut_tokens);
    }
}

static tr_status wrap(packed *p, tr_dataset **out, tr_error *err) {
    char about[256];
    int64_t rows = p->packing.rows;
    snprintf(about, sizeof about, "%.160s, packed into %lld row%s of %lld",
             p->documents.about, (long long)rows, tr__plural(rows),
             (long long)p->length);
    tr_dataset_source source = {
        .about = about,
        .samples = rows,
        .tensors = tr_batch_packed(p->length),
        .vocabulary = p->documents.vocabulary,
        .classes = p->documents.vocabulary,
        .hash = tr__hash_more(p->documents.hash, &p->length, sizeof p->length),
        .bytes = p->documents.bytes + (int64_t)sizeof *p +
                 (rows + 1 + p->documents.count) * (int64_t)sizeof(int64_t) +
                 p->documents.count * (int64_t)sizeof(int32_t),
        .read = read_rows,
        .destroy = destroy,
        .user = p,
    };
    return tr__dataset_create(&source, out, err);
}

static tr_status pack(packed *p, const tr_data_options *options, const char *key,
                      tr_error *err) {
    if (p->documents.count == 0) {
        return tr_fail(err, TR_DATA,
                       "%s: has no document of two tokens or more, so there is nothing "
                       "to predict; add data",
                       key);
    }
    figures f = cut_documents(p);
    tr_status status =
        tr__pack(p->documents.length, p->documents.count, p->length, &p->packing, err);
    if (status == TR_OK) {
        say_figures(p, &f, key, options);
    }
    return status;
}

tr_status tr__packed_open(const tr_data_options *options, tr_documents *documents,
                          const char *key, tr_dataset **out, tr_error *err) {
    packed *p = tr__calloc(1, sizeof *p);
    if (!p) {
        tr__free(documents->length);
        if (documents->destroy) {
            documents->destroy(documents->user);
        }
        return tr_fail(err, TR_MEMORY, "no memory to pack documents");
    }
    p->documents = *documents;
    p->length = options->sequence_length;
    tr_status status = pack(p, options, key, err);
    if (status != TR_OK) {
        destroy(p);
        return status;
    }
    return wrap(p, out, err); // which destroys it on failure
}
