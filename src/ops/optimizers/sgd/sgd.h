// SGD's own hyper-parameters, and what its implementations share.
#ifndef TR_OPS_OPTIMIZERS_SGD_SGD_H
#define TR_OPS_OPTIMIZERS_SGD_SGD_H

#include "ops/optimizers/momentum.h"
#include "ops/optimizers/optimizer.h"

#include <string.h>

typedef struct tr_sgd_hyper {
    tr_momentum momentum;
    double dampening; // the share of a gradient that does not enter the momentum
} tr_sgd_hyper;

_Static_assert(sizeof(tr_sgd_hyper) <= TR_HYPER_BYTES, "they fit in tr_hyper.own");

static inline tr_sgd_hyper tr__sgd_hyper(const tr_hyper *hyper) {
    tr_sgd_hyper own;
    memcpy(&own, hyper->own, sizeof own);
    return own;
}

extern const tr_optimizer tr__optimizer_sgd;

// One element's update is b = keep * b + take * g, p = p - lr * (from_g * g + from_b *
// b); the first update has keep 0 and does not read b (it may hold anything).
typedef struct tr_sgd_numbers {
    double grad_scale, weight_decay, lr;
    double keep, take, from_g, from_b;
    bool has_buffer, first;
} tr_sgd_numbers;

static inline tr_sgd_numbers tr__sgd_numbers(const tr_hyper *hyper,
                                             const tr_update *update) {
    const tr_sgd_hyper own = tr__sgd_hyper(hyper);
    bool first = update->number == 1;
    return (tr_sgd_numbers){
        .grad_scale = update->grad_scale,
        .weight_decay = hyper->weight_decay,
        .lr = hyper->lr,
        .keep = own.momentum.decay,
        .take = first ? 1 : 1 - own.dampening,
        .from_g = own.momentum.nesterov ? 1 : 0,
        .from_b = own.momentum.nesterov ? own.momentum.decay : 1,
        .has_buffer = tr__momentum_states(own.momentum) > 0,
        .first = first,
    };
}

void tr__sgd_reference(const tr_hyper *hyper, const tr_update *update);

#endif
