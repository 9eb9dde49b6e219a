#include "files/gguf/writer.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 3, ALIGNMENT = 32, PIECE_BYTES = 1 << 16 };

typedef struct text {
    unsigned char *bytes;
    size_t used, capacity;
} text;

struct tr_gguf_writer {
    text values;
    uint64_t value_count;
    bool no_memory;
    tr_gguf_tensor *tensor; // offsets from where the data begin
    size_t tensor_count, tensor_capacity;
    int64_t data, end; // where the data begin; bytes of them
    char path[PATH_MAX], partial[PATH_MAX];
    int file;
    size_t next; // the tensor that is written, and its elements that are there
    int64_t written;
};

tr_gguf_writer *tr__gguf_writer_create(void) {
    tr_gguf_writer *writer = tr__calloc(1, sizeof *writer);
    if (writer) {
        writer->file = -1;
    }
    return writer;
}

void tr__gguf_writer_destroy(tr_gguf_writer *writer) {
    if (!writer) {
        return;
    }
    if (writer->file >= 0) {
        close(writer->file);
        unlink(writer->partial);
    }
    for (size_t i = 0; i < writer->tensor_count; i++) {
        tr__free(writer->tensor[i].name);
    }
    tr__free(writer->tensor);
    tr__free(writer->values.bytes);
    tr__free(writer);
}

// ---- metadata

static bool append(text *to, const void *bytes, size_t count) {
    if (!tr__grow((void **)&to->bytes, &to->capacity, to->used + count, 1)) {
        return false;
    }
    if (count > 0) {
        memcpy(to->bytes + to->used, bytes, count);
    }
    to->used += count;
    return true;
}

static bool append_u32(text *to, uint32_t value) {
    return append(to, &value, sizeof value);
}

static bool append_u64(text *to, uint64_t value) {
    return append(to, &value, sizeof value);
}

static bool append_text(text *to, const char *bytes, size_t count) {
    return append_u64(to, count) && append(to, bytes, count);
}

static void put_key(tr_gguf_writer *writer, const char *key, tr_gguf_kind kind) {
    bool good = append_text(&writer->values, key, strlen(key)) &&
                append_u32(&writer->values, (uint32_t)kind);
    writer->no_memory = writer->no_memory || !good;
    writer->value_count++;
}

static void put(tr_gguf_writer *writer, const void *bytes, size_t count) {
    writer->no_memory = !append(&writer->values, bytes, count) || writer->no_memory;
}

void tr__gguf_put_u32(tr_gguf_writer *writer, const char *key, uint32_t value) {
    put_key(writer, key, TR_GGUF_U32);
    put(writer, &value, sizeof value);
}

void tr__gguf_put_float(tr_gguf_writer *writer, const char *key, float value) {
    put_key(writer, key, TR_GGUF_FLOAT);
    put(writer, &value, sizeof value);
}

void tr__gguf_put_bool(tr_gguf_writer *writer, const char *key, bool value) {
    unsigned char byte = value;
    put_key(writer, key, TR_GGUF_BOOL);
    put(writer, &byte, sizeof byte);
}

void tr__gguf_put_text(tr_gguf_writer *writer, const char *key, const char *bytes,
                       size_t count) {
    put_key(writer, key, TR_GGUF_TEXT);
    tr__gguf_add_text(writer, bytes, count);
}

void tr__gguf_put_list(tr_gguf_writer *writer, const char *key, tr_gguf_kind kind,
                       size_t count) {
    put_key(writer, key, TR_GGUF_ARRAY);
    bool good = append_u32(&writer->values, (uint32_t)kind) &&
                append_u64(&writer->values, count);
    writer->no_memory = writer->no_memory || !good;
}

void tr__gguf_add_text(tr_gguf_writer *writer, const char *bytes, size_t count) {
    writer->no_memory =
        !append_text(&writer->values, bytes, count) || writer->no_memory;
}

void tr__gguf_add_i32(tr_gguf_writer *writer, int32_t value) {
    put(writer, &value, sizeof value);
}

void tr__gguf_add_float(tr_gguf_writer *writer, float value) {
    put(writer, &value, sizeof value);
}

// ---- tensors

tr_status tr__gguf_add_tensor(tr_gguf_writer *writer, const char *name,
                              const tr_gguf_format *format, int rank,
                              const int64_t *dim, tr_error *err) {
    tr_gguf_tensor tensor = {.format = format, .rank = rank, .count = 1};
    for (int i = 0; i < rank; i++) {
        tensor.dim[i] = dim[i];
        tensor.count *= dim[i];
    }
    tensor.bytes = tensor.count / format->elements * format->bytes;
    tensor.offset = writer->end;
    tensor.name = tr__strdup(name);
    if (!tensor.name || !tr__grow((void **)&writer->tensor, &writer->tensor_capacity,
                                  writer->tensor_count + 1, sizeof *writer->tensor)) {
        tr__free(tensor.name);
        return tr_fail(err, TR_MEMORY, "no memory for the list of tensors");
    }
    writer->tensor[writer->tensor_count++] = tensor;
    writer->end = tr__round_up(writer->end + tensor.bytes, ALIGNMENT);
    return TR_OK;
}

static bool append_tensor(text *to, const tr_gguf_tensor *tensor) {
    bool good = append_text(to, tensor->name, strlen(tensor->name)) &&
                append_u32(to, (uint32_t)tensor->rank);
    for (int i = 0; i < tensor->rank && good; i++) {
        good = append_u64(to, (uint64_t)tensor->dim[i]);
    }
    return good && append_u32(to, (uint32_t)tensor->format->number) &&
           append_u64(to, (uint64_t)tensor->offset);
}

static bool compose(const tr_gguf_writer *writer, text *to) {
    bool good = append(to, "GGUF", 4) && append_u32(to, VERSION) &&
                append_u64(to, writer->tensor_count) &&
                append_u64(to, writer->value_count) &&
                append(to, writer->values.bytes, writer->values.used);
    for (size_t i = 0; i < writer->tensor_count && good; i++) {
        good = append_tensor(to, &writer->tensor[i]);
    }
    return good && !writer->no_memory;
}

// ---- the file

static tr_status fail(const tr_gguf_writer *writer, const char *what, tr_error *err) {
    return tr_fail(err, TR_IO, "%s: cannot %s: %s", writer->partial, what,
                   strerror(errno));
}

// The whole size at once, so that a full disk is found before anything is written.
static tr_status reserve(const tr_gguf_writer *writer, int64_t bytes, tr_error *err) {
    int result = 0;
    do {
        result = fallocate(writer->file, 0, 0, bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        result = ftruncate(writer->file, bytes);
    }
    return result == 0 ? TR_OK : fail(writer, "reserve its size", err);
}

static tr_status name_files(tr_gguf_writer *writer, const char *path, tr_error *err) {
    int used = snprintf(writer->path, sizeof writer->path, "%s", path);
    int more = snprintf(writer->partial, sizeof writer->partial, "%s.partial", path);
    if (used >= PATH_MAX || more >= PATH_MAX) {
        return tr_fail(err, TR_IO, "%.300s: path too long", path);
    }
    return tr__file_check_replaceable(path, err);
}

tr_status tr__gguf_writer_open(tr_gguf_writer *writer, const char *path,
                               tr_error *err) {
    text header = {0};
    tr_status status = name_files(writer, path, err);
    if (status == TR_OK && !compose(writer, &header)) {
        status = tr_fail(err, TR_MEMORY, "%s: no memory for its metadata", path);
    }
    if (status == TR_OK) {
        writer->data = tr__round_up((int64_t)header.used, ALIGNMENT);
        status = tr__file_create(writer->partial, &writer->file, err);
    }
    if (status == TR_OK) {
        status = reserve(writer, writer->data + writer->end, err);
    }
    if (status == TR_OK) {
        status = tr__pwrite(writer->file, writer->partial, header.bytes, header.used, 0,
                            err);
    }
    tr__free(header.bytes);
    return status;
}

static tr_status write_blocks(tr_gguf_writer *writer, const tr_gguf_tensor *tensor,
                              const float *values, int64_t count, tr_error *err) {
    const tr_gguf_format *format = tensor->format;
    unsigned char stored[PIECE_BYTES];
    int64_t blocks = count / format->elements;
    for (int64_t i = 0; i < blocks; i++) {
        if (!format->encode(values + i * format->elements,
                            stored + i * format->bytes)) {
            return tr_fail(err, TR_IO,
                           "%s: tensor %s has a value that %s cannot hold: it is not "
                           "finite, or too large",
                           writer->path, tensor->name, format->name);
        }
    }
    int64_t offset = writer->data + tensor->offset +
                     writer->written / format->elements * format->bytes;
    return tr__pwrite(writer->file, writer->partial, stored,
                      (size_t)(blocks * format->bytes), offset, err);
}

tr_status tr__gguf_write(tr_gguf_writer *writer, const float *values, int64_t count,
                         tr_error *err) {
    const tr_gguf_tensor *tensor = &writer->tensor[writer->next];
    const tr_gguf_format *format = tensor->format;
    int64_t piece = PIECE_BYTES / format->bytes * format->elements;
    if (writer->next >= writer->tensor_count ||
        count > tensor->count - writer->written || count % format->elements != 0) {
        return tr_fail(err, TR_INTERNAL, "%s: no tensor has these elements",
                       writer->path);
    }
    for (int64_t done = 0; done < count; done += piece) {
        int64_t now = tr__min_i64(piece, count - done);
        tr_status status = write_blocks(writer, tensor, values + done, now, err);
        if (status != TR_OK) {
            return status;
        }
        writer->written += now;
    }
    if (writer->written == tensor->count) {
        writer->next++;
        writer->written = 0;
    }
    return TR_OK;
}

tr_status tr__gguf_writer_finish(tr_gguf_writer *writer, tr_error *err) {
    if (writer->next != writer->tensor_count) {
        return tr_fail(err, TR_INTERNAL, "%s: %zu of %zu tensors written", writer->path,
                       writer->next, writer->tensor_count);
    }
    if (fsync(writer->file) != 0) {
        return fail(writer, "sync", err);
    }
    if (rename(writer->partial, writer->path) != 0) {
        return fail(writer, "rename", err);
    }
    close(writer->file);
    writer->file = -1;
    return TR_OK;
}
