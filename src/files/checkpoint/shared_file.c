#include "files/checkpoint/shared_file.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/half.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "files/checkpoint/pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    REPORT_ELEMENTS = 4 << 20, // between two reports of progress: 16 MiB of f32
    READ_BYTES = 1 << 20,
    ROUND_ELEMENTS = 256 << 10, // that are rounded at a time
};

// Some of a long work is done. TR_COMM: a rank has ended, so the rest is for nothing
// (which rank and why, tr_comm_agree tells).
static tr_status advance(const tr_shared_file *file, tr_meter *meter, int64_t bytes,
                         tr_error *err) {
    meter->done += bytes;
    if (meter->progress.report) {
        meter->progress.report(meter->progress.user, meter->done, meter->total);
    }
    return file->comm && tr__comm_is_broken(file->comm)
               ? tr_fail(err, TR_COMM, "%s: a rank has ended", file->path)
               : TR_OK;
}

int64_t tr__shared_file_own_bytes(const tr_shared_file *file) {
    int64_t bytes = 0;
    for (size_t i = 0; i < file->count; i++) {
        bytes += tr__piece_bytes(&file->tensors[i]);
    }
    return bytes;
}

int64_t tr__shared_file_bytes(const tr_shared_file *file) {
    int64_t bytes = 0;
    for (size_t i = 0; i < file->count; i++) {
        bytes += file->first_of[i] == i ? tr__piece_tensor_bytes(&file->tensors[i]) : 0;
    }
    return bytes;
}

// ---- opening

// Does any piece have another type in the file than in memory?
static bool rounds_any(const tr_shared_file *file) {
    bool any = false;
    for (size_t i = 0; i < file->count; i++) {
        const tr_checkpoint_tensor *piece = &file->tensors[i];
        any = any || tr__piece_stored(piece) != tr__piece_dtype(piece);
    }
    return any;
}

// The stretches that a piece may be of, on any rank.
static size_t stretches_of(const tr_checkpoint_tensor *piece) {
    const tr_stride *lies = &piece->lies;
    return lies->run == 0 ? 1
                          : (size_t)(tr_shape_count(piece->shape) / lies->every) + 1;
}

// The header's is the first. Returns how many there are.
static size_t number_slots(tr_shared_file *file) {
    size_t slots = 1;
    for (size_t i = 0; i < file->count; i++) {
        slots += stretches_of(&file->tensors[i]);
    }
    file->slots = slots;
    file->used = 1;
    return slots;
}

static tr_status make_lists(tr_shared_file *file, tr_error *err) {
    size_t slots = number_slots(file);
    file->first_of = tr__calloc(file->count, sizeof *file->first_of);
    file->tensor_of = tr__calloc(file->count, sizeof *file->tensor_of);
    file->order = tr__calloc(file->count, sizeof *file->order);
    bool rounds = rounds_any(file);
    file->rounded = rounds ? tr__calloc(ROUND_ELEMENTS, sizeof *file->rounded) : NULL;
    if (!file->first_of || !file->tensor_of || !file->order ||
        (rounds && !file->rounded)) {
        return tr_fail(err, TR_MEMORY, "no memory to write %s", file->path);
    }
    tr__pieces_firsts(file->tensors, file->count, file->order, file->first_of);
    if (tr__comm_count(file->comm) == 1) {
        return TR_OK;
    }
    file->own = tr__calloc(slots, sizeof *file->own);
    file->all =
        tr__calloc(slots, (size_t)tr__comm_count(file->comm) * sizeof *file->all);
    return file->own && file->all
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory to write %s", file->path);
}

// The tensors that the pieces make up. specs: [file->count]
static void list_tensors(tr_shared_file *file, tr_tensor_spec *specs) {
    size_t count = 0;
    for (size_t i = 0; i < file->count; i++) {
        const tr_checkpoint_tensor *tensor = &file->tensors[i];
        size_t first = file->first_of[i];
        if (first == i) {
            file->tensor_of[i] = count;
            specs[count++] =
                (tr_tensor_spec){tensor->name, tr__piece_stored(tensor), tensor->shape};
        } else {
            file->tensor_of[i] = file->tensor_of[first];
        }
    }
    file->tensor_count = count;
}

// Where the piece's first element is in its tensor; *count: see tr__stride_at.
static int64_t first_in_tensor(const tr_checkpoint_tensor *piece, int64_t *count) {
    return tr__stride_at(&piece->lies, piece->first, count);
}

// A file, and where each of its tensors comes in it.
typedef struct places {
    const tr_shared_file *file;
    size_t *place; // [tensor_count]
} places;

static int by_place(const void *left, const void *right, void *user) {
    const places *p = user;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    size_t place_a = p->place[p->file->tensor_of[a]];
    size_t place_b = p->place[p->file->tensor_of[b]];
    int64_t one = 1, first_a = first_in_tensor(&p->file->tensors[a], &one),
            first_b = first_in_tensor(&p->file->tensors[b], &one);
    if (place_a != place_b) {
        return place_a < place_b ? -1 : 1;
    }
    return first_a != first_b ? (first_a < first_b ? -1 : 1) : (a > b) - (a < b);
}

// Tensor by tensor of the file, and of each by the first element.
static tr_status order_pieces(tr_shared_file *file, tr_error *err) {
    places p = {file, tr__calloc(file->tensor_count, sizeof *p.place)};
    if (!p.place) {
        return tr_fail(err, TR_MEMORY, "no memory to write %s", file->path);
    }
    for (size_t t = 0; t < file->tensor_count; t++) {
        p.place[tr__tensor_writer_order(file->writer, t)] = t;
    }
    for (size_t i = 0; i < file->count; i++) {
        file->order[i] = i;
    }
    if (file->count > 0) {
        qsort_r(file->order, file->count, sizeof *file->order, by_place, &p);
    }
    tr__free(p.place);
    return TR_OK;
}

size_t tr__shared_file_tensors(const tr_shared_file *file) {
    return file->tensor_count;
}

tr_status tr__shared_file_open(tr_shared_file *file, tr_error *err) {
    tr_tensor_spec *specs = tr__calloc(file->count, sizeof *specs);
    tr_status status = make_lists(file, err);
    if (status == TR_OK && !specs) {
        status = tr_fail(err, TR_MEMORY, "no memory to write %s", file->path);
    }
    if (status == TR_OK) {
        bool creates = tr__comm_leads(file->comm);
        list_tensors(file, specs);
        status = creates
                     ? tr__tensor_writer_create(file->path, specs, file->tensor_count,
                                                &file->writer, err)
                     : tr__tensor_writer_join(file->path, specs, file->tensor_count,
                                              &file->writer, err);
    }
    if (status == TR_OK) {
        status = order_pieces(file, err);
    }
    if (status == TR_OK && file->own && tr__comm_leads(file->comm)) {
        file->own[0] = tr__tensor_writer_header(file->writer);
    }
    tr__free(specs);
    return status;
}

void tr__shared_file_close(tr_shared_file *file) {
    tr__tensor_writer_destroy(file->writer);
    tr__free(file->first_of);
    tr__free(file->tensor_of);
    tr__free(file->order);
    tr__free(file->rounded);
    tr__free(file->all);
    tr__free(file->own);
    *file = (tr_shared_file){0};
}

// ---- writing

// The elements of a piece from its `done`-th on: those that are at hand.
static tr_status next_run(const tr_shared_file *file,
                          const tr_checkpoint_tensor *tensor, int64_t done,
                          const void **data, int64_t *count, tr_error *err) {
    const float *run = NULL;
    tr_status status = TR_OK;
    *count = tensor->count - done;
    if (tensor->data) {
        size_t element = tr_dtype_bytes(tr__piece_dtype(tensor));
        *data = (const char *)tensor->data + (size_t)done * element;
    } else {
        status =
            file->source.read(file->source.user, tensor->key, done, &run, count, err);
        *data = run;
    }
    *count = tr__min_i64(tr__min_i64(*count, tensor->count - done), REPORT_ELEMENTS);
    return status;
}

// All ones in the exponent: an infinity, or not a number.
static bool is_finite_f32(const void *values, int64_t count) {
    uint32_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, (const char *)values + i * (int64_t)sizeof bits, sizeof bits);
        found |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !found;
}

static bool is_finite_bf16(const uint16_t *values, int64_t count) {
    unsigned found = 0;
    for (int64_t i = 0; i < count; i++) {
        found |= (values[i] & 0x7f80u) == 0x7f80u;
    }
    return !found;
}

// What the file gets of a run of elements, in *data. Of those that are rounded, *count
// of them at most; rounding may make an infinity.
static tr_status as_stored(const tr_shared_file *file,
                           const tr_checkpoint_tensor *tensor, const void **data,
                           int64_t *count, tr_error *err) {
    bool finite = true;
    if (tr__piece_stored(tensor) != tr__piece_dtype(tensor)) {
        const float *values = *data;
        *count = tr__min_i64(*count, ROUND_ELEMENTS);
        for (int64_t i = 0; i < *count; i++) {
            file->rounded[i] = tr__bf16_of_f32(values[i]);
        }
        *data = file->rounded;
        finite = !file->finite || is_finite_bf16(file->rounded, *count);
    } else if (file->finite && tr__piece_dtype(tensor) == TR_F32) {
        finite = is_finite_f32(*data, *count);
    }
    return finite ? TR_OK
                  : tr_fail(err, TR_NUMBERS,
                            "no checkpoint is written: %s has values that are not "
                            "finite; the checkpoints before are as they were",
                            tensor->name);
}

// Writes elements of a piece from its `done`-th on, as many of `most` as are at hand.
// *now: how many.
static tr_status put_run(tr_shared_file *file, size_t index, int64_t done, int64_t most,
                         XXH3_state_t *hash, int64_t *now, tr_error *err) {
    const tr_checkpoint_tensor *tensor = &file->tensors[index];
    const void *data = NULL;
    tr_status status = next_run(file, tensor, done, &data, now, err);
    *now = tr__min_i64(*now, most);
    if (status == TR_OK) {
        status = as_stored(file, tensor, &data, now, err);
    }
    if (status == TR_OK) {
        int64_t all = *now;
        int64_t at = tr__stride_at(&tensor->lies, tensor->first + done, &all);
        status = tr__tensor_writer_put(file->writer, file->tensor_of[index], at, *now,
                                       data, err);
    }
    if (status == TR_OK && hash) {
        XXH3_64bits_update(hash, data, (size_t)(*now * tr__piece_element(tensor)));
    }
    return status;
}

// Elements [first, first + count) of a piece, which follow each other in the tensor.
static tr_status put_stretch(tr_shared_file *file, size_t index, int64_t first,
                             int64_t count, XXH3_state_t *hash, tr_meter *meter,
                             tr_error *err) {
    const tr_checkpoint_tensor *tensor = &file->tensors[index];
    int64_t element = tr__piece_element(tensor), now = 0;
    tr_status status = TR_OK;
    if (hash) {
        XXH3_64bits_reset(hash);
    }
    for (int64_t done = 0; status == TR_OK && done < count; done += now) {
        status = put_run(file, index, first + done, count - done, hash, &now, err);
        if (status == TR_OK) {
            status = advance(file, meter, now * element, err);
        }
    }
    if (status == TR_OK && file->own) { // others ask for it
        int64_t same = count,
                at = tr__stride_at(&tensor->lies, tensor->first + first, &same);
        int64_t begin = tr__tensor_writer_offset(file->writer, file->tensor_of[index]);
        file->own[file->used++] = (tr_stretch){begin + at * element, count * element,
                                               XXH3_64bits_digest(hash)};
    }
    return status;
}

static tr_status put(tr_shared_file *file, size_t index, tr_meter *meter,
                     tr_error *err) {
    const tr_checkpoint_tensor *tensor = &file->tensors[index];
    XXH3_state_t *hash = file->own ? XXH3_createState() : NULL;
    tr_status status = TR_OK;
    int64_t count = 0;
    if (file->own && !hash) {
        return tr_fail(err, TR_MEMORY, "no memory to write %s", file->path);
    }
    for (int64_t first = 0; status == TR_OK && first < tensor->count; first += count) {
        count = tensor->count - first;
        tr__stride_at(&tensor->lies, tensor->first + first, &count);
        status = put_stretch(file, index, first, count, hash, meter, err);
    }
    XXH3_freeState(hash);
    return status;
}

tr_status tr__shared_file_write(tr_shared_file *file, tr_meter *meter, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; status == TR_OK && i < file->count; i++) {
        status = put(file, file->order[i], meter, err);
    }
    // Alone, the end syncs it.
    return status == TR_OK && file->own ? tr__tensor_writer_sync(file->writer, err)
                                        : status;
}

tr_status tr__shared_file_gather(tr_shared_file *file, tr_error *err) {
    return file->own
               ? tr__comm_all_gather(file->comm, file->own,
                                     file->slots * sizeof *file->own, file->all, err)
               : TR_OK;
}

// ---- what all have written

static int by_offset(const void *left, const void *right) {
    const tr_stretch *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

// Moves what is not empty to the front of file->all, in the file's order.
static size_t sort_stretches(tr_shared_file *file) {
    size_t slots = file->slots * (size_t)tr__comm_count(file->comm), kept = 0;
    for (size_t i = 0; i < slots; i++) {
        if (file->all[i].bytes > 0) {
            file->all[kept++] = file->all[i];
        }
    }
    qsort(file->all, kept, sizeof *file->all, by_offset);
    return kept;
}

// Every byte of the file belongs to one stretch.
static tr_status check_cover(const tr_shared_file *file, size_t count, tr_error *err) {
    int64_t end = 0;
    for (size_t i = 0; i <= count; i++) {
        int64_t next =
            i < count ? file->all[i].offset : tr__tensor_writer_bytes(file->writer);
        if (next != end) {
            return tr_fail(err, TR_INTERNAL,
                           "%s: from byte %" PRId64 " to %" PRId64
                           " the ranks' pieces %s",
                           file->path, tr__min_i64(end, next), tr__max_i64(end, next),
                           next > end ? "leave a gap" : "overlap");
        }
        end += i < count ? file->all[i].bytes : 0;
    }
    return TR_OK;
}

// Reads one stretch into both hashes.
static tr_status read_stretch(int descriptor, const char *path,
                              const tr_stretch *stretch, char *piece,
                              XXH3_state_t *whole, XXH3_state_t *own, tr_error *err) {
    tr_status status = TR_OK;
    XXH3_64bits_reset(own);
    for (int64_t done = 0; status == TR_OK && done < stretch->bytes;) {
        size_t now = (size_t)tr__min_i64(READ_BYTES, stretch->bytes - done);
        status = tr__pread(descriptor, path, piece, now, stretch->offset + done, err);
        if (status == TR_OK) {
            XXH3_64bits_update(whole, piece, now);
            XXH3_64bits_update(own, piece, now);
        }
        done += (int64_t)now;
    }
    if (status == TR_OK && XXH3_64bits_digest(own) != stretch->hash) {
        status = tr_fail(err, TR_IO,
                         "%s: bytes %" PRId64 " to %" PRId64
                         " are not what a rank wrote there: all ranks need to share "
                         "one file system that keeps what each of them writes",
                         path, stretch->offset, stretch->offset + stretch->bytes);
    }
    return status;
}

static tr_status read_back(const tr_shared_file *file, size_t count, tr_meter *meter,
                           uint64_t *hash, tr_error *err) {
    tr_status status = TR_OK;
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return tr_fail(err, TR_IO, "%s: cannot open: %s", file->path, strerror(errno));
    }
    char *piece = tr__calloc(1, READ_BYTES);
    XXH3_state_t *whole = XXH3_createState(), *own = XXH3_createState();
    if (!piece || !whole || !own) {
        status = tr_fail(err, TR_MEMORY, "no memory to hash %s", file->path);
        goto cleanup;
    }
    XXH3_64bits_reset(whole);
    for (size_t i = 0; status == TR_OK && i < count; i++) {
        const tr_stretch *stretch = &file->all[i];
        status = read_stretch(descriptor, file->path, stretch, piece, whole, own, err);
        if (status == TR_OK && i > 0) { // the header is no tensor
            status = advance(file, meter, stretch->bytes, err);
        }
    }
    *hash = XXH3_64bits_digest(whole);
cleanup:
    XXH3_freeState(own);
    XXH3_freeState(whole);
    tr__free(piece);
    close(descriptor);
    return status;
}

tr_status tr__shared_file_finish(tr_shared_file *file, tr_meter *meter,
                                 tr_file_record *record, tr_error *err) {
    if (file->all) {
        size_t count = sort_stretches(file);
        tr_status status = check_cover(file, count, err);
        if (status != TR_OK) {
            return status;
        }
        if (tr__shared_file_own_bytes(file) != tr__shared_file_bytes(file)) {
            record->bytes = tr__tensor_writer_bytes(file->writer);
            return read_back(file, count, meter, &record->hash, err);
        }
    }
    return tr__tensor_writer_finish(file->writer, &record->bytes, &record->hash, err);
}
