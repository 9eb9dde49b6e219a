#include "plan/moves.h"

#include "ops/optimizer_measure.h"
#include "plan/residency.h"
#include "plan/wave.h"

static tr_region all_of(int32_t buffer, int64_t bytes) {
    return (tr_region){buffer, 0, bytes};
}

// Elements [first, first + count) of a flat buffer, in what is kept of them.
static tr_region in_range(const tr_flat_range *range, int64_t first, int64_t count,
                          int64_t element_bytes) {
    int64_t at = (first - range->first) * element_bytes;
    return (tr_region){range->buffer, at, at + count * element_bytes};
}

static const tr_flat *flat_of(const tr_plan *plan, const tr_step_draft *draft) {
    return &plan->flats[draft->step.unit];
}

// ---- between spaces

// Parameters, from where they live or are staged.
static void copy_fetched(const tr_plan *plan, const tr_step_draft *draft,
                         tr_copy *out) {
    const tr_flat *flat = flat_of(plan, draft);
    const tr_flat_range *copy = &flat->copy;
    int32_t staged = draft->buffer[TR_SLOT_INPUT], to = draft->buffer[TR_SLOT_OUTPUT];
    int64_t element = tr__param_bytes(plan), bytes = copy->count * element;
    *out = (tr_copy){
        .from = all_of(staged < 0 ? copy->buffer : staged, bytes),
        .to = to < 0 ? in_range(&flat->param, copy->first, copy->count, element)
                     : all_of(to, bytes),
    };
}

// Gradients, to where they are updated or staged.
static void copy_evicted(const tr_plan *plan, const tr_step_draft *draft,
                         tr_copy *out) {
    const tr_flat *flat = flat_of(plan, draft);
    const tr_flat_range *grad = &flat->grad;
    int32_t from = draft->buffer[TR_SLOT_INPUT], staged = draft->buffer[TR_SLOT_OUTPUT];
    int64_t element = tr__sum_bytes(plan), bytes = grad->count * element;
    *out = (tr_copy){
        .from = from < 0 ? in_range(&flat->sums, grad->first, grad->count, element)
                         : all_of(from, bytes),
        .to = all_of(staged < 0 ? grad->buffer : staged, bytes),
    };
}

void tr__step_copy(const tr_plan *plan, const tr_step_draft *draft, tr_copy *out) {
    (draft->step.kind == TR_STEP_fetch ? copy_fetched : copy_evicted)(plan, draft, out);
}

// ---- between ranks

static tr_comm_type sum_type(const tr_plan *plan) {
    switch (plan->request.sums) {
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

// So many bytes of each rank of the group, one after the other in one buffer.
static tr_step_exchange gather_bytes(const tr_plan *plan, const tr_step_draft *draft,
                                     int32_t buffer, int64_t own) {
    int64_t all = own * tr__mesh_members(&plan->request.mesh, draft->step.group);
    return (tr_step_exchange){.of = {.kind = TR_COMM_GATHER,
                                     .type = TR_COMM_BYTE,
                                     .in_place = true,
                                     .count = all,
                                     .shard = own},
                              .recv = all_of(buffer, all)};
}

static tr_step_exchange gather_flat(const tr_flat *flat, tr_comm_type type,
                                    int32_t buffer) {
    int64_t element = (int64_t)tr__comm_type_bytes(type);
    return (tr_step_exchange){.of = {.kind = TR_COMM_GATHER,
                                     .type = type,
                                     .in_place = true,
                                     .count = flat->count,
                                     .shard = flat->shard},
                              .recv = all_of(buffer, flat->count * element)};
}

static void send_from(tr_step_exchange *e, tr_region send) {
    e->of.in_place = send.buffer < 0;
    e->send = send;
}

// Of 16 bits as bytes: nothing is added.
static tr_step_exchange gather_params(const tr_plan *plan, const tr_step_draft *draft) {
    const tr_flat *flat = flat_of(plan, draft);
    int32_t from = draft->buffer[TR_SLOT_INPUT], to = draft->buffer[TR_SLOT_OUTPUT];
    int64_t element = tr__param_bytes(plan);
    tr_step_exchange e =
        gather_flat(flat, TR_COMM_F32, to < 0 ? flat->param.buffer : to);
    if (tr__plan_is_half(plan)) {
        e.of.type = TR_COMM_BYTE;
        e.of.count *= element;
        e.of.shard *= element;
        e.recv.end = e.of.count;
    }
    if (to >= 0) {
        send_from(&e,
                  all_of(from < 0 ? flat->param.buffer : from, flat->own * element));
    }
    return e;
}

// Where a rank has several parts, they are packed: this rank's are at their place.
static tr_step_exchange gather_wave(const tr_plan *plan, const tr_step_draft *draft) {
    tr_wave_range range = tr__wave_range(plan, &draft->step);
    tr_step_exchange e = gather_bytes(plan, draft, draft->buffer[TR_SLOT_OUTPUT],
                                      tr__wave_sent(plan, &draft->step));
    if (tr__wave_parts(plan, TR_SEQUENCE_TRAIN) == 1) {
        send_from(&e, (tr_region){tr__draft_wave(draft), range.offset,
                                  range.offset + range.bytes});
    }
    return e;
}

static tr_step_exchange gather(const tr_plan *plan, const tr_step_draft *draft) {
    if (draft->step.part == TR_PART_WAVE) {
        return gather_wave(plan, draft);
    }
    const tr_flat *flat = flat_of(plan, draft);
    switch (draft->step.part) {
    case TR_PART_PARAM:
        return gather_params(plan, draft);
    case TR_PART_GRAD:
        return gather_flat(flat, sum_type(plan), flat->sums.buffer);
    case TR_PART_NORMS:
        return gather_bytes(plan, draft, draft->buffer[TR_SLOT_OUTPUT],
                            plan->norms.parts * (int64_t)sizeof(tr_squares));
    default: // the statistics: nobody gathers optimizer states
        return gather_bytes(plan, draft, plan->statistics.buffer,
                            plan->statistics.doubles * (int64_t)sizeof(double));
    }
}

static tr_step_exchange reduce(const tr_plan *plan, const tr_step_draft *draft) {
    const tr_flat *flat = flat_of(plan, draft);
    int32_t from = draft->buffer[TR_SLOT_INPUT], to = draft->buffer[TR_SLOT_OUTPUT];
    int64_t element = tr__sum_bytes(plan);
    return (tr_step_exchange){
        .of = {.kind = TR_COMM_REDUCE,
               .type = sum_type(plan),
               .count = flat->count,
               .shard = flat->shard},
        .send = all_of(from < 0 ? flat->sums.buffer : from, flat->count * element),
        .recv = to < 0 ? in_range(&flat->sums, flat->first, flat->own, element)
                       : all_of(to, flat->own * element),
        .contributes = true,
    };
}

void tr__step_exchange(const tr_plan *plan, const tr_step_draft *draft,
                       tr_step_exchange *out) {
    *out = (draft->step.kind == TR_STEP_gather ? gather : reduce)(plan, draft);
    out->of.group = draft->step.group;
}

// ---- between the file and memory

void tr__step_file(const tr_plan *plan, const tr_step_draft *draft, tr_file_move *out) {
    bool reads = draft->step.kind == TR_STEP_read;
    const tr_flat_range *range = tr__flat_range(flat_of(plan, draft), draft->step.part);
    int64_t at =
        tr__nvme_bytes(plan, draft->step.part, draft->step.first - range->first);
    int64_t bytes = tr__nvme_bytes(plan, draft->step.part, draft->step.count);
    *out = (tr_file_move){
        .reads = reads,
        .stored = {range->buffer, at, at + bytes},
        .memory = all_of(draft->buffer[reads ? TR_SLOT_OUTPUT : TR_SLOT_INPUT], bytes)};
}
