#include "base/memory.h"
#include "plan/proof/prove.h"
#include "plan/proof/walks.h"

static bool make_walked(tr_proof *p) {
    tr_walked *d = &p->walked;
    size_t flats = p->plan->flat_count + 1, units = (size_t)p->plan->unit_count + 1;
    size_t segments = (size_t)p->tables.segments[p->plan->unit_count] + 1;
    d->forward = tr__calloc(segments, sizeof *d->forward);
    d->backward = tr__calloc(segments, sizeof *d->backward);
    d->again = tr__calloc(units, sizeof *d->again);
    d->weights = tr__calloc(units, sizeof *d->weights);
    d->recomputed = tr__calloc(units, sizeof *d->recomputed);
    d->reduced = tr__calloc(flats, sizeof *d->reduced);
    d->evicted = tr__calloc(flats, sizeof *d->evicted);
    d->brought = tr__calloc(flats, sizeof *d->brought);
    d->measured = tr__calloc(flats, sizeof *d->measured);
    d->wave[0] = tr__calloc(units, sizeof *d->wave[0]);
    d->wave[1] = tr__calloc(units, sizeof *d->wave[1]);
    p->others = tr__calloc(flats, sizeof *p->others);
    p->held = tr__calloc(p->plan->buffer_count + 1, sizeof *p->held);
    return tr__pieces_make(p) && d->forward && d->backward && d->again && d->weights &&
           d->recomputed && d->reduced && d->evicted && d->brought && d->measured &&
           d->wave[0] && d->wave[1] && p->others && p->held;
}

static bool number_steps(tr_proof *p, int kind) {
    const tr_sequence *sequence = &p->plan->sequences[kind];
    size_t count[TR_BESIDE_STREAMS] = {0};
    for (int s = 0; s < p->beside; s++) {
        p->of_stream[kind][s] =
            tr__calloc(sequence->count + 1, sizeof **p->of_stream[kind]);
        if (!p->of_stream[kind][s]) {
            return false;
        }
    }
    for (size_t i = 0; i < sequence->count; i++) {
        int s = tr__clock_stream(p, sequence->steps[i].stream);
        if (s >= 0) {
            p->of_stream[kind][s][count[s]++] = (int32_t)i;
        }
    }
    return true;
}

static void make(tr_proof *p) {
    p->status = tr__tables_make(p->plan, &p->tables, p->err);
    if (p->status == TR_OK) {
        p->status = tr__tenants_make(p);
    }
    bool good = p->status == TR_OK && make_walked(p);
    for (int kind = 0; kind < TR_SEQUENCES && good; kind++) {
        good = number_steps(p, kind);
    }
    if (!good) {
        tr__proof_no_memory(p);
    }
}

static void clear(tr_proof *p) {
    tr_walked *d = &p->walked;
    for (size_t i = 0; p->held && i < p->plan->buffer_count; i++) {
        tr__free(p->held[i].cells);
    }
    tr__free(p->held);
    tr__free(p->touched[0].items);
    tr__free(p->touched[1].items);
    tr__free(p->named[0].items);
    tr__free(p->named[1].items);
    tr__free(d->forward);
    tr__free(d->backward);
    tr__free(d->again);
    tr__free(d->weights);
    tr__free(d->recomputed);
    tr__free(d->reduced);
    tr__free(d->evicted);
    tr__free(d->brought);
    tr__free(d->measured);
    tr__free(d->open);
    tr__free(d->wave[0]);
    tr__free(d->wave[1]);
    tr__free(p->others);
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        for (int s = 0; s < TR_BESIDE_STREAMS; s++) {
            tr__free(p->of_stream[kind][s]);
        }
    }
    tr__tenants_clear(p);
    tr__tables_clear(&p->tables);
}

// The update comes behind the decision, and ends the sequence; what may be deferred to
// the next step ends the update.
static void find_update(tr_proof *p) {
    const tr_sequence *train = &p->plan->sequences[TR_SEQUENCE_TRAIN];
    size_t i = train->count;
    while (i > 0 && train->steps[i - 1].guard == TR_GUARD_AT_ONCE) {
        i--;
    }
    p->at_once = i;
    for (i = 0; i < train->count && !tr__decides(&train->steps[i]);) {
        i++;
    }
    p->update = i < train->count ? i + 1 : i;
}

tr_status tr__plan_prove(const tr_plan *plan, tr_error *err) {
    tr_proof p = {.plan = plan, .beside = tr__clock_count(plan), .err = err};
    tr__tenants_check_kept(
        &p); // all is within the arenas, so that ends can be added up
    if (p.status != TR_OK) {
        return p.status;
    }
    make(&p);
    find_update(&p);
    tr__oblige_trained(&p);
    if (p.status == TR_OK) {
        tr__oblige_guards(&p);
    }
    if (p.status == TR_OK) {
        tr__walks_explore(&p);
    }
    clear(&p);
    return p.status;
}
