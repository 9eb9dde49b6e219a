#include "plan/flow/access.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/wave.h"

// A walk through a sequence; `begin`: where the accesses of the step begin.
typedef struct finder {
    const tr_plan *plan;
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

// ---- unit programs

// What the program does to a block, where the step has that.
static void note_block(finder *f, const tr_program_access *in) {
    size_t index = f->step->payload.operand + (size_t)in->block;
    const tr_step_operand *block = &f->plan->operands[index];
    note_access(f, (tr_access){
                       .value = block->buffer,
                       .mode = in->of.contributes ? block->mode : in->of.mode,
                       .first = block->first + in->of.first,
                       .end = block->first + in->of.end,
                       .contributes = in->of.contributes ? index + 1 : 0,
                   });
}

static void note_program(finder *f, const tr_program *program) {
    for (size_t i = 0; i < program->access_count; i++) {
        note_block(f, &program->accesses[i]);
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
                               .contributes = operand->contributes ? index + 1 : 0});
}

static void note_step(finder *f) {
    const tr_payload *payload = &f->step->payload;
    const tr_program *program = tr__payload_program(f->step);
    if (program) {
        note_program(f, program);
    }
    for (size_t i = 0; !program && i < payload->operand_count; i++) {
        note_operand(f, payload->operand + i);
    }
}

tr_status tr__accesses_find(const tr_plan *plan, tr_sequence_kind kind,
                            tr_accesses *out, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[kind];
    finder f = {.plan = plan, .out = out};
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
