// LAMB's ratio of norms; for the host and for devices.
#ifndef TR_OPS_OPTIMIZERS_LAMB_TRUST_H
#define TR_OPS_OPTIMIZERS_LAMB_TRUST_H

#include "base/device.h"

// Between `least` and `most`; 1 where a norm is 0.
TR_DEVICE static inline double tr__lamb_trust(double param_norm, double direction_norm,
                                              double least, double most) {
    if (!(param_norm > 0 && direction_norm > 0)) {
        return 1;
    }
    double ratio = param_norm / direction_norm;
    return ratio > least ? (ratio > most ? most : ratio) : least;
}

#endif
