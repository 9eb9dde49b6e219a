#include "files/safetensors/tensor_set.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "files/safetensors/adapter.h"
#include "files/safetensors/header.h"
#include "files/safetensors/inside.h"
#include "files/safetensors/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *stem, *name, *index;
} kinds[] = {
    [TR_FILES_MODEL] = {"model", "model.safetensors", "model.safetensors.index.json"},
    [TR_FILES_OPTIMIZER] = {"optimizer", "optimizer.safetensors",
                            "optimizer.safetensors.index.json"},
    [TR_FILES_ADAPTER] = {"adapter_model", "adapter_model.safetensors",
                          "adapter_model.safetensors.index.json"},
};
enum { INDEX_MAX = 32 << 20, HEADER_OF_ANY = 1 << 20, HEADER_SHARE = 64 };

const char *tr__files_stem(tr_tensor_files files) {
    return kinds[files].stem;
}

const char *tr__files_name(tr_tensor_files files) {
    return kinds[files].name;
}

const char *tr__files_index(tr_tensor_files files) {
    return kinds[files].index;
}

// The descriptor of a regular file of at least a header's length, its size in `*bytes`.
static tr_status open_file(const char *path, int *descriptor, int64_t *bytes,
                           tr_error *err) {
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return tr_fail(err, TR_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    tr_status status = TR_OK;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = tr_fail(err, TR_IO, "%s: not a regular file", path);
    } else if (info.st_size < TR_HEADER_LENGTH_BYTES) {
        status = tr_fail(err, TR_IO,
                         "%s: not a safetensors file: %lld bytes, less than its "
                         "length field",
                         path, (long long)info.st_size);
    }
    if (status != TR_OK) {
        close(file);
        return status;
    }
    *descriptor = file;
    *bytes = info.st_size;
    return TR_OK;
}

// Reads the header of an open file; offsets in `header` then count from the file's
// start.
static tr_status read_header(const char *path, int file, int64_t file_bytes,
                             tr_tensor_header *header, tr_error *err) {
    uint64_t length;
    tr_status status = tr__pread(file, path, &length, sizeof length, 0, err);
    if (status != TR_OK) {
        return status;
    }
    int64_t rest = file_bytes - TR_HEADER_LENGTH_BYTES;
    if (length > TR_HEADER_MAX || length > (uint64_t)rest) {
        return tr_fail(err, TR_IO,
                       "%s: not a safetensors file, or cut short: a header of %" PRIu64
                       " bytes in a file of %" PRId64 " (at most %d)",
                       path, length, file_bytes, TR_HEADER_MAX);
    }
    int64_t data = rest - (int64_t)length;
    if ((int64_t)length >
        HEADER_OF_ANY + HEADER_SHARE * tr__min_i64(data, TR_HEADER_MAX)) {
        return tr_fail(err, TR_IO,
                       "%s: not a usable safetensors file: a header of %" PRIu64
                       " bytes for %" PRId64 " bytes of tensors",
                       path, length, data);
    }
    char *text = tr__calloc(1, length + 1);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory for the header of %s", path);
    }
    status = tr__pread(file, path, text, length, TR_HEADER_LENGTH_BYTES, err);
    if (status == TR_OK) {
        status =
            tr__header_parse(path, text, length, rest - (int64_t)length, header, err);
    }
    tr__free(text);
    for (size_t i = 0; status == TR_OK && i < header->count; i++) {
        header->tensors[i].offset += TR_HEADER_LENGTH_BYTES + (int64_t)length;
    }
    return status;
}

// Moves a header's tensors into the set.
static tr_status take_tensors(tr_tensor_set *set, tr_tensor_header *header,
                              tr_error *err) {
    if (!tr__grow((void **)&set->tensors, &set->capacity, set->count + header->count,
                  sizeof *set->tensors)) {
        return tr_fail(err, TR_MEMORY, "no memory for the list of tensors");
    }
    for (size_t i = 0; i < header->count; i++) {
        tr_stored_tensor *tensor = &set->tensors[set->count++];
        *tensor = header->tensors[i];
        tensor->file = (int)set->file_count - 1;
    }
    header->count = 0; // the names have a new owner
    if (set->file_count == 1) {
        set->metadata = json_incref(header->metadata);
    }
    return TR_OK;
}

static tr_status add_file(tr_tensor_set *set, const char *path, tr_error *err) {
    tr_tensor_header header = {0};
    int64_t bytes = 0;
    if (!tr__grow((void **)&set->files, &set->file_capacity, set->file_count + 1,
                  sizeof *set->files)) {
        return tr_fail(err, TR_MEMORY, "no memory for the list of files");
    }
    tr_set_file *file = &set->files[set->file_count];
    tr_status status = open_file(path, &file->descriptor, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    file->path = tr__strdup(path);
    set->file_count++;
    if (!file->path) {
        return tr_fail(err, TR_MEMORY, "no memory for the list of files");
    }
    status = read_header(path, file->descriptor, bytes, &header, err);
    if (status == TR_OK) {
        status = take_tensors(set, &header, err);
    }
    tr__header_release(&header);
    return status;
}

// Opens a file that the map names, unless it is among those `seen`.
static tr_status add_shard(tr_tensor_set *set, const char *folder, const char *file,
                           json_t *seen, tr_error *err) {
    char path[PATH_MAX];
    if (json_object_get(seen, file)) {
        return TR_OK;
    }
    if (json_object_set_new(seen, file, json_true()) != 0) {
        return tr_fail(err, TR_MEMORY, "no memory for the list of files");
    }
    tr_status status = tr__path_join(path, sizeof path, folder, file, err);
    return status == TR_OK ? add_file(set, path, err) : status;
}

// Opens each file that the map names once. A name with a slash could lead anywhere.
static tr_status add_shards(tr_tensor_set *set, const char *folder, const char *index,
                            const json_t *map, json_t *seen, tr_error *err) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)map, name, value) {
        const char *file = json_string_value(value);
        if (!file || !*file || strchr(file, '/')) {
            return tr_fail(err, TR_IO, "%s: '%.200s' is not in a file of this folder",
                           index, name);
        }
        tr_status status = add_shard(set, folder, file, seen, err);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

static tr_status check_map(const tr_tensor_set *set, const char *index,
                           const json_t *map, tr_error *err) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)map, name, value) {
        const tr_stored_tensor *tensor = tr__tensor_set_find(set, name);
        const char *path = tensor ? set->files[tensor->file].path : "";
        const char *slash = strrchr(path, '/');
        if (!tensor ||
            strcmp(slash ? slash + 1 : path, json_string_value(value)) != 0) {
            return tr_fail(err, TR_IO, "%s: tensor '%.200s' is not in %.200s", index,
                           name, json_string_value(value));
        }
    }
    return TR_OK;
}

static tr_status open_index(tr_tensor_set *set, const char *folder, const char *index,
                            tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    json_t *root = NULL, *seen = json_object();
    tr_status status = tr__file_read(index, INDEX_MAX, &text, &bytes, err);
    if (status == TR_OK) {
        status = tr__json_parse(index, text, bytes, &root, err);
    }
    if (status != TR_OK) {
        goto cleanup;
    }
    const json_t *map = json_object_get(root, "weight_map");
    if (!json_is_object(map) || json_object_size(map) == 0) {
        status = tr_fail(err, TR_IO, "%s: no \"weight_map\" with tensors", index);
        goto cleanup;
    }
    status = add_shards(set, folder, index, map, seen, err);
    if (status == TR_OK) {
        status = tr__tensor_set_sort(set, err);
    }
    if (status == TR_OK) {
        status = check_map(set, index, map, err);
    }
cleanup:
    json_decref(seen);
    json_decref(root);
    tr__free(text);
    return status;
}

static bool in_folder(char *dst, size_t size, const char *folder, const char *name) {
    return tr__path_join(dst, size, folder, name, NULL) == TR_OK &&
           access(dst, F_OK) == 0;
}

bool tr__tensor_folder_has(const char *path, tr_tensor_files files) {
    char inner[PATH_MAX];
    return in_folder(inner, sizeof inner, path, tr__files_name(files)) ||
           in_folder(inner, sizeof inner, path, tr__files_index(files));
}

bool tr__tensor_folder(const char *path) {
    return tr__tensor_folder_has(path, TR_FILES_MODEL) ||
           tr__tensor_folder_has(path, TR_FILES_ADAPTER);
}

static tr_status open_folder(tr_tensor_set *set, const char *folder,
                             tr_tensor_files files, tr_error *err) {
    char path[PATH_MAX];
    const char *name = tr__files_name(files), *index = tr__files_index(files);
    if (in_folder(path, sizeof path, folder, name)) {
        return add_file(set, path, err);
    }
    if (in_folder(path, sizeof path, folder, index)) {
        return open_index(set, folder, path, err);
    }
    if (files == TR_FILES_MODEL &&
        in_folder(path, sizeof path, folder, "pytorch_model.bin")) {
        return tr_fail(err, TR_IO,
                       "%s: only pytorch_model.bin is there; save the model again "
                       "with safe_serialization=True to have model.safetensors",
                       folder);
    }
    return tr_fail(err, TR_IO, "%s: neither %s nor %s is there", folder, name, index);
}

// ---- adapters

// Takes PEFT's prefix off the names of the files from `first` on.
static tr_status strip_names(tr_tensor_set *set, int first, tr_error *err) {
    static const size_t length = sizeof TR_ADAPTER_PREFIX - 1;
    for (size_t i = 0; i < set->count; i++) {
        char *name = (char *)set->tensors[i].name;
        if (set->tensors[i].file < first) {
            continue;
        }
        if (strncmp(name, TR_ADAPTER_PREFIX, length) != 0 || !name[length]) {
            return tr_fail(err, TR_IO,
                           "%s: tensor '%.200s' is none of an adapter: its name does "
                           "not begin with " TR_ADAPTER_PREFIX,
                           set->files[set->tensors[i].file].path, name);
        }
        memmove(name, name + length, strlen(name + length) + 1);
    }
    return TR_OK;
}

// By name; of two of one name the one of the later file is first.
static int by_name_and_file(const void *left, const void *right) {
    const tr_stored_tensor *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->file < b->file) - (a->file > b->file);
}

// What the adapter has in the base's place (PEFT's modules_to_save) hides that.
static void drop_hidden(tr_tensor_set *set, int first) {
    size_t kept = 0;
    if (set->count > 0) {
        qsort(set->tensors, set->count, sizeof *set->tensors, by_name_and_file);
    }
    for (size_t i = 0; i < set->count; i++) {
        const tr_stored_tensor *last = kept > 0 ? &set->tensors[kept - 1] : NULL;
        bool hidden = last && last->file >= first && set->tensors[i].file < first &&
                      strcmp(last->name, set->tensors[i].name) == 0;
        if (hidden) {
            tr__free((char *)set->tensors[i].name);
        } else {
            set->tensors[kept++] = set->tensors[i];
        }
    }
    set->count = kept;
}

static tr_status open_adapter(tr_tensor_set *set, const char *base, const char *folder,
                              tr_error *err) {
    tr_status status = base ? open_folder(set, base, TR_FILES_MODEL, err) : TR_OK;
    int first = (int)set->file_count;
    status = status == TR_OK ? open_folder(set, folder, TR_FILES_ADAPTER, err) : status;
    status = status == TR_OK ? strip_names(set, first, err) : status;
    if (status == TR_OK) {
        drop_hidden(set, first);
    }
    return status;
}

static tr_status open_over_own_base(tr_tensor_set *set, const char *folder,
                                    tr_error *err) {
    char base[PATH_MAX];
    tr_status status = tr__adapter_base(folder, base, err);
    return status == TR_OK ? open_adapter(set, base, folder, err) : status;
}

// ---- opening

static tr_status open_path(tr_tensor_set *set, const char *path, tr_tensor_files files,
                           tr_error *err) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return tr_fail(err, TR_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    bool whole = files != TR_FILES_MODEL || !S_ISDIR(info.st_mode) ||
                 tr__tensor_folder_has(path, TR_FILES_MODEL) ||
                 !tr__tensor_folder_has(path, TR_FILES_ADAPTER);
    tr_status status = !whole                      ? open_over_own_base(set, path, err)
                       : files == TR_FILES_ADAPTER ? open_adapter(set, NULL, path, err)
                       : S_ISDIR(info.st_mode)     ? open_folder(set, path, files, err)
                                                   : add_file(set, path, err);
    status = status == TR_OK ? tr__tensor_set_sort(set, err) : status;
    return status == TR_OK ? tr__tensors_join(set, err) : status;
}

// Hands the set over, or closes it.
static tr_status hand_over(tr_tensor_set *set, tr_status status, tr_tensor_set **out) {
    if (status != TR_OK) {
        tr__tensor_set_close(set);
        return status;
    }
    *out = set;
    return TR_OK;
}

tr_status tr__tensor_set_open_files(const char *folder, tr_tensor_files files,
                                    tr_tensor_set **out, tr_error *err) {
    tr_tensor_set *set = tr__calloc(1, sizeof *set);
    tr_status status = set ? open_path(set, folder, files, err)
                           : tr_fail(err, TR_MEMORY, "no memory to open %s", folder);
    return hand_over(set, status, out);
}

tr_status tr__tensor_set_open_over(const char *base, const char *folder,
                                   tr_tensor_set **out, tr_error *err) {
    if (!base) {
        return tr__tensor_set_open(folder, out, err);
    }
    tr_tensor_set *set = tr__calloc(1, sizeof *set);
    tr_status status = set ? open_adapter(set, base, folder, err)
                           : tr_fail(err, TR_MEMORY, "no memory to open %s", folder);
    status = status == TR_OK ? tr__tensor_set_sort(set, err) : status;
    status = status == TR_OK ? tr__tensors_join(set, err) : status;
    return hand_over(set, status, out);
}

tr_status tr__tensor_set_open(const char *path, tr_tensor_set **out, tr_error *err) {
    return tr__tensor_set_open_files(path, TR_FILES_MODEL, out, err);
}
