#include "ops/optimizers/lion/lion.h"

static double sign_of(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : x; // of NaN: NaN
}

void tr__lion_reference(const tr_hyper *hyper, const tr_update *update) {
    tr_lion_numbers k = tr__lion_numbers(hyper, update);
    for (int64_t i = 0; i < update->count; i++) {
        double p = update->param[i], m = update->state[0][i];
        double g = k.grad_scale * update->grad[i];
        p = k.keep * p - k.lr * sign_of(k.beta1 * m + k.g_share * g);
        update->param[i] = (float)p;
        update->state[0][i] = (float)(k.beta2 * m + k.m_rate * g);
    }
}
