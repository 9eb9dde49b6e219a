// What is in an open set.
#include "files/safetensors/inside.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tr__tensor_by_name(const void *left, const void *right) {
    const tr_stored_tensor *a = left, *b = right;
    return strcmp(a->name, b->name);
}

tr_status tr__tensor_set_sort(tr_tensor_set *set, tr_error *err) {
    if (set->count > 0) {
        qsort(set->tensors, set->count, sizeof *set->tensors, tr__tensor_by_name);
    }
    for (size_t i = 1; i < set->count; i++) {
        const tr_stored_tensor *a = &set->tensors[i - 1], *b = &set->tensors[i];
        if (strcmp(a->name, b->name) == 0) {
            return tr_fail(err, TR_IO, "%s: tensor '%.200s' is also in %s",
                           set->files[b->file].path, b->name, set->files[a->file].path);
        }
    }
    return TR_OK;
}

void tr__tensor_set_close(tr_tensor_set *set) {
    if (!set) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        tr__free((char *)set->tensors[i].name);
    }
    for (size_t i = 0; i < set->file_count; i++) {
        close(set->files[i].descriptor);
        tr__free(set->files[i].path);
    }
    tr__tensor_bits_release(set);
    tr__free(set->pieced);
    tr__free(set->pieces);
    json_decref(set->metadata);
    tr__free(set->tensors);
    tr__free(set->files);
    tr__free(set);
}

size_t tr__tensor_set_count(const tr_tensor_set *set) {
    return set->count;
}

const tr_stored_tensor *tr__tensor_set_at(const tr_tensor_set *set, size_t i) {
    return i < set->count ? &set->tensors[i] : NULL;
}

const tr_stored_tensor *tr__tensor_set_find(const tr_tensor_set *set,
                                            const char *name) {
    tr_stored_tensor key = {.name = name};
    if (set->count == 0) {
        return NULL;
    }
    return bsearch(&key, set->tensors, set->count, sizeof key, tr__tensor_by_name);
}

size_t tr__tensor_set_files(const tr_tensor_set *set) {
    return set->file_count;
}

const char *tr__tensor_set_path(const tr_tensor_set *set, int file) {
    return set->files[file].path;
}

const json_t *tr__tensor_set_metadata(const tr_tensor_set *set) {
    return set->metadata;
}

int tr__tensor_set_descriptor(const tr_tensor_set *set, int file) {
    return set->files[file].descriptor;
}
