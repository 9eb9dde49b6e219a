#include "comm/rounds.h"

#include "base/checked.h"

#include <string.h>

// ---- who, and which parts

int tr__rounds(tr_comm_algorithm algorithm, int members) {
    int rounds = 0;
    if (algorithm != TR_COMM_TREE) {
        return members - 1;
    }
    while (1 << rounds < members) {
        rounds++;
    }
    return rounds;
}

static tr_round direct(bool gathers, int members, int number) {
    (void)members;
    return (tr_round){number + 1, gathers ? 0 : number + 1, 1};
}

// A reduction's part begins with the member after its owner, and ends there.
static tr_round ring(bool gathers, int members, int number) {
    (void)members;
    return (tr_round){1, gathers ? -number : -1 - number, 1};
}

// A reduction makes the rounds of a gather in the other order, from the receiver to
// the sender.
static tr_round tree(bool gathers, int members, int number) {
    int last = tr__rounds(TR_COMM_TREE, members) - 1;
    int apart = 1 << (gathers ? number : last - number);
    int parts = apart < members - apart ? apart : members - apart;
    return gathers ? (tr_round){apart, 0, parts} : (tr_round){-apart, -apart, parts};
}

tr_round tr__round(const tr_comm_op *op, int members, int number) {
    static tr_round (*const round_of[TR_COMM_ALGORITHMS])(bool, int, int) = {
        [TR_COMM_DIRECT] = direct, [TR_COMM_RING] = ring, [TR_COMM_TREE] = tree};
    return round_of[op->algorithm](op->kind == TR_COMM_GATHER, members, number);
}

// ---- where the parts are

static int around(int number, int members) {
    return (number % members + members) % members;
}

void tr__round_run(const tr_task *task, int members, const tr_round *round, int sender,
                   int run, int64_t *first, int64_t *count) {
    int begin = around(sender + round->last - (round->parts - 1), members);
    int end = begin + round->parts;
    int from = run == 0 ? begin : 0;
    int to = run == 0 ? (end < members ? end : members) : end - members;
    int64_t last, part;
    *first = *count = 0;
    if (from < to) {
        tr__task_part(task, from, first, &part);
        tr__task_part(task, to - 1, &last, &part);
        *count = last + part - *first;
    }
}

// ---- sums along a tree

// Elements of the parts of members [from, to).
static int64_t elements(const tr_comm_op *op, int from, int to) {
    return tr__min_i64(op->count, to * op->shard) -
           tr__min_i64(op->count, from * op->shard);
}

int64_t tr__tree_at(const tr_comm_op *op, int members, int member, int number) {
    int from = member + 1 - number; // the parts of members from there to this one
    return from >= 0
               ? elements(op, from, member + 1)
               : elements(op, 0, member + 1) + elements(op, from + members, members);
}

void tr__tree_begin(const tr_comm_op *op, int members, int member, void *sums) {
    int64_t size = (int64_t)tr__comm_type_bytes(op->type);
    for (int i = 0; i < members; i++) {
        int64_t first, part, at = tr__tree_at(op, members, member, i);
        tr__comm_part(op->count, op->shard, around(member - i, members), &first, &part);
        if (part > 0) {
            memcpy((char *)sums + at * size, (const char *)op->send + first * size,
                   (size_t)(part * size));
        }
    }
}
