// Inside of a folder that DeepSpeed saved.
#ifndef TR_FILES_DEEPSPEED_INSIDE_H
#define TR_FILES_DEEPSPEED_INSIDE_H

#include "files/deepspeed/deepspeed.h"
#include "files/safetensors/made_set.h"
#include "files/torch/torch.h"

// A file of one rank.
typedef struct tr_ds_file {
    char *path;
    int64_t rank;
    int number; // in the set of tensors
    tr_torch_file *open;
    const tr_torch_value *root;
} tr_ds_file;

typedef struct tr_ds_files {
    tr_ds_file *file; // [count], of rank 0, 1, and so on
    size_t count, capacity;
} tr_ds_files;

typedef struct tr_ds_folder {
    const char *path;
    tr_ds_files models, optimizers;
    tr_deepspeed *out;
    tr_deepspeed_is_trained is_trained;
    const void *user;
} tr_ds_folder;

// A tensor in a file of the set.
typedef struct tr_ds_part {
    const tr_stored_tensor *tensor;
    int file;
} tr_ds_part;

// Parts that lie behind one another as one, as far as it is asked for.
typedef struct tr_ds_flat {
    tr_ds_part *part;
    size_t count, capacity;
} tr_ds_flat;

// ---- unknown.c
// TR_IO: its form is not one that is read, and what is instead.
tr_status tr__ds_unknown(const tr_ds_folder *folder, const char *why, tr_error *err);

// ---- folder.c
// Finds the files, and opens them. TR_IO: some are missing, or of another kind.
tr_status tr__ds_open_files(tr_ds_folder *folder, bool verify, tr_error *err);
void tr__ds_close_files(tr_ds_files *files);

// ---- tensors.c
// Adds a tensor of a file to a flat.
tr_status tr__ds_add_part(const tr_ds_folder *folder, tr_ds_flat *flat,
                          const tr_torch_value *value, int file, tr_error *err);
void tr__ds_flat_free(tr_ds_flat *flat);

// A tensor that is being put together.
typedef struct tr_ds_whole {
    tr_stored_tensor like; // without a name
    tr_tensor_piece *piece;
    size_t count, capacity;
} tr_ds_whole;

// Its shape, of a list of numbers.
tr_status tr__ds_begin(const tr_ds_folder *folder, const tr_torch_value *shape,
                       tr_ds_whole *whole, tr_error *err);
// Its next elements: [at, at + count) of the flat.
tr_status tr__ds_take(const tr_ds_folder *folder, const tr_ds_flat *flat, int64_t at,
                      int64_t count, tr_ds_whole *whole, tr_error *err);
// Puts it into the set, as `name`, and under the other names of that parameter; state:
// of the optimizer's; NULL: it is the parameter.
tr_status tr__ds_end(const tr_ds_folder *folder, const char *name, const char *state,
                     tr_ds_whole *whole, tr_error *err);
// Puts a tensor of a file into the set as it is.
tr_status tr__ds_put(const tr_ds_folder *folder, const char *name, const char *state,
                     const tr_torch_value *value, int file, tr_error *err);

// ---- states.c
// Takes the names of the optimizer's states, and its count of updates, from one of its
// parameters': a dict, or NULL where it has none.
tr_status tr__ds_take_states(const tr_ds_folder *folder, const tr_torch_value *state,
                             const char *path, tr_error *err);

// ---- zero.c and plain.c
// Puts all tensors into the set: of ZeRO 1 to 3, and without ZeRO.
tr_status tr__ds_read_zero(tr_ds_folder *folder, tr_error *err);
tr_status tr__ds_read_plain(tr_ds_folder *folder, tr_error *err);

// A parameter was trained; other names of it are those that share it.
tr_status tr__ds_note_trained(const tr_ds_folder *folder, const char *name,
                              tr_error *err);

#endif
