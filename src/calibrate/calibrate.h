// Measures the machine that it runs on, as a machine file would describe it: what the
// planner compares plans by (docs/simulate.md).
#ifndef TR_CALIBRATE_CALIBRATE_H
#define TR_CALIBRATE_CALIBRATE_H

#include "base/log.h"
#include "sim/machine.h"

#include <tranche/comm.h>

typedef struct tr_calibration {
    const char *cache; // folder of what was measured before; NULL: the user's
                       // ($XDG_CACHE_HOME or ~/.cache, tranche/); "": none
    const char *nvme;  // folder whose reads and writes are measured; NULL or "": none
    int64_t memory;  // bytes that measuring may take on each rank; 0: an eighth of the
                     // machine's. What needs more is not measured by itself
    double seconds;  // about as long as it may take; 0: four
    bool again;      // measures even where the cache has it
    bool known_only; // measures nothing: *out is NULL where the cache has not got it
    const tr_log *log; // NULL: silent
} tr_calibration;

// The machine, for plans of the request's model, threads and instruction set. Of the
// request, what cuts the batch and places things (micro batch, wave, stage, placement,
// recomputation) does not matter and need not be resolved. Matrix products and other
// kernels are those of the model, at two micro-batch sizes; besides, memory, launches,
// the host's update, copies, what computing loses to them, messages between ranks, and
// NVMe.
//
// `comm`: NULL: this process alone; then, for a request of several ranks, their links
// are not measured but taken to be copies. All ranks measure at the same time, as they
// would compute; rank 0's figures are what all get, bit for bit.
//
// What was measured is kept in the cache, and measured again when the machine, the
// library, the model's kernels or the number of ranks have changed. A cache that cannot
// be read or written is no error: the log says so.
//
// The caller closes *out. Collective. Errors: TR_MEMORY, TR_COMM, those of
// tr_plan_make.
tr_status tr__calibrate(const tr_plan_request *request, tr_comm *comm,
                        const tr_calibration *how, tr_machine **out, tr_error *err);

// A machine of the usual proportions, for where nothing may depend on time
// (reproducible runs, tests): a function of the request's threads, ranks and
// instruction set alone. Not collective. Errors: TR_MEMORY.
tr_status tr__calibrate_nominal(const tr_plan_request *request, tr_machine **out,
                                tr_error *err);

#endif
