#include "files/checkpoint/shards.h"

#include "base/memory.h"
#include "files/checkpoint/pieces.h"
#include "files/safetensors/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(2 * (TR_SHARDS_MAX + 1) + TR_COMPANIONS_MAX + 1 <= TR_MANIFEST_FILES_MAX,
               "a checkpoint has room for both kinds of them, indices and config");

// Of a safetensors header: what it has beside its entries, and of each entry what is
// not its name.
enum { HEADER_BYTES = 64, ENTRY_BYTES = 192 };

// What a cut needs for the while.
typedef struct cutting {
    const tr_shards_input *input;
    size_t *order, *first_of; // [input->count]
    int *shard_of;            // [input->count]
} cutting;

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to list a checkpoint's files");
}

// What a tensor takes of a file at most, with its entry in the header: a name and six
// numbers of up to 20 digits.
static int64_t room_of(const tr_checkpoint_tensor *piece) {
    return tr__piece_tensor_bytes(piece) + (int64_t)strlen(piece->name) + ENTRY_BYTES;
}

// Which file each piece goes into; out->count and out->bytes. Returns the room of all.
static int64_t deal(const cutting *c, tr_shards *out) {
    int64_t used = 0, all = 0, shard_bytes = c->input->shard_bytes;
    out->count = 1;
    for (size_t i = 0; i < c->input->count; i++) {
        const tr_checkpoint_tensor *piece = &c->input->pieces[i];
        if (c->first_of[i] != i) {
            c->shard_of[i] = c->shard_of[c->first_of[i]];
            continue;
        }
        int64_t room = room_of(piece);
        if (shard_bytes > 0 && used > 0 && used + room > shard_bytes) {
            out->count++;
            used = 0;
        }
        used = used > 0 ? used + room : HEADER_BYTES + room;
        all += HEADER_BYTES + room;
        out->bytes += tr__piece_tensor_bytes(piece);
        c->shard_of[i] = out->count - 1;
    }
    return all;
}

// The pieces by file, in their order otherwise.
static tr_status sort(const cutting *c, tr_shards *out, tr_error *err) {
    size_t at = 0, count = c->input->count;
    out->pieces = tr__calloc(count, sizeof *out->pieces);
    out->begin = tr__calloc((size_t)out->count + 1, sizeof *out->begin);
    if (!out->pieces || !out->begin) {
        return no_memory(err);
    }
    for (int shard = 0; shard < out->count; shard++) {
        out->begin[shard] = at;
        for (size_t i = 0; i < count; i++) {
            if (c->shard_of[i] == shard) {
                out->pieces[at++] = c->input->pieces[i];
            }
        }
    }
    out->begin[out->count] = at;
    return TR_OK;
}

// all: bytes of all tensors' entries and files, were each in one of its own.
static tr_status check_count(const tr_shards_input *input, int count, int64_t all,
                             tr_error *err) {
    if (count <= TR_SHARDS_MAX) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "checkpoint.shard_bytes is %" PRId64
                   ": a checkpoint would have %d files of %s, more than %d; with "
                   "%" PRId64 " it has fewer",
                   input->shard_bytes, count,
                   input->files != TR_FILES_OPTIMIZER ? "weights"
                                                      : "the optimizer's states",
                   TR_SHARDS_MAX, 2 * (all / TR_SHARDS_MAX + 1));
}

tr_status tr__shards_cut(const tr_shards_input *input, tr_shards *out, tr_error *err) {
    size_t count = input->count;
    cutting c = {input, tr__calloc(count, sizeof *c.order),
                 tr__calloc(count, sizeof *c.first_of),
                 tr__calloc(count, sizeof *c.shard_of)};
    tr_status status = TR_OK;
    *out = (tr_shards){.files = input->files};
    if (!c.order || !c.first_of || !c.shard_of) {
        status = no_memory(err);
        goto cleanup;
    }
    tr__pieces_firsts(input->pieces, count, c.order, c.first_of);
    int64_t all = deal(&c, out);
    status = check_count(input, out->count, all, err);
    if (status == TR_OK) {
        status = sort(&c, out, err);
    }
cleanup:
    tr__free(c.order);
    tr__free(c.first_of);
    tr__free(c.shard_of);
    if (status != TR_OK) {
        tr__shards_free(out);
    }
    return status;
}

void tr__shards_free(tr_shards *shards) {
    tr__free(shards->pieces);
    tr__free(shards->begin);
    *shards = (tr_shards){0};
}

void tr__shard_name(const tr_shards *shards, int index, char *dst) {
    if (shards->count == 1) {
        snprintf(dst, TR_SHARD_NAME_MAX, "%s", tr__files_name(shards->files));
    } else {
        snprintf(dst, TR_SHARD_NAME_MAX, "%s-%05d-of-%05d.safetensors",
                 tr__files_stem(shards->files), index + 1, shards->count);
    }
}

char *tr__shards_index(const tr_shards *shards) {
    json_t *map = json_object();
    bool good = map != NULL;
    for (int s = 0; s < shards->count; s++) {
        char file[TR_SHARD_NAME_MAX];
        tr__shard_name(shards, s, file);
        for (size_t i = shards->begin[s]; good && i < shards->begin[s + 1]; i++) {
            good = json_object_set_new(map, shards->pieces[i].name,
                                       json_string(file)) == 0;
        }
    }
    json_t *root = json_pack("{s:{s:I}, s:o}", "metadata", "total_size",
                             (json_int_t)shards->bytes, "weight_map", map);
    char *text =
        root && good ? tr__json_text(root, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    json_decref(root);
    return text;
}
