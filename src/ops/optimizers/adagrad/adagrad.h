// Adagrad's own hyper-parameters, and what its implementations share.
#ifndef TR_OPS_OPTIMIZERS_ADAGRAD_ADAGRAD_H
#define TR_OPS_OPTIMIZERS_ADAGRAD_ADAGRAD_H

#include "ops/optimizers/optimizer.h"

#include <string.h>

typedef struct tr_adagrad_hyper {
    double eps;
    double initial_accumulator; // what the sums of squares begin with
    double lr_decay;
} tr_adagrad_hyper;

_Static_assert(sizeof(tr_adagrad_hyper) <= TR_HYPER_BYTES, "they fit in tr_hyper.own");

static inline tr_adagrad_hyper tr__adagrad_hyper(const tr_hyper *hyper) {
    tr_adagrad_hyper own;
    memcpy(&own, hyper->own, sizeof own);
    return own;
}

extern const tr_optimizer tr__optimizer_adagrad;

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
    const tr_adagrad_hyper own = tr__adagrad_hyper(hyper);
    double before = (double)(update->number - 1);
    return (tr_adagrad_numbers){
        .grad_scale = update->grad_scale,
        .weight_decay = hyper->weight_decay,
        .lr = hyper->lr / (1 + before * own.lr_decay),
        .eps = own.eps,
        .initial = own.initial_accumulator,
        .first = update->number == 1,
    };
}

void tr__adagrad_reference(const tr_hyper *hyper, const tr_update *update);

#endif
