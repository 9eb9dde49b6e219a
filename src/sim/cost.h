// How long the work of a plan's steps takes on a machine.
#ifndef TR_SIM_COST_H
#define TR_SIM_COST_H

#include "plan/flow/work.h"
#include "sim/machine.h"

// What one rank has of the machine when all its node's ranks work.
typedef struct tr_share {
    const tr_machine *machine;
    int64_t ranks, sharers; // in all; on its node
    double part;            // of the node's rates: 1, or 1 / sharers
    double all_bytes;       // of one rank's memory: what fits the cache stays there
} tr_share;

// By how much computing slows what the stream does, and that computing.
double tr__stream_interference(const tr_machine *machine, tr_stream stream);

tr_share tr__machine_share(const tr_machine *machine, int64_t ranks, int64_t all_bytes);

// What kernels do.
typedef enum tr_work_kind {
    TR_WORK_PRODUCTS, // of matrices
    TR_WORK_ATTENTION,
    TR_WORK_OTHER,
    TR_WORK_KINDS
} tr_work_kind;

// Seconds of a program, by what its kernels do, and the variance of their sum.
typedef struct tr_work_seconds {
    double of[TR_WORK_KINDS];
    double variance;
} tr_work_seconds;

tr_work_seconds tr__program_work(const tr_share *share, const tr_program *program);

// Seconds of a kernel, a program, a step of the compute, data or host stream (but for
// what it waits for), an operation of the ranks.
double tr__kernel_seconds(const tr_share *share, const tr_instruction *instruction);
double tr__program_seconds(const tr_share *share, const tr_program *program);
double tr__step_seconds(const tr_share *share, const tr_plan *plan,
                        const tr_plan_step *step);
double tr__transfer_seconds(const tr_share *share, const tr_transfer *transfer);
// Seconds of a step of the copy or NVMe stream, and the way that it takes.
double tr__move_seconds(const tr_share *share, const tr_plan *plan,
                        const tr_plan_step *step);
tr_way tr__move_way(const tr_plan *plan, const tr_plan_step *step);

#endif
