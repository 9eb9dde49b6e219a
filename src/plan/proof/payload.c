// A rule says which bytes a step has to read and write; the executor does what the
// step's payload names. Both must be the same bytes.
#include "base/memory.h"
#include "plan/proof/proof.h"

#include <stdlib.h>

static int compare(const void *a_, const void *b_) {
    const tr_bytes *a = a_, *b = b_;
    int64_t by = a->buffer != b->buffer ? a->buffer - b->buffer
                 : a->first != b->first ? a->first - b->first
                                        : a->end - b->end;
    return (by > 0) - (by < 0);
}

// Sorts the ranges, and makes one of those that overlap or adjoin.
static void join(tr_byte_list *list) {
    size_t count = 0;
    if (list->count == 0) {
        return;
    }
    qsort(list->items, list->count, sizeof *list->items, compare);
    for (size_t i = 1; i < list->count; i++) {
        tr_bytes *last = &list->items[count], *next = &list->items[i];
        if (next->buffer == last->buffer && next->first <= last->end) {
            last->end = next->end > last->end ? next->end : last->end;
        } else {
            list->items[++count] = *next;
        }
    }
    list->count = count + 1;
}

// The range of a joined list in which the bytes lie; NULL: in none.
static const tr_bytes *find_around(const tr_byte_list *list, tr_bytes bytes) {
    size_t first = 0, end = list->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        const tr_bytes *at = &list->items[middle];
        if (at->buffer == bytes.buffer && at->first <= bytes.first &&
            bytes.end <= at->end) {
            return at;
        }
        bool before = compare(at, &bytes) < 0;
        first = before ? middle + 1 : first;
        end = before ? end : middle;
    }
    return NULL;
}

static void expect_within(tr_proof *p, const tr_byte_list *some,
                          const tr_byte_list *within, const char *fault) {
    for (size_t i = 0; i < some->count && p->status == TR_OK; i++) {
        tr_bytes bytes = some->items[i];
        if (!find_around(within, bytes)) {
            tr__proof_wrong(p, "%s bytes %lld to %lld of buffer %d", fault,
                            (long long)bytes.first, (long long)bytes.end,
                            (int)bytes.buffer);
        }
    }
}

// ---- units' programs

// The step hands the program its blocks as the program works in them: where they lie
// is for the rule to say.
static void check_blocks(tr_proof *p, const tr_program *program) {
    if (p->step->payload.operand_count != program->block_count) {
        tr__proof_wrong(p, "hands its program %zu blocks of %zu",
                        p->step->payload.operand_count, program->block_count);
        return;
    }
    for (size_t i = 0; i < program->block_count; i++) {
        const tr_step_operand *block = tr__step_operand(p->plan, p->step, i);
        const tr_step_operand *of = &program->blocks[i].of;
        bool settled = of->contributes && block->mode != TR_ACCESS_READ;
        if (block->buffer < 0 || tr__operand_bytes(block) != of->end ||
            block->contributes != of->contributes ||
            !(settled || block->mode == of->mode)) {
            tr__proof_wrong(p, "hands its program another block %zu than it works in",
                            i);
        }
    }
}

static void list_program(tr_proof *p, const tr_program *program) {
    for (size_t i = 0; i < program->access_count; i++) {
        const tr_program_access *at = &program->accesses[i];
        const tr_step_operand *block =
            tr__step_operand(p->plan, p->step, (size_t)at->block);
        tr_place place = program->blocks[at->block].place;
        tr_bytes bytes = {block->buffer, block->first + at->of.first,
                          block->first + at->of.end};
        bool packed = place == TR_PLACE_PACKED || place == TR_PLACE_PACKED_BACKWARD;
        bool reads = at->of.mode == TR_ACCESS_READ ||
                     (packed && block->mode == TR_ACCESS_ADD); // by another step
        tr__touched_add(p, &p->named[!reads], bytes);
    }
}

// A rule takes blocks as wholes; the program accesses nothing else.
static void check_program(tr_proof *p, const tr_program *program) {
    check_blocks(p, program);
    if (p->status != TR_OK) {
        return;
    }
    list_program(p, program);
    for (size_t i = 0; i < p->touched[1].count;
         i++) { // what is written is there to read
        tr__touched_add(p, &p->touched[0], p->touched[1].items[i]);
    }
    join(&p->touched[0]);
    join(&p->touched[1]);
    expect_within(p, &p->named[0], &p->touched[0], "has no business reading");
    expect_within(p, &p->named[1], &p->touched[1], "has no business writing");
}

// ---- all other steps

static bool is_read(const tr_proof *p, tr_bytes bytes) {
    bool touched = false;
    for (size_t i = 0; i < p->touched[0].count && !touched; i++) {
        const tr_bytes *other = &p->touched[0].items[i];
        touched = other->buffer == bytes.buffer && other->first < bytes.end &&
                  bytes.first < other->end;
    }
    return touched;
}

// A kernel touches as many bytes as its tensors have, wherever the operand ends.
static void check_tensors(tr_proof *p, const tr_op_launch *launch) {
    const tr_op_desc *desc = &p->plan->prepared[launch->op].desc;
    for (int i = 0; i < desc->in_count + desc->out_count; i++) {
        const tr_step_operand *at = &p->plan->operands[launch->operand + (size_t)i];
        tr_tensor_desc tensor =
            i < desc->in_count ? desc->in[i] : desc->out[i - desc->in_count];
        if (at->buffer >= 0 && tr__operand_bytes(at) != tr_tensor_bytes(tensor)) {
            tr__proof_wrong(
                p, "launches %s on an operand of %lld bytes, where its tensor has %lld",
                desc->op->name, (long long)tr__operand_bytes(at),
                (long long)tr_tensor_bytes(tensor));
        }
    }
}

static void check_launches(tr_proof *p) {
    const tr_payload *payload = &p->step->payload;
    bool ops = p->step->shape == TR_STEP_IS_LAUNCH;
    for (size_t i = 0; ops && i < payload->op_count && p->status == TR_OK; i++) {
        check_tensors(p, &p->plan->launches[payload->op + i]);
    }
}

// It may read more than it has to, as what lies between two tensors, but not something
// else, and write nothing else.
static void check_operands(tr_proof *p) {
    const tr_payload *payload = &p->step->payload;
    bool in_place = p->step->shape == TR_STEP_IS_EXCHANGE &&
                    payload->exchange.in_place; // checked with the exchange
    for (size_t i = 0; i < payload->operand_count && p->status == TR_OK; i++) {
        const tr_step_operand *operand = tr__step_operand(p->plan, p->step, i);
        tr_bytes bytes = {operand->buffer, operand->first, operand->end};
        tr__touched_add(p, &p->named[0], bytes);
        if (operand->mode != TR_ACCESS_READ) {
            tr__touched_add(p, &p->named[1], bytes);
        } else if (bytes.first < bytes.end && !in_place && !is_read(p, bytes)) {
            tr__proof_wrong(p, "has no business reading its operand %zu", i);
        }
    }
    join(&p->named[0]);
    join(&p->named[1]);
    join(&p->touched[1]);
    expect_within(p, &p->touched[0], &p->named[0], "does not read");
    expect_within(p, &p->touched[1], &p->named[1], "does not write");
    expect_within(p, &p->named[1], &p->touched[1], "has no business writing");
}

void tr__payload_check(tr_proof *p) {
    const tr_program *program = tr__payload_program(p->step);
    p->named[0].count = p->named[1].count = 0;
    if (p->stopped) {
        return;
    }
    if (program) {
        check_program(p, program);
    } else {
        check_launches(p);
        check_operands(p);
    }
}
