// Optimizers: updates of flat f32 buffers, range by range.
#ifndef TR_OPS_OPTIMIZERS_OPTIMIZER_H
#define TR_OPS_OPTIMIZERS_OPTIMIZER_H

#include <tranche/extend/op.h>
#include <tranche/extend/state.h>

#include <assert.h>

// At most; the op that updates has a result for each (ops/update).
enum { TR_OPTIMIZER_STATES = TR_STATE_ROWS };
static_assert(TR_OPTIMIZER_STATES == TR_OP_OUT_MAX - 2, "a result for each");

// Bytes for the hyper-parameters that one optimizer has and others lack.
enum { TR_HYPER_BYTES = 64 };

// What an update is made with.
typedef struct tr_hyper {
    double lr, weight_decay;
    double beta1, beta2; // of optimizers that have betas, else 0
    // The optimizer's own struct (tr_adam_hyper), copied in and out by memcpy.
    unsigned char own[TR_HYPER_BYTES];
} tr_hyper;

// One contiguous range of parameters with one set of hyper-parameters.
typedef struct tr_update {
    float *param;                      // [count], updated in place
    const float *grad;                 // [count]
    float *state[TR_OPTIMIZER_STATES]; // [count] each, those that the optimizer has
    // How they are kept; functions of an optimizer get f32 alone.
    tr_state_type type[TR_OPTIMIZER_STATES];
    int64_t count;
    double
        grad_scale; // each gradient is multiplied by this: 2^k / (scale * count * clip)
    int64_t number; // of this applied update, from 1
    double beta1_power, beta2_power; // products of the betas of updates 1 .. number
    double trust; // what the norms of the whole tensor make of its rate: LAMB, LARS
} tr_update;

// An optimizer whose rate follows the norms of each tensor updates in two phases. The
// first moves the states on and gives what is to be measured; then, the norms of whole
// tensors being known, comes the update itself.
typedef struct tr_adaptation {
    // First phase: direction: [count]. One thread. Bits do not depend on how ranges are
    // cut.
    void (*reference)(const tr_hyper *hyper, const tr_update *update, float *direction);
    // tr_update.trust of a tensor whose parameters and direction have these norms.
    double (*trust)(const tr_hyper *hyper, double param_norm, double direction_norm);
} tr_adaptation;

// How a matrix becomes orthogonal, by `steps` iterations X = a X + (b A + c A A) X with
// A = X X^T; and the update p = keep p - step X.
typedef struct tr_orthogonal {
    int steps;
    tr_dtype type; // to which results are rounded: TR_F32, TR_BF16, TR_F16
    bool gram;     // on A alone, where that is less work; the same but for rounding
    double a, b, c, eps;
    double keep, step;
} tr_orthogonal;

// An optimizer that updates matrices as wholes (ops/flat/orthogonal): tensors of two
// dimensions; all others are another optimizer's.
typedef struct tr_matrix_update {
    // Moves the first state on; direction: [count]. One thread. Bits do not depend on
    // how ranges are cut.
    void (*direct)(const tr_hyper *hyper, const tr_update *update, float *direction);
    tr_orthogonal (*orthogonal)(const tr_hyper *hyper, int64_t rows, int64_t columns);
} tr_matrix_update;

typedef struct tr_optimizer tr_optimizer;
struct tr_optimizer {
    const char *name; // "adam"
    int number;       // in checkpoints: stays the same for ever
    int state_count;
    tr_optimizer_state states[TR_OPTIMIZER_STATES];
    double flops_per_element;
    // Updates the range: plain C, on one thread. A backend has its own (of the CPU:
    // ops/optimizers/cpu_optimizer.h). NULL: it has `matrices`.
    void (*reference)(const tr_hyper *hyper, const tr_update *update);
    const tr_adaptation *adaptation; // NULL: elements know nothing of their tensor
    bool has_betas; // beta1 and beta2 are used, and a schedule may change them
    // What the rule "adam" of batch_scaling (run/scaling.h) makes of all but lr and
    // the betas at `factor` times the batch. NULL: the rule is not for this optimizer.
    // said: [TR_SCALED_TEXT], what has changed, for people; NULL: not asked for.
    void (*scale)(tr_hyper *hyper, double factor, char *said);
    const tr_matrix_update *matrices; // NULL: an element is updated by itself
    const tr_optimizer *apart; // of the parameters that are apart; NULL: the same
};

enum { TR_SCALED_TEXT = 128 };

#endif
