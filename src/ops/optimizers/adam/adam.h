// Adam's own hyper-parameters, and what its implementations share.
#ifndef TR_OPS_OPTIMIZERS_ADAM_ADAM_H
#define TR_OPS_OPTIMIZERS_ADAM_ADAM_H

#include "ops/optimizers/optimizer.h"

#include <math.h>
#include <string.h>

typedef struct tr_adam_hyper {
    double eps;
    bool decoupled;       // AdamW's decay (Loshchilov, Hutter 1711.05101)
    bool bias_correction; // the means are divided by 1 - beta^t
} tr_adam_hyper;

_Static_assert(sizeof(tr_adam_hyper) <= TR_HYPER_BYTES, "they fit in tr_hyper.own");

static inline tr_adam_hyper tr__adam_hyper(const tr_hyper *hyper) {
    tr_adam_hyper own;
    memcpy(&own, hyper->own, sizeof own);
    return own;
}

extern const tr_optimizer tr__optimizer_adam; // Adam and AdamW

// The numbers of one update that are the same for every element.
typedef struct tr_adam_numbers {
    double grad_scale;
    double l2;     // added to the gradient, times the parameter
    double keep;   // the parameter is multiplied by this first
    double m_rate; // 1 - beta1
    double beta2;
    double v_rate;     // 1 - beta2
    double step;       // lr / bias1
    double root_bias2; // sqrt(bias2)
    double eps;
} tr_adam_numbers;

static inline tr_adam_numbers tr__adam_numbers(const tr_hyper *hyper,
                                               const tr_update *update) {
    const tr_adam_hyper own = tr__adam_hyper(hyper);
    double bias1 = own.bias_correction ? 1 - update->beta1_power : 1;
    double bias2 = own.bias_correction ? 1 - update->beta2_power : 1;
    return (tr_adam_numbers){
        .grad_scale = update->grad_scale,
        .l2 = own.decoupled ? 0 : hyper->weight_decay,
        .keep = own.decoupled ? 1 - hyper->lr * hyper->weight_decay : 1,
        .m_rate = 1 - hyper->beta1,
        .beta2 = hyper->beta2,
        .v_rate = 1 - hyper->beta2,
        .step = hyper->lr / bias1,
        .root_bias2 = sqrt(bias2),
        .eps = own.eps,
    };
}

void tr__adam_reference(const tr_hyper *hyper, const tr_update *update);

#endif
