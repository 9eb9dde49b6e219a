#include "data/encoder/texts.h"

#include "data/encoder/text_list.h"
#include "data/sources/dataset.h"
#include "data/text/pack.h"
#include "data/text/text_files.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

// Ids that an earlier version made of the same texts are others: raise it where that is
// so.
enum { TEXTS_VERSION = 1 };

typedef struct texts {
    tr_text_list list;
    tr_packing packing;
    int64_t length, slots; // of a row: tokens, texts at most
} texts;

// ---- reading

static int64_t length_of(const texts *t, int64_t text) {
    return t->list.first[text + 1] - t->list.first[text];
}

// A row's place in each tensor of the batch (tr_batch_texts).
typedef struct row_places {
    int32_t *ids, *types, *places, *labels;
} row_places;

static void read_text(const texts *t, int64_t text, int64_t at, row_places to) {
    int64_t first = t->list.first[text], count = length_of(t, text);
    memcpy(to.ids + at, t->list.ids.id + first, (size_t)count * sizeof *to.ids);
    for (int64_t i = 0; i < count; i++) {
        to.types[at + i] = t->list.type[first + i];
        to.places[at + i] = (int32_t)i;
    }
}

static void read_row(const texts *t, int64_t row, row_places to) {
    int64_t at = 0, slot = 0, last = t->packing.first[row + 1];
    for (int64_t i = t->packing.first[row]; i < last; i++) {
        int64_t text = t->packing.document[i];
        read_text(t, text, at, to);
        to.labels[slot++] = (int32_t)text;
        at += length_of(t, text);
    }
    for (; slot < t->slots; slot++) {
        to.labels[slot] = TR_NO_TARGET;
    }
    for (; at < t->length; at++) { // each a text of its own, that nothing reads
        to.ids[at] = to.types[at] = to.places[at] = 0;
    }
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const texts *t = user;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i * t->length;
        read_row(t, index[i],
                 (row_places){(int32_t *)rows[0] + at, (int32_t *)rows[1] + at,
                              (int32_t *)rows[2] + at,
                              (int32_t *)rows[3] + i * t->slots});
    }
    return TR_OK;
}

static void destroy(void *user) {
    texts *t = user;
    tr__packing_free(&t->packing);
    tr__text_list_release(&t->list);
    tr__free(t);
}

// ---- rows

// A row for each text.
static tr_status pad(texts *t, tr_error *err) {
    int64_t count = t->list.count;
    t->packing.first = tr__calloc((size_t)count + 1, sizeof *t->packing.first);
    t->packing.document = tr__calloc((size_t)count, sizeof *t->packing.document);
    if (!t->packing.first || !t->packing.document) {
        return tr_fail(err, TR_MEMORY, "no memory for rows of texts");
    }
    for (int64_t i = 0; i < count; i++) {
        t->packing.document[i] = t->packing.first[i] = i;
    }
    t->packing.first[count] = t->packing.rows = count;
    return TR_OK;
}

// Short texts count as long as keeps a row from having more than it has labels.
static tr_status pack(texts *t, tr_error *err) {
    int64_t count = t->list.count, least = tr__ceil_div(t->length, t->slots);
    int32_t *lengths = tr__calloc((size_t)count, sizeof *lengths);
    if (!lengths) {
        return tr_fail(err, TR_MEMORY, "no memory for rows of texts");
    }
    for (int64_t i = 0; i < count; i++) {
        lengths[i] = (int32_t)tr__max_i64(length_of(t, i), least);
    }
    tr_status status = tr__pack(lengths, count, t->length, &t->packing, err);
    tr__free(lengths);
    return status;
}

static void say(const texts *t, const tr_data_options *options, const char *key) {
    const tr_text_list *list = &t->list;
    double all = (double)t->packing.rows * (double)t->length;
    tr__data_say(options,
                 "%s: %lld text%s in %lld row%s of %lld tokens; %.1f%% of them are "
                 "padding",
                 key, (long long)list->count, tr__plural(list->count),
                 (long long)t->packing.rows, tr__plural(t->packing.rows),
                 (long long)t->length, 100 * (1 - (double)list->ids.count / all));
    if (list->cut > 0) {
        tr__data_say(options,
                     "%s: %lld text%s of more than %lld tokens %s cut to that; raise "
                     "data.max_length to keep them whole",
                     key, (long long)list->cut, tr__plural(list->cut),
                     (long long)t->length, list->cut == 1 ? "is" : "are");
    }
}

// ---- opening

static tr_status hash(const tr_data_options *options, const tr_text_tokenizer *by,
                      const tr_joined *files, uint64_t *out, tr_error *err) {
    uint64_t numbers[] = {TEXTS_VERSION, (uint64_t)options->sequence_length,
                          (uint64_t)options->row_texts, options->plain_special, 0};
    tr_status status = tr__hash_file(by->file, &numbers[4], err);
    *out = tr__hash_more(0, numbers, sizeof numbers);
    return status == TR_OK ? tr__text_files_hash(options, files, out, err) : status;
}

static tr_status check(const tr_data_options *options, tr_error *err) {
    bool records = strcmp(options->format, "jsonl") == 0;
    if (!records && strcmp(options->format, "text") != 0) {
        return tr_fail(err, TR_USAGE,
                       "data.format: the model is an encoder, which reads whole texts: "
                       "set it to \"jsonl\" or \"text\", not \"%s\"",
                       options->format);
    }
    if (options->loss_on || options->chat_template || options->date ||
        options->eos_token) {
        return tr_fail(err, TR_USAGE, "%s: has no meaning for an encoder; remove it",
                       options->loss_on         ? "data.loss_on"
                       : options->chat_template ? "data.chat_template"
                       : options->date          ? "data.date"
                                                : "data.eos_token");
    }
    return TR_OK;
}

static tr_status read_texts(texts *t, const tr_data_options *options,
                            const tr_text_tokenizer *by, const tr_joined *files,
                            const char *key, tr_error *err) {
    tr_text_reading reading = {.options = options, .by = by, .files = files};
    t->length = options->sequence_length;
    t->slots = options->row_texts;
    tr_status status = tr__text_list_read(&reading, &t->list, err);
    if (status == TR_OK && t->list.count == 0) {
        return tr_fail(err, TR_DATA, "%s: the files have no text, only blank lines",
                       key);
    }
    if (status == TR_OK) {
        status = t->slots > 1 ? pack(t, err) : pad(t, err);
    }
    if (status == TR_OK) {
        say(t, options, key);
    }
    return status;
}

static tr_status wrap(texts *t, const tr_data_options *options, const tr_joined *files,
                      uint64_t hash, tr_dataset **out, tr_error *err) {
    char about[256];
    int64_t rows = t->packing.rows, count = t->list.count;
    snprintf(about, sizeof about, "%zu file%s, %lld text%s in %lld row%s of %lld",
             files->files.count, tr__plural((int64_t)files->files.count),
             (long long)count, tr__plural(count), (long long)rows, tr__plural(rows),
             (long long)t->length);
    const tr_dataset_source source = {
        .about = about,
        .samples = rows,
        .tensors = tr_batch_texts(t->length, t->slots),
        .vocabulary = options->vocabulary,
        .classes = count,
        .hash = hash,
        .bytes = (int64_t)sizeof *t + tr__text_list_bytes(&t->list) +
                 (rows + 1 + count) * (int64_t)sizeof(int64_t),
        .read = read_rows,
        .destroy = destroy,
        .user = t,
    };
    return tr__dataset_create(&source, out, err); // destroys it on failure
}

static tr_status open_texts(const tr_data_options *options, const tr_text_tokenizer *by,
                            const tr_joined *files, const char *key, tr_dataset **out,
                            tr_error *err) {
    uint64_t state = 0, content = 0;
    texts *t = tr__calloc(1, sizeof *t);
    if (!t) {
        return tr_fail(err, TR_MEMORY, "no memory for texts");
    }
    tr_status status = tr__text_files_state(files, &state, err);
    if (status == TR_OK) {
        status = hash(options, by, files, &content, err);
    }
    if (status == TR_OK) {
        status = read_texts(t, options, by, files, key, err);
    }
    if (status == TR_OK) {
        status = tr__text_files_check(files, state, key, err);
    }
    if (status != TR_OK) {
        destroy(t);
        return status;
    }
    return wrap(t, options, files, content, out, err);
}

tr_status tr__texts_open(const tr_data_options *options, const tr_data_files *files,
                         tr_dataset **out, tr_error *err) {
    tr_text_tokenizer by = {.eos = -1};
    tr_joined joined = {0};
    tr_status status = check(options, err);
    if (status == TR_OK) {
        status = tr__text_tokenizer_open(options, &by, err);
    }
    if (status == TR_OK) {
        status = tr__text_files_open(options, files, &joined, err);
    }
    if (status == TR_OK) {
        status = open_texts(options, &by, &joined, files->paths_key, out, err);
    }
    tr__joined_close(&joined);
    tr__text_tokenizer_close(&by);
    tr__memory_trim();
    return status;
}
