// Records in the cache folder: ids and labels, cut to a length, and how many there are;
// and the rows of a data set that are read from there.
//
// The file is one of text_cache.h, of u32 numbers: for each record its tokens, then
// each token, with the highest bit set where it is no target; at the end the counts.
#ifndef TR_DATA_CHAT_RECORD_FILE_H
#define TR_DATA_CHAT_RECORD_FILE_H

#include "data/text/packed.h"
#include "data/text/text_cache.h"

#include <tranche/data.h>

typedef struct tr_record_counts {
    int64_t records;                  // that were read
    int64_t samples;                  // that are kept
    int64_t cut;                      // longer than a row
    int64_t dropped;                  // with nothing to learn in what is left
    int64_t tokens, targets, longest; // longest: before it is cut
    int64_t kind;                     // tr_record_kind
} tr_record_counts;

typedef struct tr_record_writer { // zero-initialized but for the first two
    tr_text_writer *to;
    int64_t most; // tokens of a record
    tr_record_counts counts;
    uint32_t *entry; // not written yet
    size_t count, capacity;
    int64_t written; // entries
} tr_record_writer;

// An unnamed file for records of this key.
tr_text_cache tr__record_cache(uint64_t key);
// One more record. It is left out where no token but the first is a target: the first
// follows nothing.
tr_status tr__record_write(tr_record_writer *writer, const tr_token_ids *ids,
                           const tr_token_ids *labels, tr_error *err);
// All records are written: the file gets its name.
tr_status tr__record_finish(tr_record_writer *writer, tr_text_cache *cache,
                            tr_error *err);
void tr__record_writer_release(tr_record_writer *writer);

tr_status tr__record_counts_read(const tr_text_cache *cache, tr_record_counts *counts,
                                 tr_error *err);

typedef struct tr_record_rows {
    const tr_text_cache *cache; // that has been found
    int64_t length, vocabulary;
    const char *about;
} tr_record_rows;

// A data set with a row for each record: its tokens, each with the one behind it as its
// target, where that one is a target.
tr_status tr__record_rows_open(const tr_record_rows *rows, tr_dataset **out,
                               tr_error *err);
// The records as documents that share rows (packed.h), which takes them over.
tr_status tr__record_documents(const tr_record_rows *rows, tr_documents *out,
                               tr_error *err);

#endif
