// What lies between two walks: parameters, optimizer states and model states of their
// versions; gradients, where an update is left to the next step. All else is forgotten,
// so that no step can count on it.
#include "base/memory.h"
#include "plan/proof/walks.h"

#include <string.h>

static void mark(bool *flags, int buffer) {
    if (buffer >= 0) {
        flags[buffer] = true;
    }
}

static void set_part(tr_proof *p, const tr_kept *kept) {
    if (kept->buffer >= 0) {
        tr__bytes_set(p, tr__kept_bytes(p, kept, kept->first, kept->count),
                      &kept->means);
    }
}

// What lies between the parameters is zero from the beginning.
static void set_zeros(tr_proof *p, int32_t flat, const tr_kept *kept) {
    const tr_meaning zeros = {.kind = TR_MEANS_ZEROS}, nothing = {0};
    const tr_flat *f = &p->plan->flats[flat];
    if (kept->buffer < 0) {
        return;
    }
    tr__bytes_set(p, tr__kept_bytes(p, kept, kept->first, kept->count), &zeros);
    for (size_t i = f->first_param; i < f->end_param; i++) {
        const tr_plan_param *param = &p->plan->params[i];
        int64_t first = param->offset, end = first + param->count;
        first = first > kept->first ? first : kept->first;
        end = end < kept->first + kept->count ? end : kept->first + kept->count;
        if (param->flat == flat && first < end) {
            tr__bytes_set(p, tr__kept_bytes(p, kept, first, end - first), &nothing);
        }
    }
}

static void set_flat(tr_walks *w, int32_t f) {
    tr_proof *p = w->proof;
    tr_kept params = tr__kept_params(p, f), sums = tr__kept_sums(p, f);
    tr_kept masters = tr__kept_part(p, f, TR_PART_PARAM);
    tr_kept copy = tr__kept_part(p, f, TR_PART_COPY);
    tr_kept grads = tr__kept_part(p, f, TR_PART_GRAD);
    set_part(p, &params);
    set_part(p, &masters);
    set_part(p, &copy);
    if (p->plan->request.inference || p->plan->flats[f].frozen) {
        return;
    }
    for (int s = 0; s < tr__flat_states(p->plan, &p->plan->flats[f]); s++) {
        tr_kept state = tr__kept_part(p, f, (tr_part)(TR_PART_STATE + s));
        set_part(p, &state);
    }
    set_zeros(p, f, &sums);
    mark(w->sums, sums.buffer);
    mark(w->left, grads.buffer);
}

static void set_model_states(tr_proof *p) {
    for (size_t i = 0; i < p->plan->state_count; i++) {
        const tr_plan_state *state = &p->plan->states[i];
        tr_meaning means = {.kind = TR_MEANS_MODEL_STATES, .of = state->unit};
        tr__bytes_set(p, tr__state_bytes(p, state), &means);
    }
}

static void set_caches(tr_proof *p) {
    for (int u = 0; u < p->plan->unit_count; u++) {
        int32_t cache = p->plan->units[u].cache;
        tr_meaning means = {.kind = TR_MEANS_CACHE, .of = u};
        if (cache >= 0) {
            tr__bytes_set(p, (tr_bytes){cache, 0, p->plan->buffers[cache].bytes},
                          &means);
        }
    }
}

// Of all that lives always, one cell that means nothing.
static void forget(tr_proof *p) {
    for (size_t i = 0; i < p->plan->buffer_count && p->status == TR_OK; i++) {
        tr_contents *held = &p->held[i];
        if (p->plan->buffers[i].sequence >= 0) {
            continue;
        }
        if (!tr__grow((void **)&held->cells, &held->capacity, 1, sizeof *held->cells)) {
            tr__proof_no_memory(p);
            return;
        }
        held->count = 1;
        held->cells[0] = (tr_cell){.end = p->plan->buffers[i].bytes, .writer = -1};
        memset(held->cells[0].reader, -1, sizeof held->cells[0].reader);
        memset(held->last, -1, sizeof held->last);
    }
}

void tr__states_begin(tr_walks *w) {
    tr_proof *p = w->proof;
    p->version = 0;
    forget(p);
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        set_flat(w, f);
    }
    set_model_states(p);
    set_caches(p);
    tr__states_add(w, false, true);
}

// ---- from one walk to the next

static bool is_kept(const tr_walks *w, const tr_cell *cell, size_t buffer,
                    bool deferred) {
    switch (cell->means.kind) {
    case TR_MEANS_PARAMETERS:
    case TR_MEANS_MASTERS:
    case TR_MEANS_STATE:
    case TR_MEANS_MODEL_STATES:
    case TR_MEANS_CACHE:
        return true;
    case TR_MEANS_ZEROS:
        return w->sums[buffer] || (deferred && w->left[buffer]);
    case TR_MEANS_SUM:
    case TR_MEANS_TOTAL:
        return deferred && w->left[buffer];
    default:
        return false;
    }
}

// Parameters of which there is one version.
static bool is_frozen(const tr_plan *plan, const tr_meaning *means) {
    bool params = means->kind == TR_MEANS_PARAMETERS || means->kind == TR_MEANS_MASTERS;
    return params && plan->flats[means->of].frozen;
}

static void keep_cell(tr_walks *w, tr_state_between *to, int32_t buffer,
                      const tr_cell *cell) {
    tr_kept_cell kept = {buffer, cell->first, cell->end, cell->means};
    if (kept.means.kind != TR_MEANS_ZEROS && !is_frozen(w->proof->plan, &kept.means)) {
        kept.means.version -= w->proof->version;
    }
    tr_kept_cell *last = to->count ? &to->cells[to->count - 1] : NULL;
    if (last && last->buffer == buffer && last->end == kept.first &&
        tr__meaning_equal(&last->means, &kept.means)) {
        last->end = kept.end;
    } else if (!tr__grow((void **)&to->cells, &to->capacity, to->count + 1,
                         sizeof *to->cells)) {
        tr__proof_no_memory(w->proof);
    } else {
        to->cells[to->count++] = kept;
    }
}

// As cells of no buffer.
static void keep_others(tr_walks *w, tr_state_between *to) {
    const tr_proof *p = w->proof;
    for (size_t f = 0; f < p->plan->flat_count && p->status == TR_OK; f++) {
        if (p->plan->flats[f].frozen) { // nobody updates it
            continue;
        }
        tr_cell cell = {.first = (int64_t)f,
                        .end = (int64_t)f,
                        .means = {.kind = TR_MEANS_PARAMETERS,
                                  .of = (int32_t)f,
                                  .version = p->others[f]}};
        keep_cell(w, to, -1, &cell);
    }
}

static bool is_same(const tr_state_between *a, const tr_state_between *b) {
    bool same =
        a->deferred == b->deferred && a->stale == b->stale && a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        const tr_kept_cell *x = &a->cells[i], *y = &b->cells[i];
        same = x->buffer == y->buffer && x->first == y->first && x->end == y->end &&
               tr__meaning_equal(&x->means, &y->means);
    }
    return same;
}

void tr__states_add(tr_walks *w, bool deferred, bool stale) {
    tr_proof *p = w->proof;
    tr_state_between new = {.deferred = deferred, .stale = stale};
    for (size_t i = 0; i < p->plan->buffer_count && p->status == TR_OK; i++) {
        const tr_contents *held = &p->held[i];
        bool always = p->plan->buffers[i].sequence < 0;
        for (size_t k = 0; always && k < held->count && p->status == TR_OK; k++) {
            if (is_kept(w, &held->cells[k], i, deferred)) {
                keep_cell(w, &new, (int32_t)i, &held->cells[k]);
            }
        }
    }
    keep_others(w, &new);
    for (int i = 0; i < w->count && p->status == TR_OK; i++) {
        if (is_same(&w->states[i], &new)) {
            tr__free(new.cells);
            return;
        }
    }
    if (p->status == TR_OK && w->count == TR_STATES_MAX) {
        p->status = tr_fail(p->err, TR_INTERNAL,
                            "plan: there are more than %d states between two steps",
                            (int)TR_STATES_MAX);
    }
    if (p->status != TR_OK) {
        tr__free(new.cells);
        return;
    }
    w->states[w->count++] = new;
}

static void begin_walk(tr_proof *p) {
    tr_walked *d = &p->walked;
    size_t flats = p->plan->flat_count, units = (size_t)p->plan->unit_count;
    size_t segments = (size_t)p->tables.segments[units];
    memset(d->forward, 0, segments * sizeof *d->forward);
    memset(d->backward, 0, segments * sizeof *d->backward);
    memset(d->again, 0, units * sizeof *d->again);
    memset(d->weights, 0, units * sizeof *d->weights);
    memset(d->recomputed, 0, units * sizeof *d->recomputed);
    memset(d->reduced, 0, flats * sizeof *d->reduced);
    memset(d->evicted, 0, flats * sizeof *d->evicted);
    memset(d->brought, 0, flats * sizeof *d->brought);
    memset(d->wave[0], -1, units * sizeof *d->wave[0]);
    memset(d->wave[1], -1, units * sizeof *d->wave[1]);
    memset(d->measured, 0, flats * sizeof *d->measured);
    d->cleared = d->normed = d->reported = false;
    d->loaded = d->unloaded = d->handed = 0;
    tr__pieces_reset(p);
    p->walk++;
    tr__tenants_reset(p);
    tr__clock_reset(p, 0);
}

void tr__states_restore(tr_walks *w, int index, tr_sequence_kind kind) {
    tr_proof *p = w->proof;
    const tr_state_between *from = &w->states[index];
    p->kind = kind;
    p->present = tr__plan_micros(p->plan, kind);
    p->version = 0;
    p->stopped = p->settles = p->applied = false;
    p->spoilt = p->spoilt_zeros = false;
    p->deferred = from->deferred;
    forget(p);
    for (size_t i = 0; i < from->count && p->status == TR_OK; i++) {
        const tr_kept_cell *cell = &from->cells[i];
        if (cell->buffer < 0) {
            p->others[cell->means.of] = cell->means.version;
            continue;
        }
        tr__bytes_set(p, (tr_bytes){cell->buffer, cell->first, cell->end},
                      &cell->means);
    }
    begin_walk(p);
}

void tr__states_clear(tr_walks *w) {
    for (int i = 0; i < w->count; i++) {
        tr__free(w->states[i].cells);
    }
    tr__free(w->sums);
    tr__free(w->left);
}
