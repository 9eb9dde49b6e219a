// Which blocks a unit's program works in, and what it does there.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/units/compiler.h"

#include <stdlib.h>

typedef struct finder {
    tr_program *program;
    size_t block_capacity, access_capacity;
    bool failed;
} finder;

// The order of a program's blocks, by place: what passes from step to step, the unit's
// parameters, what they are packed to, what one step alone works with; then what lives
// always.
static int place_rank(tr_place place) {
    static const int ranks[TR_PLACE_COUNT] = {
        [TR_PLACE_INPUT] = 0,       [TR_PLACE_OUTPUT] = 1,
        [TR_PLACE_SAVED] = 2,       [TR_PLACE_WAVE] = 3,
        [TR_PLACE_OUTPUT_GRAD] = 4, [TR_PLACE_INPUT_GRAD] = 5,
        [TR_PLACE_WAVE_GRAD] = 6,   [TR_PLACE_PARAM] = 7,
        [TR_PLACE_PARAM_GRAD] = 7,  [TR_PLACE_PACKED] = 8,
        [TR_PLACE_TEMP] = 10,       [TR_PLACE_PACKED_BACKWARD] = 9,
        [TR_PLACE_DATA] = 11,       [TR_PLACE_SUMS] = 12,
        [TR_PLACE_STATE] = 13,      [TR_PLACE_LOGITS] = 14,
        [TR_PLACE_CACHE] = 15,      [TR_PLACE_FIRST_BAD] = 16,
        [TR_PLACE_HELD] = 2,        [TR_PLACE_CARRIED] = 10,
    };
    return ranks[place];
}

static int compare(const void *a_, const void *b_) {
    const tr_program_block *a = a_, *b = b_;
    int by = place_rank(a->place) - place_rank(b->place);
    by = by ? by : a->flat - b->flat;
    by = by ? by : (int)a->place - (int)b->place;
    return by ? by : (int)a->part - (int)b->part;
}

static bool is_wave(tr_place place) {
    return place == TR_PLACE_WAVE || place == TR_PLACE_WAVE_GRAD;
}

static tr_program_block block_of(const tr_operand *operand, bool written) {
    bool param =
        operand->place == TR_PLACE_PARAM || operand->place == TR_PLACE_PARAM_GRAD;
    return (tr_program_block){.place = operand->place,
                              .flat = param ? operand->flat : 0,
                              .part = written && is_wave(operand->place),
                              .of = {.buffer = -1}};
}

// The block that the operand lies in; -1: it is absent, or not yet among them.
static int find_block(const tr_program *program, const tr_operand *operand,
                      bool written) {
    tr_program_block block = block_of(operand, written);
    for (size_t i = 0; i < program->block_count; i++) {
        if (compare(&program->blocks[i], &block) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static void add_block(finder *f, const tr_operand *operand, bool written) {
    tr_program *program = f->program;
    if (operand->place == TR_PLACE_NONE || f->failed ||
        find_block(program, operand, written) >= 0) {
        return;
    }
    f->failed = !tr__grow((void **)&program->blocks, &f->block_capacity,
                          program->block_count + 1, sizeof *program->blocks);
    if (!f->failed) {
        program->blocks[program->block_count++] = block_of(operand, written);
    }
}

static const tr_operand *temporaries(void) {
    static const tr_operand all = {.place = TR_PLACE_TEMP};
    return &all;
}

static void add_blocks(finder *f) {
    tr_program *program = f->program;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.in_count; k++) {
            add_block(f, &at->in[k], false);
        }
        for (int k = 0; k < at->desc.out_count; k++) {
            add_block(f, &at->out[k], true);
        }
        add_block(f, &at->packed, true);
    }
    for (size_t i = 0; i < program->received_count; i++) {
        add_block(f, &program->received[i].operand, false);
    }
    if (program->temp_bytes > 0) {
        add_block(f, temporaries(), true);
    }
    if (program->block_count > 0 && !f->failed) {
        qsort(program->blocks, program->block_count, sizeof *program->blocks, compare);
    }
}

static void number(const tr_program *program, tr_operand *operand, bool written) {
    operand->block =
        operand->place == TR_PLACE_NONE ? -1 : find_block(program, operand, written);
}

// ---- what it does there

static bool adjoins(const tr_program_access *a, const tr_program_access *b) {
    return a->block == b->block && a->of.mode == b->of.mode &&
           a->of.contributes == b->of.contributes && a->of.first <= b->of.end &&
           b->of.first <= a->of.end;
}

// What the program does to all of the block: it reads, it writes, or both.
static void note_block(tr_step_operand *all, const tr_step_operand *some) {
    bool begun = all->end > 0;
    all->mode = !begun || all->mode == some->mode ? some->mode : TR_ACCESS_ADD;
    all->contributes = all->contributes || some->contributes;
    all->end = tr__max_i64(all->end, some->end);
}

// Notes an access; one that adjoins another becomes one with it.
static void note(finder *f, int block, tr_step_operand of) {
    tr_program *program = f->program;
    tr_program_access access = {block, of};
    if (block < 0 || of.first >= of.end || f->failed) {
        return;
    }
    note_block(&program->blocks[block].of, &of);
    for (size_t i = 0; i < program->access_count;) {
        const tr_program_access *other = &program->accesses[i];
        if (adjoins(other, &access)) {
            access.of.first = tr__min_i64(access.of.first, other->of.first);
            access.of.end = tr__max_i64(access.of.end, other->of.end);
            program->accesses[i] = program->accesses[--program->access_count];
            i = 0; // the longer one may adjoin others
        } else {
            i++;
        }
    }
    f->failed = !tr__grow((void **)&program->accesses, &f->access_capacity,
                          program->access_count + 1, sizeof *program->accesses);
    if (!f->failed) {
        program->accesses[program->access_count++] = access;
    }
}

// Temporaries are of one step alone, and noted as a whole.
static void note_tensor(finder *f, const tr_operand *operand, int64_t bytes,
                        tr_step_operand of) {
    of.buffer = -1;
    of.first = operand->offset;
    of.end = operand->offset + bytes;
    if (operand->place != TR_PLACE_TEMP) {
        note(f, operand->block, of);
    }
}

static void note_result(finder *f, const tr_instruction *at, int i) {
    const tr_operand *out = &at->out[i];
    bool adds = (at->accumulate >> i & 1) || out->place == TR_PLACE_SUMS;
    bool contributes = (at->first >> i & 1) && !(at->accumulate >> i & 1);
    note_tensor(
        f, out, tr_tensor_bytes(at->desc.out[i]) + out->padding,
        (tr_step_operand){.mode = adds || contributes ? TR_ACCESS_ADD : TR_ACCESS_WRITE,
                          .contributes = contributes});
}

// Does it check what the instruction before it has made, which that one has noted?
static bool checks(const tr_instruction *at) {
    return at->out[0].place == TR_PLACE_FIRST_BAD;
}

static void note_instruction(finder *f, const tr_instruction *at) {
    for (int k = 0; k < at->desc.in_count; k++) {
        if (!(at->desc.op->shape_only >> k & 1) && !checks(at)) {
            note_tensor(f, &at->in[k],
                        tr_tensor_bytes(at->desc.in[k]) + at->in[k].padding,
                        (tr_step_operand){.mode = TR_ACCESS_READ});
        }
    }
    for (int k = 0; k < at->desc.out_count; k++) {
        note_result(f, at, k);
    }
    // What a kernel has packed: written by the first step that reads it, for all
    // others.
    if (at->packed.place != TR_PLACE_NONE) {
        note_tensor(f, &at->packed, at->packed_bytes,
                    (tr_step_operand){.mode = TR_ACCESS_ADD, .contributes = true});
    }
}

static void number_operands(tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < TR_OP_IN_MAX; k++) {
            number(program, &at->in[k], false);
        }
        for (int k = 0; k < TR_OP_OUT_MAX; k++) {
            number(program, &at->out[k], true);
        }
        number(program, &at->packed, true);
    }
    for (size_t i = 0; i < program->received_count; i++) {
        number(program, &program->received[i].operand, false);
    }
}

bool tr__program_blocks(tr_program *program) {
    finder f = {.program = program};
    add_blocks(&f);
    if (f.failed) {
        return false;
    }
    number_operands(program);
    for (size_t i = 0; i < program->count; i++) {
        note_instruction(&f, &program->instructions[i]);
    }
    // What is exchanged and kept counts as a result of the piece that goes on with it:
    // who takes it away waits for that.
    for (size_t i = 0; i < program->received_count; i++) {
        const tr_received *received = &program->received[i];
        bool kept = received->operand.place == TR_PLACE_SAVED;
        note_tensor(&f, &received->operand, received->bytes,
                    (tr_step_operand){.mode = kept ? TR_ACCESS_ADD : TR_ACCESS_READ});
    }
    if (program->temp_bytes > 0) {
        note(&f, find_block(program, temporaries(), true),
             (tr_step_operand){
                 .buffer = -1, .mode = TR_ACCESS_WRITE, .end = program->temp_bytes});
    }
    return !f.failed;
}
