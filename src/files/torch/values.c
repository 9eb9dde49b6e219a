#include "files/torch/inside.h"

#include "base/memory.h"

#include <string.h>

// A byte of a pickle may make a value: what is in memory has a limit, too.
enum { VALUES_MOST = 1 << 20 };

tr_status tr__torch_new(tr_torch_file *file, tr_torch_kind kind, tr_torch_value **out,
                        tr_error *err) {
    if (file->count == VALUES_MOST) {
        return tr_fail(err, TR_IO, "%s: its pickle has more than %d values",
                       file->zip.path, VALUES_MOST);
    }
    tr_torch_value *value = tr__grow((void **)&file->value, &file->capacity,
                                     file->count + 1, sizeof(tr_torch_value *))
                                ? tr__calloc(1, sizeof *value)
                                : NULL;
    if (!value) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
    }
    value->kind = kind;
    file->value[file->count++] = value;
    *out = value;
    return TR_OK;
}

tr_status tr__torch_new_text(tr_torch_file *file, const void *text, size_t bytes,
                             tr_torch_value **out, tr_error *err) {
    bool whole = !memchr(text, '\0', bytes);
    tr_status status =
        tr__torch_new(file, whole ? TR_TORCH_TEXT : TR_TORCH_UNKNOWN, out, err);
    if (status != TR_OK || !whole) {
        return status;
    }
    (*out)->text = tr__calloc(bytes + 1, 1);
    if (!(*out)->text) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
    }
    memcpy((*out)->text, text, bytes);
    return TR_OK;
}

tr_status tr__torch_append(tr_torch_value *to, tr_torch_value *item, tr_error *err) {
    if (!tr__grow((void **)&to->item, &to->capacity, to->count + 1,
                  sizeof(tr_torch_value *))) {
        return tr_fail(err, TR_MEMORY, "no memory for a list of a file of PyTorch's");
    }
    to->item[to->count++] = item;
    return TR_OK;
}

const tr_torch_value *tr__torch_as(const tr_torch_value *value, tr_torch_kind kind) {
    return value && value->kind == kind ? value : NULL;
}

const tr_torch_value *tr__torch_at(const tr_torch_value *list, size_t i) {
    return tr__torch_as(list, TR_TORCH_LIST) && i < list->count ? list->item[i] : NULL;
}

// A key that is set again has its last value.
const tr_torch_value *tr__torch_get(const tr_torch_value *dict, const char *key) {
    size_t i = tr__torch_as(dict, TR_TORCH_DICT) ? dict->count : 0;
    for (; i >= 2; i -= 2) {
        const tr_torch_value *name = dict->item[i - 2];
        if (name->kind == TR_TORCH_TEXT && strcmp(name->text, key) == 0) {
            return dict->item[i - 1];
        }
    }
    return NULL;
}

const tr_torch_value *tr__torch_get_at(const tr_torch_value *dict, int64_t key) {
    size_t i = tr__torch_as(dict, TR_TORCH_DICT) ? dict->count : 0;
    for (; i >= 2; i -= 2) {
        const tr_torch_value *name = dict->item[i - 2];
        if (name->kind == TR_TORCH_INTEGER && name->integer == key) {
            return dict->item[i - 1];
        }
    }
    return NULL;
}
