// Rules of the steps that hand gradients on: to other ranks, to other spaces.
#include "base/checked.h"
#include "plan/proof/gradients.h"

void tr__rule_reduce(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t element = tr__sum_bytes(p->plan), at = p->walked.reduced[flat]++;
    bool passes = tr__flat_grads_pass(p->plan, flat);
    if (at >= tr__scopes_of(p, flat)) {
        tr__proof_wrong(p, "is there too often");
        return;
    }
    tr_kept from = passes ? tr__gradient_passing(p, TR_OPERAND_INPUT, 0, f->count,
                                                 f->count, element)
                          : tr__kept_sums(p, flat);
    tr__gradient_scoped(p, flat, &from, 0, f->count, at);
    tr__exchange_work(p, TR_ON_DATA);
    if (passes) {
        tr__bytes_forget(p, tr__kept_bytes(p, &from, 0, f->count));
    }
    tr_kept to = tr__kept_sums(p, flat);
    if (passes && tr__role_buffer(p, TR_OPERAND_OUTPUT) >= 0) { // it goes on
        to = tr__gradient_passing(p, TR_OPERAND_OUTPUT, f->first, f->own,
                                  tr__min_i64(f->shard, f->count), element);
        tr_meaning handed = tr__gradient_total(p, flat, at, to.base);
        handed.kind = TR_MEANS_HANDED;
        tr_meaning none = handed;
        none.index--;
        tr__gradient_leave(p, flat, &to, f->first, f->own,
                           tr__gradient_is_written(p) ? NULL : &none, &handed);
        return;
    }
    tr_meaning before = tr__gradient_total(p, flat, at, to.base);
    tr_meaning total = tr__gradient_total(p, flat, at + 1, to.base);
    if (tr__gradient_is_written(p) != (at == 0)) {
        tr__proof_wrong(p, at == 0 ? "adds to sums that are not there"
                                   : "overwrites the sum of the scopes before");
        return;
    }
    tr__gradient_leave(p, flat, &to, f->first, f->own, at == 0 ? NULL : &before,
                       &total);
}

void tr__rule_gather_gradient(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    tr_kept sums = tr__kept_sums(p, flat);
    tr_meaning total = tr__gradient_total(p, flat, 1, sums.base);
    int64_t behind = f->first + f->own;
    if (p->walked.brought[flat]++ > 0) {
        tr__proof_wrong(p, "is there twice");
        return;
    }
    tr__exchange_work(p, TR_ON_DATA);
    tr__gradient_leave(p, flat, &sums, f->first, f->own, &total,
                       &total); // all is being written
    tr__gradient_leave(p, flat, &sums, 0, tr__min_i64(f->first, f->count), NULL,
                       &total);
    tr__gradient_leave(p, flat, &sums, behind, f->count - behind, NULL, &total);
}

// Elements of what leaves: the sum over ranks of a scope; with one rank, what it has
// made in it; or, complete, what stays on the device until then.
static void read_leaving(tr_proof *p, int64_t first, int64_t count) {
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t element = tr__sum_bytes(p->plan), at = p->walked.evicted[flat];
    bool ranks = tr__data_ranks(&p->plan->request) > 1;
    if (!tr__flat_evicts_scopes(p->plan, flat)) {
        tr_kept sums = tr__kept_sums(p, flat);
        tr_meaning total =
            tr__gradient_total(p, flat, tr__scopes_of(p, flat), sums.base);
        if (!ranks) {
            tr__gradient_own(p, flat, &sums, first, count, tr__scope_find(p, flat, 0));
            return;
        }
        if (tr__plan_stage(p->plan) == 0 && p->walked.brought[flat] == 0 && count > 0 &&
            !p->stopped) {
            tr__proof_wrong(p, "takes the gradient of %s before all ranks have it",
                            f->name);
        }
        tr__gradient_as(p, flat, &sums, first, count, &total);
        return;
    }
    tr_kept from =
        ranks
            ? tr__gradient_passing(p, TR_OPERAND_INPUT, f->first, f->own,
                                   tr__min_i64(f->shard, f->count), element)
            : tr__gradient_passing(p, TR_OPERAND_INPUT, 0, f->count, f->count, element);
    tr_meaning handed = tr__gradient_total(p, flat, at, from.base);
    handed.kind = TR_MEANS_HANDED;
    if (ranks) {
        tr__gradient_as(p, flat, &from, first, count, &handed);
    } else {
        tr__gradient_scoped(p, flat, &from, first, count, at);
    }
}

void tr__rule_gradient_squares(tr_proof *p) {
    if (tr__gradient_is_of_flat(p)) {
        const tr_flat *f = &p->plan->flats[p->step->unit];
        tr_kept kept = tr__kept_part(p, p->step->unit, TR_PART_GRAD);
        if (p->step->stream == TR_STREAM_HOST) {
            tr__gradient_read(p, p->step->unit, &kept, f->first, f->own, p->version);
        } else {
            read_leaving(p, f->first, f->own);
        }
        tr__statistics_squares(p, p->step->unit);
        tr__role_convert(p);
    }
}

// How often gradients leave the device in a step.
static int64_t scopes_leaving(const tr_proof *p, int32_t flat) {
    return tr__flat_evicts_scopes(p->plan, flat) ? tr__scopes_of(p, flat) : 1;
}

// Gradients of the next scope come to where the update is. *to: where; the scopes that
// are there already. -1: an error.
static int64_t begin_handing(tr_proof *p, tr_kept *to) {
    if (!tr__gradient_is_of_flat(p)) {
        return -1;
    }
    int32_t flat = p->step->unit;
    int64_t at = p->walked.evicted[flat];
    *to = tr__kept_part(p, flat, TR_PART_GRAD);
    if (!p->plan->flats[flat].offloaded || at >= scopes_leaving(p, flat)) {
        tr__proof_wrong(p, "is there too often");
        return -1;
    }
    read_leaving(p, to->first, to->count);
    if (tr__flat_evicts_scopes(p->plan, flat)) {
        tr__bytes_forget(p, (tr_bytes){tr__role_buffer(p, TR_OPERAND_INPUT), 0,
                                       to->count * tr__sum_bytes(p->plan)});
    }
    p->walked.evicted[flat]++;
    return at;
}

// Where a further scope waits on the host for the step that adds it.
static tr_kept find_apart(tr_proof *p, tr_operand_role role, const tr_kept *to) {
    int64_t bytes = tr__packed_bytes(to->element, to->count);
    return (tr_kept){tr__role_bytes(p, role, bytes, TR_SPACE_HOST).buffer,
                     to->first,
                     to->count,
                     to->element,
                     -tr__packed_bytes(to->element, to->first),
                     {0}};
}

static void evict_apart(tr_proof *p, const tr_kept *to, int64_t at) {
    tr_kept apart = find_apart(p, TR_OPERAND_OUTPUT, to);
    tr_meaning handed = tr__gradient_total(p, p->step->unit, at, apart.base);
    handed.kind = TR_MEANS_HANDED;
    tr__gradient_leave(p, p->step->unit, &apart, to->first, to->count, NULL, &handed);
}

// Floats come complete, but where a loss outside of the model makes a scope of each
// micro-batch: they are added in the order of these.
static bool adds_scopes(const tr_proof *p) {
    return p->plan->request.sums == TR_I64 || p->plan->hands_out;
}

// The scope that was evicted last comes to those before.
static void add_evicted(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    int64_t at = p->walked.evicted[flat] - 1;
    tr_kept to = tr__kept_part(p, flat, TR_PART_GRAD);
    if (at < 1 || !adds_scopes(p)) {
        tr__proof_wrong(p, "adds what has to come complete");
        return;
    }
    tr_kept from = find_apart(p, TR_OPERAND_INPUT, &to);
    tr_meaning handed = tr__gradient_total(p, flat, at, from.base);
    handed.kind = TR_MEANS_HANDED;
    tr__gradient_as(p, flat, &from, to.first, to.count, &handed);
    tr__bytes_forget(p, tr__kept_bytes(p, &from, to.first, to.count));
    tr_meaning before = tr__gradient_total(p, flat, at, to.base);
    tr_meaning total = tr__gradient_total(p, flat, at + 1, to.base);
    tr__gradient_leave(p, flat, &to, to.first, to.count, &before, &total);
}

void tr__rule_evict(tr_proof *p) {
    tr_kept to;
    int64_t at = begin_handing(p, &to);
    bool apart = tr__role_buffer(p, TR_OPERAND_OUTPUT) >= 0 && !tr__is_in_file(p, &to);
    if (at > 0 && apart) {
        evict_apart(p, &to, at);
        return;
    }
    if (at > 0) {
        tr__proof_wrong(p, "overwrites the sum of the scopes before");
    }
    if (at != 0) {
        return;
    }
    if (tr__is_in_file(p, &to)) { // on its way there
        int64_t room = p->plan->buffers[to.buffer].bytes;
        to.buffer = tr__role_bytes(p, TR_OPERAND_OUTPUT, room, TR_SPACE_HOST).buffer;
    }
    // The first scope of them, or all.
    bool first = tr__flat_evicts_scopes(p->plan, p->step->unit);
    int64_t scopes = first ? 1 : tr__scopes_of(p, p->step->unit);
    tr_meaning total = tr__gradient_total(p, p->step->unit, scopes, to.base);
    tr__gradient_leave(p, p->step->unit, &to, to.first, to.count, NULL, &total);
}

// The sum over ranks of the scope that was reduced last comes to those before.
static void add_reduced(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t element = tr__sum_bytes(p->plan), at = p->walked.reduced[flat] - 1;
    tr_kept from = tr__gradient_passing(p, TR_OPERAND_INPUT, f->first, f->own,
                                        tr__min_i64(f->shard, f->count), element);
    tr_kept to = tr__kept_sums(p, flat);
    tr_meaning handed = tr__gradient_total(p, flat, at, from.base);
    handed.kind = TR_MEANS_HANDED;
    tr__gradient_as(p, flat, &from, f->first, f->own, &handed);
    tr__bytes_forget(p, tr__kept_bytes(p, &from, f->first, f->own));
    tr_meaning before = tr__gradient_total(p, flat, at, to.base);
    tr_meaning total = tr__gradient_total(p, flat, at + 1, to.base);
    tr__gradient_leave(p, flat, &to, f->first, f->own, &before, &total);
}

void tr__rule_add(tr_proof *p) {
    if (p->step->stream == TR_STREAM_COMM) {
        add_reduced(p);
        return;
    }
    if (p->plan->request.discrete) {
        add_evicted(p);
        return;
    }
    tr_kept to;
    int64_t at = begin_handing(p, &to);
    if (at == 0 || (at > 0 && !adds_scopes(p))) {
        tr__proof_wrong(p, "adds what has to come complete");
    }
    if (at <= 0) {
        return;
    }
    tr_meaning before = tr__gradient_total(p, p->step->unit, at, to.base);
    tr_meaning total = tr__gradient_total(p, p->step->unit, at + 1, to.base);
    tr__gradient_leave(p, p->step->unit, &to, to.first, to.count, &before, &total);
}
