// What a GGUF file says of its tensors, and where their data lie.
#include "files/gguf/inside.h"

#include "base/checked.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 1024, ALIGNMENT = 32, ALIGNMENT_MAX = 1 << 20 };

static tr_status fail(const char *path, const tr_gguf_tensor *tensor,
                      const char *problem, tr_error *err) {
    char shown[TR_GGUF_SHOWN_MAX];
    return tr_fail(err, TR_IO, "%s: tensor %s %s", path,
                   tr__gguf_shown(shown, tensor->name), problem);
}

static tr_status take_name(tr_gguf_source *source, tr_gguf_tensor *tensor,
                           tr_error *err) {
    size_t bytes = 0;
    tr_status status =
        tr__gguf_take_text(source, &tensor->name, &bytes, "a tensor's name", err);
    if (status == TR_OK &&
        (bytes == 0 || bytes > NAME_MAX_BYTES || strlen(tensor->name) != bytes)) {
        status = tr_fail(err, TR_IO,
                         "%s: a tensor's name is empty, too long, or no text: the "
                         "file is damaged",
                         source->path);
    }
    return status;
}

static tr_status take_shape(tr_gguf_source *source, tr_gguf_tensor *tensor,
                            tr_error *err) {
    uint32_t rank = 0;
    tr_status status = tr__gguf_take_u32(source, &rank, tensor->name, err);
    if (status == TR_OK && rank > TR_RANK_MAX) {
        status = fail(source->path, tensor, "has more than 4 dimensions", err);
    }
    tensor->count = 1;
    for (int i = 0; i < TR_RANK_MAX && status == TR_OK; i++) {
        uint64_t dim = 1;
        if (i < (int)rank) {
            status = tr__gguf_take_u64(source, &dim, tensor->name, err);
        }
        tensor->dim[i] = (int64_t)dim;
        if (status == TR_OK &&
            (dim == 0 || dim > INT64_MAX ||
             !tr__mul_i64(tensor->count, (int64_t)dim, &tensor->count))) {
            status = fail(source->path, tensor, "has dimensions that cannot be", err);
        }
    }
    tensor->rank = (int)rank;
    return status;
}

static tr_status fail_format(const char *path, const tr_gguf_tensor *tensor,
                             uint32_t number, tr_error *err) {
    const char *name = tr__gguf_format_name(number);
    char shown[TR_GGUF_SHOWN_MAX], names[128];
    return tr_fail(err, TR_IO,
                   "%s: tensor %s is stored as %s (type %u), which is not supported; "
                   "supported are %s",
                   path, tr__gguf_shown(shown, tensor->name),
                   name ? name : "something unknown", (unsigned)number,
                   tr__gguf_format_names(names, sizeof names));
}

static tr_status take_format(tr_gguf_source *source, tr_gguf_tensor *tensor,
                             tr_error *err) {
    uint32_t number = 0;
    tr_status status = tr__gguf_take_u32(source, &number, tensor->name, err);
    if (status != TR_OK) {
        return status;
    }
    tensor->format = tr__gguf_format(number);
    if (!tensor->format) {
        return fail_format(source->path, tensor, number, err);
    }
    if (tensor->dim[0] % tensor->format->elements != 0) {
        return fail(source->path, tensor,
                    "has rows that are no whole number of the blocks of its type", err);
    }
    return tr__mul_i64(tensor->count / tensor->format->elements, tensor->format->bytes,
                       &tensor->bytes)
               ? TR_OK
               : fail(source->path, tensor, "has dimensions that cannot be", err);
}

static tr_status take_offset(tr_gguf_source *source, tr_gguf_tensor *tensor,
                             tr_error *err) {
    uint64_t offset = 0;
    tr_status status = tr__gguf_take_u64(source, &offset, tensor->name, err);
    if (status == TR_OK && offset > (uint64_t)source->size) {
        status = fail(source->path, tensor, "begins behind the end of the file", err);
    }
    tensor->offset = (int64_t)offset;
    return status;
}

static tr_status take_tensor(tr_gguf_source *source, tr_gguf_tensor *tensor,
                             tr_error *err) {
    tr_status status = take_name(source, tensor, err);
    status = status == TR_OK ? take_shape(source, tensor, err) : status;
    status = status == TR_OK ? take_format(source, tensor, err) : status;
    return status == TR_OK ? take_offset(source, tensor, err) : status;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const tr_gguf_tensor *const *)a)->name,
                  (*(const tr_gguf_tensor *const *)b)->name);
}

static tr_status sort_names(tr_gguf *gguf, tr_error *err) {
    size_t count = gguf->tensor_count;
    gguf->by_name = tr__calloc(count + 1, sizeof *gguf->by_name);
    if (!gguf->by_name) {
        return tr_fail(err, TR_MEMORY, "%s: no memory for its tensors", gguf->path);
    }
    for (size_t i = 0; i < count; i++) {
        gguf->by_name[i] = &gguf->tensor[i];
    }
    qsort(gguf->by_name, count, sizeof(const tr_gguf_tensor *), by_name);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(gguf->by_name[i - 1]->name, gguf->by_name[i]->name) == 0) {
            return fail(gguf->path, gguf->by_name[i], "is there twice", err);
        }
    }
    return TR_OK;
}

tr_status tr__gguf_take_tensors(tr_gguf *gguf, tr_gguf_source *source, uint64_t count,
                                tr_error *err) {
    for (uint64_t i = 0; i < count; i++) {
        if (!tr__grow((void **)&gguf->tensor, &gguf->tensor_capacity,
                      gguf->tensor_count + 1, sizeof *gguf->tensor)) {
            return tr_fail(err, TR_MEMORY, "%s: no memory for its tensors", gguf->path);
        }
        tr_gguf_tensor *tensor = &gguf->tensor[gguf->tensor_count++];
        *tensor = (tr_gguf_tensor){0};
        tr_status status = take_tensor(source, tensor, err);
        if (status != TR_OK) {
            return status;
        }
    }
    return sort_names(gguf, err);
}

// ---- where they lie

static tr_status read_alignment(const tr_gguf *gguf, int64_t *out, tr_error *err) {
    const tr_gguf_value *value = tr__gguf_find(gguf, "general.alignment");
    *out = ALIGNMENT;
    if (value && (value->array || !tr__gguf_integer(value, 0, out) || *out < 1 ||
                  *out > ALIGNMENT_MAX || (*out & (*out - 1)) != 0)) {
        return tr_fail(err, TR_IO,
                       "%s: general.alignment must be a power of two of at most %d",
                       gguf->path, ALIGNMENT_MAX);
    }
    return TR_OK;
}

static int by_offset(const void *a, const void *b) {
    const tr_gguf_tensor *x = *(const tr_gguf_tensor *const *)a;
    const tr_gguf_tensor *y = *(const tr_gguf_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static tr_status check_apart(const tr_gguf *gguf, tr_error *err) {
    size_t count = gguf->tensor_count;
    const tr_gguf_tensor **sorted = tr__calloc(count + 1, sizeof *sorted);
    tr_status status = TR_OK;
    if (!sorted) {
        return tr_fail(err, TR_MEMORY, "%s: no memory for its tensors", gguf->path);
    }
    memcpy(sorted, gguf->by_name, count * sizeof *sorted);
    qsort(sorted, count, sizeof(const tr_gguf_tensor *), by_offset);
    for (size_t i = 1; i < count && status == TR_OK; i++) {
        if (sorted[i]->offset < sorted[i - 1]->offset + sorted[i - 1]->bytes) {
            status = fail(gguf->path, sorted[i], "lies over another one", err);
        }
    }
    tr__free(sorted);
    return status;
}

tr_status tr__gguf_place_tensors(tr_gguf *gguf, int64_t end, int64_t size,
                                 tr_error *err) {
    int64_t alignment = 0;
    tr_status status = read_alignment(gguf, &alignment, err);
    if (status != TR_OK) {
        return status;
    }
    int64_t data = tr__round_up(end, alignment);
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        tr_gguf_tensor *tensor = &gguf->tensor[i];
        if (tensor->offset % alignment != 0) {
            return fail(gguf->path, tensor, "does not begin at the file's alignment",
                        err);
        }
        tensor->offset += data;
        if (tensor->offset > size || tensor->bytes > size - tensor->offset) {
            return fail(gguf->path, tensor,
                        "ends behind the end of the file: it is damaged, or was not "
                        "copied to its end",
                        err);
        }
    }
    return check_apart(gguf, err);
}
