// What the implementations of LAMB share. The optimizer itself is in ops/optimizer.h.
#ifndef TR_OPS_LAMB_H
#define TR_OPS_LAMB_H

#include "ops/optimizer.h"

#include <math.h>

// The numbers of one update that are the same for every element.
typedef struct tr_lamb_numbers {
    double grad_scale;
    double m_rate, beta2, v_rate; // as Adam's
    double m_scale, v_scale, eps; // u = m_scale m / (v_scale sqrt(v) + eps) + decay p
    double decay;
    double step; // p = p - step u
} tr_lamb_numbers;

static inline tr_lamb_numbers tr__lamb_numbers(const tr_hyper *hyper,
                                               const tr_update *update) {
    bool correct = hyper->bias_correction;
    double bias1 = correct ? 1 - update->beta1_power : 1;
    double root2 = correct ? sqrt(1 - update->beta2_power) : 1;
    bool inside = hyper->corrected;
    return (tr_lamb_numbers){
        .grad_scale = update->grad_scale,
        .m_rate = 1 - hyper->beta1,
        .beta2 = hyper->beta2,
        .v_rate = 1 - hyper->beta2,
        .m_scale = inside ? 1 / bias1 : 1,
        .v_scale = inside ? 1 / root2 : 1,
        .eps = hyper->eps,
        .decay = hyper->weight_decay,
        .step = hyper->lr * update->trust * (inside ? 1 : root2 / bias1),
    };
}

void tr__lamb_reference(const tr_hyper *hyper, const tr_update *update);
void tr__lamb_direct_reference(const tr_hyper *hyper, const tr_update *update,
                               float *direction);

#endif
