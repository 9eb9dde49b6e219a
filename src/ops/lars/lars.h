// What the implementations of LARS share. The optimizer itself is in ops/optimizer.h.
#ifndef TR_OPS_LARS_H
#define TR_OPS_LARS_H

#include "ops/optimizer.h"

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
    double rate = hyper->lr * update->trust;
    bool ahead = hyper->nesterov;
    return (tr_lars_numbers){
        .grad_scale = update->grad_scale,
        .weight_decay = hyper->weight_decay,
        .rate = rate,
        .keep = hyper->momentum,
        .from_g = ahead ? rate : 0,
        .from_b = ahead ? hyper->momentum : 1,
        .has_buffer = hyper->momentum != 0,
        .first = update->number == 1,
    };
}

void tr__lars_reference(const tr_hyper *hyper, const tr_update *update);
void tr__lars_direct_reference(const tr_hyper *hyper, const tr_update *update,
                               float *direction);

#endif
