// exchange W [N], on W ranks: gathers and reduces of every shape, small calls, totals;
// as if N ranks were on each node, by way of nodes. exchange W ring, exchange W tree:
// by that algorithm, where it can be. Each rank checks what it got
// against what it can compute alone; the first difference ends all.
#include "base/half.h"
#include "comm/comm.h"
#include "comm/orders.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tr_comm *comm;
static int rank, ranks;
static tr_comm_group group; // of the operations that are tried now
static int member;          // this rank's number in it
static int near = 1;        // ranks on each node; 1: there are no nodes
static tr_comm_algorithm algorithm = TR_COMM_DIRECT;

static int rank_of(int which) {
    return group.first + group.stride * which;
}

static void fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "rank %d: ", rank);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _Exit(1);
}

static void must(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fail("%s", err->message);
    }
}

static void *take(int64_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, (size_t)bytes + 64) != 0) {
        fail("no memory");
    }
    return memory;
}

static size_t size_of(tr_comm_type type) {
    return type == TR_COMM_I64    ? 8
           : type == TR_COMM_F32  ? 4
           : type == TR_COMM_BYTE ? 1
                                  : 2;
}

// ---- what element `i` of rank `r` is; small integers, so that sums are exact

static int64_t value(int r, int64_t i) {
    return (i * 7 + r * 13 + 1) % 1000;
}

// The same in a type, so small that sums of 8 ranks are exact in its 8 or 11 bits.
static int64_t value_of(tr_comm_type type, int r, int64_t i) {
    int64_t most = type == TR_COMM_BF16 ? 31 : type == TR_COMM_F16 ? 251 : 1000;
    return value(r, i) % most;
}

static void put(tr_comm_type type, void *at, int64_t i, int64_t v) {
    switch (type) {
    case TR_COMM_BYTE:
        ((uint8_t *)at)[i] = (uint8_t)v;
        break;
    case TR_COMM_F32:
        ((float *)at)[i] = (float)v;
        break;
    case TR_COMM_I64:
        ((int64_t *)at)[i] = v << 33; // sums that need more than 32 bits
        break;
    case TR_COMM_BF16:
        ((uint16_t *)at)[i] = tr__bf16_of_f32((float)v);
        break;
    case TR_COMM_F16:
        ((uint16_t *)at)[i] = tr__f16_of_f32((float)v);
        break;
    }
}

static int64_t get(tr_comm_type type, const void *at, int64_t i) {
    switch (type) {
    case TR_COMM_BYTE:
        return ((const uint8_t *)at)[i];
    case TR_COMM_F32:
        return (int64_t)((const float *)at)[i];
    case TR_COMM_BF16:
        return (int64_t)tr__bf16_to_f32(((const uint16_t *)at)[i]);
    case TR_COMM_F16:
        return (int64_t)tr__f16_to_f32(((const uint16_t *)at)[i]);
    default:
        return ((const int64_t *)at)[i] >> 33;
    }
}

// What elements are repeats after PERIOD of them. So it is made for one period, twice
// in a row, and copied, or compared as bytes.
enum { PERIOD = 1000 };

typedef struct pattern {
    size_t size; // of an element
    char bytes[2 * PERIOD * sizeof(int64_t)];
} pattern;

// Sums of what the ranks of the group `of` have, on top of `base`.
static pattern sums_of(tr_comm_type type, tr_comm_group of, int64_t base) {
    pattern p = {.size = size_of(type)};
    for (int64_t i = 0; i < PERIOD; i++) {
        int64_t sum = base;
        for (int k = 0; k < of.count; k++) {
            sum += value_of(type, of.first + of.stride * k, i);
        }
        put(type, p.bytes, i, sum);
        put(type, p.bytes, i + PERIOD, sum);
    }
    return p;
}

static pattern pattern_of(tr_comm_type type, int r) {
    return sums_of(type, (tr_comm_group){r, 1, 1}, 0);
}

// The elements from `first` on, at most a period of them, of `count`.
static const char *piece(const pattern *p, int64_t first, int64_t count,
                         size_t *bytes) {
    *bytes = (size_t)(count < PERIOD ? count : PERIOD) * p->size;
    return p->bytes + (size_t)(first % PERIOD) * p->size;
}

static void fill(void *to, const pattern *p, int64_t first, int64_t count) {
    size_t bytes;
    for (int64_t i = 0; i < count; i += PERIOD) {
        const char *from = piece(p, first + i, count - i, &bytes);
        memcpy((char *)to + (size_t)i * p->size, from, bytes);
    }
}

// `count` elements at `got`, which are those from `first` on.
static void check(const char *what, const tr_comm_op *op, const void *got,
                  const pattern *p, int64_t first, int64_t count) {
    size_t bytes;
    for (int64_t i = 0; i < count; i += PERIOD) {
        const char *wanted = piece(p, first + i, count - i, &bytes);
        const char *is = (const char *)got + (size_t)i * p->size;
        if (memcmp(is, wanted, bytes) == 0) {
            continue;
        }
        for (int64_t k = 0; k < PERIOD && i + k < count; k++) {
            if (memcmp(is + (size_t)k * p->size, wanted + (size_t)k * p->size,
                       p->size) != 0) {
                fail("%s of %" PRId64 " in shards of %" PRId64 ": element %" PRId64
                     " is %" PRId64 ", not %" PRId64,
                     what, op->count, op->shard, first + i + k, get(op->type, is, k),
                     get(op->type, wanted, k));
            }
        }
    }
}

static void check_guard(const char *what, const void *end) {
    for (int i = 0; i < 8; i++) {
        if (((const uint8_t *)end)[i] != 0xA5) {
            fail("%s wrote past its end", what);
        }
    }
}

// ---- memory that messages do not reach

enum { COPIES = 4096 }; // that wait to be done, at most

// Copies are done when somebody asks for them, and not before.
typedef struct late_copy {
    const void *from;
    void *to;
    size_t bytes;
} late_copy;

static bool away; // all operations are of such memory
static late_copy copies[COPIES];
static int64_t put_in, copied;

// An address there is one that no processor has: whoever looks at it dies.
static void *toggled(const void *at) {
    return (void *)((uintptr_t)at ^ (uintptr_t)1 << 62);
}

static void *reached(const void *at) {
    return (uintptr_t)at >> 62 & 1 ? toggled(at) : (void *)(uintptr_t)at;
}

static void put_copy(void *user, const void *from, void *to, int64_t bytes) {
    (void)user;
    if (put_in - copied == COPIES) {
        fail("%d copies wait", COPIES);
    }
    copies[put_in++ % COPIES] = (late_copy){reached(from), reached(to), (size_t)bytes};
}

static int64_t mark(void *user) {
    (void)user;
    return put_in;
}

// Who looks for the first time finds nothing done yet.
static tr_status look(void *user, int64_t ticket, bool *done, tr_error *err) {
    static int64_t looked;
    (void)user, (void)err;
    for (; copied < ticket && looked >= ticket; copied++) {
        const late_copy *c = &copies[copied % COPIES];
        memcpy(c->to, c->from, c->bytes);
    }
    looked = ticket > looked ? ticket : looked;
    *done = copied >= ticket;
    return TR_OK;
}

static int64_t start(const tr_comm_op *op) {
    tr_comm_op mine = *op;
    bool all = op->group.count == 0 || op->group.count == ranks;
    mine.away = away;
    mine.near = all ? near : 1;
    mine.algorithm = op->kind == TR_COMM_GATHER || algorithm != TR_COMM_TREE ||
                             tr__comm_tree_fits(op->count, (int64_t)size_of(op->type))
                         ? algorithm
                         : TR_COMM_DIRECT;
    if (away) {
        mine.send = op->send ? toggled(op->send) : NULL;
        mine.recv = toggled(op->recv);
    }
    return tr__comm_start(comm, &mine);
}

// ---- one operation

// By the rule, and not by tr__comm_part: shard after shard, until the elements end.
static int64_t start_of(const tr_comm_op *op, int64_t which) {
    return which * op->shard < op->count ? which * op->shard : op->count;
}

static void gather(tr_comm_type type, int64_t count, int64_t shard, bool in_place) {
    tr_error err = {0};
    size_t size = size_of(type);
    int64_t first, part, bytes = count * (int64_t)size;
    tr_comm_op op = {TR_COMM_GATHER, type,  count, shard,         NULL, take(bytes),
                     false,          false, group, TR_COMM_RANKS, 1,    algorithm};
    memset(op.recv, 0, (size_t)bytes);
    memset((char *)op.recv + bytes, 0xA5, 8);
    tr__comm_part(count, shard, member, &first, &part);
    char *own =
        in_place ? (char *)op.recv + first * (int64_t)size : take(part * (int64_t)size);
    pattern mine = pattern_of(type, rank);
    fill(own, &mine, first, part);
    op.send = in_place ? NULL : own;
    must(tr__comm_wait(comm, TR_COMM_RANKS, start(&op), &err), &err);
    for (int k = 0; k < group.count; k++) {
        pattern theirs = pattern_of(type, rank_of(k));
        first = start_of(&op, k);
        check("gather", &op, (char *)op.recv + first * (int64_t)size, &theirs, first,
              start_of(&op, k + 1) - first);
    }
    check_guard("gather", (char *)op.recv + bytes);
    free(op.recv);
    if (!in_place) {
        free(own);
    }
}

static void reduce(tr_comm_type type, int64_t count, int64_t shard, bool in_place,
                   bool add) {
    tr_error err = {0};
    int64_t size = (int64_t)size_of(type), first, part;
    char *send = take(count * size);
    pattern mine = pattern_of(type, rank);
    fill(send, &mine, 0, count);
    tr__comm_part(count, shard, member, &first, &part);
    char *recv = in_place ? send + first * size : take(part * size);
    for (int64_t i = 0; i < part && !in_place; i++) {
        put(type, recv, i, 5);
    }
    if (!in_place) {
        memset(recv + part * size, 0xA5, 8);
    }
    tr_comm_op op = {TR_COMM_REDUCE, type,  count,         shard, send,     recv, add,
                     false,          group, TR_COMM_RANKS, 1,     algorithm};
    must(tr__comm_wait(comm, TR_COMM_RANKS, start(&op), &err), &err);
    pattern sums = sums_of(type, group, add ? 5 : 0);
    int64_t from = start_of(&op, member), to = start_of(&op, member + 1);
    check("reduce", &op, recv, &sums, from, to - from);
    // The others' parts of what was sent are as they were.
    int64_t end = in_place ? to : from;
    check("what a reduce sent", &op, send, &mine, 0, from);
    check("what a reduce sent", &op, send + end * size, &mine, end, count - end);
    if (!in_place) {
        check_guard("reduce", recv + part * size);
        free(recv);
    }
    free(send);
}

static void shapes(void) {
    const int members = group.count;
    static const tr_comm_type summed[] = {TR_COMM_F32, TR_COMM_I64, TR_COMM_BF16,
                                          TR_COMM_F16};
    enum { SUMMED = sizeof summed / sizeof *summed };
    static const int64_t counts[] = {0, 1, 3, 1023, 1024, 1025, (1 << 20) + 5};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t count = counts[i], even = (count + members - 1) / members;
        // Even shards; whole blocks, which leave some ranks short or empty; all of it
        // to the first.
        const int64_t shards[] = {even > 0 ? even : 1, (even / 1024 + 1) * 1024,
                                  count > 0 ? count : 1};
        for (int s = 0; s < 3; s++) {
            for (int in_place = 0; in_place < 2; in_place++) {
                gather(TR_COMM_BYTE, count, shards[s], in_place);
                for (int t = 0; t < SUMMED; t++) {
                    gather(summed[t], count, shards[s], in_place);
                    reduce(summed[t], count, shards[s], in_place, false);
                }
            }
            for (int t = 0; t < SUMMED; t++) {
                reduce(summed[t], count, shards[s], false, true);
            }
        }
    }
}

// ---- groups

// Ranks that follow each other, `size` at a time; and every stride-th.
static tr_comm_group neighbours(int size) {
    int first = rank / size * size;
    return (tr_comm_group){first, 1, first + size > ranks ? ranks - first : size};
}

static tr_comm_group strided(int stride) {
    int first = rank % stride;
    return (tr_comm_group){first, stride, (ranks - first + stride - 1) / stride};
}

static void in_group(tr_comm_group of) {
    group = of;
    member = (rank - of.first) / of.stride;
    gather(TR_COMM_F32, 100 * of.count + 1, 101, false);
    gather(TR_COMM_BYTE, 100 * of.count, 100, true);
    reduce(TR_COMM_F32, TR_COMM_CHUNK + 5, TR_COMM_CHUNK / of.count + 5, false, false);
    reduce(TR_COMM_I64, 3 * of.count, 3, false, true);
    reduce(TR_COMM_BF16, 7, 7, true, false); // all of it to the first
}

// Each rank is in several groups, and uses them in one order with all others.
static void groups(void) {
    for (int size = 1; size <= ranks; size++) {
        in_group(neighbours(size));
        in_group(strided(size));
        in_group((tr_comm_group){ranks - 1, -1, ranks}); // from the last to the first
        in_group((tr_comm_group){0, 1, ranks});
    }
}

// ---- many operations at once

enum { MANY = 3 * TR_COMM_QUEUE };

// What one rank waits to receive holds up neither a sum of all nor what it sends
// itself, though these were started later.
static void channels(void) {
    enum { COUNT = 1 << 18 };
    tr_error err = {0};
    int other = ranks - 1 - rank;
    float *sent = take(COUNT * 4), *received = take(COUNT * 4), *all = take(ranks * 4);
    for (int64_t i = 0; i < COUNT; i++) {
        sent[i] = (float)value(rank, i);
    }
    const tr_comm_op message = {
        .kind = TR_COMM_GATHER, .type = TR_COMM_F32, .count = COUNT, .shard = COUNT};
    tr_comm_op gather = {.kind = TR_COMM_GATHER,
                         .type = TR_COMM_F32,
                         .count = ranks,
                         .shard = 1,
                         .recv = all};
    bool talks = rank == 0 || rank == ranks - 1;
    tr_comm_op in = message, out = message;
    in.recv = received; // member 0 of a pair sends
    in.channel = TR_COMM_RECEIVE;
    in.group = (tr_comm_group){other, rank - other, 2};
    out.send = sent;
    out.recv = sent;
    out.channel = TR_COMM_SEND;
    out.group = (tr_comm_group){rank, other - rank, 2};
    int64_t ticket = talks ? start(&in) : 0;
    all[rank] = (float)rank;
    must(tr__comm_wait(comm, TR_COMM_RANKS, start(&gather), &err), &err);
    if (talks) {
        must(tr__comm_wait(comm, TR_COMM_SEND, start(&out), &err), &err);
        must(tr__comm_wait(comm, TR_COMM_RECEIVE, ticket, &err), &err);
    }
    for (int64_t i = 0; i < COUNT && talks; i++) {
        if (received[i] != (float)value(other, i)) {
            fail("channels: element %" PRId64 " of a message is wrong", i);
        }
    }
    free(sent);
    free(received);
    free(all);
}

// Sums in two channels go on beside each other: half of the ranks start the one first,
// half the other. Each works in a place of its own in the staging.
static void two_sums(void) {
    enum { SHARD = 3 * TR_COMM_CHUNK / 8 + 5 };
    static const tr_comm_channel channels[] = {TR_COMM_RANKS, TR_COMM_TENSOR};
    tr_error err = {0};
    int64_t count = (int64_t)SHARD * ranks, ticket[2];
    int64_t *sent[2], *sum[2];
    for (int c = 0; c < 2; c++) {
        sent[c] = take(count * 8);
        sum[c] = take(SHARD * 8);
        for (int64_t i = 0; i < count; i++) {
            sent[c][i] = (c + 1) * (rank + 1) + i;
        }
    }
    for (int k = 0; k < 2; k++) {
        int c = (k + rank) % 2;
        const tr_comm_op op = {.kind = TR_COMM_REDUCE,
                               .type = TR_COMM_I64,
                               .count = count,
                               .shard = SHARD,
                               .send = sent[c],
                               .recv = sum[c],
                               .channel = channels[c],
                               .near = near};
        ticket[c] = start(&op);
    }
    for (int c = 0; c < 2; c++) {
        must(tr__comm_wait(comm, channels[c], ticket[c], &err), &err);
        for (int64_t i = 0; i < SHARD; i++) {
            int64_t own = (int64_t)rank * SHARD + i;
            int64_t want = (c + 1) * ranks * (ranks + 1) / 2 + own * ranks;
            if (sum[c][i] != want) {
                fail("two sums: element %" PRId64 " of sum %d is wrong", i, c);
            }
        }
        free(sent[c]);
        free(sum[c]);
    }
}

// More than the queue holds, small and large, gathers and reduces in turn, between them
// what all ranks leave out; then the whole is waited for by the newest ticket.
static void many(void) {
    enum { SHARD = 700 };
    tr_error err = {0};
    int64_t count = (int64_t)SHARD * ranks;
    float *gathered = take(MANY * count * 4), *sent = take(MANY * count * 4);
    float *sums = take(MANY * SHARD * 4);
    for (int64_t i = 0; i < MANY * count; i++) {
        gathered[i] = sent[i] = (float)value(rank, i);
    }
    int64_t before = tr__comm_newest(comm, TR_COMM_RANKS);
    for (int k = 0; k < MANY; k++) {
        tr_comm_op g = {.kind = TR_COMM_GATHER,
                        .type = TR_COMM_F32,
                        .count = count,
                        .shard = SHARD,
                        .recv = gathered + k * count};
        tr_comm_op r = {.kind = TR_COMM_REDUCE,
                        .type = TR_COMM_F32,
                        .count = count,
                        .shard = SHARD,
                        .send = sent + k * count,
                        .recv = sums + k * SHARD};
        bool skips = k % 8 == 0;
        before += skips && tr__comm_skip(comm, TR_COMM_RANKS) == before + k + 1;
        if (start(k % 2 ? &g : &r) != before + k + 1) {
            fail("tickets do not count from 1");
        }
    }
    must(tr__comm_wait(comm, TR_COMM_RANKS, tr__comm_newest(comm, TR_COMM_RANKS), &err),
         &err);
    for (int64_t k = 0; k < MANY; k++) {
        for (int64_t i = 0; i < (k % 2 ? count : SHARD); i++) {
            int64_t sum = 0, at = k * count + i + (k % 2 ? 0 : (int64_t)rank * SHARD);
            for (int r = 0; r < ranks; r++) {
                sum += value(r, at);
            }
            float wanted = (float)(k % 2 ? value((int)(i / SHARD), at) : sum);
            float got = k % 2 ? gathered[at] : sums[k * SHARD + i];
            if (got != wanted) {
                fail("operation %" PRId64 " of many: element %" PRId64 " is %g, not %g",
                     k, i, got, wanted);
            }
        }
    }
    free(gathered);
    free(sent);
    free(sums);
}

// ---- the order of additions

static float fraction(int r, int64_t i) {
    return 1.0f / (float)(value(r, i) + 1);
}

// What members `first` and the next ones have of element `i`, added up for one of them.
static float sum_around(int owner, int count, int first, int64_t i) {
    float of[MEMBERS_MAX] = {0};
    for (int k = 0; k < count; k++) {
        of[k] = fraction(first + k, i);
    }
    return sum_of(algorithm, of, count, owner);
}

// The sum that this rank gets of element `i`: its node's, then those of the nodes
// before it.
static float sum_in_order(int64_t i) {
    int nodes = ranks / near, node = rank / near, place = rank % near;
    if (near == 1) {
        return sum_around(rank, ranks, 0, i);
    }
    float sum = sum_around(place, near, node * near, i);
    for (int step = 1; step < nodes; step++) {
        sum += sum_around(place, near, (node + nodes - step) % nodes * near, i);
    }
    return sum;
}

// The order of additions is the same every time: the bits are known.
static void ordered(int64_t count) {
    tr_error err = {0};
    float *send = take(count * 4), *sum = take(count * 4);
    int64_t shard = (count + ranks - 1) / ranks, at, part;
    for (int64_t i = 0; i < count; i++) {
        send[i] = fraction(rank, i);
    }
    tr__comm_part(count, shard, rank, &at, &part);
    for (int round = 0; round < 5; round++) {
        away = ranks > 1 && round > 2;
        tr_comm_op op = {.kind = TR_COMM_REDUCE,
                         .type = TR_COMM_F32,
                         .count = count,
                         .shard = shard,
                         .send = send,
                         .recv = sum};
        must(tr__comm_wait(comm, TR_COMM_RANKS, start(&op), &err), &err);
        for (int64_t i = 0; i < part; i++) {
            float wanted = sum_in_order(at + i);
            if (sum[i] != wanted) {
                fail("element %" PRId64 " of a sum is %a, not %a", i, (double)sum[i],
                     (double)wanted);
            }
        }
    }
    away = false;
    free(send);
    free(sum);
}

// ---- totals

static int64_t shard_of_totals;
enum { TOTAL = 1000003 };

static int64_t part_of_totals(int of) {
    int64_t first, part;
    tr__comm_part(TOTAL, shard_of_totals, of, &first, &part);
    return 4 * part;
}

// What a rank sends in a gather of so many bytes a part, and of them to other nodes.
// `column`: bytes of all parts of its place on nodes.
static void check_totals(const tr_comm_totals *before, int64_t part, int64_t column,
                         int64_t whole) {
    tr_comm_totals after = tr__comm_totals(comm);
    int nodes = ranks / near;
    int64_t gathered = after.gather_bytes - before->gather_bytes;
    int64_t reduced = after.reduce_bytes - before->reduce_bytes;
    int64_t between = after.between_bytes - before->between_bytes;
    int64_t apart = (nodes - 1) * part + column - part;
    int64_t wanted = near > 1 ? (nodes - 1) * part + (near - 1) * column
                              : gathered_by(algorithm, ranks, rank, part_of_totals);
    if (gathered != wanted || reduced != whole - part ||
        between != (near > 1 ? apart : 0)) {
        fail("a gather of %" PRId64 " bytes and a reduce of %" PRId64 ", %" PRId64
             " of them to other nodes",
             gathered, reduced, between);
    }
}

static void totals(void) {
    tr_error err = {0};
    int64_t count = TOTAL, shard = (count / ranks + 1024) / 1024 * 1024;
    int64_t first, part, column = 0;
    shard = shard * ranks < count ? shard + 1024 : shard;
    shard_of_totals = shard;
    float *whole = take(count * 4), *own = take(shard * 4);
    memset(whole, 0, (size_t)count * 4);
    for (int r = rank % near; near > 1 && r < ranks; r += near) {
        tr__comm_part(count, shard, r, &first, &part);
        column += part;
    }
    tr__comm_part(count, shard, member, &first, &part);
    tr_comm_totals before = tr__comm_totals(comm);
    tr_comm_op g = {.kind = TR_COMM_GATHER,
                    .type = TR_COMM_F32,
                    .count = count,
                    .shard = shard,
                    .recv = whole};
    tr_comm_op r = g;
    r.kind = TR_COMM_REDUCE;
    r.send = whole;
    r.recv = own;
    start(&g);
    must(tr__comm_wait(comm, TR_COMM_RANKS, start(&r), &err), &err);
    must(tr__comm_barrier(comm, &err), &err);
    check_totals(&before, 4 * part, 4 * column, 4 * count);
    free(whole);
    free(own);
}

// ---- small calls

static void records(void) {
    struct {
        int64_t rank, square;
    } own = {rank, (int64_t)rank * rank}, all[64];
    tr_error err = {0};
    must(tr__comm_all_gather(comm, &own, sizeof own, all, &err), &err);
    for (int r = 0; r < ranks; r++) {
        if (all[r].rank != r || all[r].square != (int64_t)r * r) {
            fail("the record of rank %d is wrong", r);
        }
    }
    for (int root = 0; root < ranks; root++) {
        enum { BYTES = 1500001 };
        uint8_t *data = take(BYTES);
        memset(data, rank == root ? root + 1 : 99, BYTES);
        must(tr__comm_broadcast(comm, root, data, BYTES, &err), &err);
        if (data[0] != root + 1 || memcmp(data, data + 1, BYTES - 1) != 0) {
            fail("the broadcast of rank %d is wrong", root);
        }
        free(data);
    }
    must(tr__comm_barrier(comm, &err), &err);
}

static void agreed(tr_status mine, const char *message, tr_status status,
                   const char *wanted) {
    tr_error own = {0}, err = {0};
    if (mine != TR_OK) {
        tr_fail(&own, mine, "%s", message);
    }
    tr_status got = tr_comm_agree(comm, &own, &err);
    if (got != status || err.status != status || strcmp(err.message, wanted) != 0) {
        fail("agreed on %d, \"%s\", not on \"%s\"", got, err.message, wanted);
    }
    got = tr_comm_agree(comm, &own, &own); // in one object
    if (got != status || own.status != status || strcmp(own.message, wanted) != 0) {
        fail("agreed on %d, \"%s\" in one object", got, own.message);
    }
}

static void agreement(void) {
    char text[64], led[80];
    agreed(TR_OK, "", TR_OK, "");
    agreed(TR_DATA, "no such file", TR_DATA, "no such file");
    for (int r = 0; r < ranks; r++) { // one alone, and all from one on
        snprintf(text, sizeof text, "from %d", rank);
        snprintf(led, sizeof led, ranks > 1 ? "rank %d: from %d" : "from 0", r, r);
        agreed(rank == r ? TR_IO : TR_OK, text, TR_IO, led);
        agreed(rank >= r ? (rank == r ? TR_IO : TR_DATA) : TR_OK, text, TR_IO, led);
    }
}

static void notices(void) {
    tr_error err = {0};
    for (int from = 0; from < ranks; from++) {
        if (tr__comm_noticed(comm)) {
            fail("a notice of nobody");
        }
        must(tr__comm_barrier(comm, &err), &err);
        if (rank == from) {
            tr__comm_notice(comm);
        }
        while (!tr__comm_noticed(comm)) {
        }
        must(tr__comm_notice_clear(comm, &err), &err);
    }
    must(tr__comm_barrier(comm, &err), &err);
}

int main(int argc, char **argv) {
    tr_error err = {0};
    must(tr_comm_open(&comm, &err), &err);
    rank = tr_comm_rank(comm);
    ranks = tr_comm_ranks(comm);
    if (argc > 1 && ranks != atoi(argv[1])) {
        fail("%d ranks, not %s", ranks, argv[1]);
    }
    if (tr_comm_threads(comm) < 1) {
        fail("no threads");
    }
    const char *how = argc > 2 ? argv[2] : "1";
    algorithm = strcmp(how, "ring") == 0   ? TR_COMM_RING
                : strcmp(how, "tree") == 0 ? TR_COMM_TREE
                                           : TR_COMM_DIRECT;
    near = algorithm == TR_COMM_DIRECT ? atoi(how) : 1;
    const tr_comm_room room = {.ranks = ranks,
                               .node_ranks = near > 1 ? near : 0,
                               .by_nodes = near > 1,
                               .ferries = true,
                               .pipeline = true,
                               .tensor = true};
    void *staging = take(tr__comm_staging_bytes(&room));
    tr__comm_staging(comm, &room, staging);
    group = (tr_comm_group){0, 1, ranks};
    member = rank;
    tr__comm_ferry(comm, &(tr_comm_ferry){put_copy, mark, look, NULL});
    for (int ferried = 0; ferried < (ranks > 1 ? 2 : 1); ferried++) {
        away = ferried;
        shapes();
        groups();
        many();
        channels();
        two_sums();
        totals();
    }
    ordered(algorithm == TR_COMM_TREE ? 100001 : 300001);
    records();
    agreement();
    notices();
    tr_comm_close(comm);
    free(staging);
    if (rank == 0) {
        printf("%d ranks: all is well\n", ranks);
    }
    return 0;
}
