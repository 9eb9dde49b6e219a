// What the implementations of Adagrad share. The optimizer itself is in
// ops/optimizer.h.
#ifndef TR_OPS_ADAGRAD_H
#define TR_OPS_ADAGRAD_H

#include "ops/optimizer.h"

// The numbers of one update that are the same for every element.
typedef struct tr_adagrad_numbers {
    double grad_scale, weight_decay;
    double lr; // of this update
    double eps;
    double initial; // what the sum begins with
    bool first;     // what the state holds may be anything
} tr_adagrad_numbers;

static inline tr_adagrad_numbers tr__adagrad_numbers(const tr_hyper *hyper,
                                                     const tr_update *update) {
    double before = (double)(update->number - 1);
    return (tr_adagrad_numbers){
        .grad_scale = update->grad_scale,
        .weight_decay = hyper->weight_decay,
        .lr = hyper->lr / (1 + before * hyper->lr_decay),
        .eps = hyper->eps,
        .initial = hyper->initial_accumulator,
        .first = update->number == 1,
    };
}

void tr__adagrad_reference(const tr_hyper *hyper, const tr_update *update);

#endif
