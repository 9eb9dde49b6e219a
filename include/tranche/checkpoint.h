// Reads checkpoints and safetensors files: what is in them, how two of them differ, and
// which checkpoints a run has.
//
// A path may be a safetensors file, a Hugging Face folder (model.safetensors, or
// model.safetensors.index.json and its shards) or a checkpoint folder. It may be a
// run's out folder or the checkpoints folder in it; then its latest checkpoint is read.
// If no such file exists, the path may be the name of a model on Hugging Face's hub
// ("ORG/NAME") that is in the local cache.
//
// No function here is collective.
#ifndef TRANCHE_CHECKPOINT_H
#define TRANCHE_CHECKPOINT_H

#include <tranche/status.h>
#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TR_STORED_RANK_MAX = 8 };

// A tensor in a file.
typedef struct tr_stored_tensor {
    const char *name; // owned by whoever gave the struct
    tr_dtype dtype;
    int rank; // 0: a scalar
    int64_t dim[TR_STORED_RANK_MAX];
    int64_t count;  // elements
    int64_t bytes;  // count * size of an element
    int64_t offset; // of its first byte in its file
    int file;       // which file of a sharded folder, from 0
} tr_stored_tensor;

// ---- where

// Resolves `path`, as described above, to a file or to a folder with weights in it.
// dst: [size] bytes; PATH_MAX is always enough. TR_IO: nothing readable is there.
TR_API tr_status tr_checkpoint_locate(const char *path, char *dst, size_t size,
                                      tr_error *err);

// Whether the path is of a kind that tr_checkpoint_inspect takes: a safetensors file, a
// model's folder, a checkpoint or an out folder. It may be damaged. False: it is
// something else, such as data, or nothing is there.
TR_API bool tr_checkpoint_recognize(const char *path);

// ---- adapters

// Adds an adapter to its base model and writes the sum as a Hugging Face folder. path:
// where the adapter is (adapter_config.json): a folder that PEFT saved, a checkpoint,
// or an out folder. base: the folder of the base model; NULL: the one that
// adapter_config.json names. out: the new folder; it must be empty or not exist. It
// gets the base's types, config.json and tokenizer. Sums are computed in double, and
// rounded once. TR_USAGE: there is no adapter, or it asks for something that is not
// supported. TR_IO names the file. TR_MEMORY.
TR_API tr_status tr_adapter_merge(const char *path, const char *base, const char *out,
                                  tr_error *err);

// ---- which

typedef struct tr_checkpoint_entry {
    char *path;    // of the folder
    int64_t step;  // by its name
    int64_t bytes; // of its files by its manifest, 0 when damaged
    bool latest;   // the `latest` link points to it
    bool complete; // state is readable, and every file is there at its recorded size
} tr_checkpoint_entry;

// Lists the checkpoints of an out folder, oldest first. The caller frees *entries with
// tr_checkpoint_list_destroy. If the folder is missing or empty, *count is 0 and the
// status is TR_OK. TR_IO: it cannot be read; TR_MEMORY.
TR_API tr_status tr_checkpoint_list(const char *out_folder,
                                    tr_checkpoint_entry **entries, size_t *count,
                                    tr_error *err);
TR_API void tr_checkpoint_list_destroy(tr_checkpoint_entry *entries, size_t count);

// ---- what is in it

typedef struct tr_inspection tr_inspection;

// Reads headers and the state of a checkpoint, but no tensor data. The caller destroys
// *out. TR_IO: a file is unreadable, of another kind, or damaged; the message names the
// file, the tensor and the problem. TR_MEMORY.
TR_API tr_status tr_checkpoint_inspect(const char *path, tr_inspection **out,
                                       tr_error *err);
TR_API void tr_inspection_destroy(tr_inspection *inspection); // NULL-safe

TR_API size_t
tr_inspection_count(const tr_inspection *inspection); // tensors of the model
// The i-th, by name. Owned by the inspection.
TR_API const tr_stored_tensor *tr_inspection_tensor(const tr_inspection *inspection,
                                                    size_t i);

// As a table for people, or as one JSON object. TR_IO: `to` takes no more. TR_MEMORY.
TR_API tr_status tr_inspection_print(const tr_inspection *inspection, const tr_sink *to,
                                     tr_error *err);
TR_API tr_status tr_inspection_print_json(const tr_inspection *inspection,
                                          const tr_sink *to, tr_error *err);

// Gives the bytes that a program has stored with a checkpoint (tr_save_options.bytes):
// *bytes [*count], which the caller releases. NULL and 0: there are none. TR_IO: it is
// no checkpoint, or damaged. TR_MEMORY.
TR_API tr_status tr_checkpoint_bytes(const char *path, void **bytes, size_t *count,
                                     tr_error *err);
TR_API void tr_checkpoint_bytes_release(void *bytes); // accepts NULL

// ---- how two differ

typedef enum tr_diff_kind {
    TR_DIFF_SAME,   // dtype, shape and every bit
    TR_DIFF_VALUES, // some elements differ
    TR_DIFF_DTYPE,  // same shape, other dtype; values compared as numbers
    TR_DIFF_SHAPE,  // not comparable
    TR_DIFF_ONLY_A, // missing in b
    TR_DIFF_ONLY_B, // missing in a
} tr_diff_kind;

typedef struct tr_diff_tensor {
    const char *file; // "model" or "optimizer"
    char *name;       // as in a, or in b when only there
    tr_diff_kind kind;
    int64_t count;      // elements (of a, or of b when only there)
    int64_t different;  // elements whose bits (other dtype: whose values) differ
    int64_t not_finite; // those of them with an infinity or NaN on either side; left
                        // out of the figures below
    double max_abs;     // largest |a - b|
    double max_rel;     // largest |a - b| / max(|a|, |b|)
    double l2;          // square root of the sum of (a - b)^2
    double l2_a;        // square root of the sum of a^2, over finite a
} tr_diff_tensor;

// A value of state.json that differs, as text; "" where there is none.
typedef struct tr_diff_state {
    char key[64]; // "step", "loss_scale.scale"
    char a[32], b[32];
} tr_diff_state;

// The structs in its lists keep their size. A later version of the library puts further
// members into lists of their own, behind these.
typedef struct tr_diff {
    size_t size; // of this struct; the library fills no more
    char *a, *b; // the paths compared
    tr_diff_tensor *tensors;
    size_t count;
    size_t different_tensors; // all kinds but TR_DIFF_SAME
    int64_t elements, different, not_finite;
    double max_abs, max_rel; // over all tensors
    bool identical;          // every tensor is TR_DIFF_SAME, and no state differs
    // If both sides are checkpoints, their optimizers and states are compared, too.
    // Otherwise only the weights are.
    bool checkpoint_a, checkpoint_b;
    bool optimizer_a, optimizer_b; // there is an optimizer.safetensors
    tr_diff_state *states;
    size_t state_count;
} tr_diff;

// Compares two paths tensor by tensor, in pieces of 1 MiB. Names match if they are
// equal, or equal without a leading "transformer.". If the two differ, the status is
// still TR_OK: see `identical`. The caller destroys *out. TR_IO: as for
// tr_checkpoint_inspect; TR_MEMORY.
TR_API tr_status tr_checkpoint_diff(const char *a, const char *b, tr_diff **out,
                                    tr_error *err);
TR_API void tr_diff_destroy(tr_diff *diff); // NULL-safe

// Prints the tensors that differ and a summary, or everything as one JSON object.
// TR_IO: `to` takes no more. TR_MEMORY.
TR_API tr_status tr_diff_print(const tr_diff *diff, const tr_sink *to, tr_error *err);
TR_API tr_status tr_diff_print_json(const tr_diff *diff, const tr_sink *to,
                                    tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
