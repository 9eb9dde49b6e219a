// Do the exchanges of several ranks fit together?
#include "base/memory.h"
#include "plan/flow/work.h"
#include "plan/proof/prove.h"

// Each rank's exchanges of one sequence, in their order: the communication thread works
// off one after the other.
typedef struct matcher {
    const tr_plan *const *plans; // [count]
    size_t count;
    tr_sequence_kind kind;
    size_t *at; // [count] the step of the exchange that comes next, or the last's end
    // By axes: each rank's group, as the number of its first rank, and its number in
    // that. There are many exchanges of few groups.
    int64_t *group, *member; // [TR_AXES_SETS][count]
    tr_error *err;
} matcher;

static const tr_plan_step *next_of(const matcher *m, size_t i) {
    const tr_sequence *sequence = &m->plans[i]->sequences[m->kind];
    return m->at[i] < sequence->count ? &sequence->steps[m->at[i]] : NULL;
}

static tr_axes group_of(const tr_plan_step *exchange) {
    return exchange->payload.exchange.group;
}

// Is it of the same ranks?
static bool is_of_same(const tr_plan_step *a, const tr_plan_step *b) {
    const tr_exchange *x = &a->payload.exchange, *y = &b->payload.exchange;
    return x->group == y->group && x->from == y->from && x->to == y->to;
}

static void go_on(matcher *m, size_t i, size_t from) {
    const tr_sequence *sequence = &m->plans[i]->sequences[m->kind];
    m->at[i] = from;
    while (m->at[i] < sequence->count &&
           sequence->steps[m->at[i]].shape != TR_STEP_IS_EXCHANGE) {
        m->at[i]++;
    }
}

static int64_t rank_of(const matcher *m, size_t i) {
    return tr_mesh_rank(&m->plans[i]->request.mesh);
}

static void find_groups(matcher *m) {
    for (tr_axes axes = 0; axes < TR_AXES_SETS; axes++) {
        for (size_t i = 0; i < m->count; i++) {
            const tr_mesh *mesh = &m->plans[i]->request.mesh;
            m->group[axes * m->count + i] = tr__mesh_rank_of(mesh, axes, 0);
            m->member[axes * m->count + i] = tr__mesh_member(mesh, axes);
        }
    }
}

// Does rank k take part in what rank i exchanges?
static bool are_together(const matcher *m, size_t i, size_t k, const tr_exchange *of) {
    const int64_t *group = &m->group[of->group * m->count];
    int64_t member = m->member[of->group * m->count + k];
    bool one = !tr__exchange_is_pair(of) || member == of->from || member == of->to;
    return one && group[i] == group[k];
}

static tr_status fail(const matcher *m, size_t i, size_t k, const char *how) {
    const tr_plan_step *a = next_of(m, i), *b = next_of(m, k);
    return tr_fail(m->err, TR_INTERNAL,
                   "the plans of ranks do not fit together: %s step %zu (%s) of rank "
                   "%lld, on the axes \"%s\", %s rank %lld, which comes to step %zu "
                   "(%s)",
                   tr__sequence_name(m->kind), m->at[i], tr__verb_name(a->label.verb),
                   (long long)rank_of(m, i), tr__axes_name(group_of(a)), how,
                   (long long)rank_of(m, k), m->at[k],
                   b ? tr__verb_name(b->label.verb) : "the end");
}

// What rank i does next is done when all of its group have come to it. *late: one that
// has not; m->count: none.
static tr_status find_late(const matcher *m, size_t i, size_t *late) {
    const tr_plan_step *own = next_of(m, i);
    uint64_t hash = tr__exchange_hash(own);
    *late = m->count;
    for (size_t k = 0; k < m->count; k++) {
        const tr_plan_step *other = next_of(m, k);
        if (k == i || !are_together(m, i, k, &own->payload.exchange)) {
            continue;
        }
        if (!other || !is_of_same(other, own)) {
            *late = k;
        } else if (tr__exchange_hash(other) != hash) {
            return fail(m, i, k, "is another than that of");
        }
    }
    return TR_OK;
}

static void complete(matcher *m, size_t i) {
    const tr_exchange of = next_of(m, i)->payload.exchange;
    for (size_t k = 0; k < m->count; k++) {
        if (k == i || are_together(m, i, k, &of)) {
            go_on(m, k, m->at[k] + 1);
        }
    }
}

// Completes all that can be completed. Left over are ranks that wait for each other.
static tr_status match_sequence(matcher *m) {
    bool moved = true;
    size_t stuck = m->count, late = 0;
    for (size_t i = 0; i < m->count; i++) {
        go_on(m, i, 0);
    }
    while (moved) {
        moved = false;
        stuck = m->count;
        for (size_t i = 0; i < m->count; i++) {
            tr_status status = TR_OK;
            while (next_of(m, i) && (status = find_late(m, i, &late)) == TR_OK &&
                   late == m->count) {
                complete(m, i);
                moved = true;
            }
            if (status != TR_OK) {
                return status;
            }
            stuck = next_of(m, i) ? i : stuck;
        }
    }
    if (stuck == m->count) {
        return TR_OK;
    }
    tr_status status = find_late(m, stuck, &late);
    return status == TR_OK ? fail(m, stuck, late, "waits for") : status;
}

tr_status tr__plans_match(const tr_plan *const *plans, size_t count, tr_error *err) {
    matcher m = {.plans = plans, .count = count, .err = err};
    tr_status status = TR_OK;
    m.at = tr__calloc(count, sizeof *m.at);
    m.group = tr__calloc(TR_AXES_SETS * count, sizeof *m.group);
    m.member = tr__calloc(TR_AXES_SETS * count, sizeof *m.member);
    if (m.at && m.group && m.member) {
        find_groups(&m);
    } else {
        status = tr_fail(err, TR_MEMORY, "no memory to compare the plans of ranks");
    }
    for (int kind = 0; kind < TR_SEQUENCES && status == TR_OK; kind++) {
        m.kind = (tr_sequence_kind)kind;
        status = match_sequence(&m);
    }
    tr__free(m.at);
    tr__free(m.group);
    tr__free(m.member);
    return status;
}
