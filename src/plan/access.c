#include "plan/access.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/flat_launch.h"
#include "plan/moves.h"
#include "plan/wave.h"

// A walk through a sequence; `begin`: where the accesses of the step begin.
typedef struct finder {
    const tr_plan *plan;
    tr_sequence_kind kind;
    const tr_plan_step *step;
    tr_accesses *out;
    size_t begin;
    bool failed;
} finder;

static bool adjoins(const tr_access *a, const tr_access *b) {
    return a->value == b->value && a->mode == b->mode && a->first <= b->end &&
           b->first <= a->end && a->contributes == b->contributes;
}

// Notes an access; one that adjoins another of the step becomes one with it.
static void note_access(finder *f, tr_access access) {
    tr_accesses *out = f->out;
    if (access.value < 0 || access.first >= access.end || f->failed) {
        return;
    }
    for (size_t i = f->begin; i < out->count;) {
        if (adjoins(&out->items[i], &access)) {
            access.first = tr__min_i64(access.first, out->items[i].first);
            access.end = tr__max_i64(access.end, out->items[i].end);
            out->items[i] = out->items[--out->count];
            i = f->begin; // the longer one may adjoin others
        } else {
            i++;
        }
    }
    f->failed = !tr__grow((void **)&out->items, &out->capacity, out->count + 1,
                          sizeof *out->items);
    if (!f->failed) {
        out->items[out->count++] = access;
    }
}

static void note(finder *f, int32_t value, tr_access_mode mode, int64_t first,
                 int64_t bytes) {
    note_access(
        f, (tr_access){
               .value = value, .mode = mode, .first = first, .end = first + bytes});
}

static tr_access whole_of(const finder *f, int32_t value) {
    return (tr_access){.value = value,
                       .end = value < 0 ? 0 : f->plan->buffers[value].bytes};
}

static void note_whole(finder *f, int32_t value, tr_access_mode mode) {
    note(f, value, mode, 0, whole_of(f, value).end);
}

// What the step adds to, or writes where it is the first; `bit`: of the operand.
static void note_contribution(finder *f, tr_access access, uint64_t bit) {
    access.mode = f->step->writes & bit ? TR_ACCESS_WRITE : TR_ACCESS_ADD;
    access.contributes = bit;
    note_access(f, access);
}

static void writes(finder *f, tr_slot slot) {
    note_whole(f, f->step->buffer[slot], TR_ACCESS_WRITE);
}

// ---- the statistics of the step

static void note_statistics(finder *f, tr_access_mode mode, int64_t first,
                            int64_t count) {
    const tr_statistics_layout *layout = &f->plan->statistics;
    int64_t own = tr_mesh_rank(&f->plan->request.mesh) * layout->doubles;
    note(f, layout->buffer, mode, (own + first) * (int64_t)sizeof(double),
         count * (int64_t)sizeof(double));
}

// ---- unit programs

static int32_t value_at(const finder *f, const tr_operand *operand) {
    const tr_plan *plan = f->plan;
    const tr_plan_step *step = f->step;
    bool train = f->kind == TR_SEQUENCE_TRAIN;
    switch (operand->place) {
    case TR_PLACE_NONE:
        return -1;
    case TR_PLACE_PARAM:
        return plan->bindings[step->binding].param[operand->flat];
    case TR_PLACE_PARAM_GRAD:
        return plan->bindings[step->binding].grad[operand->flat];
    case TR_PLACE_DATA:
        return plan->data_ring[train ? 0 : 1];
    case TR_PLACE_SUMS:
        return train ? plan->statistics.buffer : plan->sums;
    case TR_PLACE_LOGITS:
        return plan->logits;
    case TR_PLACE_STATE:
        return plan->units[step->unit].states;
    case TR_PLACE_CACHE:
        return plan->units[step->unit].cache;
    default:
        return step->buffer[tr__place_slot(operand->place)];
    }
}

// Where the step's micro-batch has its share of a value: its slot of the data ring, its
// sums in the statistics, and what it writes of wave tensors.
static int64_t share_of(const finder *f, const tr_operand *operand, bool written) {
    const tr_plan *plan = f->plan;
    bool train = f->kind == TR_SEQUENCE_TRAIN;
    int64_t micro = f->step->micro;
    switch (operand->place) {
    case TR_PLACE_DATA:
        return micro % plan->slots[train ? 0 : 1] * plan->slot_bytes;
    case TR_PLACE_SUMS:
        return train ? (tr_mesh_rank(&plan->request.mesh) * plan->statistics.doubles +
                        plan->statistics.sums + micro * TR_SUMS) *
                           (int64_t)sizeof(double)
                     : 0;
    case TR_PLACE_WAVE:
    case TR_PLACE_WAVE_GRAD:
        return written && tr__wave_parts(plan, f->kind) > 1
                   ? micro * plan->units[f->step->unit].program->wave_bytes
                   : 0;
    default:
        return 0;
    }
}

// The bytes of an operand that the step accesses; of a temporary: none.
static tr_access access_of(const finder *f, const tr_operand *operand,
                           tr_tensor_desc desc, bool written) {
    if (operand->place == TR_PLACE_NONE || operand->place == TR_PLACE_TEMP) {
        return (tr_access){.value = -1};
    }
    int64_t first = share_of(f, operand, written) + operand->offset;
    return (tr_access){.value = value_at(f, operand),
                       .first = first,
                       .end = first + tr_tensor_bytes(desc)};
}

static void note_result(finder *f, const tr_instruction *at, int i) {
    const tr_operand *out = &at->out[i];
    tr_access access = access_of(f, out, at->desc.out[i], true);
    bool adds = at->accumulate >> i & 1;
    if (at->first >> i & 1 && !adds) {
        note_contribution(f, access, tr__operand_bit(out));
        return;
    }
    access.mode = adds || out->place == TR_PLACE_SUMS ? TR_ACCESS_ADD : TR_ACCESS_WRITE;
    note_access(f, access);
}

// What a kernel has packed: written by the first step that reads it, for all others.
static void note_packed(finder *f, const tr_instruction *at) {
    if (at->packed.place != TR_PLACE_NONE) {
        tr_access access = {.value = value_at(f, &at->packed),
                            .first = at->packed.offset,
                            .end = at->packed.offset + at->packed_bytes};
        note_contribution(f, access, tr__operand_bit(&at->packed));
    }
}

static void note_program(finder *f, const tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.in_count; k++) {
            bool read = !(at->desc.op->shape_only >> k & 1);
            if (read) {
                note_access(f, access_of(f, &at->in[k], at->desc.in[k], false));
            }
        }
        for (int k = 0; k < at->desc.out_count; k++) {
            note_result(f, at, k);
        }
        note_packed(f, at);
    }
    writes(f, TR_SLOT_TEMP);
}

// ---- kinds of steps

static void note_data(finder *f, tr_access_mode mode) {
    int ring = f->kind == TR_SEQUENCE_TRAIN ? 0 : 1;
    int64_t slot = f->step->micro % f->plan->slots[ring];
    note(f, f->plan->data_ring[ring], mode, slot * f->plan->slot_bytes,
         f->plan->slot_bytes);
}

// Bytes that a step launches on or moves. A rank that has none of them is taken to
// access all of the buffer, so that it waits as the others.
static tr_access region_of(const finder *f, const tr_region *region) {
    return region->first < region->end ? (tr_access){.value = region->buffer,
                                                     .first = region->first,
                                                     .end = region->end}
                                       : whole_of(f, region->buffer);
}

static tr_access operand_of(const finder *f, tr_location at, tr_tensor_desc desc) {
    tr_region region = {at.buffer, at.offset, at.offset + tr_tensor_bytes(desc)};
    return region_of(f, &region);
}

static void note_launch(finder *f, const tr_flat_launch *launch) {
    const tr_op_desc *desc = &launch->desc;
    for (int i = 0; i < desc->in_count; i++) {
        if (launch->in[i].buffer >= 0) {
            note_access(f, operand_of(f, launch->in[i], desc->in[i]));
        }
    }
    for (int i = 0; i < desc->out_count; i++) {
        bool there = launch->out[i].buffer >= 0;
        bool none = launch->out[i].buffer == f->plan->statistics.buffer &&
                    tr_tensor_bytes(desc->out[i]) == 0;
        if (there && !none) {
            tr_access access = operand_of(f, launch->out[i], desc->out[i]);
            bool adds = desc->accumulate >> i & 1;
            access.mode = adds ? TR_ACCESS_ADD : TR_ACCESS_WRITE;
            access.contributes = launch->contributes[i];
            note_access(f, access);
        }
    }
}

static void note_launches(finder *f) {
    tr_flat_launch launch;
    size_t next = 0;
    while (tr__flat_launch_next(f->plan, f->step, &next, &launch)) {
        note_launch(f, &launch);
    }
    writes(f, TR_SLOT_TEMP);
}

static void note_region(finder *f, const tr_region *region, tr_access_mode mode) {
    tr_access access = region_of(f, region);
    access.mode = mode;
    note_access(f, access);
}

static void note_moved(finder *f, const tr_region *to, uint64_t contributes) {
    if (contributes) {
        note_contribution(f, region_of(f, to), contributes);
    } else {
        note_region(f, to, TR_ACCESS_WRITE);
    }
}

static void note_copy(finder *f) {
    tr_copy copy;
    if (tr__step_copy(f->plan, f->step, &copy)) {
        note_region(f, &copy.from, TR_ACCESS_READ);
        note_region(f, &copy.to, TR_ACCESS_WRITE);
    }
}

// This rank's part of what it gathers in place.
static tr_region own_part(const finder *f, const tr_exchange *e) {
    int64_t element = (int64_t)tr__comm_type_bytes(e->type), first = 0, count = 0;
    tr__comm_part(e->count, e->shard,
                  (int)tr__mesh_member(&f->plan->request.mesh, e->group), &first,
                  &count);
    return (tr_region){e->recv.buffer, e->recv.first + first * element,
                       e->recv.first + (first + count) * element};
}

static void note_exchange(finder *f) {
    tr_exchange e;
    if (tr__step_exchange(f->plan, f->step, &e)) {
        tr_region send = e.send.buffer < 0 ? own_part(f, &e) : e.send;
        note_region(f, &send, TR_ACCESS_READ);
        note_moved(f, &e.recv, e.contributes);
        if (tr__exchange_is_staged(f->plan, f->step)) {
            note_whole(f, f->plan->staging, TR_ACCESS_WRITE);
        }
    }
}

static void note_file(finder *f) {
    tr_file_move move;
    if (tr__step_file(f->plan, f->step, &move)) {
        note_region(f, &move.stored, move.reads ? TR_ACCESS_READ : TR_ACCESS_WRITE);
        note_region(f, &move.memory, move.reads ? TR_ACCESS_WRITE : TR_ACCESS_READ);
    }
}

static void note_load(finder *f) {
    note_data(f, TR_ACCESS_WRITE);
}

// The statistics: completed, or decided by. Somebody who asks for an end may have noted
// that in it before.
static void note_host(finder *f) {
    if (f->step->kind == TR_STEP_decide) {
        note_whole(f, f->plan->statistics.buffer, TR_ACCESS_READ);
        return;
    }
    note_statistics(f, TR_ACCESS_ADD, TR_STATISTICS_ASKED, 1);
    note_statistics(f, TR_ACCESS_WRITE, TR_STATISTICS_SECONDS,
                    TR_STATISTICS_PEAK - TR_STATISTICS_SECONDS + 1);
}

static void note_launch_step(finder *f) {
    const tr_program *program = tr__step_program(f->plan, f->step, f->kind);
    if (program) {
        note_program(f, program);
    } else {
        note_launches(f);
    }
}

static void (*const note_shape[TR_STEP_SHAPES])(finder *) = {
    [TR_STEP_IS_LAUNCH] = note_launch_step, [TR_STEP_IS_COPY] = note_copy,
    [TR_STEP_IS_EXCHANGE] = note_exchange,  [TR_STEP_IS_FILE] = note_file,
    [TR_STEP_IS_FEED] = note_load,          [TR_STEP_IS_HOST] = note_host,
};

tr_status tr__accesses_find(const tr_plan *plan, tr_sequence_kind kind,
                            tr_accesses *out, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[kind];
    finder f = {.plan = plan, .kind = kind, .out = out};
    *out = (tr_accesses){.begin = tr__calloc(sequence->count + 1, sizeof *out->begin)};
    f.failed = !out->begin;
    for (size_t i = 0; i < sequence->count && !f.failed; i++) {
        f.step = &sequence->steps[i];
        f.begin = out->begin[i] = out->count;
        note_shape[tr__step_shape(f.step)](&f);
        out->begin[i + 1] = out->count;
    }
    return f.failed ? tr_fail(err, TR_MEMORY, "no memory for what the steps access")
                    : TR_OK;
}

void tr__accesses_clear(tr_accesses *accesses) {
    tr__free(accesses->items);
    tr__free(accesses->begin);
    *accesses = (tr_accesses){0};
}
