// Format "jsonl": records of instruction data (records.h), each a row of its own, with
// padding behind it. Their ids and labels are made once, ahead, into a file in the
// user's cache folder.
#include "data/chat/chat.h"
#include "data/chat/json_lines.h"
#include "data/chat/record_file.h"
#include "data/chat/records.h"
#include "data/sources/dataset.h"
#include "data/sources/tell.h"
#include "data/text/text_files.h"
#include "data/text/text_once.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// Ids or labels that an earlier version made of the same records are others: raise it
// where that is so.
enum { RECORDS_VERSION = 1 };

typedef struct source {
    const tr_data_options *options;
    const tr_data_files *files;
    tr_text_tokenizer by;
    tr_chat *chat;    // NULL: there is none
    tr_error no_chat; // why
    tr_joined text;
    tr_text_cache cache;
    tr_records records;
    tr_record_counts counts;
    uint64_t state; // of the files when they were hashed
} source;

// ---- what the options say

static const char *field(const char *given, const char *usual) {
    return given ? given : usual;
}

static tr_status read_options(source *s, tr_error *err) {
    const tr_data_options *o = s->options;
    s->records.fields =
        (tr_data_fields){.text = field(o->fields.text, "text"),
                         .prompt = field(o->fields.prompt, "prompt"),
                         .completion = field(o->fields.completion, "completion"),
                         .messages = field(o->fields.messages, "messages")};
    s->records.plain_special = o->plain_special;
    if (o->sequence_length < 2 || o->sequence_length > INT32_MAX) {
        return tr_fail(err, TR_USAGE,
                       "data of records needs a length of samples in [2, 2^31) "
                       "(data.max_length), not %lld",
                       (long long)o->sequence_length);
    }
    return tr__loss_on_parse(o->loss_on, &s->records.loss_on, err);
}

// "2026-11-22"; NULL: no date.
static tr_status read_date(const char *text, struct tm *date, tr_error *err) {
    char rest = 0;
    int year = 0, month = 0, day = 0;
    int count = sscanf(text, "%4d-%2d-%2d%c", &year, &month, &day, &rest);
    struct tm wanted = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    *date = wanted;
    time_t time = count == 3 ? timegm(date) : -1;
    if (count != 3 || time == -1 || date->tm_mday != wanted.tm_mday ||
        date->tm_mon != wanted.tm_mon) {
        return tr_fail(err, TR_USAGE,
                       "data.date: \"%.40s\" is no date; write it as 2026-11-22", text);
    }
    return TR_OK;
}

// Where records are texts, nobody misses a template: why there is none is kept.
static tr_status open_chat(source *s, tr_error *err) {
    const tr_data_options *o = s->options;
    struct tm date;
    if (o->date) {
        tr_status status = read_date(o->date, &date, err);
        if (status != TR_OK) {
            return status;
        }
    }
    tr_status status = tr__chat_open(s->by.folder, o->chat_template,
                                     o->date ? &date : NULL, &s->chat, &s->no_chat);
    if (status == TR_MEMORY || (status != TR_OK && o->chat_template)) {
        return tr_fail(err, status, "%s", s->no_chat.message);
    }
    return TR_OK;
}

static void fold_text(uint64_t *key, const char *text) {
    size_t bytes = strlen(text);
    *key = tr__hash_more(*key, &bytes, sizeof bytes);
    *key = tr__hash_more(*key, text, bytes);
}

static tr_status make_key(source *s, tr_error *err) {
    uint64_t numbers[] = {RECORDS_VERSION,
                          (uint64_t)s->by.eos,
                          s->options->plain_special,
                          s->records.loss_on,
                          (uint64_t)s->options->sequence_length,
                          s->chat ? tr__chat_hash(s->chat) : 0,
                          s->text.files.count,
                          0};
    uint64_t key = 0;
    tr_status status = tr__text_files_state(&s->text, &s->state, err);
    if (status == TR_OK) {
        status = tr__hash_file(s->by.file, &numbers[7], err);
    }
    if (status == TR_OK) {
        key = tr__hash_more(key, numbers, sizeof numbers);
        fold_text(&key, s->records.fields.text);
        fold_text(&key, s->records.fields.prompt);
        fold_text(&key, s->records.fields.completion);
        fold_text(&key, s->records.fields.messages);
        status = tr__text_files_hash(s->options, &s->text, &key, err);
    }
    s->cache = tr__record_cache(key);
    return status == TR_OK ? tr__text_cache_name(&s->cache, err) : status;
}

// ---- making

static tr_status encode_record(source *s, const tr_json_lines *lines,
                               const json_t *record, tr_error *err) {
    tr_error inner = {0};
    tr_status status = tr__record_encode(&s->records, record, &inner);
    return status == TR_OK
               ? TR_OK
               : tr_fail(err, status, "%s:%lld: %s", tr__json_lines_path(lines),
                         (long long)lines->line, inner.message);
}

static tr_status write_records(source *s, tr_record_writer *writer, tr_error *err) {
    tr_json_lines lines = {.files = &s->text};
    tr_tell tell = tr__tell_begin(s->options);
    tr_status status = TR_OK;
    json_t *record = NULL;
    do {
        status = tr__json_lines_next(&lines, &record, err);
        if (status == TR_OK && record) {
            status = encode_record(s, &lines, record, err);
        }
        if (status == TR_OK && record) {
            status = tr__record_write(writer, &s->records.ids, &s->records.labels, err);
        }
        json_decref(record);
        tr__tell(&tell, "tokenizing", lines.at, tr__joined_count(&s->text));
        status = status == TR_OK ? tr__text_go_on(s->options, err) : status;
    } while (status == TR_OK && record);
    tr__json_lines_close(&lines);
    return status;
}

static tr_status make(void *user, tr_text_writer *to, tr_error *err) {
    source *s = user;
    double begin = tr__seconds();
    tr_record_writer writer = {.to = to, .most = s->options->sequence_length};
    tr_status status = tr_encoder_create(s->by.tokenizer, &s->records.encoder, err);
    if (status == TR_OK) {
        status = write_records(s, &writer, err);
    }
    tr_encoder_destroy(s->records.encoder);
    s->records.encoder = NULL;
    if (status == TR_OK) {
        status = tr__text_files_check(&s->text, s->state, s->files->paths_key, err);
    }
    if (status == TR_OK) {
        writer.counts.kind = s->records.kind;
        status = tr__record_finish(&writer, &s->cache, err);
    }
    tr__record_writer_release(&writer);
    if (status == TR_OK) {
        tr__data_say(s->options, "%s: tokenized %lld record%s in %.1f s; kept as %s",
                     s->files->paths_key, (long long)writer.counts.records,
                     tr__plural(writer.counts.records), tr__seconds() - begin,
                     s->cache.path);
    }
    return status;
}

static tr_status find_records(source *s, tr_error *err) {
    const tr_text_once once = {&s->cache, s->options, s->files->paths_key, make, s};
    s->records.by = &s->by;
    s->records.chat = s->chat;
    s->records.no_chat = s->no_chat.message;
    return tr__text_once(&once, err);
}

// ---- opening

static void say_counts(const source *s) {
    const tr_record_counts *c = &s->counts;
    const char *key = s->files->paths_key;
    int64_t most = s->options->sequence_length;
    if (c->cut + c->dropped > 0) {
        tr__data_say(s->options,
                     "%s: of %lld records, %lld are longer than data.max_length, and "
                     "are cut to %lld tokens; %lld with nothing to learn are left out",
                     key, (long long)c->records, (long long)c->cut, (long long)most,
                     (long long)c->dropped);
    }
    tr__data_say(s->options,
                 "%s: the loss is on %s: %lld of %lld tokens; the longest record has "
                 "%lld tokens",
                 key, tr__records_loss(&s->records), (long long)c->targets,
                 (long long)c->tokens, (long long)c->longest);
    double row = (double)c->samples * (double)most;
    if (!s->options->packing && row > 0) {
        tr__data_say(s->options,
                     "%s: padding is %.1f%% of the rows; data.packing makes "
                     "it less",
                     key, 100.0 * (row - (double)c->tokens) / row);
    }
}

static tr_status check_samples(const source *s, tr_error *err) {
    if (s->counts.samples > 0) {
        return TR_OK;
    }
    if (s->counts.records == 0) {
        return tr_fail(err, TR_DATA, "%s: the files have no records, only blank lines",
                       s->files->paths_key);
    }
    return tr_fail(err, TR_DATA,
                   "%s: %lld record%s, and nothing to learn in any of them%s",
                   s->files->paths_key, (long long)s->counts.records,
                   tr__plural(s->counts.records),
                   s->counts.cut > 0 ? "; raise data.max_length" : "");
}

static tr_status open_rows(source *s, tr_dataset **out, tr_error *err) {
    char about[256];
    const tr_record_counts *c = &s->counts;
    int length = snprintf(
        about, sizeof about, "%zu file%s, %lld record%s (%s), %lld tokens, loss on %s",
        s->text.files.count, tr__plural((int64_t)s->text.files.count),
        (long long)c->samples, tr__plural(c->samples), tr__records_kind(c->kind),
        (long long)c->tokens, tr__records_loss(&s->records));
    if (!s->options->packing) {
        snprintf(about + length, sizeof about - (size_t)length,
                 ", in rows of %lld tokens", (long long)s->options->sequence_length);
    }
    const tr_record_rows rows = {
        .cache = &s->cache,
        .length = s->options->sequence_length,
        .vocabulary = s->options->vocabulary ? s->options->vocabulary
                                             : tr_tokenizer_vocabulary(s->by.tokenizer),
        .about = about};
    if (!s->options->packing) {
        return tr__record_rows_open(&rows, out, err);
    }
    tr_documents documents;
    tr_status status = tr__record_documents(&rows, &documents, err);
    return status == TR_OK
               ? tr__packed_open(s->options, &documents, s->files->paths_key, out, err)
               : status;
}

static tr_status open_source(source *s, tr_error *err) {
    tr_status status = read_options(s, err);
    if (status == TR_OK) {
        status = tr__text_tokenizer_open(s->options, &s->by, err);
    }
    if (status == TR_OK) {
        status = open_chat(s, err);
    }
    if (status == TR_OK) {
        status = tr__text_files_open(s->options, s->files, &s->text, err);
    }
    if (status == TR_OK) {
        status = make_key(s, err);
    }
    return status;
}

tr_status tr__jsonl_open(const tr_data_options *options, const tr_data_files *files,
                         tr_dataset **out, tr_error *err) {
    source s = {.options = options, .files = files};
    tr_status status = open_source(&s, err);
    if (status == TR_OK) {
        status = find_records(&s, err);
    }
    if (status == TR_OK) {
        status = tr__record_counts_read(&s.cache, &s.counts, err);
        s.records.kind = s.counts.kind;
    }
    if (status == TR_OK) {
        status = check_samples(&s, err);
    }
    if (status == TR_OK) {
        say_counts(&s);
        status = open_rows(&s, out, err);
    }
    bool chats =
        s.counts.kind == TR_RECORD_CHAT || s.counts.kind == TR_RECORD_CHAT_COMPLETION;
    if (status == TR_OK && chats) {
        tr__dataset_mark_chats(*out);
    }
    tr__records_release(&s.records);
    tr__chat_close(s.chat);
    tr__text_tokenizer_close(&s.by);
    tr__memory_trim();
    tr__joined_close(&s.text);
    return status;
}
