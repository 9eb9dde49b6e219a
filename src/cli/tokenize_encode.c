#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/tokenize.h"
#include "data/joined.h"
#include "tokenizer/stream.h"
#include "train/progress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 25, WIDTH_U16 = 2, WIDTH_U32 = 4 };

// Text on its way to ids.
typedef struct work {
    const tr_tokenizer *tokenizer;
    const cli_tokenize *asked;
    tr_joined text;
    char *block; // [capacity]
    size_t have, capacity;
    tr_token_ids ids;
    int width;  // of an id in the file
    char *path; // where ids are written until all are there; NULL: nowhere
    int file;
    int64_t read, tokens;
    tr_progress_line line;
} work;

static tr_status open_text(work *w, tr_error *err) {
    tr_file_list list = {.text = true};
    tr_status status = TR_OK;
    for (size_t i = 0; i < w->asked->file_count && status == TR_OK; i++) {
        status = tr__file_list_add(&list, w->asked->files[i], err);
    }
    if (status != TR_OK) {
        tr__file_list_clear(&list);
        return status;
    }
    return tr__joined_open(&w->text, &list, w->asked->files[0], 1, err);
}

static tr_status open_out(work *w, tr_error *err) {
    int64_t vocabulary = tr_tokenizer_vocabulary(w->tokenizer);
    const char *dtype = w->asked->dtype;
    bool fits = vocabulary <= 1 << 16;
    w->width = dtype ? (strcmp(dtype, "u16") == 0 ? WIDTH_U16 : WIDTH_U32)
                     : (fits ? WIDTH_U16 : WIDTH_U32);
    if (w->width == WIDTH_U16 && !fits) {
        return tr_fail(err, TR_USAGE,
                       "--dtype u16: ids go up to %lld, which u16 has no room for; use "
                       "u32",
                       (long long)vocabulary - 1);
    }
    if (!w->asked->out) {
        return TR_OK;
    }
    w->path = tr__format("%s.partial", w->asked->out);
    return w->path ? tr__file_create(w->path, &w->file, err)
                   : tr_fail(err, TR_MEMORY, "no memory for a path");
}

// Ids to the file's type, in place.
static size_t narrow(work *w) {
    if (w->width == WIDTH_U32) {
        return w->ids.count * WIDTH_U32;
    }
    unsigned char *to = (unsigned char *)w->ids.id;
    for (size_t i = 0; i < w->ids.count; i++) {
        uint16_t id = (uint16_t)w->ids.id[i];
        memcpy(to + i * sizeof id, &id, sizeof id);
    }
    return w->ids.count * WIDTH_U16;
}

static tr_status write_ids(work *w, tr_error *err) {
    tr_status status = TR_OK;
    if (w->path) {
        size_t count = w->ids.count, bytes = narrow(w);
        status =
            tr__pwrite(w->file, w->path, w->ids.id, bytes, w->tokens * w->width, err);
        w->ids.count = count;
    }
    w->tokens += (int64_t)w->ids.count;
    w->ids.count = 0;
    return status;
}

// The next piece of the files, behind what is left of the block.
static tr_status fill(work *w, int64_t total, tr_error *err) {
    if (w->capacity - w->have < BLOCK / 2 &&
        !tr__grow((void **)&w->block, &w->capacity, w->have + BLOCK, 1)) {
        return tr_fail(err, TR_MEMORY, "no memory for %zu bytes of text",
                       w->have + BLOCK);
    }
    int64_t room = (int64_t)(w->capacity - w->have), left = total - w->read;
    int64_t count = left < room ? left : room;
    tr_status status =
        tr__joined_read(&w->text, w->read, count, w->block + w->have, err);
    w->read += count;
    w->have += (size_t)count;
    return status;
}

static tr_status encode(work *w, tr_error *err) {
    const tr_encode_options options = {w->asked->special, w->asked->plain_special};
    int64_t total = tr__joined_count(&w->text);
    bool begins = true;
    tr_status status = TR_OK;
    while (status == TR_OK && (w->read < total || w->have > 0)) {
        size_t used = 0;
        status = fill(w, total, err);
        tr_block block = {w->block, w->have, begins, w->read == total};
        if (status == TR_OK) {
            status = tr__tokenizer_block(w->tokenizer, &block, &options,
                                         (int)w->asked->threads, &w->ids, &used, err);
        }
        if (status == TR_OK) {
            status = write_ids(w, err);
        }
        begins = begins && used == 0;
        w->have -= used;
        memmove(w->block, w->block + used, w->have);
        tr__progress_work(&w->line, "tokenizing", w->read - (int64_t)w->have, total);
    }
    return status;
}

static tr_status keep(work *w, tr_error *err) {
    if (!w->path) {
        return TR_OK;
    }
    bool synced = fsync(w->file) == 0 && close(w->file) == 0;
    w->file = -1;
    if (!synced || rename(w->path, w->asked->out) != 0) {
        return tr_fail(err, TR_IO, "%s: cannot write: %s", w->asked->out,
                       strerror(errno));
    }
    tr__free(w->path);
    w->path = NULL;
    return TR_OK;
}

static void report(const work *w, double seconds) {
    char size[32];
    tr__print_size(size, sizeof size, w->read);
    printf("%lld tokens from %s (%.2f bytes a token, %.1f MB/s)", (long long)w->tokens,
           size, w->tokens ? (double)w->read / (double)w->tokens : 0.0,
           seconds > 0 ? (double)w->read / 1e6 / seconds : 0.0);
    if (w->asked->out) {
        printf(", %s: %s", w->width == WIDTH_U16 ? "u16" : "u32", w->asked->out);
    }
    putchar('\n');
}

static void release(work *w) {
    tr__progress_end(&w->line);
    if (w->file >= 0) {
        close(w->file);
    }
    if (w->path) {
        unlink(w->path); // what is there is not all
    }
    tr__free(w->path);
    tr__free(w->block);
    tr_token_ids_release(&w->ids);
    tr__joined_close(&w->text);
}

tr_status cli_tokenize_encode(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                              tr_error *err) {
    work w = {.tokenizer = tokenizer, .asked = asked, .file = -1};
    w.line = (tr_progress_line){.to = stderr,
                                .live = isatty(STDERR_FILENO),
                                .every = isatty(STDERR_FILENO) ? 0.1 : 5};
    tr_status status = open_text(&w, err);
    if (status == TR_OK) {
        status = open_out(&w, err);
    }
    double begin = tr__seconds();
    tr__progress_work(&w.line, "tokenizing", 0, 1);
    if (status == TR_OK) {
        status = encode(&w, err);
    }
    if (status == TR_OK) {
        status = keep(&w, err);
    }
    if (status == TR_OK) {
        tr__progress_hide(&w.line);
        report(&w, tr__seconds() - begin);
    }
    release(&w);
    return status;
}
