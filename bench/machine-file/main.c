// Measures this machine with the kernels of a run's plan and prints a machine file for
// `tranche simulate` (docs/simulate.md). Under mpirun all ranks measure at the same
// time, as they would compute, and the links between them are measured too.
//
//     machine RUN.json [KEY.PATH=VALUE]...
#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "comm/alone.h"
#include "machine.h"

#include <tranche/comm.h>
#include <tranche/run.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_LEAST = 5, TRIES_MOST = 200 };

static const double enough = 0.2; // seconds for one measurement

void bench_check(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fprintf(stderr, "machine: %s\n", err->message);
        exit(tr_status_exit(status));
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double bench_median(void (*work)(void *what), void *what) {
    double seconds[TRIES_MOST], spent = 0;
    int tries = 0;
    work(what);
    while (tries < TRIES_LEAST || (spent < enough && tries < TRIES_MOST)) {
        double begin = tr__seconds();
        work(what);
        seconds[tries] = tr__seconds() - begin;
        spent += seconds[tries++];
    }
    qsort(seconds, (size_t)tries, sizeof *seconds, by_value);
    return seconds[tries / 2];
}

void bench_together(const bench *b) {
    tr_error err = {0};
    if (b->comm) {
        bench_check(tr__comm_barrier(b->comm, &err), &err);
    }
}

// 0 and tiny numbers may be faster or slower than others.
void bench_fill(tr_arena *arena, size_t bytes) {
    float *values = tr__arena_view(arena, 0, bytes);
    for (size_t i = 0; i < bytes / sizeof *values; i++) {
        values[i] = (float)(i % 1021) / 1021 - 0.4f;
    }
}

// ---- the file
// ------------------------------------------------------------------------

static void print_ops(const bench *b) {
    const char *comma = "";
    printf("        \"ops\": {");
    for (int i = 0; i < b->op_count; i++) {
        printf("%s\n            \"%s\": %.4g", comma, b->ops[i].name,
               b->ops[i].flops / b->ops[i].seconds);
        comma = ",";
    }
    printf("}},\n");
}

// Products of layers: the rate that utilisation is measured by.
static double product_rate(const bench *b) {
    double flops = 0, seconds = 0;
    for (int i = 0; i < b->op_count; i++) {
        if (strncmp(b->ops[i].name, "linear", 6) == 0) {
            flops += b->ops[i].flops;
            seconds += b->ops[i].seconds;
        }
    }
    return seconds > 0 ? flops / seconds : 1e9;
}

static void measure(bench *b, const char *run_file) {
    int ranks = tr__comm_count(b->comm);
    b->launch = bench_empty_launch();
    bench_take_memory(b);
    bench_kernels(b);
    double memory = bench_memory(b);
    bench_cached cache = bench_cache(b, memory);
    bench_link link = {0};
    if (b->comm) {
        link = bench_links(b);
    }
    if (!tr__comm_leads(b->comm)) {
        return;
    }
    printf("{\n    \"name\": \"measured on %d rank%s of %d thread%s\",\n", ranks,
           ranks == 1 ? "" : "s", omp_get_max_threads(),
           omp_get_max_threads() == 1 ? "" : "s");
    printf("    \"sources\": [\"bench/machine, kernels of ");
    tr__print_escaped(run_file, stdout);
    printf("\"],\n");
    printf("    \"ranks_per_node\": %d,\n", ranks);
    printf("    \"compute\": {\n        \"flops\": %.4g, \"bytes\": %.4g, \"launch\": "
           "%.3g,\n",
           product_rate(b), memory, b->launch);
    if (cache.bytes > 0) {
        printf("        \"cache\": {\"size\": %zu, \"bytes\": %.4g},\n", cache.bytes,
               cache.rate);
    }
    print_ops(b);
    if (b->comm) {
        printf("    \"link\": {\n        \"interference\": %.2f,\n        \"inside\": "
               "{\"bytes\": %.4g, \"latency\": %.3g}},\n",
               link.interference, link.rate, link.latency);
    }
    printf("    \"memory\": {\"device\": %lld}\n}\n",
           (long long)(tr__machine_memory() / ranks));
}

int main(int argc, char **argv) {
    tr_error err = {0};
    tr_comm *comm = NULL;
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: machine RUN.json [KEY.PATH=VALUE]...\n");
        return tr_status_exit(TR_USAGE);
    }
    bench_check(tr_comm_open(&comm, &err), &err);
    tr_run_options options = {.file = argv[1],
                              .set = (const char *const *)argv + 2,
                              .set_count = (size_t)argc - 2,
                              .comm = comm,
                              .plan_only = true};
    bench_check(tr_run_open(&options, &run, &err), &err);
    bench_check(tr_plan_make(tr_run_plan_request(run), &plan, &err), &err);
    omp_set_num_threads(plan->request.threads);
    bench b = {.comm = tr_comm_ranks(comm) > 1 ? comm : NULL, .plan = plan};
    measure(&b, argv[1]);
    tr__arena_destroy(b.cold);
    tr__arena_destroy(b.warm);
    tr__arena_destroy(b.zeros);
    tr_plan_destroy(plan);
    tr_run_close(run);
    tr_comm_close(comm);
    return 0;
}
