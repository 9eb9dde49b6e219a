// What a step does, as data: its operands, and what its shape needs besides. The pass
// that inserts the step makes it (maker.h). Accesses, waits, costs and the executor
// read it, and know no technique.
#ifndef TR_PLAN_FLOW_PAYLOAD_H
#define TR_PLAN_FLOW_PAYLOAD_H

#include "comm/comm.h"
#include "comm/mesh.h"
#include "ops/optimizers/optimizer.h"
#include "plan/units/operand.h"
#include "plan/units/program.h"

#include <tranche/extend/op.h>

// What of a flat buffer, or of a step, is moved or updated. What is kept of a flat
// buffer has a row that says how (parts.h).
typedef enum tr_part {
    TR_PART_PARAM, // in a file: what the update changes
    TR_PART_GRAD,
    TR_PART_STATISTICS,
    TR_PART_COPY,  // in 16 bits: what the update rounds that to, and units compute with
    TR_PART_STATE, // the optimizer's first; the others follow
    TR_PARTS = TR_PART_STATE + TR_OPTIMIZER_STATES,
    TR_PART_NORMS = TR_PARTS, // what each rank has measured: only exchanged
    TR_PART_WAVE,             // wave tensors: only exchanged
    TR_PART_DIRECTION,  // of an update that takes matrices as wholes: only exchanged
    TR_PART_TENSOR,     // of a micro-batch, inside of a unit: only exchanged
    TR_PART_LARGEST,    // likewise: the largest values of tensors, for their scales
    TR_PART_FIRST_WAVE, // gradients of a tied tensor, for the noise scale: likewise
    TR_PART_BOUNDARY,   // of a micro-batch, between two stages: only exchanged
} tr_part;

// An op and its kernel, as steps launch it. Launches that differ in their operands
// alone share one.
typedef struct tr_prepared_op {
    tr_op_desc desc;         // bits of desc.accumulate: it may be asked to add
    const tr_kernel *kernel; // NULL: none was found (kernels.c)
} tr_prepared_op;

// One op of a launch.
typedef struct tr_op_launch {
    size_t op;      // of plan->prepared
    size_t operand; // of plan->operands: the first of desc.in_count inputs, behind
                    // which desc.out_count results follow
} tr_op_launch;

// Between ranks (comm.h): elements of `type`, of all ranks of the group.
typedef struct tr_exchange {
    tr_part part; // what is exchanged of the step's subject
    tr_comm_kind kind;
    tr_comm_type type;
    tr_axes group;
    bool in_place; // what is sent is this rank's part of what is received
    // Two of the group exchange: its members `from`, the first of them, and `to`. Where
    // both are 0, all of the group do.
    int32_t from, to;
    int64_t count, shard;
} tr_exchange;

// Which operand of a step is which, by its shape. A unit's program has one for each of
// its blocks (program.h). A launch of ops has its working memory first, if it needs any
// (tr_payload.works).
enum {
    TR_COPY_FROM = 0,
    TR_COPY_TO = 1,
    TR_EXCHANGE_SEND = 0,
    TR_EXCHANGE_RECEIVE = 1, // behind it the staging, where messages pass through it
    TR_FILE_STORED = 0,      // in the arena that the file is; read: from the file
    TR_FILE_MEMORY = 1,
    TR_HAND_OUT_OUTPUTS = 0,
    TR_HAND_OUT_GRADIENTS = 1, // in training, as are the sums of the loss
    TR_HAND_OUT_SUMS = 2,
};

typedef enum tr_host_call {
    TR_HOST_REPORT, // this rank completes its statistics of the step
    TR_HOST_DECIDE, // the engine decides by those of all ranks
    // The caller gets a micro-batch's outputs, and in training gives their gradients
    // and its loss.
    TR_HOST_HAND_OUT,
} tr_host_call;

typedef struct tr_payload {
    size_t operand, operand_count; // of plan->operands
    union {
        struct {                       // a launch: of a unit's program, or of ops
            const tr_program *program; // NULL: of ops
            size_t op, op_count;       // of plan->launches
            bool works;
        };
        tr_exchange exchange;
        bool gives_back;   // a feed: the micro-batch's slot; else it takes it
        tr_host_call call; // of the host
    };
} tr_payload;

#endif
