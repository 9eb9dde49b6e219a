// The temporaries of a program. What passes from piece to piece lies in a block that
// they share: ranks exchange there while other pieces work, so a step has to name
// exactly the bytes of it that it touches. What one piece works with alone lies in a
// block of its own.
#include "base/memory.h"
#include "plan/units/compiler.h"

// ---- what waits for exchanges

static bool is_exchanged(const tr_operand *exchanged, const tr_operand *operand) {
    bool temp = exchanged->place == TR_PLACE_TEMP;
    return operand->place == exchanged->place &&
           (!temp || operand->offset == exchanged->offset);
}

// Of blocks that units hand each other a step may touch any part.
static bool touches(const tr_instruction *at, const tr_operand *exchanged) {
    bool some = false;
    for (int k = 0; k < at->desc.in_count; k++) {
        some = some || is_exchanged(exchanged, &at->in[k]);
    }
    for (int k = 0; k < at->desc.out_count; k++) {
        some = some || is_exchanged(exchanged, &at->out[k]);
    }
    return some;
}

int tr__draft_takes(tr_draft *d, const tr_instruction *next) {
    size_t last = d->program->count, first = d->untaken;
    int takes = 0;
    for (; last > first; last--) {
        const tr_instruction *at = &d->program->instructions[last - 1];
        if (at->exchange && touches(next, &at->out[0])) {
            break;
        }
    }
    for (size_t i = first; i < last; i++) {
        takes += d->program->instructions[i].exchange != 0;
    }
    d->untaken = last;
    return takes;
}

// ---- layout

// Layouts of temporaries: those that are carried, and the others.
typedef struct layouts {
    tr_interval *items; // [temps] of one layout at a time
    int *piece;         // [instructions] in which it is
    bool *carried;      // [temps]
} layouts;

static void number_pieces(const tr_program *whole, int *piece) {
    int number = 0;
    for (size_t first = 0, end; first < whole->count; first = end) {
        bool weights = first >= whole->weights_at;
        tr__piece_end(whole, first, weights ? whole->count : whole->weights_at, &end);
        for (size_t i = first; i < end; i++) {
            piece[i] = number;
        }
        number++;
    }
}

// What nobody in the program waits for is exchanged until its end.
static void mark_carried(const tr_draft *d, layouts *l) {
    const tr_program *program = d->program;
    for (size_t i = 0; i < program->count; i++) {
        const tr_operand *out = &program->instructions[i].out[0];
        if (program->instructions[i].exchange && out->place == TR_PLACE_TEMP) {
            l->carried[out->offset] = true;
            d->temps[out->offset].last =
                i < d->untaken ? d->temps[out->offset].last : (int32_t)program->count;
        }
    }
    for (size_t t = 0; t < d->temp_count; t++) {
        const tr_interval *at = &d->temps[t];
        l->carried[t] = l->carried[t] || l->piece[at->first] != l->piece[at->last];
    }
}

// Those of the others take no room.
static tr_status lay_out(tr_compiler *c, tr_draft *d, layouts *l, bool carried,
                         int64_t *bytes) {
    for (size_t t = 0; t < d->temp_count; t++) {
        l->items[t] = d->temps[t];
        l->items[t].bytes = l->carried[t] == carried ? d->temps[t].bytes : 0;
    }
    tr_status status = tr__offsets_assign(l->items, d->temp_count, bytes, c->err);
    for (size_t t = 0; t < d->temp_count; t++) {
        d->temps[t].offset =
            l->carried[t] == carried ? l->items[t].offset : d->temps[t].offset;
    }
    return status;
}

static void place(const tr_draft *d, const layouts *l) {
    for (size_t i = 0; i < d->program->count; i++) {
        tr_instruction *to = &d->program->instructions[i];
        to->workspace = d->temps[to->workspace].offset;
        for (int k = 0; k < TR_OP_IN_MAX + TR_OP_OUT_MAX; k++) {
            tr_operand *operand =
                k < TR_OP_IN_MAX ? &to->in[k] : &to->out[k - TR_OP_IN_MAX];
            if (operand->place == TR_PLACE_TEMP) {
                int64_t temp = operand->offset;
                operand->place = l->carried[temp] ? TR_PLACE_CARRIED : TR_PLACE_TEMP;
                operand->offset = d->temps[temp].offset;
            }
        }
    }
}

tr_status tr__draft_lay_out(tr_compiler *c, tr_draft *d) {
    tr_program *program = d->program;
    layouts l = {.items = tr__calloc(d->temp_count, sizeof *l.items),
                 .piece = tr__calloc(program->count + 1, sizeof *l.piece),
                 .carried = tr__calloc(d->temp_count, sizeof *l.carried)};
    tr_status status = TR_OK;
    if (!l.items || !l.piece || !l.carried) {
        status = tr_fail(c->err, TR_MEMORY, "no memory for the program of unit %s",
                         c->unit->kind);
        goto cleanup;
    }
    number_pieces(program, l.piece);
    mark_carried(d, &l);
    status = lay_out(c, d, &l, true, &program->carried_bytes);
    if (status == TR_OK) {
        status = lay_out(c, d, &l, false, &program->temp_bytes);
    }
    if (status == TR_OK) {
        place(d, &l);
    }
cleanup:
    tr__free(l.items);
    tr__free(l.piece);
    tr__free(l.carried);
    return status;
}
