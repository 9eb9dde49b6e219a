// Pass: updates of what lives on NVMe.
//
// The update of a flat buffer is cut into pieces. What a piece needs from the file is
// read into a slot of a ring in host memory, ahead of it by all other slots; after it
// what it has changed is written back. Reads and writes are of one stream, which does
// them in their order: so a slot is read into once what was written from it is in the
// file, and nobody waits but the piece for its own reads.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/plan.h"

// 4 MiB of f32: long enough for a disk to be at its best. Two slots wait for the disk
// while it fills the third, and one is at work.
enum { PIECE_ELEMENTS = 1 << 20, SLOTS = 4 };

// A walk through the pieces of all updates.
typedef struct cursor {
    size_t at;      // step of the old sequence
    int64_t done;   // elements of it
    int64_t number; // pieces so far
} cursor;

typedef struct writer {
    tr_plan *plan;
    const tr_sequence *old;
    tr_sequence edited;
    int32_t issued;                     // NVMe steps
    int32_t ready[TR_UPDATE_SLOTS_MAX]; // those that the piece of a slot waits for
    tr_error *err;
    tr_status status;
} writer;

static void add(writer *w, tr_plan_step step) {
    if (w->status == TR_OK) {
        w->issued += step.stream == TR_STREAM_NVME;
        w->status = tr__sequence_add(&w->edited, step, w->err);
    }
}

static bool next_piece(const writer *w, cursor *c, tr_plan_step *piece) {
    const tr_plan_request *r = &w->plan->request;
    if (c->at == w->old->count) {
        return false;
    }
    *piece = w->old->steps[c->at];
    piece->first += c->done;
    piece->count = tr__min_i64(piece->count - c->done, r->update_elements);
    piece->slot = (int32_t)(c->number++ % r->update_slots);
    c->done += piece->count;
    if (c->done == w->old->steps[c->at].count) {
        c->at++;
        c->done = 0;
    }
    return true;
}

// Reads or writes the parts of a piece that are on NVMe.
static void move(writer *w, const tr_plan_step *piece, tr_plan_step_kind kind) {
    const tr_flat *flat = &w->plan->flats[piece->unit];
    int parts = TR_PART_STATE + w->plan->request.optimizer_states;
    for (int part = 0; part < parts && piece->count > 0; part++) {
        bool moves = part != TR_PART_RECORD &&
                     tr__is_on_nvme(w->plan, tr__flat_range(flat, (tr_part)part));
        if (!moves || (kind == TR_STEP_write && part == TR_PART_GRAD)) {
            continue;
        }
        add(w, (tr_plan_step){.kind = kind,
                              .stream = TR_STREAM_NVME,
                              .unit = piece->unit,
                              .part = (tr_part)part,
                              .first = piece->first,
                              .count = piece->count,
                              .slot = piece->slot});
    }
}

static void write_updates(writer *w, size_t begin) {
    cursor reads = {.at = begin}, updates = {.at = begin};
    tr_plan_step ahead, piece;
    int64_t slots = w->plan->request.update_slots;
    while (w->status == TR_OK && next_piece(w, &updates, &piece)) {
        while (reads.number < updates.number + slots - 1 &&
               next_piece(w, &reads, &ahead)) {
            move(w, &ahead, TR_STEP_read);
            w->ready[ahead.slot] = w->issued;
        }
        piece.wait_nvme = piece.count > 0 ? w->ready[piece.slot] : 0;
        add(w, piece);
        move(w, &piece, TR_STEP_write);
    }
}

// No piece is larger than the largest update.
static void choose_sizes(tr_plan *plan) {
    tr_plan_request *r = &plan->request;
    int64_t most = TR_SHARD_ELEMENTS;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        bool shards = tr__plan_stage(plan) > 0;
        int64_t room = shards ? tr__min_i64(flat->shard, flat->count) : flat->count;
        most = tr__max_i64(most, tr__round_up(room, TR_SHARD_ELEMENTS));
    }
    r->update_elements =
        tr__min_i64(r->update_elements > 0 ? r->update_elements : PIECE_ELEMENTS, most);
    r->update_slots = r->update_slots > 0 ? r->update_slots : SLOTS;
}

tr_status tr__pass_stage(tr_plan *plan, tr_error *err) {
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    if (!tr__plan_uses_nvme(plan)) {
        return TR_OK;
    }
    choose_sizes(plan);
    writer w = {.plan = plan, .old = train, .err = err};
    for (size_t i = 0; i < plan->update_begin; i++) {
        add(&w, train->steps[i]);
    }
    write_updates(&w, plan->update_begin);
    if (w.status != TR_OK) {
        tr__free(w.edited.steps);
        return w.status;
    }
    tr__free(train->steps);
    *train = w.edited;
    return TR_OK;
}
