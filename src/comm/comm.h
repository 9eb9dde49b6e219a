// What ranks do together. Two kinds of calls:
//
//   tr__comm_start ... tr__comm_wait   the step's traffic: queued, and worked off by
//       the communication thread while the caller computes. A channel works off its
//       operations one after the other, in the order of starting; those of two channels
//       go on beside each other, where the transport can. The ranks of a group start
//       its operations in the same order; ranks that are in several groups, those of
//       all of them in one order that is the same everywhere, as a plan has it: else
//       ranks may wait for each other in a circle. Nothing is allocated; messages go in
//       chunks through memory that the plan gave.
//   the others                         small and seldom: they wait.
//
// All of it is for one calling thread of each rank. A rank that fails, falls silent or
// ends makes every wait of every rank return TR_COMM (or the status that rank gave)
// within ten seconds; the comm is then broken: every further call returns the same
// error at once.
#ifndef TR_COMM_COMM_H
#define TR_COMM_COMM_H

#include "base/queue.h"
#include "comm/algorithm.h"
#include "comm/type.h"

#include <tranche/comm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tr_comm_kind {
    // Every member's part is copied to every member. recv: [count]. send: this rank's
    // part,
    // or NULL when it lies at its place in recv already.
    TR_COMM_GATHER,
    // Every member gets its part of the sum over members. send: [count]; recv: this
    // rank's
    // part, which may lie inside of send at its own place. The order of additions is
    // fixed by the number of members, by how many of them are near, and by the
    // algorithm.
    TR_COMM_REDUCE,
} tr_comm_kind;

// A message that waits for another stage of a pipeline holds up neither what ranks of a
// stage exchange nor messages that go the other way. And what computing waits for, sums
// inside of a unit, is not held up by parameters that are gathered ahead.
typedef enum tr_comm_channel {
    TR_COMM_RANKS,   // what ranks of a stage exchange, and all else
    TR_COMM_SEND,    // messages of stages, pairs that gather: what this rank sends
    TR_COMM_RECEIVE, // and what it receives
    TR_COMM_TENSOR,  // what ranks of the tensor axis exchange inside of units
    TR_COMM_CHANNELS
} tr_comm_channel;

// Ranks that exchange: first, first + stride, and so on. These are its members 0, 1,
// ... The stride may be negative.
typedef struct tr_comm_group {
    int first, stride, count; // count 0: all ranks
} tr_comm_group;

// `count` elements, of which member r of the group has [r * shard, min((r + 1) * shard,
// count)); the last ones' parts may be short or empty. shard * members >= count.
typedef struct tr_comm_op {
    tr_comm_kind kind;
    tr_comm_type type;
    int64_t count, shard; // elements
    const void *send;
    void *recv;
    bool add;            // reduce: recv += the sum, instead of =
    bool away;           // send or recv is where messages do not reach (tr_comm_ferry)
    tr_comm_group group; // this rank is one of it
    tr_comm_channel channel;
    // Members that follow each other and share a node; it divides the group. They
    // exchange among themselves, and nodes once among each other (stages.h). 0, 1, or
    // all: every member exchanges with every other.
    int near;
    tr_comm_algorithm algorithm; // where no members are near
} tr_comm_op;

// A reduction by a tree works in half of the staging's room for chunks.
bool tr__comm_tree_fits(int64_t count, int64_t element_bytes);

// Elements [*first, *first + *part) are member `member`'s; *part may be 0.
void tr__comm_part(int64_t count, int64_t shard, int member, int64_t *first,
                   int64_t *part);

// Ranks on this rank's machine, this one included.
int tr__comm_local_ranks(const tr_comm *comm);
// And this rank's number among them, from 0.
int tr__comm_local_rank(const tr_comm *comm);

// Ranks on each node: they follow each other, and all nodes have as many. 0: that is
// not so.
int tr__comm_node_ranks(const tr_comm *comm);

// What the staging is for.
typedef struct tr_comm_room {
    int64_t ranks;
    int64_t node_ranks; // on each node, they follow each other; 0: all are on one
    bool by_nodes;      // there are operations with members that are near
    bool ferries;       // there are some whose memory is away
    bool pipeline;      // there are messages of stages
    bool tensor;        // there are exchanges inside of units
    int64_t chunks;     // bytes of a reduction that are under way at once; 0: a window
} tr_comm_room;

// What this comm's ranks want there; 0: a window.
int64_t tr__comm_chunks(const tr_comm *comm);

// Bytes that tr__comm_staging wants: room for the chunks of a reduction on their way,
// for the sums of nodes, and for slices of operations whose memory is away. 0 with one
// rank.
int64_t tr__comm_staging_bytes(const tr_comm_room *room);
// Of these, those for the sums of nodes.
int64_t tr__comm_sums_bytes(const tr_comm_room *room);
// Of a channel's, those for the chunks.
int64_t tr__comm_chunks_bytes(const tr_comm_room *room, tr_comm_channel channel);
// And those that the channel works in: bytes [*first, *end).
void tr__comm_channel_staging(const tr_comm_room *room, tr_comm_channel channel,
                              int64_t *first, int64_t *end);
// Borrowed until the comm is closed, or given another (NULL: none). 64-byte aligned.
// The room also says which bytes are counted as sent between nodes.
void tr__comm_staging(tr_comm *comm, const tr_comm_room *room, void *memory);

// Carries bytes between the staging and memory that messages do not reach: copies are
// done one after the other, in the order in which they are put in. The communication
// thread makes all calls, and none may wait.
typedef struct tr_comm_ferry {
    void (*copy)(void *user, const void *from, void *to, int64_t bytes);
    int64_t (*mark)(void *user); // the ticket of what has been put in so far, from 1
    // *done: all up to that ticket is. An error is one of all ranks.
    tr_status (*look)(void *user, int64_t ticket, bool *done, tr_error *err);
    void *user;
} tr_comm_ferry;

// Copied; what `user` points at is borrowed until the comm is closed or given another
// (NULL: none). No operation may be under way.
void tr__comm_ferry(tr_comm *comm, const tr_comm_ferry *ferry);

// What ranks exchange beside the comm, while the caller waits for it in ways of its
// own. The communication thread makes both calls.
typedef struct tr_comm_beside {
    // Has it failed? Often asked; may not wait. An error is one of all ranks.
    tr_status (*look)(void *user, tr_error *err);
    // Once, when the comm is broken: who waits for what others will never do is let go.
    void (*let_go)(void *user);
    void *user;
} tr_comm_beside;

// Copied; what `user` points at is borrowed until the next call (NULL: nothing is
// beside), which waits for a call that is under way.
void tr__comm_beside(tr_comm *comm, const tr_comm_beside *beside);
// Does anybody look? Else no rank would learn that another one has ended while devices
// wait for it.
bool tr__comm_looks_beside(const tr_comm *comm);

enum {
    TR_COMM_QUEUE = 256,       // operations that may be under way
    TR_COMM_CHUNK = 256 << 10, // bytes of a message at most
    TR_COMM_WINDOW = 4,        // messages under way into the staging
    TR_COMM_SLOTS = 2,         // slices of a ferried operation under way
    TR_COMM_SLOT = 4 << 20,    // bytes of staging for a slice
    TR_COMM_TREE_BYTES = TR_COMM_WINDOW * TR_COMM_CHUNK / 2, // of a reduction
};

// Queues an operation; buffers are borrowed until it is done. Returns its ticket, which
// each channel counts from 1; waits while the queue is full. A broken comm takes it and
// does nothing.
int64_t tr__comm_start(tr_comm *comm, const tr_comm_op *op);
// The same of nothing, in the place of an operation that all its ranks leave out.
int64_t tr__comm_skip(tr_comm *comm, tr_comm_channel channel);
// Until that operation, and so all before it of its channel, is done. TR_COMM as said
// above.
tr_status tr__comm_wait(tr_comm *comm, tr_comm_channel channel, int64_t ticket,
                        tr_error *err);
// Whether an error has come up, as every wait would tell: cheap, for one who has long
// nothing to wait for.
bool tr__comm_is_broken(const tr_comm *comm);
// The ticket of the channel's newest operation; 0: none yet.
int64_t tr__comm_newest(const tr_comm *comm, tr_comm_channel channel);

// Counts an operation that others than the comm have made (tr__comm_totals), as if its
// messages had carried it.
void tr__comm_count_made(tr_comm *comm, const tr_comm_op *op);

// start and wait in one, for records outside of the step: own: [bytes] of this rank;
// all: [ranks][bytes].
tr_status tr__comm_all_gather(tr_comm *comm, const void *own, size_t bytes, void *all,
                              tr_error *err);
tr_status tr__comm_barrier(tr_comm *comm, tr_error *err);
// Rank `root`'s bytes to all.
tr_status tr__comm_broadcast(tr_comm *comm, int root, void *data, size_t bytes,
                             tr_error *err);

// A word to all ranks, out of any order: somebody asked for an end. Not collective.
// Every rank's tr__comm_noticed is true soon after; until tr__comm_notice_clear, which
// is collective (a barrier).
void tr__comm_notice(tr_comm *comm);
bool tr__comm_noticed(const tr_comm *comm);
tr_status tr__comm_notice_clear(tr_comm *comm, tr_error *err);

// The operations of a channel that are started from now on, `count` at most, are noted
// in spans: [count], borrowed until the next call (NULL: none are noted). Each is there
// once somebody has waited for it. One rank's are done when they are started, and not
// noted.
void tr__comm_watch(tr_comm *comm, tr_comm_channel channel, tr_task_span *spans,
                    int64_t count);

// What this rank has sent so far (payload of messages as handed to the transport), and
// how long its tr__comm_wait calls have waited.
typedef struct tr_comm_totals {
    int64_t gather_bytes, reduce_bytes; // of tr__comm_start
    int64_t between_bytes;              // those of both that went to other nodes
    double wait_seconds;
    int64_t record_bytes; // of the calls for records
} tr_comm_totals;
tr_comm_totals tr__comm_totals(const tr_comm *comm);

#endif
