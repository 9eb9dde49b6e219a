// A folder of its own for each test, and datasets opened from it.
#ifndef TESTS_DATA_SCRATCH_H
#define TESTS_DATA_SCRATCH_H

#include <tranche/data.h>

#include <stddef.h>

// cmocka set-up and tear-down; *state is the folder's path.
int scratch_make(void **state);
int scratch_remove(void **state);

enum { SCRATCH_PATH_MAX = 512 };

// dst: [SCRATCH_PATH_MAX], "<folder>/<name>". Returns dst.
const char *scratch_path(char *dst, void **state, const char *name);
// The same, and writes the file there.
const char *scratch_file(char *dst, void **state, const char *name, const void *data,
                         size_t bytes);
const char *scratch_text(char *dst, void **state, const char *name, const char *text);
// A .npy file of version 1 with this dictionary and data.
const char *scratch_npy(char *dst, void **state, const char *name,
                        const char *dictionary, const void *data, size_t bytes);

// Opens options that must open, with nothing for validation.
tr_dataset *scratch_open(const tr_data_options *options);
// Opens options that must fail with this status, and with `part` in the message.
void scratch_refuse(const tr_data_options *options, tr_status status, const char *part);
// Reads one sample that must fail.
void scratch_refuse_read(tr_dataset *dataset, int64_t index, tr_status status,
                         const char *part);

#endif
