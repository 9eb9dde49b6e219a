// XXH3, 64 bits: names to streams, files to manifests, plans to one number.
#ifndef TR_BASE_HASH_H
#define TR_BASE_HASH_H

#include <tranche/status.h>

#include <stddef.h>
#include <stdint.h>

uint64_t tr__hash(const void *data, size_t bytes);
uint64_t tr__hash_text(const char *text);
// Folds `bytes` of `data` into a running hash (start with 0).
uint64_t tr__hash_more(uint64_t hash, const void *data, size_t bytes);
// Hash of a file's content, read in pieces. TR_IO when it cannot be read.
tr_status tr__hash_file(const char *path, uint64_t *out, tr_error *err);

#endif
