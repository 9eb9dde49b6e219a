// Checkpoints: a folder of plain files, complete or absent.
//
//   adapter_config.json,               where an adapter is trained, in the place of
//   adapter_model.safetensors           model.safetensors: its base stays where it is
//   config.json, model.safetensors      a Hugging Face folder of the weights, in f32 or
//                                       bf16, in one file or in shards (shards.h)
//   optimizer.safetensors               "<name>.exp_avg", …; of weights that are
//   written
//                                       in bf16 the f32 ones, too: "<name>.master"; in
//                                       shards, too
//   tokenizer.json, ...                 files that go with the model (companions.h)
//   caller.bin                          what the program gave that saved it
//   state.json                          the rest, and size and hash of each file above
#ifndef TR_FILES_CHECKPOINT_CHECKPOINT_H
#define TR_FILES_CHECKPOINT_CHECKPOINT_H

#include <tranche/types.h>

#include "base/log.h"
#include "base/stride.h"
#include "comm/comm.h"
#include "files/checkpoint/companions.h"
#include "files/checkpoint/folder.h"
#include "files/checkpoint/state.h"
#include "files/safetensors/tensor_set.h"

#define TR_CALLER_FILE "caller.bin"

// Told after every piece of long work, on rank 0; `report` may be NULL.
typedef struct tr_progress {
    void (*report)(void *user, int64_t done, int64_t total); // bytes
    void *user;
} tr_progress;

// A tensor, and elements [first, first + count) of it, which this rank writes. Entries
// of one name and shape are pieces of one tensor. The ranks' pieces together are the
// whole, each element once.
typedef struct tr_checkpoint_tensor {
    const char *name;
    tr_shape shape;
    // Elements [first, first + count) of a part of the tensor, which lies in it as
    // said; count 0: nothing.
    int64_t first, count;
    tr_stride lies;
    const void *data; // [count]; NULL: the input's source has them, F32
    tr_dtype dtype;   // of `data`; TR_NONE: F32
    tr_dtype stored;  // in the file: BF16 rounds F32; TR_NONE: as `dtype`
    int64_t key;      // by which the source knows them
} tr_checkpoint_tensor;

// Whence pieces come that do not lie in memory, a run at a time.
typedef struct tr_tensor_source {
    // Elements of a piece from its `at`-th on: *count of them, at least one and good
    // until the next call. Errors end the save.
    tr_status (*read)(void *user, int64_t key, int64_t at, const float **data,
                      int64_t *count, tr_error *err);
    void *user;
} tr_tensor_source;

// A file of the checkpoint that is text, in its folder or, "FOLDER/NAME", in one there.
typedef struct tr_checkpoint_text {
    const char *name, *text;
} tr_checkpoint_text;

typedef struct tr_checkpoint_input {
    tr_comm *comm; // NULL: alone
    const char *out_folder;
    // The checkpoint itself, in place of one in the out folder: no link points to it,
    // and no other is removed. NULL: one in the out folder.
    const char *folder;
    const void *bytes; // [byte_count] of the caller's, for its own file; NULL: none
    size_t byte_count;
    int keep; // checkpoints to keep, this one included; < 1: all
    // The first checkpoint of a run that began anew where another run has left some:
    // once it is complete, all the others are removed.
    bool anew;
    // The first of a run that resumed: checkpoints of later steps than own_until are of
    // a branch that it has left, and once this one is complete, they are moved aside.
    bool branches;
    int64_t own_until;
    const tr_state *state;
    const char *config;              // text of config.json
    const char *adapter;             // text of adapter_config.json; NULL: none
    const tr_checkpoint_text *texts; // [text_count] others that are made anew
    int text_count;
    const tr_companions *companions; // rank 0's; NULL: none
    const tr_checkpoint_tensor *model;
    size_t model_count;
    int64_t shard_bytes; // of one file of tensors at most; 0: one file of each kind
    const tr_checkpoint_tensor *optimizer; // names with the state's ("<name>.exp_avg")
    size_t optimizer_count;
    tr_tensor_source source; // of pieces without data
    const tr_log *log;       // gets a warning when an old checkpoint cannot be removed
    tr_progress progress;    // of what rank 0 writes and reads back
} tr_checkpoint_input;

// Saves <out>/checkpoints/step-<state.step>, moves `latest` to it and removes those
// beyond `keep`. Everything is synced before it gets its name: after TR_OK the
// checkpoint survives a power cut; on an error (TR_IO: full disk, no permission;
// TR_NUMBERS: a weight that is not finite) or a
// kill at any moment, `latest` is what it was or what it is to be, and complete. A
// checkpoint of the same step is replaced. Memory: the headers' and, with several
// ranks, 24 bytes for each rank and piece that lies in one in its tensor.
//
// Collective: the ranks' inputs differ in the tensors' pieces alone, and <out> is one
// folder for all of them. The files are those that one process would write. An error of
// one rank is everybody's.
tr_status tr__checkpoint_save(const tr_checkpoint_input *input, tr_error *err);

// An open checkpoint: its state, its config and its tensors ready to be read.
typedef struct tr_checkpoint {
    char *folder;
    tr_state state;
    tr_manifest manifest;
    char *config;                     // text of config.json
    tr_tensor_set *model, *optimizer; // of an adapter's: its own tensors alone
} tr_checkpoint;

typedef enum tr_verify {
    TR_VERIFY_SIZES,  // every file is there, with its recorded size
    TR_VERIFY_HASHES, // and its recorded hash (reads all of it)
} tr_verify;

// Opens a checkpoint folder. TR_IO: not a checkpoint, or damaged; the message says
// which file and how. Closed with tr__checkpoint_close (NULL-safe).
tr_status tr__checkpoint_open(const char *folder, tr_verify verify,
                              const tr_progress *progress, tr_checkpoint **out,
                              tr_error *err);
void tr__checkpoint_close(tr_checkpoint *checkpoint);

// Just the checks of tr__checkpoint_open; state and manifest may be NULL.
tr_status tr__checkpoint_verify(const char *folder, tr_verify verify,
                                const tr_progress *progress, tr_state *state,
                                tr_manifest *manifest, tr_error *err);

// The same on all ranks: rank 0 verifies as said, the others sizes alone. Collective;
// comm NULL: alone. TR_IO also when the ranks do not see the same checkpoint.
tr_status tr__checkpoint_open_all(tr_comm *comm, const char *folder, tr_verify verify,
                                  const tr_progress *progress, tr_checkpoint **out,
                                  tr_error *err);

// The folder to resume from: what `latest` points to, else (no such link, or one that
// leads nowhere) the newest. dst: [size], "" when there is no checkpoint at all
// (TR_OK). TR_IO: it is damaged; nothing older is taken silently, but the message names
// the newest good one before it. Call tr__checkpoint_clean first where a run starts.
tr_status tr__checkpoint_find_latest(const char *out_folder, tr_verify verify,
                                     const tr_progress *progress, char *dst,
                                     size_t size, tr_error *err);

// For the start of a run: rank 0 cleans, finds the folder to resume from and verifies
// its hashes; all ranks get it. dst: [PATH_MAX]. Collective; comm NULL: alone.
tr_status tr__checkpoint_find(tr_comm *comm, const char *out_folder,
                              const tr_progress *progress, char *dst, tr_error *err);

#endif
