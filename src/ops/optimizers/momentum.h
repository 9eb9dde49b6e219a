// The momentum that SGD and LARS share: two of their hyper-parameters.
#ifndef TR_OPS_OPTIMIZERS_MOMENTUM_H
#define TR_OPS_OPTIMIZERS_MOMENTUM_H

#include <stdbool.h>

typedef struct tr_momentum {
    double decay;  // of the running sum; 0: there is no momentum
    bool nesterov; // the step looks ahead along the running sum
} tr_momentum;

// How many states an update has: without momentum its buffer is neither read nor
// written.
static inline int tr__momentum_states(tr_momentum momentum) {
    return momentum.decay != 0;
}

#endif
