// A plan under a cost model: how long its step takes on machines that are not there.
//
//     tr_run_open -> tr_plan_make -> tr_simulate -> tr_simulation_print
#ifndef TRANCHE_SIMULATE_H
#define TRANCHE_SIMULATE_H

#include <tranche/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a machine can do, from a machine file (docs/simulate.md).
typedef struct tr_machine tr_machine;

// The caller closes *out. TR_USAGE: whatever is wrong with the file, with file, line
// and key; TR_MEMORY.
tr_status tr_machine_open(const char *path, tr_machine **out, tr_error *err);
void tr_machine_close(tr_machine *machine); // NULL-safe

// One optimizer step. All ranks run the same plan on equal machines, so that one stands
// for all: the first, whose parts of the flat buffers are never shorter than another's.
typedef struct tr_simulation {
    double seconds;         // of the step
    double compute_seconds; // of them at work, if nothing else were
    double slowed_seconds;  // more, because something moved meanwhile
    // Waiting for messages of other ranks, for copies between device and host, for
    // NVMe; and how long something was on its way there.
    double exposed_seconds, exposed_copy_seconds, exposed_nvme_seconds;
    double communication_seconds, copy_seconds, nvme_seconds;
    double samples_per_second; // all ranks together
    double tokens_per_second;  // targets
    double flops;              // of this rank, what is computed again included
    double model_flops;        // without it
    double utilisation;        // flops over those of the machine in that time
    double model_utilisation;
    int64_t gather_bytes, reduce_bytes; // sent by this rank
    int64_t copied_bytes, stored_bytes; // between its device and host; NVMe, both ways
    // Waiting for what the host's processors compute, and how long they were at work;
    // 0 where they are the device.
    double exposed_host_seconds, host_seconds;
    // Of one rank; what the machine has for one: 0: not said.
    int64_t planned_bytes[TR_SPACES], machine_bytes[TR_SPACES];
} tr_simulation;

typedef struct tr_simulated tr_simulated; // with what each step did when

// Walks the plan of a training step; allocates no tensors. `plan` and `machine` must
// outlive *out, which the caller destroys. TR_USAGE: an inference plan; TR_MEMORY.
tr_status tr_simulate(const tr_plan *plan, const tr_machine *machine,
                      tr_simulated **out, tr_error *err);
void tr_simulated_destroy(tr_simulated *simulated); // NULL-safe
const tr_simulation *tr_simulated_result(const tr_simulated *simulated);

// For people; as one JSON object; as a trace that ui.perfetto.dev shows. TR_IO.
tr_status tr_simulated_print(const tr_simulated *simulated, FILE *to, tr_error *err);
tr_status tr_simulated_print_json(const tr_simulated *simulated, FILE *to,
                                  tr_error *err);
tr_status tr_simulated_trace(const tr_simulated *simulated, FILE *to, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
