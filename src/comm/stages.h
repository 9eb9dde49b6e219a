// An operation of ranks on several nodes as a sequence of plain ones (a hierarchical
// exchange), each in a group of its own. With n members near each other on each of N
// nodes:
//
//   gather   members of the same place on their nodes gather their parts, so that each
//            part comes to a node once; then the members of a node gather what each of
//            them has got, once for each node
//   reduce   the members of a node sum their parts, once for each node's, into the
//            room for sums; then members of the same place reduce these sums. It goes
//            slice by slice, as much of each part at once as there is room
//
// A rank sends as many bytes as without, an n-th of those that would leave its node. An
// operation without near members is one stage. Sums are added in an order that n and N
// alone tell: first on a node, a member's own and then those before it, each as in the
// operation of one stage; then those of nodes likewise.
#ifndef TR_COMM_STAGES_H
#define TR_COMM_STAGES_H

#include "comm/transport.h"

// A plain operation: every member of its group exchanges with every other.
typedef struct tr_stage {
    tr_task task;
    tr_comm_group group;
    int member; // this rank's number in it
} tr_stage;

// Number `number` of its members, which go around; and which rank that is.
int tr__stage_member(const tr_stage *stage, int number);
int tr__stage_rank(const tr_stage *stage, int number);
// A gather's own part goes to its place; and so does a reduction's where there is no
// other member.
void tr__stage_put_own(const tr_stage *stage);
// Adds bytes [offset, offset + bytes) of another member's sums, at `from`, to this
// rank's part of a reduction. first: nothing has been added there yet.
void tr__stage_add(const tr_stage *stage, bool first, const void *from, int64_t offset,
                   int64_t bytes);

typedef struct tr_stages {
    tr_stage whole;
    int64_t near, nodes;
    int64_t node, place; // this rank's: its node, its number there
    int64_t slice;       // elements of a part that are summed at once
    int64_t longest;     // elements of the longest part
    int64_t at;          // of each part: where the slice begins
    int64_t next;        // stage of the slice
    char *sums;          // [nodes * slice]
} tr_stages;

// Of a task in a group that this rank is member `member` of. TR_INTERNAL: members that
// are near do not divide the group, or there is no room for sums.
tr_status tr__stages_begin(tr_stages *stages, const tr_comm *comm,
                           const tr_stage *whole, tr_error *err);
// The next stage; false: there is none.
bool tr__stages_next(tr_stages *stages, tr_stage *out);

#endif
