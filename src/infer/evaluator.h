// Inside of an evaluator: a trained model, and the plan of an inference.
#ifndef TR_INFER_EVALUATOR_H
#define TR_INFER_EVALUATOR_H

#include "exec/executor.h"
#include "infer/retrieval.h"
#include "run/run.h"

#include <tranche/sample.h>

struct tr_evaluator {
    tr_run *run;
    const tr_model *model;
    tr_dataset *data; // the run's, or the caller's
    tr_plan *plan;
    tr_arena *arenas[TR_SPACES];
    tr_executor *executor;
    int64_t samples, positions, batch;
    int64_t width;    // numbers of a target: classes, or those of an embedding
    int64_t next;     // sample
    int64_t *index;   // [batch]
    int32_t *targets; // [batch, positions]
    float *numbers;   // [batch, positions, width] where targets are numbers; NULL
    int64_t group; // texts of a sample, where these are an anchor, its positive, ...; 0
    tr_retrieval *retrieval; // then: their embeddings so far; else NULL
    double loss, count, correct;
    bool bytes;
    bool rounded; // the weights were, when they were saved
};

// TR_USAGE: it has a plan alone.
tr_status tr__evaluator_computes(const tr_evaluator *e, tr_error *err);
// Fills the slot with samples [first, first + count) of a data set, count <= e->batch.
tr_status tr__evaluator_fill(tr_evaluator *e, tr_dataset *from, int64_t first,
                             int64_t count, tr_error *err);
// The logits of what the slot holds: samples [first, first + count).
tr_status tr__evaluator_compute(tr_evaluator *e, int64_t first, int64_t count,
                                const float **logits, tr_error *err);

// ---- evaluator_score.c
// Are targets numbers, several of each text perhaps?
bool tr__evaluator_has_numbers(const tr_evaluator *e);
// Adds the loss of target i, of these logits [width], to the sums.
void tr__evaluator_score(tr_evaluator *e, const float *logits, int64_t i);

#endif
