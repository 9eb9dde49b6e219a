// Steps that ranks take together.
#include "base/checked.h"
#include "exec/walk.h"
#include "ops/optimizer_measure.h"

static tr_comm_type grad_type(const tr_executor *ex) {
    return ex->plan->request.reproducible ? TR_COMM_I64 : TR_COMM_F32;
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
    bool folds = ex->plan->request.reproducible;
    tr_comm_op op = {.kind = TR_COMM_REDUCE,
                     .type = grad_type(ex),
                     .count = flat->count,
                     .shard = flat->shard,
                     .add = !(step->fresh & 1)};
    op.send = tr__memory(ex, from < 0 ? flat->sums.buffer : from);
    if (to >= 0) {
        op.recv = tr__memory(ex, to);
    } else {
        op.recv = folds ? (void *)tr__kept_i64(ex, &flat->sums, flat->first)
                        : (void *)tr__kept_f32(ex, &flat->sums, flat->first);
    }
    tr__comm_start(ex->comm, &op);
    return TR_OK;
}

// What is started here is no step of the plan: the numbers that others wait for move on
// by as many, all of them done.
static tr_status merge(tr_work *work, float *values, int64_t count) {
    const tr_executor *ex = work->ex;
    int64_t first = 0, own = 0, shard = tr__ceil_div(count, ex->plan->request.ranks);
    tr__comm_part(count, shard, (int)ex->plan->request.rank, &first, &own);
    tr_comm_op op = {TR_COMM_REDUCE, TR_COMM_F32,    count, shard,
                     values,         values + first, false};
    tr__comm_start(ex->comm, &op);
    op = (tr_comm_op){TR_COMM_GATHER, TR_COMM_F32, count, shard, NULL, values, false};
    work->first_ticket += 2;
    return tr__comm_wait(ex->comm, tr__comm_start(ex->comm, &op), work->err);
}

// Every rank has added its micro-batches to the wave's tensors; in the backward, to
// their gradients. In an evaluation each micro-batch is a wave of its own.
tr_status tr__run_combine(tr_work *work, const tr_plan_step *step) {
    if (work->sequence != TR_SEQUENCE_TRAIN) {
        return TR_OK;
    }
    char *base = tr__memory(work->ex, tr__combine_buffer(step));
    tr_wave_tensor tensor;
    tr_status status = TR_OK;
    size_t next = 0;
    while (work->ex->comm && status == TR_OK &&
           tr__combine_next(work->ex->plan, step, &next, &tensor)) {
        status = merge(work, (float *)(void *)(base + tensor.offset), tensor.count);
    }
    return status;
}
