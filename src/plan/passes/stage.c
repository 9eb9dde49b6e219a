// Pass: updates of what lives on NVMe.
//
// The update of a flat buffer is cut into pieces. What a piece needs from the file is
// read into a slot of a ring in host memory, ahead of it by all other slots; after it
// what it has changed is written back. Reads and writes are of one stream, which does
// them in their order: so a slot is read into once what was written from it is in the
// file, and nobody waits but the piece for its own reads.
//
// So that the disk works while the processor does, the pieces are there twice: after
// the norm, and once more at the step's beginning, for an update that the step before
// has left to this one. There they lie between the forwards, each before the first step
// that takes its parameters, or puts new gradients in the place of the old.
//
// An update of two phases is done once, after the norm: each phase in pieces of its
// own, since the norms of whole tensors lie in between. The states that the first has
// moved on are written back, and read again by the second, in the stream's order.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/residency.h"
#include "plan/passes/steps_update.h"

// 4 MiB of f32: long enough for a disk to be at its best. One slot is at work; what a
// forward has time for is in the others.
enum { PIECE_ELEMENTS = 1 << 20, SLOTS = 6 };

// A walk through the pieces of all updates.
typedef struct cursor {
    size_t at, end; // steps of the old sequence
    int64_t done;   // elements of it
    int64_t number; // pieces so far
} cursor;

typedef struct writer {
    tr_plan *plan;
    const tr_sequence *old;
    size_t begin; // of the old steps, the first that comes after the norm
    tr_editor editor;
    bool defers;         // an update can be left to the next step
    tr_step_guard guard; // of pieces
    cursor updates, reads;
    tr_staged ring[TR_UPDATE_SLOTS_MAX]; // by slot
    tr_error *err;
} writer;

// Nothing is under way at the norm.
static void keep(writer *w, tr_plan_step step) {
    int32_t id = tr__edit_add(&w->editor, step);
    if (step.mark == TR_MARK_NORM) {
        tr__edit_limit(&w->editor, w->editor.last[TR_STREAM_NVME], id);
    }
}

// *slot: of the ring, in which it is staged.
static bool next_piece(const writer *w, cursor *c, tr_plan_step *piece, int *slot) {
    const tr_plan_request *r = &w->plan->request;
    if (c->at == c->end) {
        return false;
    }
    *piece = w->old->steps[c->at];
    piece->first += c->done;
    piece->count = tr__min_i64(piece->count - c->done, r->update_elements);
    *slot = (int)(c->number++ % r->update_slots);
    c->done += piece->count;
    if (c->done == w->old->steps[c->at].count) {
        c->at++;
        c->done = 0;
    }
    return true;
}

// Does a piece of an update, or of its first phase, need the part read, or written?
static bool needs(const tr_plan_step *piece, bool reads, int part) {
    if (reads) {
        return part != TR_PART_COPY;
    }
    return piece->mark == TR_MARK_MEASURE ? part >= TR_PART_STATE
                                          : part != TR_PART_GRAD;
}

// Where a part of a piece lies in the file.
static tr_region stored(const tr_plan *plan, const tr_plan_step *piece, tr_part part) {
    const tr_flat *flat = &plan->flats[piece->unit];
    int64_t before = piece->first - flat->part[part].first;
    int64_t at = tr__nvme_bytes(plan, flat, part, before);
    return (tr_region){flat->part[part].buffer, at,
                       at + tr__nvme_bytes(plan, flat, part, piece->count)};
}

// Where it is staged.
static tr_region staged(writer *w, const tr_plan_step *piece, int slot, tr_part part) {
    const tr_flat *flat = &w->plan->flats[piece->unit];
    int32_t *value = &w->ring[slot].value[part];
    if (*value == TR_STAGED_NOT) {
        *value = tr__edit_value(
            &w->editor, TR_LEDGER_staging, TR_SPACE_HOST,
            tr__nvme_bytes(w->plan, flat, part, w->plan->request.update_elements));
    }
    return tr__region(*value, tr__nvme_bytes(w->plan, flat, part, piece->count));
}

// Reads or writes the parts of a piece that are on NVMe.
static void move(writer *w, const tr_plan_step *piece, int slot, bool reads) {
    int parts = tr__flat_parts(w->plan, &w->plan->flats[piece->unit]);
    for (int i = 0; i < parts && piece->count > 0; i++) {
        tr_part part = (tr_part)i;
        tr_verb verb = reads ? TR_VERB_read : TR_VERB_write;
        tr_plan_step step = {.label = tr__label_of_part(verb, part),
                             .stream = TR_STREAM_NVME,
                             .guard = w->guard,
                             .subject = TR_OF_FLAT,
                             .unit = piece->unit,
                             .first = piece->first,
                             .count = piece->count};
        step.label.piece = true;
        if (!needs(piece, reads, part) ||
            !tr__flat_part_is_on_nvme(w->plan, &w->plan->flats[piece->unit], part)) {
            continue;
        }
        tr_region file = stored(w->plan, piece, part),
                  ring = staged(w, piece, slot, part);
        if (reads) {
            tr__make_read(&w->editor, step, file, ring);
        } else {
            tr__make_write(&w->editor, step, ring, file);
        }
    }
}

// The first phase of an update has no use for the copy in 16 bits. A piece of no
// elements has nothing staged.
static void put_piece(writer *w, tr_plan_step piece, int slot) {
    tr_staged at = tr__nothing_staged();
    const tr_flat *flat = &w->plan->flats[piece.unit];
    int parts = tr__flat_parts(w->plan, flat);
    for (int i = 0; i < parts; i++) {
        bool later = piece.mark == TR_MARK_MEASURE && i == TR_PART_COPY;
        if (!later && tr__flat_part_is_on_nvme(w->plan, flat, (tr_part)i)) {
            at.value[i] =
                piece.count > 0 ? staged(w, &piece, slot, (tr_part)i).value : -1;
        }
    }
    tr__put_update(&w->editor, piece, &at);
}

// The next piece, what it needs, and what those after it need, as far as there are
// slots.
static bool write_piece(writer *w) {
    tr_plan_step ahead, piece;
    int slot = 0, other = 0;
    int64_t slots = w->plan->request.update_slots;
    if (w->editor.status != TR_OK || !next_piece(w, &w->updates, &piece, &slot)) {
        return false;
    }
    while (w->reads.number < w->updates.number + slots - 1 &&
           next_piece(w, &w->reads, &ahead, &other)) {
        move(w, &ahead, other, true);
    }
    piece.guard = w->guard;
    piece.id = 0;
    piece.label.piece = true;
    put_piece(w, piece, slot);
    move(w, &piece, slot, false);
    return true;
}

static void begin_pieces(writer *w, size_t first, size_t end, tr_step_guard guard) {
    w->guard = guard;
    w->updates = w->reads = (cursor){.at = first, .end = end};
}

// ---- updates of the step before

// For each step before the updates: pieces that must be done before it, those that must
// be done before the next step that needs more of them, and the computing steps from it
// to that one.
typedef struct deadlines {
    int64_t *need, *next, *gaps;
} deadlines;

// All pieces of a flat buffer and of those before it.
static int64_t pieces_through(const writer *w, int32_t flat) {
    int64_t count = 0;
    for (size_t i = tr__first_update(w->old); i < w->old->count; i++) {
        int64_t elements = w->plan->request.update_elements;
        count += tr__max_i64(1, tr__ceil_div(w->old->steps[i].count, elements));
        if (w->old->steps[i].unit == flat) {
            break;
        }
    }
    return count;
}

// Does the step take what the update changes, from where it lives or is staged, or put
// gradients where the update reads them?
static bool needs_update(const tr_plan *plan, const tr_plan_step *step) {
    bool moves = step->stream == TR_STREAM_NVME || tr__stream_copies(step->stream);
    return moves && step->subject == TR_OF_FLAT && !plan->flats[step->unit].frozen;
}

static bool is_gap(const tr_plan_step *step) {
    return tr__step_is_forward(step);
}

static void find_deadlines(const writer *w, deadlines *d) {
    size_t count = w->begin;
    int64_t need = 0;
    for (size_t i = 0; i < count; i++) {
        const tr_plan_step *step = &w->old->steps[i];
        if (needs_update(w->plan, step)) {
            need = tr__max_i64(need, pieces_through(w, step->unit));
        } else if (step->mark == TR_MARK_NORM) { // whose gradients are the next ones
            need = INT64_MAX;
        }
        d->need[i] = need;
    }
    for (size_t i = count; i-- > 0;) {
        bool last = i + 1 == count, rises = !last && d->need[i + 1] > d->need[i];
        int64_t gaps = last || rises ? 0 : d->gaps[i + 1];
        d->gaps[i] = gaps + is_gap(&w->old->steps[i]);
        d->next[i] = last ? d->need[i] : rises ? d->need[i + 1] : d->next[i + 1];
    }
}

// Computing steps take their share of the pieces that come before the next deadline.
static void write_pieces_before(writer *w, const deadlines *d, size_t i) {
    int64_t until = d->need[i];
    if (is_gap(&w->old->steps[i]) && d->next[i] > w->updates.number &&
        d->next[i] < INT64_MAX) {
        int64_t left = d->next[i] - w->updates.number;
        until = tr__max_i64(until, w->updates.number + tr__ceil_div(left, d->gaps[i]));
    }
    while (w->updates.number < until && write_piece(w)) {
    }
}

static void copy_steps(writer *w, const deadlines *d) {
    begin_pieces(w, tr__first_update(w->old), w->old->count, TR_GUARD_DEFERRED);
    for (size_t i = 0; i < w->begin && w->editor.status == TR_OK; i++) {
        if (w->defers) {
            write_pieces_before(w, d, i);
        }
        keep(w, w->old->steps[i]);
    }
}

// All that comes after the norm, in its order.
static void write_updates(writer *w) {
    size_t i = w->begin, count = w->old->count;
    while (i < count && w->editor.status == TR_OK) {
        tr_mark phase = w->old->steps[i].mark;
        if (phase != TR_MARK_MEASURE && phase != TR_MARK_UPDATE) {
            keep(w, w->old->steps[i++]);
            continue;
        }
        size_t end = i;
        while (end < count && w->old->steps[end].mark == phase) {
            end++;
        }
        begin_pieces(w, i, end, w->defers ? TR_GUARD_AT_ONCE : TR_GUARD_APPLIED);
        while (write_piece(w)) {
        }
        i = end;
    }
}

static tr_status write_steps(writer *w) {
    size_t count = w->begin + 1;
    deadlines d = {tr__calloc(count, sizeof *d.need), tr__calloc(count, sizeof *d.next),
                   tr__calloc(count, sizeof *d.gaps)};
    if (!d.need || !d.next || !d.gaps) {
        w->editor.status = tr_fail(w->err, TR_MEMORY, "no memory to plan updates");
    } else {
        find_deadlines(w, &d);
        copy_steps(w, &d);
        write_updates(w);
    }
    tr__free(d.need);
    tr__free(d.next);
    tr__free(d.gaps);
    return tr__edit_end(&w->editor);
}

// Elements of the smallest pieces that are whole blocks of every part. Those of all
// parts are powers of two.
static int64_t whole_blocks(const tr_plan *plan) {
    int64_t block = TR_SHARD_ELEMENTS;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        for (int part = 0; part < tr__flat_parts(plan, flat); part++) {
            bool kept = flat->part[part].buffer >= 0;
            block = tr__max_i64(
                block, kept ? tr__nvme_elements(plan, flat, (tr_part)part) : 0);
        }
    }
    return block;
}

// No piece is larger than the largest update, and all but the last of a flat buffer are
// whole blocks of every part.
static void choose_sizes(tr_plan *plan) {
    tr_plan_request *r = &plan->request;
    int64_t most = TR_SHARD_ELEMENTS;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        bool shards = tr__plan_stage(plan) > 0;
        if (flat->frozen) {
            continue;
        }
        int64_t room = shards ? tr__min_i64(flat->shard, flat->count) : flat->count;
        most = tr__max_i64(most, tr__round_up(room, TR_SHARD_ELEMENTS));
    }
    int64_t elements = r->update_elements > 0 ? r->update_elements : PIECE_ELEMENTS;
    elements = tr__round_up(elements, whole_blocks(plan));
    r->update_elements = tr__min_i64(elements, most);
    r->update_slots = r->update_slots > 0 ? r->update_slots : SLOTS;
}

tr_status tr__pass_stage(tr_plan *plan, tr_error *err) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    if (!tr__plan_uses_nvme(plan)) {
        return TR_OK;
    }
    choose_sizes(plan);
    const tr_plan_request *r = &plan->request;
    writer w = {.plan = plan, .old = train, .err = err};
    // All updates are left, or none. Sums in fixed point are scaled anew for each step.
    w.defers = !r->no_overlap && !r->reproducible && !r->tensor_norms &&
               r->optimizer_placement != TR_SPACE_DEVICE && tr__plan_staying(plan) == 0;
    for (int slot = 0; slot < TR_UPDATE_SLOTS_MAX; slot++) {
        w.ring[slot] = tr__nothing_staged();
    }
    w.begin = tr__sequence_update(train);
    w.editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    return write_steps(&w);
}
