#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/screen.h"
#include "cli/tokenize.h"
#include "data/encode.h"
#include "train/progress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH_U16 = 2, WIDTH_U32 = 4 };

// Text on its way to ids.
typedef struct work {
    const tr_tokenizer *tokenizer;
    const cli_tokenize *asked;
    tr_joined text;
    int width;  // of an id in the file
    char *path; // where ids are written until all are there; NULL: nowhere
    int file;
    int64_t tokens;
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
    w->width = dtype ? (strcmp(dtype, "u16") == 0 ? WIDTH_U16 : WIDTH_U32)
                     : tr__ids_width(vocabulary);
    if (w->width == WIDTH_U16 && tr__ids_width(vocabulary) != WIDTH_U16) {
        return tr_fail(err, TR_USAGE,
                       "--dtype u16: ids go up to %lld, which u16 has no room for; use "
                       "u32",
                       (long long)vocabulary - 1);
    }
    if (!w->asked->out) {
        return TR_OK;
    }
    tr_status status = tr__file_check_replaceable(w->asked->out, err);
    if (status != TR_OK) {
        return status;
    }
    w->path = tr__format("%s.partial", w->asked->out);
    return w->path ? tr__file_create(w->path, &w->file, err)
                   : tr_fail(err, TR_MEMORY, "no memory for a path");
}

static tr_status take(void *user, tr_token_ids *ids, int64_t bytes, tr_error *err) {
    work *w = user;
    tr_status status = TR_OK;
    int64_t at = w->tokens * w->width;
    w->tokens += (int64_t)ids->count;
    if (w->path) {
        size_t packed = tr__ids_pack(ids, w->width);
        status = tr__pwrite(w->file, w->path, ids->id, packed, at, err);
    }
    tr__progress_work(&w->line, "tokenizing", bytes, tr__joined_count(&w->text));
    return status;
}

static tr_status encode(work *w, tr_error *err) {
    tr_encode job = {.stream = {.tokenizer = w->tokenizer,
                                .options = {w->asked->special, w->asked->plain_special},
                                .threads = (int)w->asked->threads},
                     .text = &w->text,
                     .joined = true,
                     .take = take,
                     .user = w};
    return tr__encode_files(&job, err);
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
    int64_t read = tr__joined_count(&w->text);
    tr__print_size(size, sizeof size, read);
    printf("%lld tokens from %s (%.2f bytes a token, %.1f MB/s)", (long long)w->tokens,
           size, w->tokens ? (double)read / (double)w->tokens : 0.0,
           seconds > 0 ? (double)read / 1e6 / seconds : 0.0);
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
    tr__joined_close(&w->text);
}

tr_status cli_tokenize_encode(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                              tr_error *err) {
    work w = {.tokenizer = tokenizer, .asked = asked, .file = -1};
    cli_screen stream;
    tr_screen screen = cli_screen_on(&stream, stderr, true);
    tr__progress_open(&w.line, &screen, 5);
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
