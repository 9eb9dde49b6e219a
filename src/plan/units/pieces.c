// Cuts programs into pieces where ranks exchange inside of a unit: behind the
// instruction that makes what is summed, and what checks it, and before the one that
// reads the sum. The exchange is a piece of its own; what lies between the two is one
// that goes on beside it. Gradients of weights that come later are a piece by
// themselves.
#include "plan/units/compiler.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

static bool has_weights(const tr_program *whole) {
    return whole->weights_at < whole->count;
}

static bool is_check(const tr_instruction *at) {
    return at->out[0].place == TR_PLACE_FIRST_BAD;
}

// It ends behind what ranks sum, and before what has to wait for such a sum.
const tr_instruction *tr__piece_end(const tr_program *whole, size_t first, size_t last,
                                    size_t *end) {
    size_t i = first;
    const tr_instruction *summed = NULL;
    for (; i < last && !(i > first && whole->instructions[i].takes); i++) {
        if (summed && !is_check(&whole->instructions[i])) {
            break;
        }
        summed = whole->instructions[i].exchange ? &whole->instructions[i] : summed;
    }
    *end = i;
    return summed;
}

// Exchanges are pieces, too, and behind the last of them one goes on.
static int count_pieces(const tr_program *whole) {
    int count = 1 + has_weights(whole);
    for (size_t first = 0; first < whole->weights_at;) {
        count += 1 + (tr__piece_end(whole, first, whole->weights_at, &first) != NULL);
    }
    return count;
}

static int64_t end_in_temp(const tr_operand *operand, const tr_tensor_desc *desc) {
    return operand->place == TR_PLACE_TEMP ? operand->offset + tr_tensor_bytes(*desc)
                                           : 0;
}

// The temporaries that instructions [first, end) work in.
static int64_t temp_bytes(const tr_program *whole, size_t first, size_t end) {
    int64_t bytes = 0;
    for (size_t i = first; i < end; i++) {
        const tr_instruction *at = &whole->instructions[i];
        size_t room =
            at->kernel->workspace ? at->kernel->workspace(&at->desc, at->state) : 0;
        bytes = tr__max_i64(bytes, room ? at->workspace + (int64_t)room : 0);
        for (int k = 0; k < at->desc.in_count; k++) {
            bytes = tr__max_i64(bytes, end_in_temp(&at->in[k], &at->desc.in[k]));
        }
        for (int k = 0; k < at->desc.out_count; k++) {
            bytes = tr__max_i64(bytes, end_in_temp(&at->out[k], &at->desc.out[k]));
        }
    }
    return tr__round_up(bytes, TR_ALIGNMENT);
}

static void add_cost(tr_program *piece, const tr_instruction *at) {
    tr_cost cost = {0};
    if (at->kernel->cost) {
        at->kernel->cost(&at->desc, &cost);
    }
    piece->cost.flops += cost.flops;
    piece->cost.bytes += cost.bytes;
    piece->cost.prepare += cost.prepare;
    piece->cost.pack += cost.pack;
    piece->cost.launches += cost.launches;
}

// Instructions [first, end) of the program, whose kernels' states become the piece's.
static bool cut(const tr_program *whole, size_t first, size_t end, tr_program *piece) {
    piece->temp_bytes = temp_bytes(whole, first, end);
    piece->count = end - first;
    piece->instructions = tr__calloc(piece->count, sizeof *piece->instructions);
    if (!piece->instructions) {
        piece->count = 0;
        return false;
    }
    for (size_t i = 0; i < piece->count; i++) {
        tr_instruction *from = &whole->instructions[first + i];
        piece->instructions[i] = *from;
        from->state = NULL;
        add_cost(piece, from);
    }
    return tr__program_blocks(piece);
}

static bool make_exchange(const tr_instruction *summed, tr_program *piece) {
    piece->instructions = tr__calloc(1, sizeof *piece->instructions);
    if (!piece->instructions) {
        return false;
    }
    piece->count = 1;
    piece->exchange = summed->exchange;
    tr_instruction *to = &piece->instructions[0];
    *to = *summed;
    to->state = NULL;
    to->in[0] = to->out[0];
    to->packed = (tr_operand){.place = TR_PLACE_NONE};
    return tr__program_blocks(piece);
}

static tr_program *begin_piece(tr_unit_program *unit, const tr_program *whole,
                               int number) {
    int at = unit->first_of[whole->variant + 1]++;
    tr_program *piece = &unit->programs[at];
    *piece = (tr_program){.variant = whole->variant,
                          .segment = whole->segment,
                          .piece = at - unit->first_of[whole->variant],
                          .begins = number == 0,
                          .carried_bytes = whole->carried_bytes};
    return piece;
}

static bool cut_weights(tr_unit_program *unit, const tr_program *whole) {
    tr_program *piece = begin_piece(unit, whole, 0);
    piece->ends = piece->weights = true;
    return cut(whole, whole->weights_at, whole->count, piece);
}

// The exchanges that the piece waits for: `count` of them, the first at `*from` or
// behind it.
static bool receive(const tr_program *whole, size_t *from, int count,
                    tr_program *piece) {
    if (count == 0) {
        return true;
    }
    piece->received = tr__calloc((size_t)count, sizeof *piece->received);
    for (; piece->received && piece->received_count < (size_t)count; ++*from) {
        const tr_instruction *at = &whole->instructions[*from];
        if (at->exchange) {
            piece->received[piece->received_count++] =
                (tr_received){at->out[0], tr_tensor_bytes(at->desc.out[0])};
        }
    }
    return piece->received != NULL;
}

static int count_exchanges(const tr_program *whole, size_t first, size_t end) {
    int count = 0;
    for (size_t i = first; i < end; i++) {
        count += whole->instructions[i].exchange != 0;
    }
    return count;
}

// The last piece waits for all exchanges that are left, and may do nothing else.
static bool cut_program(tr_unit_program *unit, tr_program *whole) {
    const tr_instruction *summed = NULL;
    bool good = true, ends = false;
    size_t first = 0, end = 0, untaken = 0, last = whole->weights_at;
    for (int number = 0; good && !ends; first = end) {
        tr_program *piece = begin_piece(unit, whole, number++);
        summed = tr__piece_end(whole, first, last, &end);
        ends = piece->ends = end == last && !summed;
        int takes = ends          ? count_exchanges(whole, untaken, last)
                    : first < end ? whole->instructions[first].takes
                                  : 0;
        good = receive(whole, &untaken, takes, piece) && cut(whole, first, end, piece);
        if (summed && good) {
            good = make_exchange(summed, begin_piece(unit, whole, number++));
        }
    }
    return good && (!has_weights(whole) || cut_weights(unit, whole));
}

bool tr__unit_cut(tr_compiler *c) {
    tr_unit_program *unit = c->unit;
    int count = 0;
    for (int i = 0; i < c->whole_of[TR_VARIANTS]; i++) {
        count += count_pieces(&c->whole[i]);
    }
    unit->programs = tr__calloc((size_t)count, sizeof *unit->programs);
    bool good = unit->programs != NULL;
    for (int role = 0; role < TR_VARIANTS; role++) {
        unit->first_of[role + 1] = unit->first_of[role];
        for (int i = c->whole_of[role]; i < c->whole_of[role + 1] && good; i++) {
            good = cut_program(unit, &c->whole[i]);
        }
    }
    return good;
}
