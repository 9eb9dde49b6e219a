// tokenizer TOKENIZER.json DOCUMENTS [OUT.ids]: encodes documents, which a zero byte
// ends each, on one thread, one after the other. Prints bytes, tokens and the seconds
// of processor time of the best of three passes; OUT.ids: the ids of each document as
// int32, and -1 behind.
#include "base/files.h"
#include "base/memory.h"

#include <tranche/data.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PASSES = 3, FILE_MAX = 1 << 30 };

static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tr_status encode_all(tr_encoder *encoder, const char *text, size_t bytes,
                            FILE *out, size_t *tokens, tr_error *err) {
    tr_token_ids ids = {0};
    tr_status status = TR_OK;
    const int32_t end = -1;
    *tokens = 0;
    for (size_t at = 0; at < bytes && status == TR_OK;) {
        const char *stop = memchr(text + at, 0, bytes - at);
        size_t length = stop ? (size_t)(stop - (text + at)) : bytes - at;
        ids.count = 0;
        status = tr_encoder_encode(encoder, text + at, length, NULL, &ids, err);
        *tokens += ids.count;
        if (out && status == TR_OK) {
            fwrite(ids.id, sizeof *ids.id, ids.count, out);
            fwrite(&end, sizeof end, 1, out);
        }
        at += length + 1;
    }
    tr_token_ids_release(&ids);
    return status;
}

static tr_status measure(const tr_tokenizer *tokenizer, const char *text, size_t bytes,
                         const char *path, tr_error *err) {
    tr_encoder *encoder = NULL;
    FILE *out = path ? fopen(path, "wb") : NULL;
    size_t tokens = 0;
    double best = 1e30;
    tr_status status = TR_OK;
    for (int pass = 0; pass < PASSES && status == TR_OK; pass++) {
        tr_encoder_destroy(encoder); // it remembers words
        encoder = NULL;
        status = tr_encoder_create(tokenizer, &encoder, err);
        if (status != TR_OK) {
            break;
        }
        double begin = processor_seconds();
        status = encode_all(encoder, text, bytes, pass == 0 ? out : NULL, &tokens, err);
        double seconds = processor_seconds() - begin;
        best = seconds < best && !(out && pass == 0) ? seconds : best;
    }
    tr_encoder_destroy(encoder);
    if (out) {
        fclose(out);
    }
    if (status == TR_OK) {
        printf("%zu %zu %.4f\n", bytes, tokens, best);
    }
    return status;
}

int main(int argc, char **argv) {
    tr_error err = {0};
    tr_tokenizer *tokenizer = NULL;
    char *text = NULL;
    size_t bytes = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: tokenizer TOKENIZER.json DOCUMENTS [OUT.ids]\n");
        return 2;
    }
    tr_status status = tr_tokenizer_load(argv[1], &tokenizer, &err);
    if (status == TR_OK) {
        status = tr__file_read(argv[2], FILE_MAX, &text, &bytes, &err);
    }
    if (status == TR_OK) {
        status = measure(tokenizer, text, bytes, argc > 3 ? argv[3] : NULL, &err);
    }
    if (status != TR_OK) {
        fprintf(stderr, "tokenizer: %s\n", err.message);
    }
    tr__free(text);
    tr_tokenizer_destroy(tokenizer);
    return tr_status_exit(status);
}
