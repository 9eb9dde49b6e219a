// Backends: what runs kernels, each behind one table of functions. All that is above
// this folder finds a backend by its number (tr_target.backend) and knows no other of
// its files.
#ifndef TR_BACKEND_BACKEND_H
#define TR_BACKEND_BACKEND_H

#include <tranche/op.h>

typedef struct tr_backend {
    const char *name; // as files call it
    // It works beside the thread that issues steps (tr_plan_request.discrete).
    bool discrete;
    // The best kernel for the description, as its target allows; NULL: none supports
    // it. A row of the op's folder says which kernels there are (CONTRIBUTING.md).
    const tr_kernel *(*kernel)(const tr_op_desc *desc);
    // What this machine has: the best level that runs here, and all workers.
    tr_target (*here)(void);
    // "avx512"; NULL: there is no such level.
    const char *(*level_name)(int level);
    // From `begin` to `end` the calling thread launches kernels, by so many workers.
    // Returns what the end is to be given.
    int (*begin)(int workers);
    void (*end)(int before);
    // Flops a second of matrix products in f32: as measured just now, in about 50 ms (0
    // where it cannot be), and as a machine of that level usually has.
    double (*measure_rate)(int workers);
    double (*usual_rate)(int level, int workers);
} tr_backend;

// That of a number.
const tr_backend *tr__backend(tr_backend_id id);
// All names, by number, then NULL.
extern const char *const tr__backend_names[TR_BACKEND_COUNT + 1];
// The number of a name that is one of them.
tr_backend_id tr__backend_find(const char *name);

// The kernel for the description, by its target's backend; NULL: none supports it.
const tr_kernel *tr__kernel_find(const tr_op_desc *desc);
// How the target's kernels are called: the level's name, "reference" for -1.
const char *tr__target_name(const tr_target *target);

#endif
