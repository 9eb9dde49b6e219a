#include "run/scaling.h"

#include <inttypes.h>
#include <math.h>

static double factor(const tr_scaling *scaling, int64_t batch) {
    return (double)batch / (double)scaling->reference;
}

const char *const tr__scaling_rules[] = {"none", "linear", "sqrt", "adam", NULL};

const char *tr__scaling_name(tr_scaling_rule rule) {
    return tr__scaling_rules[rule];
}

double tr__scaling_rate(const tr_scaling *scaling, int64_t batch) {
    switch (scaling->rule) {
    case TR_SCALING_LINEAR:
        return factor(scaling, batch);
    case TR_SCALING_SQRT:
    case TR_SCALING_ADAM:
        return sqrt(factor(scaling, batch));
    default:
        return 1;
    }
}

void tr__scaling_apply(const tr_scaling *scaling, const tr_optimizer *optimizer,
                       int64_t batch, tr_hyper *hyper, char *said) {
    hyper->lr *= tr__scaling_rate(scaling, batch);
    if (scaling->rule == TR_SCALING_ADAM) {
        double k = factor(scaling, batch);
        hyper->beta1 = 1 - k * (1 - hyper->beta1);
        hyper->beta2 = 1 - k * (1 - hyper->beta2);
        optimizer->scale(hyper, k, said);
    }
}

int64_t tr__scaling_largest(const tr_scaling *scaling, double beta) {
    if (scaling->rule != TR_SCALING_ADAM) {
        return INT64_MAX;
    }
    // k < 1 / (1 - beta), by whole samples; rounding must not let in what is not.
    double bound = (double)scaling->reference / (1 - beta);
    int64_t most = (int64_t)bound;
    while (most > 0 && !(1 - factor(scaling, most) * (1 - beta) > 1e-12)) {
        most--;
    }
    return most;
}

tr_status tr__scaling_check(const tr_scaling *scaling, int64_t batch, double beta,
                            const char *what, tr_error *err) {
    int64_t most = tr__scaling_largest(scaling, beta);
    if (batch <= most) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "batch_scaling: %s %" PRId64 " is k = %g times reference_batch "
                   "%" PRId64
                   "; the rule \"adam\" makes 1 - k (1 - beta) of the betas, "
                   "and %g allows k below %.6g at most: a batch of up to %" PRId64
                   ", or a larger beta",
                   what, batch, factor(scaling, batch), scaling->reference, beta,
                   1 / (1 - beta), most);
}
