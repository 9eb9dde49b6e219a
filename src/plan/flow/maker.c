#include "plan/flow/maker.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/prepared.h"
#include "plan/flow/work.h"

#include <string.h>

// ---- places

tr_region tr__region(int32_t value, int64_t bytes) {
    return (tr_region){value, 0, bytes};
}

tr_region tr__region_all(const tr_plan *plan, int32_t value) {
    return tr__region(value, value < 0 ? 0 : plan->buffers[value].bytes);
}

tr_region tr__region_of_flat(const tr_flat_range *range, int64_t first, int64_t count,
                             int64_t element_bytes) {
    int64_t at = (first - range->first) * element_bytes;
    return (tr_region){range->buffer, at, at + count * element_bytes};
}

tr_location tr__location(tr_region region) {
    return (tr_location){region.value, region.first};
}

tr_location tr__in_statistics(const tr_plan *plan, int64_t at) {
    int64_t own = tr_mesh_rank(&plan->request.mesh) * plan->statistics.doubles;
    return (tr_location){plan->statistics.buffer, (own + at) * (int64_t)sizeof(double)};
}

static tr_region region_at(tr_location at, tr_tensor_desc desc) {
    return (tr_region){at.value, at.offset, at.offset + tr_tensor_bytes(desc)};
}

// ---- ops

tr_tensor_desc tr__vector(tr_dtype dtype, int64_t count) {
    return (tr_tensor_desc){dtype, TR_SHAPE1(count)};
}

tr_op_draft tr__op_draft(const tr_plan *plan, tr_stream stream, const tr_op *op,
                         const void *attr, size_t attr_bytes) {
    tr_op_draft draft = {
        .desc = {.op = op,
                 .target = stream == TR_STREAM_HOST ? plan->host : plan->target}};
    if (attr_bytes > 0) {
        memcpy(draft.desc.attr, attr, attr_bytes);
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) { // those that nobody sets
        draft.out[i].value = -1;
    }
    return draft;
}

void tr__op_input(tr_op_draft *draft, tr_tensor_desc desc, tr_location at) {
    int i = draft->desc.in_count++;
    draft->desc.in[i] = desc;
    draft->in[i] = at;
}

void tr__op_writes(tr_op_draft *draft, int i, tr_tensor_desc desc, tr_location at) {
    tr_op_desc *of = &draft->desc;
    of->out[i] = at.value < 0 ? (tr_tensor_desc){TR_NONE, {0}} : desc;
    of->out_count = i >= of->out_count ? i + 1 : of->out_count;
    of->fresh |= 1u << i;
    draft->out[i] = at;
}

void tr__op_adds(tr_op_draft *draft, int i, tr_tensor_desc desc, tr_location at) {
    tr__op_writes(draft, i, desc, at);
    draft->desc.fresh &= ~(1u << i);
    draft->desc.accumulate |= 1u << i;
}

// ---- operands

static tr_step_maker begin(tr_editor *editor, tr_plan_step step, tr_step_shape shape) {
    step.shape = shape;
    step.payload = (tr_payload){.operand = editor->plan->operand_count};
    return (tr_step_maker){editor, step};
}

static void add_operand(tr_step_maker *m, tr_region region, tr_access_mode mode,
                        bool contributes) {
    tr_editor *e = m->editor;
    if (e->status == TR_OK) {
        e->status = tr__plan_operand(e->plan,
                                     (tr_step_operand){region.value, mode, contributes,
                                                       region.first, region.end},
                                     e->err);
    }
    m->step.payload.operand_count++;
}

static void reads(tr_step_maker *m, tr_region region) {
    add_operand(m, region, TR_ACCESS_READ, false);
}

static void writes(tr_step_maker *m, tr_region region) {
    add_operand(m, region, TR_ACCESS_WRITE, false);
}

int32_t tr__make_end(tr_step_maker *maker) {
    return tr__edit_append(maker->editor, maker->step);
}

// ---- launches of ops

tr_step_maker tr__make_launch(tr_editor *editor, tr_plan_step step, int32_t work) {
    tr_step_maker m = begin(editor, step, TR_STEP_IS_LAUNCH);
    m.step.payload.op = editor->plan->launch_count;
    m.step.payload.works = work >= 0;
    if (work >= 0) {
        writes(&m, tr__region_all(editor->plan, work));
    }
    return m;
}

// A rank without gradients of a flat buffer has no squares of them.
static bool is_nothing(const tr_plan *plan, const tr_region *region) {
    return region->value == plan->statistics.squares && region->first >= region->end;
}

static void add_result(tr_step_maker *m, const tr_op_draft *op, int i) {
    tr_region region = region_at(op->out[i], op->desc.out[i]);
    bool adds = op->desc.accumulate >> i & 1;
    region.value = is_nothing(m->editor->plan, &region) ? -1 : region.value;
    add_operand(m, region, adds ? TR_ACCESS_ADD : TR_ACCESS_WRITE, op->contributes[i]);
}

void tr__make_op(tr_step_maker *m, const tr_op_draft *op) {
    tr_editor *e = m->editor;
    tr_plan *plan = e->plan;
    tr_op_launch added = {.operand = plan->operand_count};
    for (int i = 0; i < op->desc.in_count; i++) {
        reads(m, region_at(op->in[i], op->desc.in[i]));
    }
    for (int i = 0; i < op->desc.out_count; i++) {
        add_result(m, op, i);
    }
    if (e->status == TR_OK) {
        e->status = tr__plan_prepare(plan, &op->desc, &added.op, e->err);
    }
    if (e->status == TR_OK &&
        !tr__grow((void **)&plan->launches, &plan->launch_capacity,
                  plan->launch_count + 1, sizeof *plan->launches)) {
        e->status = tr_fail(e->err, TR_MEMORY, "no memory for the plan's launches");
    }
    if (e->status == TR_OK) {
        plan->launches[plan->launch_count++] = added;
        m->step.payload.op_count++;
    }
}

int32_t tr__make_one(tr_editor *editor, tr_plan_step step, int32_t work,
                     const tr_op_draft *op) {
    tr_step_maker m = tr__make_launch(editor, step, work);
    tr__make_op(&m, op);
    return tr__make_end(&m);
}

// ---- moves

int32_t tr__make_copy(tr_editor *editor, tr_plan_step step, tr_region from,
                      tr_region to) {
    tr_step_maker m = begin(editor, step, TR_STEP_IS_COPY);
    reads(&m, from);
    writes(&m, to);
    return tr__make_end(&m);
}

int32_t tr__make_read(tr_editor *editor, tr_plan_step step, tr_region stored,
                      tr_region memory) {
    tr_step_maker m = begin(editor, step, TR_STEP_IS_FILE);
    reads(&m, stored);
    writes(&m, memory);
    return tr__make_end(&m);
}

int32_t tr__make_write(tr_editor *editor, tr_plan_step step, tr_region memory,
                       tr_region stored) {
    tr_step_maker m = begin(editor, step, TR_STEP_IS_FILE);
    writes(&m, stored);
    reads(&m, memory);
    return tr__make_end(&m);
}

tr_region tr__own_part(const tr_plan *plan, const tr_exchange *e, tr_region all) {
    int64_t element = (int64_t)tr__comm_type_bytes(e->type), first = 0, count = 0;
    tr__comm_part(e->count, e->shard, (int)tr__exchange_member(plan, e), &first,
                  &count);
    return (tr_region){all.value, all.first + first * element,
                       all.first + (first + count) * element};
}

// Where messages of the stream are staged.
static tr_region staging_of(const tr_plan *plan, tr_stream stream) {
    tr_comm_room room = tr__plan_room(plan);
    tr_region all = {.value = plan->staging};
    tr__comm_channel_staging(&room, tr__stream_channel(stream), &all.first, &all.end);
    return all;
}

int32_t tr__make_exchange(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                          tr_region send, tr_region recv, bool adds) {
    const tr_plan *plan = editor->plan;
    tr_step_maker m = begin(editor, step, TR_STEP_IS_EXCHANGE);
    m.step.payload.exchange = exchange;
    reads(&m, exchange.in_place ? tr__own_part(plan, &exchange, recv) : send);
    add_operand(&m, recv, adds ? TR_ACCESS_ADD : TR_ACCESS_WRITE, adds);
    tr_region staging = staging_of(plan, step.stream);
    bool by_devices = tr__plan_by_devices(plan, step.stream);
    if (!by_devices && staging.first < staging.end) {
        writes(&m, staging);
    }
    return tr__make_end(&m);
}

// A half of a sum over ranks.
static void make_half(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                      tr_region all, bool gathers) {
    const tr_plan *plan = editor->plan;
    exchange.kind = gathers ? TR_COMM_GATHER : TR_COMM_REDUCE;
    exchange.in_place = gathers;
    exchange.count =
        (all.end - all.first) / (int64_t)tr__comm_type_bytes(exchange.type);
    exchange.shard =
        exchange.shard > 0
            ? exchange.shard
            : tr__ceil_div(exchange.count, tr__exchange_members(plan, &exchange));
    step.label =
        tr__label_of_part(gathers ? TR_VERB_gather : TR_VERB_reduce, exchange.part);
    tr_region received = gathers ? all : tr__own_part(plan, &exchange, all);
    tr__make_exchange(editor, step, exchange, all, received, false);
}

void tr__make_reduced(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                      tr_region all) {
    make_half(editor, step, exchange, all, false);
}

void tr__make_gathered(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                       tr_region all) {
    make_half(editor, step, exchange, all, true);
}

void tr__make_sum(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                  tr_region all) {
    tr__make_reduced(editor, step, exchange, all);
    tr__make_gathered(editor, step, exchange, all);
}

int32_t tr__make_gather(tr_editor *editor, tr_plan_step step, tr_part part,
                        tr_axes group, tr_region first) {
    int64_t all = first.end * tr__mesh_members(&editor->plan->request.mesh, group);
    tr_exchange exchange = {.part = part,
                            .kind = TR_COMM_GATHER,
                            .type = TR_COMM_BYTE,
                            .group = group,
                            .in_place = true,
                            .count = all,
                            .shard = first.end};
    tr_region recv = tr__region(first.value, all);
    return tr__make_exchange(editor, step, exchange, recv, recv, false);
}

// ---- the host

static int32_t make_feed(tr_editor *editor, int64_t micro, bool gives_back) {
    const tr_plan *plan = editor->plan;
    int ring = editor->kind == TR_SEQUENCE_TRAIN ? 0 : 1;
    int64_t first = micro % plan->slots[ring] * plan->slot_bytes;
    tr_plan_step step = {.label = {.verb = gives_back ? TR_VERB_unload : TR_VERB_load},
                         .of_micro_batch = true,
                         .micro = micro,
                         .stream = TR_STREAM_DATA};
    tr_step_maker m = begin(editor, step, TR_STEP_IS_FEED);
    m.step.payload.gives_back = gives_back;
    writes(&m, (tr_region){plan->data_ring[ring], first, first + plan->slot_bytes});
    return tr__make_end(&m);
}

int32_t tr__make_load(tr_editor *editor, int64_t micro) {
    return make_feed(editor, micro, false);
}

int32_t tr__make_unload(tr_editor *editor, int64_t micro) {
    return make_feed(editor, micro, true);
}

static tr_region statistics(const tr_plan *plan, int64_t first, int64_t count) {
    tr_location at = tr__in_statistics(plan, first);
    return (tr_region){at.value, at.offset,
                       at.offset + count * (int64_t)sizeof(double)};
}

int32_t tr__make_hand_out(tr_editor *editor, tr_plan_step step, tr_region outputs,
                          tr_region gradients) {
    const tr_plan *plan = editor->plan;
    step.stream = TR_STREAM_DATA;
    tr_step_maker m = begin(editor, step, TR_STEP_IS_HOST);
    m.step.payload.call = TR_HOST_HAND_OUT;
    reads(&m, outputs);
    if (editor->kind == TR_SEQUENCE_TRAIN) {
        int64_t sums = plan->statistics.sums + step.micro * TR_SUMS;
        writes(&m, gradients);
        writes(&m, statistics(plan, sums, TR_SUMS));
    }
    return tr__make_end(&m);
}

// Somebody who asks for an end may have noted that in the statistics before.
int32_t tr__make_report(tr_editor *editor) {
    const tr_plan *plan = editor->plan;
    // Other ranks learn from it why this one has stopped.
    tr_plan_step step = {.label = {.verb = TR_VERB_report},
                         .stream = TR_STREAM_DATA,
                         .guard = TR_GUARD_ALWAYS};
    tr_step_maker m = begin(editor, step, TR_STEP_IS_HOST);
    m.step.payload.call = TR_HOST_REPORT;
    add_operand(&m, statistics(plan, TR_STATISTICS_ASKED, 1), TR_ACCESS_ADD, false);
    writes(&m, statistics(plan, TR_STATISTICS_SECONDS,
                          TR_STATISTICS_PEAK - TR_STATISTICS_SECONDS + 1));
    return tr__make_end(&m);
}

int32_t tr__make_decide(tr_editor *editor) {
    tr_plan_step step = {.label = {.verb = TR_VERB_decide},
                         .mark = TR_MARK_DECISION,
                         .stream = TR_STREAM_DATA,
                         .guard = TR_GUARD_ALWAYS};
    tr_step_maker m = begin(editor, step, TR_STEP_IS_HOST);
    m.step.payload.call = TR_HOST_DECIDE;
    reads(&m, tr__region_all(editor->plan, editor->plan->statistics.buffer));
    return tr__make_end(&m);
}
