// Pass: buffers that live from step to step and belong to no flat buffer: the rings of
// data, the statistics, what moves between ranks and NVMe passes through, sums, the
// logits. Host and device share most of them.
#include "backend/backend.h"
#include "base/batch.h"
#include "base/checked.h"
#include "comm/comm.h"
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"
#include "plan/flow/request.h"
#include "plan/flow/residency.h"

static tr_status keep_in(tr_plan *plan, tr_space space, tr_ledger_category category,
                         int64_t bytes, int *buffer, tr_error *err) {
    *buffer = tr__plan_buffer(
        plan,
        (tr_buffer){
            .category = category, .space = space, .sequence = -1, .bytes = bytes},
        err);
    return *buffer < 0 ? TR_MEMORY : TR_OK;
}

static tr_status keep(tr_plan *plan, tr_ledger_category category, int64_t bytes,
                      int *buffer, tr_error *err) {
    return keep_in(plan, tr__plan_shared_space(plan), category, bytes, buffer, err);
}

// Bytes, as f32, of the largest part of a flat buffer that the host does not see as f32
// where it lies.
static int64_t most_exchanged(const tr_plan *plan) {
    int64_t most = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        bool away = buffer->space == TR_SPACE_NVME ||
                    (buffer->space == TR_SPACE_DEVICE && plan->request.discrete);
        most = tr__max_i64(most, away ? buffer->bytes : 0);
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        bool half = tr__flat_is_half(flat);
        most = tr__max_i64(most, half ? flat->copy.count * (int64_t)sizeof(float) : 0);
        int64_t states = flat->state[0].count * (int64_t)sizeof(float);
        bool packed = tr__plan_packs(plan) && flat->state[0].buffer >= 0;
        most = tr__max_i64(most, packed ? states : 0);
    }
    return most;
}

// Weights and checkpoints pass through it, block by block.
static tr_status keep_exchange(tr_plan *plan, tr_error *err) {
    int64_t block = tr__nvme_elements(plan, plan->flats, tr__used_part(plan));
    int64_t most = most_exchanged(plan);
    if (most == 0) {
        return TR_OK;
    }
    int64_t elements = tr__round_up(tr__ceil_div(most, (int64_t)sizeof(float)), block);
    elements = tr__min_i64(elements, TR_EXCHANGE_ELEMENTS);
    return keep_in(plan, TR_SPACE_HOST, TR_LEDGER_staging,
                   elements * tr__exchange_bytes(plan), &plan->exchange, err);
}

static tr_status keep_landing(tr_plan *plan, tr_error *err) {
    plan->landing = -1;
    return tr__rows_on_device(plan)
               ? keep(plan, TR_LEDGER_data, plan->slot_bytes, &plan->landing, err)
               : TR_OK;
}

// How many of a training step are at a time.
static int64_t waves_at_work(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    int lowest = tr__plan_lowest(plan);
    if (r->passes > 1 && plan->chunks.each > 1) { // all go through a chunk at first
        return tr__ceil_div(r->accumulation_steps, r->wave);
    }
    return r->inference || lowest < 0
               ? 1
               : tr__turns_under_way(&plan->turns[TR_SEQUENCE_TRAIN], TR_TURN_BACKWARD,
                                     plan->units[lowest].chunk);
}

static int64_t evaluated_at_work(const tr_plan *plan) {
    int last = tr__stage_chunk(&plan->chunks, plan->request.mesh.at[TR_AXIS_PIPELINE],
                               plan->chunks.each - 1);
    return tr__turns_under_way(&plan->turns[TR_SEQUENCE_EVALUATE], TR_TURN_FORWARD,
                               last);
}

static tr_status keep_rings(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_space space =
        tr__rows_on_device(plan) ? TR_SPACE_DEVICE : tr__plan_shared_space(plan);
    tr_status status = TR_OK;
    plan->slot_bytes =
        tr__batch_offset(&plan->batch, r->micro_batch, plan->batch.count);
    // The next wave is read while those are at work.
    plan->slots[0] = (waves_at_work(plan) + 1) * r->wave;
    plan->slots[1] = r->inference ? 1 : evaluated_at_work(plan) + 1;
    for (int i = 0; i < 2 && status == TR_OK; i++) {
        bool there = i == 1 || !r->inference;
        int64_t bytes = 0;
        if (there && !tr__mul_i64(plan->slots[i], plan->slot_bytes, &bytes)) {
            return tr_fail(err, TR_USAGE,
                           "the ring of data needs more than 2^63 bytes");
        }
        status = keep_in(plan, space, TR_LEDGER_data, bytes, &plan->data_ring[i], err);
    }
    return status == TR_OK ? keep_landing(plan, err) : status;
}

// The statistics of the step, of all ranks, and what moves between them on its way.
static tr_status keep_statistics(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_comm_room room = tr__plan_room(plan);
    int64_t ranks = tr_mesh_ranks(&r->mesh), bytes = 0;
    if (r->inference) {
        plan->statistics.buffer = plan->staging = -1;
        return TR_OK;
    }
    if (!tr__mul_i64(plan->statistics.doubles, ranks * (int64_t)sizeof(double),
                     &bytes)) {
        return tr_fail(err, TR_USAGE,
                       "the statistics of a step need more than 2^63 bytes");
    }
    tr_status status =
        keep(plan, ranks > 1 ? TR_LEDGER_communication : TR_LEDGER_workspace, bytes,
             &plan->statistics.buffer, err);
    if (status == TR_OK) {
        status = keep_in(plan, tr__norms_space(plan), TR_LEDGER_workspace,
                         plan->statistics.blocks * (int64_t)sizeof(double),
                         &plan->statistics.squares, err);
    }
    return status == TR_OK ? keep(plan, TR_LEDGER_communication,
                                  tr__comm_staging_bytes(&room), &plan->staging, err)
                           : status;
}

static tr_status keep_scratch(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    const tr_backend *backend = tr__backend(r->backend);
    int64_t bytes =
        backend->scratch ? backend->scratch(tr__request_target(r).level) : 0;
    plan->scratch = -1;
    return bytes > 0 ? keep_in(plan, TR_SPACE_DEVICE, TR_LEDGER_workspace, bytes,
                               &plan->scratch, err)
                     : TR_OK;
}

tr_status tr__pass_kept(tr_plan *plan, tr_error *err) {
    const tr_unit_program *last = plan->units[plan->unit_count - 1].program;
    tr_status status = keep_rings(plan, err);
    if (status == TR_OK) {
        status = keep_statistics(plan, err);
    }
    if (status == TR_OK) {
        status = keep_scratch(plan, err);
    }
    if (status == TR_OK) {
        status = keep_exchange(plan, err);
    }
    if (status == TR_OK) {
        status =
            keep(plan, TR_LEDGER_workspace,
                 plan->evaluated * TR_SUMS * (int64_t)sizeof(double), &plan->sums, err);
    }
    return status == TR_OK && plan->request.inference
               ? keep(plan, TR_LEDGER_workspace, last->logits_bytes, &plan->logits, err)
               : status;
}
