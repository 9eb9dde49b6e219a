// Predicts how long the step of a plan takes on a machine that a file describes.
//
//     tr_run_resolve -> tr_plan_make -> tr_simulate -> tr_simulation_print
#ifndef TRANCHE_SIMULATE_H
#define TRANCHE_SIMULATE_H

#include <tranche/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a machine can do, from a machine file (docs/simulate.md).
typedef struct tr_machine tr_machine;

// Reads a machine file. The caller closes *out. TR_USAGE: the file is wrong; the
// message names file, line and key. TR_MEMORY.
TR_API tr_status tr_machine_open(const char *path, tr_machine **out, tr_error *err);
TR_API void tr_machine_close(tr_machine *machine); // NULL-safe

// The prediction for one optimizer step. All ranks run the same plan on equal machines,
// so rank 0 stands for all: no other rank has longer parts of the flat buffers.
typedef struct tr_simulation {
    double seconds;         // of the step
    double compute_seconds; // the kernels alone
    double slowed_seconds;  // added because copies and messages take memory bandwidth
    // Compute waits for messages of other ranks, for copies between device and host,
    // and for NVMe (exposed); and how long each of these was at work in all.
    double exposed_seconds, exposed_copy_seconds, exposed_nvme_seconds;
    double communication_seconds, copy_seconds, nvme_seconds;
    double samples_per_second; // all ranks together
    double tokens_per_second;  // targets
    double flops;              // of this rank, recomputation included
    double model_flops;        // without recomputation
    double utilisation;        // flops / (seconds * the machine's flops a second)
    double model_utilisation;
    int64_t gather_bytes, reduce_bytes; // sent by this rank
    int64_t copied_bytes, stored_bytes; // between its device and host; NVMe, both ways
    // Compute waits for the host's processors, and how long these were at work. 0 where
    // the host's processors are the device.
    double exposed_host_seconds, host_seconds;
    // Memory of one rank in the plan, and that of the machine (0: its file says none).
    int64_t planned_bytes[TR_SPACES], machine_bytes[TR_SPACES];
} tr_simulation;

typedef struct tr_simulated tr_simulated; // the prediction and its timeline

// Walks the plan of a training step; allocates no tensors. `plan` and `machine` must
// outlive *out, which the caller destroys. Not collective. TR_USAGE: the plan is for
// inference; TR_MEMORY.
TR_API tr_status tr_simulate(const tr_plan *plan, const tr_machine *machine,
                             tr_simulated **out, tr_error *err);
TR_API void tr_simulated_destroy(tr_simulated *simulated); // NULL-safe
TR_API const tr_simulation *tr_simulated_result(const tr_simulated *simulated);

// Prints a table, one JSON object, or a trace for ui.perfetto.dev. TR_IO: `to` takes no
// more. TR_MEMORY.
TR_API tr_status tr_simulated_print(const tr_simulated *simulated, const tr_sink *to,
                                    tr_error *err);
TR_API tr_status tr_simulated_print_json(const tr_simulated *simulated,
                                         const tr_sink *to, tr_error *err);
TR_API tr_status tr_simulated_trace(const tr_simulated *simulated, const tr_sink *to,
                                    tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
