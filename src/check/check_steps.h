// The steps that a check makes, and the gradients that it keeps of them.
#ifndef TR_CHECK_CHECK_STEPS_H
#define TR_CHECK_CHECK_STEPS_H

#include "check/check_cuts.h"
#include "train/engine.h"

#define TR_CHECK_SCALE 0x1p16 // the first loss scale that fp16 is tried with

// A cut whose gradients are kept.
typedef struct tr_kept_cut {
    tr_plan_request request;
    float **values; // [tensors], NULL: none
    double loss;
} tr_kept_cut;

// How far a kept cut moves where roundings change.
typedef struct tr_movement {
    double *distance; // [tensors], of the draw that is farthest off; NULL: not measured
    double loss;
} tr_movement;

typedef struct tr_checker {
    tr_check *check;
    tr_run *run;
    tr_kept_cut first; // cut
    size_t *param;     // [tensors] its number in the plan
    double whole;      // norm of the first cut's gradients
    double scale;      // the loss scale of fp16
    double power;      // by which the first cut divided its seeds
    double part; // by how much of themselves the weights of an attempt are changed
    int draw;    // in which of several ways
    tr_movement moved[TR_CHANGES_COUNT]; // of the first cut
} tr_checker;

// A step of the cut, its gradients still in their accumulators.
typedef struct tr_attempt {
    tr_plan *plan;
    tr_engine *engine;
    tr_step_result result;
} tr_attempt;

// Makes the step of a request, from weights changed by checker->part. In fp16 with the
// largest of a few loss scales at which nothing overflows, as a run would find it in
// its first steps. The caller ends the attempt, also after an error.
tr_status tr__check_step(tr_checker *c, const tr_plan_request *request, tr_attempt *a,
                         tr_error *err);
void tr__check_end(tr_attempt *a);

// Copies the gradients of a step. TR_USAGE: they cannot be read.
tr_status tr__check_keep(const tr_checker *c, const tr_attempt *a, tr_kept_cut *k,
                         tr_error *err);
// The same of the first cut, which says what tensors there are.
tr_status tr__check_keep_first(tr_checker *c, const tr_attempt *a, tr_error *err);
void tr__check_drop(const tr_checker *c, tr_kept_cut *k);

// How far the gradient of a tensor is from the one that is kept (tr_check_cut). *same
// becomes false where a bit differs.
double tr__check_distance(const tr_checker *c, const tr_attempt *a,
                          const tr_kept_cut *from, size_t t, bool *same);

#endif
