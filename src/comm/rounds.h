// Who sends which parts to whom. An exchange of W members is a sequence of rounds. In
// each of them a member sends some parts to one other and receives as many from one
// other:
//
//   direct   W - 1 rounds, each with another member. A gather's member sends its own
//            part, a reduction's the part of the member that it sends to
//   ring     W - 1 rounds, all with the same two neighbours. A gather's member hands on
//            the part that it has just received, a reduction's the sum so far of a part
//   tree     log2 W rounds, rounded up. A gather's member sends all parts that it has,
//            1, 2, 4 and so on, to the member as far after it (Bruck et al., IEEE TPDS
//            8(11), 1997). A reduction goes the same way back: a member sends the sums
//            so far of the parts that it would have received
//
// Each of them sends W - 1 parts of each rank. They differ in the number of messages
// that follow each other, and in whom a rank talks to.
#ifndef TR_COMM_ROUNDS_H
#define TR_COMM_ROUNDS_H

#include "comm/transport.h"

// Member m sends to member m + by, and receives from m - by. It sends the parts of the
// members m + last, m + last - 1, and so on, `parts` of them. All modulo W.
typedef struct tr_round {
    int by, last, parts;
} tr_round;

int tr__rounds(tr_comm_algorithm algorithm, int members);
// Round `number`, from 0.
tr_round tr__round(const tr_comm_op *op, int members, int number);

// The parts that member `sender` sends in a round are one run of elements of the whole,
// or, where the last member's and the first one's are among them, two. Run 0 or 1:
// elements [*first, *first + *count); *count may be 0.
enum { TR_ROUND_RUNS = 2 };
void tr__round_run(const tr_task *task, int members, const tr_round *round, int sender,
                   int run, int64_t *first, int64_t *count);

// ---- sums along a tree

// The sums so far of a member's tree lie one after the other: of its own part, of that
// of the member before it, and so on. Where the `number`-th of them begins; W: their
// end. In elements.
int64_t tr__tree_at(const tr_comm_op *op, int members, int member, int number);
// Copies what this member sends of each part to its place among the sums.
void tr__tree_begin(const tr_comm_op *op, int members, int member, void *sums);

#endif
