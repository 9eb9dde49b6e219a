// Rules of the gradients of tied tensors over a rank's first wave, for the noise scale:
// they are read where they are made; or kept beside, where each use leaves by itself or
// stages have parts of them, and summed over these stages.
#include "base/checked.h"
#include "plan/proof/gradients.h"

static tr_scope first_wave(const tr_proof *p, int32_t unit) {
    const tr_plan_request *r = &p->plan->request;
    return (tr_scope){0, tr__min_i64(r->wave, r->accumulation_steps), unit};
}

// What is kept when so many stages have added their users' to it.
static tr_meaning kept_meaning(const tr_proof *p, int32_t flat, int64_t stages) {
    tr_meaning means = {.kind = TR_MEANS_FIRST_WAVE,
                        .of = flat,
                        .version = p->version,
                        .index = stages};
    if (stages == 1) {
        size_t param = p->plan->flats[flat].first_param;
        tr_meaning sum = tr__gradient_sum(p, param, first_wave(p, -1), 0);
        means.terms = sum.terms;
        means.sum = sum.sum;
    }
    return means;
}

static tr_kept named(tr_proof *p, tr_operand_role role) {
    int64_t count = p->plan->flats[p->step->unit].count;
    return tr__gradient_passing(p, role, 0, count, count, sizeof(float));
}

static bool leaves_by_use(const tr_proof *p, int32_t flat) {
    return tr__flat_leaves_by_use(p->plan, flat) && tr__flat_grads_pass(p->plan, flat);
}

static tr_kept made(tr_proof *p) {
    return tr__flat_grads_pass(p->plan, p->step->unit)
               ? named(p, TR_OPERAND_INPUT)
               : tr__kept_sums(p, p->step->unit);
}

// The user whose part lies there; -1: all of this rank's.
static int32_t user_of(tr_proof *p, const tr_kept *from) {
    int32_t flat = p->step->unit;
    size_t param = p->plan->flats[flat].first_param;
    tr_element_run all = {0, p->plan->params[param].count, (int64_t)param};
    tr_meaning found;
    tr__bytes_look(p, tr__run_bytes(from, &all), &found);
    for (int32_t u = 0; u < p->plan->unit_count && leaves_by_use(p, flat); u++) {
        tr_meaning sum = tr__gradient_sum(p, param, first_wave(p, u), from->base);
        if (sum.terms > 0 && sum.terms == found.terms && sum.sum == found.sum) {
            return u;
        }
    }
    return -1;
}

// Behind the last backward of the first wave, and before it is handed on or another
// wave adds to it.
void tr__rule_keep_first_wave(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    size_t param = p->plan->flats[flat].first_param;
    int64_t count = p->plan->flats[flat].count;
    tr_kept from = made(p), to = named(p, TR_OPERAND_OUTPUT);
    tr_bytes bytes = tr__kept_bytes(p, &to, 0, count);
    tr_meaning found, kept = kept_meaning(p, flat, 1);
    tr_scope scope = first_wave(p, user_of(p, &from));
    tr_meaning sum = tr__gradient_sum(p, param, scope, 0);
    tr__gradient_own(p, flat, &from, 0, count, scope);
    tr__bytes_look(p, bytes, &found);
    bool begun = found.kind == kept.kind && found.of == flat &&
                 found.version == p->version && found.index == 1;
    if (begun == tr__gradient_is_written(p)) {
        tr__proof_wrong(p, begun ? "overwrites what is kept of the first wave"
                                 : "adds to what nobody has kept of the first wave");
        return;
    }
    kept.terms = sum.terms + (begun ? found.terms : 0);
    kept.sum = sum.sum + (begun ? found.sum : 0);
    if (begun) {
        tr__bytes_change(p, bytes, &found, &kept);
    } else {
        tr__bytes_write(p, bytes, &kept);
    }
}

static bool is_whole(tr_proof *p, tr_bytes bytes) {
    const tr_exchange *e = &p->step->payload.exchange;
    int64_t count = p->plan->flats[p->step->unit].count;
    bool good = e->kind == TR_COMM_REDUCE && e->type == TR_COMM_F32 &&
                e->count == count && e->shard == count &&
                bytes.end - bytes.first == count * (int64_t)sizeof(float);
    if (!good) {
        tr__proof_wrong(p, "sums something else than stages keep of the first wave");
    }
    return good;
}

// The lower of two stages gets what the upper one and those behind it have.
void tr__rule_sum_first_wave(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    tr_gradient_hop hop = tr__gradient_hop(p, flat);
    const tr_step_operand *send = tr__step_operand(p->plan, p->step, TR_EXCHANGE_SEND),
                          *received =
                              tr__step_operand(p->plan, p->step, TR_EXCHANGE_RECEIVE);
    tr_bytes bytes = {send->buffer, send->first, send->end};
    tr__exchange_pair(p, hop.from, hop.to);
    if (!is_whole(p, bytes)) {
        return;
    }
    tr_meaning own = kept_meaning(p, flat, 1),
               behind = kept_meaning(p, flat, hop.last - hop.number + 1),
               sum = kept_meaning(p, flat, hop.last - hop.number + 2);
    tr__bytes_read(p, bytes, hop.upper ? &behind : &own);
    if (!hop.upper && (received->buffer != send->buffer ||
                       received->first != send->first || received->end != send->end)) {
        tr__proof_wrong(p, "leaves the sum elsewhere");
    } else if (!hop.upper) {
        tr__bytes_write(p, bytes, &sum);
    }
}

// When all its users have been through the first wave, and before it is handed on or
// another wave adds to it; or of what was kept, when that is of all stages.
void tr__rule_micro_norm_tied(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    int64_t count = p->plan->flats[flat].count, stages = tr__gradient_stages(p, flat);
    if (stages > 1 || leaves_by_use(p, flat)) {
        tr_kept kept = named(p, TR_OPERAND_INPUT);
        tr_meaning all = kept_meaning(p, flat, stages);
        tr__bytes_read(p, tr__kept_bytes(p, &kept, 0, count), &all);
    } else {
        tr_kept from = made(p);
        tr__gradient_own(p, flat, &from, 0, count, first_wave(p, -1));
    }
    tr__role_kernels(p);
    tr__statistics_add(p, TR_STATISTICS_TIED_SQUARES, tr__contribution(flat, 0, 0));
}
