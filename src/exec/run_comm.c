// Steps that ranks take together.
#include "base/checked.h"
#include "exec/walk.h"
#include "ops/optimizer_measure.h"

#include <string.h>

static tr_comm_type grad_type(const tr_executor *ex) {
    switch (ex->plan->request.sums) {
    case TR_I64:
        return TR_COMM_I64;
    case TR_BF16:
        return TR_COMM_BF16;
    case TR_F16:
        return TR_COMM_F16;
    default:
        return TR_COMM_F32;
    }
}

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

static tr_comm_op gather_of(const tr_executor *ex, const tr_plan_step *step) {
    const tr_record_layout *record = &ex->plan->record;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    tr_comm_op op = {.kind = TR_COMM_GATHER,
                     .type = TR_COMM_F32,
                     .count = flat->count,
                     .shard = flat->shard};
    int from = step->buffer[TR_SLOT_INPUT], to = step->buffer[TR_SLOT_OUTPUT];
    switch (step->part) {
    case TR_PART_PARAM:
        if (tr__plan_is_half(ex->plan)) {
            op.type = TR_COMM_BYTE;
            op.count *= tr__param_bytes(ex->plan);
            op.shard *= tr__param_bytes(ex->plan);
        }
        op.recv = tr__memory(ex, to < 0 ? flat->param.buffer : to);
        op.send = to < 0 ? NULL : tr__memory(ex, from < 0 ? flat->param.buffer : from);
        break;
    case TR_PART_GRAD:
        op.type = grad_type(ex);
        op.recv = tr__memory(ex, flat->sums.buffer);
        break;
    case TR_PART_NORMS:
        op.type = TR_COMM_BYTE;
        op.shard = ex->plan->norms.parts * (int64_t)sizeof(tr_squares);
        op.count = op.shard * ex->plan->request.ranks;
        op.recv = tr__memory(ex, to);
        break;
    case TR_PART_RECORD:
        op.type = TR_COMM_BYTE;
        op.shard = record->doubles * (int64_t)sizeof(double);
        op.count = op.shard * ex->plan->request.ranks;
        op.recv = tr__memory(ex, record->buffer);
        break;
    default: // nobody gathers optimizer states
        break;
    }
    return op;
}

tr_status tr__run_gather(tr_work *work, const tr_plan_step *step) {
    tr_comm_op op = gather_of(work->ex, step);
    tr__comm_start(work->ex->comm, &op);
    return TR_OK; // a fault comes up where somebody waits
}

tr_status tr__run_reduce(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    int from = step->buffer[TR_SLOT_INPUT], to = step->buffer[TR_SLOT_OUTPUT];
    tr_comm_op op = {.kind = TR_COMM_REDUCE,
                     .type = grad_type(ex),
                     .count = flat->count,
                     .shard = flat->shard,
                     .add = !(step->writes & tr__slot_bit(TR_SLOT_OUTPUT))};
    op.send = tr__memory(ex, from < 0 ? flat->sums.buffer : from);
    op.recv = to < 0 ? tr__kept_sum(ex, &flat->sums, flat->first) : tr__memory(ex, to);
    tr__comm_start(ex->comm, &op);
    return TR_OK;
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
