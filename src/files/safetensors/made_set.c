#include "files/safetensors/made_set.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "files/safetensors/inside.h"

#include <fcntl.h>
#include <string.h>

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the list of tensors");
}

tr_tensor_set *tr__tensor_set_make(void) {
    tr_tensor_set *set = tr__calloc(1, sizeof *set);
    bool good = set && tr__grow((void **)&set->pieced, &set->pieced_capacity, 1,
                                sizeof *set->pieced);
    if (!good) {
        tr__tensor_set_close(set);
    }
    return good ? set : NULL;
}

tr_status tr__tensor_set_add_file(tr_tensor_set *set, const char *path, int *file,
                                  tr_error *err) {
    if (!tr__grow((void **)&set->files, &set->file_capacity, set->file_count + 1,
                  sizeof *set->files)) {
        return no_memory(err);
    }
    tr_set_file *to = &set->files[set->file_count];
    to->path = tr__strdup(path);
    if (!to->path) {
        return no_memory(err);
    }
    tr_status status = tr__file_open(path, O_RDONLY, &to->descriptor, err);
    if (status != TR_OK) {
        tr__free(to->path);
        return status;
    }
    *file = (int)set->file_count++;
    return TR_OK;
}

tr_status tr__tensor_set_add(tr_tensor_set *set, const tr_stored_tensor *like,
                             const tr_tensor_piece *pieces, size_t count,
                             tr_error *err) {
    char *name = tr__strdup(like->name);
    if (!name ||
        !tr__grow((void **)&set->tensors, &set->capacity, set->count + 1,
                  sizeof *set->tensors) ||
        !tr__grow((void **)&set->pieced, &set->pieced_capacity, set->pieced_count + 1,
                  sizeof *set->pieced) ||
        !tr__grow((void **)&set->pieces, &set->piece_capacity, set->piece_count + count,
                  sizeof *set->pieces)) {
        tr__free(name);
        return no_memory(err);
    }
    if (count > 0) {
        memcpy(set->pieces + set->piece_count, pieces, count * sizeof *pieces);
    }
    set->pieced[set->pieced_count] = (tr_tensor_pieces){set->piece_count, count};
    set->piece_count += count;
    tr_stored_tensor *tensor = &set->tensors[set->count++];
    *tensor = *like;
    tensor->name = name;
    tensor->file = count > 0 ? pieces[0].file : 0;
    tensor->offset = (int64_t)set->pieced_count++;
    return TR_OK;
}

tr_status tr__tensor_pieces_read(const tr_tensor_set *set,
                                 const tr_stored_tensor *tensor, int64_t first,
                                 int64_t count, void *dst, tr_error *err) {
    const tr_tensor_pieces *of = &set->pieced[tensor->offset];
    int64_t element = (int64_t)tr_dtype_bytes(tensor->dtype), begin = 0;
    char *to = dst;
    tr_status status = TR_OK;
    for (size_t i = 0; i < of->count && count > 0 && status == TR_OK; i++) {
        const tr_tensor_piece *piece = &set->pieces[of->begin + i];
        const tr_set_file *file = &set->files[piece->file];
        int64_t now = tr__min_i64(count, begin + piece->count - first);
        if (now > 0) {
            status =
                tr__pread(file->descriptor, file->path, to, (size_t)(now * element),
                          piece->offset + (first - begin) * element, err);
            to += now * element;
            first += now;
            count -= now;
        }
        begin += piece->count;
    }
    return status;
}
