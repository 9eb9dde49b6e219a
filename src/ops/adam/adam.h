// What the implementations of Adam share. The optimizer itself is in ops/optimizer.h.
#ifndef TR_OPS_ADAM_H
#define TR_OPS_ADAM_H

#include "ops/optimizer.h"

#include <math.h>

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
    bool correct = hyper->bias_correction;
    double bias1 = correct ? 1 - update->beta1_power : 1;
    double bias2 = correct ? 1 - update->beta2_power : 1;
    return (tr_adam_numbers){
        .grad_scale = update->grad_scale,
        .l2 = hyper->decoupled ? 0 : hyper->weight_decay,
        .keep = hyper->decoupled ? 1 - hyper->lr * hyper->weight_decay : 1,
        .m_rate = 1 - hyper->beta1,
        .beta2 = hyper->beta2,
        .v_rate = 1 - hyper->beta2,
        .step = hyper->lr / bias1,
        .root_bias2 = sqrt(bias2),
        .eps = hyper->eps,
    };
}

void tr__adam_reference(const tr_hyper *hyper, const tr_update *update);

#endif
