#include "plan/lower.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "plan/flat_launch.h"
#include "plan/moves.h"
#include "plan/passes.h"

#include <string.h>

typedef struct lowering {
    tr_plan *plan;
    tr_sequence_kind kind;
    const tr_step_draft *draft;
    tr_plan_step *step; // of it
    tr_error *err;
    tr_status status;
} lowering;

// ---- operands

static void add_operand(lowering *l, tr_step_operand operand) {
    if (l->status == TR_OK) {
        l->status = tr__plan_operand(l->plan, operand, l->err);
    }
    l->step->payload.operand_count++;
}

static void add_region(lowering *l, const tr_region *region, tr_access_mode mode) {
    add_operand(
        l, (tr_step_operand){region->buffer, mode, false, region->first, region->end});
}

static void add_whole(lowering *l, int32_t buffer, tr_access_mode mode) {
    tr_region all = {buffer, 0, buffer < 0 ? 0 : l->plan->buffers[buffer].bytes};
    add_region(l, &all, mode);
}

static tr_region region_of(tr_location at, tr_tensor_desc desc) {
    return (tr_region){at.buffer, at.offset, at.offset + tr_tensor_bytes(desc)};
}

// ---- launches

static uint64_t hash_tensors(uint64_t hash, const tr_tensor_desc *tensors, int count) {
    for (int i = 0; i < count; i++) {
        const tr_shape *shape = &tensors[i].shape;
        const int64_t numbers[] = {tensors[i].dtype, shape->rank};
        hash = tr__hash_more(hash, numbers, sizeof numbers);
        hash = tr__hash_more(hash, shape->dim, sizeof shape->dim);
    }
    return hash;
}

static uint64_t hash_of(const tr_op_desc *desc) {
    const int64_t numbers[] = {desc->fresh, desc->accumulate, desc->target.backend,
                               desc->target.level, desc->target.workers};
    uint64_t hash = tr__hash_more(0, &desc->op, sizeof(const tr_op *));
    hash = tr__hash_more(hash, desc->attr, sizeof desc->attr);
    hash = tr__hash_more(hash, numbers, sizeof numbers);
    hash = hash_tensors(hash, desc->in, desc->in_count);
    return hash_tensors(hash, desc->out, desc->out_count);
}

static bool are_same_tensors(const tr_tensor_desc *a, const tr_tensor_desc *b,
                             int count) {
    bool same = true;
    for (int i = 0; i < count; i++) {
        same = same && a[i].dtype == b[i].dtype &&
               (a[i].dtype == TR_NONE || tr_shape_equal(a[i].shape, b[i].shape));
    }
    return same;
}

static bool are_same_ops(const tr_op_desc *a, const tr_op_desc *b) {
    return a->op == b->op && memcmp(a->attr, b->attr, sizeof a->attr) == 0 &&
           a->in_count == b->in_count && a->out_count == b->out_count &&
           a->fresh == b->fresh && a->accumulate == b->accumulate &&
           a->target.backend == b->target.backend &&
           a->target.level == b->target.level &&
           a->target.workers == b->target.workers &&
           are_same_tensors(a->in, b->in, a->in_count) &&
           are_same_tensors(a->out, b->out, a->out_count);
}

// The place of a description among the prepared ops' hashes; it is empty where none is
// the same.
static size_t *find_prepared(const lowering *l, const tr_op_desc *desc) {
    size_t at = (size_t)hash_of(desc) & (l->plan->prepared_room - 1);
    while (l->plan->prepared_by_hash[at] > 0 &&
           !are_same_ops(&l->plan->prepared[l->plan->prepared_by_hash[at] - 1].desc,
                         desc)) {
        at = (at + 1) & (l->plan->prepared_room - 1);
    }
    return &l->plan->prepared_by_hash[at];
}

// Room for one more, half of the places staying empty.
static bool make_room(lowering *l) {
    if (2 * (l->plan->prepared_count + 1) <= l->plan->prepared_room) {
        return true;
    }
    tr__free(l->plan->prepared_by_hash);
    l->plan->prepared_room =
        l->plan->prepared_room > 0 ? 2 * l->plan->prepared_room : 64;
    l->plan->prepared_by_hash =
        tr__calloc(l->plan->prepared_room, sizeof *l->plan->prepared_by_hash);
    for (size_t i = 0; l->plan->prepared_by_hash && i < l->plan->prepared_count; i++) {
        *find_prepared(l, &l->plan->prepared[i].desc) = i + 1;
    }
    return l->plan->prepared_by_hash;
}

static bool prepare(lowering *l, const tr_flat_launch *launch, size_t *op) {
    tr_plan *plan = l->plan;
    if (!make_room(l) || !tr__grow((void **)&plan->prepared, &plan->prepared_capacity,
                                   plan->prepared_count + 1, sizeof *plan->prepared)) {
        return false;
    }
    size_t *place = find_prepared(l, &launch->desc);
    if (*place == 0) {
        plan->prepared[plan->prepared_count++] =
            (tr_prepared_op){launch->desc, launch->kernel};
        *place = plan->prepared_count;
    }
    *op = *place - 1;
    return true;
}

// A rank without gradients of a flat buffer has no squares of them in the statistics,
// which the others do not wait for either.
static bool is_nothing(const lowering *l, const tr_region *region) {
    return region->buffer == l->plan->statistics.buffer && region->first >= region->end;
}

static void add_result(lowering *l, const tr_flat_launch *launch, int i) {
    tr_region region = region_of(launch->out[i], launch->desc.out[i]);
    bool adds = launch->desc.accumulate >> i & 1;
    region.buffer = is_nothing(l, &region) ? -1 : region.buffer;
    add_operand(l,
                (tr_step_operand){region.buffer, adds ? TR_ACCESS_ADD : TR_ACCESS_WRITE,
                                  launch->contributes[i], region.first, region.end});
}

static void add_launch(lowering *l, const tr_flat_launch *launch) {
    tr_plan *plan = l->plan;
    tr_op_launch added = {.operand = plan->operand_count};
    for (int i = 0; i < launch->desc.in_count; i++) {
        tr_region region = region_of(launch->in[i], launch->desc.in[i]);
        add_region(l, &region, TR_ACCESS_READ);
    }
    for (int i = 0; i < launch->desc.out_count; i++) {
        add_result(l, launch, i);
    }
    if (!prepare(l, launch, &added.op) ||
        !tr__grow((void **)&plan->launches, &plan->launch_capacity,
                  plan->launch_count + 1, sizeof *plan->launches)) {
        l->status = tr_fail(l->err, TR_MEMORY, "no memory for the plan's launches");
        return;
    }
    plan->launches[plan->launch_count++] = added;
    l->step->payload.op_count++;
}

static void lower_launch(lowering *l) {
    tr_payload *payload = &l->step->payload;
    int32_t work = l->draft->buffer[TR_SLOT_TEMP];
    tr_flat_launch launch;
    size_t next = 0;
    payload->op = l->plan->launch_count;
    payload->works = work >= 0;
    if (payload->works) {
        add_whole(l, work, TR_ACCESS_WRITE);
    }
    while (l->status == TR_OK &&
           tr__flat_launch_next(l->plan, l->draft, &next, &launch)) {
        add_launch(l, &launch);
    }
}

// ---- moves

static void lower_copy(lowering *l) {
    tr_copy copy;
    tr__step_copy(l->plan, l->draft, &copy);
    add_region(l, &copy.from, TR_ACCESS_READ);
    add_region(l, &copy.to, TR_ACCESS_WRITE);
}

// This rank's part of what it gathers in place.
static tr_region own_part(const lowering *l, const tr_exchange *e,
                          const tr_region *recv) {
    int64_t element = (int64_t)tr__comm_type_bytes(e->type), first = 0, count = 0;
    tr__comm_part(e->count, e->shard,
                  (int)tr__mesh_member(&l->plan->request.mesh, e->group), &first,
                  &count);
    return (tr_region){recv->buffer, recv->first + first * element,
                       recv->first + (first + count) * element};
}

static void lower_exchange(lowering *l) {
    tr_step_exchange e;
    tr__step_exchange(l->plan, l->draft, &e);
    tr_region send = e.of.in_place ? own_part(l, &e.of, &e.recv) : e.send;
    l->step->payload.exchange = e.of;
    add_region(l, &send, TR_ACCESS_READ);
    add_operand(l, (tr_step_operand){e.recv.buffer,
                                     e.contributes ? TR_ACCESS_ADD : TR_ACCESS_WRITE,
                                     e.contributes, e.recv.first, e.recv.end});
    if (!l->plan->request.peers || l->step->stream != TR_STREAM_COMM) {
        add_whole(l, l->plan->staging, TR_ACCESS_WRITE);
    }
}

static void lower_file(lowering *l) {
    tr_file_move move;
    tr__step_file(l->plan, l->draft, &move);
    add_region(l, &move.stored, move.reads ? TR_ACCESS_READ : TR_ACCESS_WRITE);
    add_region(l, &move.memory, move.reads ? TR_ACCESS_WRITE : TR_ACCESS_READ);
}

static void lower_feed(lowering *l) {
    int ring = l->kind == TR_SEQUENCE_TRAIN ? 0 : 1;
    int64_t first = l->step->micro % l->plan->slots[ring] * l->plan->slot_bytes;
    tr_region slot = {l->plan->data_ring[ring], first, first + l->plan->slot_bytes};
    add_region(l, &slot, TR_ACCESS_WRITE);
}

// ---- the host

static void add_statistics(lowering *l, tr_access_mode mode, int64_t first,
                           int64_t count) {
    const tr_statistics_layout *layout = &l->plan->statistics;
    int64_t own = tr_mesh_rank(&l->plan->request.mesh) * layout->doubles + first;
    tr_region region = {layout->buffer, own * (int64_t)sizeof(double),
                        (own + count) * (int64_t)sizeof(double)};
    add_region(l, &region, mode);
}

// The statistics: completed, or decided by. Somebody who asks for an end may have noted
// that in it before.
static void lower_host(lowering *l) {
    if (l->step->kind == TR_STEP_decide) {
        add_whole(l, l->plan->statistics.buffer, TR_ACCESS_READ);
        return;
    }
    add_statistics(l, TR_ACCESS_ADD, TR_STATISTICS_ASKED, 1);
    add_statistics(l, TR_ACCESS_WRITE, TR_STATISTICS_SECONDS,
                   TR_STATISTICS_PEAK - TR_STATISTICS_SECONDS + 1);
}

// ---- all steps

static void (*const lower_shape[TR_STEP_SHAPES])(lowering *) = {
    [TR_STEP_IS_LAUNCH] = lower_launch,     [TR_STEP_IS_COPY] = lower_copy,
    [TR_STEP_IS_EXCHANGE] = lower_exchange, [TR_STEP_IS_FILE] = lower_file,
    [TR_STEP_IS_FEED] = lower_feed,         [TR_STEP_IS_HOST] = lower_host,
};

tr_status tr__lower_step(tr_plan *plan, tr_sequence_kind kind, tr_step_draft *draft,
                         tr_error *err) {
    tr_plan_step *step = &draft->step;
    lowering l = {.plan = plan, .kind = kind, .draft = draft, .step = step, .err = err};
    step->payload = (tr_payload){.operand = plan->operand_count};
    step->made = true;
    lower_shape[tr__step_shape(step)](&l);
    return l.status;
}
