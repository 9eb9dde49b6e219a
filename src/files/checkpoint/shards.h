// The files of a checkpoint's weights, and those of its optimizer's states: one
// (model.safetensors), or shards of at most so many bytes with an index, by which
// transformers reads the weights.
#ifndef TR_FILES_CHECKPOINT_SHARDS_H
#define TR_FILES_CHECKPOINT_SHARDS_H

#include "files/checkpoint/checkpoint.h"

enum { TR_SHARDS_MAX = 200, TR_SHARD_NAME_MAX = 48 };

typedef struct tr_shards_input {
    tr_tensor_files files;
    const tr_checkpoint_tensor *pieces; // [count]
    size_t count;
    int64_t shard_bytes; // of one file at most; 0: one file
} tr_shards_input;

typedef struct tr_shards {
    tr_tensor_files files;
    int count;                    // files, at least one
    tr_checkpoint_tensor *pieces; // those of file 0, then those of file 1, ...
    size_t *begin;                // [count + 1] where each file's pieces begin
    int64_t bytes;                // of all tensors
} tr_shards;

// Fills one file after the other with whole tensors, in their order, as long as the
// file has at most shard_bytes, its header included; a tensor of more has a file of its
// own. The same on all ranks. TR_USAGE: more than TR_SHARDS_MAX files.
// Freed with tr__shards_free.
tr_status tr__shards_cut(const tr_shards_input *input, tr_shards *out, tr_error *err);
void tr__shards_free(tr_shards *shards);

// "model-00001-of-00003.safetensors"; of one file "model.safetensors".
// dst: [TR_SHARD_NAME_MAX].
void tr__shard_name(const tr_shards *shards, int index, char *dst);

// The text of the index; NULL: no memory. Freed with tr__free.
char *tr__shards_index(const tr_shards *shards);

#endif
