#include "files/checkpoint/pieces.h"

#include <stdlib.h>
#include <string.h>

tr_dtype tr__piece_dtype(const tr_checkpoint_tensor *piece) {
    return piece->dtype == TR_NONE ? TR_F32 : piece->dtype;
}

tr_dtype tr__piece_stored(const tr_checkpoint_tensor *piece) {
    return piece->stored == TR_NONE ? tr__piece_dtype(piece) : piece->stored;
}

int64_t tr__piece_element(const tr_checkpoint_tensor *piece) {
    return (int64_t)tr_dtype_bytes(tr__piece_stored(piece));
}

int64_t tr__piece_bytes(const tr_checkpoint_tensor *piece) {
    return piece->count * tr__piece_element(piece);
}

int64_t tr__piece_tensor_bytes(const tr_checkpoint_tensor *piece) {
    return tr_shape_count(piece->shape) * tr__piece_element(piece);
}

static int by_name(const void *left, const void *right, void *user) {
    const tr_checkpoint_tensor *pieces = user;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int names = strcmp(pieces[a].name, pieces[b].name);
    return names != 0 ? names : (a > b) - (a < b);
}

void tr__pieces_firsts(const tr_checkpoint_tensor *pieces, size_t count, size_t *order,
                       size_t *first_of) {
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    if (count > 0) {
        qsort_r(order, count, sizeof *order, by_name, (void *)pieces);
    }
    for (size_t i = 0, first = 0; i < count; i++) {
        const char *name = pieces[order[i]].name;
        first = strcmp(name, pieces[order[first]].name) == 0 ? first : i;
        first_of[order[i]] = order[first];
    }
}
