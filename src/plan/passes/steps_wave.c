#include "plan/passes/steps_wave.h"

#include "ops/flat/merge/merge.h"
#include "plan/flow/wave.h"

// A merge that is being made.
typedef struct merging {
    tr_editor *editor;
    const tr_plan *plan;
    tr_wave_segment of;
    tr_wave_range range; // of what ranks exchange
    int64_t parts;       // of each rank
    int64_t wave_bytes;  // of a part
    int32_t wave;        // the tensors, or their gradients
    int32_t gathered;    // all ranks' parts of them; -1: no other rank's are merged
} merging;

// A block of so many rows, each of so many bytes.
static tr_tensor_desc block(tr_dtype dtype, int64_t rows, int64_t bytes) {
    return (tr_tensor_desc){dtype,
                            TR_SHAPE2(rows, bytes / (int64_t)tr_dtype_bytes(dtype))};
}

static tr_plan_step step_of(const merging *m, tr_verb verb) {
    return (tr_plan_step){.label = {.verb = verb},
                          .subject = TR_OF_UNIT,
                          .unit = m->of.unit,
                          .segment = m->of.segment,
                          .backward = m->of.backward};
}

// This rank's parts go to their place among those of all ranks, in words of 8 bytes.
static void put_pack(const merging *m) {
    const int64_t word = sizeof(int64_t);
    tr_plan_step step = step_of(m, TR_VERB_pack);
    tr_pack_attr attr = {m->range.offset / word, m->range.bytes / word};
    tr_location own = {m->gathered, tr__data_rank(&m->plan->request) *
                                        tr__wave_sent(m->plan, m->of)};
    tr_op_draft op =
        tr__op_draft(m->plan, step.stream, &tr__op_pack, &attr, sizeof attr);
    tr__op_input(&op, block(TR_I64, m->parts, m->wave_bytes),
                 (tr_location){m->wave, 0});
    tr__op_writes(&op, 0, block(TR_I64, m->parts, m->range.bytes), own);
    tr__make_one(m->editor, step, -1, &op);
}

// Where a rank has several parts, they are packed, so this rank's are at their place.
static void put_gather(const merging *m) {
    tr_plan_step step = step_of(m, TR_VERB_gather);
    int64_t own = tr__wave_sent(m->plan, m->of),
            all = own * tr__data_ranks(&m->plan->request);
    tr_region sent = {m->wave, m->range.offset, m->range.offset + m->range.bytes};
    tr_exchange exchange = {.part = TR_PART_WAVE,
                            .kind = TR_COMM_GATHER,
                            .type = TR_COMM_BYTE,
                            .group = TR_ON_DATA,
                            .in_place = m->parts > 1,
                            .count = all,
                            .shard = own};
    step.label = tr__label_of_part(TR_VERB_gather, TR_PART_WAVE);
    step.stream = TR_STREAM_COMM;
    step.guard = TR_GUARD_ALWAYS;
    tr__make_exchange(m->editor, step, exchange, sent, tr__region(m->gathered, all),
                      false);
}

// From the parts of all ranks, the first of which is written.
static void merge_ranks(const merging *m, const tr_wave_tensor *tensor,
                        tr_op_draft *op) {
    int64_t parts = m->parts * tr__data_ranks(&m->plan->request);
    tr__op_input(op, block(tensor->desc.dtype, parts, m->range.bytes),
                 (tr_location){m->gathered, 0});
    tr__op_writes(op, 0, tensor->desc, (tr_location){m->wave, tensor->offset});
}

// To this rank's first part, from its others.
static void merge_own(const merging *m, const tr_wave_tensor *tensor, tr_op_draft *op) {
    tr__op_input(op, block(tensor->desc.dtype, m->parts - 1, m->wave_bytes),
                 (tr_location){m->wave, m->wave_bytes});
    tr__op_adds(op, 0, tensor->desc, (tr_location){m->wave, tensor->offset});
}

// Ranks have runs of micro-batches: by rank and then by part is by micro-batch.
static void merge_tensor(const merging *m, const tr_wave_tensor *tensor,
                         tr_step_maker *maker) {
    bool exchanged = tr__wave_is_exchanged(m->plan, tensor);
    int64_t row = exchanged ? m->range.offset : 0;
    tr_merge_attr attr = {.of = tensor->op,
                          .first = (tensor->offset - row) /
                                   (int64_t)tr_dtype_bytes(tensor->desc.dtype),
                          .shape = tensor->desc.shape};
    tr_op_draft op =
        tr__op_draft(m->plan, maker->step.stream, &tr__op_merge, &attr, sizeof attr);
    (exchanged ? merge_ranks : merge_own)(m, tensor, &op);
    tr__make_op(maker, &op);
}

static void put_merge(const merging *m) {
    tr_step_maker maker = tr__make_launch(m->editor, step_of(m, TR_VERB_merge), -1);
    tr_wave_tensor tensor;
    size_t next = 0;
    while (tr__wave_next(m->plan, m->of, &next, &tensor)) {
        if (tr__wave_is_merged(m->plan, &tensor)) {
            merge_tensor(m, &tensor, &maker);
        }
    }
    if (maker.step.payload.op_count > 0) {
        tr__make_end(&maker);
    }
}

void tr__put_wave_merge(tr_editor *editor, tr_wave_segment of) {
    const tr_plan *plan = editor->plan;
    const tr_unit_values *values = &plan->unit_values[editor->kind];
    merging m = {.editor = editor,
                 .plan = plan,
                 .of = of,
                 .range = tr__wave_range(plan, of),
                 .parts = tr__wave_parts(plan, editor->kind),
                 .wave_bytes = plan->units[of.unit].program->wave_bytes,
                 .wave = (of.backward ? values->wave_grad : values->wave)[of.unit],
                 .gathered =
                     tr__edit_value(editor, TR_LEDGER_communication, TR_SPACE_DEVICE,
                                    tr__wave_gathered(plan, of))};
    if (m.range.bytes > 0) {
        if (m.parts > 1) {
            put_pack(&m);
        }
        put_gather(&m);
    }
    put_merge(&m);
}
