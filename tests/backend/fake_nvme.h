// A file in memory whose transfers end in a random order and move their bytes at a
// random moment between their begin and their end; with faults to order.
#ifndef TESTS_BACKEND_FAKE_NVME_H
#define TESTS_BACKEND_FAKE_NVME_H

#include "backend/host/nvme.h"

#include <stdatomic.h>

typedef struct fake_nvme {
    tr_nvme base;
    char *bytes; // the file
    uint64_t random;
    bool under_way[TR_NVME_SLOTS], moved[TR_NVME_SLOTS];
    int count, most; // under way now, and at most so far
    int begun, ended;

    // Set before the copy engine is created.
    bool in_parts;       // a transfer may end with a part of its bytes done
    int interrupt_every; // every so manieth end is EINTR; 0: none
    int fail_at;         // the so manieth end ...; 0: none
    int fail_result;     // ... has this result
    int refuse_at;       // the so manieth begin returns EIO; 0: none
    int *left_behind;    // set to `count` when it is destroyed

    // Nothing ends as long as this is set.
    atomic_bool hold;
} fake_nvme;

// destroy() of its method frees it.
fake_nvme *fake_nvme_make(int64_t bytes, uint64_t seed);

#endif
