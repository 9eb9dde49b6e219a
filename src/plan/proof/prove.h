// The proof of a plan: what it does when it is walked is what its request asks for.
//
// It follows a walk step by step and keeps what every byte means (meaning.h). For each
// what a step does a rule says which bytes the step reads, and what they must mean, and
// which it writes, and what they mean then. So it proves three things:
//
//   bytes and waits   two accesses to the same bytes, one of which writes, come one
//                     after the other by the waits that the executor obeys; memory goes
//                     on to another buffer only when all that used it is done
//   contents          what a step reads is what it needs, and complete
//   obligations       from request and model alone: every parameter is updated once
//                     from all micro-batches, users and ranks, every forward computes
//                     with the newest parameters, losses and statistics are complete,
//                     states are brought up to date
//
// Whatever may lie between two steps is a walk of its own: an interruption, a skipped
// update, an update that is left to the next step, settling it, making parameters the
// same, an evaluation. What such a walk leaves behind is a state from which others
// begin; the proof walks from every state that can be reached (walks.c).
//
// It is the proof of one rank's plan. The parts of other ranks are taken to be as this
// rank's. That their exchanges fit together is proved beside it (tr__plans_match), for
// ranks that differ on the tensor or the pipeline axis; those that differ on the data
// axis alone exchange the same. When a run begins, ranks compare what they do exchange
// by digests (tr__plan_exchanges).
// Nothing here is shared with the passes that find accesses, waits, lifetimes or
// offsets.
#ifndef TR_PLAN_PROOF_PROVE_H
#define TR_PLAN_PROOF_PROVE_H

#include "plan/flow/plan.h"

// TR_INTERNAL names the step, and says what it finds and what it needs. TR_MEMORY.
tr_status tr__plan_prove(const tr_plan *plan, tr_error *err);

// Plans [count] of ranks of one mesh, for one batch. Those that are in a group come to
// its exchanges in the same order, with the same sizes, and no ranks wait for each
// other in a circle. TR_INTERNAL names two ranks and their steps. TR_MEMORY.
tr_status tr__plans_match(const tr_plan *const *plans, size_t count, tr_error *err);

#endif
