#include "plan/access.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/flat_launch.h"

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

static void reads(finder *f, tr_slot slot) {
    note_whole(f, f->step->buffer[slot], TR_ACCESS_READ);
}

static void writes(finder *f, tr_slot slot) {
    note_whole(f, f->step->buffer[slot], TR_ACCESS_WRITE);
}

// ---- the record of the step

static void note_record(finder *f, tr_access_mode mode, int64_t first, int64_t count) {
    const tr_record_layout *record = &f->plan->record;
    int64_t own = f->plan->request.rank * record->doubles;
    note(f, record->buffer, mode, (own + first) * (int64_t)sizeof(double),
         count * (int64_t)sizeof(double));
}

// ---- flat buffers

// Elements [first, first + count) of a flat buffer, in what is kept of a part. A rank
// that has none of them is taken to access all there is, so that it waits as the
// others.
static tr_access range_of(const finder *f, const tr_flat_range *range, tr_part part,
                          int64_t first, int64_t count) {
    int64_t from = (first - range->first) * tr__part_bytes(f->plan, part);
    int64_t bytes = count * tr__part_bytes(f->plan, part);
    if (count == 0) {
        return whole_of(f, range->buffer);
    }
    if (tr__is_on_nvme(f->plan, range)) {
        from = tr__nvme_bytes(f->plan, part, first - range->first);
        bytes = tr__nvme_bytes(f->plan, part, count);
    }
    return (tr_access){.value = range->buffer, .first = from, .end = from + bytes};
}

static void note_range(finder *f, const tr_flat_range *range, tr_part part,
                       tr_access_mode mode, int64_t first, int64_t count) {
    tr_access access = range_of(f, range, part, first, count);
    access.mode = mode;
    note_access(f, access);
}

// This rank's elements of it.
static void note_own(finder *f, const tr_flat *flat, const tr_flat_range *range,
                     tr_part part, tr_access_mode mode) {
    note_range(f, range, part, mode, flat->first, flat->own);
}

static const tr_flat *flat_of(const finder *f) {
    return &f->plan->flats[f->step->unit];
}

// To OUTPUT, or where there is none, to the flat's own.
static void contribute(finder *f, const tr_flat_range *own, int64_t first,
                       int64_t count) {
    int32_t to = f->step->buffer[TR_SLOT_OUTPUT];
    note_contribution(
        f, to < 0 ? range_of(f, own, TR_PART_GRAD, first, count) : whole_of(f, to),
        tr__slot_bit(TR_SLOT_OUTPUT));
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
        return train ? plan->record.buffer : plan->sums;
    case TR_PLACE_ANSWER:
        return plan->answer;
    case TR_PLACE_STATE:
        return plan->units[step->unit].states;
    default:
        return step->buffer[tr__place_slot(operand->place)];
    }
}

// Where the step's micro-batch has its share of a value: its slot of the data ring, its
// sums in the record, and what it writes of wave tensors.
static int64_t share_of(const finder *f, const tr_operand *operand, bool written) {
    const tr_plan *plan = f->plan;
    bool train = f->kind == TR_SEQUENCE_TRAIN;
    int64_t micro = f->step->micro;
    switch (operand->place) {
    case TR_PLACE_DATA:
        return micro % plan->slots[train ? 0 : 1] * plan->slot_bytes;
    case TR_PLACE_SUMS:
        return train ? (plan->request.rank * plan->record.doubles + plan->record.sums +
                        micro * TR_SUMS) *
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

static void note_combine(finder *f) {
    int32_t value = tr__combine_buffer(f->step);
    if (f->kind == TR_SEQUENCE_TRAIN) {
        note_whole(f, value, TR_ACCESS_ADD);
        writes(f, TR_SLOT_TEMP);
    }
}

// What is in INPUT, or this rank's part of the sums that stay.
static void note_leaving(finder *f) {
    const tr_flat *flat = flat_of(f);
    if (f->step->buffer[TR_SLOT_INPUT] >= 0) {
        reads(f, TR_SLOT_INPUT);
    } else {
        note_own(f, flat, &flat->sums, TR_PART_GRAD, TR_ACCESS_READ);
    }
}

// Where an operand lies. A rank that has no elements of it is taken to access all of
// the buffer, so that it waits as the others.
static tr_access operand_of(const finder *f, tr_location at, tr_tensor_desc desc) {
    int64_t bytes = tr_tensor_bytes(desc);
    return bytes > 0 ? (tr_access){.value = at.buffer,
                                   .first = at.offset,
                                   .end = at.offset + bytes}
                     : whole_of(f, at.buffer);
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
        bool none = launch->out[i].buffer == f->plan->record.buffer &&
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

static void note_norm(finder *f) {
    note_launches(f);
    note_record(f, TR_ACCESS_WRITE, TR_RECORD_SECONDS,
                TR_RECORD_PEAK - TR_RECORD_SECONDS + 1);
}

static void note_gather_params(finder *f) {
    const tr_flat *flat = flat_of(f);
    int32_t from = f->step->buffer[TR_SLOT_INPUT], to = f->step->buffer[TR_SLOT_OUTPUT];
    if (to < 0) {
        note_own(f, flat, &flat->param, TR_PART_COPY, TR_ACCESS_READ);
        note_whole(f, flat->param.buffer, TR_ACCESS_WRITE);
    } else {
        note_whole(f, from < 0 ? flat->param.buffer : from, TR_ACCESS_READ);
        note_whole(f, to, TR_ACCESS_WRITE);
    }
}

// A rank has its part there, and gets those of all others.
static void note_gather(finder *f) {
    const tr_flat *flat = flat_of(f);
    switch (f->step->part) {
    case TR_PART_PARAM:
        note_gather_params(f);
        break;
    case TR_PART_GRAD:
        note_own(f, flat, &flat->sums, TR_PART_GRAD, TR_ACCESS_READ);
        note_whole(f, flat->sums.buffer, TR_ACCESS_WRITE);
        break;
    case TR_PART_NORMS:
        note_whole(f, f->step->buffer[TR_SLOT_OUTPUT], TR_ACCESS_ADD);
        break;
    default:
        note_record(f, TR_ACCESS_READ, 0, f->plan->record.doubles);
        note_whole(f, f->plan->record.buffer, TR_ACCESS_WRITE);
        break;
    }
    note_whole(f, f->plan->staging, TR_ACCESS_WRITE);
}

static void note_reduce(finder *f) {
    const tr_flat *flat = flat_of(f);
    int32_t from = f->step->buffer[TR_SLOT_INPUT];
    note_whole(f, from < 0 ? flat->sums.buffer : from, TR_ACCESS_READ);
    contribute(f, &flat->sums, flat->first, flat->own);
    note_whole(f, f->plan->staging, TR_ACCESS_WRITE);
}

static void note_boundary(finder *f) {
    reads(f, TR_SLOT_INPUT);
    writes(f, TR_SLOT_OUTPUT);
}

static void note_fetch(finder *f) {
    const tr_flat *flat = flat_of(f);
    const tr_flat_range *from = &flat->copy;
    if (f->step->buffer[TR_SLOT_INPUT] >= 0) {
        reads(f, TR_SLOT_INPUT);
    } else {
        note_range(f, from, TR_PART_COPY, TR_ACCESS_READ, from->first, from->count);
    }
    if (f->step->buffer[TR_SLOT_OUTPUT] >= 0) {
        writes(f, TR_SLOT_OUTPUT);
    } else {
        note_range(f, &flat->param, TR_PART_COPY, TR_ACCESS_WRITE, from->first,
                   from->count);
    }
}

static void note_evict(finder *f) {
    const tr_flat *flat = flat_of(f);
    note_leaving(f);
    contribute(f, &flat->grad, flat->grad.first, flat->grad.count);
}

// Between the file and staging.
static void note_transfer(finder *f) {
    const tr_plan_step *step = f->step;
    bool read = step->kind == TR_STEP_read;
    const tr_flat_range *range = tr__flat_range(flat_of(f), step->part);
    note_range(f, range, step->part, read ? TR_ACCESS_READ : TR_ACCESS_WRITE,
               step->first, step->count);
    note_whole(f, step->buffer[read ? TR_SLOT_OUTPUT : TR_SLOT_INPUT],
               read ? TR_ACCESS_WRITE : TR_ACCESS_READ);
}

static void note_step(finder *f) {
    const tr_program *program = tr__step_program(f->plan, f->step, f->kind);
    if (program) {
        note_program(f, program);
    } else if (tr__step_is_of_boundary(f->step)) {
        note_boundary(f);
    }
}

static void note_load(finder *f) {
    note_data(f, TR_ACCESS_WRITE);
}

static void (*const note_kind[TR_STEP_KINDS])(finder *) = {
    [TR_STEP_load] = note_load,       [TR_STEP_unload] = note_load,
    [TR_STEP_clear] = note_launches,  [TR_STEP_combine] = note_combine,
    [TR_STEP_gauge] = note_launches,  [TR_STEP_gauge_tied] = note_launches,
    [TR_STEP_fold] = note_launches,   [TR_STEP_square] = note_launches,
    [TR_STEP_norm] = note_norm,       [TR_STEP_measure] = note_launches,
    [TR_STEP_update] = note_launches, [TR_STEP_total] = note_launches,
    [TR_STEP_gather] = note_gather,   [TR_STEP_reduce] = note_reduce,
    [TR_STEP_fetch] = note_fetch,     [TR_STEP_evict] = note_evict,
    [TR_STEP_read] = note_transfer,   [TR_STEP_write] = note_transfer,
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
        bool whole = note_kind[f.step->kind] && !tr__step_is_of_boundary(f.step);
        (whole ? note_kind[f.step->kind] : note_step)(&f);
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
