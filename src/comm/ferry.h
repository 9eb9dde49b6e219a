// Exchanges of memory that messages do not reach, by way of the staging
// (tr_comm_ferry), slice by slice. A slice has the same elements of each member's part;
// it is copied into a slot of the staging, exchanged there, and what came of it is
// copied out. While one slice is exchanged, the next one is copied in and the one
// before it out. So every element is sent once and added in the same order as if
// messages reached it. Copies of a slice into its slot follow those out of it, because
// a ferry keeps their order.
//
//     slot    [members][slice], then [slice] for the sum of a reduction
#ifndef TR_COMM_FERRY_H
#define TR_COMM_FERRY_H

#include "comm/transport.h"

typedef struct tr_ferrying {
    const tr_comm *comm;
    tr_task task;
    int members, member;            // of the task's group, and this rank's number in it
    int64_t slice;                  // elements of a part in a slice, at most
    int64_t slices, loaded, moved;  // of all, copied in (or on the way), exchanged
    int64_t in[TR_COMM_SLOTS], out; // tickets: of a slot's slice; of all copied out
} tr_ferrying;

// Begins, and copies the first slices in. TR_INTERNAL: there is no ferry, or no staging
// for it.
tr_status tr__ferrying_begin(tr_ferrying *f, const tr_comm *comm, const tr_task *task,
                             int members, int member, tr_error *err);
// Has slice `moved` come into its slot? Has all come out? Neither waits.
tr_status tr__ferrying_look_in(const tr_ferrying *f, bool *there, tr_error *err);
tr_status tr__ferrying_look_out(const tr_ferrying *f, bool *over, tr_error *err);
// The exchange of slice `moved`, within the staging.
tr_task tr__ferrying_slice(const tr_ferrying *f);
// It is done: it goes out of its slot, and another one comes in.
void tr__ferrying_moved(tr_ferrying *f);

#endif
