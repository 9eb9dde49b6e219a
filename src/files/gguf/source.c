#include "files/gguf/source.h"

#include "base/files.h"
#include "base/memory.h"

#include <string.h>

static tr_status fill(tr_gguf_source *source, tr_error *err) {
    int64_t left = tr__gguf_left(source);
    source->buffered = source->at;
    source->filled =
        (size_t)(left < TR_GGUF_SOURCE_BYTES ? left : TR_GGUF_SOURCE_BYTES);
    return tr__pread(source->file, source->path, source->buffer, source->filled,
                     source->at, err);
}

tr_status tr__gguf_take(tr_gguf_source *source, void *dst, size_t bytes,
                        const char *what, tr_error *err) {
    char *to = dst;
    if ((uint64_t)tr__gguf_left(source) < bytes) {
        return tr_fail(err, TR_IO,
                       "%s: the file ends inside of %s: it is damaged, or was not "
                       "copied to its end",
                       source->path, what);
    }
    while (bytes > 0) {
        size_t used = (size_t)(source->at - source->buffered);
        if (used == source->filled) {
            tr_status status = fill(source, err);
            if (status != TR_OK) {
                return status;
            }
            used = 0;
        }
        size_t now = source->filled - used < bytes ? source->filled - used : bytes;
        memcpy(to, source->buffer + used, now);
        source->at += (int64_t)now;
        to += now;
        bytes -= now;
    }
    return TR_OK;
}

// Files are little-endian, as every machine that this is built for.
tr_status tr__gguf_take_u32(tr_gguf_source *source, uint32_t *out, const char *what,
                            tr_error *err) {
    return tr__gguf_take(source, out, sizeof *out, what, err);
}

tr_status tr__gguf_take_u64(tr_gguf_source *source, uint64_t *out, const char *what,
                            tr_error *err) {
    return tr__gguf_take(source, out, sizeof *out, what, err);
}

tr_status tr__gguf_take_text(tr_gguf_source *source, char **out, size_t *bytes,
                             const char *what, tr_error *err) {
    uint64_t length = 0;
    tr_status status = tr__gguf_take_u64(source, &length, what, err);
    if (status != TR_OK) {
        return status;
    }
    if (length > (uint64_t)tr__gguf_left(source)) {
        return tr_fail(err, TR_IO,
                       "%s: %s is said to have %llu bytes, more than the file: it is "
                       "damaged",
                       source->path, what, (unsigned long long)length);
    }
    char *text = tr__calloc(1, (size_t)length + 1);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "%s: no memory for %s", source->path, what);
    }
    status = tr__gguf_take(source, text, (size_t)length, what, err);
    if (status != TR_OK) {
        tr__free(text);
        return status;
    }
    *out = text;
    *bytes = (size_t)length;
    return TR_OK;
}
