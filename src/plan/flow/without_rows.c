#include "plan/flow/without_rows.h"

#include "base/memory.h"
#include "plan/flow/access.h"
#include "plan/flow/extents.h"

// A step that reads, or adds to, what another has written; and the next one that does.
typedef struct edge {
    int32_t reader;
    size_t next; // 1 + its place; 0: there is none
} edge;

typedef struct finder {
    const tr_plan *plan;
    const tr_sequence *sequence;
    const tr_accesses *accesses;
    tr_extents *values; // [buffers]
    edge *edges;
    size_t count, capacity;
    size_t *of; // [steps] 1 + the first of the edges of what each has written
} finder;

// ---- who reads what

static bool note_edge(finder *f, int32_t writer, int32_t reader) {
    if (writer < 0 || writer == reader) {
        return true;
    }
    if (!tr__grow((void **)&f->edges, &f->capacity, f->count + 1, sizeof *f->edges)) {
        return false;
    }
    f->edges[f->count] = (edge){reader, f->of[writer]};
    f->of[writer] = ++f->count;
    return true;
}

// Sums of gradients and statistics. (What a unit's pieces work in they add to as well,
// whatever it is.)
static bool is_sum(const finder *f, const tr_access *access) {
    const tr_buffer *of = &f->plan->buffers[access->value];
    return of->sequence < 0 || of->category == TR_LEDGER_gradients ||
           of->category == TR_LEDGER_boundary;
}

// Does the access make what later steps read? A launch that adds zeros to a sum does
// not.
static bool makes(const finder *f, const tr_access *access, int32_t step) {
    bool launch = f->sequence->steps[step].shape == TR_STEP_IS_LAUNCH;
    return access->mode == TR_ACCESS_WRITE ||
           (access->mode == TR_ACCESS_ADD && !(launch && is_sum(f, access)));
}

static bool follow(finder *f, const tr_access *access, int32_t step, bool made) {
    tr_extents *value = &f->values[access->value];
    size_t first, end;
    bool good = tr__extents_cut(value, f->plan->buffers[access->value].bytes, access,
                                &first, &end);
    for (size_t i = first; good && !made && i < end; i++) {
        good = note_edge(f, value->items[i].writer, step);
    }
    if (good && made) {
        tr__extents_write(value, first, end, step);
    }
    return good;
}

// What a step reads is what others made, even where it then writes over it.
static bool follow_step(finder *f, int32_t step) {
    const tr_access *items = f->accesses->items;
    size_t begin = f->accesses->begin[step], end = f->accesses->begin[step + 1];
    bool good = true;
    for (size_t k = begin; k < end && good; k++) {
        good = items[k].mode == TR_ACCESS_WRITE || follow(f, &items[k], step, false);
    }
    for (size_t k = begin; k < end && good; k++) {
        good = !makes(f, &items[k], step) || follow(f, &items[k], step, true);
    }
    return good;
}

static bool find_edges(finder *f) {
    bool good = true;
    for (size_t i = 0; i < f->sequence->count && good; i++) {
        good = follow_step(f, (int32_t)i);
    }
    return good;
}

// ---- which steps may be given anything

// What lives always is read in later steps, too.
static bool makes_what_stays(const finder *f, int32_t step) {
    bool some = false;
    for (size_t k = f->accesses->begin[step]; k < f->accesses->begin[step + 1]; k++) {
        const tr_access *access = &f->accesses->items[k];
        some = some ||
               (makes(f, access, step) && f->plan->buffers[access->value].sequence < 0);
    }
    return some;
}

// Other launches than those of units: does it work on gradients? (What is measured may
// be of a whole wave.)
static bool is_of_gradients(const finder *f, int32_t step) {
    bool all = true;
    for (size_t k = f->accesses->begin[step]; k < f->accesses->begin[step + 1]; k++) {
        const tr_access *access = &f->accesses->items[k];
        all = all && (access->mode == TR_ACCESS_READ ||
                      f->plan->buffers[access->value].category == TR_LEDGER_gradients);
    }
    return all;
}

// fine: [steps] of those behind it.
static bool readers_are_fine(const finder *f, int32_t step, const bool *fine) {
    const tr_plan_step *steps = f->sequence->steps;
    bool all = true;
    for (size_t e = f->of[step]; e > 0; e = f->edges[e - 1].next) {
        int32_t reader = f->edges[e - 1].reader;
        all = all && fine[reader] && steps[reader].micro == steps[step].micro;
    }
    return all;
}

// The caller reads no rows, and gives gradients of zeros.
static bool hands_out(const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_HOST && step->payload.call == TR_HOST_HAND_OUT;
}

// Whatever is in what the step reads, nothing comes of it but zeros in sums: it is left
// out, or it moves bytes to where nobody minds them. (What other ranks do with what is
// sent, this plan does not say.)
static bool is_fine(const finder *f, int32_t step, const bool *fine) {
    const tr_plan_step *at = &f->sequence->steps[step];
    if (!at->of_micro_batch || hands_out(at)) {
        return hands_out(at);
    }
    bool ops = at->shape == TR_STEP_IS_LAUNCH && !at->payload.program;
    bool stays_here = at->shape == TR_STEP_IS_LAUNCH || at->shape == TR_STEP_IS_COPY ||
                      at->shape == TR_STEP_IS_FILE;
    return stays_here && !makes_what_stays(f, step) &&
           (!ops || is_of_gradients(f, step)) && readers_are_fine(f, step, fine);
}

// Readers come behind those who wrote what they read.
static void find_fine(const finder *f, bool *fine) {
    for (size_t i = f->sequence->count; i > 0; i--) {
        fine[i - 1] = is_fine(f, (int32_t)(i - 1), fine);
    }
    for (size_t i = 0; i < f->sequence->count; i++) {
        fine[i] = fine[i] && f->sequence->steps[i].shape == TR_STEP_IS_LAUNCH;
    }
}

tr_status tr__without_rows_find(const tr_plan *plan, bool *leave_out, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_accesses accesses = {0};
    finder f = {.plan = plan, .sequence = sequence, .accesses = &accesses};
    tr_status status = tr__accesses_find(plan, TR_SEQUENCE_TRAIN, &accesses, err);
    f.values = tr__calloc(plan->buffer_count, sizeof *f.values);
    f.of = tr__calloc(sequence->count, sizeof *f.of);
    if (status == TR_OK && (!f.values || !f.of || !find_edges(&f))) {
        status = tr_fail(err, TR_MEMORY, "no memory for who reads what in a step");
    }
    if (status == TR_OK) {
        find_fine(&f, leave_out);
    }
    tr__extents_free(f.values, plan->buffer_count);
    tr__free(f.edges);
    tr__free(f.of);
    tr__accesses_clear(&accesses);
    return status;
}
