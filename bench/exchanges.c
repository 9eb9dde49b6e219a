// What an exchange of ranks takes: by the library's algorithms, by MPI's own
// collectives, and by memory that the ranks of a node share. Under mpirun; rank 0
// prints a line for each kind and number of bytes of the whole: "reduce 65536
// 0.000123", the fastest of many tries,
// each of the slowest rank: other processes only make them slower.
//
//     exchanges direct|ring|tree|mpi|messages|copies|shared|NEAR [most bytes]
//
// NEAR: hierarchical, with so many ranks on each node. The library's exchanges are
// handed to its communication thread; the others are made by the thread that measures.
// "messages": what "direct" sends, in the same chunks. "shared" is the least that
// shared memory can take: what is sent lies in it already, a member adds or copies
// straight from the others' parts, and they meet at a counter before and after.
// "copies": chunks are copied into a few slots of shared memory, and added or copied
// from there; for two ranks.
#include "base/checked.h"
#include "base/clock.h"
#include "comm/add.h"
#include "comm/comm.h"

#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 40, LEAST = 4 << 10, RANKS_MAX = 64 };

typedef struct bench {
    const char *way;
    int rank, ranks;
    int64_t count, shard; // f32
    float *send, *recv;
    // of the library
    tr_comm *comm;
    tr_comm_algorithm algorithm;
    int near;
    // of shared memory
    float *parts[RANKS_MAX];
    atomic_long *meeting;
    long met;
} bench;

static void fail(const char *what) {
    fprintf(stderr, "exchanges: %s\n", what);
    exit(1);
}

static void *take(int64_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, (size_t)bytes + 64) != 0) {
        fail("no memory");
    }
    memset(memory, 0, (size_t)bytes + 64);
    return memory;
}

// ---- one exchange

static void by_library(bench *b, tr_comm_kind kind) {
    tr_error err = {0};
    bool gathers = kind == TR_COMM_GATHER;
    const tr_comm_op op = {.kind = kind,
                           .type = TR_COMM_F32,
                           .count = b->count,
                           .shard = b->shard,
                           .send = gathers ? NULL : b->send,
                           .recv = b->recv,
                           .near = b->near,
                           .algorithm = b->algorithm};
    int64_t ticket = tr__comm_start(b->comm, &op);
    if (tr__comm_wait(b->comm, TR_COMM_RANKS, ticket, &err) != TR_OK) {
        fail(err.message);
    }
}

static void by_mpi(bench *b, tr_comm_kind kind) {
    int part = (int)b->shard;
    if (kind == TR_COMM_GATHER) {
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, b->recv, part, MPI_FLOAT,
                      MPI_COMM_WORLD);
    } else {
        MPI_Reduce_scatter_block(b->send, b->recv, part, MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
    }
}

// One chunk each way after the other, with the next one on its way.
static void by_messages(bench *b, tr_comm_kind kind) {
    static float chunks[2][TR_COMM_CHUNK / 4];
    int64_t most = TR_COMM_CHUNK / 4, own = b->rank * b->shard;
    bool gathers = kind == TR_COMM_GATHER;
    for (int i = 1; i < b->ranks; i++) {
        int to = (b->rank + i) % b->ranks, from = (b->rank + b->ranks - i) % b->ranks;
        MPI_Request in[2], out[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int64_t count = tr__ceil_div(b->shard, most);
        for (int64_t k = 0; k < count + 1; k++) {
            int64_t at = k * most, some = tr__min_i64(most, b->shard - at);
            if (k < count) {
                MPI_Wait(&out[k % 2], MPI_STATUS_IGNORE);
                MPI_Irecv(gathers ? b->recv + from * b->shard + at : chunks[k % 2],
                          (int)some, MPI_FLOAT, from, 1, MPI_COMM_WORLD, &in[k % 2]);
                MPI_Isend(gathers ? b->recv + own + at : b->send + to * b->shard + at,
                          (int)some, MPI_FLOAT, to, 1, MPI_COMM_WORLD, &out[k % 2]);
            }
            if (k > 0) {
                at -= most;
                some = tr__min_i64(most, b->shard - at);
                MPI_Wait(&in[(k - 1) % 2], MPI_STATUS_IGNORE);
                if (!gathers && i == 1) {
                    tr__add_to(TR_COMM_F32, b->recv + at, b->send + own + at,
                               chunks[(k - 1) % 2], some);
                } else if (!gathers) {
                    tr__add(TR_COMM_F32, b->recv + at, chunks[(k - 1) % 2], some);
                }
            }
        }
        MPI_Waitall(2, out, MPI_STATUSES_IGNORE);
    }
}

static void meet(bench *b) {
    b->met += b->ranks;
    atomic_fetch_add(b->meeting, 1);
    while (atomic_load(b->meeting) < b->met) {
        sched_yield();
    }
}

static void by_shared(bench *b, tr_comm_kind kind) {
    int64_t own = b->rank * b->shard;
    meet(b);
    for (int i = 1; i < b->ranks; i++) {
        int other = (b->rank + b->ranks - i) % b->ranks;
        const float *from = b->parts[other];
        if (kind == TR_COMM_GATHER) {
            memcpy(b->recv + other * b->shard, from + other * b->shard,
                   (size_t)b->shard * 4);
        } else if (i == 1) {
            tr__add_to(TR_COMM_F32, b->recv, b->send + own, from + own, b->shard);
        } else {
            tr__add(TR_COMM_F32, b->recv, from + own, b->shard);
        }
    }
    meet(b);
}

enum { SLOTS = 4, SLOT = 64 << 10 };

// Slots of one rank, which it fills and the other one empties.
typedef struct slots {
    atomic_long filled, emptied;
    char room[112];
    float memory[SLOTS][SLOT / 4];
} slots;

static void use_chunk(bench *b, tr_comm_kind kind, const float *from, int64_t at,
                      int64_t count) {
    if (kind == TR_COMM_GATHER) {
        memcpy(b->recv + (1 - b->rank) * b->shard + at, from, (size_t)count * 4);
    } else {
        tr__add_to(TR_COMM_F32, b->recv + at, b->send + b->rank * b->shard + at, from,
                   count);
    }
}

static void by_copies(bench *b, tr_comm_kind kind) {
    slots *mine = (slots *)(void *)b->parts[b->rank];
    slots *theirs = (slots *)(void *)b->parts[1 - b->rank];
    const float *send = kind == TR_COMM_GATHER ? b->recv + b->rank * b->shard
                                               : b->send + (1 - b->rank) * b->shard;
    int64_t most = SLOT / 4, count = tr__ceil_div(b->shard, most), out = 0, in = 0;
    long filled = atomic_load(&mine->filled), emptied = atomic_load(&theirs->emptied);
    while (out < count || in < count) {
        bool moved = false;
        if (out < count && filled - atomic_load(&mine->emptied) < SLOTS) {
            int64_t some = tr__min_i64(most, b->shard - out * most);
            memcpy(mine->memory[filled % SLOTS], send + out * most, (size_t)some * 4);
            atomic_store(&mine->filled, ++filled);
            out++;
            moved = true;
        }
        if (in < count && atomic_load(&theirs->filled) > emptied) {
            int64_t some = tr__min_i64(most, b->shard - in * most);
            use_chunk(b, kind, theirs->memory[emptied % SLOTS], in * most, some);
            atomic_store(&theirs->emptied, ++emptied);
            in++;
            moved = true;
        }
        if (!moved) {
            sched_yield();
        }
    }
}

static void exchange(bench *b, tr_comm_kind kind) {
    if (b->comm) {
        by_library(b, kind);
    } else if (strcmp(b->way, "copies") == 0) {
        by_copies(b, kind);
    } else if (b->meeting) {
        by_shared(b, kind);
    } else if (strcmp(b->way, "messages") == 0) {
        by_messages(b, kind);
    } else {
        by_mpi(b, kind);
    }
}

// ---- measuring

static void together(bench *b) {
    if (b->comm) {
        tr__comm_barrier(b->comm, NULL);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static double slowest(bench *b, double seconds) {
    double most = seconds, all[RANKS_MAX];
    if (!b->comm) {
        MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return most;
    }
    tr__comm_all_gather(b->comm, &seconds, sizeof seconds, all, NULL);
    for (int r = 0; r < b->ranks; r++) {
        most = all[r] > most ? all[r] : most;
    }
    return most;
}

// Of one exchange, in so many after each other.
static double seconds_of(bench *b, tr_comm_kind kind, int repeats) {
    together(b);
    double begin = tr__seconds();
    for (int i = 0; i < repeats; i++) {
        exchange(b, kind);
    }
    return slowest(b, (tr__seconds() - begin) / repeats);
}

static void measure(bench *b, tr_comm_kind kind) {
    static const double least_try = 0.002; // seconds
    double once = seconds_of(b, kind, 2), least = once;
    int repeats = once < least_try ? (int)(least_try / once) + 1 : 1;
    for (int i = 0; i < TRIES; i++) {
        double seconds = seconds_of(b, kind, repeats);
        least = seconds < least ? seconds : least;
    }
    if (b->rank == 0) {
        printf("%s %lld %.9f\n", kind == TR_COMM_GATHER ? "gather" : "reduce",
               (long long)(b->count * 4), least);
        fflush(stdout);
    }
}

// ---- beginning

static void open_comm(bench *b) {
    tr_error err = {0};
    if (tr_comm_open(&b->comm, &err) != TR_OK) {
        fail(err.message);
    }
    b->rank = tr_comm_rank(b->comm);
    b->ranks = tr_comm_ranks(b->comm);
    b->algorithm = strcmp(b->way, "ring") == 0   ? TR_COMM_RING
                   : strcmp(b->way, "tree") == 0 ? TR_COMM_TREE
                                                 : TR_COMM_DIRECT;
    b->near = atoi(b->way) > 1 ? atoi(b->way) : 1;
    const tr_comm_room room = {.ranks = b->ranks,
                               .node_ranks = b->near > 1 ? b->near : 0,
                               .by_nodes = b->near > 1};
    tr__comm_staging(b->comm, &room, take(tr__comm_staging_bytes(&room)));
}

static void share(bench *b, int64_t most) {
    MPI_Win window;
    void *own;
    MPI_Win_allocate_shared(most + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    memset(own, 0, (size_t)most + 64);
    for (int r = 0; r < b->ranks; r++) {
        MPI_Aint bytes;
        int unit;
        MPI_Win_shared_query(window, r, &bytes, &unit, (void *)&b->parts[r]);
    }
    b->send = own;
    b->meeting = (atomic_long *)(void *)((char *)(void *)b->parts[0] + most);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    bench b = {.way = argc > 1 ? argv[1] : "direct"};
    int64_t most = argc > 2 ? atoll(argv[2]) : 64 << 20;
    bool copies = strcmp(b.way, "copies") == 0;
    bool shared = copies || strcmp(b.way, "shared") == 0;
    bool library =
        !shared && strcmp(b.way, "mpi") != 0 && strcmp(b.way, "messages") != 0;
    if (library) {
        open_comm(&b);
    } else {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
    }
    if (b.ranks > RANKS_MAX) {
        fail("too many ranks");
    }
    b.recv = take(most);
    if (shared) {
        share(&b, copies ? (int64_t)sizeof(slots) : most);
    }
    if (copies && b.ranks != 2) {
        fail("copies are for two ranks");
    }
    if (copies || !shared) {
        b.send = take(most);
    }
    for (int64_t bytes = LEAST; bytes <= most; bytes *= 4) {
        b.shard = bytes / 4 / b.ranks;
        b.count = b.shard * b.ranks;
        measure(&b, TR_COMM_GATHER);
        if (b.algorithm != TR_COMM_TREE || tr__comm_tree_fits(b.count, 4)) {
            measure(&b, TR_COMM_REDUCE);
        }
    }
    if (library) {
        tr_comm_close(b.comm);
    } else {
        MPI_Finalize();
    }
    return 0;
}
