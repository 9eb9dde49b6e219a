// Token ids of text, kept in the user's cache folder, so that a text is tokenized once.
//
// A file has ids, u16 or u32 little endian, and behind them what it is known by: the
// key, which stands for all that the ids depend on, and a hash of the ids. A file that
// is not as it should be (cut off, of another version, a link) is made anew. It is
// written under another name and renamed, by one process; others wait for it.
#ifndef TR_DATA_TEXT_TEXT_CACHE_H
#define TR_DATA_TEXT_TEXT_CACHE_H

#include <tranche/status.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_text_cache {
    uint64_t key;
    int width;          // bytes of an id
    int64_t vocabulary; // ids are below it
    char path[PATH_MAX];
    int64_t ids, documents; // once there are some
    uint64_t hash;          // of the ids
} tr_text_cache;

// A file that is being written. The name that others look for is free until it is kept.
typedef struct tr_text_writer {
    char path[PATH_MAX];
    int file; // -1: none
    int64_t bytes;
} tr_text_writer;

// Names the file. TR_IO: the user has no cache folder, or it cannot be made.
tr_status tr__text_cache_name(tr_text_cache *cache, tr_error *err);
// Are the ids there? All of them are read, and checked.
bool tr__text_cache_find(tr_text_cache *cache);

typedef enum tr_text_claim {
    TR_TEXT_OURS,  // *writer is open
    TR_TEXT_TAKEN, // another process is at work on it
} tr_text_claim;

// Begins to write, unless another process does. alone: under a name that no other
// process takes, whatever others do.
tr_status tr__text_cache_claim(const tr_text_cache *cache, bool alone,
                               tr_text_writer *writer, tr_text_claim *claim,
                               tr_error *err);
// How far another process has come: a number that changes while it works.
int64_t tr__text_cache_progress(const tr_text_cache *cache);
tr_status tr__text_cache_write(tr_text_writer *writer, const void *ids, size_t bytes,
                               tr_error *err);
// Gives the file its name: it is complete, with cache->ids and cache->documents.
tr_status tr__text_cache_keep(tr_text_cache *cache, tr_text_writer *writer,
                              tr_error *err);
// What is written so far goes.
void tr__text_cache_drop(tr_text_writer *writer);

#endif
