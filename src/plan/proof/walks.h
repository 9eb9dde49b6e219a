// The walks that the proof makes, and what they begin from.
#ifndef TR_PLAN_PROOF_WALKS_H
#define TR_PLAN_PROOF_WALKS_H

#include "plan/proof/proof.h"

// What is kept from one walk to the next, of a buffer that lives always. Versions count
// from what the next step computes with.
typedef struct tr_kept_cell {
    int32_t buffer;
    int64_t first, end;
    tr_meaning means;
} tr_kept_cell;

// Between two walks.
typedef struct tr_state_between {
    tr_kept_cell *cells;
    size_t count, capacity;
    bool deferred; // an update is left to the next step
    bool stale;    // parameters are synchronized before anybody else reads them
} tr_state_between;

enum { TR_STATES_MAX = 32 };

typedef struct tr_walks {
    tr_proof *proof;
    tr_state_between states[TR_STATES_MAX];
    int count;
    bool *sums; // [buffers] gradients that live always: gaps in them are zeros
    bool *left; // [buffers] gradients that an update reads
} tr_walks;

// Walks from every state that can be reached, the first of which is a new run's.
void tr__walks_explore(tr_proof *p);

// ---- states.c
// The state of a run that begins.
void tr__states_begin(tr_walks *w);
// Bytes mean what they do in state `index`, and a walk of the sequence begins.
void tr__states_restore(tr_walks *w, int index, tr_sequence_kind kind);
// What there is now is a state, unless the same one is there already.
void tr__states_add(tr_walks *w, bool deferred, bool stale);
void tr__states_clear(tr_walks *w);

// Can an update be left to the next step?
bool tr__proof_defers(const tr_proof *p);

// ---- obligations.c
// Every unit and micro-batch has been through the sequence.
void tr__oblige_work(tr_proof *p);
// This rank's parameters and states have been updated so often since the walk began;
// the model's states so often.
void tr__oblige_versions(tr_proof *p, int32_t updates, int32_t tracks);
// All parameters that stay on the device are the newest, whoever has updated them.
void tr__oblige_synced(tr_proof *p);
// The loss, or the logits, are there.
void tr__oblige_logits(tr_proof *p);
// Parameters that the request freezes are frozen in the plan, and no others.
void tr__oblige_trained(tr_proof *p);
// Steps that nobody may leave out are not left out; the update comes last.
void tr__oblige_guards(tr_proof *p);

#endif
