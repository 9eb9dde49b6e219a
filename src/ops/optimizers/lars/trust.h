// LARS's ratio of norms; for the host and for devices.
#ifndef TR_OPS_OPTIMIZERS_LARS_TRUST_H
#define TR_OPS_OPTIMIZERS_LARS_TRUST_H

#include "base/device.h"

typedef struct tr_lars_ratio {
    double coefficient, weight_decay, eps;
} tr_lars_ratio;

// 1 where a norm is 0.
TR_DEVICE static inline double tr__lars_trust(double param_norm, double grad_norm,
                                              tr_lars_ratio by) {
    return param_norm > 0 && grad_norm > 0
               ? by.coefficient * param_norm /
                     (grad_norm + by.weight_decay * param_norm + by.eps)
               : 1;
}

#endif
