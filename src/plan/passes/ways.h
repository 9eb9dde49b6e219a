// The ways of flat buffers: parameters come to the device, gradients leave it, in hops.
// Each technique puts the steps of its own hops, in a file of its own; who comes first,
// and how far apart the hops are, is decided at one place (communicate.c).
//
// A hop takes on what the hop before it has brought on its way, and leaves what it has
// made for the next; the last one puts parameters where units' programs name them.
#ifndef TR_PLAN_PASSES_WAYS_H
#define TR_PLAN_PASSES_WAYS_H

#include "plan/flow/maker.h"
#include "plan/passes/visits.h"

// The last steps that were put, by their streams and ids; 0: none.
typedef struct tr_issued {
    int32_t of[TR_STREAMS];
} tr_issued;

// What of a flat buffer is under way, by value; -1: nothing.
typedef struct tr_underway {
    int32_t staged, staged_later; // parameters from the file, in their order
    int32_t part;                 // this rank's part of parameters, to be gathered
    int32_t reduced;              // of gradients, this rank's part
    int32_t evicted;              // gradients on the host: to be added, or written
    // Of this step's gradients: some have been reduced, have left, have been added up.
    bool has_reduced, has_evicted, has_added;
} tr_underway;

typedef struct tr_ways {
    tr_editor editor;
    tr_underway *of; // [flats]
} tr_ways;

// A hop: puts its steps for a flat buffer, and notes in `issued` those that others wait
// for.
typedef void (*tr_hop)(tr_ways *ways, int flat, tr_issued *issued);

// The caller ends the ways in any case; with a status that is not OK, nothing is
// edited.
tr_status tr__ways_begin(tr_ways *ways, tr_plan *plan, tr_sequence_kind kind,
                         tr_error *err);
tr_status tr__ways_end(tr_ways *ways, tr_status status);

// ---- between ranks (ways_ranks.c)

void tr__hop_gather(tr_ways *ways, int flat, tr_issued *issued);
void tr__hop_reduce(tr_ways *ways, int flat, tr_issued *issued);
// All ranks' statistics of the step; the sums of what each has measured of tensors.
void tr__put_gather_statistics(tr_ways *ways);
void tr__put_sum_norms(tr_ways *ways);

// ---- between device and host (ways_host.c)

void tr__hop_fetch(tr_ways *ways, int flat, tr_issued *issued);
void tr__hop_evict(tr_ways *ways, int flat, tr_issued *issued);
// What was evicted apart is added to what is there: on a discrete device, integers.
bool tr__adds_evicted(const tr_plan *plan);
void tr__hop_add(tr_ways *ways, int flat, tr_issued *issued);
// Gradients on the host are squared into the statistics.
void tr__hop_square(tr_ways *ways, int flat, tr_issued *issued);

// ---- between memory and NVMe (ways_nvme.c)

void tr__hop_read(tr_ways *ways, int flat, tr_issued *issued);
void tr__hop_write(tr_ways *ways, int flat, tr_issued *issued);

// ---- for all of them

// Gradients of a flat buffer that pass, as the device has made them since they were
// taken last; and taken: what is made from here on is another value.
int32_t tr__ways_made(tr_ways *ways, int flat);
int32_t tr__ways_take(tr_ways *ways, int flat);
// What every rank has room for of its part of a flat buffer, in elements.
int64_t tr__part_elements(const tr_flat *flat);

#endif
