// state.json: everything of a run that is not a tensor, and the checkpoint's manifest.
#ifndef TR_FILES_CHECKPOINT_STATE_H
#define TR_FILES_CHECKPOINT_STATE_H

#include "files/checkpoint/state_numbers.h"

#include <tranche/status.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TR_STATE_GROUPS_MAX = 32, TR_MANIFEST_FILES_MAX = 512 };

typedef struct tr_state {
    int64_t step;    // optimizer steps attempted
    int64_t update;  // of them applied
    int64_t skipped; // of them dropped for a non-finite gradient
    int64_t cursor;  // the next sample, counted from the run's first
    int64_t epoch;
    uint64_t seed;
    uint64_t dataset_hash, model_hash; // to notice a checkpoint of something else
    double loss_scale;
    int64_t good_steps; // since the scale last changed
    int64_t hysteresis; // overflows left before the scale is lowered
    int64_t group_count;
    double beta_power[TR_STATE_GROUPS_MAX][2]; // products of the betas so far, by group
    tr_state_numbers schedule;                 // what the schedule remembers
    tr_state_numbers numbers;                  // whatever else is to come back
} tr_state;

// One file of the checkpoint.
typedef struct tr_file_record {
    char name[64];
    int64_t bytes;
    uint64_t hash; // XXH3, 64 bits, of all its bytes
} tr_file_record;

typedef struct tr_manifest {
    int count;
    tr_file_record file[TR_MANIFEST_FILES_MAX];
} tr_manifest;

const tr_file_record *tr__manifest_find(const tr_manifest *manifest, const char *name);
// The same files in the same order, with the same sizes and hashes.
bool tr__manifest_same(const tr_manifest *a, const tr_manifest *b);

// The text of a state.json (with a hash of its own content), freed with tr__free.
// Doubles come back to the bit.
tr_status tr__state_encode(const tr_state *state, const tr_manifest *manifest,
                           char **text, tr_error *err);
// Strict: every field there and of its type, the hash right. `path` is for messages.
tr_status tr__state_decode(const char *path, const char *text, size_t bytes,
                           tr_state *state, tr_manifest *manifest, tr_error *err);
// The same of a file, and every number within its bounds
// (files/checkpoint/state_table.h).
tr_status tr__state_read(const char *path, tr_state *state, tr_manifest *manifest,
                         tr_error *err);

// The state as an object, without manifest and hash; NULL: no memory.
json_t *tr__state_json(const tr_state *state);
// The files as an object: {"name": {"bytes", "xxh3_64"}}; NULL: no memory.
json_t *tr__manifest_json(const tr_manifest *manifest);

#endif
