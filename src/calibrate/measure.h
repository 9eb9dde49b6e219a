// Measuring: what its parts share. All of it is collective where there are ranks: they
// work at the same time, as they would compute.
#ifndef TR_CALIBRATE_MEASURE_H
#define TR_CALIBRATE_MEASURE_H

#include "backend/backend.h"
#include "base/arena.h"
#include "calibrate/calibrate.h"
#include "comm/alone.h"
#include "plan/flow/plan.h"

enum { TR_MEASURE_SIZES = 2, TR_MEASURE_PAGE = 4096 };

// What the kernels of one op have taken at one micro-batch size, in all.
typedef struct tr_op_sums {
    double flops, seconds;
    int calls;
} tr_op_sums;

typedef struct tr_measuring {
    tr_comm *comm; // NULL: alone
    const tr_plan_request *request;
    const tr_backend *backend; // that of the request
    // A discrete device computes in the one and copies in the other; what it fails with
    // first. NULL: the host computes.
    tr_device_queue *queue, *copies;
    tr_error fault;
    const tr_log *log;
    int64_t memory; // bytes at most
    double seconds; // about as many in all
    double until;   // tr__seconds(): long kernels are left out from then on
    const tr_plan *plans[TR_MEASURE_SIZES]; // of one rank, from small to large
    int plan_count;
    // Operands of kernels: what was used long ago, what was used just now, and ids.
    tr_arena *cold, *warm, *ids;
    tr_arena *scratch;   // of the backend's libraries; NULL: they want none
    size_t positions_at; // of `ids`: a batch's positions begin there
    size_t cold_bytes, cold_at;
    tr_op_sums sums[TR_MEASURE_SIZES][TR_RATED_OPS];
    double overhead; // seconds of a measured launch that no kernel is in
    // A kernel of a few milliseconds, to compute beside what moves; NULL: none.
    const tr_instruction *usual;
    double usual_seconds; // with its launch
    tr_machine *machine;  // what is known so far
    tr_error *err;
} tr_measuring;

typedef void tr_measured_work(void *what);

// What `work` takes, seconds: long work is done once; else several times, and a quarter
// of the tries was no slower. Others at work on the machine so count little.
double tr__measure(tr_measured_work *work, void *what);
// Waits for all ranks; the largest of what they bring.
tr_status tr__measure_together(tr_measuring *m, int64_t mine, int64_t *most);
// Floats of an ordinary size in the host's memory: 0 and tiny numbers may be faster or
// slower than others.
void tr__measure_fill(tr_arena *arena, size_t bytes);
// The part of their speed that two things take from each other, from how long each
// takes alone and how long both take together.
double tr__interference(double one, double other, double both);

// device.c: the device whose kernels are measured, its queues and its memory. `filled`:
// with such floats; m->fault is an error here.
tr_status tr__measure_open(tr_measuring *m, tr_error *err);
void tr__measure_close(tr_measuring *m);
tr_status tr__measure_take(tr_measuring *m, const char *space, size_t bytes,
                           bool filled, tr_arena **out, tr_error *err);
// Puts a kernel into the queue; where the host computes, runs it. tr__measure_settle
// waits for what a queue (NULL: none) was given; a failure becomes m->fault.
void tr__measure_put(tr_measuring *m, const tr_device_work *work);
void tr__measure_settle(tr_measuring *m, tr_device_queue *queue);
// Of a discrete device: bytes of the host's to the beginning of an arena.
void tr__measure_bring(tr_measuring *m, tr_arena *to, const void *from, size_t bytes);

// kernels.c: rates of ops, and of the machine's products.
tr_status tr__measure_kernels(tr_measuring *m);
void tr__measure_usual(tr_measuring *m, int times); // computes for a while
// spread.c: of the usual kernel's time, on all ranks at once.
tr_status tr__measure_spread(tr_measuring *m);
// memory.c: launches, memory, cache, the update.
tr_status tr__measure_memory(tr_measuring *m);
// copies.c: between device and host, and NVMe.
tr_status tr__measure_copies(tr_measuring *m);
tr_status
tr__measure_device_copies(tr_measuring *m); // device_copies.c: a discrete one's
tr_status tr__measure_nvme(tr_measuring *m, const char *folder);
// links.c: between ranks.
int tr__measure_near(const tr_measuring *m); // ranks on each node; 0: nodes differ
tr_status tr__measure_links(tr_measuring *m);

// cache.c: the text of the machine file that holds for `fingerprint`, NULL: none. The
// caller frees *text. `folder`: as tr_calibration.cache says. No error.
void tr__calibration_read(const char *folder, const char *fingerprint,
                          const tr_log *log, char **text);
void tr__calibration_write(const char *folder, const char *fingerprint,
                           const char *text, const tr_log *log);
// fingerprint.c: in words, and the same as long as the figures hold. The caller frees
// *out. TR_MEMORY.
tr_status tr__calibration_fingerprint(const tr_measuring *m, const char *nvme,
                                      char **out, tr_error *err);

#endif
