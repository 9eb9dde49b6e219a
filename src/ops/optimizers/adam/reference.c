#include "ops/optimizers/adam/adam.h"

void tr__adam_reference(const tr_hyper *hyper, const tr_update *update) {
    tr_adam_numbers k = tr__adam_numbers(hyper, update);
    for (int64_t i = 0; i < update->count; i++) {
        double p = update->param[i];
        double g = k.grad_scale * update->grad[i] + k.l2 * p;
        double m = update->state[0][i], v = update->state[1][i];
        m += k.m_rate * (g - m);
        v = k.beta2 * v + k.v_rate * g * g;
        p = k.keep * p - k.step * m / (sqrt(v) / k.root_bias2 + k.eps);
        update->param[i] = (float)p;
        update->state[0][i] = (float)m;
        update->state[1][i] = (float)v;
    }
}
