// Format "text": documents, tokenized once, ahead, into a file of ids in the user's
// cache folder; from there on as the format tokens.
#include "data/sources/tell.h"
#include "data/text/encode.h"
#include "data/text/text_cache.h"
#include "data/text/text_documents.h"
#include "data/text/text_files.h"
#include "data/text/text_once.h"
#include "data/text/text_tokenizer.h"
#include "data/text/windows.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

// Ids that an earlier version made of the same text by the same tokenizer are others:
// raise it where that is so.
enum { IDS_VERSION = 1 };

typedef struct text_source {
    const tr_data_options *options;
    const tr_data_files *files;
    tr_text_tokenizer by;
    tr_joined text;
    tr_text_cache cache;
    uint64_t state; // of the files when they were hashed
} text_source;

// ---- what the ids depend on

static tr_status make_key(text_source *s, tr_error *err) {
    const char *separator = s->options->document_separator;
    uint64_t numbers[] = {IDS_VERSION,
                          (uint64_t)s->by.eos,
                          s->options->plain_special,
                          separator ? strlen(separator) : 0,
                          s->text.files.count,
                          0};
    uint64_t key = 0;
    tr_status status = tr__text_files_state(&s->text, &s->state, err);
    if (status == TR_OK) {
        status = tr__hash_file(s->by.file, &numbers[5], err);
    }
    if (status == TR_OK) {
        key = tr__hash_more(key, numbers, sizeof numbers);
        key = tr__hash_more(key, separator ? separator : "", numbers[3]);
        status = tr__text_files_hash(s->options, &s->text, &key, err);
    }
    int64_t vocabulary = tr_tokenizer_vocabulary(s->by.tokenizer);
    s->cache.key = key;
    s->cache.vocabulary = vocabulary;
    s->cache.width = tr__ids_width(vocabulary);
    return status == TR_OK ? tr__text_cache_name(&s->cache, err) : status;
}

// ---- tokenizing

typedef struct work {
    text_source *source;
    tr_text_writer *writer;
    tr_tell tell;
} work;

static tr_status take(void *user, tr_token_ids *ids, int64_t bytes, tr_error *err) {
    work *w = user;
    tr_text_cache *cache = &w->source->cache;
    cache->ids += (int64_t)ids->count;
    tr__tell(&w->tell, "tokenizing", bytes, tr__joined_count(&w->source->text));
    tr_status status = tr__text_go_on(w->source->options, err);
    return status == TR_OK ? tr__text_cache_write(w->writer, ids->id,
                                                  tr__ids_pack(ids, cache->width), err)
                           : status;
}

static void say_tokenized(const text_source *s, double seconds) {
    char size[32];
    tr__print_size(size, sizeof size, tr__joined_count(&s->text));
    tr__data_say(s->options, "%s: tokenized %s of text in %.1f s; kept as %s",
                 s->files->paths_key, size, seconds, s->cache.path);
}

static tr_status encode(void *user, tr_text_writer *writer, tr_error *err) {
    text_source *s = user;
    work w = {s, writer, tr__tell_begin(s->options)};
    tr_encode job = {.stream = {.tokenizer = s->by.tokenizer,
                                .options = {.plain_special = s->options->plain_special},
                                .threads = s->options->threads},
                     .text = &s->text,
                     .separator = s->options->document_separator,
                     .between = s->by.eos >= 0 ? &s->by.eos : NULL,
                     .take = take,
                     .user = &w};
    double begin = tr__seconds();
    s->cache.ids = 0;
    tr_status status = tr__encode_files(&job, err);
    if (status == TR_OK) {
        status = tr__text_files_check(&s->text, s->state, s->files->paths_key, err);
    }
    s->cache.documents = job.documents;
    if (status == TR_OK) {
        status = tr__text_cache_keep(&s->cache, writer, err);
    }
    if (status == TR_OK) {
        say_tokenized(s, tr__seconds() - begin);
    }
    return status;
}

// ---- opening

static tr_status open_packed(const text_source *s, const tr_windows_options *windows,
                             tr_dataset **out, tr_error *err) {
    tr_documents documents;
    if (s->by.eos < 0) {
        return tr_fail(err, TR_DATA,
                       "data.packing: the folder of %.400s names no token that ends a "
                       "document; name it with data.eos_token",
                       s->by.file);
    }
    tr_status status = tr__text_documents(windows, s->by.eos, &documents, err);
    return status == TR_OK
               ? tr__packed_open(s->options, &documents, s->files->paths_key, out, err)
               : status;
}

static tr_status open_windows(const text_source *s, tr_dataset **out, tr_error *err) {
    char size[32], about[160];
    size_t files = s->text.files.count;
    tr__print_size(size, sizeof size, tr__joined_count(&s->text));
    snprintf(about, sizeof about,
             "%zu file%s, %s of text, %lld document%s, %lld tokens", files,
             tr__plural((int64_t)files), size, (long long)s->cache.documents,
             tr__plural(s->cache.documents), (long long)s->cache.ids);
    tr_windows_made made = {.path = s->cache.path,
                            .entries = s->cache.ids,
                            .hash = s->cache.hash,
                            .about = about};
    tr_windows_options windows = {
        .width = s->cache.width,
        .length = s->options->sequence_length,
        .vocabulary =
            s->options->vocabulary ? s->options->vocabulary : s->cache.vocabulary,
        .entries = "tokens",
        .data = s->options,
        .made = &made,
    };
    return s->options->packing ? open_packed(s, &windows, out, err)
                               : tr__windows_open(&windows, s->files, out, err);
}

static tr_status find_ids(text_source *s, tr_error *err) {
    const tr_text_once once = {&s->cache, s->options, s->files->paths_key, encode, s};
    return tr__text_once(&once, err);
}

tr_status tr__text_open(const tr_data_options *options, const tr_data_files *files,
                        tr_dataset **out, tr_error *err) {
    text_source s = {.options = options, .files = files};
    tr_status status = tr__text_tokenizer_open(options, &s.by, err);
    if (status == TR_OK) {
        status = tr__text_files_open(options, files, &s.text, err);
    }
    if (status == TR_OK) {
        status = make_key(&s, err);
    }
    if (status == TR_OK) {
        status = find_ids(&s, err);
    }
    tr__text_tokenizer_close(&s.by);
    tr__memory_trim(); // it takes far more than the windows
    if (status == TR_OK) {
        status = open_windows(&s, out, err);
    }
    tr__joined_close(&s.text);
    return status;
}
