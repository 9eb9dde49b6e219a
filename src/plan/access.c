#include "plan/access.h"

#include "base/checked.h"
#include "base/memory.h"
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
           b->first <= a->end && a->contributes == b->contributes &&
           a->operand == b->operand;
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

// What the step adds to, or writes where it is the first; `bit`: of the operand.
static void note_contribution(finder *f, tr_access access, uint64_t bit) {
    access.mode = f->step->writes & bit ? TR_ACCESS_WRITE : TR_ACCESS_ADD;
    access.contributes = bit;
    note_access(f, access);
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
    int32_t temp = f->step->buffer[TR_SLOT_TEMP];
    if (temp >= 0) {
        note_access(f, (tr_access){.value = temp,
                                   .mode = TR_ACCESS_WRITE,
                                   .end = f->plan->buffers[temp].bytes});
    }
}

// ---- all other steps

// A rank that has none of the bytes is taken to access all of the buffer, so that it
// waits as the others.
static void note_operand(finder *f, size_t index) {
    const tr_step_operand *operand = &f->plan->operands[index];
    bool some = operand->first < operand->end;
    if (operand->buffer < 0) {
        return;
    }
    note_access(f, (tr_access){.value = operand->buffer,
                               .mode = operand->mode,
                               .first = some ? operand->first : 0,
                               .end = some ? operand->end
                                           : f->plan->buffers[operand->buffer].bytes,
                               .operand = operand->contributes ? index + 1 : 0});
}

static void note_step(finder *f) {
    const tr_program *program = tr__step_program(f->plan, f->step, f->kind);
    const tr_payload *payload = &f->step->payload;
    if (program) {
        note_program(f, program);
    }
    for (size_t i = 0; i < payload->operand_count; i++) {
        note_operand(f, payload->operand + i);
    }
}

tr_status tr__accesses_find(const tr_plan *plan, tr_sequence_kind kind,
                            tr_accesses *out, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[kind];
    finder f = {.plan = plan, .kind = kind, .out = out};
    *out = (tr_accesses){.begin = tr__calloc(sequence->count + 1, sizeof *out->begin)};
    f.failed = !out->begin;
    for (size_t i = 0; i < sequence->count && !f.failed; i++) {
        f.step = &sequence->steps[i];
        f.begin = out->begin[i] = out->count;
        note_step(&f);
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
