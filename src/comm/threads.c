// Cores of a rank: those that it may run on, shared with the ranks of the same machine
// that may run on them too.
#include "comm/transport.h"

#include "base/cores.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CORES_MAX = 4096, WORD_BITS = 64 };

typedef struct seat {
    uint64_t machine; // hash
    int64_t threads;  // as the user wants it; 0: as many as there are cores
    uint64_t cores[CORES_MAX / WORD_BITS];
} seat;

// The kernel's own number, which containers on one machine share; else the host's name.
static uint64_t machine_hash(void) {
    char text[256] = {0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || !fgets(text, sizeof text, file)) {
        gethostname(text, sizeof text - 1);
    }
    if (file) {
        fclose(file);
    }
    return tr__hash_text(text);
}

static void take_seat(seat *own) {
    *own = (seat){.machine = machine_hash()};
    if (getenv("OMP_NUM_THREADS")) {
        own->threads = tr__parallel_threads();
    }
    tr__cores_mask(own->cores, sizeof own->cores);
}

static int common_cores(const seat *a, const seat *b) {
    int count = 0;
    if (a->machine != b->machine) {
        return 0;
    }
    for (int i = 0; i < CORES_MAX / WORD_BITS; i++) {
        count += __builtin_popcountll(a->cores[i] & b->cores[i]);
    }
    return count;
}

static int threads_of(const seat *seats, int ranks, int rank) {
    const seat *own = &seats[rank];
    int sharing = 0;
    if (own->threads > 0) {
        return (int)own->threads;
    }
    for (int r = 0; r < ranks; r++) {
        sharing += common_cores(own, &seats[r]) > 0;
    }
    int threads = sharing > 0 ? common_cores(own, own) / sharing : 1;
    return threads > 0 ? threads : 1;
}

static int least_threads(const seat *seats, int ranks) {
    int least = threads_of(seats, ranks, 0);
    for (int r = 1; r < ranks; r++) {
        int threads = threads_of(seats, ranks, r);
        least = threads < least ? threads : least;
    }
    return least;
}

// Of the first `ranks`, those on that machine.
static int count_local(const seat *seats, int ranks, uint64_t machine) {
    int count = 0;
    for (int r = 0; r < ranks; r++) {
        count += seats[r].machine == machine;
    }
    return count;
}

// 0: nodes are not alike, or their ranks do not follow each other.
static int node_ranks(const seat *seats, int ranks) {
    int on_first = 1;
    while (on_first < ranks && seats[on_first].machine == seats[0].machine) {
        on_first++;
    }
    for (int r = 1; r < ranks; r++) {
        bool same = seats[r].machine == seats[r - 1].machine;
        if (same == (r % on_first == 0)) {
            return 0;
        }
    }
    return ranks % on_first == 0 ? on_first : 0;
}

tr_status tr__comm_count_threads(tr_comm *comm, tr_error *err) {
    tr_error mine = {0};
    seat own, *all = tr__calloc((size_t)comm->ranks, sizeof *all);
    if (!all) {
        tr_fail(&mine, TR_MEMORY, "no memory for the ranks");
    }
    tr_status status = tr_comm_agree(comm, &mine, err);
    if (status == TR_OK) {
        take_seat(&own);
        status = tr__comm_all_gather(comm, &own, sizeof own, all, err);
    }
    if (status == TR_OK) {
        comm->threads = least_threads(all, comm->ranks);
        comm->local = count_local(all, comm->ranks, own.machine);
        comm->local_rank = count_local(all, comm->rank, own.machine);
        comm->node_ranks = node_ranks(all, comm->ranks);
    }
    tr__free(all);
    return status;
}
