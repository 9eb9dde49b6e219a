// What calls in a pickle give, of the few functions and classes that matter.
#include "files/torch/inside.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

static tr_status damaged(const tr_torch_file *file, const char *what, tr_error *err) {
    return tr_fail(err, TR_IO, "%s: %s: the file is damaged", file->zip.path, what);
}

// ---- storages

static const struct {
    const char *class;
    tr_dtype dtype;
} storages[] = {
    {"torch.FloatStorage", TR_F32}, {"torch.DoubleStorage", TR_F64},
    {"torch.HalfStorage", TR_F16},  {"torch.BFloat16Storage", TR_BF16},
    {"torch.LongStorage", TR_I64},  {"torch.IntStorage", TR_I32},
    {"torch.ShortStorage", TR_I16}, {"torch.CharStorage", TR_I8},
    {"torch.ByteStorage", TR_U8},   {"torch.BoolStorage", TR_BOOL},
};

static tr_dtype storage_dtype(const tr_torch_value *class) {
    for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
        if (tr__torch_as(class, TR_TORCH_CLASS) &&
            strcmp(storages[i].class, class->text) == 0) {
            return storages[i].dtype;
        }
    }
    return TR_NONE;
}

static tr_status find_bytes(const tr_torch_file *file, tr_torch_value *storage,
                            tr_error *err) {
    char *name = tr__format("%s/data/%s", file->folder, storage->text);
    const tr_zip_entry *entry = name ? tr__zip_find(&file->zip, name) : NULL;
    tr_stored_tensor *t = &storage->tensor;
    int64_t element = (int64_t)tr_dtype_bytes(t->dtype);
    tr_status status = TR_OK;
    if (!name) {
        status = tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
    } else if (!entry || !tr__mul_i64(t->count, element, &t->bytes) ||
               t->bytes > entry->bytes) {
        status = damaged(file, "the bytes of a tensor are not there", err);
    } else {
        t->offset = entry->offset;
    }
    tr__free(name);
    return status;
}

// ("storage", class, name, device, elements)
tr_status tr__torch_make_storage(tr_torch_file *file, const tr_torch_value *said,
                                 tr_torch_value **out, tr_error *err) {
    const tr_torch_value *kind = tr__torch_as(tr__torch_at(said, 0), TR_TORCH_TEXT);
    const tr_torch_value *name = tr__torch_as(tr__torch_at(said, 2), TR_TORCH_TEXT);
    const tr_torch_value *count = tr__torch_as(tr__torch_at(said, 4), TR_TORCH_INTEGER);
    if (!kind || strcmp(kind->text, "storage") != 0 || !name || !count ||
        count->integer < 0) {
        return damaged(
            file, "it names something outside of its pickle that is no tensor", err);
    }
    tr_status status = tr__torch_new(file, TR_TORCH_STORAGE, out, err);
    if (status != TR_OK) {
        return status;
    }
    tr_torch_value *made = *out;
    made->text = tr__strdup(name->text);
    made->tensor = (tr_stored_tensor){.dtype = storage_dtype(tr__torch_at(said, 1)),
                                      .rank = 1,
                                      .count = count->integer};
    made->tensor.dim[0] = count->integer;
    if (!made->text) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
    }
    return find_bytes(file, made, err);
}

// ---- tensors

// Fills dimensions; false: they are none. *lies: in one piece, rows behind rows.
static bool take_shape(const tr_torch_value *size, const tr_torch_value *stride,
                       tr_stored_tensor *t, bool *lies) {
    int64_t behind = 1;
    t->rank = (int)size->count;
    *lies = true;
    for (size_t i = size->count; i-- > 0;) {
        const tr_torch_value *dim = tr__torch_as(size->item[i], TR_TORCH_INTEGER);
        const tr_torch_value *step = tr__torch_as(stride->item[i], TR_TORCH_INTEGER);
        if (!dim || !step || dim->integer < 0 ||
            !tr__mul_i64(behind, dim->integer, &t->count)) {
            return false;
        }
        *lies = *lies && (dim->integer == 1 || step->integer == behind);
        t->dim[i] = dim->integer;
        behind = t->count;
    }
    t->count = behind;
    *lies = *lies || t->count == 0;
    return true;
}

// Where the tensor is in its storage, from its element `first` on.
static tr_status place(const tr_torch_file *file, const tr_torch_value *storage,
                       int64_t first, tr_torch_value *made, bool lies, tr_error *err) {
    tr_stored_tensor *t = &made->tensor;
    int64_t element = (int64_t)tr_dtype_bytes(storage->tensor.dtype);
    t->dtype = storage->tensor.dtype;
    if (t->dtype == TR_NONE) {
        made->why = "its type is not known here";
        return TR_OK;
    }
    if (!lies) {
        made->why = "its values do not lie behind one another";
        return TR_OK;
    }
    if (first < 0 || first > storage->tensor.count ||
        t->count > storage->tensor.count - first) {
        return damaged(file, "a tensor lies outside of its bytes", err);
    }
    t->bytes = t->count * element;
    t->offset = storage->tensor.offset + first * element;
    return TR_OK;
}

// (storage, first element, size, stride, ...)
static tr_status make_tensor(tr_torch_file *file, tr_torch_value *class,
                             const tr_torch_value *arguments, tr_torch_value **out,
                             tr_error *err) {
    const tr_torch_value *storage =
        tr__torch_as(tr__torch_at(arguments, 0), TR_TORCH_STORAGE);
    const tr_torch_value *first =
        tr__torch_as(tr__torch_at(arguments, 1), TR_TORCH_INTEGER);
    const tr_torch_value *size =
        tr__torch_as(tr__torch_at(arguments, 2), TR_TORCH_LIST);
    const tr_torch_value *stride =
        tr__torch_as(tr__torch_at(arguments, 3), TR_TORCH_LIST);
    bool lies = false;
    (void)class;
    if (!storage || !first || !size || !stride || size->count != stride->count) {
        return damaged(file, "a tensor is not described as PyTorch describes one", err);
    }
    tr_status status = tr__torch_new(file, TR_TORCH_TENSOR, out, err);
    if (status != TR_OK) {
        return status;
    }
    if (size->count > TR_STORED_RANK_MAX) {
        (*out)->why = "it has more dimensions than are read here";
        return TR_OK;
    }
    if (!take_shape(size, stride, &(*out)->tensor, &lies)) {
        return damaged(file, "a tensor has no such shape", err);
    }
    return place(file, storage, first->integer, *out, lies, err);
}

// ---- calls

static tr_status make_dict(tr_torch_file *file, tr_torch_value *class,
                           const tr_torch_value *arguments, tr_torch_value **out,
                           tr_error *err) {
    (void)class;
    (void)arguments;
    return tr__torch_new(file, TR_TORCH_DICT, out, err);
}

// A tensor that is a parameter, or a tuple that is a size.
static tr_status make_first(tr_torch_file *file, tr_torch_value *class,
                            const tr_torch_value *arguments, tr_torch_value **out,
                            tr_error *err) {
    (void)class;
    if (arguments->count == 0) {
        return damaged(file, "a value is not described as PyTorch describes one", err);
    }
    *out = arguments->item[0];
    return TR_OK;
}

static tr_status make_object(tr_torch_file *file, tr_torch_value *class,
                             const tr_torch_value *arguments, tr_torch_value **out,
                             tr_error *err) {
    tr_status status = tr__torch_new(file, TR_TORCH_OBJECT, out, err);
    if (status == TR_OK) {
        (*out)->text = tr__strdup(class->text);
        status = (*out)->text
                     ? TR_OK
                     : tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
    }
    for (size_t i = 0; i < arguments->count && status == TR_OK; i++) {
        status = tr__torch_append(*out, arguments->item[i], err);
    }
    return status;
}

static const struct {
    const char *name;
    size_t arguments; // at most
    tr_status (*make)(tr_torch_file *file, tr_torch_value *class,
                      const tr_torch_value *arguments, tr_torch_value **out,
                      tr_error *err);
} known[] = {
    {"collections.OrderedDict", 0, make_dict},
    {"torch._utils._rebuild_tensor_v2", 7, make_tensor},
    {"torch._utils._rebuild_parameter", 3, make_first},
    {"torch.Size", 1, make_first},
};

static tr_status make(tr_torch_file *file, tr_torch_value *class,
                      const tr_torch_value *arguments, tr_torch_value **out,
                      tr_error *err) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(class->text, known[i].name) == 0 &&
            arguments->count <= known[i].arguments) {
            return known[i].make(file, class, arguments, out, err);
        }
    }
    return make_object(file, class, arguments, out, err);
}

// torch._tensor._rebuild_from_type_v2(function, type, arguments, state): a tensor with
// attributes, which are of no interest.
tr_status tr__torch_make(tr_torch_file *file, tr_torch_value *class,
                         const tr_torch_value *arguments, tr_torch_value **out,
                         tr_error *err) {
    if (!class->text || class->kind == TR_TORCH_TEXT ||
        arguments->kind != TR_TORCH_LIST) {
        return damaged(file, "its pickle calls what is no class", err);
    }
    tr_torch_value *inner = arguments->count > 0 ? arguments->item[0] : NULL;
    const tr_torch_value *given =
        tr__torch_as(tr__torch_at(arguments, 2), TR_TORCH_LIST);
    if (class->kind != TR_TORCH_CLASS) { // a method of an object
        return make_object(file, class, arguments, out, err);
    }
    bool wrapped = strcmp(class->text, "torch._tensor._rebuild_from_type_v2") == 0;
    return wrapped && given && tr__torch_as(inner, TR_TORCH_CLASS)
               ? make(file, inner, given, out, err)
               : make(file, class, arguments, out, err);
}
