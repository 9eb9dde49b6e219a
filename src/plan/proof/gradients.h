// Gradients, wherever they lie: what is made of a parameter by all its users on all
// micro-batches of a scope, handed on, and added up over ranks and scopes.
//
// A scope is what is handed on at once: the step; or, where gradients leave after each
// wave, a wave; of a slice of a tied tensor, one of its users in the wave.
#ifndef TR_PLAN_PROOF_GRADIENTS_H
#define TR_PLAN_PROOF_GRADIENTS_H

#include "plan/proof/proof.h"

typedef struct tr_scope {
    int64_t first, end; // micro-batches
    int32_t unit;       // -1: all users
} tr_scope;

// How many scopes a step has for a flat buffer; which one is number `at`.
int64_t tr__scopes_of(const tr_proof *p, int32_t flat);
tr_scope tr__scope_find(const tr_proof *p, int32_t flat, int64_t at);

// Elements of a flat buffer: of one parameter, or of a gap between two.
typedef struct tr_element_run {
    int64_t first, count; // elements
    int64_t param;        // -1: a gap
} tr_element_run;

typedef struct tr_element_runs {
    const tr_plan *plan;
    int32_t flat;
    int64_t next, end; // elements
    size_t param;
} tr_element_runs;

tr_element_runs tr__runs_in(const tr_proof *p, int32_t flat, int64_t first,
                            int64_t count);
bool tr__runs_next(tr_element_runs *runs, tr_element_run *out); // false: no more
tr_bytes tr__run_bytes(const tr_kept *kept, const tr_element_run *run);

// The sum of a parameter's gradient that is complete in the scope, of this rank alone.
tr_meaning tr__gradient_sum(const tr_proof *p, size_t param, tr_scope in, int64_t base);
// Elements [first, first + count) are complete in the scope, of this rank alone.
void tr__gradient_own(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                      int64_t count, tr_scope in);
// The same in scope number `at`, or another where their order is not the waves'.
void tr__gradient_scoped(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                         int64_t count, int64_t at);
// They mean this, and between the parameters are zeros.
void tr__gradient_as(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                     int64_t count, const tr_meaning *means);
// They mean this then; before: NULL: what was there does not count.
void tr__gradient_leave(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                        int64_t count, const tr_meaning *before,
                        const tr_meaning *means);
// The sum of so many scopes, over all ranks.
tr_meaning tr__gradient_total(const tr_proof *p, int32_t flat, int64_t scopes,
                              int64_t base);
// How many stages of the pipeline have users of the flat buffer.
int64_t tr__gradient_stages(const tr_proof *p, int32_t flat);
// How many ranks make a part of its gradient each (tr_param_axes.summed): stages that
// use the flat buffer, or ranks of another axis.
int64_t tr__gradient_parts(const tr_proof *p, int32_t flat);
// The sum of so many of these. `whole`: of all elements, else of this rank's part of
// them.
tr_meaning tr__gradient_tied(const tr_proof *p, int32_t flat, int64_t base,
                             int64_t parts, bool whole);
// Which stages the step's exchange is between, of those with users of the flat buffer,
// in the order of their first ones: number - 1 and `number`, the upper one, from 1 to
// `last`. `from` and `to` are what the exchange then has to be between.
typedef struct tr_gradient_hop {
    int64_t number, last;
    int64_t from, to; // stages of the pipeline
    bool upper;       // this rank's stage is that one
} tr_gradient_hop;
tr_gradient_hop tr__gradient_hop(const tr_proof *p, int32_t flat);
// Elements are complete on this rank's stage.
void tr__gradient_of_stage(tr_proof *p, int32_t flat, const tr_kept *kept,
                           int64_t first, int64_t count, int32_t version);
// What the step names for a gradient that passes, of elements [first, first + count).
tr_kept tr__gradient_passing(tr_proof *p, tr_operand_role role, int64_t first,
                             int64_t count, int64_t room, int64_t element);
// Does the step write its sums? Else it adds to them.
bool tr__gradient_is_written(const tr_proof *p);
// Is the step of training, and of a flat buffer that is there?
bool tr__gradient_is_of_flat(tr_proof *p);

#endif
