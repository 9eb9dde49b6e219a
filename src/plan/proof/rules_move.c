// Rules of the steps that move parameters, inputs of units and parts of updates between
// ranks, spaces and the file.
#include "base/checked.h"
#include "plan/flow/residency.h"
#include "plan/proof/proof.h"

// ---- parameters

// Parameters in a role: elements from `first` on, room for `room` of them.
static tr_kept params_in(tr_proof *p, tr_operand_role role, int64_t first,
                         int64_t count, int64_t room) {
    tr_kept kept = tr__kept_params(p, p->step->unit);
    kept.buffer =
        tr__role_bytes(p, role, tr__packed_bytes(kept.element, room), TR_SPACE_DEVICE)
            .buffer;
    kept.first = first;
    kept.count = count;
    kept.base = kept.means.base = -tr__packed_bytes(kept.element, first);
    return kept;
}

static void move_params(tr_proof *p, const tr_kept *from, const tr_kept *to,
                        int64_t first, int64_t count) {
    tr_bytes source = tr__kept_bytes(p, from, first, count);
    tr_bytes target = tr__kept_bytes(p, to, first, count);
    tr__bytes_read(p, source, &from->means);
    tr__bytes_write(p, target, &to->means);
}

// In place, or into memory of their own for the visit.
static void gather_params(tr_proof *p) {
    const tr_flat *f = &p->plan->flats[p->step->unit];
    bool away = tr__role_buffer(p, TR_OPERAND_INPUT) >= 0;
    bool in_place = tr__role_buffer(p, TR_OPERAND_OUTPUT) < 0;
    int64_t behind = f->first + f->own;
    tr_kept from = away ? params_in(p, TR_OPERAND_INPUT, f->first, f->own,
                                    tr__min_i64(f->shard, f->count))
                        : tr__kept_params(p, p->step->unit);
    from.means.index = away; // on its way from where it lives
    tr__exchange_work(p, TR_ON_DATA);
    if (in_place && p->walked.brought[p->step->unit]++ > 0) {
        tr__proof_wrong(p, "is there twice");
    } else if (in_place) {
        tr__bytes_change(p, tr__kept_bytes(p, &from, f->first, f->own), &from.means,
                         &from.means); // all of it is being written
        tr__bytes_write(p, tr__kept_bytes(p, &from, 0, tr__min_i64(f->first, f->count)),
                        &from.means);
        tr__bytes_write(p, tr__kept_bytes(p, &from, behind, f->count - behind),
                        &from.means);
        p->others[p->step->unit] = p->version;
    } else {
        tr_kept to = params_in(p, TR_OPERAND_OUTPUT, 0, f->count, f->count);
        tr__bytes_read(p, tr__kept_bytes(p, &from, f->first, f->own), &from.means);
        tr__bytes_write(p, tr__kept_bytes(p, &to, 0, f->count), &to.means);
    }
    if (away) { // fetched for it
        tr__bytes_forget(p, tr__kept_bytes(p, &from, f->first, f->own));
    }
}

void tr__rule_gather(tr_proof *p) {
    switch (p->step->payload.exchange.part) {
    case TR_PART_PARAM:
        if (tr__proof_has_flat(p)) {
            gather_params(p);
        }
        break;
    case TR_PART_GRAD:
        tr__rule_gather_gradient(p);
        break;
    case TR_PART_WAVE:
        tr__rule_gather_wave(p);
        break;
    case TR_PART_DIRECTION:
        tr__rule_gather_directions(p);
        break;
    case TR_PART_STATISTICS:
        tr__rule_gather_statistics(p);
        break;
    default:
        tr__proof_wrong(p, "gathers what no rank has a part of");
        break;
    }
}

// From where they live, or from staging, to the device: all of them, or this rank's.
void tr__rule_fetch(tr_proof *p) {
    if (!tr__proof_has_flat(p)) {
        return;
    }
    const tr_flat *f = &p->plan->flats[p->step->unit];
    bool in_place = p->plan->request.param_placement == TR_SPACE_DEVICE;
    bool whole = tr__data_ranks(&p->plan->request) == 1;
    tr_kept from = tr__kept_part(p, p->step->unit, TR_PART_COPY);
    tr_kept to = tr__kept_params(p, p->step->unit);
    if (tr__is_in_file(p, &from) && f->count > 0) {
        int64_t room = p->plan->buffers[from.buffer].bytes;
        from.buffer = tr__role_bytes(p, TR_OPERAND_INPUT, room, TR_SPACE_HOST).buffer;
    }
    if (in_place && p->walked.brought[p->step->unit] > 0) {
        tr__proof_wrong(p, "comes when the parameters are there");
        return;
    }
    if (!in_place) {
        to = params_in(p, TR_OPERAND_OUTPUT, from.first, from.count,
                       whole ? f->count : tr__min_i64(f->shard, f->count));
        to.means.index = !whole;
    }
    move_params(p, &from, &to, from.first, from.count);
    if (from.buffer != p->plan->flats[p->step->unit].copy.buffer) { // staged for it
        tr__bytes_forget(p, tr__kept_bytes(p, &from, from.first, from.count));
    }
}

// ---- any values

static tr_bytes bytes_of(const tr_proof *p, size_t operand) {
    const tr_step_operand *at = tr__step_operand(p->plan, p->step, operand);
    return (tr_bytes){at->buffer, at->first, at->end};
}

// Where a copy reads or writes, if a copy may: in memory.
static tr_space space_of(tr_proof *p, tr_bytes bytes) {
    bool there = bytes.buffer >= 0 && bytes.buffer < (int64_t)p->plan->buffer_count;
    tr_space space = there ? p->plan->buffers[bytes.buffer].space : TR_SPACE_NVME;
    if (space == TR_SPACE_NVME) {
        tr__proof_wrong(p, "copies what is not in memory");
    }
    return space;
}

// Between two spaces, one of which is the device. Who reads it says what it needs.
void tr__rule_copy(tr_proof *p) {
    tr_bytes from = bytes_of(p, TR_COPY_FROM), to = bytes_of(p, TR_COPY_TO);
    tr_space here = space_of(p, from), there = space_of(p, to);
    if (p->status != TR_OK) {
        return;
    }
    if (here == there || from.end - from.first != to.end - to.first) {
        tr__proof_wrong(p, "copies within one space, or to bytes of another number");
        return;
    }
    tr__bytes_copy(p, from, to);
}

// ---- the file

// Which part of the step's flat buffer lives in the buffer; -1: none.
static int find_part(const tr_proof *p, int32_t buffer) {
    int parts = tr__flat_parts(p->plan, &p->plan->flats[p->step->unit]);
    for (int part = 0; part < parts && buffer >= 0; part++) {
        if (part != TR_PART_STATISTICS &&
            tr__kept_part(p, p->step->unit, (tr_part)part).buffer == buffer) {
            return part;
        }
    }
    return -1;
}

// Elements of a part in the file: they begin at a block.
static bool find_stored(tr_proof *p, tr_kept *kept, tr_bytes *bytes) {
    const tr_plan_step *step = p->step;
    int32_t stored = tr__step_operand(p->plan, step, TR_FILE_STORED)->buffer;
    int part = tr__proof_has_flat(p) ? find_part(p, stored) : -1;
    if (part < 0) {
        tr__proof_wrong(p, "moves what is not in the file");
        return false;
    }
    *kept = tr__kept_part(p, step->unit, (tr_part)part);
    *bytes = tr__kept_bytes(p, kept, step->first, step->count);
    if (p->status == TR_OK &&
        (!tr__is_in_file(p, kept) || bytes->first % TR_NVME_ALIGNMENT != 0)) {
        tr__proof_wrong(p, "moves what is not in the file, or not whole blocks");
    }
    return p->status == TR_OK;
}

static tr_bytes find_staged(tr_proof *p, tr_operand_role role, const tr_kept *kept) {
    const tr_plan_step *step = p->step;
    int64_t moved = tr__staged_bytes(kept, step->count);
    tr_bytes bytes = tr__role_bytes(p, role, moved, TR_SPACE_HOST);
    if (p->status == TR_OK && moved > 0 &&
        p->plan->buffers[bytes.buffer].offset % TR_NVME_ALIGNMENT != 0) {
        tr__proof_wrong(p, "has no room for whole blocks in staging");
    }
    bytes.end = tr__packed_bytes(kept->element, step->count);
    return bytes;
}

// The file is read and written by whole blocks, the last of which may be partly unused.
static void touch_blocks(tr_proof *p, tr_bytes to, const tr_kept *kept) {
    to.end = to.first + tr__staged_bytes(kept, p->step->count);
    tr__payload_touch(p, to, true);
}

// What is read means what was written: the step that uses it says what it needs.
void tr__rule_read(tr_proof *p) {
    tr_kept kept;
    tr_bytes from, to;
    if (find_stored(p, &kept, &from)) {
        to = find_staged(p, TR_OPERAND_OUTPUT, &kept);
        touch_blocks(p, to, &kept);
        tr__bytes_copy(p, from, to);
    }
}

void tr__rule_write(tr_proof *p) {
    tr_kept kept;
    tr_bytes from, to;
    if (find_stored(p, &kept, &to)) {
        from = find_staged(p, TR_OPERAND_INPUT, &kept);
        touch_blocks(p, to, &kept);
        tr__bytes_copy(p, from, to);
        tr__bytes_forget(p, from);
    }
}
