// What the implementations of SGD share. The optimizer itself is in ops/optimizer.h.
#ifndef TR_OPS_SGD_H
#define TR_OPS_SGD_H

#include "ops/optimizer.h"

// One element's update is b = keep * b + take * g, p = p - lr * (from_g * g + from_b *
// b); the first update has keep 0 and does not read b (it may hold anything).
typedef struct tr_sgd_numbers {
    double grad_scale, weight_decay, lr;
    double keep, take, from_g, from_b;
    bool has_buffer, first;
} tr_sgd_numbers;

static inline tr_sgd_numbers tr__sgd_numbers(const tr_hyper *hyper,
                                             const tr_update *update) {
    bool first = update->number == 1;
    return (tr_sgd_numbers){
        .grad_scale = update->grad_scale,
        .weight_decay = hyper->weight_decay,
        .lr = hyper->lr,
        .keep = hyper->momentum,
        .take = first ? 1 : 1 - hyper->dampening,
        .from_g = hyper->nesterov ? 1 : 0,
        .from_b = hyper->nesterov ? hyper->momentum : 1,
        .has_buffer = hyper->momentum != 0,
        .first = first,
    };
}

void tr__sgd_reference(const tr_hyper *hyper, const tr_update *update);

#endif
