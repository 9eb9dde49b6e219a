// Transfers between memory and a file, several at once and done in any order.
//
//     nvme.c            the file: made, reserved, unlinked; chooses the method
//     nvme_uring.c      io_uring
//     nvme_threads.c    threads that call pread and pwrite
//
// A method's own struct begins with a tr_nvme. All calls but create and pin are for one
// thread.
#ifndef TR_BACKEND_HOST_NVME_H
#define TR_BACKEND_HOST_NVME_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

// Transfers that keep a disk busy: two of 1 MiB have a latency's worth of bytes under
// way on the fastest ones of today, the rest is for several disks behind one folder.
enum { TR_NVME_SLOTS = 16, TR_NVME_CHUNK = 1 << 20 };

typedef struct tr_nvme_transfer {
    bool write;
    char *memory; // [bytes]
    int64_t bytes, offset;
    int64_t result; // bytes done, perhaps fewer; or -errno
} tr_nvme_transfer;

typedef struct tr_nvme {
    const struct tr_nvme_method *method;
    tr_nvme_transfer slots[TR_NVME_SLOTS];
} tr_nvme;

typedef struct tr_nvme_method {
    const char *name;
    // Begins the transfer in that slot, which is not under way. Returns 0 or errno.
    int (*begin)(tr_nvme *nvme, int slot);
    // A slot whose transfer has ended, waiting for one up to `seconds` (negative: as
    // long as it takes); -1: none has. Something is under way.
    int (*end)(tr_nvme *nvme, double seconds);
    // Memory that transfers will use: spares them looking its pages up. NULL: no use.
    bool (*pin)(tr_nvme *nvme, void *memory, int64_t bytes);
    void (*destroy)(tr_nvme *nvme); // nothing is under way
} tr_nvme_method;

// A file of `bytes` bytes in `folder`, reserved on the disk and without a name. Errors
// as tr__copy_engine_create. *direct: past the page cache.
tr_status tr__nvme_create(const char *folder, int64_t bytes, bool plain, tr_nvme **out,
                          bool *direct, tr_error *err);
void tr__nvme_destroy(tr_nvme *nvme); // NULL-safe

// The methods take the file over, also where they fail. uring: *out stays NULL where
// io_uring cannot be had, and the file stays the caller's.
tr_status tr__nvme_uring_create(int file, tr_nvme **out, tr_error *err);
tr_status tr__nvme_threads_create(int file, tr_nvme **out, tr_error *err);

#endif
