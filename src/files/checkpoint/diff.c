#include <tranche/checkpoint.h>

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "files/checkpoint/diff_state.h"
#include "files/safetensors/convert.h"
#include "files/safetensors/tensor_set.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_ELEMENTS = 128 << 10 }; // 1 MiB as doubles

// A piece of both sides: as stored, and as numbers. Each [PIECE_ELEMENTS].
typedef struct piece {
    unsigned char bits_a[PIECE_ELEMENTS * sizeof(double)];
    unsigned char bits_b[PIECE_ELEMENTS * sizeof(double)];
    double a[PIECE_ELEMENTS], b[PIECE_ELEMENTS];
} piece;

static void count_element(double a, double b, bool bits_differ, tr_diff_tensor *out) {
    bool finite = isfinite(a) && isfinite(b);
    if (isfinite(a)) {
        out->l2_a += a * a;
    }
    if (!bits_differ) {
        return;
    }
    out->different++;
    if (!finite) {
        out->not_finite++;
        return;
    }
    double apart = fabs(a - b), size = fmax(fabs(a), fabs(b));
    double relative =
        apart > 0 ? apart / size : 0; // +0 and -0: other bits, no distance
    out->max_abs = fmax(out->max_abs, apart);
    out->max_rel = fmax(out->max_rel, relative);
    out->l2 += apart * apart;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// l2 and l2_a gather squares here; their roots are taken when the tensor is done.
static void compare_piece(piece *work, tr_dtype dtype_a, tr_dtype dtype_b,
                          int64_t count, tr_diff_tensor *out) {
    size_t bytes = tr_dtype_bytes(dtype_a);
    bool same_dtype = dtype_a == dtype_b;
    tr__convert_f64(dtype_a, work->bits_a, count, work->a);
    tr__convert_f64(dtype_b, work->bits_b, count, work->b);
    for (int64_t i = 0; i < count; i++) {
        size_t at = (size_t)i * bytes;
        bool differ = same_dtype
                          ? memcmp(work->bits_a + at, work->bits_b + at, bytes) != 0
                          : bits_of(work->a[i]) != bits_of(work->b[i]);
        count_element(work->a[i], work->b[i], differ, out);
    }
}

static tr_status compare_values(const tr_tensor_set *set_a, const tr_stored_tensor *a,
                                const tr_tensor_set *set_b, const tr_stored_tensor *b,
                                piece *work, tr_diff_tensor *out, tr_error *err) {
    tr_status status = TR_OK;
    for (int64_t first = 0; status == TR_OK && first < a->count;
         first += PIECE_ELEMENTS) {
        int64_t now = tr__min_i64(PIECE_ELEMENTS, a->count - first);
        status = tr__tensor_read(set_a, a, first, now, work->bits_a, err);
        if (status == TR_OK) {
            status = tr__tensor_read(set_b, b, first, now, work->bits_b, err);
        }
        if (status == TR_OK) {
            compare_piece(work, a->dtype, b->dtype, now, out);
        }
    }
    out->l2 = sqrt(out->l2);
    out->l2_a = sqrt(out->l2_a);
    return status;
}

static bool same_shape(const tr_stored_tensor *a, const tr_stored_tensor *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) {
        same = a->dim[i] == b->dim[i];
    }
    return same;
}

// a or b is NULL where it is missing.
static tr_status compare_tensor(const tr_tensor_set *set_a, const tr_stored_tensor *a,
                                const tr_tensor_set *set_b, const tr_stored_tensor *b,
                                piece *work, tr_diff_tensor *out, tr_error *err) {
    out->name = tr__strdup(a ? a->name : b->name);
    out->count = a ? a->count : b->count;
    if (!out->name) {
        return tr_fail(err, TR_MEMORY, "no memory to compare");
    }
    if (!a || !b) {
        out->kind = a ? TR_DIFF_ONLY_A : TR_DIFF_ONLY_B;
        return TR_OK;
    }
    if (!same_shape(a, b)) {
        out->kind = TR_DIFF_SHAPE;
        return TR_OK;
    }
    tr_status status = compare_values(set_a, a, set_b, b, work, out, err);
    if (a->dtype != b->dtype) {
        out->kind = TR_DIFF_DTYPE;
    } else {
        out->kind = out->different > 0 ? TR_DIFF_VALUES : TR_DIFF_SAME;
    }
    return status;
}

static void add_to_total(tr_diff *diff, const tr_diff_tensor *tensor) {
    diff->different_tensors += tensor->kind != TR_DIFF_SAME;
    diff->identical = diff->identical && tensor->kind == TR_DIFF_SAME;
    diff->elements += tensor->count;
    diff->different += tensor->different;
    diff->not_finite += tensor->not_finite;
    diff->max_abs = fmax(diff->max_abs, tensor->max_abs);
    diff->max_rel = fmax(diff->max_rel, tensor->max_rel);
}

static tr_status compare_sets(tr_diff *diff, const char *file,
                              const tr_tensor_set *set_a, const tr_tensor_set *set_b,
                              piece *work, tr_error *err) {
    size_t count_a = tr__tensor_set_count(set_a), count_b = tr__tensor_set_count(set_b);
    size_t capacity = diff->count;
    tr_status status = TR_OK;
    if (!tr__grow((void **)&diff->tensors, &capacity, diff->count + count_a + count_b,
                  sizeof *diff->tensors)) {
        return tr_fail(err, TR_MEMORY, "no memory to compare");
    }
    for (size_t i = 0; status == TR_OK && i < count_a + count_b; i++) {
        bool from_a = i < count_a;
        const tr_stored_tensor *a = from_a ? tr__tensor_set_at(set_a, i) : NULL;
        const tr_stored_tensor *b = from_a
                                        ? tr__tensor_set_find_prefixed(set_b, a->name)
                                        : tr__tensor_set_at(set_b, i - count_a);
        if (!from_a && tr__tensor_set_find_prefixed(set_a, b->name)) {
            continue; // compared already
        }
        tr_diff_tensor *tensor = &diff->tensors[diff->count++];
        *tensor = (tr_diff_tensor){.file = file};
        status = compare_tensor(set_a, a, set_b, b, work, tensor, err);
        add_to_total(diff, tensor);
    }
    return status;
}

static tr_status open_and_compare(tr_diff *diff, tr_tensor_files files, piece *work,
                                  tr_error *err) {
    tr_tensor_set *set_a = NULL, *set_b = NULL;
    tr_status status = tr__tensor_set_open_files(diff->a, files, &set_a, err);
    if (status == TR_OK) {
        status = tr__tensor_set_open_files(diff->b, files, &set_b, err);
    }
    if (status == TR_OK) {
        status = compare_sets(diff, tr__files_stem(files), set_a, set_b, work, err);
    }
    tr__tensor_set_close(set_a);
    tr__tensor_set_close(set_b);
    return status;
}

static bool has_file(const char *path, const char *name, char *dst) {
    return tr__path_join(dst, PATH_MAX, path, name, NULL) == TR_OK &&
           access(dst, F_OK) == 0;
}

// What checkpoints have beside their weights.
static tr_status compare_rest(tr_diff *diff, piece *work, tr_error *err) {
    static const char state[] = "state.json";
    char a[PATH_MAX], b[PATH_MAX];
    tr_status status = TR_OK;
    diff->optimizer_a = tr__tensor_folder_has(diff->a, TR_FILES_OPTIMIZER);
    diff->optimizer_b = tr__tensor_folder_has(diff->b, TR_FILES_OPTIMIZER);
    if (diff->optimizer_a && diff->optimizer_b) {
        status = open_and_compare(diff, TR_FILES_OPTIMIZER, work, err);
    }
    diff->checkpoint_a = has_file(diff->a, state, a);
    diff->checkpoint_b = has_file(diff->b, state, b);
    if (status != TR_OK || !diff->checkpoint_a || !diff->checkpoint_b) {
        return status;
    }
    diff->identical = diff->identical && diff->optimizer_a && diff->optimizer_b;
    return tr__diff_states(a, b, diff, err);
}

static tr_status locate(const char *path, char **copy, tr_error *err) {
    char found[PATH_MAX];
    tr_status status = tr_checkpoint_locate(path, found, sizeof found, err);
    if (status == TR_OK) {
        *copy = tr__strdup(found);
        if (!*copy) {
            status = tr_fail(err, TR_MEMORY, "no memory to compare");
        }
    }
    return status;
}

tr_status tr_checkpoint_diff(const char *a, const char *b, tr_diff **out,
                             tr_error *err) {
    tr_diff *diff = tr__calloc(1, sizeof *diff);
    piece *work = tr__calloc(1, sizeof *work);
    tr_status status;
    if (!diff || !work) {
        status = tr_fail(err, TR_MEMORY, "no memory to compare");
        goto cleanup;
    }
    diff->identical = true;
    status = locate(a, &diff->a, err);
    if (status == TR_OK) {
        status = locate(b, &diff->b, err);
    }
    if (status == TR_OK) {
        status = open_and_compare(diff, TR_FILES_MODEL, work, err);
    }
    if (status != TR_OK) {
        goto cleanup;
    }
    status = compare_rest(diff, work, err);
cleanup:
    tr__free(work);
    if (status != TR_OK) {
        tr_diff_destroy(diff);
        return status;
    }
    *out = diff;
    return TR_OK;
}

void tr_diff_destroy(tr_diff *diff) {
    if (!diff) {
        return;
    }
    for (size_t i = 0; i < diff->count; i++) {
        tr__free(diff->tensors[i].name);
    }
    tr__free(diff->tensors);
    tr__free(diff->states);
    tr__free(diff->a);
    tr__free(diff->b);
    tr__free(diff);
}
