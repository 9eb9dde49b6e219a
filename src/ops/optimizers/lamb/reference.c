#include "ops/optimizers/lamb/lamb.h"

static double direction_of(const tr_lamb_numbers *k, double p, double m, double v) {
    return k->m_scale * m / (k->v_scale * sqrt(v) + k->eps) + k->decay * p;
}

void tr__lamb_direct_reference(const tr_hyper *hyper, const tr_update *update,
                               float *direction) {
    tr_lamb_numbers k = tr__lamb_numbers(hyper, update);
    for (int64_t i = 0; i < update->count; i++) {
        double g = k.grad_scale * update->grad[i];
        double m = update->state[0][i], v = update->state[1][i];
        m += k.m_rate * (g - m);
        v = k.beta2 * v + k.v_rate * g * g;
        update->state[0][i] = (float)m;
        update->state[1][i] = (float)v;
        direction[i] = (float)direction_of(&k, update->param[i], m, v);
    }
}

void tr__lamb_reference(const tr_hyper *hyper, const tr_update *update) {
    tr_lamb_numbers k = tr__lamb_numbers(hyper, update);
    for (int64_t i = 0; i < update->count; i++) {
        double p = update->param[i];
        p -= k.step * direction_of(&k, p, update->state[0][i], update->state[1][i]);
        update->param[i] = (float)p;
    }
}
