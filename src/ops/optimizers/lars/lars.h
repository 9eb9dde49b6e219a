// LARS's own hyper-parameters, and what its implementations share.
#ifndef TR_OPS_OPTIMIZERS_LARS_LARS_H
#define TR_OPS_OPTIMIZERS_LARS_LARS_H

#include "ops/optimizers/lars/trust.h"
#include "ops/optimizers/momentum.h"
#include "ops/optimizers/optimizer.h"

#include <string.h>

typedef struct tr_lars_hyper {
    tr_momentum momentum;
    double eps;
    double trust_coefficient;
} tr_lars_hyper;

_Static_assert(sizeof(tr_lars_hyper) <= TR_HYPER_BYTES, "they fit in tr_hyper.own");

static inline tr_lars_hyper tr__lars_hyper(const tr_hyper *hyper) {
    tr_lars_hyper own;
    memcpy(&own, hyper->own, sizeof own);
    return own;
}

static inline tr_lars_ratio tr__lars_ratio(const tr_hyper *hyper) {
    const tr_lars_hyper own = tr__lars_hyper(hyper);
    return (tr_lars_ratio){own.trust_coefficient, hyper->weight_decay, own.eps};
}

extern const tr_optimizer tr__optimizer_lars;

// One element's update is b = keep * b + rate * g, p = p - (from_g * g + from_b * b);
// the first update has no b (what is there may be anything).
typedef struct tr_lars_numbers {
    double grad_scale, weight_decay;
    double rate; // lr * trust
    double keep, from_g, from_b;
    bool has_buffer, first;
} tr_lars_numbers;

static inline tr_lars_numbers tr__lars_numbers(const tr_hyper *hyper,
                                               const tr_update *update) {
    const tr_lars_hyper own = tr__lars_hyper(hyper);
    double rate = hyper->lr * update->trust;
    bool ahead = own.momentum.nesterov;
    return (tr_lars_numbers){
        .grad_scale = update->grad_scale,
        .weight_decay = hyper->weight_decay,
        .rate = rate,
        .keep = own.momentum.decay,
        .from_g = ahead ? rate : 0,
        .from_b = ahead ? own.momentum.decay : 1,
        .has_buffer = tr__momentum_states(own.momentum) > 0,
        .first = update->number == 1,
    };
}

void tr__lars_reference(const tr_hyper *hyper, const tr_update *update);
void tr__lars_direct_reference(const tr_hyper *hyper, const tr_update *update,
                               float *direction);

#endif
