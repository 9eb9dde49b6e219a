// What ranks exchange in a second, and what computing loses to it.
#include "base/clock.h"
#include "comm/alone.h"
#include "machine.h"

enum { FLOATS = 1 << 22, LARGE = 8, SMALL = 100 };
#define SECONDS 1.0 // of computing, and of exchanging, beside each other
#define MOST    0.9 // of what a machine file may say

// `count` exchanges of a part of `floats` of each rank, gathers and reductions in turn.
static double exchange_seconds(const bench *b, float *memory, int64_t floats, int count,
                               void (*beside)(void *what), void *what) {
    tr_error err = {0};
    tr_comm_op op = {.type = TR_COMM_F32,
                     .count = floats * tr__comm_count(b->comm),
                     .shard = floats};
    bench_together(b);
    double begin = tr__seconds();
    for (int i = 0; i < count; i++) {
        op.kind = i % 2 ? TR_COMM_REDUCE : TR_COMM_GATHER;
        op.send = i % 2 ? memory : NULL;
        op.recv = i % 2 ? memory + floats * tr_comm_rank(b->comm) : memory;
        tr__comm_start(b->comm, &op);
    }
    if (beside) {
        beside(what);
    }
    bench_check(tr__comm_wait(b->comm, tr__comm_newest(b->comm), &err), &err);
    return tr__seconds() - begin;
}

typedef struct compute_work {
    bench_launch launch;
    int times;
} compute_work;

static void compute(void *what) {
    compute_work *w = what;
    for (int i = 0; i < w->times; i++) {
        bench_run_kernel(&w->launch);
    }
}

// Both at once, each as long as the other: with interference i they take 1 / (1 - i)
// times as long. Rank 0 says how many, so that all exchange the same.
static double interference(bench *b, float *memory, double exchange) {
    const tr_program *program =
        &b->plan->units[b->plan->unit_count - 1].program->backward[0];
    compute_work w = {.launch = {b, &program->instructions[0]}};
    tr_error err = {0};
    bench_together(b);
    double each = bench_median(bench_run_kernel, &w.launch);
    int counts[2] = {1 + (int)(SECONDS / each), 2 + (int)(SECONDS / exchange)};
    counts[1] = counts[1] < TR_COMM_QUEUE ? counts[1] : TR_COMM_QUEUE - 1;
    bench_check(tr__comm_broadcast(b->comm, 0, counts, sizeof counts, &err), &err);
    w.times = counts[0];
    bench_together(b);
    double begin = tr__seconds();
    compute(&w);
    double alone = tr__seconds() - begin;
    double moving = exchange_seconds(b, memory, FLOATS, counts[1], NULL, NULL);
    double both = exchange_seconds(b, memory, FLOATS, counts[1], compute, &w);
    double shorter = alone < moving ? alone : moving;
    // both = shorter / (1 - i) + longer - shorter
    double part = 1 - shorter / (both - alone - moving + 2 * shorter);
    return part < 0 ? 0 : part > MOST ? MOST : part;
}

bench_link bench_links(bench *b) {
    bench_link rates = {0};
    tr_error err = {0};
    tr_arena *arena = NULL;
    int ranks = tr__comm_count(b->comm);
    size_t bytes = (size_t)ranks * FLOATS * sizeof(float);
    size_t staging = (size_t)tr__comm_staging_bytes(ranks);
    bench_check(tr__arena_create("link", bytes + staging, &arena, &err), &err);
    bench_fill(arena, bytes);
    float *memory = tr__arena_view(arena, 0, bytes);
    tr__comm_staging(b->comm, tr__arena_view(arena, bytes, staging));
    exchange_seconds(b, memory, FLOATS, 2, NULL, NULL);
    double large = exchange_seconds(b, memory, FLOATS, LARGE, NULL, NULL) / LARGE;
    rates.rate = (ranks - 1) * (double)(bytes / (size_t)ranks) / large;
    for (int i = 0; i < SMALL; i++) {
        rates.latency += exchange_seconds(b, memory, 16, 2, NULL, NULL) / 2 / SMALL;
    }
    rates.interference = interference(b, memory, large);
    tr__comm_staging(b->comm, NULL);
    tr__arena_destroy(arena);
    return rates;
}
