// What the implementations of Lion share; it has no hyper-parameters of its own.
#ifndef TR_OPS_OPTIMIZERS_LION_LION_H
#define TR_OPS_OPTIMIZERS_LION_LION_H

#include "ops/optimizers/optimizer.h"

extern const tr_optimizer tr__optimizer_lion;

// The numbers of one update that are the same for every element.
typedef struct tr_lion_numbers {
    double grad_scale;
    double keep;           // the parameter is multiplied by this first
    double beta1, g_share; // of the direction: beta1 of the mean, 1 - beta1 of g
    double beta2, m_rate;  // of the mean, likewise
    double lr;
} tr_lion_numbers;

static inline tr_lion_numbers tr__lion_numbers(const tr_hyper *hyper,
                                               const tr_update *update) {
    return (tr_lion_numbers){
        .grad_scale = update->grad_scale,
        .keep = 1 - hyper->lr * hyper->weight_decay,
        .beta1 = hyper->beta1,
        .g_share = 1 - hyper->beta1,
        .beta2 = hyper->beta2,
        .m_rate = 1 - hyper->beta2,
        .lr = hyper->lr,
    };
}

void tr__lion_reference(const tr_hyper *hyper, const tr_update *update);

#endif
