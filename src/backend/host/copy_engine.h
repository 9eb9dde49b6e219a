// Carries bytes between memory spaces on a thread of its own, one order after the
// other: the copy stream where a backend brings none, and, with a file, the NVMe
// stream.
//
// Orders are queued and worked off in the order of starting while the caller computes.
// Nothing is allocated after tr__copy_engine_create. All calls are for one calling
// thread.
#ifndef TR_BACKEND_HOST_COPY_ENGINE_H
#define TR_BACKEND_HOST_COPY_ENGINE_H

#include "base/queue.h"

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_copy_engine tr_copy_engine;

typedef enum tr_carry_kind {
    TR_CARRY_COPY,  // to = from
    TR_CARRY_READ,  // to = the file at `offset`
    TR_CARRY_WRITE, // the file at `offset` = from
} tr_carry_kind;

// Memory is borrowed until the order is done. Reads and writes: offset, bytes and the
// memory's address are multiples of TR_CARRY_ALIGN.
typedef struct tr_carry {
    tr_carry_kind kind;
    const void *from;
    void *to;
    int64_t bytes;
    int64_t offset; // in the file
} tr_carry;

enum { TR_CARRY_ALIGN = 4096, TR_CARRY_QUEUE = 256 };

// The file of a copy engine: created, its bytes reserved on the disk, opened past the
// page cache (O_DIRECT) and unlinked at once, so that nothing stays behind a process
// that dies. `folder` "": no file.
typedef struct tr_copy_engine_options {
    const char *folder;
    int64_t file_bytes;
    bool
        plain; // read and write by pread and pwrite even where io_uring is there: tests
} tr_copy_engine_options;

// TR_IO names the folder: not there, not writable, full; TR_MEMORY.
tr_status tr__copy_engine_create(const tr_copy_engine_options *options,
                                 tr_copy_engine **out, tr_error *err);
// Waits for what is under way and drops the rest. NULL-safe.
void tr__copy_engine_destroy(tr_copy_engine *copy_engine);

// How it reads and writes: "io_uring", "threads" (io_uring is not permitted), or "" (no
// file); and whether past the page cache.
const char *tr__copy_engine_method(const tr_copy_engine *copy_engine, bool *direct);

// Memory that reads and writes will use, in place of what was pinned before: spares the
// kernel looking its pages up for each. The pages are taken at once and stay in memory,
// so it is for staging. Nothing may be under way. false: not to be had, which is no
// error.
bool tr__copy_engine_pin(tr_copy_engine *copy_engine, void *memory, int64_t bytes);

// Queues an order; returns its ticket, which counts from 1; waits while the queue is
// full. After an error orders are taken and dropped.
int64_t tr__copy_engine_start(tr_copy_engine *copy_engine, const tr_carry *order);
// Until that order, and so all before it, is done. TR_IO: a read or write failed or
// came short; the message names the folder and the reason; every later wait returns the
// same. TR_INTERNAL: an order that is not aligned, not in the file, overlaps itself.
tr_status tr__copy_engine_wait(tr_copy_engine *copy_engine, int64_t ticket,
                               tr_error *err);
int64_t
tr__copy_engine_newest(const tr_copy_engine *copy_engine); // ticket; 0: none yet

// The orders that are started from now on, `count` at most, are noted in spans:
// [count], borrowed until the next call (NULL: none are noted).
void tr__copy_engine_watch(tr_copy_engine *copy_engine, tr_task_span *spans,
                           int64_t count);

// What it has carried, and how long waits have waited.
typedef struct tr_copy_engine_totals {
    int64_t copied, read, written; // bytes
    double wait_seconds;
} tr_copy_engine_totals;
tr_copy_engine_totals tr__copy_engine_totals(const tr_copy_engine *copy_engine);

#endif
