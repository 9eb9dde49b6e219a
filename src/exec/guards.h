// Which steps of a walk are done: the guards of steps, and the flags that decide them.
//
//   guard      the step is done
//   ALWAYS     in every walk
//   RUNNING    until the walk is stopped
//   APPLIED    when the engine has decided to apply the update
//   AT_ONCE    likewise, unless the update is deferred to the next step
//   DEFERRED   where the step before has deferred its update to this one
#ifndef TR_EXEC_GUARDS_H
#define TR_EXEC_GUARDS_H

#include "plan/flow/step.h"

// What the engine makes of a step's statistics.
typedef enum tr_decision {
    TR_DECIDE_NOTHING, // so far
    TR_DECIDE_END,     // the update is skipped, and the walk over
    TR_DECIDE_APPLY,
    TR_DECIDE_DEFER, // applied; what can be left to the next step is left to it
} tr_decision;

typedef struct tr_walk_flags {
    bool deferred; // the step before has left its update to this walk, to its decision
    bool stopped;  // nothing more is computed
    bool unread;   // because a sample could not be read
    bool reported; // the statistics are complete: nobody is asked for an end any more
    tr_decision decision;
} tr_walk_flags;

bool tr__guard_lets(const tr_walk_flags *flags, tr_step_guard guard);
// Is the walk over when it comes to such a step? The update ends the sequence, and what
// can be deferred ends the update.
bool tr__walk_is_over(const tr_walk_flags *flags, tr_step_guard guard);

// Why a walk stops computing.
typedef enum tr_walk_fault {
    TR_FAULT_ASKED,  // for an end
    TR_FAULT_UNREAD, // a sample of a training step cannot be read
    TR_FAULT_OTHER,
} tr_walk_fault;

// Does the walk go on nevertheless, and move what it has to move?
//
//                         one rank    one rank, with an    several
//                                     update to make       ranks
//   asked for an end      ends        goes on              goes on
//   a sample is unread    ends        goes on              goes on
//   anything else         ends        goes on              ends
//
// Once some of a deferred update is made, the rest must be. Other ranks wait for what
// this one moves, and learn from its statistics why it computes nothing; a rank that
// cannot go on ends them all.
bool tr__walk_goes_on(const tr_walk_flags *flags, tr_walk_fault fault, bool ranks);

#endif
