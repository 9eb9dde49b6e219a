// One kernel of a plan alone, on operands that no cache has.
#ifndef BENCH_ALONE_H
#define BENCH_ALONE_H

#include "calibrate/measure.h"

typedef struct alone {
    tr_measuring m; // m.plans[0] is the plan; m.cold has the operands
    int times;      // launches in a row
    int64_t ids;    // ids and targets are below it
    size_t ring_bytes, ring_at, ids_bytes;
} alone;

// Makes room for the instruction; at first, for each that is to be measured.
void alone_need(alone *a, const tr_instruction *at);
// Takes the memory of the device, with so many bytes more than an instruction needs.
tr_status alone_open(alone *a, size_t beyond, tr_error *err);
void alone_close(alone *a);
// Seconds of one launch; a device that fails leaves a->m.fault.
double alone_seconds(alone *a, const tr_instruction *at);

#endif
