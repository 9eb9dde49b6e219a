// Optimizers: updates of flat f32 buffers, range by range.
#ifndef TR_OPS_OPTIMIZER_H
#define TR_OPS_OPTIMIZER_H

#include <tranche/types.h>

#include "backend/cpu/isa.h"

enum { TR_OPTIMIZER_STATES = 2 };

// What an update is made with; each optimizer reads the fields it knows.
typedef struct tr_hyper {
    double lr, weight_decay;
    double beta1, beta2;        // Adam, Lion
    double eps;                 // Adam, Adagrad
    bool decoupled;             // Adam: AdamW's decay (Loshchilov, Hutter 1711.05101)
    bool bias_correction;       // Adam
    double momentum, dampening; // SGD
    bool nesterov;              // SGD
    double initial_accumulator; // Adagrad
    double lr_decay;            // Adagrad
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
} tr_update;

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
} tr_optimizer;

extern const tr_optimizer tr__optimizer_adam; // Adam and AdamW
extern const tr_optimizer tr__optimizer_sgd;
extern const tr_optimizer tr__optimizer_lion;
extern const tr_optimizer tr__optimizer_adagrad;

// The update for this processor (the best `cpu` entry up to `isa`, else the reference).
typedef void (*tr_update_function)(const tr_hyper *hyper, const tr_update *update);
tr_update_function tr__optimizer_choose(const tr_optimizer *optimizer, tr_isa isa);

#endif
