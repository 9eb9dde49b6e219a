// What is behind a tr_comm: the common part, and the table of functions in which the
// ways of moving bytes differ. A transport's own struct begins with a tr_comm.
#ifndef TR_COMM_TRANSPORT_H
#define TR_COMM_TRANSPORT_H

#include "comm/comm.h"

#include <stdatomic.h>

// An operation as the transports get it. They see broadcasts and records too.
typedef struct tr_task {
    tr_comm_op op;
    int root;      // >= 0: all elements are this rank's part (a broadcast is a gather
                   // of all ranks)
    bool record;   // outside of the step's traffic
    int64_t pitch; // elements from a member's part of the whole to the next one's; 0: a
                   // shard's
} tr_task;

typedef struct tr_transport {
    int64_t (*start)(tr_comm *comm, const tr_task *task);
    tr_status (*wait)(tr_comm *comm, tr_comm_channel channel, int64_t ticket,
                      tr_error *err);
    void (*watch)(tr_comm *comm, tr_comm_channel channel, tr_task_span *spans,
                  int64_t count);
    // `beside` is not NULL. The member may be: no thread of the transport's looks.
    void (*beside)(tr_comm *comm, const tr_comm_beside *beside);
    bool (*is_broken)(const tr_comm *comm);
    void (*notice)(tr_comm *comm);                         // tell the others
    void (*abandon)(tr_comm *comm, const tr_error *error); // its message has a lead
    bool (*speaks)(const tr_comm *comm);
    void (*close)(tr_comm *comm); // frees it
    void (*end)(tr_comm *comm, int exit_status);
    int64_t chunks; // bytes of a reduction that are best under way at once; 0: a window
} tr_transport;

// What a rank says of itself in tr_comm_agree.
typedef struct tr_word {
    int64_t status;
    uint64_t message; // hash
} tr_word;

// Where a channel works in the staging; NULL: no room for that.
typedef struct tr_comm_place {
    char *chunks; // of a reduction on their way: [TR_COMM_WINDOW][TR_COMM_CHUNK], or
                  // what the room says
    char *sums;   // of nodes, [tr__comm_sums_bytes]
    char *slots;  // of ferried operations
} tr_comm_place;

struct tr_comm {
    const tr_transport *transport;
    int rank, ranks, threads;
    int local;      // ranks on this machine
    int local_rank; // this one's number among them
    int node_ranks; // ranks on each node, as found; 0: not so many on each
    int64_t newest[TR_COMM_CHANNELS]; // tickets
    double waited;                    // seconds in tr__comm_wait
    tr_word *words;                   // [ranks], for the small calls
    tr_comm_room room;                // of the staging
    tr_comm_place places[TR_COMM_CHANNELS];
    tr_comm_ferry ferry;  // without functions: none
    int64_t notice_epoch; // clears so far
    // Epochs up to the latest in which a notice was given; 0: never. Also written by
    // the transport's thread.
    _Atomic int64_t noticed;
    // By the transport.
    _Atomic int64_t gather_bytes, reduce_bytes, record_bytes, between_bytes;
};

// Common part of a new comm of `ranks` ranks. TR_MEMORY.
tr_status tr__comm_prepare(tr_comm *comm, const tr_transport *transport, int rank,
                           int ranks, tr_error *err);
void tr__comm_release(tr_comm *comm);

// A notice was given in the last of so many epochs.
void tr__comm_note(tr_comm *comm, int64_t epochs);

// A message of a task has been sent to that rank.
void tr__comm_count_sent(tr_comm *comm, const tr_task *task, int to, int64_t bytes);

// Elements of each member's part that a slice of a ferried operation has at least, and
// the bytes of staging of one slice.
enum { TR_COMM_SLICE_LEAST = 64 };
int64_t tr__comm_slot_bytes(int64_t ranks);

// The part of a task that is member `member`'s.
void tr__task_part(const tr_task *task, int member, int64_t *first, int64_t *part);
// Can its algorithm do it?
bool tr__task_is_possible(const tr_task *task);

// Finds who shares this rank's machine, and sets `local`, `local_rank`, `node_ranks`
// and `threads`, the threads that each rank has to itself. Collective.
tr_status tr__comm_count_threads(tr_comm *comm, tr_error *err);

#endif
