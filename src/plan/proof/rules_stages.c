// Rules of what stages of a pipeline exchange: inputs of units and their gradients, and
// the sums of tied tensors' gradients.
#include "plan/flow/work.h"
#include "plan/proof/gradients.h"
#include "plan/proof/unit.h"

// A message, as the step's place in the model asks for it.
typedef struct message {
    bool gradient, sends;
    bool behind; // it crosses the end of the step's unit, else its begin
    bool there;  // another stage is beyond it
    int64_t other;
    int64_t bytes;
} message;

static message message_of(const tr_proof *p) {
    const tr_plan *plan = p->plan;
    int64_t stage = plan->request.mesh.at[TR_AXIS_PIPELINE];
    message m = {.gradient = p->step->backward,
                 .sends = p->step->payload.exchange.from == stage};
    m.behind = m.sends != m.gradient;
    int own = p->step->unit, other = m.behind ? own + 1 : own - 1;
    m.there = tr__plan_runs(plan, own) && other >= 0 && other < plan->unit_count &&
              !tr__plan_runs(plan, other);
    m.other = m.there ? tr__plan_stage_of(plan, other) : -1;
    const tr_unit_program *unit = plan->units[own].program;
    m.bytes = !m.behind    ? m.gradient ? unit->input_grad_bytes : unit->input_bytes
              : m.gradient ? unit->output_grad_bytes
                           : unit->output_bytes;
    return m;
}

static bool is_message(tr_proof *p, const message *m) {
    const tr_exchange *e = &p->step->payload.exchange;
    if (!m->there) {
        tr__proof_wrong(p, "is a message where no other stage begins");
        return false;
    }
    if (e->kind != TR_COMM_GATHER || e->type != TR_COMM_BYTE || e->count != m->bytes ||
        e->shard != m->bytes) {
        tr__proof_wrong(p, "sends something else than the stages hand on");
        return false;
    }
    return true;
}

// All of the operand that has it, in memory of the sequence.
static tr_bytes whole_of(tr_proof *p, const message *m) {
    size_t operand = m->sends ? TR_EXCHANGE_SEND : TR_EXCHANGE_RECEIVE;
    const tr_step_operand *at = tr__step_operand(p->plan, p->step, operand);
    if (at->buffer < 0 || p->plan->buffers[at->buffer].sequence < 0 || at->first != 0 ||
        at->end != m->bytes) {
        tr__proof_wrong(p, "sends other bytes than the stages hand on");
    }
    return (tr_bytes){at->buffer, at->first, at->end};
}

tr_stream tr__message_stream(const tr_proof *p) {
    bool sends =
        p->step->payload.exchange.from == p->plan->request.mesh.at[TR_AXIS_PIPELINE];
    return sends ? TR_STREAM_SEND : TR_STREAM_RECEIVE;
}

void tr__rule_message(tr_proof *p) {
    static const tr_meaning dropped = {.kind = TR_MEANS_DROPPED};
    if (!tr__unit_is_of_model(p)) {
        return;
    }
    message m = message_of(p);
    int64_t stage = p->plan->request.mesh.at[TR_AXIS_PIPELINE];
    if (!is_message(p, &m)) {
        return;
    }
    tr__exchange_pair(p, m.sends ? stage : m.other, m.sends ? m.other : stage);
    tr_bytes bytes = whole_of(p, &m);
    int32_t boundary = p->step->unit + m.behind;
    tr_meaning means = m.gradient ? tr__input_gradient_meaning(p, boundary)
                                  : tr__input_meaning(p, boundary);
    if (!m.sends) {
        tr__bytes_write(p, bytes, p->stopped ? &dropped : &means);
    } else if (!p->stopped) {
        tr__bytes_read(p, bytes, &means);
    }
}

// ---- gradients of which several ranks have parts

// This data rank's elements of a gradient, of which each of the ranks sums a part; and
// the exchange, of all these ranks or of two stages of a chain.
typedef struct summed {
    const tr_flat *flat;
    tr_kept kept;
    int64_t first, count;
    int64_t shard;
    int64_t own_first, own; // what this rank gets or has of the sum
    bool in_chain;
    tr_gradient_hop hop;
} summed;

static summed summed_of(tr_proof *p) {
    const tr_exchange *e = &p->step->payload.exchange;
    const tr_flat *flat = &p->plan->flats[p->step->unit];
    bool shards = tr__plan_stage(p->plan) > 0;
    summed t = {.flat = flat,
                .kept = tr__kept_sums(p, p->step->unit),
                .first = shards ? flat->first : 0,
                .count = shards ? flat->own : flat->count,
                .in_chain = e->group == TR_ON_PIPELINE};
    int64_t ranks = t.in_chain ? 2 : tr__mesh_members(&p->plan->request.mesh, e->group);
    if (t.in_chain) {
        t.hop = tr__gradient_hop(p, p->step->unit);
    }
    bool lower = t.in_chain && t.hop.number > 1;
    t.shard = lower ? t.count : (t.count + ranks - 1) / ranks;
    tr__comm_part(t.count, t.shard, (int)tr__exchange_member(p->plan, e), &t.own_first,
                  &t.own);
    t.own_first += t.first;
    return t;
}

static bool is_summed(tr_proof *p, const summed *t) {
    const tr_exchange *e = &p->step->payload.exchange;
    if (t->flat->axes.summed != e->group ||
        e->type != tr__exchange_type(p->plan->request.sums) || e->count != t->count ||
        e->shard != t->shard) {
        tr__proof_wrong(p, "sums something else than ranks have of %s", t->flat->name);
        return false;
    }
    return true;
}

// Stages behind this hop have added theirs to what its upper one has.
static void reduce_parts(tr_proof *p, const summed *t) {
    int32_t flat = p->step->unit;
    const tr_gradient_hop *hop = &t->hop;
    bool own = !t->in_chain || !hop->upper || hop->number == hop->last;
    int64_t before = hop->last - hop->number, all = tr__gradient_parts(p, flat);
    tr_meaning behind = tr__gradient_tied(p, flat, t->kept.base, before + 1, true);
    tr_meaning sum = tr__gradient_tied(p, flat, t->kept.base,
                                       t->in_chain ? before + 2 : all, hop->number > 1);
    if (own) {
        tr__gradient_of_stage(p, flat, &t->kept, t->first, t->count, p->version);
    } else {
        tr__gradient_as(p, flat, &t->kept, t->first, t->count, &behind);
    }
    tr__gradient_leave(p, flat, &t->kept, t->own_first, t->own, NULL, &sum);
}

// A lower stage that has all of it sends it to the upper one, and keeps it.
static void gather_parts(tr_proof *p, const summed *t) {
    int32_t flat = p->step->unit;
    int64_t all = tr__gradient_parts(p, flat);
    bool sent = t->hop.number > 1, kept = sent && !t->hop.upper;
    tr_meaning own = tr__gradient_tied(p, flat, t->kept.base, all, sent),
               sum = tr__gradient_tied(p, flat, t->kept.base, all, true);
    tr__gradient_as(p, flat, &t->kept, t->own_first, t->own, &own);
    tr__gradient_leave(p, flat, &t->kept, t->first, t->count, kept ? &sum : NULL, &sum);
}

void tr__rule_sum_parts(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    summed t = summed_of(p);
    if (!is_summed(p, &t)) {
        return;
    }
    if (t.in_chain) {
        tr__exchange_pair(p, t.hop.from, t.hop.to);
    } else {
        tr__exchange_work(p, t.flat->axes.summed);
    }
    if (p->step->payload.exchange.kind == TR_COMM_REDUCE) {
        reduce_parts(p, &t);
    } else {
        gather_parts(p, &t);
    }
}
