// Measuring a machine: what the parts share.
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "base/arena.h"
#include "comm/comm.h"
#include "plan/plan.h"

enum { BENCH_OPS_MAX = 64, BENCH_PAGE = 4096 };

typedef struct bench_op {
    const char *name;
    double flops, seconds; // sums
} bench_op;

typedef struct bench {
    tr_comm *comm; // NULL: one rank
    const tr_plan *plan;
    // For operands: what was used long ago, what was used just now, and integers.
    tr_arena *cold, *warm, *zeros;
    size_t cold_bytes, cold_at;
    double launch; // seconds
    bench_op ops[BENCH_OPS_MAX];
    int op_count;
} bench;

// A kernel to launch, with operands in the arenas.
typedef struct bench_launch {
    bench *b;
    const tr_instruction *instruction;
} bench_launch;

typedef struct bench_link {
    double rate, latency, interference;
} bench_link;

typedef struct bench_cached {
    size_t bytes; // 0: no cache
    double rate;
} bench_cached;

// Ends the program with the message of an error.
void bench_check(tr_status status, const tr_error *err);
// The median of what `work` takes, seconds.
double bench_median(void (*work)(void *what), void *what);
// All ranks begin at the same time.
void bench_together(const bench *b);
// Floats of an ordinary size.
void bench_fill(tr_arena *arena, size_t bytes);

// kernels.c: takes the arenas; measures every kernel that does arithmetic.
void bench_take_memory(bench *b);
void bench_kernels(bench *b);
void bench_run_kernel(void *launch); // a bench_launch
// memory.c: bytes a second of memory; the cache above it; seconds of a launch.
double bench_memory(const bench *b);
bench_cached bench_cache(bench *b, double memory_rate);
double bench_empty_launch(void);
// link.c
bench_link bench_links(bench *b);

#endif
