#include "data/encoder/texts.h"

#include "data/encoder/equal_texts.h"
#include "data/encoder/masking.h"
#include "data/encoder/span_pairs.h"
#include "data/encoder/text_list.h"
#include "data/sources/dataset.h"
#include "data/text/pack.h"
#include "data/text/text_files.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Ids that an earlier version made of the same texts are others: raise it where that is
// so.
enum { TEXTS_VERSION = 1 };

typedef struct texts {
    tr_text_list list;
    tr_packing packing;
    int64_t length, slots; // of a row: tokens, texts at most
    bool types;            // the model takes types
    tr_label_kind kind;
    int64_t labels; // numbers of a text's label
    int64_t equal;  // texts of groups that are equal to an earlier one
    bool masked;
    tr_masker masker;
} texts;

// ---- reading

static int64_t length_of(const texts *t, int64_t text) {
    return t->list.first[text + 1] - t->list.first[text];
}

// A row's place in each tensor of the batch (tr_batch_labelled).
typedef struct row_places {
    int32_t *ids, *types, *places; // types NULL: there are none
    void *labels;
} row_places;

// A role, which may be negative, is kept in a byte as a type is.
static int32_t role_of(uint8_t kept) {
    return kept < 128 ? kept : kept - 256;
}

static void read_text(const texts *t, int64_t text, int64_t at, row_places to) {
    int64_t first = t->list.first[text], count = length_of(t, text);
    memcpy(to.ids + at, t->list.ids.id + first, (size_t)count * sizeof *to.ids);
    for (int64_t i = 0; i < count; i++) {
        to.places[at + i] = (int32_t)i;
    }
    for (int64_t i = 0; to.types && i < count; i++) {
        to.types[at + i] = t->masked ? 0 : t->list.type[first + i];
    }
    for (int64_t i = 0; t->masked && i < count; i++) {
        ((int32_t *)to.labels)[at + i] = role_of(t->list.type[first + i]);
    }
}

// The label of the text in a slot of a row; text -1: there is none.
static void read_label(const texts *t, int64_t text, int64_t slot, void *labels) {
    int32_t *class = labels;
    float *number = (float *)labels + slot * t->labels;
    if (t->kind == TR_LABELS_NONE) {
        bool shared = text >= 0 && t->list.classes; // equal texts have one number
        class[slot] = shared     ? t->list.classes[text]
                      : text < 0 ? TR_NO_TARGET
                                 : (int32_t)text;
    } else if (t->kind == TR_LABELS_CLASS) {
        class[slot] = text < 0 ? TR_NO_TARGET : t->list.classes[text];
    } else {
        for (int64_t i = 0; i < t->labels; i++) {
            number[i] = text < 0 ? NAN : t->list.numbers[text * t->labels + i];
        }
    }
}

static void read_row(const texts *t, int64_t row, row_places to) {
    int64_t at = 0, slot = 0, last = t->packing.first[row + 1];
    for (int64_t i = t->packing.first[row]; i < last; i++) {
        int64_t text = t->packing.document[i];
        read_text(t, text, at, to);
        if (!t->masked) {
            read_label(t, text, slot++, to.labels);
        }
        at += length_of(t, text);
    }
    for (; slot < t->slots && !t->masked; slot++) {
        read_label(t, -1, slot, to.labels);
    }
    for (; at < t->length; at++) { // each a text of its own, that nothing reads
        to.ids[at] = to.places[at] = 0;
        if (to.types) {
            to.types[at] = 0;
        }
        if (t->masked) {
            ((int32_t *)to.labels)[at] = TR_MASK_NEVER;
        }
    }
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const texts *t = user;
    int next = t->types ? 2 : 1; // of the positions
    bool numbers = t->kind == TR_LABELS_SET || t->kind == TR_LABELS_VALUE;
    int64_t label_bytes = t->slots * (numbers ? t->labels : 1) * 4;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i * t->length, all = t->packing.rows, row = index[i] % all;
        const row_places to = {
            (int32_t *)rows[0] + at, t->types ? (int32_t *)rows[1] + at : NULL,
            (int32_t *)rows[next] + at, (char *)rows[next + 1] + i * label_bytes};
        read_row(t, row, to);
        if (t->masked) {
            tr__mask_row(&t->masker, index[i] / all, row, t->length, to.ids, to.labels);
        }
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

// A row for each text, or for each group of `each`.
static tr_status pad(texts *t, int64_t each, tr_error *err) {
    int64_t count = t->list.count, rows = count / each;
    t->packing.first = tr__calloc((size_t)rows + 1, sizeof *t->packing.first);
    t->packing.document = tr__calloc((size_t)count, sizeof *t->packing.document);
    if (!t->packing.first || !t->packing.document) {
        return tr_fail(err, TR_MEMORY, "no memory for rows of texts");
    }
    for (int64_t i = 0; i < count; i++) {
        t->packing.document[i] = i;
    }
    for (int64_t i = 0; i <= rows; i++) {
        t->packing.first[i] = i * each;
    }
    t->packing.rows = rows;
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
    if (t->equal > 0) {
        tr__data_say(options,
                     "%s: %lld text%s equal to an earlier one; contrastive.duplicates "
                     "says whether equal texts of a batch are each other's negatives",
                     key, (long long)t->equal, t->equal == 1 ? " is" : "s are");
    }
    int64_t most = t->length / tr__max_i64(1, options->group_texts);
    if (list->cut > 0) {
        tr__data_say(options,
                     "%s: %lld text%s of more than %lld tokens %s cut to that; raise "
                     "data.max_length to keep them whole",
                     key, (long long)list->cut, tr__plural(list->cut), (long long)most,
                     list->cut == 1 ? "is" : "are");
    }
}

// ---- opening

static tr_status hash(const tr_data_options *options, const tr_text_tokenizer *by,
                      const tr_joined *files, uint64_t *out, tr_error *err) {
    uint64_t numbers[] = {TEXTS_VERSION,
                          (uint64_t)options->sequence_length,
                          (uint64_t)options->row_texts,
                          options->plain_special,
                          0,
                          (uint64_t)options->label_kind,
                          options->masked,
                          (uint64_t)options->group_texts};
    tr_status status = tr__hash_file(by->file, &numbers[4], err);
    *out = tr__hash_more(0, numbers, sizeof numbers);
    if (options->masked) {
        const double how[] = {options->masking.probability, options->masking.mask,
                              options->masking.random, options->masking.whole_words,
                              (double)options->seed};
        *out = tr__hash_more(*out, how, sizeof how);
        if (options->masking.next_sentence) {
            *out = tr__hash_more(*out, "pairs", 5);
        }
    }
    for (int64_t i = 0; options->label_names && i < options->label_count; i++) {
        const char *name = options->label_names[i];
        *out = tr__hash_more(*out, name, strlen(name) + 1);
    }
    return status == TR_OK ? tr__text_files_hash(options, files, out, err) : status;
}

static tr_status check(const tr_data_options *options, tr_error *err) {
    bool records = strcmp(options->format, "jsonl") == 0;
    if (!records && strcmp(options->format, "text") != 0) {
        return tr_fail(err, TR_USAGE,
                       "data.format: the model reads whole texts: "
                       "set it to \"jsonl\" or \"text\", not \"%s\"",
                       options->format);
    }
    if (options->loss_on || options->chat_template || options->date ||
        options->eos_token) {
        return tr_fail(err, TR_USAGE,
                       "%s: has no meaning for a model of whole texts; remove it",
                       options->loss_on         ? "data.loss_on"
                       : options->chat_template ? "data.chat_template"
                       : options->date          ? "data.date"
                                                : "data.eos_token");
    }
    if ((options->label_kind != TR_LABELS_NONE || options->group_texts > 0) &&
        !records) {
        return tr_fail(
            err, TR_USAGE,
            "data.format: texts with labels, or in pairs, are records: set it to "
            "\"jsonl\", not \"%s\"",
            options->format);
    }
    return TR_OK;
}

static tr_status read_texts(texts *t, const tr_data_options *options,
                            const tr_text_tokenizer *by, const tr_joined *files,
                            const char *key, tr_error *err) {
    tr_text_reading reading = {.options = options, .by = by, .files = files};
    t->length = options->sequence_length;
    t->masked = options->masked;
    t->slots = t->masked ? t->length : options->row_texts;
    t->types = options->token_types > 0;
    t->kind = options->label_kind;
    t->labels = options->label_count;
    tr_status status = tr__text_list_read(&reading, &t->list, err);
    if (status == TR_OK && t->list.count == 0) {
        return tr_fail(err, TR_DATA, "%s: the files have no text, only blank lines",
                       key);
    }
    if (status == TR_OK && options->group_texts > 0) {
        status = tr__equal_texts(&t->list, &t->equal, err);
    }
    if (status == TR_OK) {
        bool group = options->group_texts > 0;
        bool packed = t->masked ? options->packing : t->slots > 1 && !group;
        status = packed ? pack(t, err) : pad(t, group ? options->group_texts : 1, err);
    }
    if (status == TR_OK && t->masked) {
        status = tr__masker_begin(options, by, &t->masker, err);
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
        .tensors = t->masked ? tr_batch_masked(t->length)
                             : tr_batch_labelled(t->length, t->slots, t->types, t->kind,
                                                 t->labels),
        .vocabulary = options->vocabulary,
        .classes = t->masked                   ? options->vocabulary
                   : t->kind == TR_LABELS_NONE ? count
                                               : t->labels,
        .hash = hash,
        .bytes = (int64_t)sizeof *t + tr__text_list_bytes(&t->list) +
                 (rows + 1 + count) * (int64_t)sizeof(int64_t),
        .read = read_rows,
        .destroy = destroy,
        .user = t,
    };
    bool masked = t->masked;
    tr_status status = tr__dataset_create(&source, out, err); // destroys it on failure
    if (status == TR_OK && masked) {
        tr__dataset_mark_epochs(*out);
    }
    return status;
}

static tr_status open_rows(const tr_data_options *options, const tr_text_tokenizer *by,
                           const tr_joined *files, const char *key, uint64_t content,
                           tr_dataset **out, tr_error *err) {
    texts *t = tr__calloc(1, sizeof *t);
    if (!t) {
        return tr_fail(err, TR_MEMORY, "no memory for texts");
    }
    tr_status status = read_texts(t, options, by, files, key, err);
    if (status != TR_OK) {
        destroy(t);
        return status;
    }
    return wrap(t, options, files, content, out, err);
}

// The files are not to change meanwhile.
static tr_status open_texts(const tr_data_options *options, const tr_text_tokenizer *by,
                            const tr_joined *files, const char *key, tr_dataset **out,
                            tr_error *err) {
    uint64_t state = 0, content = 0;
    bool pairs = options->masked && options->masking.next_sentence;
    tr_status status = tr__text_files_state(files, &state, err);
    if (status == TR_OK) {
        status = hash(options, by, files, &content, err);
    }
    if (status == TR_OK) {
        status = (pairs ? tr__span_pairs_open : open_rows)(options, by, files, key,
                                                           content, out, err);
    }
    if (status != TR_OK) {
        return status;
    }
    status = tr__text_files_check(files, state, key, err);
    if (status != TR_OK) {
        tr_dataset_destroy(*out);
        *out = NULL;
    }
    return status;
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
