// The bytes of a file, front to back, through a small buffer.
#ifndef TR_FILES_GGUF_SOURCE_H
#define TR_FILES_GGUF_SOURCE_H

#include <tranche/status.h>

#include <stdint.h>

enum { TR_GGUF_SOURCE_BYTES = 1 << 16 };

typedef struct tr_gguf_source {
    const char *path;
    int file;
    int64_t size, at; // of the file; of the next byte
    int64_t buffered; // where the buffer begins in the file
    size_t filled;
    unsigned char buffer[TR_GGUF_SOURCE_BYTES];
} tr_gguf_source;

// Bytes of the file that are not read yet.
static inline int64_t tr__gguf_left(const tr_gguf_source *source) {
    return source->size - source->at;
}

// TR_IO: the file ends before. what: what is read, for the message.
tr_status tr__gguf_take(tr_gguf_source *source, void *dst, size_t bytes,
                        const char *what, tr_error *err);
tr_status tr__gguf_take_u32(tr_gguf_source *source, uint32_t *out, const char *what,
                            tr_error *err);
tr_status tr__gguf_take_u64(tr_gguf_source *source, uint64_t *out, const char *what,
                            tr_error *err);
// A length, and as many bytes; the caller frees *out with tr__free. A 0 is behind them.
tr_status tr__gguf_take_text(tr_gguf_source *source, char **out, size_t *bytes,
                             const char *what, tr_error *err);

#endif
