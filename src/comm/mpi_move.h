// Gather and reduce over point-to-point messages, stage by stage (stages.h), and in the
// rounds of the stage's algorithm (rounds.h). Parts go in chunks, a few of each
// direction under way at once. Nothing here waits: tr__mover_advance is called again
// and again.
//
// Each kind of exchange is a pattern: which piece is next, and what is done with it
// when it has come.
//
//   direct reduction   adds to a member's own part that of member - 1, then that of
//                      member - 2, and so on
//   ring, tree         mpi_ring.c, mpi_tree.c
//
// Bytes that a rank sends in a direct exchange: gather: W - 1 times its own part;
// reduce: the others' parts; nothing besides.
#ifndef TR_COMM_MPI_MOVE_H
#define TR_COMM_MPI_MOVE_H

#include "comm/rounds.h"
#include "comm/stages.h"

#include <mpi.h>

// Messages of a direction under way, where the staging does not bound them.
enum { TR_LANE = 16 };

// A message under way.
typedef struct tr_mpi_piece {
    char *memory;   // of the message
    int64_t offset; // bytes: where it belongs in its part, or run of parts
    int bytes;      // 0: there is no message
    int round, run;
    int peer; // rank
} tr_mpi_piece;

// One direction of an operation. Messages are dealt with in their order.
typedef struct tr_lane {
    MPI_Request requests[TR_LANE];
    tr_mpi_piece pieces[TR_LANE];
    int64_t posted, done;
    int round, run; // of the next piece
    int64_t offset; // likewise
    bool over;      // there are no more
} tr_lane;

typedef struct tr_mpi_mover tr_mpi_mover;

typedef struct tr_mpi_pattern {
    // Before the first piece. NULL: nothing is to be done.
    void (*begin)(const tr_mpi_mover *mover);
    // Takes the lane's next piece. false: there is none, and the lane is over; or it
    // has to wait for others.
    bool (*next)(const tr_mpi_mover *mover, tr_lane *lane, tr_mpi_piece *piece);
    // A piece has come. NULL: it is where it belongs.
    void (*arrived)(const tr_mpi_mover *mover, const tr_mpi_piece *piece);
} tr_mpi_pattern;

struct tr_mpi_mover {
    tr_comm *base;
    MPI_Comm comm;
    tr_comm_channel channel;
    tr_comm_group group; // of the task under way, all ranks where it says none
    int member;          // this rank's number in it
    tr_stages stages;    // of the task
    tr_stage stage;      // under way
    const tr_mpi_pattern *pattern; // of the stage
    tr_lane out, in;               // likewise
};

extern const tr_mpi_pattern tr__mpi_ring_sum, tr__mpi_tree_sum;

// Sets the mover's group, all ranks where `group` says none, and this rank's number in
// it.
tr_status tr__mover_join(tr_mpi_mover *mover, const tr_comm_group *group,
                         tr_error *err);
tr_status tr__mover_begin(tr_mpi_mover *mover, const tr_task *task, tr_error *err);
// *moved: something has happened. *finished: all of it has.
tr_status tr__mover_advance(tr_mpi_mover *mover, bool *moved, bool *finished,
                            tr_error *err);
// Gives up what is under way; buffers that MPI has promised to others stay borrowed.
void tr__mover_cancel(tr_mpi_mover *mover);

// ---- for patterns

// The member that sends what goes over `lane` in a round.
int tr__mover_sender(const tr_mpi_mover *mover, const tr_lane *lane,
                     const tr_round *round);
// The rank at the other end.
int tr__mover_peer(const tr_mpi_mover *mover, const tr_lane *lane,
                   const tr_round *round);
// Has all come that comes before byte `end` of the first run of `round`?
bool tr__mover_has(const tr_mpi_mover *mover, int round, int64_t end);
// This channel's room for messages of a reduction: number mod TR_COMM_WINDOW.
char *tr__mover_chunk(const tr_mpi_mover *mover, int64_t number);

#endif
