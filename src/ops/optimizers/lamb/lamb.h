// LAMB's own hyper-parameters, and what its implementations share.
#ifndef TR_OPS_OPTIMIZERS_LAMB_LAMB_H
#define TR_OPS_OPTIMIZERS_LAMB_LAMB_H

#include "ops/optimizers/optimizer.h"

#include <math.h>
#include <string.h>

typedef struct tr_lamb_hyper {
    double eps;
    double min_coeff, max_coeff; // bounds of the trust ratio
    bool bias_correction;
    bool corrected; // the direction is of corrected means
} tr_lamb_hyper;

_Static_assert(sizeof(tr_lamb_hyper) <= TR_HYPER_BYTES, "they fit in tr_hyper.own");

static inline tr_lamb_hyper tr__lamb_hyper(const tr_hyper *hyper) {
    tr_lamb_hyper own;
    memcpy(&own, hyper->own, sizeof own);
    return own;
}

extern const tr_optimizer tr__optimizer_lamb;

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
    const tr_lamb_hyper own = tr__lamb_hyper(hyper);
    bool correct = own.bias_correction;
    double bias1 = correct ? 1 - update->beta1_power : 1;
    double root2 = correct ? sqrt(1 - update->beta2_power) : 1;
    bool inside = own.corrected;
    return (tr_lamb_numbers){
        .grad_scale = update->grad_scale,
        .m_rate = 1 - hyper->beta1,
        .beta2 = hyper->beta2,
        .v_rate = 1 - hyper->beta2,
        .m_scale = inside ? 1 / bias1 : 1,
        .v_scale = inside ? 1 / root2 : 1,
        .eps = own.eps,
        .decay = hyper->weight_decay,
        .step = hyper->lr * update->trust * (inside ? 1 : root2 / bias1),
    };
}

void tr__lamb_reference(const tr_hyper *hyper, const tr_update *update);
void tr__lamb_direct_reference(const tr_hyper *hyper, const tr_update *update,
                               float *direction);

#endif
