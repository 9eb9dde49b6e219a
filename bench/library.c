// What calls of the library cost a program, beside the work itself:
//
//     library classifier RUN.json    to the first step; a step as the caller sees it,
//     and
//                                    as the engine counts it
//     library read RUN.json          reading all parameters, against copying as much
#include "base/clock.h"

#include <tranche.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 2000, TIMES = 5 };

typedef struct opened {
    tr_run *run;
    tr_plan *plan;
    tr_engine *engine;
} opened;

static void check(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fprintf(stderr, "library: %s\n", err->message);
        exit(tr_status_exit(status));
    }
}

static opened begin(const char *file) {
    opened o = {NULL, NULL, NULL};
    tr_error err = {0};
    check(tr_run_create(&o.run, &err), &err);
    check(tr_run_load_file(o.run, file, &err), &err);
    check(tr_run_set(o.run, "resume", "never", &err), &err);
    check(tr_run_resolve(o.run, &err), &err);
    check(tr_run_make_plan(o.run, &o.plan, &err), &err);
    check(tr_engine_create(o.run, o.plan, &o.engine, &err), &err);
    return o;
}

static void end(opened *o) {
    tr_engine_destroy(o->engine);
    tr_plan_destroy(o->plan);
    tr_run_destroy(o->run);
}

static void time_steps(const char *file) {
    double start = tr__seconds(), counted = 0;
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_error err = {0};
    tr_version();
    opened o = begin(file);
    check(tr_engine_step(o.engine, &result, &err), &err);
    printf("to the first step: %.1f ms\n", 1e3 * (tr__seconds() - start));
    start = tr__seconds();
    for (int i = 0; i < STEPS; i++) {
        check(tr_engine_step(o.engine, &result, &err), &err);
        counted += result.seconds;
    }
    double seen = tr__seconds() - start;
    printf("a step: %.2f us as the caller sees it, %.2f us as the engine counts it "
           "(%+.2f%%)\n",
           1e6 * seen / STEPS, 1e6 * counted / STEPS, 100 * (seen / counted - 1));
    end(&o);
}

// Bytes of all parameters, read one after the other to the same place, or copied.
static double read_all(const opened *o, char *to, const char *from, double *bytes) {
    double start = tr__seconds();
    tr_error err = {0};
    *bytes = 0;
    for (size_t i = 0; i < tr_engine_tensors(o->engine); i++) {
        tr_tensor_info info = TR_TENSOR_INFO_INIT;
        check(tr_engine_tensor(o->engine, i, &info, &err), &err);
        int64_t count = tr_shape_count(info.shape);
        size_t size = (size_t)count * tr_dtype_bytes(info.dtype);
        if (from) {
            memcpy(to + (size_t)*bytes, from + (size_t)*bytes, size);
        } else {
            check(tr_engine_read(o->engine, info.name, "values", 0, count,
                                 to + (size_t)*bytes, &err),
                  &err);
        }
        *bytes += (double)size;
    }
    return tr__seconds() - start;
}

static void time_reads(const char *file) {
    opened o = begin(file);
    size_t room = (size_t)tr_plan_parameters(o.plan) * 8;
    char *to = calloc(2, room);
    double bytes = 0, read = 1e30, copied = 1e30;
    if (!to) {
        exit(tr_status_exit(TR_MEMORY));
    }
    memset(to, 1, 2 * room);
    for (int i = 0; i < TIMES; i++) {
        double a = read_all(&o, to, NULL, &bytes);
        double b = read_all(&o, to, to + room, &bytes);
        read = a < read ? a : read;
        copied = b < copied ? b : copied;
    }
    printf("reading %.0f MB: %.2f GB/s; copying as much: %.2f GB/s\n", bytes / 1e6,
           bytes / read / 1e9, bytes / copied / 1e9);
    free(to);
    end(&o);
}

int main(int argc, char **argv) {
    bool steps = argc == 3 && strcmp(argv[1], "classifier") == 0;
    if (!steps && !(argc == 3 && strcmp(argv[1], "read") == 0)) {
        fprintf(stderr, "usage: library classifier|read RUN.json\n");
        return 2;
    }
    (steps ? time_steps : time_reads)(argv[2]);
    return 0;
}
