// The pieces of a unit's programs, of which exchanges between ranks are some. The
// pieces of a segment run one after the other on a micro-batch, and ranks sum what the
// piece before the exchange has left, where it lies.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/proof/unit.h"

// What is known of a unit on a micro-batch while the pieces of a segment are at work.
struct tr_open_pieces {
    int32_t done; // 1 + the last piece, as one of the unit's programs; 0: none is open
    int32_t step; // that ran it
    bool is_summed; // each rank has its part of the sum that comes next
};

// Micro-batches of the longest sequence.
static int64_t most_micros(const tr_proof *p) {
    return tr__max_i64(p->plan->request.accumulation_steps, p->plan->evaluated);
}

bool tr__pieces_make(tr_proof *p) {
    size_t units = (size_t)p->plan->unit_count, micros = (size_t)most_micros(p);
    p->walked.open_count = tr__plan_exchanges_inside(p->plan) ? units * micros : 0;
    p->walked.open = tr__calloc(p->walked.open_count + 1, sizeof *p->walked.open);
    return p->walked.open != NULL;
}

void tr__pieces_reset(tr_proof *p) {
    for (size_t i = 0; i < p->walked.open_count; i++) {
        p->walked.open[i] = (tr_open_pieces){0};
    }
}

static tr_open_pieces *open_of(tr_proof *p) {
    const tr_plan_step *step = p->step;
    size_t at = (size_t)(step->unit * most_micros(p) + step->micro);
    return at < p->walked.open_count ? &p->walked.open[at] : NULL;
}

// Which of its unit's programs it is.
static int32_t number_of(const tr_unit_program *unit, const tr_program *program) {
    return unit->first_of[program->variant] + program->piece;
}

void tr__piece_turn(tr_proof *p) {
    const tr_program *program = tr__proof_program(p);
    int32_t number = number_of(tr__proof_unit(p), program);
    tr_open_pieces *open = open_of(p);
    if (!open) {
        return;
    }
    if (open->done != (program->begins ? 0 : number)) {
        tr__proof_wrong(p, "comes out of the turn of its unit's pieces");
    }
    *open = (tr_open_pieces){.done = program->ends ? 0 : number + 1, .step = p->index};
}

bool tr__piece_is_next(const tr_proof *p, int64_t done) {
    const tr_plan_step *step = p->step;
    const tr_unit_program *unit = tr__proof_unit(p);
    const tr_program *program = tr__proof_program(p);
    if (step->micro <= done || p->walked.open_count == 0) {
        return step->micro == done;
    }
    int64_t before = step->unit * most_micros(p) + step->micro - 1;
    int32_t left = p->walked.open[before].done; // in the same role
    return left > number_of(unit, program) &&
           left < unit->first_of[program->variant + 1];
}

// ---- exchanges

// What ranks sum, where the last piece has left it.
static tr_bytes find_summed(const tr_proof *p, const tr_open_pieces *open,
                            const tr_instruction *at) {
    const tr_plan_step *maker = &p->plan->sequences[p->kind].steps[open->step];
    const tr_step_operand *block =
        tr__step_block(p->plan, maker, at->out[0].place, 0, false);
    int64_t first = (block ? block->first : 0) + at->out[0].offset;
    return (tr_bytes){block ? block->buffer : -1, first,
                      first + tr_tensor_bytes(at->desc.out[0])};
}

static bool is_of_type(tr_comm_type type, tr_dtype dtype) {
    return (type == TR_COMM_F32 && dtype == TR_F32) ||
           (type == TR_COMM_BF16 && dtype == TR_BF16) ||
           (type == TR_COMM_F16 && dtype == TR_F16);
}

// The exchange that comes next on the step's unit and micro-batch; NULL: none.
static const tr_program *next_exchange(const tr_proof *p, const tr_open_pieces *open) {
    const tr_unit_program *unit = tr__proof_unit(p);
    bool some = open && open->done > 0 && open->done < unit->first_of[TR_VARIANTS];
    const tr_program *next = some ? &unit->programs[open->done] : NULL;
    return next && next->exchange ? next : NULL;
}

static void exchange(tr_proof *p, tr_open_pieces *open, const tr_program *next) {
    const tr_exchange *e = &p->step->payload.exchange;
    const tr_instruction *at = &next->instructions[0];
    tr_bytes all = find_summed(p, open, at), own = all;
    // All of a sum, or the one half of it that the op asks for.
    uint32_t halves = at->desc.op->flags & (TR_OP_REDUCES | TR_OP_GATHERS);
    bool gathers = open->is_summed || halves == TR_OP_GATHERS;
    int64_t element = (int64_t)tr_dtype_bytes(at->desc.out[0].dtype), first, count;
    tr_meaning means;
    if (e->kind != (gathers ? TR_COMM_GATHER : TR_COMM_REDUCE) ||
        !is_of_type(e->type, at->desc.out[0].dtype) ||
        e->count != tr_shape_count(at->desc.out[0].shape)) {
        tr__proof_wrong(p, "exchanges something else than its unit does there");
        return;
    }
    tr__exchange_work(p, next->exchange);
    tr__comm_part(e->count, e->shard,
                  (int)tr__mesh_member(&p->plan->request.mesh, e->group), &first,
                  &count);
    own.first += first * element;
    own.end = own.first + count * element;
    tr__bytes_look(p, all, &means);
    bool own_unit = means.of == p->step->unit || means.of == p->step->unit + 1;
    if (!own_unit || means.index != p->step->micro) { // of the boundary behind it
        tr__proof_wrong(p, "sums what is not of its unit and micro-batch");
        return;
    }
    tr__bytes_read(p, gathers ? own : all, &means);
    tr__bytes_change(p, gathers ? all : own, &means, &means);
    open->is_summed = !gathers && halves == 0;
    open->done += !open->is_summed;
}

// One that is interrupted goes on with what is there.
static void exchange_stopped(tr_proof *p) {
    static const tr_meaning dropped = {.kind = TR_MEANS_DROPPED};
    const tr_step_operand *to = tr__step_operand(p->plan, p->step, TR_EXCHANGE_RECEIVE);
    tr__exchange_work(p, p->step->payload.exchange.group);
    tr__bytes_write(p, (tr_bytes){to->buffer, to->first, to->end}, &dropped);
}

void tr__rule_exchange_tensor(tr_proof *p) {
    if (!tr__unit_is_of_model(p)) {
        return;
    }
    tr_open_pieces *open = open_of(p);
    const tr_program *next = next_exchange(p, open);
    if (p->stopped) {
        exchange_stopped(p);
    } else if (!next) {
        tr__proof_wrong(p, "comes where its unit exchanges nothing");
    } else {
        exchange(p, open, next);
    }
}

// ---- what pieces fill one after the other

static bool works_in(const tr_proof *p, int32_t unit, const tr_program *program,
                     uint32_t places, bool leaves) {
    const tr_touches *touches = tr__tables_touches(&p->tables, unit, program);
    return !program->exchange &&
           ((leaves ? touches->results : touches->places) & places) != 0;
}

static int32_t count_segments(const tr_proof *p, int32_t unit, tr_variant role,
                              int first, int end, uint32_t places, bool leaves) {
    const tr_unit_program *of = p->plan->units[unit].program;
    int32_t count = 0;
    for (int s = first; s < end; s++) {
        tr_piece_range pieces = tr__segment_pieces(of, role, s);
        bool some = false;
        for (int i = pieces.first; i < pieces.end; i++) {
            some =
                some || works_in(p, unit, tr__unit_piece(of, role, i), places, leaves);
        }
        count += some;
    }
    return count;
}

int32_t tr__segments_in(const tr_proof *p, int32_t unit, tr_variant role, int first,
                        int end, uint32_t places) {
    return count_segments(p, unit, role, first, end, places, false);
}

int32_t tr__segments_leaving(const tr_proof *p, int32_t unit, tr_variant role,
                             int first, int end, uint32_t places) {
    return count_segments(p, unit, role, first, end, places, true);
}

// How many of the unit's pieces [first, end) of a role count.
static int32_t count_pieces(const tr_proof *p, tr_variant role, int first, int end,
                            uint32_t places, bool leaves) {
    const tr_unit_program *unit = tr__proof_unit(p);
    int32_t count = 0;
    for (int i = first; i < end; i++) {
        count +=
            works_in(p, p->step->unit, tr__unit_piece(unit, role, i), places, leaves);
    }
    return count;
}

tr_filling tr__unit_filling(const tr_proof *p, tr_variant role, uint32_t places,
                            bool leaves) {
    const tr_program *program = tr__proof_program(p);
    const tr_plan_step *step = p->step;
    bool down = role == TR_VARIANT_BACKWARD;
    int segments = tr__proof_segments(p), own = program->piece;
    tr_piece_range pieces =
        tr__segment_pieces(tr__proof_unit(p), program->variant, program->segment);
    int32_t before =
        count_segments(p, step->unit, role, 0, step->segment, places, leaves);
    int32_t behind = count_segments(p, step->unit, role, step->segment + 1, segments,
                                    places, leaves);
    tr_filling at = {.segments = down ? behind : before};
    at.counts = works_in(p, step->unit, program, places, leaves);
    at.pieces = count_pieces(p, program->variant, pieces.first, own, places, leaves);
    at.ends =
        count_pieces(p, program->variant, own + 1, pieces.end, places, leaves) == 0;
    at.last = at.ends && (down ? before : behind) == 0;
    return at;
}

tr_meaning tr__unit_filled(tr_meaning means, const tr_filling *at) {
    bool whole = at->ends && !at->counts && at->pieces > 0; // by earlier pieces
    means.terms = at->segments + whole;
    means.version = whole ? 0 : at->pieces;
    return means;
}

void tr__unit_fill(tr_proof *p, tr_bytes bytes, tr_meaning means,
                   const tr_filling *at) {
    tr_meaning before = tr__unit_filled(means, at);
    means.terms = at->segments + at->ends;
    means.version = at->ends ? 0 : at->pieces + 1;
    if (at->segments == 0 && at->pieces == 0) {
        tr__bytes_write(p, bytes, &means);
    } else {
        tr__bytes_change(p, bytes, &before, &means);
    }
}
