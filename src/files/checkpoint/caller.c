// The bytes in a checkpoint that are of the program that saved it.
#include "base/arguments.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "files/checkpoint/checkpoint.h"

#include <tranche/checkpoint.h>

#include <limits.h>

static tr_status check(const tr_file_record *record, const char *path, const char *data,
                       size_t bytes, tr_error *err) {
    bool same =
        (int64_t)bytes == record->bytes && tr__hash(data, bytes) == record->hash;
    return same ? TR_OK
                : tr_fail(err, TR_IO,
                          "%s: damaged checkpoint: state.json has another size or hash",
                          path);
}

static tr_status read_file(const char *folder, char **data, size_t *bytes,
                           tr_error *err) {
    char path[PATH_MAX], file[PATH_MAX];
    tr_state state;
    tr_manifest manifest;
    tr_status status = tr__path_join(path, sizeof path, folder, "state.json", err);
    if (status == TR_OK) {
        status = tr__state_read(path, &state, &manifest, err);
    }
    const tr_file_record *record =
        status == TR_OK ? tr__manifest_find(&manifest, TR_CALLER_FILE) : NULL;
    if (!record) { // nothing was given
        return status;
    }
    status = tr__path_join(file, sizeof file, folder, TR_CALLER_FILE, err);
    if (status == TR_OK) {
        status = tr__file_read(file, (size_t)record->bytes, data, bytes, err);
    }
    return status == TR_OK ? check(record, file, *data, *bytes, err) : status;
}

tr_status tr_checkpoint_bytes(const char *path, void **bytes, size_t *count,
                              tr_error *err) {
    static const char name[] = "tr_checkpoint_bytes";
    char folder[PATH_MAX], *data = NULL;
    size_t size = 0;
    tr_status status = tr__need(path, name, "path", err);
    status = status == TR_OK ? tr__need(bytes, name, "bytes", err) : status;
    status = status == TR_OK ? tr__need(count, name, "count", err) : status;
    if (status == TR_OK) {
        status = tr_checkpoint_locate(path, folder, sizeof folder, err);
    }
    if (status == TR_OK) {
        status = read_file(folder, &data, &size, err);
    }
    if (status != TR_OK) {
        tr__free(data);
        return status;
    }
    *bytes = data;
    *count = size;
    return TR_OK;
}

void tr_checkpoint_bytes_release(void *bytes) {
    tr__free(bytes);
}
