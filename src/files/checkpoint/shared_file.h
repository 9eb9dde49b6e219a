// A safetensors file that all ranks of a run write together, each its own part.
#ifndef TR_FILES_CHECKPOINT_SHARED_FILE_H
#define TR_FILES_CHECKPOINT_SHARED_FILE_H

#include "comm/comm.h"
#include "files/checkpoint/checkpoint.h"
#include "files/safetensors/tensor_writer.h"

// How far a save has come; the user hears of it from rank 0.
typedef struct tr_meter {
    tr_progress progress;
    int64_t done, total; // bytes
} tr_meter;

typedef struct tr_shared_file {
    // Set by the caller, zero for the rest; borrowed.
    tr_comm *comm; // NULL: alone
    const char *path;
    const tr_checkpoint_tensor *tensors; // [count]; of all ranks but for the pieces
    size_t count;
    tr_tensor_source source; // of pieces without data
    bool finite;             // refuses floats that are not, as stored: TR_NUMBERS
    size_t tensor_count;     // that the pieces make up
    size_t *first_of;        // [count] the first piece of each one's tensor
    size_t *tensor_of;       // [count] which tensor of the writer's each is a piece of
    size_t *order;           // [count] the pieces as they lie in the file
    uint16_t *rounded;       // what is rounded on its way; NULL: nothing is
    tr_tensor_writer *writer;
    // The header (rank 0's), then this rank's of tensors, and how many there are so
    // far.
    tr_stretch *own; // [slots]
    size_t used;
    size_t slots;    // the most that a rank can have
    tr_stretch *all; // [ranks][slots]
} tr_shared_file;

// Bytes that this rank writes of the tensors, and that all do (once the file is open).
int64_t tr__shared_file_own_bytes(const tr_shared_file *file);
int64_t tr__shared_file_bytes(const tr_shared_file *file);

// How many tensors the pieces make up, once the file is open.
size_t tr__shared_file_tensors(const tr_shared_file *file);

// In this order, each once all ranks have come through the one before it:
// Rank 0 makes the file and reserves its size; the others open it.
tr_status tr__shared_file_open(tr_shared_file *file, tr_error *err);
// Writes and syncs this rank's pieces.
tr_status tr__shared_file_write(tr_shared_file *file, tr_meter *meter, tr_error *err);
// Collective: rank 0 learns what the others have written.
tr_status tr__shared_file_gather(tr_shared_file *file, tr_error *err);
// On rank 0: the file's size and the XXH3 hash of all its bytes. What others wrote is
// read back for it, and compared with what they meant to write: TR_IO when it differs,
// TR_INTERNAL when the pieces are not the whole.
tr_status tr__shared_file_finish(tr_shared_file *file, tr_meter *meter,
                                 tr_file_record *record, tr_error *err);

void tr__shared_file_close(tr_shared_file *file);

#endif
