#include "ops/optimizers/lars/lars.h"

void tr__lars_direct_reference(const tr_hyper *hyper, const tr_update *update,
                               float *direction) {
    (void)hyper;
    for (int64_t i = 0; i < update->count; i++) {
        direction[i] = (float)(update->grad_scale * update->grad[i]);
    }
}

void tr__lars_reference(const tr_hyper *hyper, const tr_update *update) {
    tr_lars_numbers k = tr__lars_numbers(hyper, update);
    for (int64_t i = 0; i < update->count; i++) {
        double p = update->param[i];
        double g = k.grad_scale * update->grad[i] + k.weight_decay * p;
        double step = k.rate * g;
        if (k.has_buffer) {
            double b = k.first ? 0 : update->state[0][i];
            b = k.keep * b + k.rate * g;
            update->state[0][i] = (float)b;
            step = k.from_g * g + k.from_b * b;
        }
        update->param[i] = (float)(p - step);
    }
}
