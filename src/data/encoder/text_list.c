#include "data/encoder/text_list.h"

#include "data/chat/json_lines.h"
#include "data/encoder/documents.h"
#include "data/encoder/groups.h"
#include "data/encoder/labels.h"
#include "data/sources/tell.h"
#include "data/text/text_once.h"

#include "base/memory.h"

#include <jansson.h>
#include <string.h>

enum { TYPES_MAX = 256 };

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the tokens of texts");
}

// ---- one text

static tr_status check_types(const tr_text_reading *r, tr_error *err) {
    int64_t most = r->options->token_types;
    if (most == 0) {
        return TR_OK; // the model takes none
    }
    for (size_t i = 0; i < r->types.count; i++) {
        if (r->types.id[i] >= TYPES_MAX || r->types.id[i] >= most) {
            return tr_fail(err, TR_DATA,
                           "a token is of type %d, and the model has %lld type%s of "
                           "tokens (type_vocab_size): it cannot read pairs of texts",
                           (int)r->types.id[i], (long long)most, most == 1 ? "" : "s");
        }
    }
    return TR_OK;
}

static tr_status keep(tr_text_list *list, const tr_text_reading *r, tr_error *err) {
    size_t count = r->ids.count, had = list->ids.count;
    bool room = tr__grow((void **)&list->first, &list->first_room,
                         (size_t)list->count + 2, sizeof *list->first) &&
                tr__grow((void **)&list->type, &list->type_room, had + count + 1, 1);
    if (!room || tr_token_ids_add(&list->ids, r->ids.id, count, err) != TR_OK) {
        return no_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        list->type[had + i] = (uint8_t)r->types.id[i];
    }
    list->first[list->count++] = (int64_t)had;
    list->first[list->count] = (int64_t)(had + count);
    return list->count < INT32_MAX
               ? TR_OK
               : tr_fail(err, TR_DATA, "2^31 texts or more are too many");
}

static tr_status add_text(tr_text_reading *r, const tr_text_pair *texts,
                          tr_text_list *list, tr_error *err) {
    bool cut = false;
    if (r->options->masked && texts->second) {
        return tr_fail(err, TR_DATA,
                       "the record is a pair of texts, and a masked model reads whole "
                       "documents, of which mlm.next_sentence takes pairs itself");
    }
    if (r->options->masked) {
        return tr__document_add(r, texts->first, texts->first_bytes, list, err);
    }
    r->ids.count = r->types.count = 0;
    tr_status status =
        tr_encoder_encode_pair(r->encoder, texts, &r->ids, &r->types, &cut, err);
    status = status == TR_OK ? check_types(r, err) : status;
    if (status == TR_OK && r->ids.count == 0) {
        return tr_fail(err, TR_DATA,
                       "the text has no token, and the tokenizer adds none: leave the "
                       "record out");
    }
    list->cut += cut;
    return status == TR_OK ? keep(list, r, err) : status;
}

static tr_text_pair pair_of(const tr_text_reading *r) {
    int64_t texts = r->options->group_texts > 0 ? r->options->group_texts : 1;
    return (tr_text_pair){.size = sizeof(tr_text_pair),
                          .plain_special = r->options->plain_special,
                          .most = (size_t)(r->options->sequence_length / texts)};
}

// ---- jsonl

// A text of the record; *text NULL: it is not there.
static tr_status read_field(const json_t *record, const char *name, const char **text,
                            size_t *bytes, tr_error *err) {
    const json_t *value = json_object_get(record, name);
    *text = NULL;
    if (!value || json_is_null(value)) {
        return TR_OK;
    }
    if (!json_is_string(value)) {
        return tr_fail(err, TR_DATA, "\"%.60s\" is not a string", name);
    }
    *text = json_string_value(value);
    *bytes = json_string_length(value);
    return TR_OK;
}

// The label of the text that comes next.
static tr_status add_label(tr_text_reading *r, const json_t *record, tr_text_list *list,
                           tr_error *err) {
    const tr_data_options *o = r->options;
    size_t each = o->label_kind == TR_LABELS_CLASS ? 0 : (size_t)o->label_count;
    size_t at = (size_t)list->count;
    bool room = tr__grow((void **)&list->classes, &list->classes_room, at + 1,
                         sizeof *list->classes) &&
                tr__grow((void **)&list->numbers, &list->numbers_room,
                         (at + 1) * each + 1, sizeof *list->numbers);
    return room ? tr__label_parse(o, record, list->classes + at,
                                  list->numbers + at * each, err)
                : no_memory(err);
}

// The texts of a group, one after the other.
static tr_status add_group(tr_text_reading *r, const json_t *record, tr_text_list *list,
                           tr_error *err) {
    tr_status status = TR_OK;
    for (int64_t k = 0; k < r->options->group_texts && status == TR_OK; k++) {
        const char *field = tr__group_field(r->options, k);
        tr_text_pair text = pair_of(r);
        status = read_field(record, field, &text.first, &text.first_bytes, err);
        if (status == TR_OK && !text.first) {
            return tr_fail(err, TR_DATA,
                           "the record has no \"%.60s\", which each of a contrastive "
                           "run's has; data.fields says what records call their texts",
                           field);
        }
        status = status == TR_OK ? add_text(r, &text, list, err) : status;
    }
    const char *negative = tr__group_field(r->options, 2);
    if (status == TR_OK && r->options->group_texts < 3 &&
        json_object_get(record, negative)) {
        return tr_fail(err, TR_DATA,
                       "the record has a \"%.60s\", and the first record has none: "
                       "all have one, or none",
                       negative);
    }
    return status;
}

static tr_status add_record(tr_text_reading *r, const json_t *record,
                            tr_text_list *list, tr_error *err) {
    const tr_data_fields *fields = &r->options->fields;
    const char *first = fields->text ? fields->text : "text";
    const char *second = fields->text_pair ? fields->text_pair : "text_pair";
    tr_text_pair texts = pair_of(r);
    if (r->options->group_texts > 0) {
        return add_group(r, record, list, err);
    }
    tr_status status = read_field(record, first, &texts.first, &texts.first_bytes, err);
    if (status == TR_OK) {
        status = read_field(record, second, &texts.second, &texts.second_bytes, err);
    }
    if (status == TR_OK && !texts.first) {
        return tr_fail(err, TR_DATA,
                       "the record has no \"%.60s\", which an encoder reads; "
                       "data.fields.text says what records call their text",
                       first);
    }
    if (status == TR_OK && r->options->label_kind != TR_LABELS_NONE) {
        status = add_label(r, record, list, err);
    }
    return status == TR_OK ? add_text(r, &texts, list, err) : status;
}

static tr_status read_records(tr_text_reading *r, tr_text_list *list, tr_error *err) {
    tr_json_lines lines = {.files = r->files};
    tr_tell tell = tr__tell_begin(r->options);
    tr_status status = TR_OK;
    json_t *record = NULL;
    do {
        tr_error inner = {0};
        status = tr__json_lines_next(&lines, &record, err);
        if (status == TR_OK && record) {
            status = add_record(r, record, list, &inner);
            status = status == TR_OK ? TR_OK
                                     : tr_fail(err, status, "%s:%lld: %s",
                                               tr__json_lines_path(&lines),
                                               (long long)lines.line, inner.message);
        }
        json_decref(record);
        tr__tell(&tell, "tokenizing", lines.at, tr__joined_count(r->files));
        status = status == TR_OK ? tr__text_go_on(r->options, err) : status;
    } while (status == TR_OK && record);
    tr__json_lines_close(&lines);
    return status;
}

// ---- text

static bool is_blank(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (!text[i] || !strchr(" \t\r\n", text[i])) {
            return false;
        }
    }
    return true;
}

// The texts of one file: what its separators separate, without blank ones.
static tr_status read_file(tr_text_reading *r, size_t file, const char *text,
                           tr_text_list *list, tr_error *err) {
    const char *separator = r->options->document_separator;
    size_t bytes = (size_t)r->files->files.entry[file].bytes;
    size_t gap = separator ? strlen(separator) : 0;
    tr_status status = TR_OK;
    for (size_t at = 0, number = 1; at < bytes && status == TR_OK; number++) {
        const char *end = gap ? memmem(text + at, bytes - at, separator, gap) : NULL;
        tr_error inner = {0};
        tr_text_pair one = pair_of(r);
        one.first = text + at;
        one.first_bytes = end ? (size_t)(end - one.first) : bytes - at;
        at += one.first_bytes + (end ? gap : 0);
        if (!is_blank(one.first, one.first_bytes)) {
            status = add_text(r, &one, list, &inner);
        }
        status = status == TR_OK
                     ? tr__text_go_on(r->options, err)
                     : tr_fail(err, status, "%s: text %zu: %s",
                               r->files->files.entry[file].path, number, inner.message);
    }
    return status;
}

static tr_status read_files(tr_text_reading *r, tr_text_list *list, tr_error *err) {
    tr_tell tell = tr__tell_begin(r->options);
    tr_status status = TR_OK;
    for (size_t f = 0; f < r->files->files.count && status == TR_OK; f++) {
        int64_t begin = r->files->start[f], bytes = r->files->start[f + 1] - begin;
        char *text = tr__calloc((size_t)bytes + 1, 1);
        status =
            text ? tr__joined_read(r->files, begin, bytes, text, err) : no_memory(err);
        status = status == TR_OK ? read_file(r, f, text, list, err) : status;
        tr__free(text);
        tr__tell(&tell, "tokenizing", begin + bytes, tr__joined_count(r->files));
    }
    return status;
}

// ---- all of them

tr_status tr__text_list_read(tr_text_reading *r, tr_text_list *list, tr_error *err) {
    bool records = strcmp(r->options->format, "jsonl") == 0;
    tr_status status = tr_encoder_create(r->by->tokenizer, &r->encoder, err);
    r->words = r->options->masked ? (int)tr__word_form(r->by->tokenizer) : 0;
    if (status == TR_OK && r->options->masking.whole_words &&
        r->words == TR_WORDS_UNKNOWN) {
        status = tr_fail(err, TR_DATA,
                         "mlm.whole_words: %s does not mark the tokens that begin a "
                         "word, or go on with it (\"##\", a space): leave it out",
                         r->by->file);
    }
    if (status == TR_OK) {
        status = records ? read_records(r, list, err) : read_files(r, list, err);
    }
    tr_encoder_destroy(r->encoder);
    r->encoder = NULL;
    tr_token_ids_release(&r->ids);
    tr_token_ids_release(&r->types);
    tr_token_ids_release(&r->frame);
    return status;
}

void tr__text_list_release(tr_text_list *list) {
    tr_token_ids_release(&list->ids);
    tr__free(list->type);
    tr__free(list->first);
    tr__free(list->classes);
    tr__free(list->numbers);
    *list = (tr_text_list){0};
}

int64_t tr__text_list_bytes(const tr_text_list *list) {
    return (int64_t)(list->ids.capacity * sizeof *list->ids.id + list->type_room +
                     list->first_room * sizeof *list->first +
                     list->classes_room * sizeof *list->classes +
                     list->numbers_room * sizeof *list->numbers);
}
