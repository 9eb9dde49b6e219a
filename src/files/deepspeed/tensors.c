// Tensors, put together of the parts that ranks have.
#include "base/checked.h"
#include "base/memory.h"
#include "files/deepspeed/inside.h"

#include <string.h>

static tr_status no_memory(const tr_ds_folder *folder, tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to read %s", folder->path);
}

tr_status tr__ds_add_part(const tr_ds_folder *folder, tr_ds_flat *flat,
                          const tr_torch_value *value, int file, tr_error *err) {
    if (!tr__torch_as(value, TR_TORCH_TENSOR) || value->why) {
        return tr__ds_unknown(folder, "a part of its weights or states is no tensor",
                              err);
    }
    if (!tr__grow((void **)&flat->part, &flat->capacity, flat->count + 1,
                  sizeof *flat->part)) {
        return no_memory(folder, err);
    }
    flat->part[flat->count++] = (tr_ds_part){&value->tensor, file};
    return TR_OK;
}

void tr__ds_flat_free(tr_ds_flat *flat) {
    tr__free(flat->part);
    *flat = (tr_ds_flat){0};
}

tr_status tr__ds_begin(const tr_ds_folder *folder, const tr_torch_value *shape,
                       tr_ds_whole *whole, tr_error *err) {
    tr_stored_tensor like = {.count = 1};
    bool good =
        tr__torch_as(shape, TR_TORCH_LIST) && shape->count <= TR_STORED_RANK_MAX;
    for (size_t i = 0; good && i < shape->count; i++) {
        const tr_torch_value *dim = tr__torch_as(shape->item[i], TR_TORCH_INTEGER);
        good = dim && dim->integer >= 0 &&
               tr__mul_i64(like.count, dim->integer, &like.count);
        like.dim[i] = good ? dim->integer : 0;
        like.rank++;
    }
    whole->like = like;
    whole->count = 0;
    return good ? TR_OK
                : tr__ds_unknown(folder, "a parameter of it has no known shape", err);
}

static tr_status take_part(const tr_ds_folder *folder, const tr_ds_part *part,
                           int64_t from, int64_t count, tr_ds_whole *whole,
                           tr_error *err) {
    const tr_stored_tensor *tensor = part->tensor;
    if (whole->count > 0 && tensor->dtype != whole->like.dtype) {
        return tr__ds_unknown(folder, "ranks keep one parameter in several types", err);
    }
    if (!tr__grow((void **)&whole->piece, &whole->capacity, whole->count + 1,
                  sizeof *whole->piece)) {
        return no_memory(folder, err);
    }
    whole->like.dtype = tensor->dtype;
    whole->piece[whole->count++] = (tr_tensor_piece){
        .offset = tensor->offset + from * (int64_t)tr_dtype_bytes(tensor->dtype),
        .count = count,
        .file = part->file,
    };
    return TR_OK;
}

tr_status tr__ds_take(const tr_ds_folder *folder, const tr_ds_flat *flat, int64_t at,
                      int64_t count, tr_ds_whole *whole, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < flat->count && count > 0 && status == TR_OK; i++) {
        int64_t there = flat->part[i].tensor->count;
        int64_t now = tr__min_i64(count, there - at);
        if (now > 0) {
            status = take_part(folder, &flat->part[i], at, now, whole, err);
            at += now;
            count -= now;
        }
        at -= there;
    }
    return status == TR_OK && count > 0
               ? tr__ds_unknown(folder, "has fewer elements than its parameters", err)
               : status;
}

static tr_status add(const tr_ds_folder *folder, const char *name, const char *state,
                     const tr_ds_whole *whole, tr_error *err) {
    tr_stored_tensor like = whole->like;
    char *own = tr__format("%s%s%s", name, state ? "." : "", state ? state : "");
    like.name = own;
    like.dtype = whole->count > 0 ? like.dtype : TR_F32;
    bool fits =
        tr__mul_i64(like.count, (int64_t)tr_dtype_bytes(like.dtype), &like.bytes);
    tr_status status = !own    ? no_memory(folder, err)
                       : !fits ? tr__ds_unknown(folder, "a parameter is too large", err)
                               : tr__tensor_set_add(folder->out->tensors, &like,
                                                    whole->piece, whole->count, err);
    tr__free(own);
    return status;
}

// first: the name by which a parameter was trained.
static bool is_name_of(const json_t *first, const char *name) {
    const char *text = json_string_value(first);
    return text && strcmp(text, name) == 0;
}

tr_status tr__ds_end(const tr_ds_folder *folder, const char *name, const char *state,
                     tr_ds_whole *whole, tr_error *err) {
    const char *other;
    json_t *first;
    tr_status status = TR_OK;
    if (!json_object_get(folder->out->trained, name)) {
        return add(folder, name, state, whole, err);
    }
    json_object_foreach(folder->out->trained, other, first) {
        if (status == TR_OK && is_name_of(first, name)) {
            status = add(folder, other, state, whole, err);
        }
    }
    return status;
}

tr_status tr__ds_put(const tr_ds_folder *folder, const char *name, const char *state,
                     const tr_torch_value *value, int file, tr_error *err) {
    if (!tr__torch_as(value, TR_TORCH_TENSOR) || value->why) {
        char why[300];
        snprintf(why, sizeof why, "%.160s cannot be read: %.100s", name,
                 value && value->why ? value->why : "it is no tensor");
        return tr__ds_unknown(folder, why, err);
    }
    tr_tensor_piece piece = {value->tensor.offset, value->tensor.count, file};
    tr_ds_whole whole = {.like = value->tensor, .piece = &piece, .count = 1};
    return tr__ds_end(folder, name, state, &whole, err);
}

tr_status tr__ds_note_trained(const tr_ds_folder *folder, const char *name,
                              tr_error *err) {
    const tr_torch_value *shared = tr__torch_as(
        tr__torch_get(folder->models.file[0].root, "shared_params"), TR_TORCH_DICT);
    json_t *trained = folder->out->trained;
    bool good = json_object_set_new(trained, name, json_string(name)) == 0;
    for (size_t i = 0; good && shared && i < shared->count; i += 2) {
        const tr_torch_value *other = tr__torch_as(shared->item[i], TR_TORCH_TEXT);
        const tr_torch_value *main = tr__torch_as(shared->item[i + 1], TR_TORCH_TEXT);
        if (other && main && strcmp(main->text, name) == 0 &&
            strcmp(other->text, name) != 0) {
            good = json_object_set_new(trained, other->text, json_string(name)) == 0;
        }
    }
    return good ? TR_OK : tr__ds_unknown(folder, "a parameter's name is no text", err);
}
