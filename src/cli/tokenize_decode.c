#include "cli/files.h"
#include "cli/run_options.h"
#include "cli/tokenize.h"
#include "report/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_MAX = 1 << 30,
    WIDTH_LOOKED = 64, // of fewer halves, chance may make what tells their width
};

// What a file of ids is decoded as.
typedef struct source {
    const tr_tokenizer *tokenizer;
    const cli_tokenize *asked;
    const char *data;
    size_t bytes;
    int width; // bytes of an id
} source;

// How far the upper half of an id may go.
static uint32_t upper_half(const tr_tokenizer *tokenizer) {
    int64_t vocabulary = tr_tokenizer_vocabulary(tokenizer);
    return vocabulary > 1 << 16 ? (uint32_t)(vocabulary - 1) >> 16 : 0;
}

static bool is_token(const tr_tokenizer *tokenizer, uint32_t id) {
    size_t bytes;
    return id <= INT32_MAX && tr_tokenizer_token(tokenizer, (int32_t)id, &bytes);
}

static uint32_t id_at(const char *data, size_t i, int width) {
    uint16_t narrow;
    uint32_t wide;
    memcpy(&narrow, data + i * (size_t)width, sizeof narrow);
    memcpy(&wide, data + i * (size_t)width, width == 4 ? sizeof wide : 0);
    return width == 4 ? wide : narrow;
}

static bool all_tokens(const source *s, int width) {
    bool all = s->bytes % (size_t)width == 0;
    for (size_t i = 0; all && i < s->bytes / (size_t)width; i++) {
        all = is_token(s->tokenizer, id_at(s->data, i, width));
    }
    return all;
}

static void note(const char *path) {
    char line[TR_MESSAGE_MAX];
    snprintf(line, sizeof line,
             "%s: taken as ids of u32, because as u16 every second id would be 0",
             path);
    cli_say(NULL, TR_MESSAGE_NOTE, line);
}

// The largest numbers of two bytes at the even and at the odd places.
static void find_most(const source *s, uint32_t most[2]) {
    for (size_t i = 0; i < s->bytes / 2; i++) {
        uint32_t half = id_at(s->data, i, 2);
        most[i % 2] = half > most[i % 2] ? half : most[i % 2];
    }
}

// The width that the file itself tells. A number of four bytes whose upper half is 0 is
// two of two bytes as well: where there are few, or nothing but zeros, it may be both.
static tr_status find_width(source *s, tr_error *err) {
    int64_t halves = (int64_t)(s->bytes / 2);
    uint32_t most[2] = {0, 0}, high = upper_half(s->tokenizer);
    const char *given = s->asked->dtype, *path = s->asked->decode;
    bool narrow = given ? strcmp(given, "u16") == 0 : high == 0;
    s->width = narrow ? 2 : 4;
    if (!narrow || s->bytes == 0 || s->bytes % 4 != 0) {
        return TR_OK;
    }
    find_most(s, most);
    bool perhaps = most[1] <= high && all_tokens(s, 4);
    bool wide = perhaps && halves >= WIDTH_LOOKED && most[0] > high;
    if (given) {
        return wide ? tr_fail(err, TR_DATA,
                              "%s: its ids are u32 (as u16 every second one is nearly "
                              "0): say --dtype u32",
                              path)
                    : TR_OK;
    }
    if (wide) {
        s->width = 4;
        note(path);
    } else if (perhaps) {
        return tr_fail(
            err, TR_DATA,
            "%s: may be %lld ids of u16, every second one 0, or %lld of u32: "
            "say --dtype u16 or --dtype u32",
            path, (long long)halves, (long long)halves / 2);
    }
    return TR_OK;
}

// From the file's type to ids. An id that no token has is an error that says where.
static tr_status widen(const source *s, size_t count, int32_t *id, tr_error *err) {
    for (size_t i = 0; i < count; i++) {
        uint32_t wide = id_at(s->data, i, s->width);
        if (!is_token(s->tokenizer, wide)) {
            int other = s->width == 4 ? 2 : 4;
            bool fits = all_tokens(s, other);
            return tr_fail(err, TR_DATA,
                           "%s: id %u, number %zu of the file, is no token of %s; %s%s",
                           s->asked->decode, wide, i, s->asked->tokenizer,
                           fits ? "all are as " : "is --dtype right?",
                           !fits        ? ""
                           : other == 2 ? "u16: say --dtype u16"
                                        : "u32: say --dtype u32");
        }
        id[i] = (int32_t)wide;
    }
    return TR_OK;
}

static tr_status print(const char *text, size_t bytes, tr_error *err) {
    report_clean clean;
    const tr_sink to = report_sink(&clean, stdout);
    bool written = to.write(to.user, text, bytes);
    report_clean_end(&clean);
    return written ? TR_OK : tr_fail(err, TR_IO, "cannot write to standard output");
}

tr_status cli_tokenize_decode(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                              tr_error *err) {
    char *data = NULL, *text = NULL;
    size_t bytes = 0, text_bytes = 0;
    tr_status status = cli_file_read(asked->decode, FILE_MAX, &data, &bytes, err);
    source s = {tokenizer, asked, data, bytes, 2};
    if (status == TR_OK) {
        status = find_width(&s, err);
    }
    if (status == TR_OK && bytes % (size_t)s.width != 0) {
        status = tr_fail(err, TR_DATA,
                         "%s: %zu bytes are no whole number of ids of %d bytes; is "
                         "--dtype right?",
                         asked->decode, bytes, s.width);
    }
    size_t count = bytes / (size_t)s.width;
    int32_t *id = status == TR_OK ? calloc(count + 1, sizeof *id) : NULL;
    if (status == TR_OK && !id) {
        status = tr_fail(err, TR_MEMORY, "no memory for %zu ids", count);
    }
    if (status == TR_OK) {
        status = widen(&s, count, id, err);
    }
    if (status == TR_OK) {
        status =
            tr_tokenizer_decode(tokenizer, id, count, false, &text, &text_bytes, err);
    }
    if (status == TR_OK) {
        status = print(text, text_bytes, err);
    }
    tr_tokenizer_text_release(text);
    free(id);
    free(data);
    return status;
}
