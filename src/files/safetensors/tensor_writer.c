#include "files/safetensors/tensor_writer.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

// Small enough to be still in the cache when it is written after it was hashed.
enum { PIECE_BYTES = 1 << 20 };

struct tr_tensor_writer {
    char *path;
    int file;
    size_t count;
    tr_tensor_desc *desc; // [count]
    int64_t *offset;      // [count] in the file
    size_t *order;        // [count]
    tr_stretch header;
    int64_t bytes;      // of the file
    int64_t written;    // bytes, header included
    XXH3_state_t *hash; // of the first `hashed` bytes of the file
    int64_t hashed;
};

static tr_status write_out(tr_tensor_writer *writer, const char *data, int64_t bytes,
                           int64_t offset, tr_error *err) {
    for (int64_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t now = (size_t)tr__min_i64(PIECE_BYTES, bytes - done);
        if (offset + done == writer->hashed) {
            XXH3_64bits_update(writer->hash, data + done, now);
            writer->hashed += (int64_t)now;
        }
        tr_status status = tr__pwrite(writer->file, writer->path, data + done, now,
                                      offset + done, err);
        if (status != TR_OK) {
            return status;
        }
#ifdef SYNC_FILE_RANGE_WRITE
        // A hint: the disk starts now and not at the sync.
        sync_file_range(writer->file, offset + done, (off_t)now, SYNC_FILE_RANGE_WRITE);
#endif
    }
    writer->written += bytes;
    return TR_OK;
}

static tr_status reserve(const tr_tensor_writer *writer, tr_error *err) {
    int result = 0;
    do {
        result = fallocate(writer->file, 0, 0, writer->bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        result = ftruncate(writer->file, writer->bytes);
    }
    if (result != 0) {
        return tr_fail(err, TR_IO, "%s: cannot reserve %" PRId64 " bytes: %s",
                       writer->path, writer->bytes, strerror(errno));
    }
    return TR_OK;
}

// The file is opened for writing alone: a network file system that may not read sends
// the bytes that were written, and never those around them, which another process
// writes.
static tr_status create(tr_tensor_writer *writer, const char *header, tr_error *err) {
    tr_status status = tr__file_create(writer->path, &writer->file, err);
    if (status == TR_OK) {
        status = reserve(writer, err);
    }
    return status == TR_OK ? write_out(writer, header, writer->header.bytes, 0, err)
                           : status;
}

static tr_status join(tr_tensor_writer *writer, const char *header, tr_error *err) {
    struct stat info;
    (void)header;
    writer->file = open(writer->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (writer->file < 0) {
        return tr_fail(err, TR_IO,
                       "%s: cannot open: %s (rank 0 has made it: all ranks must "
                       "share one file system)",
                       writer->path, strerror(errno));
    }
    if (fstat(writer->file, &info) != 0 || info.st_size != writer->bytes) {
        return tr_fail(err, TR_IO, "%s: %lld bytes, not the %" PRId64 " it was made of",
                       writer->path, (long long)info.st_size, writer->bytes);
    }
    return TR_OK;
}

typedef tr_status (*open_function)(tr_tensor_writer *writer, const char *header,
                                   tr_error *err);

static tr_status begin(tr_tensor_writer *writer, const tr_tensor_spec *tensors,
                       open_function open_file, tr_error *err) {
    char *header = NULL;
    size_t bytes = 0;
    tr_status status =
        tr__header_compose(tensors, writer->count, writer->offset, writer->order,
                           &header, &bytes, &writer->bytes, err);
    if (status == TR_OK) {
        writer->header = (tr_stretch){0, (int64_t)bytes, tr__hash(header, bytes)};
        status = open_file(writer, header, err);
    }
    tr__free(header);
    return status;
}

static tr_status make(const char *path, const tr_tensor_spec *tensors, size_t count,
                      open_function open_file, tr_tensor_writer **out, tr_error *err) {
    tr_status status;
    tr_tensor_writer *writer = tr__calloc(1, sizeof *writer);
    if (!writer) {
        return tr_fail(err, TR_MEMORY, "no memory to write %s", path);
    }
    writer->file = -1;
    writer->count = count;
    writer->path = tr__strdup(path);
    writer->desc = tr__calloc(count, sizeof *writer->desc);
    writer->offset = tr__calloc(count, sizeof *writer->offset);
    writer->order = tr__calloc(count, sizeof *writer->order);
    writer->hash = XXH3_createState();
    if (!writer->path || !writer->desc || !writer->offset || !writer->order ||
        !writer->hash) {
        status = tr_fail(err, TR_MEMORY, "no memory to write %s", path);
        goto failed;
    }
    XXH3_64bits_reset(writer->hash);
    for (size_t i = 0; i < count; i++) {
        writer->desc[i] = (tr_tensor_desc){tensors[i].dtype, tensors[i].shape};
    }
    status = begin(writer, tensors, open_file, err);
    if (status == TR_OK) {
        *out = writer;
        return TR_OK;
    }
failed:
    tr__tensor_writer_destroy(writer);
    return status;
}

tr_status tr__tensor_writer_create(const char *path, const tr_tensor_spec *tensors,
                                   size_t count, tr_tensor_writer **out,
                                   tr_error *err) {
    return make(path, tensors, count, create, out, err);
}

tr_status tr__tensor_writer_join(const char *path, const tr_tensor_spec *tensors,
                                 size_t count, tr_tensor_writer **out, tr_error *err) {
    return make(path, tensors, count, join, out, err);
}

size_t tr__tensor_writer_order(const tr_tensor_writer *writer, size_t i) {
    return writer->order[i];
}

tr_status tr__tensor_writer_put(tr_tensor_writer *writer, size_t index, int64_t first,
                                int64_t count, const void *data, tr_error *err) {
    int64_t bytes =
        index < writer->count ? (int64_t)tr_dtype_bytes(writer->desc[index].dtype) : 0;
    int64_t total = bytes > 0 ? tr_shape_count(writer->desc[index].shape) : 0;
    if (bytes == 0 || first < 0 || count < 0 || count > total - first) {
        return tr_fail(err, TR_INTERNAL,
                       "%s: %" PRId64 " elements from %" PRId64 " put into tensor %zu",
                       writer->path, count, first, index);
    }
    return write_out(writer, data, count * bytes, writer->offset[index] + first * bytes,
                     err);
}

tr_stretch tr__tensor_writer_header(const tr_tensor_writer *writer) {
    return writer->header;
}

int64_t tr__tensor_writer_offset(const tr_tensor_writer *writer, size_t index) {
    return writer->offset[index];
}

int64_t tr__tensor_writer_bytes(const tr_tensor_writer *writer) {
    return writer->bytes;
}

tr_status tr__tensor_writer_sync(tr_tensor_writer *writer, tr_error *err) {
    return fsync(writer->file) == 0 ? TR_OK
                                    : tr_fail(err, TR_IO, "%s: cannot sync: %s",
                                              writer->path, strerror(errno));
}

tr_status tr__tensor_writer_finish(tr_tensor_writer *writer, int64_t *bytes,
                                   uint64_t *hash, tr_error *err) {
    if (writer->written != writer->bytes) {
        return tr_fail(err, TR_INTERNAL, "%s: %" PRId64 " of %" PRId64 " bytes written",
                       writer->path, writer->written, writer->bytes);
    }
    tr_status status = tr__tensor_writer_sync(writer, err);
    if (status != TR_OK) {
        return status;
    }
    *bytes = writer->bytes;
    if (writer->hashed == writer->bytes) {
        *hash = XXH3_64bits_digest(writer->hash);
        return TR_OK;
    }
    return tr__hash_file(writer->path, hash, err);
}

void tr__tensor_writer_destroy(tr_tensor_writer *writer) {
    if (!writer) {
        return;
    }
    if (writer->file >= 0) {
        close(writer->file);
    }
    XXH3_freeState(writer->hash);
    tr__free(writer->order);
    tr__free(writer->offset);
    tr__free(writer->desc);
    tr__free(writer->path);
    tr__free(writer);
}
