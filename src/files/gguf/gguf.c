#include "files/gguf/inside.h"

#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers of the file are copied as they are");

static const char magic[] = {'G', 'G', 'U', 'F'};

// ---- reading the header

static tr_status take_magic(tr_gguf_source *source, tr_error *err) {
    char found[sizeof magic] = {0};
    tr_status status = TR_OK;
    if (source->size >= (int64_t)sizeof found) {
        status = tr__gguf_take(source, found, sizeof found, "its first bytes", err);
    }
    if (status == TR_OK && memcmp(found, magic, sizeof magic) != 0) {
        status = tr_fail(err, TR_IO, "%s: is no GGUF file, which begins with \"GGUF\"",
                         source->path);
    }
    return status;
}

static tr_status take_version(tr_gguf_source *source, tr_error *err) {
    uint32_t version = 0;
    tr_status status = tr__gguf_take_u32(source, &version, "its version", err);
    if (status == TR_OK && version != 2 && version != 3) {
        bool swapped = version != 0 && (version & 0xffff) == 0;
        status = tr_fail(err, TR_IO, "%s: %s %u, and supported are 2 and 3%s",
                         source->path, "is a GGUF file of version",
                         swapped ? __builtin_bswap32(version) : version,
                         swapped ? ", little-endian (this one is big-endian)" : "");
    }
    return status;
}

static tr_status take_all(tr_gguf *gguf, tr_gguf_source *source, tr_error *err) {
    uint64_t tensors = 0, values = 0;
    tr_status status = take_magic(source, err);
    status = status == TR_OK ? take_version(source, err) : status;
    if (status == TR_OK) {
        status = tr__gguf_take_u64(source, &tensors, "its count of tensors", err);
    }
    if (status == TR_OK) {
        status = tr__gguf_take_u64(source, &values, "its count of keys", err);
    }
    if (status == TR_OK) {
        status = tr__gguf_take_values(gguf, source, values, err);
    }
    if (status == TR_OK) {
        status = tr__gguf_take_tensors(gguf, source, tensors, err);
    }
    return status == TR_OK ? tr__gguf_place_tensors(gguf, source->at, source->size, err)
                           : status;
}

static tr_status read_header(tr_gguf *gguf, tr_error *err) {
    struct stat info;
    if (fstat(gguf->file, &info) != 0) {
        return tr_fail(err, TR_IO, "%s: cannot look at: %s", gguf->path,
                       strerror(errno));
    }
    tr_gguf_source *source = tr__calloc(1, sizeof *source);
    if (!source) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", gguf->path);
    }
    source->path = gguf->path;
    source->file = gguf->file;
    source->size = (int64_t)info.st_size;
    tr_status status = take_all(gguf, source, err);
    tr__free(source);
    return status;
}

tr_status tr__gguf_open(const char *path, tr_gguf **out, tr_error *err) {
    tr_gguf *gguf = tr__calloc(1, sizeof *gguf);
    char *copy = tr__strdup(path);
    if (!gguf || !copy) {
        tr__free(gguf);
        tr__free(copy);
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    gguf->path = copy;
    gguf->file = -1;
    tr_status status = tr__file_open(path, O_RDONLY, &gguf->file, err);
    status = status == TR_OK ? read_header(gguf, err) : status;
    if (status != TR_OK) {
        tr__gguf_close(gguf);
        return status;
    }
    *out = gguf;
    return TR_OK;
}

void tr__gguf_close(tr_gguf *gguf) {
    if (!gguf) {
        return;
    }
    for (size_t i = 0; i < gguf->value_count; i++) {
        tr__free(gguf->value[i].key);
        tr__free(gguf->value[i].data);
        tr__free(gguf->value[i].begin);
    }
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        tr__free(gguf->tensor[i].name);
    }
    tr__free(gguf->value);
    tr__free(gguf->tensor);
    tr__free(gguf->by_name);
    tr__free(gguf->path);
    if (gguf->file >= 0) {
        close(gguf->file);
    }
    tr__free(gguf);
}

bool tr__gguf_is(const char *path) {
    char found[sizeof magic] = {0};
    int file = -1;
    if (tr__file_open(path, O_RDONLY, &file, NULL) != TR_OK) {
        return false;
    }
    bool is = tr__pread(file, path, found, sizeof found, 0, NULL) == TR_OK &&
              memcmp(found, magic, sizeof magic) == 0;
    close(file);
    return is;
}

tr_status tr__gguf_refuse(const char *path, tr_error *err) {
    return tr__gguf_is(path)
               ? tr_fail(err, TR_IO,
                         "%s: is a GGUF file; make a folder of it with: tranche import "
                         "%s FOLDER",
                         path, path)
               : TR_OK;
}

// ---- what is in it

const char *tr__gguf_path(const tr_gguf *gguf) {
    return gguf->path;
}

size_t tr__gguf_tensor_count(const tr_gguf *gguf) {
    return gguf->tensor_count;
}

const tr_gguf_tensor *tr__gguf_tensor_at(const tr_gguf *gguf, size_t i) {
    return &gguf->tensor[i];
}

static int compare_name(const void *key, const void *element) {
    return strcmp(key, (*(const tr_gguf_tensor *const *)element)->name);
}

const tr_gguf_tensor *tr__gguf_find_tensor(const tr_gguf *gguf, const char *name) {
    const tr_gguf_tensor *const *found = bsearch(
        name, gguf->by_name, gguf->tensor_count, sizeof *gguf->by_name, compare_name);
    return found ? *found : NULL;
}

// ---- data

tr_status tr__gguf_read_stored(const tr_gguf *gguf, const tr_gguf_tensor *tensor,
                               int64_t first, int64_t count, void *dst, tr_error *err) {
    const tr_gguf_format *format = tensor->format;
    return tr__pread(gguf->file, gguf->path, dst,
                     (size_t)(count / format->elements * format->bytes),
                     tensor->offset + first / format->elements * format->bytes, err);
}

tr_status tr__gguf_read(const tr_gguf *gguf, const tr_gguf_tensor *tensor,
                        int64_t first, int64_t count, float *dst, tr_error *err) {
    enum { PIECE = 8192 }; // elements
    const tr_gguf_format *format = tensor->format;
    unsigned char stored[PIECE * 4];
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t now = count - done < PIECE ? count - done : PIECE;
        tr_status status =
            tr__gguf_read_stored(gguf, tensor, first + done, now, stored, err);
        if (status != TR_OK) {
            return status;
        }
        for (int64_t i = 0; i < now / format->elements; i++) {
            format->decode(stored + i * format->bytes,
                           dst + done + i * format->elements);
        }
    }
    return TR_OK;
}
