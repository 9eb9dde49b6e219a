// Gather and reduce over point-to-point messages, stage by stage (stages.h). In step
// i = 1 .. W - 1 of a stage a member of a group of W sends to member + i and receives
// from member - i (both modulo W), so that at any time every one sends to one and
// receives from one. Parts go in chunks, a few of each direction under way at once.
// Nothing here waits: tr__mover_advance is called again and again.
//
// A reduction adds to a member's own part that of member - 1, then that of member - 2,
// and so on. Bytes that a rank sends: gather: W - 1 times its own part; reduce: the
// others' parts; nothing besides.
#ifndef TR_COMM_MPI_MOVE_H
#define TR_COMM_MPI_MOVE_H

#include "comm/stages.h"

#include <mpi.h>

// Messages of a direction under way, where the staging does not bound them.
enum { TR_LANE = 16 };

// A message under way.
typedef struct tr_mpi_piece {
    int step;
    char *at;       // in the caller's buffer: where it comes from or goes to
    int64_t offset; // bytes, in the part
    int bytes;
} tr_mpi_piece;

// One direction of an operation. Messages are dealt with in their order.
typedef struct tr_lane {
    MPI_Request requests[TR_LANE];
    tr_mpi_piece pieces[TR_LANE];
    int64_t posted, done;
    int step;       // of the next piece
    int64_t offset; // likewise
} tr_lane;

typedef struct tr_mpi_mover {
    tr_comm *base;
    MPI_Comm comm;
    tr_comm_channel channel;
    tr_comm_group group; // of the task under way, all ranks where it says none
    int member;          // this rank's number in it
    tr_stages stages;    // of the task
    tr_stage stage;      // under way
    tr_lane out, in;     // of the stage
} tr_mpi_mover;

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

#endif
