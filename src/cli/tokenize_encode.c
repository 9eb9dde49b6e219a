#include "cli/files.h"
#include "cli/tokenize.h"
#include "report/screen.h"
#include "report/work.h"

#include <tranche/types.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WIDTH_U16 = 2, WIDTH_U32 = 4 };

// Text on its way to ids.
typedef struct work {
    const cli_tokenize *asked;
    int width;      // of an id in the file
    cli_output out; // out.to: NULL: ids are counted only
    int64_t tokens;
    tr_encoded so_far;
    report_work progress;
} work;

static tr_status open_out(work *w, int64_t vocabulary, tr_error *err) {
    const char *dtype = w->asked->dtype;
    bool narrow = vocabulary <= 1 << 16;
    bool asks_narrow = dtype && strcmp(dtype, "u16") == 0;
    w->width = asks_narrow || (!dtype && narrow) ? WIDTH_U16 : WIDTH_U32;
    if (asks_narrow && !narrow) {
        return tr_fail(err, TR_USAGE,
                       "--dtype u16: ids go up to %lld, which u16 has no room for; use "
                       "u32",
                       (long long)vocabulary - 1);
    }
    return w->asked->out ? cli_output_open(&w->out, w->asked->out, err) : TR_OK;
}

static bool put(FILE *to, const int32_t *id, size_t count, int width) {
    uint16_t narrow[4096];
    enum { PIECE = sizeof narrow / sizeof *narrow };
    if (width == WIDTH_U32) {
        return fwrite(id, sizeof *id, count, to) == count;
    }
    for (size_t at = 0; at < count; at += PIECE) {
        size_t piece = count - at < PIECE ? count - at : PIECE;
        for (size_t i = 0; i < piece; i++) {
            narrow[i] = (uint16_t)id[at + i];
        }
        if (fwrite(narrow, sizeof *narrow, piece, to) != piece) {
            return false;
        }
    }
    return true;
}

static tr_status take(void *user, const int32_t *id, size_t count, tr_encoded so_far,
                      tr_error *err) {
    work *w = user;
    w->tokens += (int64_t)count;
    w->so_far = so_far;
    if (w->out.to && !put(w->out.to, id, count, w->width)) {
        return cli_output_fail(&w->out, err);
    }
    report_work_tell(&w->progress, so_far.done, so_far.total);
    return TR_OK;
}

static tr_status encode(work *w, const tr_tokenizer *tokenizer, tr_error *err) {
    const cli_tokenize *asked = w->asked;
    tr_encode_files files = TR_ENCODE_FILES_INIT;
    files.paths = asked->files;
    files.path_count = asked->file_count;
    const tr_encode_options options = {.size = sizeof options,
                                       .add_special = asked->special,
                                       .plain_special = asked->plain_special};
    files.options = &options;
    files.threads = (int)asked->threads;
    files.take = take;
    files.user = w;
    return tr_tokenizer_encode_files(tokenizer, &files, err);
}

static double seconds_since(struct timespec begin) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin.tv_sec) +
           (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
}

static void report(const work *w, double seconds) {
    char size[32];
    int64_t read = w->so_far.total;
    printf("%lld tokens from %s (%.2f bytes a token, %.1f MB/s)", (long long)w->tokens,
           tr_size_words(read, size, sizeof size),
           w->tokens ? (double)read / (double)w->tokens : 0.0,
           seconds > 0 ? (double)read / 1e6 / seconds : 0.0);
    if (w->asked->out) {
        printf(", %s: %s", w->width == WIDTH_U16 ? "u16" : "u32", w->asked->out);
    }
    putchar('\n');
}

tr_status cli_tokenize_encode(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                              tr_error *err) {
    work w = {.asked = asked};
    report_screen stream;
    struct timespec begin;
    const tr_screen screen = report_screen_on(&stream, stderr, true);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    w.progress = report_work_begin(&screen, "tokenizing");
    tr_status status = open_out(&w, tr_tokenizer_vocabulary(tokenizer), err);
    if (status == TR_OK) {
        status = encode(&w, tokenizer, err);
    }
    status = cli_output_close(&w.out, status, err);
    report_work_end(&w.progress);
    if (status == TR_OK) {
        report(&w, seconds_since(begin));
    }
    return status;
}
