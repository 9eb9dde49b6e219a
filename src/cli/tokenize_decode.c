#include "base/files.h"
#include "base/memory.h"
#include "base/terminal.h"
#include "cli/tokenize.h"
#include "data/joined.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 30 };

// From the file's type to ids. An id that no token has is an error that says where.
static tr_status widen(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                       const char *data, size_t count, int width, int32_t *id,
                       tr_error *err) {
    for (size_t i = 0; i < count; i++) {
        uint16_t narrow;
        uint32_t wide;
        size_t bytes;
        memcpy(&narrow, data + i * (size_t)width, sizeof narrow);
        memcpy(&wide, data + i * (size_t)width, width == 4 ? sizeof wide : 0);
        wide = width == 4 ? wide : narrow;
        if (wide > INT32_MAX || !tr_tokenizer_token(tokenizer, (int32_t)wide, &bytes)) {
            return tr_fail(err, TR_DATA,
                           "%s: id %u, number %zu of the file, is no token of %s; is "
                           "--dtype right?",
                           asked->decode, wide, i, asked->tokenizer);
        }
        id[i] = (int32_t)wide;
    }
    return TR_OK;
}

static tr_status print(const char *text, size_t bytes, tr_error *err) {
    tr_clean_text clean = tr__clean_begin(stdout, true);
    if (clean.terminal) {
        for (size_t i = 0; i < bytes; i++) {
            tr__clean_put(&clean, (unsigned char)text[i]);
        }
        tr__clean_end(&clean);
        return TR_OK;
    }
    return fwrite(text, 1, bytes, stdout) == bytes
               ? TR_OK
               : tr_fail(err, TR_IO, "cannot write to standard output");
}

tr_status cli_tokenize_decode(const tr_tokenizer *tokenizer, const cli_tokenize *asked,
                              tr_error *err) {
    char *data = NULL, *text = NULL;
    size_t bytes = 0, text_bytes = 0;
    bool fits = tr_tokenizer_vocabulary(tokenizer) <= 1 << 16;
    int width = asked->dtype ? (strcmp(asked->dtype, "u16") == 0 ? 2 : 4)
                : fits       ? 2
                             : 4;
    tr_status status = tr__file_read(asked->decode, FILE_MAX, &data, &bytes, err);
    if (status == TR_OK && bytes % (size_t)width != 0) {
        status = tr_fail(err, TR_DATA,
                         "%s: %zu bytes are no whole number of ids of %d bytes; is "
                         "--dtype right?",
                         asked->decode, bytes, width);
    }
    size_t count = bytes / (size_t)width;
    int32_t *id = status == TR_OK ? tr__calloc(count + 1, sizeof *id) : NULL;
    if (status == TR_OK && !id) {
        status = tr_fail(err, TR_MEMORY, "no memory for %zu ids", count);
    }
    if (status == TR_OK) {
        status = widen(tokenizer, asked, data, count, width, id, err);
    }
    if (status == TR_OK) {
        status =
            tr_tokenizer_decode(tokenizer, id, count, false, &text, &text_bytes, err);
    }
    if (status == TR_OK) {
        status = print(text, text_bytes, err);
    }
    tr_tokenizer_text_release(text);
    tr__free(id);
    tr__free(data);
    return status;
}
