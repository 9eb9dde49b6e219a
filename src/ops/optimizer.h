// Optimizers: updates of flat f32 buffers, range by range.
#ifndef TR_OPS_OPTIMIZER_H
#define TR_OPS_OPTIMIZER_H

#include <tranche/op.h>

#include "backend/cpu/isa.h"

// At most; the op that updates has a result for each (ops/update).
enum { TR_OPTIMIZER_STATES = TR_OP_OUT_MAX - 2 };

// What an update is made with; each optimizer reads the fields it knows.
typedef struct tr_hyper {
    double lr, weight_decay;
    double beta1, beta2;         // Adam, Lion, LAMB
    double eps;                  // Adam, Adagrad, LAMB, LARS
    bool decoupled;              // Adam: AdamW's decay (Loshchilov, Hutter 1711.05101)
    bool bias_correction;        // Adam, LAMB
    double momentum;             // SGD, LARS
    double dampening;            // SGD
    bool nesterov;               // SGD, LARS
    double initial_accumulator;  // Adagrad
    double lr_decay;             // Adagrad
    double min_coeff, max_coeff; // LAMB: bounds of the trust ratio
    bool corrected;              // LAMB: the direction is of corrected means
    double trust_coefficient;    // LARS
} tr_hyper;

// One contiguous range of parameters with one set of hyper-parameters.
typedef struct tr_update {
    float *param;                      // [count], updated in place
    const float *grad;                 // [count]
    float *state[TR_OPTIMIZER_STATES]; // [count] each, those that the optimizer has
    int64_t count;
    double
        grad_scale; // each gradient is multiplied by this: 2^k / (scale * count * clip)
    int64_t number; // of this applied update, from 1
    double beta1_power, beta2_power; // products of the betas of updates 1 .. number
    double trust; // what the norms of the whole tensor make of its rate: LAMB, LARS
} tr_update;

// An optimizer whose rate follows the norms of each tensor updates in two phases. The
// first moves the states on and gives what is to be measured; then, the norms of whole
// tensors being known, comes `reference` or `cpu`.
typedef struct tr_adaptation {
    // First phase: direction: [count]. One thread. Bits do not depend on how ranges are
    // cut.
    void (*reference)(const tr_hyper *hyper, const tr_update *update, float *direction);
    void (*cpu[TR_ISA_COUNT])(const tr_hyper *hyper, const tr_update *update,
                              float *direction);
    // tr_update.trust of a tensor whose parameters and direction have these norms.
    double (*trust)(const tr_hyper *hyper, double param_norm, double direction_norm);
} tr_adaptation;

typedef struct tr_optimizer {
    const char *name; // "adam"
    int number;       // in checkpoints: stays the same for ever
    int state_count;
    const char *state_names[TR_OPTIMIZER_STATES]; // in checkpoints: "exp_avg"
    double flops_per_element;
    // Updates the range with OpenMP threads. Bits do not depend on the thread count or
    // on how ranges are cut.
    void (*reference)(const tr_hyper *hyper, const tr_update *update);
    void (*cpu[TR_ISA_COUNT])(const tr_hyper *hyper, const tr_update *update);
    const tr_adaptation *adaptation; // NULL: elements know nothing of their tensor
} tr_optimizer;

extern const tr_optimizer tr__optimizer_adam; // Adam and AdamW
extern const tr_optimizer tr__optimizer_sgd;
extern const tr_optimizer tr__optimizer_lion;
extern const tr_optimizer tr__optimizer_adagrad;
extern const tr_optimizer tr__optimizer_lamb;
extern const tr_optimizer tr__optimizer_lars;

// The update for this processor (the best `cpu` entry up to `isa`, else the reference;
// -1: the reference).
typedef void (*tr_update_function)(const tr_hyper *hyper, const tr_update *update);
tr_update_function tr__optimizer_choose(const tr_optimizer *optimizer, int isa);
// The first phase likewise; NULL: there is none.
typedef void (*tr_direct_function)(const tr_hyper *hyper, const tr_update *update,
                                   float *direction);
tr_direct_function tr__optimizer_choose_direct(const tr_optimizer *optimizer, int isa);

#endif
