// The files of a data set of text: what is in them, and whether somebody writes to
// them.
#ifndef TR_DATA_TEXT_TEXT_FILES_H
#define TR_DATA_TEXT_TEXT_FILES_H

#include "data/sources/formats.h"
#include "data/sources/joined.h"

// Opens the files that are named, as bytes.
tr_status tr__text_files_open(const tr_data_options *options,
                              const tr_data_files *files, tr_joined *text,
                              tr_error *err);
// Sizes, times and places of the files: others mean that somebody writes to them.
tr_status tr__text_files_state(const tr_joined *text, uint64_t *state, tr_error *err);
// TR_DATA where the state is another one now.
tr_status tr__text_files_check(const tr_joined *text, uint64_t state, const char *key,
                               tr_error *err);
// Folds all bytes of all files into a hash: an edit anywhere makes another one.
tr_status tr__text_files_hash(const tr_data_options *options, const tr_joined *text,
                              uint64_t *key, tr_error *err);

#endif
