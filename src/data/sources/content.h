// What is in files, as one number.
//
// A file of up to TR_CONTENT_WHOLE bytes is hashed whole. Of a larger one,
// TR_CONTENT_BLOCKS blocks of TR_CONTENT_BLOCK bytes are, at even distances from its
// first byte to its last: a change that lies between them goes unnoticed. Sizes and the
// order of the files count; names do not.
#ifndef TR_DATA_SOURCES_CONTENT_H
#define TR_DATA_SOURCES_CONTENT_H

#include "data/sources/paths.h"

enum {
    TR_CONTENT_WHOLE = 16 << 20,
    TR_CONTENT_BLOCK = 1 << 16,
    TR_CONTENT_BLOCKS = 256,
};

// Folds what is in the files into *hash. TR_DATA: a file cannot be opened; TR_IO: it
// cannot be read; TR_MEMORY.
tr_status tr__content_hash(const tr_file_list *list, uint64_t *hash, tr_error *err);

#endif
