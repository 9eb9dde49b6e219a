// The static plan of one optimizer step, its bytes, and its predicted time.
#ifndef TRANCHE_PLAN_H
#define TRANCHE_PLAN_H

#include <tranche/status.h>
#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_plan tr_plan;

typedef enum tr_space {
    TR_SPACE_DEVICE,
    TR_SPACE_HOST,
    TR_SPACE_NVME,
    TR_SPACES
} tr_space;

// X(name): the categories of the ledger
#define TR_LEDGER_LIST(X)                                                              \
    X(parameters)                                                                      \
    X(packed)                                                                          \
    X(gradients)                                                                       \
    X(optimizer)                                                                       \
    X(activations)                                                                     \
    X(boundary)                                                                        \
    X(workspace)                                                                       \
    X(communication)                                                                   \
    X(staging)                                                                         \
    X(data)                                                                            \
    X(cache)                                                                           \
    X(states)                                                                          \
    X(unused)

typedef enum tr_ledger_category {
#define TR_LEDGER_ENUM(name) TR_LEDGER_##name,
    TR_LEDGER_LIST(TR_LEDGER_ENUM)
#undef TR_LEDGER_ENUM
        TR_LEDGER_COUNT
} tr_ledger_category;

// Bytes at the fullest moment of the step, by category. They add up to the total, which
// is the arena's size. "unused" is the space between buffers at that moment.
typedef struct tr_ledger {
    int64_t bytes[TR_SPACES][TR_LEDGER_COUNT];
    int64_t total[TR_SPACES];
} tr_ledger;

// The most bytes that the program needs beside the ledger: for itself, its libraries,
// and their own memory. The key memory.process says what another process needs.
#define TR_PROCESS_BYTES ((int64_t)96 << 20)

// tr_run_make_plan makes one.
TR_API void tr_plan_destroy(tr_plan *plan); // NULL-safe

// Without a plan (NULL), the functions that return numbers give 0, and this one NULL.
// Owned by the plan.
TR_API const tr_ledger *tr_plan_ledger(const tr_plan *plan);
// Checks whether this machine has the memory that the plan needs. TR_BUDGET: it has
// less; the message begins with `what`, "sampling from this model". If the machine's
// memory is not known, the status is TR_OK.
TR_API tr_status tr_plan_check_memory(const tr_plan *plan, const char *what,
                                      tr_error *err);
TR_API const char *tr_ledger_name(tr_ledger_category category);
TR_API const char *tr_space_name(tr_space space);
TR_API int64_t tr_plan_parameters(const tr_plan *plan); // elements, without padding
TR_API int64_t
tr_plan_trained(const tr_plan *plan);             // those of them that are not frozen
TR_API double tr_plan_flops(const tr_plan *plan); // of one step on one rank

// The operations of one step on one rank, as the literature counts them. Only products
// of matrices count, with two operations for a multiplication and an addition
// (Chowdhery et al., PaLM, arXiv 2204.02311, appendix B; Korthikanti et al., arXiv
// 2205.05198, appendix A). `full` counts attention over all pairs of queries and keys,
// `causal` over those that are seen. `..._again` is what is recomputed; it is not in
// the others.
typedef struct tr_model_flops {
    double full, causal, full_again, causal_again;
} tr_model_flops;

// Those of a training plan's step. NULL: all are 0.
TR_API tr_model_flops tr_plan_model_flops(const tr_plan *plan);

// Prints the plan as a text in which repeated steps appear once, or the whole plan as
// one JSON object. TR_IO: `to` takes no more. TR_MEMORY.
TR_API tr_status tr_plan_print(const tr_plan *plan, const tr_sink *to, tr_error *err);
TR_API tr_status tr_plan_print_json(const tr_plan *plan, const tr_sink *to,
                                    tr_error *err);

// ---- where the bytes of a step lie, and when
//
// These functions are about the training step, or the step of a plan for inference.
// Steps are counted from 0, in the order in which they are issued. The plan owns all
// texts.

// A step, in words: "reduce", "gradients", "h.3".
typedef struct tr_planned_step {
    size_t size; // of this struct; the library fills no more
    const char *kind;
    const char *what;    // what of its subject; NULL: the kind says it
    const char *subject; // a unit or a flat buffer; NULL: it is of none
    const char *stream;
    int64_t micro_batch; // -1: it is of none
} tr_planned_step;

// A buffer: it has the bytes [offset, offset + bytes) of its space's arena from the
// step `first` to the step `last`, both included.
typedef struct tr_planned_buffer {
    size_t size; // of this struct; the library fills no more
    tr_space space;
    tr_ledger_category category;
    int64_t offset, bytes;
    int64_t first, last;
    bool kept;           // it outlives the step, and has its bytes from 0 to the end
    const char *what;    // "output", "gradients"
    const char *subject; // a unit or a flat buffer; NULL: it is of none, or of several
    int64_t micro_batch; // -1: it is of none, or of several
    int64_t writer;      // the first step that writes it; -1: none does
    int64_t reader;      // the last one that reads it; -1: none does
} tr_planned_buffer;

// Calls `take` for each step, in their order, or for each buffer. What it gets is valid
// during the call. Not collective. TR_USAGE: an argument is NULL. TR_MEMORY.
TR_API tr_status tr_plan_steps(const tr_plan *plan,
                               void (*take)(void *user, const tr_planned_step *step),
                               void *user, tr_error *err);
TR_API tr_status tr_plan_buffers(const tr_plan *plan,
                                 void (*take)(void *user,
                                              const tr_planned_buffer *buffer),
                                 void *user, tr_error *err);

// ---- how long the step of a plan takes on a machine that a file describes
//
//     tr_run_resolve -> tr_run_make_plan -> tr_simulate -> tr_simulated_print

// What a machine can do, from a machine file (docs/simulate.md).
typedef struct tr_machine tr_machine;

// Reads a machine file. The caller closes *out. TR_USAGE: the file is wrong; the
// message names file, line and key. TR_MEMORY.
TR_API tr_status tr_machine_open(const char *path, tr_machine **out, tr_error *err);
TR_API void tr_machine_close(tr_machine *machine); // NULL-safe
// Writes it as a machine file. TR_IO: `to` takes no more. TR_MEMORY.
TR_API tr_status tr_machine_print(const tr_machine *machine, const tr_sink *to,
                                  tr_error *err);

// The prediction for one optimizer step. All ranks of a stage run the same plan on
// equal machines. So its first rank, which has the longest shards of the flat buffers,
// is simulated in place of all. If a pipeline has several stages, they are simulated
// together. Except for the step's seconds, all times are then means over one rank of
// each stage. planned_bytes has, for each space, those of the stage that takes the
// most.
typedef struct tr_simulation {
    size_t size;            // of this struct; the library fills no more
    double seconds;         // of the step
    double compute_seconds; // the kernels alone
    double slowed_seconds;  // added because copies and messages take memory bandwidth
    // How long computing waits for messages of other ranks, for copies between device
    // and host, and for NVMe (exposed), and how long each of these works in all.
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
    // How long computing waits for the host's processors, and how long these work. 0 if
    // the host's processors are the device.
    double exposed_host_seconds, host_seconds;
    // Memory of one rank in the plan, and that of the machine (0: its file says none).
    int64_t planned_bytes[TR_SPACES], machine_bytes[TR_SPACES];
    // What computing consists of: products of matrices, attention, all other kernels.
    double product_seconds, attention_seconds, other_seconds;
    // The literature's operations of this rank's step; tokens (targets) a second of one
    // rank, and 1e12 operations a second of one, `full` ones without recomputation.
    tr_model_flops literature;
    double tokens_per_second_per_rank, tflops_per_rank;
    // Model FLOPs utilisation, of the machine's operations a second in the run's type:
    // attention in full, causal; and with what is recomputed (hardware FLOPs).
    double mfu, mfu_causal, hfu, hfu_causal;
    // The update, as a part of computing that is not in other_seconds. And how long
    // this rank waits for slower ones before messages begin, because the times of
    // kernels vary; this is not in exposed_seconds.
    double update_seconds, slower_seconds;
    int64_t
        between_bytes; // the part of gathers and reductions that goes to other nodes
    // How long this rank waits for stages of the pipeline that have not reached an
    // exchange yet; it is in none of the above. 0 if there is one stage.
    double bubble_seconds;
    // An evaluation (tr_simulated_evaluate): its samples, 0: none is simulated; and how
    // long it takes.
    int64_t evaluation_samples;
    double evaluation_seconds;
} tr_simulation;

typedef struct tr_simulated tr_simulated; // the prediction and its timeline

// Simulates the plan of a training step; allocates no tensors. `plan` and `machine`
// must outlive *out, which the caller destroys. Not collective. TR_USAGE: the plan is
// for inference; TR_MEMORY.
TR_API tr_status tr_simulate(const tr_plan *plan, const tr_machine *machine,
                             tr_simulated **out, tr_error *err);
TR_API void tr_simulated_destroy(tr_simulated *simulated); // NULL-safe
TR_API const tr_simulation *tr_simulated_result(const tr_simulated *simulated);

// Simulates an evaluation of so many samples between two steps, too: it is in the
// result and in what is printed from then on. Not collective. TR_USAGE: `samples` is
// below 1, or the model has no loss; TR_MEMORY.
TR_API tr_status tr_simulated_evaluate(tr_simulated *simulated, int64_t samples,
                                       tr_error *err);

// From now on the printed plan says how long each stage of its pipeline waits. Does
// nothing for a plan of one stage, or if an argument is NULL. Not collective.
TR_API void tr_plan_note_times(tr_plan *plan, const tr_simulated *simulated);

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
