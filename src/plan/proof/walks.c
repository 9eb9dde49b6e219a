// The walks, from every state that can be reached.
//
// From a state a training step is walked once as it is, and once interrupted at its
// beginning, where it goes on nevertheless. The first gives a state for each answer to
// the host step decide: behind that step, where the update is skipped; behind the
// model's states, where the update is deferred to the next step; and at the end. From a
// state with such an update it is settled; from one without, the parameters are
// synchronized, and then an evaluation runs: with all micro-batches of its sequence,
// and with the first alone. So whatever happens in two steps or more
// in a row is walked.
#include "plan/proof/walks.h"

#include "base/memory.h"

// Is the step done in this walk?
static bool is_done(const tr_proof *p) {
    if (p->step->of_micro_batch && p->step->micro >= p->present) {
        return false;
    }
    switch (p->step->guard) {
    case TR_GUARD_RUNNING:
        return !p->stopped;
    case TR_GUARD_APPLIED:
    case TR_GUARD_AT_ONCE:
        return p->applied;
    case TR_GUARD_DEFERRED:
        return p->deferred;
    default:
        return true;
    }
}

// A step that is left out waits nevertheless, and counts on its stream.
static void walk_step(tr_proof *p) {
    tr__clock_wait(p);
    if (is_done(p) && p->status == TR_OK) {
        tr__rule_apply(p);
    }
    tr__clock_issue(p);
}

static void walk_steps(tr_proof *p, size_t first, size_t end) {
    const tr_sequence *sequence = &p->plan->sequences[p->kind];
    for (size_t i = first; i < end && p->status == TR_OK; i++) {
        p->step = &sequence->steps[i];
        p->index = (int32_t)i;
        walk_step(p);
    }
}

// ---- a training step

static void train(tr_walks *w, int state) {
    tr_proof *p = w->proof;
    const tr_plan *plan = p->plan;
    size_t count = plan->sequences[TR_SEQUENCE_TRAIN].count;
    bool stale = w->states[state].stale || w->states[state].deferred;
    tr__states_restore(w, state, TR_SEQUENCE_TRAIN);
    walk_steps(p, 0, p->update);
    tr__oblige_work(p);
    tr__oblige_versions(p, 0, 0);
    tr__states_add(w, false, stale); // the update is skipped
    p->deferred = false;
    p->applied = true;
    walk_steps(p, p->update, p->at_once);
    if (tr__proof_defers(p)) {
        tr__oblige_versions(p, 0, 1);
        p->version++;
        tr__states_add(w, true, true); // the update is left to the next step
        p->version--;
    }
    walk_steps(p, p->at_once, count);
    tr__oblige_versions(p, 1, 1);
    p->version++;
    tr__states_add(w, false, true);
}

// Other ranks, or an update that has begun, do not let the walk end.
static void interrupt(tr_walks *w, int state) {
    tr_proof *p = w->proof;
    tr__states_restore(w, state, TR_SEQUENCE_TRAIN);
    p->stopped = true;
    walk_steps(p, 0, p->update);
    p->stopped = false;
    tr__oblige_versions(p, 0, 0);
    tr__states_add(w, false, w->states[state].stale);
}

static void settle(tr_walks *w, int state) {
    tr_proof *p = w->proof;
    tr__states_restore(w, state, TR_SEQUENCE_TRAIN);
    tr__clock_reset(p, (int32_t)p->at_once);
    p->deferred = false;
    p->settles = p->applied = true;
    walk_steps(p, p->at_once, p->plan->sequences[TR_SEQUENCE_TRAIN].count);
    tr__oblige_versions(p, 0, 0);
    tr__states_add(w, false, true);
}

// ---- between training steps

static void evaluate(tr_walks *w, int state, tr_sequence_kind kind, int64_t micros) {
    const tr_meaning zeros = {.kind = TR_MEANS_ZEROS}, data = {.kind = TR_MEANS_DATA};
    tr_proof *p = w->proof;
    const tr_plan *plan = p->plan;
    int32_t ring = plan->data_ring[1];
    tr__states_restore(w, state, kind);
    p->present = micros;
    if (kind == TR_SEQUENCE_INFERENCE) { // the caller has put it there
        tr__bytes_set(p, (tr_bytes){ring, 0, plan->slot_bytes}, &data);
    } else {
        tr__bytes_set(p, (tr_bytes){plan->sums, 0, plan->buffers[plan->sums].bytes},
                      &zeros);
    }
    walk_steps(p, 0, plan->sequences[kind].count);
    tr__oblige_work(p);
    tr__oblige_logits(p);
    tr__states_add(w, false, false);
}

static void synchronize(tr_walks *w, int state) {
    tr_proof *p = w->proof;
    tr__states_restore(w, state, TR_SEQUENCE_SYNC_PARAMETERS);
    walk_steps(p, 0, p->plan->sequences[TR_SEQUENCE_SYNC_PARAMETERS].count);
    tr__oblige_synced(p);
    tr__states_add(w, false, false);
}

static void explore_state(tr_walks *w, int state) {
    bool deferred = w->states[state].deferred;
    int64_t micros = w->proof->plan->evaluated;
    if (deferred) {
        settle(w, state);
    } else if (w->states[state].stale) {
        synchronize(w, state);
    } else {
        evaluate(w, state, TR_SEQUENCE_EVALUATE, micros);
        if (micros > 1) {
            evaluate(w, state, TR_SEQUENCE_EVALUATE, 1);
        }
    }
    train(w, state);
    if (deferred || tr_mesh_ranks(&w->proof->plan->request.mesh) > 1) {
        interrupt(w, state);
    }
}

void tr__walks_explore(tr_proof *p) {
    tr_walks w = {.proof = p};
    w.sums = tr__calloc(p->plan->buffer_count, sizeof *w.sums);
    w.left = tr__calloc(p->plan->buffer_count, sizeof *w.left);
    if (!w.sums || !w.left) {
        tr__proof_no_memory(p);
    }
    if (p->status == TR_OK) {
        tr__states_begin(&w);
    }
    if (p->plan->request.inference && p->status == TR_OK) {
        evaluate(&w, 0, TR_SEQUENCE_INFERENCE, 1);
    }
    for (int i = 0; i < w.count && !p->plan->request.inference && p->status == TR_OK;
         i++) {
        explore_state(&w, i);
    }
    tr__states_clear(&w);
}
