// Steps that ranks take together.
#include "base/checked.h"
#include "exec/walk.h"
#include "plan/wave.h"

#include <string.h>

tr_status tr__run_wait(const tr_work *work, const tr_plan_step *step) {
    tr_status status = TR_OK;
    if (step->wait > 0) {
        status =
            tr__comm_wait(work->ex->comm, work->first_ticket + step->wait, work->err);
    }
    for (int s = 0; s < TR_STREAMS && status == TR_OK; s++) {
        tr_carrier *carrier = work->ex->carrier[s];
        int64_t steps = carrier ? tr__step_wait(step, (tr_stream)s) : 0;
        if (steps > 0) {
            status = tr__carrier_wait(carrier, work->first[s] + steps, work->err);
        }
    }
    return status;
}

tr_status tr__run_exchange(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    tr_exchange e;
    if (tr__step_exchange(ex->plan, step, &e)) {
        tr_comm_op op = {.kind = e.kind,
                         .type = e.type,
                         .count = e.count,
                         .shard = e.shard,
                         .send = tr__at_region(ex, &e.send),
                         .recv = tr__at_region(ex, &e.recv),
                         .add = e.adds};
        tr__comm_start(ex->comm, &op);
    }
    return TR_OK; // a fault comes up where somebody waits
}

// ---- wave tensors

static void add_f32(void *into, const void *part, int64_t count) {
    float *to = into;
    const float *from = part;
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void add_f64(void *into, const void *part, int64_t count) {
    double *to = into;
    const double *from = part;
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void merge_part(const tr_wave_tensor *tensor, char *into, const char *part) {
    if (tensor->op && tensor->op->merge) {
        tensor->op->merge(&tensor->desc, into, part);
    } else if (tensor->desc.dtype == TR_F64) {
        add_f64(into, part, tensor->bytes / (int64_t)sizeof(double));
    } else {
        add_f32(into, part, tensor->bytes / (int64_t)sizeof(float));
    }
}

// The parts of all ranks, one after the other, at `all`: [ranks][parts][bytes]. What is
// started here is no step of the plan: the numbers that others wait for move on by as
// many, all of them done.
static tr_status gather_parts(tr_work *work, const tr_wave_tensor *tensor,
                              const char *base, int64_t stride, int64_t parts,
                              char *all) {
    const tr_executor *ex = work->ex;
    int64_t shard = parts * tensor->bytes, ranks = ex->plan->request.ranks;
    char *own = all + ex->plan->request.rank * shard;
    for (int64_t p = 0; p < parts; p++) {
        memcpy(own + p * tensor->bytes, base + p * stride + tensor->offset,
               (size_t)tensor->bytes);
    }
    tr_comm_op op = {.kind = TR_COMM_GATHER,
                     .type = TR_COMM_BYTE,
                     .count = shard * ranks,
                     .shard = shard,
                     .recv = all};
    work->first_ticket += 1;
    return tr__comm_wait(ex->comm, tr__comm_start(ex->comm, &op), work->err);
}

// Ranks have runs of micro-batches: by rank and then by part is by micro-batch.
static tr_status merge(tr_work *work, const tr_plan_step *step,
                       const tr_wave_tensor *tensor) {
    const tr_executor *ex = work->ex;
    char *base = tr__memory(ex, tr__combine_buffer(step)), *to = base + tensor->offset;
    int64_t stride = ex->plan->units[step->unit].program->wave_bytes;
    int64_t parts = tr__wave_parts(ex->plan, work->sequence);
    tr_status status = TR_OK;
    if (!ex->comm || tensor->own) {
        for (int64_t p = 1; p < parts; p++) {
            merge_part(tensor, to, to + p * stride);
        }
        return TR_OK;
    }
    char *all = tr__memory(ex, step->buffer[TR_SLOT_TEMP]);
    status = gather_parts(work, tensor, base, stride, parts, all);
    for (int64_t p = 1; p < parts * ex->plan->request.ranks; p++) {
        merge_part(tensor, all, all + p * tensor->bytes);
    }
    memcpy(to, all, (size_t)tensor->bytes);
    return status;
}

// Every micro-batch has added to the wave's tensors; in the backward, to their
// gradients. In an evaluation each micro-batch is a wave of its own.
tr_status tr__run_combine(tr_work *work, const tr_plan_step *step) {
    tr_wave_tensor tensor;
    tr_status status = TR_OK;
    size_t next = 0;
    while (work->sequence == TR_SEQUENCE_TRAIN && status == TR_OK &&
           tr__combine_next(work->ex->plan, step, &next, &tensor)) {
        status = merge(work, step, &tensor);
    }
    return status;
}
