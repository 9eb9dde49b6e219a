// Format "text": documents, tokenized once, ahead, into a file of ids in the user's
// cache folder; from there on as the format tokens.
#include "data/encode.h"
#include "data/tell.h"
#include "data/text_cache.h"
#include "data/text_documents.h"
#include "data/windows.h"
#include "tokenizer/folder.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Ids that an earlier version made of the same text by the same tokenizer are others:
// raise it where that is so.
enum { IDS_VERSION = 1 };

static const double looked_every = 0.05, // seconds; whether another process is done
    said_after = 1, stalled_after = 60;

typedef struct text_source {
    const tr_data_options *options;
    const tr_data_files *files;
    char file[PATH_MAX], folder[PATH_MAX]; // of the tokenizer
    tr_tokenizer *tokenizer;
    int32_t eos; // -1: none
    tr_joined text;
    tr_text_cache cache;
    uint64_t state; // of the files when they were hashed
} text_source;

// ---- the tokenizer

static tr_status find_eos(text_source *s, tr_error *err) {
    const char *named = s->options->eos_token;
    if (!named) {
        return tr__tokenizer_eos(s->tokenizer, s->folder, &s->eos, err);
    }
    s->eos = tr_tokenizer_find(s->tokenizer, named);
    return s->eos >= 0 ? TR_OK
                       : tr_fail(err, TR_DATA,
                                 "data.eos_token: \"%.100s\" is no token of %.400s",
                                 named, s->file);
}

static tr_status check_vocabulary(const text_source *s, tr_error *err) {
    int64_t has = s->options->vocabulary, needs = tr_tokenizer_vocabulary(s->tokenizer);
    return has == 0 || needs <= has
               ? TR_OK
               : tr_fail(err, TR_DATA,
                         "data.tokenizer: the ids of %.400s go up to %lld, the model "
                         "has a vocabulary of %lld; give it one of %lld",
                         s->file, (long long)needs - 1, (long long)has,
                         (long long)needs);
}

static tr_status open_tokenizer(text_source *s, tr_error *err) {
    const char *path = s->options->tokenizer;
    if (!path) {
        return tr_fail(err, TR_USAGE,
                       "data.tokenizer: format text needs a tokenizer.json, or a "
                       "folder that has one");
    }
    tr_status status = tr__tokenizer_file(path, s->file, err);
    if (status == TR_OK) {
        status = tr__tokenizer_folder(path, s->folder, err);
    }
    if (status == TR_OK) {
        status = tr_tokenizer_load(path, &s->tokenizer, err);
    }
    if (status == TR_OK) {
        status = check_vocabulary(s, err);
    }
    return status == TR_OK ? find_eos(s, err) : status;
}

// ---- what the ids depend on

static tr_status open_text(text_source *s, tr_error *err) {
    tr_file_list list;
    tr_status status = tr__data_files_list(s->options, s->files, &list, err);
    return status == TR_OK
               ? tr__joined_open(&s->text, &list, s->files->paths[0], 1, err)
               : status;
}

// Sizes, times and places of the files: others mean that somebody writes to them.
static tr_status look_at_files(const text_source *s, uint64_t *state, tr_error *err) {
    *state = 0;
    for (size_t i = 0; i < s->text.files.count; i++) {
        const char *path = s->text.files.entry[i].path;
        struct stat info;
        if (stat(path, &info) != 0) {
            return tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
        }
        const int64_t numbers[] = {
            (int64_t)info.st_dev,          (int64_t)info.st_ino,
            (int64_t)info.st_size,         (int64_t)info.st_mtim.tv_sec,
            (int64_t)info.st_mtim.tv_nsec, (int64_t)info.st_ctim.tv_sec,
            (int64_t)info.st_ctim.tv_nsec};
        *state = tr__hash_more(*state, numbers, sizeof numbers);
    }
    return TR_OK;
}

// Of all bytes of all files: an edit anywhere makes other ids.
static tr_status hash_files(const text_source *s, uint64_t *key, tr_error *err) {
    tr_tell tell = tr__tell_begin(s->options);
    tr_status status = TR_OK;
    for (size_t i = 0; i < s->text.files.count && status == TR_OK; i++) {
        const tr_file_entry *entry = &s->text.files.entry[i];
        uint64_t numbers[] = {(uint64_t)entry->bytes, 0};
        status = tr__hash_file(entry->path, &numbers[1], err);
        *key = tr__hash_more(*key, numbers, sizeof numbers);
        tr__tell(&tell, "looking for changes in the text", s->text.start[i + 1],
                 tr__joined_count(&s->text));
    }
    return status;
}

static tr_status make_key(text_source *s, tr_error *err) {
    const char *separator = s->options->document_separator;
    uint64_t numbers[] = {IDS_VERSION,
                          (uint64_t)s->eos,
                          s->options->plain_special,
                          separator ? strlen(separator) : 0,
                          s->text.files.count,
                          0};
    uint64_t key = 0;
    tr_status status = look_at_files(s, &s->state, err);
    if (status == TR_OK) {
        status = tr__hash_file(s->file, &numbers[5], err);
    }
    if (status == TR_OK) {
        key = tr__hash_more(key, numbers, sizeof numbers);
        key = tr__hash_more(key, separator ? separator : "", numbers[3]);
        status = hash_files(s, &key, err);
    }
    int64_t vocabulary = tr_tokenizer_vocabulary(s->tokenizer);
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

static tr_status go_on(const text_source *s, tr_error *err) {
    const tr_data_options *options = s->options;
    return options->stop && options->stop(options->stop_user)
               ? tr_fail(err, TR_INTERRUPTED, "interrupted")
               : TR_OK;
}

static tr_status take(void *user, tr_token_ids *ids, int64_t bytes, tr_error *err) {
    work *w = user;
    tr_text_cache *cache = &w->source->cache;
    cache->ids += (int64_t)ids->count;
    tr__tell(&w->tell, "tokenizing", bytes, tr__joined_count(&w->source->text));
    tr_status status = go_on(w->source, err);
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

static tr_status encode(text_source *s, tr_text_writer *writer, tr_error *err) {
    work w = {s, writer, tr__tell_begin(s->options)};
    tr_encode job = {.stream = {.tokenizer = s->tokenizer,
                                .options = {.plain_special = s->options->plain_special},
                                .threads = s->options->threads},
                     .text = &s->text,
                     .separator = s->options->document_separator,
                     .between = s->eos >= 0 ? &s->eos : NULL,
                     .take = take,
                     .user = &w};
    double begin = tr__seconds();
    uint64_t state = 0;
    s->cache.ids = 0;
    tr_status status = tr__encode_files(&job, err);
    if (status == TR_OK) {
        status = look_at_files(s, &state, err);
    }
    if (status == TR_OK && state != s->state) {
        status = tr_fail(err, TR_DATA,
                         "%s: files were written to while they were tokenized; begin "
                         "again when nobody does",
                         s->files->paths_key);
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

// ---- one process for all

// Another process that has the ids under way.
typedef struct waiting {
    double begun, moved; // tr__seconds(); when it was last seen to go on
    int64_t progress;
    bool said;
} waiting;

static void wait_a_little(const text_source *s, waiting *w) {
    int64_t progress = tr__text_cache_progress(&s->cache);
    double now = tr__seconds();
    w->moved = progress != w->progress ? now : w->moved;
    w->progress = progress;
    if (!w->said && now > w->begun + said_after) {
        w->said = true;
        tr__data_say(s->options, "%s: another process tokenizes the same text; waiting",
                     s->files->paths_key);
    }
    tr__sleep(looked_every);
}

// Between a look for the ids and a claim another process may have come to its end.
static tr_status make_ids(text_source *s, bool alone, bool *done, tr_error *err) {
    tr_text_writer writer = {.file = -1};
    tr_text_claim claim = TR_TEXT_TAKEN;
    tr_status status = tr__text_cache_claim(&s->cache, alone, &writer, &claim, err);
    if (status == TR_OK && claim == TR_TEXT_OURS) {
        *done = true;
        status = tr__text_cache_find(&s->cache) ? TR_OK : encode(s, &writer, err);
    }
    tr__text_cache_drop(&writer);
    return status;
}

static tr_status find_ids(text_source *s, tr_error *err) {
    double now = tr__seconds();
    waiting w = {now, now, 0, false};
    bool done = tr__text_cache_find(&s->cache);
    tr_status status = TR_OK;
    while (!done && status == TR_OK) {
        status = make_ids(s, tr__seconds() > w.moved + stalled_after, &done, err);
        if (!done && status == TR_OK) {
            status = go_on(s, err);
            wait_a_little(s, &w);
            done = tr__text_cache_find(&s->cache);
        }
    }
    return status;
}

// ---- opening

static tr_status open_packed(const text_source *s, const tr_windows_options *windows,
                             tr_dataset **out, tr_error *err) {
    tr_documents documents;
    if (s->eos < 0) {
        return tr_fail(err, TR_DATA,
                       "data.packing: the folder of %.400s names no token that ends a "
                       "document; name it with data.eos_token",
                       s->file);
    }
    tr_status status = tr__text_documents(windows, s->eos, &documents, err);
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

tr_status tr__text_open(const tr_data_options *options, const tr_data_files *files,
                        tr_dataset **out, tr_error *err) {
    text_source s = {.options = options, .files = files, .eos = -1};
    tr_status status = open_tokenizer(&s, err);
    if (status == TR_OK) {
        status = open_text(&s, err);
    }
    if (status == TR_OK) {
        status = make_key(&s, err);
    }
    if (status == TR_OK) {
        status = find_ids(&s, err);
    }
    tr_tokenizer_destroy(s.tokenizer);
    tr__memory_trim(); // it takes far more than the windows
    if (status == TR_OK) {
        status = open_windows(&s, out, err);
    }
    tr__joined_close(&s.text);
    return status;
}
