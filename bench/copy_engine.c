// The rates of the streams between memory spaces on this machine: copies by
// one thread, and a file's reads and writes by both methods.
//
//     copy engine [folder] [MiB of one order] [MiB in all]
#include "backend/host/copy_engine.h"
#include "base/arena.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 5 };

typedef struct bench {
    tr_copy_engine *copy_engine;
    char *memory; // [2 * order]
    int64_t order, total;
} bench;

static void check(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fprintf(stderr, "copy_engine: %s\n", err->message);
        exit(tr_status_exit(status));
    }
}

// Orders one after the other until `total` bytes; GB/s, the best of a few.
static double rate_of(const bench *b, tr_carry_kind kind) {
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        tr_error err = {0};
        double begin = tr__seconds();
        for (int64_t at = 0; at < b->total; at += b->order) {
            tr_carry order = {.kind = kind,
                              .from = b->memory,
                              .to = kind == TR_CARRY_READ ? b->memory
                                                          : b->memory + b->order,
                              .bytes = b->order,
                              .offset = at};
            tr__copy_engine_start(b->copy_engine, &order);
        }
        check(tr__copy_engine_wait(b->copy_engine,
                                   tr__copy_engine_newest(b->copy_engine), &err),
              &err);
        double rate = (double)b->total / (tr__seconds() - begin) / 1e9;
        best = rate > best ? rate : best;
    }
    return best;
}

static void run(bench *b, const char *folder, bool plain) {
    tr_copy_engine_options options = {folder, b->total, plain};
    tr_error err = {0};
    bool direct;
    check(tr__copy_engine_create(&options, &b->copy_engine, &err), &err);
    const char *method = tr__copy_engine_method(b->copy_engine, &direct);
    if (folder[0] == '\0') {
        printf("{\"order_bytes\": %lld, \"copy_gbs\": %.2f}\n", (long long)b->order,
               rate_of(b, TR_CARRY_COPY));
    } else {
        printf("{\"order_bytes\": %lld, \"method\": \"%s\", \"direct\": %s",
               (long long)b->order, method, direct ? "true" : "false");
        printf(", \"write_gbs\": %.2f", rate_of(b, TR_CARRY_WRITE));
        printf(", \"read_gbs\": %.2f}\n", rate_of(b, TR_CARRY_READ));
    }
    tr__copy_engine_destroy(b->copy_engine);
}

static int64_t mebibytes(int argc, char **argv, int index, int64_t fallback) {
    return (argc > index ? strtoll(argv[index], NULL, 10) : fallback) << 20;
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "/tmp";
    bench b = {.order = mebibytes(argc, argv, 2, 28),
               .total = mebibytes(argc, argv, 3, 504)};
    tr_error err = {0};
    tr_arena *arena = NULL;
    if (b.order <= 0 || b.total < b.order || b.total % b.order != 0) {
        fprintf(stderr,
                "copy_engine [folder] [MiB of one order] [MiB in all]: all is to be "
                "a multiple of one order\n");
        return 2;
    }
    check(tr__arena_create("bench", 2 * (size_t)b.order, &arena, &err), &err);
    b.memory = tr__arena_view(arena, 0, 2 * (size_t)b.order);
    memset(b.memory, 0, 2 * (size_t)b.order);
    run(&b, "", false);
    run(&b, folder, false);
    run(&b, folder, true);
    tr__arena_destroy(arena);
    return 0;
}
